//! Any bytes whatever are clean bars or an error, never a panic.
//!
//! `PROPTEST_CASES=100000 cargo test -p tidemill-market --test fuzz` runs longer. What broke once lives in `corpus/`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;
use tidemill_market::{BarStamp, LoadOptions, load, synth};

/// Loads these bytes as a file; what comes out has to be clean.
fn check(bytes: &[u8], dir: &Path, options: &LoadOptions) {
    let path = dir.join("fuzz.csv");
    fs::write(&path, bytes).unwrap();
    match load(&[path], options) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(loaded) => {
            assert!(!loaded.report.to_string().is_empty());
            assert!(!loaded.universe.symbols.is_empty());
            assert_eq!(loaded.universe.fingerprint().len(), 64);
            for bars in &loaded.universe.symbols {
                assert!(!bars.is_empty() && !bars.symbol.is_empty() && bars.timeframe_ms > 0);
                let columns = [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume];
                assert!(columns.iter().all(|column| column.len() == bars.len()));
                assert!(
                    bars.extra.iter().all(|(name, column)| !name.is_empty() && column.len() == bars.len())
                );
                for row in 0..bars.len() {
                    assert!(row == 0 || bars.ts_ms[row - 1] < bars.ts_ms[row]);
                    assert!(bars.low[row] > 0.0 && bars.high[row].is_finite());
                    assert!(bars.low[row] <= bars.open[row].min(bars.close[row]));
                    assert!(bars.high[row] >= bars.open[row].max(bars.close[row]));
                    assert!(bars.volume[row].is_finite() && bars.volume[row] >= 0.0);
                }
            }
        }
    }
}

fn options(choice: u8) -> LoadOptions {
    match choice % 5 {
        0 => LoadOptions { timezone: Some("-03:30".into()), ..LoadOptions::default() },
        1 => LoadOptions { resample: Some(86_400_000), ..LoadOptions::default() },
        2 => LoadOptions { from_ms: Some(0), to_ms: Some(1_500_000_000_000), ..LoadOptions::default() },
        3 => LoadOptions { stamp: BarStamp::Close, lenient: true, ..LoadOptions::default() },
        _ => LoadOptions::default(),
    }
}

/// A cell that is close to something a loader takes seriously.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[0-9]{1,4}(\\.[0-9]{1,6})?",
        2 => "(19|20)[0-9]{2}[-./][0-1]?[0-9][-./][0-3]?[0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-9]{2})?(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
        2 => "[0-3]?[0-9][-/.][0-3]?[0-9][-/.]([0-9]{2}|[0-9]{4})",
        1 => "-?[0-9]{1,20}",
        1 => "[0-9]{0,3}:[0-9]{0,3}(:[0-9]{0,3})?",
        2 => "(time|date|timestamp|open|high|low|close|volume|symbol|o|h|l|c|<DATE>|<TIME>|null|NaN|inf|-inf|1e308|-1e999|)",
        1 => "\\PC{0,8}",
        1 => any::<f64>().prop_map(|number| number.to_string()),
    ]
}

fn table() -> impl Strategy<Value = String> {
    let delimiter = prop_oneof![4 => Just(","), 1 => Just(";"), 1 => Just("\t")];
    let header = prop_oneof![
        Just(None),
        Just(Some("time,open,high,low,close,volume")),
        Just(Some("date,time,open,high,low,close")),
        Just(Some("symbol,date,open,high,low,close,volume,x")),
    ];
    (delimiter, header, prop::collection::vec(prop::collection::vec(cell(), 1..9), 0..12)).prop_map(
        |(delimiter, header, rows)| {
            let mut text = String::new();
            if let Some(header) = header {
                text.push_str(&header.replace(',', delimiter));
                text.push('\n');
            }
            for row in rows {
                text.push_str(&row.join(delimiter));
                text.push('\n');
            }
            text
        },
    )
}

/// Sixty rows of two symbols.
fn batch() -> RecordBatch {
    let bars = synth::lcg(60);
    let names = (0..60).map(|row| if row < 30 { "AAA" } else { "BBB" });
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("symbol", Arc::new(StringArray::from_iter_values(names))),
        ("timestamp", Arc::new(TimestampMillisecondArray::from(bars.ts_ms).with_timezone("UTC"))),
        ("open", Arc::new(Float64Array::from(bars.open))),
        ("high", Arc::new(Float64Array::from(bars.high))),
        ("low", Arc::new(Float64Array::from(bars.low))),
        ("close", Arc::new(Float64Array::from(bars.close))),
        (
            "volume",
            Arc::new(Float64Array::from_iter(bars.volume.into_iter().map(|v| (v > 1_100.0).then_some(v)))),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, name == "volume")),
    )
    .unwrap()
}

fn parquet_bytes(properties: WriterProperties) -> Vec<u8> {
    let batch = batch();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seed.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// Good files of several encodings, to be damaged.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let base = WriterProperties::builder;
    vec![
        parquet_bytes(base().build()),
        parquet_bytes(base().set_compression(Compression::SNAPPY).set_dictionary_enabled(false).build()),
        parquet_bytes(base().set_compression(Compression::ZSTD(ZstdLevel::default())).build()),
        parquet_bytes(base().set_compression(Compression::GZIP(GzipLevel::default())).build()),
        parquet_bytes(base().set_compression(Compression::LZ4_RAW).build()),
        parquet_bytes(
            base().set_writer_version(WriterVersion::PARQUET_2_0).set_dictionary_enabled(false).build(),
        ),
        parquet_bytes(
            base()
                .set_compression(Compression::SNAPPY)
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .build(),
        ),
    ]
});

fn arrow_bytes(compression: Option<CompressionType>) -> Vec<u8> {
    let (batch, mut bytes) = (batch(), Vec::new());
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn zip_bytes(member: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for name in ["a.csv", "b.csv"] {
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(member).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Good files of every other format, to be damaged.
static PACKED_SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let csv = {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seed.csv");
        fs::write(dir.path().join("seed.parquet"), &SEEDS[0]).unwrap();
        let loaded = load(&[dir.path().join("seed.parquet")], &LoadOptions::default()).unwrap();
        tidemill_market::write(&loaded.universe, &path).unwrap();
        fs::read(path).unwrap()
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&csv).unwrap();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(&csv).unwrap();
    vec![
        arrow_bytes(None),
        arrow_bytes(Some(CompressionType::LZ4_FRAME)),
        arrow_bytes(Some(CompressionType::ZSTD)),
        gzip.finish().unwrap(),
        xz.finish().unwrap(),
        zstd::encode_all(&csv[..], 1).unwrap(),
        zip_bytes(&csv),
        zip_bytes(&SEEDS[1]),
    ]
});

/// Every file of the corpus with its name: what once broke, and what `reference/bad_files.py` wrote.
static CORPUS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"));
    let mut files: Vec<PathBuf> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
});

#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Set(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        4 => (any::<usize>(), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f), Just(0x80)])
            .prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => (any::<usize>(), 1..40_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        1 => (any::<usize>(), prop::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

/// Damages the footer as often as the pages, and keeps the marks at both ends so that decoding starts at all.
fn apply(bytes: &mut Vec<u8>, damage: &Damage, in_footer: bool) {
    let footer_len = bytes.len().checked_sub(8).map_or(0, |at| {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
    });
    let start = if in_footer { bytes.len().saturating_sub(footer_len + 8).max(4) } else { 4 };
    let end = bytes.len().saturating_sub(4);
    if start >= end {
        return;
    }
    let place = |at: usize| start + at % (end - start);
    match damage {
        Damage::Flip(at, bit) => bytes[place(*at)] ^= bit,
        Damage::Set(at, byte) => bytes[place(*at)] = *byte,
        Damage::Cut(at) => bytes.truncate(place(*at)),
        Damage::Remove(at, len) => {
            let from = place(*at);
            bytes.drain(from..(from + len).min(end));
        }
        Damage::Insert(at, new) => {
            let from = place(*at);
            bytes.splice(from..from, new.iter().copied());
        }
    }
}

thread_local! {
    static DIR: tempfile::TempDir = tempfile::tempdir().unwrap();
}

fn check_here(bytes: &[u8], choice: u8) {
    DIR.with(|dir| check(bytes, dir.path(), &options(choice)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), choice: u8) {
        check_here(&bytes, choice);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[0-9,;\t\n.:\"TZ -]{0,300}", choice: u8) {
        check_here(text.as_bytes(), choice);
    }

    #[test]
    fn almost_good_tables_never_panic(text in table(), choice: u8) {
        check_here(text.as_bytes(), choice);
    }

    #[test]
    fn arbitrary_bytes_between_parquet_marks_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), honest: bool) {
        let mut file = b"PAR1".to_vec();
        file.extend(&bytes);
        if honest {
            file.extend((bytes.len() as u32).to_le_bytes());
        }
        file.extend(b"PAR1");
        check_here(&file, 3);
    }

    #[test]
    fn damaged_parquet_never_panics(seed: usize, in_footer: bool, damages in prop::collection::vec(damage(), 1..5), choice: u8) {
        let mut bytes = SEEDS[seed % SEEDS.len()].clone();
        for damage in &damages {
            apply(&mut bytes, damage, in_footer);
        }
        check_here(&bytes, choice);
    }

    #[test]
    fn damaged_arrow_and_packed_files_never_panic(seed: usize, in_footer: bool, damages in prop::collection::vec(damage(), 1..5), choice: u8) {
        let mut bytes = PACKED_SEEDS[seed % PACKED_SEEDS.len()].clone();
        for damage in &damages {
            apply(&mut bytes, damage, in_footer);
        }
        check_here(&bytes, choice);
    }

    #[test]
    fn the_corpus_damaged_further_never_panics(file: usize, in_footer: bool, damages in prop::collection::vec(damage(), 1..5), choice: u8) {
        let mut bytes = CORPUS[file % CORPUS.len()].1.clone();
        for damage in &damages {
            apply(&mut bytes, damage, in_footer);
        }
        check_here(&bytes, choice);
    }

    #[test]
    fn partitions_of_any_name_never_panic(
        folders in prop::collection::vec("(symbol|ticker|year|x)?=?[A-Za-z0-9%=. _-]{0,8}", 1..5),
        foreign: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let inner = folders.iter().filter(|name| !matches!(name.as_str(), "" | "." | ".."));
        let inner = inner.fold(dir.path().to_path_buf(), |path, name| path.join(name));
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("part-0.csv"), "time,open,high,low,close\n2024-01-01,1,2,1,2\n").unwrap();
        if foreign {
            fs::write(inner.join("part-1.parquet"), &CORPUS[0].1).unwrap();
        }
        match load(&[dir.path().to_path_buf()], &LoadOptions::default()) {
            Ok(loaded) => prop_assert!(!loaded.universe.symbols[0].symbol.is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn the_seeds_are_good_files() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in SEEDS.iter().chain(PACKED_SEEDS.iter()) {
        let path = dir.path().join("seed.parquet");
        fs::write(&path, bytes).unwrap();
        assert_eq!(load(&[path], &LoadOptions::default()).unwrap().universe.symbols.len(), 2);
    }
}

#[test]
fn everything_that_once_broke_stays_mended() {
    let dir = tempfile::tempdir().unwrap();
    for (_, bytes) in CORPUS.iter() {
        (0..5).for_each(|choice| check(bytes, dir.path(), &options(choice)));
    }
}

/// Files of the corpus that load: names that are no pairs after all, closes of two instruments, and archives whose lies about sizes
/// and places nobody needs.
const GOOD_ENOUGH: [&str; 7] = [
    "pairs_of_closes_alone.parquet",
    "pairs_of_three.parquet",
    "pairs_without_a_ticker.csv",
    "pairs_without_a_ticker.parquet",
    "zip_claims_four_gigabytes.zip",
    "zip_members_that_overlap.zip",
    "zip_of_gzip_of_gzip.zip",
];

/// Of a bad file a person is told its name and what is wrong; a few hold all that is needed nevertheless.
#[test]
fn bad_files_are_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let mut good: Vec<&str> = Vec::new();
    for (name, bytes) in CORPUS.iter() {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        // An archive of which a member is bad is refused if it has to be whole.
        let options = LoadOptions { strict: true, ..LoadOptions::default() };
        match load(&[path], &options) {
            Ok(_) => good.push(name),
            Err(error) => {
                let message = error.to_string();
                let is_told = message.contains(name.as_str()) || message.contains("no usable bar");
                assert!(is_told, "{name}: {message}");
            }
        }
    }
    assert_eq!(good, GOOD_ENOUGH);
    let expected = ["zip_", "gzip_", "zstd_", "xz_", "feather_", "arrow_", "pairs_", "two_lines_", "closes_"];
    for format in expected {
        assert!(CORPUS.iter().any(|(name, _)| name.starts_with(format)), "the corpus has no {format}");
    }
}
