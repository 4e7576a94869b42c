//! The fold of a journal up to the end of a full file, kept beside it so that a viewer need not read what came before.
//!
//! It only saves time: what is missing, broken, of another version or of another file is ignored.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};

use serde::{Deserialize, Serialize};

use crate::segment::Segments;
use crate::snapshot::Snapshot;

/// Version of the fold. One more whenever the same events give another snapshot, so that old checkpoints are not trusted.
const FOLD_VERSION: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    fold: u32,
    /// Length of the file that it ends with.
    len_bytes: u64,
    snapshot: &'a Snapshot,
}

#[derive(Deserialize)]
struct Read {
    fold: u32,
    len_bytes: u64,
    snapshot: Snapshot,
}

/// Keeps the fold up to the end of a full file. It appears under its name only when it is complete.
pub(crate) fn write(segments: &Segments, number: u64, len_bytes: u64, snapshot: &Snapshot) -> io::Result<()> {
    let path = segments.checkpoint(number);
    let temporary = path.with_extension("json.tmp");
    let mut output = BufWriter::new(File::create(&temporary)?);
    serde_json::to_writer(&mut output, &Written { fold: FOLD_VERSION, len_bytes, snapshot })?;
    output.flush()?;
    drop(output);
    std::fs::rename(&temporary, &path)
}

/// The newest checkpoint that can be trusted, and the number of the file that it ends with.
pub(crate) fn newest(segments: &Segments) -> io::Result<Option<(u64, Snapshot)>> {
    let numbers = segments.checkpoints()?;
    Ok(numbers.into_iter().rev().find_map(|number| Some((number, read(segments, number)?))))
}

fn read(segments: &Segments, number: u64) -> Option<Snapshot> {
    let file = File::open(segments.checkpoint(number)).ok()?;
    let read: Read = serde_json::from_reader(BufReader::new(file)).ok()?;
    // A full file that was removed to save space is as good as one that fits.
    let fits = std::fs::metadata(segments.full(number)).map_or(true, |file| file.len() == read.len_bytes);
    (read.fold == FOLD_VERSION && fits).then_some(read.snapshot)
}
