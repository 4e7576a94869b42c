//! The text of a file in blocks of whole lines, so that they can be parsed side by side and a large file is never in memory
//! at once.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;

use super::content::Content;
use super::foreign;
use super::line::{Line, lines, lines_from};
use crate::error::MarketError;

/// Bytes of a block, up to the end of a line.
const BLOCK_BYTES: usize = 1 << 20;
/// A longer line is no row of a table.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Bytes looked at to tell text from binary content.
const BINARY_SAMPLE_BYTES: usize = 8_192;

/// Some lines of a text.
pub(crate) struct Block {
    pub bytes: Bytes,
    /// The number of the first one, from 1.
    first_line: u32,
    /// How many there are, empty ones too.
    pub n_lines: usize,
}

impl Block {
    /// The lines that hold anything but white space.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        lines_from(&self.bytes, self.first_line)
    }
}

/// A text that is read from its start as often as needed.
pub(crate) struct Text<'a> {
    content: Content,
    path: &'a Path,
    /// Bytes before the text, of the byte order mark.
    n_mark: usize,
    n_bytes: u64,
    block_bytes: usize,
    /// The first block.
    head: Bytes,
}

impl<'a> Text<'a> {
    /// The text of a file. UTF-16 becomes UTF-8, and a byte order mark is left out.
    pub(crate) fn open(content: Content, path: &'a Path) -> Result<Self, MarketError> {
        Self::in_blocks(content, path, BLOCK_BYTES)
    }

    fn in_blocks(content: Content, path: &'a Path, block_bytes: usize) -> Result<Self, MarketError> {
        let io = |source| MarketError::io(path, source);
        let mark = content.piece(0, 3).map_err(io)?;
        let (content, n_mark) = match mark[..] {
            [0xef, 0xbb, 0xbf] => (content, 3),
            [0xff, 0xfe, ..] => (utf16(&content.bytes().map_err(io)?, u16::from_le_bytes), 0),
            [0xfe, 0xff, ..] => (utf16(&content.bytes().map_err(io)?, u16::from_be_bytes), 0),
            _ => (content, 0),
        };
        let n_bytes = content.size().map_err(io)?.saturating_sub(n_mark as u64);
        let mut text = Self { content, path, n_mark, n_bytes, block_bytes, head: Bytes::new() };
        // Before lines are looked for: binary content may have none.
        let start = text.content.piece(n_mark as u64, BINARY_SAMPLE_BYTES as u64).map_err(io)?;
        foreign::refuse(&start, path)?;
        if looks_binary(&start) {
            return Err(MarketError::Binary { path: path.to_path_buf() });
        }
        let head = text.blocks()?.next().transpose()?;
        text.head = head.map(|block| block.bytes).unwrap_or_default();
        Ok(text)
    }

    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// The first lines, all of them if there are not many.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// All blocks in order. A file on disk has one reader at a time.
    pub(crate) fn blocks(&self) -> Result<Blocks<'_>, MarketError> {
        let mut reader = self.content.reader().map_err(|source| MarketError::io(self.path, source))?;
        let mut mark = vec![0; self.n_mark];
        reader.read_exact(&mut mark).map_err(|source| MarketError::io(self.path, source))?;
        Ok(Blocks {
            text: self,
            reader,
            rest: Vec::new(),
            line: 1,
            offset: self.n_mark as u64,
            is_over: false,
        })
    }

    /// Looks at one line after the other until one is the answer.
    pub(crate) fn find<T>(
        &self,
        mut look: impl FnMut(Line<'_>) -> ControlFlow<T>,
    ) -> Result<Option<T>, MarketError> {
        // What is looked for stands in the first block as a rule.
        let mut found = lines(&self.head).try_for_each(&mut look);
        if found.is_continue() && (self.head.len() as u64) < self.n_bytes {
            for block in self.blocks()?.skip(1) {
                found = block?.lines().try_for_each(&mut look);
                if found.is_break() {
                    break;
                }
            }
        }
        Ok(found.break_value())
    }
}

/// The blocks of a text, one after the other.
pub(crate) struct Blocks<'a> {
    text: &'a Text<'a>,
    reader: Box<dyn Read + Send + 'a>,
    /// The start of a line whose end is not read yet.
    rest: Vec<u8>,
    line: u32,
    offset: u64,
    is_over: bool,
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block, MarketError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = match &self.text.content {
            Content::Memory(all) => Ok(self.slice(all)),
            Content::Disk(_) => self.read(),
        };
        match bytes {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                let n_ends = memchr::memchr_iter(b'\n', &bytes).count();
                let block = Block { bytes, first_line: self.line, n_lines: n_ends + 1 };
                self.line = self.line.saturating_add(u32::try_from(n_ends).unwrap_or(u32::MAX));
                Some(Ok(block))
            }
            Err(error) => {
                self.is_over = true;
                Some(Err(error))
            }
        }
    }
}

impl Blocks<'_> {
    /// The next whole lines of what is in memory, without a copy.
    fn slice(&mut self, all: &Bytes) -> Bytes {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX).min(all.len());
        let least = start.saturating_add(self.text.block_bytes).min(all.len());
        let end = memchr::memchr(b'\n', &all[least..]).map_or(all.len(), |end| least + end + 1);
        self.offset = end as u64;
        all.slice(start..end)
    }

    /// The next whole lines of a file.
    fn read(&mut self) -> Result<Bytes, MarketError> {
        let path = self.text.path;
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.reserve_exact((self.text.block_bytes).saturating_sub(bytes.len()));
        while !self.is_over {
            let more = self.text.block_bytes.saturating_sub(bytes.len()).max(self.text.block_bytes / 4 + 1);
            let n_read = self.reader.by_ref().take(more as u64).read_to_end(&mut bytes);
            self.is_over = n_read.map_err(|source| MarketError::io(path, source))? == 0;
            if bytes.len() >= self.text.block_bytes
                && let Some(end) = memchr::memrchr(b'\n', &bytes)
            {
                self.rest = bytes[end + 1..].to_vec();
                bytes.truncate(end + 1);
                break;
            }
            if bytes.len() > MAX_LINE_BYTES {
                let what = format!("line {} is longer than {} MiB", self.line, MAX_LINE_BYTES >> 20);
                return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
            }
        }
        Ok(bytes.into())
    }
}

fn utf16(raw: &[u8], unit: fn([u8; 2]) -> u16) -> Content {
    let units = raw[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Content::Memory(text.into_bytes().into())
}

/// Whether the start of a file is no text: a NUL, many control characters, or mostly bytes that are no UTF-8. A few
/// bytes of another encoding do no harm, since all that is needed is ASCII.
fn looks_binary(head: &[u8]) -> bool {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let n_controls = head.iter().filter(is_control).count();
    let head_text = String::from_utf8_lossy(head);
    let n_broken = head_text.chars().filter(|&each| each == char::REPLACEMENT_CHARACTER).count();
    head.contains(&0) || n_controls * 50 > head.len() || n_broken * 10 > head.len() * 3
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// All lines by blocks of this size, from memory and from disk.
    fn lines_in_blocks(bytes: &[u8], block_bytes: usize) -> [Vec<(u32, Vec<u8>)>; 2] {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        [Content::Memory(Bytes::copy_from_slice(bytes)), Content::Disk(Arc::new(file))].map(|content| {
            let text = Text::in_blocks(content, Path::new("a.csv"), block_bytes).unwrap();
            let owned = |(number, line): Line<'_>| (number, line.to_vec());
            let mut all = Vec::new();
            for block in text.blocks().unwrap() {
                all.extend(block.unwrap().lines().map(owned));
            }
            let mut found = Vec::new();
            let nothing = text.find(|line| {
                found.push(owned(line));
                ControlFlow::<()>::Continue(())
            });
            assert!(nothing.unwrap().is_none());
            assert_eq!(found, all);
            all
        })
    }

    #[test]
    fn lines_are_the_same_however_a_text_is_cut() {
        for text in
            ["a,b\n1,2\r\n\n  \n3,4\n", "a", "a\n", "\n\n", "", "one line that is longer than its block\nb"]
        {
            let whole: Vec<(u32, Vec<u8>)> =
                lines_from(text.as_bytes(), 1).map(|(number, line)| (number, line.to_vec())).collect();
            for mark in ["", "\u{feff}"] {
                for block_bytes in [1, 2, 3, 5, 8, 1_000] {
                    let marked = format!("{mark}{text}");
                    for lines in lines_in_blocks(marked.as_bytes(), block_bytes) {
                        assert_eq!(lines, whole, "{text:?} in blocks of {block_bytes}");
                    }
                }
            }
        }
    }

    #[test]
    fn utf16_of_either_order_is_text() {
        let units: Vec<u16> = "\u{feff}a,é\n1,2\n".encode_utf16().collect();
        let [little, big] = [u16::to_le_bytes, u16::to_be_bytes]
            .map(|bytes| units.iter().flat_map(|unit| bytes(*unit)).collect::<Vec<u8>>());
        for raw in [little, big] {
            let text = Text::open(Content::Memory(raw.into()), Path::new("a.csv")).unwrap();
            assert_eq!(text.head(), "a,é\n1,2\n".as_bytes());
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut file = tempfile::tempfile().unwrap();
        for _ in 0..65 {
            std::io::Write::write_all(&mut file, &vec![b'1'; 1 << 20]).unwrap();
        }
        let opened = Text::open(Content::Disk(Arc::new(file)), Path::new("a.csv"));
        let error = opened.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("line 1 is longer than 64 MiB"), "{error}");
    }
}
