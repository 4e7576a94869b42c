//! `--picture`: the screen of a run as SVG, for documents.

use std::path::Path;

use anyhow::{Context, Result};
use tidemill_dash::terminal::{RunStatus, ScreenInput, Theme, View, picture};
use tidemill_telemetry::{Snapshot, Timestamp};

use super::pulse;
use crate::exit::ExitCode;

/// Reads `120x36`.
pub fn parse_size(text: &str) -> Result<(u16, u16), String> {
    let size =
        text.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    match size {
        Some((columns @ 1..=500, rows @ 1..=200)) => Ok((columns, rows)),
        _ => Err("expected columns and rows, such as 120x36".to_owned()),
    }
}

/// Draws the first page and writes it.
pub fn write(snapshot: &Snapshot, path: &Path, file: &Path, size: (u16, u16)) -> Result<ExitCode> {
    let now = snapshot.last.unwrap_or_else(Timestamp::now);
    let scene = ScreenInput {
        snapshot,
        view: &View::default(),
        status: RunStatus::of(snapshot, now, pulse::of(path)),
        now,
        theme: Theme::coloured(),
        pace: None,
        silence: "",
    };
    let picture = picture(&scene.drawn(size.0, size.1));
    std::fs::write(file, picture).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
