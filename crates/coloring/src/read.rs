//! Reads graphs: DIMACS `.col` and plain lists of edges, both also compressed with gzip.
//!
//! The header is not trusted: the edges count, and a contradiction becomes a remark with both numbers. Loops are
//! refused, because no colouring is proper with one. Which number the first vertex has is decided by whether a 0 occurs.

mod line;

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::ColoringError;
use crate::instance::{Instance, MAX_VERTICES};
use line::{Counts, Line, Words};

/// The most bytes of a graph, uncompressed; a small compressed file may stand for a very large one.
const MAX_BYTES: u64 = 8 << 30;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Lines `p edge N M` and `e U V`.
    Dimacs,
    /// Two numbers a line.
    Edges,
}

/// Reads a graph from a file.
pub fn read_graph(path: &Path) -> Result<Instance, ColoringError> {
    let bytes = std::fs::read(path).map_err(ColoringError::read(path))?;
    match bytes.strip_prefix(&[0x1f, 0x8b]) {
        Some(_) => parse_graph(path, &unpacked(path, &bytes, MAX_BYTES)?),
        None => parse_graph(path, &bytes),
    }
}

/// What a gzip file holds, if that is less than `most` bytes.
fn unpacked(path: &Path, bytes: &[u8], most: u64) -> Result<Vec<u8>, ColoringError> {
    let refused = |problem: String, hint: &str| {
        Err(ColoringError::Content { path: path.into(), problem, hint: hint.into() })
    };
    let mut plain = Vec::new();
    match MultiGzDecoder::new(bytes).take(most).read_to_end(&mut plain) {
        Err(error) => {
            let problem = format!("not readable as gzip after {} bytes of text: {error}", plain.len());
            refused(problem, "the file is damaged or incomplete; fetch it or compress it again")
        }
        Ok(_) if plain.len() as u64 == most => refused(
            format!("it unpacks to {most} bytes or more"),
            "this is larger than any graph that can be coloured",
        ),
        Ok(_) => Ok(plain),
    }
}

/// Reads a graph from the bytes of a file; `path` is for its name and for messages.
pub fn parse_graph(path: &Path, bytes: &[u8]) -> Result<Instance, ColoringError> {
    let form = form_of(bytes);
    let mut found = Found { path, counts: None, edges: Vec::new(), has_weights: false };
    let line_end = line_end_of(bytes);
    for (at, bytes) in bytes.split(|byte| *byte == line_end).enumerate() {
        let words = Words::new(bytes);
        let line = match form {
            Form::Dimacs => line::dimacs(&words),
            Form::Edges => line::edge(&words),
        };
        let line = line.map_err(|(problem, hint)| found.error(at + 1, problem, hint))?;
        match line {
            Line::Nothing => {}
            Line::Counts(counts) => {
                if let Some((before, _)) = found.counts {
                    let problem = format!("a second header, after that of line {before}");
                    return Err(found.error(at + 1, problem, "one file holds one graph"));
                }
                found.counts = Some((at + 1, counts));
            }
            Line::Edge { from, to, is_weighted } => {
                if from == to {
                    let problem = format!("vertex {from} is joined to itself");
                    let hint = "no colouring is proper with a loop; remove the line";
                    return Err(found.error(at + 1, problem, hint));
                }
                let largest = from.max(to);
                if largest > MAX_VERTICES as u64 {
                    let problem = format!("vertex {largest}, but a graph has at most {MAX_VERTICES}");
                    return Err(found.error(at + 1, problem, "number the vertices from 1 without gaps"));
                }
                found.has_weights |= is_weighted;
                found.edges.push((from as u32, to as u32, at + 1));
            }
        }
    }
    found.instance(form)
}

/// What ends a line: a line feed, with or without a carriage return before it, or a carriage return alone.
fn line_end_of(bytes: &[u8]) -> u8 {
    if bytes.contains(&b'\n') { b'\n' } else { b'\r' }
}

/// DIMACS if the first line that is no comment has its letters.
fn form_of(bytes: &[u8]) -> Form {
    let line_end = line_end_of(bytes);
    let first = bytes.split(|byte| *byte == line_end).map(Words::new).find(|words| !words.is_comment());
    match first {
        Some(words) if words.first_is_number() => Form::Edges,
        _ => Form::Dimacs,
    }
}

/// What was read so far.
struct Found<'a> {
    path: &'a Path,
    /// The counts of the header and its line.
    counts: Option<(usize, Counts)>,
    /// Vertices as written, and the line.
    edges: Vec<(u32, u32, usize)>,
    has_weights: bool,
}

impl Found<'_> {
    fn error(&self, line: usize, problem: impl Into<String>, hint: impl Into<String>) -> ColoringError {
        ColoringError::Line { path: self.path.into(), line, problem: problem.into(), hint: hint.into() }
    }

    fn instance(self, form: Form) -> Result<Instance, ColoringError> {
        if self.edges.is_empty() && self.counts.is_none() {
            return Err(ColoringError::Content {
                path: self.path.into(),
                problem: "the file holds no graph".into(),
                hint: "expected DIMACS lines `p edge N M` and `e U V`, or two vertices per line".into(),
            });
        }
        let zero = self.edges.iter().find(|(a, b, _)| *a == 0 || *b == 0).map(|(_, _, line)| *line);
        let base = u32::from(zero.is_none());
        let largest = self.edges.iter().map(|(a, b, _)| *a.max(b)).max();
        let named = largest.map_or(0, |largest| (largest + 1 - base) as usize);
        let mut remarks = Vec::new();
        let mut n = named;
        if let Some((line, counts)) = self.counts {
            if counts.n > MAX_VERTICES as u64 {
                let problem = format!("{} vertices, but a graph has at most {MAX_VERTICES}", counts.n);
                return Err(self.error(line, problem, "colour its components one by one"));
            }
            if (counts.n as usize) < named {
                remarks.push(format!(
                    "the header says {} vertices, but the edges name {named}; there are {named}",
                    counts.n
                ));
            }
            n = n.max(counts.n as usize);
        } else if form == Form::Dimacs {
            remarks.push(format!("there is no header `p edge N M`; the edges name {named} vertices"));
        }
        if n > MAX_VERTICES {
            let line =
                self.edges.iter().find(|(a, b, _)| Some(*a.max(b)) == largest).map_or(0, |edge| edge.2);
            let problem = format!("{n} vertices, but a graph has at most {MAX_VERTICES}");
            return Err(self.error(line, problem, "number the vertices without gaps"));
        }
        match (zero, form) {
            (Some(line), _) => {
                remarks.push(format!("vertices are numbered from 0, because line {line} names one"))
            }
            (None, Form::Edges) => {
                remarks.push("vertices are numbered from 1, because no line names vertex 0".to_owned());
            }
            (None, Form::Dimacs) => {}
        }
        let n_lines = self.edges.len();
        let edges = self.edges.iter().map(|(a, b, _)| (a - base, b - base));
        let mut instance = Instance::new(name_of(self.path), n, edges);
        let n_edges = instance.edges().len();
        if let Some((_, counts)) = self.counts
            && counts.m != n_edges as u64
        {
            remarks.push(format!("the header says {} edges, the file has {n_edges}", counts.m));
        }
        if n_lines > n_edges {
            remarks.push(format!("{} of {n_lines} lines repeat an edge", n_lines - n_edges));
        }
        if self.has_weights {
            remarks.push("the third number of a line is not used".to_owned());
        }
        (instance.base, instance.remarks) = (base, remarks);
        Ok(instance)
    }
}

/// The name of a graph: that of its file without the endings.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let endings = [".col", ".txt", ".edges", ".edgelist", ".csv", ".tsv", ".el"];
    let ending = endings.iter().find(|ending| name.ends_with(*ending)).copied().unwrap_or_default();
    name[..name.len() - ending.len()].to_owned()
}

#[cfg(test)]
mod tests;
