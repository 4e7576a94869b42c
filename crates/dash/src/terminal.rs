//! A run in the terminal: one [`line()`] per event, a [`summary`], and a full [`screen`].
//!
//! All that is shown is a pure function of a [`Snapshot`](tidemill_telemetry::Snapshot), of a [`View`] of it and of the time, so that it can be
//! tested as text. Nothing here knows a workload: the snapshot names what is counted, what is to be improved and all other numbers.

mod draw;
mod key;
mod line;
mod number;
mod panel;
mod phase;
mod picture;
mod replay;
pub mod screen;
mod status;
mod summary;
mod table;
mod text_table;
mod theme;
mod view;

pub use draw::{ScreenInput, draw};
pub use key::KeyAction;
pub use line::{coloured_line, line};
pub use phase::{UnknownPhase, check_phases};
pub use picture::picture;
pub use replay::{Replay, ReplaySpeed};
pub use status::{PATIENCE_S, ProcessState, RunStatus, moment};
pub(crate) use summary::at_most_all;
pub use summary::{Summary, summary};
pub use text_table::{Screen, TextColumn, TextTable, UnknownColumn, wrapped};
pub use theme::Theme;
pub use view::{Page, View};
