//! Taking packed content apart: gzip, Zstandard, xz, and the members of zip archives.
//!
//! Nothing is written to disk, and nothing packed is trusted: what it unpacks to is limited, absolutely, by the memory
//! that is left, and in proportion to what is packed.

use std::io::{Cursor, Read};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use zip::ZipArchive;

use super::content::{Content, Kind};
use super::foreign::WORKBOOK;
use super::name::has_data_name;
use super::progress::FileProgress;
use crate::error::MarketError;
use crate::memory;

/// Larger content is not unpacked; a few kilobytes can claim any size.
const MAX_BYTES: u64 = 8 << 30;
/// Text of bars packs to a fifth, seldom to a fiftieth; beyond this it was made to fill the memory.
const MAX_RATIO: u64 = 250;
/// Content up to this size may have any ratio: so small it does no harm.
const FREE_BYTES: u64 = 64 << 20;
/// Bytes unpacked between two looks at the limits.
const BLOCK_BYTES: u64 = 4 << 20;
/// What the unpackers of Zstandard and xz may keep to look back on.
const MAX_WINDOW_LOG: u32 = 27;
/// An archive with more members than this is no collection of bars.
const MAX_MEMBERS: usize = 200_000;

/// Unpacks one layer of gzip, Zstandard or xz.
pub(crate) fn unpack(
    content: &Content,
    kind: Kind,
    path: &Path,
    progress: &FileProgress,
) -> Result<Bytes, MarketError> {
    let io = |source| MarketError::io(path, source);
    let packed = content.size().map_err(io)?;
    let reader = Counted { reader: content.reader().map_err(io)?, progress };
    match kind {
        Kind::Zstd => {
            let mut unpacker =
                zstd::Decoder::new(reader).map_err(|error| broken("Zstandard", path, &error))?;
            unpacker.window_log_max(MAX_WINDOW_LOG).map_err(|error| broken("Zstandard", path, &error))?;
            read_limited(unpacker, packed, "Zstandard", path)
        }
        Kind::Xz => {
            let limit_kib = 1 << (MAX_WINDOW_LOG - 10 + 1);
            let unpacker = lzma_rust2::XzReader::new_mem_limit(reader, true, limit_kib);
            read_limited(unpacker, packed, "xz", path)
        }
        _ => read_limited(flate2::read::MultiGzDecoder::new(reader), packed, "gzip", path),
    }
}

/// A reader of packed bytes that tells how many are read.
struct Counted<'a, R> {
    reader: R,
    progress: &'a FileProgress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n_read = self.reader.read(buffer)?;
        self.progress.advance(n_read as u64);
        Ok(n_read)
    }
}

fn broken(format: &'static str, path: &Path, error: &dyn std::fmt::Display) -> MarketError {
    MarketError::Packed { path: path.to_path_buf(), format, message: error.to_string() }
}

/// Reads all there is, as long as it stays within the limits.
fn read_limited(
    mut reader: impl Read,
    packed: u64,
    format: &'static str,
    path: &Path,
) -> Result<Bytes, MarketError> {
    let most = MAX_BYTES.min(memory::available().map_or(u64::MAX, |left| left as u64 / 2));
    let mut bytes = Vec::new();
    loop {
        let n_read = reader.by_ref().take(BLOCK_BYTES).read_to_end(&mut bytes);
        let n_read = n_read.map_err(|error| broken(format, path, &error))?;
        if n_read == 0 {
            return Ok(bytes.into());
        }
        let unpacked = bytes.len() as u64;
        if unpacked > most {
            let what = format!("it unpacks to more than {} MiB, the limit here", most >> 20);
            return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
        }
        if unpacked > FREE_BYTES && unpacked / MAX_RATIO > packed {
            let what = format!(
                "its {packed} packed bytes unpack to more than {MAX_RATIO} times as much; that is no market data"
            );
            return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
        }
    }
}

/// An opened zip archive.
pub(crate) struct Archive {
    path: PathBuf,
    zip: ZipArchive<Cursor<Bytes>>,
}

/// A member of an archive that is taken for data.
pub(crate) struct Member {
    index: usize,
    /// The archive's path and the member's below it, for messages and names.
    pub path: PathBuf,
}

impl Archive {
    pub(crate) fn open(content: &Content, path: &Path) -> Result<Self, MarketError> {
        let bytes = content.bytes().map_err(|source| MarketError::io(path, source))?;
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken("zip", path, &error))?;
        Ok(Self { path: path.to_path_buf(), zip })
    }

    /// The members that are taken for data, ordered by name: those that a directory would be, and a single one whatever its
    /// name.
    pub(crate) fn members(&self) -> Result<Vec<Member>, MarketError> {
        let refuse = |problem: String| MarketError::Archive { path: self.path.clone(), problem };
        if self.zip.len() > MAX_MEMBERS {
            let problem = format!("it claims {} members, the limit is {MAX_MEMBERS}", self.zip.len());
            return Err(refuse(problem));
        }
        let mut members = Vec::new();
        let mut is_workbook = false;
        for (index, name) in self.zip.file_names().enumerate() {
            let name = name.map_err(|error| broken("zip", &self.path, &error))?;
            let inner = Path::new(&*name);
            let is_inside = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
            if name.contains(['\\', '\0']) || !inner.components().all(is_inside) {
                return Err(refuse(format!("the member {name:?} points outside the archive")));
            }
            is_workbook |= name == "xl/workbook.xml" || name == "mimetype";
            if !name.ends_with('/') && !name.starts_with("__MACOSX/") {
                members.push(Member { index, path: self.path.join(inner) });
            }
        }
        if members.len() > 1 {
            members.retain(|member| has_data_name(&member.path));
        }
        if members.is_empty() && is_workbook {
            let (path, (what, hint)) = (self.path.clone(), WORKBOOK);
            return Err(MarketError::Foreign { path, what, hint });
        }
        if members.is_empty() {
            return Err(refuse("no member of it is named like data".to_string()));
        }
        members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(members)
    }

    /// Unpacks a member.
    pub(crate) fn read(&self, member: &Member, progress: &FileProgress) -> Result<Content, MarketError> {
        let path = &member.path;
        // A clone shares the list of members and the bytes.
        let mut zip = self.zip.clone();
        let file = zip.by_index(member.index).map_err(|error| broken("zip", path, &error))?;
        let packed = file.compressed_size();
        let unpacked = read_limited(file, packed, "zip", path)?;
        progress.advance(packed);
        Ok(Content::Memory(unpacked))
    }
}
