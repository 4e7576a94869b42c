//! Views of a run: lines and a full screen in the terminal ([`terminal`]), an application in the browser ([`web`]).
//!
//! Both fold the same [`Snapshot`](tidemill_telemetry::Snapshot), live or from a folder. What they show beyond the journal they ask of a
//! source over plain data, which the application implements.

pub mod terminal;
pub mod web;
