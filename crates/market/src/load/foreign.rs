//! Formats that are not read, but that people have: an error names them, and the way to one that is.

use std::path::Path;

use crate::error::MarketError;

/// A format by the bytes at a place near its start, what it is, and what to do.
const FORMATS: [(usize, &[u8], &str, &str); 10] = [
    (0, b"SQLite format 3\0", "a SQLite database", SQLITE),
    (8, b"DUCK", "a DuckDB database", DUCKDB),
    (
        0,
        b"\x89HDF\r\n\x1a\n",
        "HDF5",
        "write it as Parquet: pandas.read_hdf(file).to_parquet(\"bars.parquet\")",
    ),
    (0, b"FEA1", "Feather of version 1", "write it again with pandas' to_feather, which writes version 2"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", WORKBOOK.0, WORKBOOK.1),
    (0, b"BZh", "bzip2", UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (257, b"ustar", "a tar archive", UNPACK),
    (0, b"ORC", "ORC", "write it as Parquet: pandas.read_orc(file).to_parquet(\"bars.parquet\")"),
];

const UNPACK: &str = "unpack it by hand, or pack it again as zip, gzip, Zstandard or xz";
const SQLITE: &str = "hand over what a query gives: sqlite3 -header -csv FILE \"select …\" | tidemill data inspect - --name SYMBOL";
const DUCKDB: &str = "write what a query gives: duckdb FILE -c \"copy (select …) to 'bars.parquet'\"";

/// What a spreadsheet is called, and what to do with it.
pub(crate) const WORKBOOK: (&str, &str) = ("a spreadsheet", "save the sheet with the bars as CSV");

/// What a web address is, and what to do with it.
pub(crate) const ADDRESS: (&str, &str) =
    ("an address", "download it first, or pipe it: curl -L ADDRESS | tidemill data inspect -");

/// Refuses content that starts like a format that is known and not read.
pub(crate) fn refuse(start: &[u8], path: &Path) -> Result<(), MarketError> {
    let is_there = |at: usize, mark: &[u8]| start.get(at..).is_some_and(|rest| rest.starts_with(mark));
    let known = FORMATS.iter().find(|(at, mark, ..)| is_there(*at, mark));
    let known = known.map(|(_, _, what, hint)| (*what, *hint)).or_else(|| markup(start));
    known.map_or(Ok(()), |(what, hint)| Err(MarketError::Foreign { path: path.to_path_buf(), what, hint }))
}

/// Text that is no table.
fn markup(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let begins = |tag: &[u8]| text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
    match text.first()? {
        b'{' | b'[' => {
            Some(("JSON", "write it as Parquet: pandas.read_json(file).to_parquet(\"bars.parquet\")"))
        }
        b'<' if begins(b"<!doctype") || begins(b"<html") => {
            Some(("a web page", "the download may have failed; open the file to read what the server said"))
        }
        b'<' if begins(b"<?xml") => Some(("XML", "write it as CSV, or as Parquet with pandas.read_xml")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_named_with_a_way_out() {
        let told = |start: &[u8]| refuse(start, Path::new("a")).map_err(|error| error.to_string()).err();
        let mut tar = vec![b'a'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        for (start, expected) in [
            (&b"SQLite format 3\0 \x01"[..], "a SQLite database"),
            (b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK\0", "duckdb FILE -c"),
            (b"BZh91AY", "bzip2"),
            (&tar, "a tar archive"),
            (b"\xef\xbb\xbf [{\"open\":1}]", "is JSON, which is not read"),
            (b"<!DOCTYPE html><html>", "the download may have failed"),
        ] {
            assert!(told(start).is_some_and(|error| error.contains(expected)), "{expected}");
        }
        for start in [&b""[..], b"<DATE>\t<TIME>\t<OPEN>", b"time,open,high,low,close", b"DUCK", b"\0ORC"] {
            assert_eq!(told(start), None);
        }
    }
}
