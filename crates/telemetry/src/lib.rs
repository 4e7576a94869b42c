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

mod event;
mod fields;
mod journal;
mod read;

pub use event::{DeviceMode, Event, Timestamp, VERSION};
pub use fields::Fields;
pub use journal::{CHANNEL_EVENTS, Journal, JournalError, Recorded, Summary};
pub use read::{JournalReader, ReadError, read_journal};
