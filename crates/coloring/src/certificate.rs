//! A colouring in a file, `.sol`: what it colours, and one colour a line, so that anybody can check it.
//!
//! ```text
//! tidemill-coloring 1
//! graph DSJC125.5
//! vertices 125
//! edges 3891
//! colors 17
//! sha256 4f…        of the edges: lines `u v`, vertices from 1, u < v, ascending
//! 0                 the colour of the first vertex
//! 11                that of the second, and so on
//! ```
//!
//! A file without the header, colours only, is read as well.

use std::io::Write;
use std::path::Path;

use crate::error::ColoringError;
use crate::instance::Instance;
use crate::verify::{Flaw, Verified, verify};

/// The first word of the first line.
const MAGIC: &str = "tidemill-coloring";

/// A colouring with the claims of its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Name of the graph, if the header has one.
    pub graph: Option<String>,
    /// Vertices of the graph, as the header claims.
    pub n: Option<usize>,
    /// Edges of the graph, as the header claims.
    pub m: Option<usize>,
    /// Colours in use, as the header claims.
    pub k: Option<usize>,
    /// SHA-256 of the graph's edges, if the header has one.
    pub sha256: Option<String>,
    /// The colour of each vertex.
    pub colors: Vec<u32>,
}

/// Why a certificate does not hold for a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refutation {
    /// It belongs to another graph.
    #[error("it belongs to another graph: {what} {said}, but this graph has {found}")]
    OtherGraph {
        /// The property that differs, such as `vertices`.
        what: &'static str,
        /// Its value in the certificate.
        said: String,
        /// Its value in the graph.
        found: String,
    },
    /// The colouring is not proper.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// It uses more or fewer colours than its header claims.
    #[error("the header claims {said} colours, but the colouring uses {found}")]
    Colors {
        /// Colours as the header claims.
        said: usize,
        /// Colours in use.
        found: usize,
    },
}

impl Certificate {
    /// For a colouring of a graph.
    pub fn new(instance: &Instance, k: usize, colors: Vec<u32>) -> Self {
        Self {
            graph: Some(instance.name.clone()),
            n: Some(instance.n),
            m: Some(instance.edges().len()),
            k: Some(k),
            sha256: Some(instance.sha256().to_owned()),
            colors,
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{MAGIC} 1\n");
        if let Some(graph) = &self.graph {
            text += &format!("graph {}\n", graph.replace(['\n', '\r'], " "));
        }
        let counts = [("vertices", self.n), ("edges", self.m), ("colors", self.k)];
        for (name, count) in counts {
            if let Some(count) = count {
                text += &format!("{name} {count}\n");
            }
        }
        if let Some(sha256) = &self.sha256 {
            text += &format!("sha256 {sha256}\n");
        }
        for color in &self.colors {
            text += &color.to_string();
            text.push('\n');
        }
        text
    }

    /// Writes the file: under another name first, so that a reader sees the old one or the new one.
    pub fn write(&self, path: &Path) -> Result<(), ColoringError> {
        replace(path, self.text().as_bytes())
    }

    /// Whether such a file could be written there; what is there stays as it is.
    pub fn check_place(path: &Path) -> Result<(), ColoringError> {
        let refused = |problem: &str, hint: &str| {
            Err(ColoringError::Content { path: path.into(), problem: problem.into(), hint: hint.into() })
        };
        if path.is_dir() {
            return refused("it is a folder", "give it another ending than .sol, or name a file in it");
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            let problem = format!("there is no folder {}", parent.display());
            return refused(&problem, "create it first, or write elsewhere");
        }
        let part = part_of(path);
        let tried = std::fs::File::create(&part).and_then(|_| std::fs::remove_file(&part));
        tried.map_err(ColoringError::write(path))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ColoringError> {
        let bytes = std::fs::read(path).map_err(ColoringError::read(path))?;
        Self::parse(path, &String::from_utf8_lossy(&bytes))
    }

    /// Reads the text of a file; `path` is for messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ColoringError> {
        let mut certificate = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            certificate.take(line).map_err(|(problem, hint)| ColoringError::Line {
                path: path.into(),
                line: at + 1,
                problem,
                hint: hint.into(),
            })?;
        }
        Ok(certificate)
    }

    fn take(&mut self, line: &str) -> Result<(), (String, &'static str)> {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let number = || {
            let hint = "expected a whole number that is not negative";
            value.trim().parse().map_err(|_| (format!("`{value}` is not a number of {name}"), hint))
        };
        match name {
            MAGIC if value.trim() == "1" => {}
            MAGIC => {
                return Err((format!("version `{value}` of the format"), "this program reads version 1"));
            }
            "graph" => self.graph = Some(value.to_owned()),
            "vertices" => self.n = Some(number()?),
            "edges" => self.m = Some(number()?),
            "colors" => self.k = Some(number()?),
            "sha256" => self.sha256 = Some(value.trim().to_ascii_lowercase()),
            _ => match line.parse() {
                Ok(color) => self.colors.push(color),
                Err(_) => {
                    let shown: String = line.chars().filter(|letter| !letter.is_control()).take(40).collect();
                    let hint =
                        "expected one colour per line, a whole number from 0; docs/color.md has the format";
                    return Err((format!("`{shown}` is not a colour"), hint));
                }
            },
        }
        Ok(())
    }

    /// Checks it against a graph: the same graph, a proper colouring, as many colours as the header claims.
    pub fn check(&self, instance: &Instance) -> Result<Verified, Refutation> {
        let differs = |what, said: Option<String>, found: String| match said {
            Some(said) if said != found => Err(Refutation::OtherGraph { what, said, found }),
            _ => Ok(()),
        };
        differs("vertices", self.n.map(|n| n.to_string()), instance.n.to_string())?;
        differs("edges", self.m.map(|m| m.to_string()), instance.edges().len().to_string())?;
        differs("sha256", self.sha256.clone(), instance.sha256().to_owned())?;
        let verified = verify(instance, &self.colors)?;
        match self.k {
            Some(said) if said != verified.k => Err(Refutation::Colors { said, found: verified.k }),
            _ => Ok(verified),
        }
    }
}

/// The name of a file while it is written.
fn part_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}

/// Writes a file under another name beside it and renames it, so that it is never half written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), ColoringError> {
    let part = part_of(path);
    let write = || {
        let mut file = std::fs::File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    };
    write().map_err(ColoringError::write(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Instance {
        Instance::new("path", 3, [(0, 1), (1, 2)])
    }

    #[test]
    fn a_certificate_is_read_as_it_was_written_and_holds() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("best.sol");
        let certificate = Certificate::new(&path(), 2, vec![0, 1, 0]);
        certificate.write(&file).unwrap();
        let read = Certificate::read(&file).unwrap();
        assert_eq!(read, certificate);
        assert_eq!(read.check(&path()).unwrap().k, 2);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "and nothing else is left");
    }

    #[test]
    fn colours_alone_are_enough() {
        let certificate = Certificate::parse(Path::new("x.sol"), "3\n\n9\n3\n").unwrap();
        assert_eq!(certificate.check(&path()).unwrap().k, 2);
    }

    #[test]
    fn what_does_not_hold_is_refuted() {
        let good = Certificate::new(&path(), 2, vec![0, 1, 0]);
        let refuted = |certificate: Certificate| certificate.check(&path()).unwrap_err().to_string();
        assert_eq!(
            refuted(Certificate { colors: vec![0, 0, 1], ..good.clone() }),
            "1 edge joins equal colours: 1 and 2 both have 0"
        );
        assert_eq!(
            refuted(Certificate { k: Some(3), ..good.clone() }),
            "the header claims 3 colours, but the colouring uses 2"
        );
        assert!(refuted(Certificate { sha256: Some("00".into()), ..good.clone() }).contains("another graph"));
        assert!(
            refuted(Certificate { n: Some(9), ..good })
                .starts_with("it belongs to another graph: vertices 9")
        );
    }

    #[test]
    fn a_line_that_is_no_colour_is_named() {
        let error =
            Certificate::parse(Path::new("x.sol"), "tidemill-coloring 1\n0\n-1\n").unwrap_err().to_string();
        assert!(error.starts_with("x.sol, line 3: `-1` is not a colour\n  hint: "), "{error}");
        let error = Certificate::parse(Path::new("x.sol"), "tidemill-coloring 2\n").unwrap_err().to_string();
        assert!(error.contains("version `2`"), "{error}");
    }
}
