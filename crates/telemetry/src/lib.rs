//! What a Tidemill run reports: [`Event`]s, and the [`Journal`] that keeps them as one JSON object per line.
//!
//! Recording never blocks the caller. Viewers read the file, live or afterwards, with [`read_journal`]:
//!
//! ```
//! use tidemill_telemetry::{DeviceMode, Event, Journal, read_journal};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("journal.jsonl");
//! let journal = Journal::create(&path).unwrap();
//! journal.record(Event::new("run-1", "kernel", "batch_42").lasting_ms(12.3).on(DeviceMode::Cpu).value("best", 1.93));
//! journal.close().unwrap();
//!
//! let events: Result<Vec<Event>, _> = read_journal(&path).unwrap().collect();
//! assert_eq!(events.unwrap()[0].step, "batch_42");
//! ```

mod checkpoint;
mod event;
mod fields;
mod follow;
pub mod hypertune;
mod journal;
mod json_number;
pub mod metrics;
pub mod number;
mod prometheus;
mod read;
mod segment;
mod snapshot;
mod timestamp;

pub use event::{DeviceMode, Event, VERSION};
pub use fields::Fields;
pub use follow::{Follower, Malformed, Polled};
pub use journal::{Journal, JournalError, JournalOptions, JournalSummary, Recorded};
pub use prometheus::{CONTENT_TYPE, prometheus};
pub use read::{AllEvents, JournalReader, ReadError, find, read_all, read_journal};
pub use smol_str::{SmolStr, format_smolstr};
pub use snapshot::{
    Action, Curve, Effect, KEPT, MAX_NAMES, Note, PhaseStats, RECENT_EVENTS, RECENT_SPANS, Reached, RunState,
    Series, Snapshot, Span, TOP, Top, WorkerStats,
};
pub use timestamp::Timestamp;
