//! What can go wrong between a path and a [`Universe`](crate::Universe), each with the place and a cure.
//!
//! Dirt inside readable data is not an error: it is repaired or dropped by the policy in [`clean`](crate::clean)
//! and counted in the [`DataReport`](crate::DataReport).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::timeframe::format_duration;
use crate::timestamp::format_ms;

/// Why market data could not be read, resampled or written.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// The path does not exist.
    #[error(
        "{path}: no such file or directory\n  hint: check the spelling; a directory loads every file in it that is named like data, as .csv, .parquet or .zip"
    )]
    NotFound {
        /// The missing path.
        path: PathBuf,
    },
    /// No path was given at all.
    #[error("no data file was given\n  hint: name at least one CSV or Parquet file, or a directory of them")]
    NoPaths,
    /// The operating system refused to read.
    #[error("{path}: {reason}")]
    Io {
        /// The file in question.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The output could not be written.
    #[error("{path}: cannot be written: {reason}\n  hint: {hint}")]
    Write {
        /// The output path.
        path: PathBuf,
        /// The error of the system or of the encoder.
        reason: String,
        /// Hint for the user.
        hint: String,
    },
    /// The directory holds nothing that can be loaded.
    #[error(
        "{path}: the directory holds no .csv, .tsv, .parquet, .feather, .arrow or .zip file, packed or not"
    )]
    NoFiles {
        /// The directory.
        path: PathBuf,
    },
    /// The file has no content.
    #[error(
        "{path}: the file is empty\n  hint: it needs at least one row with time, open, high, low and close"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The columns could not be recognised.
    #[error("{path}:{line}: {problem}\n  found: {found}\n  hint: {hint}")]
    Columns {
        /// The file.
        path: PathBuf,
        /// Line of the header, or of the first row (1 for Parquet).
        line: u64,
        /// What is missing or contradictory.
        problem: String,
        /// The names, or the first cells, that are there.
        found: String,
        /// Hint for the user.
        hint: String,
    },
    /// The columns belong to several instruments.
    #[error(
        "{path}:{line}: columns of several instruments side by side: {which}\n  hint: write one file per instrument, or one row per time and instrument with a column `symbol` (what yfinance gives for several tickers: `df.stack(level=\"Ticker\", future_stack=True).reset_index()`)"
    )]
    SeveralInstruments {
        /// The file.
        path: PathBuf,
        /// Line of the header (1 for Parquet).
        line: u64,
        /// Their names, or what tells that there are several.
        which: String,
    },
    /// The file says that its times are the opens of bars, the caller that they are ends.
    #[error(
        "{path}: --stamp close takes its times for ends of bars, but the file calls them open times, by the name of their column or as a kline dump does\n  hint: leave out --stamp close, or load the files whose times are ends apart"
    )]
    StampClash {
        /// The file.
        path: PathBuf,
    },
    /// The ends of a symbol's bars cannot be turned into open times.
    #[error(
        "symbol {symbol:?}: --stamp close cannot be applied: {problem}\n  hint: write open times, or ends of one kind that are a fixed time apart, into the file"
    )]
    Stamp {
        /// Whose bars.
        symbol: String,
        /// Why not.
        problem: String,
    },
    /// The file claims to be Parquet but cannot be decoded.
    #[error(
        "{path}: not readable as Parquet: {message}\n  hint: the file may be truncated or corrupt; write it again, or export it as CSV"
    )]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The decoder's error.
        message: String,
    },
    /// The file has a format that is known and not read.
    #[error("{path}: this is {what}, which is not read\n  hint: {hint}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The format.
        what: &'static str,
        /// Hint for the user.
        hint: &'static str,
    },
    /// The file is no text, and not one of the binary formats that can be read.
    #[error(
        "{path}: looks binary, none of CSV, Parquet, Arrow, zip, gzip, Zstandard and xz\n  hint: export it as CSV or Parquet; text is read as UTF-8, or as UTF-16 with byte order mark"
    )]
    Binary {
        /// The file.
        path: PathBuf,
    },
    /// Packed content is broken.
    #[error(
        "{path}: not readable as {format}: {message}\n  hint: unpack it by hand to see how far it is intact"
    )]
    Packed {
        /// The file.
        path: PathBuf,
        /// How it is packed.
        format: &'static str,
        /// The decoder's error.
        message: String,
    },
    /// The file claims to be Arrow but cannot be decoded.
    #[error(
        "{path}: not readable as Arrow or Feather: {message}\n  hint: the file may be truncated or corrupt; write it again, or export it as Parquet"
    )]
    Arrow {
        /// The file.
        path: PathBuf,
        /// The decoder's error.
        message: String,
    },
    /// The archive is not one that is opened here.
    #[error("{path}: {problem}\n  hint: unpack it by hand and load the files in it")]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file holds more than this program is willing to take in one piece.
    #[error("{path}: {what}\n  hint: split the file, or keep only the symbols and dates you need")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What exceeds which limit.
        what: String,
    },
    /// Every row of every symbol was dropped.
    #[error(
        "no usable bar in {files} file(s):\n{reasons}\n  hint: `tidemill data inspect` lists the first bad places"
    )]
    NothingLeft {
        /// How many files were read.
        files: usize,
        /// One line per refused symbol (the first few).
        reasons: String,
    },
    /// A requested symbol is not in the data.
    #[error("symbol {symbol:?} is not in the data; it has: {available}")]
    UnknownSymbol {
        /// The symbol that the data lacks.
        symbol: String,
        /// What exists (the first few).
        available: String,
    },
    /// Directories named `key=value` lie too deep in each other.
    #[error("{path}: partitions are nested more than {limit} deep\n  hint: load a directory further down")]
    PartitionDepth {
        /// The directory.
        path: PathBuf,
        /// How deep they may be.
        limit: usize,
    },
    /// Columns to be joined do not fit.
    #[error("--join {path}: {problem}\n  hint: {hint}")]
    Join {
        /// The file with the columns.
        path: PathBuf,
        /// Why they cannot be joined.
        problem: String,
        /// Hint for the user.
        hint: String,
    },
    /// The pattern for names is no regular expression.
    #[error(
        "--name-from {pattern:?}: {message}\n  hint: a regular expression, whose first group is the symbol, as in '([A-Z]+)_daily'"
    )]
    NamePattern {
        /// What was given.
        pattern: String,
        /// Why it cannot be used.
        message: String,
    },
    /// The pattern for names finds none in a path.
    #[error(
        "{path}: --name-from finds no symbol in it, and the file has no symbol column\n  hint: the pattern is looked for in the path as given"
    )]
    NameNotFound {
        /// The file.
        path: PathBuf,
    },
    /// A name was given for files that all have a symbol column.
    #[error(
        "--name has no effect: every file has a symbol column\n  hint: leave it out, or choose symbols with --symbols"
    )]
    NameUnused,
    /// Two files without a symbol column would become one symbol and overlap in time.
    #[error(
        "{first} and {second} would both be symbol {symbol:?} and overlap in time\n  hint: a file without a symbol column is named after its file name; rename one, add a symbol column, name them with --name-from, or do not give a file twice"
    )]
    SymbolClash {
        /// The shared name.
        symbol: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// Two files have bars of one symbol, but of different length.
    #[error(
        "{first} has {first_bars} bars of symbol {symbol:?} and {second} has {second_bars} bars of it\n  hint: a symbol has one timeframe; load the files apart, or choose with --symbols what only one of them has",
        first_bars = format_duration(*.first_ms), second_bars = format_duration(*.second_ms)
    )]
    TimeframeClash {
        /// The symbol.
        symbol: String,
        /// One file.
        first: String,
        /// Timeframe of its bars.
        first_ms: i64,
        /// The other file.
        second: String,
        /// Timeframe of the other's bars.
        second_ms: i64,
    },
    /// Two files have different prices or volumes of one symbol at one time.
    #[error(
        "{first} ({first_bars}) and {second} ({second_bars}) overlap and disagree about symbol {symbol:?} at {count} time(s), first at {time}\n  hint: the data does not tell which one is right; load the files apart, cut the overlap out of one, or choose with --symbols what only one of them has",
        first_bars = describe_bars(*.first_ms), second_bars = describe_bars(*.second_ms), time = format_ms(*.ts_ms)
    )]
    Contradiction {
        /// The symbol.
        symbol: String,
        /// One file and its line.
        first: String,
        /// Timeframe of its bars, if it has more than one.
        first_ms: Option<i64>,
        /// The other file and its line.
        second: String,
        /// Timeframe of the other's bars, if it has more than one.
        second_ms: Option<i64>,
        /// The first such time, UTC milliseconds.
        ts_ms: i64,
        /// At how many times the files disagree.
        count: usize,
    },
    /// The time zone is neither a known name nor an offset.
    #[error(
        "time zone {name:?}: {message}\n  hint: use an IANA name such as \"America/New_York\" or an offset such as \"+02:00\""
    )]
    Timezone {
        /// What was given.
        name: String,
        /// Why it cannot be used.
        message: String,
    },
    /// A duration such as "15m" could not be read.
    #[error(
        "{text:?} is not a timeframe\n  hint: a whole number and one of ms, s, m, h, d, w, as in \"15m\", \"1h\", \"1d\""
    )]
    Timeframe {
        /// What was given.
        text: String,
    },
    /// A length of time could not be read.
    #[error(
        "{text:?} is not a length of time\n  hint: a whole number and one of ms, s, m, h, d, w, y, as in \"180d\" or \"2y\" (730 days)"
    )]
    Span {
        /// What was given.
        text: String,
    },
    /// The target timeframe is not a multiple of the source's.
    #[error("{symbol}: {from} bars cannot be resampled to {to}: it is not a whole multiple", from = format_duration(*.from_ms), to = format_duration(*.to_ms))]
    Resample {
        /// Whose bars.
        symbol: String,
        /// Timeframe of the data.
        from_ms: i64,
        /// The requested timeframe.
        to_ms: i64,
    },
    /// Symbols with closes alone cannot be written beside others: a file has one set of columns.
    #[error(
        "{path}: symbol {symbol:?} has closes alone, others have all prices\n  hint: write them to two files, chosen with --symbols"
    )]
    WriteMixed {
        /// The output path.
        path: PathBuf,
        /// A symbol with closes alone.
        symbol: String,
    },
    /// The output's name ends in neither `.csv` nor `.parquet`.
    #[error("{path}: cannot tell the format to write\n  hint: end the name in .parquet or .csv")]
    OutputFormat {
        /// The output path.
        path: PathBuf,
    },
}

impl MarketError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        if source.kind() == ErrorKind::NotFound {
            MarketError::NotFound { path: path.to_path_buf() }
        } else {
            MarketError::Io { path: path.to_path_buf(), reason: source.to_string() }
        }
    }

    /// The system refused to write; the hint follows from why.
    pub(crate) fn write(path: &Path, source: &std::io::Error) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).display();
        let mut reason = source.to_string();
        let hint = match source.kind() {
            ErrorKind::NotFound => {
                reason = format!("there is no folder {folder}");
                "create it first, or write elsewhere".to_string()
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                format!("the folder {folder} and the file, if there is one, must be writable")
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or write elsewhere".to_string(),
            _ => "give a file name in a folder that exists and can be written to".to_string(),
        };
        MarketError::Write { path: path.to_path_buf(), reason, hint }
    }
}

/// How long a file's bars are, if that can be told.
fn describe_bars(timeframe_ms: Option<i64>) -> String {
    timeframe_ms.map_or_else(|| "one bar".to_string(), |ms| format!("{} bars", format_duration(ms)))
}
