//! Packed files, archives and Arrow: the same bits as the plain Parquet of the same bars, or a clear refusal.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use tidemill_market::{Bars, LoadOptions, LoadedData, MarketError, Universe, load, synth, write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

fn load_one(path: &Path) -> Result<LoadedData, MarketError> {
    load(&[path.to_path_buf()], &LoadOptions::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (index, (name, bytes)) in members.iter().enumerate() {
        let method = if index % 2 == 0 { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Bars as pandas has them: a symbol that repeats is a dictionary.
fn batch(bars: &Bars) -> RecordBatch {
    let names = vec![bars.symbol.as_str(); bars.len()];
    let symbols: DictionaryArray<Int32Type> = names.into_iter().collect();
    let numbers = |column: &[f64]| Arc::new(Float64Array::from(column.to_vec())) as ArrayRef;
    let times = TimestampMillisecondArray::from(bars.ts_ms.clone()).with_timezone("UTC");
    RecordBatch::try_from_iter([
        ("symbol", Arc::new(symbols) as ArrayRef),
        ("timestamp", Arc::new(times)),
        ("open", numbers(&bars.open)),
        ("high", numbers(&bars.high)),
        ("low", numbers(&bars.low)),
        ("close", numbers(&bars.close)),
        ("volume", numbers(&bars.volume)),
        ("note", Arc::new(StringArray::from(vec!["text"; bars.len()]))),
    ])
    .unwrap()
}

fn feather(bars: &Bars, compression: Option<CompressionType>) -> Vec<u8> {
    let (batch, mut bytes) = (batch(bars), Vec::new());
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
    writer.write(&batch.slice(0, 100)).unwrap();
    writer.write(&batch.slice(100, bars.len() - 100)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn stream(bars: &Bars) -> Vec<u8> {
    let (batch, mut bytes) = (batch(bars), Vec::new());
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

#[test]
fn every_packing_has_the_bits_of_plain_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let bars = synth::lcg(700);
    let universe = Universe { symbols: vec![bars.clone()] };
    let plain = dir.path().join("plain.parquet");
    write(&universe, &plain).unwrap();
    write(&universe, &dir.path().join("plain.csv")).unwrap();
    let fingerprint = load_one(&plain).unwrap().universe.fingerprint();
    let [parquet, csv] = ["plain.parquet", "plain.csv"].map(|name| fs::read(dir.path().join(name)).unwrap());
    let half = csv.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(300).unwrap().0 + 1;
    let header = csv.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let second = [&csv[..header], &csv[half..]].concat();
    let lz4 = feather(&bars, Some(CompressionType::LZ4_FRAME));
    for (name, bytes, format) in [
        ("a.csv.gz", gzip(&csv), "csv"),
        ("a.csv.zst", zstd::encode_all(&csv[..], 3).unwrap(), "csv"),
        ("a.csv.xz", xz(&csv), "csv"),
        ("a.parquet.zst", zstd::encode_all(&parquet[..], 3).unwrap(), "parquet"),
        ("a.zip", zipped(&[("a.csv", &csv)]), "csv"),
        ("b.zip", zipped(&[("only one, whatever its name", &csv)]), "csv"),
        ("c.zip", zipped(&[("x/a.parquet", &parquet), ("README.md", b"no data")]), "parquet"),
        ("d.zip", zipped(&[("a.csv", &csv[..half]), ("b.csv", &second), ("__MACOSX/._a.csv", b"")]), "csv"),
        ("e.zip", zipped(&[("a.csv.gz", &gzip(&csv))]), "csv"),
        ("a.feather", lz4.clone(), "arrow"),
        ("b.feather", feather(&bars, Some(CompressionType::ZSTD)), "arrow"),
        ("c.arrow", feather(&bars, None), "arrow"),
        ("d.arrows", stream(&bars), "arrow"),
        ("e.arrow.gz", gzip(&stream(&bars)), "arrow"),
        ("f.zip", zipped(&[("a.feather", &lz4)]), "arrow"),
        ("called.csv", lz4.clone(), "arrow"),
    ] {
        let path = file(dir.path(), &format!("packed/{name}"), bytes);
        let loaded = load_one(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(loaded.universe.fingerprint(), fingerprint, "{name}");
        assert_eq!(loaded.report.files[0].format, format, "{name}");
    }
    // Agreeing copies of one history, whatever they are packed in.
    let all = load_one(&dir.path().join("packed")).unwrap();
    assert_eq!(all.universe.fingerprint(), fingerprint);
    assert_eq!(all.report.files.len(), 17);
    assert!(all.report.unreadable.is_empty(), "{:?}", all.report.unreadable);
}

#[test]
fn members_of_an_archive_are_files_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |day: u32| {
        format!("time,open,high,low,close\n2024-01-0{day},1,1,1,1\n2024-01-0{},1,1,1,1\n", day + 1)
    };
    let [first, third] = [rows(1), rows(3)];
    let members: [(&str, &[u8]); 4] = [
        ("spot/BTC-1d-2024-01-01.csv", first.as_bytes()),
        ("spot/BTC-1d-2024-01-03.csv", third.as_bytes()),
        ("spot/ETH.csv", first.as_bytes()),
        ("spot/list.csv", b"name,sector\nBTC,coins\n"),
    ];
    let path = file(dir.path(), "dump.zip", zipped(&members));
    let loaded = load_one(&path).unwrap();
    let symbols: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
    assert_eq!(symbols, ["BTC", "ETH"]);
    assert_eq!(loaded.universe.symbols[0].len(), 4);
    assert!(loaded.report.files[0].path.ends_with("dump.zip/spot/BTC-1d-2024-01-01.csv"));
    assert!(loaded.report.unreadable[0].path.ends_with("dump.zip/spot/list.csv"));
    let strict = LoadOptions { strict: true, ..LoadOptions::default() };
    assert!(load(std::slice::from_ref(&path), &strict).unwrap_err().to_string().contains("list.csv"));
    // An archive without anything readable is an error if it was given, also beside a good one.
    let bad = file(dir.path(), "bad.zip", zipped(&members[3..]));
    assert!(
        load(&[path, bad], &LoadOptions::default())
            .unwrap_err()
            .to_string()
            .contains("bad.zip/spot/list.csv")
    );
}

#[test]
fn what_is_hostile_or_broken_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = vec![b'0'; 100 << 20];
    let csv = b"time,open,high,low,close\n2024-01-01,1,1,1,1\n";
    let whole = feather(&synth::lcg(200), Some(CompressionType::ZSTD));
    let mut claim = whole.clone();
    // The length that the first packed buffer unpacks to stands in front of its bytes.
    let at = claim.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap() - 8;
    claim[at..at + 8].copy_from_slice(&(1_i64 << 50).to_le_bytes());
    for (name, bytes, expected) in [
        ("bomb.csv.gz", gzip(&zeros), "250 times as much"),
        ("bomb.csv.zst", zstd::encode_all(&zeros[..], 1).unwrap(), "250 times as much"),
        ("bomb.csv.xz", xz(&zeros), "250 times as much"),
        ("bomb.zip", zipped(&[("a.csv", &zeros)]), "250 times as much"),
        ("up.zip", zipped(&[("../a.csv", csv)]), "\"../a.csv\" points outside the archive"),
        ("root.zip", zipped(&[("/etc/a.csv", csv)]), "points outside the archive"),
        ("windows.zip", zipped(&[("..\\a.csv", csv)]), "points outside the archive"),
        ("nothing.zip", zipped(&[]), "no member of it is named like data"),
        ("foreign.zip", zipped(&[("a.md", b"x"), ("b.md", b"y")]), "no member of it is named like data"),
        ("nested.zip", zipped(&[("inner.zip", &zipped(&[("a.csv", csv)]))]), "inside something packed"),
        ("nested.gz", gzip(&zipped(&[("a.csv", csv)])), "inside something packed"),
        ("deep.csv.gz", gzip(&gzip(&gzip(csv))), "packed more than twice"),
        ("cut.csv.zst", zstd::encode_all(&csv[..], 1).unwrap()[..20].to_vec(), "not readable as Zstandard"),
        ("cut.csv.xz", xz(csv)[..40].to_vec(), "not readable as xz"),
        ("cut.zip", zipped(&[("a.csv", csv)])[..60].to_vec(), "not readable as zip"),
        ("cut.feather", whole[..whole.len() / 2].to_vec(), "not readable as Arrow or Feather: it ends"),
        ("claim.feather", claim, "more than fit into memory"),
        ("old.feather", b"FEA1\0\0\0\0".to_vec(), "Feather of version 1"),
    ] {
        let path = file(dir.path(), name, bytes);
        let message = load_one(&path).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("hint:"), "{name}: {message}");
        assert!(message.contains(name), "{name}: {message}");
    }
    assert!(load_one(&file(dir.path(), "good.csv.gz", gzip(&gzip(csv)))).is_ok(), "packed twice is fine");
}
