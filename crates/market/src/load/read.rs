//! One file to one table: opened, unpacked as often as it is packed, read by the format that its content shows, and named.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::column::Wanted;
use super::content::{Content, Kind};
use super::find::{self, Found};
use super::name::Naming;
use super::progress::{FileProgress, LoadProgress};
use super::stamp::BarStamp;
use super::table::Table;
use super::unpack::{Archive, Member, unpack};
use super::{arrow, csv, parquet};
use crate::clean::Source;
use crate::error::MarketError;

/// How often content may be packed: a member of an archive that is packed once more.
const MAX_LAYERS: usize = 2;
/// Bytes read from a pipe between two looks at the progress.
const PIPE_BYTES: u64 = 4 << 20;

/// What became of a file, or of a member of an archive.
pub(crate) struct Outcome {
    pub path: PathBuf,
    /// Whether a failure is the failure of something that was given by itself.
    pub is_given: bool,
    pub read: Result<(Source, &'static str), MarketError>,
}

/// How files are read and named.
pub(crate) struct Reader<'a> {
    pub zone: TimeZone,
    pub stamp: BarStamp,
    pub naming: &'a Naming,
    pub progress: &'a LoadProgress,
}

impl Reader<'_> {
    /// Reads a file, or every member of an archive that is taken for data.
    pub(crate) fn read(&self, found: &Found) -> Vec<Outcome> {
        let path = &found.path;
        let outcome = |read| vec![Outcome { path: path.clone(), is_given: found.is_given, read }];
        let io = |source| MarketError::io(path, source);
        let progress = self.progress.file(found.size);
        let opened = open(path, &progress).and_then(|content| Ok((content.kind().map_err(io)?, content)));
        match opened {
            Ok((Kind::Zip, content)) => {
                self.read_archive(&content, found, &progress).unwrap_or_else(|error| outcome(Err(error)))
            }
            Ok((_, content)) => outcome(self.read_one(content, path, found.symbol.as_deref(), &progress)),
            Err(error) => outcome(Err(error)),
        }
    }

    fn read_archive(
        &self,
        content: &Content,
        found: &Found,
        progress: &FileProgress,
    ) -> Result<Vec<Outcome>, MarketError> {
        let archive = Archive::open(content, &found.path)?;
        let members = archive.members()?;
        let read = |member: &Member| {
            let read = archive.read(member, progress).and_then(|content| {
                self.read_one(content, &member.path, found.symbol.as_deref(), &FileProgress::unseen())
            });
            Outcome { path: member.path.clone(), is_given: false, read }
        };
        let mut outcomes: Vec<Outcome> = members.par_iter().map(read).collect();
        // An archive of which nothing can be read has failed itself.
        if outcomes.iter().all(|outcome| outcome.read.is_err()) {
            outcomes.iter_mut().for_each(|outcome| outcome.is_given = found.is_given);
        }
        Ok(outcomes)
    }

    fn read_one(
        &self,
        content: Content,
        path: &Path,
        partition: Option<&str>,
        progress: &FileProgress,
    ) -> Result<(Source, &'static str), MarketError> {
        let (table, format) = read_table(content, path, &self.zone, Wanted::Bars, progress)?;
        check_stamp(path, &table, self.stamp)?;
        let file = path.display().to_string();
        let name = self
            .naming
            .of(&file, partition)
            .ok_or_else(|| MarketError::NameNotFound { path: path.to_path_buf() });
        // The name of a file whose rows have their own is never asked for.
        let name = if table.symbol_ids.is_some() { name.unwrap_or_default() } else { name? };
        Ok((Source { file, name, table }, format))
    }
}

/// Opens a file. Standard input, and whatever else can be read only once, is read at once.
pub(crate) fn open(path: &Path, progress: &FileProgress) -> Result<Content, MarketError> {
    let io = |source| MarketError::io(path, source);
    if path == Path::new(find::STDIN) {
        return read_once(std::io::stdin().lock(), progress).map_err(io);
    }
    let file = fs::File::open(path).map_err(io)?;
    match file.metadata().map_err(io)?.is_file() {
        true => Ok(Content::Disk(Arc::new(file))),
        false => read_once(file, progress).map_err(io),
    }
}

fn read_once(mut reader: impl Read, progress: &FileProgress) -> std::io::Result<Content> {
    let mut bytes = Vec::new();
    loop {
        let n_read = reader.by_ref().take(PIPE_BYTES).read_to_end(&mut bytes)? as u64;
        progress.advance(n_read);
        if n_read == 0 {
            return Ok(Content::Memory(bytes.into()));
        }
    }
}

/// Unpacks content as often as it is packed and reads what is in it.
pub(crate) fn read_table(
    mut content: Content,
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<(Table, &'static str), MarketError> {
    let io = |source| MarketError::io(path, source);
    let refuse =
        |problem: &str| Err(MarketError::Archive { path: path.to_path_buf(), problem: problem.to_string() });
    // What is in memory was counted as it came there.
    let unseen = FileProgress::unseen();
    for _ in 0..=MAX_LAYERS {
        let kind = content.kind().map_err(io)?;
        let progress = if matches!(content, Content::Disk(_)) { progress } else { &unseen };
        return match kind {
            Kind::Empty => Err(MarketError::Empty { path: path.to_path_buf() }),
            Kind::Parquet => Ok((parquet::read(&content, path, zone, wanted, progress)?, "parquet")),
            Kind::Arrow => {
                let bytes = content.bytes().map_err(io)?;
                Ok((arrow::read(&bytes, path, zone, wanted, progress)?, "arrow"))
            }
            Kind::Text => Ok((parse_text(content, path, zone, wanted, progress)?, "csv")),
            Kind::Zip => refuse("an archive inside something packed is not opened"),
            Kind::Gzip | Kind::Zstd | Kind::Xz => {
                content = Content::Memory(unpack(&content, kind, path, progress)?);
                continue;
            }
        };
    }
    refuse("it is packed more than twice")
}

/// Parses text. If the file calls itself Parquet, that it is none is what a person has to know first.
fn parse_text(
    content: Content,
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<Table, MarketError> {
    let is_called_parquet = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
    match csv::parse(content, path, zone, wanted, progress) {
        Ok(mut table) if is_called_parquet => {
            table.notes.push("the name says Parquet, the content is CSV and was read as such".to_string());
            Ok(table)
        }
        Err(MarketError::Columns { .. } | MarketError::Binary { .. }) if is_called_parquet => {
            let message = "the start mark is missing, and it is no CSV either".to_string();
            Err(MarketError::Parquet { path: path.to_path_buf(), message })
        }
        parsed => parsed,
    }
}

/// A file that calls its times opens is not read as one of ends: it would be a bar off without a sign of it.
pub(super) fn check_stamp(path: &Path, table: &Table, stamp: BarStamp) -> Result<(), MarketError> {
    if stamp == BarStamp::Close && table.stamp == Some(BarStamp::Open) {
        return Err(MarketError::StampClash { path: path.to_path_buf() });
    }
    Ok(())
}
