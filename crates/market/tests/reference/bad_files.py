"""Writes bad files of every packed and binary format into `tests/corpus`; needs pandas, pyarrow and zstandard.

Each is a way in which a file is damaged, cut or made to do harm. `tests/fuzz.rs` loads all of them and damages them further.
"""

import gzip
import io
import lzma
import pathlib
import struct
import zipfile

import pandas as pd
import pyarrow as pa
import zstandard

here = pathlib.Path(__file__).parent.parent / "corpus"
csv = "time,open,high,low,close,volume\n" + "".join(
    f"2024-01-{day:02},10,12,9,11,{day}\n" for day in range(1, 29)
)
csv = csv.encode()


def write(name, data):
    (here / name).write_bytes(data)


def zipped(members, **options):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return bytearray(out.getvalue())


# zip: cut, other sizes than there are, members outside, members in members, ends that point elsewhere.
good = zipped([("a.csv", csv), ("b.csv", csv)])
write("zip_cut_in_a_member.zip", good[: len(good) // 3])
write("zip_cut_before_its_end.zip", good[:-10])
central = good.index(b"PK\x01\x02")
sizes = bytearray(good)
sizes[central + 20 : central + 28] = struct.pack("<II", 0xFFFFFFFE, 0xFFFFFFFE)
write("zip_claims_four_gigabytes.zip", sizes)
crc = bytearray(good)
crc[central + 16] ^= 0xFF
write("zip_wrong_checksum.zip", crc)
method = bytearray(good)
method[central + 10] = 99
write("zip_unknown_method.zip", method)
encrypted = bytearray(good)
encrypted[central + 8] |= 1
encrypted[6] |= 1
write("zip_encrypted.zip", encrypted)
overlap = bytearray(good)
second = good.index(b"PK\x01\x02", central + 1)
overlap[second + 42 : second + 46] = bytes(4)
write("zip_members_that_overlap.zip", overlap)
count = bytearray(good)
count[-14:-10] = b"\xff\xff\xff\xff"
write("zip_claims_65535_members.zip", count)
write("zip_member_outside.zip", zipped([("../../a.csv", csv)]))
write("zip_absolute_member.zip", zipped([("/a.csv", csv)]))
write("zip_member_with_backslash.zip", zipped([("..\\a.csv", csv)]))
write("zip_in_zip.zip", zipped([("inner.zip", bytes(good))]))
write("zip_of_gzip_of_gzip.zip", zipped([("a.csv.gz", gzip.compress(gzip.compress(csv, mtime=0), mtime=0))]))
write("zip_of_nothing.zip", zipped([]))

# gzip, Zstandard, xz: cut, claims, checksums, windows.
packed = bytearray(gzip.compress(csv, mtime=0))
write("gzip_cut.csv.gz", packed[: len(packed) // 2])
packed[-6] ^= 0xFF
write("gzip_wrong_checksum.csv.gz", packed)
write("gzip_bomb.csv.gz", gzip.compress(gzip.compress(bytes(80 << 20), mtime=0), mtime=0))
frame = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(csv))
write("zstd_cut.csv.zst", frame[: len(frame) // 2])
frame[-2] ^= 0xFF
write("zstd_wrong_checksum.csv.zst", frame)
write("zstd_claims_an_exabyte.csv.zst", b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60) + frame[6:])
write("zstd_window_of_two_terabytes.csv.zst", b"\x28\xb5\x2f\xfd\x00\xf8" + b"\x01\x00\x00")
write("zstd_skippable_frame_alone.zst", b"\x50\x2a\x4d\x18" + struct.pack("<I", 1 << 31))
stream = bytearray(lzma.compress(csv, format=lzma.FORMAT_XZ))
write("xz_cut.csv.xz", stream[: len(stream) // 2])
stream[-20] ^= 0xFF
write("xz_wrong_index.csv.xz", stream)
write("xz_dictionary_of_four_gigabytes.csv.xz", bytes(stream[:16]) + b"\x28" + bytes(stream[17:]))

# Feather and streams of Arrow: cut, lengths, footers.
bars = pd.DataFrame({"timestamp": pd.date_range("2024-01-01", periods=28)})
for name, value in {"open": 10.0, "high": 12.0, "low": 9.0, "close": 11.0, "volume": 5.0}.items():
    bars[name] = value
for codec in ["uncompressed", "lz4", "zstd"]:
    out = io.BytesIO()
    bars.to_feather(out, compression=codec)
    data = bytearray(out.getvalue())
    write(f"feather_{codec}_cut.feather", data[: len(data) * 2 // 3])
    footer = bytearray(data)
    footer[-10:-6] = struct.pack("<i", 0x7FFFFFFF)
    write(f"feather_{codec}_long_footer.feather", footer)
    footer[-10:-6] = struct.pack("<i", -4)
    write(f"feather_{codec}_negative_footer.feather", footer)
table = pa.Table.from_pandas(bars)
out = io.BytesIO()
with pa.ipc.new_stream(out, table.schema) as writer:
    writer.write_table(table)
data = bytearray(out.getvalue())
write("arrow_stream_cut.arrows", data[: len(data) // 2])
write("arrow_stream_long_message.arrows", data[:4] + struct.pack("<i", 0x7FFFFFF8) + data[8:])
write("arrow_stream_of_marks.arrows", b"\xff\xff\xff\xff" * 64)

# Two levels of columns: pairs that are none, of one price alone, one ticker without prices, the same twice.
times = pd.DataFrame({"Date": pd.date_range("2024-01-01", periods=8)})
for name, columns in {
    "pairs_of_closes_alone": ["('Close', 'A')", "('Close', 'B')"],
    "pairs_that_do_not_end": ["('Close', 'A'", "('Open', 'A", "('High'", "('", "(,)", "()"],
    "pairs_of_three": ["('Close', 'A', 'x')", "('Open', 'A', 'x')", "('High', 'A', 'x')", "('Low', 'A', 'x')"],
    "pairs_without_a_ticker": ["('Close', '')", "('Open', '')", "('High', '')", "('Low', '')"],
    "pairs_where_one_lacks_prices": [f"('{p}', 'A')" for p in ["Open", "High", "Low", "Close"]] + ["('Volume', 'B')"],
}.items():
    frame = times.copy()
    for at, column in enumerate(columns):
        frame[column] = 10.0 + at
    frame.to_parquet(here / f"{name}.parquet")
    frame.to_csv(here / f"{name}.csv", index=False)
two = "Price,Close,Close,High,High\nTicker,A,,B\nDate,,\n2024-01-01,1,2\n2024-01-02,1,2,3,4,5,6,7\n"
write("two_lines_of_unequal_length.csv", two.encode())
write("two_lines_and_nothing_else.csv", b"Price,Close,Close,Open,Open,High,High,Low,Low\nTicker,A,B,A,B,A,B,A,B\n")

# Closes alone: nothing but names, a close without a time, a time without a close.
write("closes_without_rows.csv", b"date,close\n")
write("closes_without_a_time.csv", b"close\n1\n2\n")
write("closes_of_text.csv", b"date,close\n2024-01-01,one\n2024-01-02,two\n")
