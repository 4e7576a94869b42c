//! Views of a run: lines and a full screen in the terminal ([`terminal`]), an application in the browser ([`web`]).
//!
//! Both fold the same [`Snapshot`](tidemill_telemetry::Snapshot), live or from a folder. What the journal does not hold comes from a
//! source of plain data, which the application implements.

pub mod terminal;
pub mod web;
