//! The status of a run: its last event, its age, and whether a process still holds the lock of its folder.

use tidemill_telemetry::{RunState, Snapshot, Timestamp};

use super::number;

/// Seconds without an event after which a run that has not ended counts as silent. A live run writes one every few seconds.
pub const PATIENCE_S: f64 = 30.0;

/// Whether the process of a run lives, from the lock on its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// Whether the process lives is not known.
    #[default]
    Unknown,
    /// There is a process.
    Alive,
    /// There is none.
    Dead,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It has no events yet.
    Waiting,
    /// It writes events.
    Live,
    /// It has not ended, and its last event is older than [`PATIENCE_S`].
    Silent,
    /// It has not ended, and its process is gone.
    Killed,
    /// All is done.
    Complete,
    /// The user stopped it.
    Stopped,
    /// It ended with an error.
    Failed,
}

impl RunStatus {
    /// State of a run at this time.
    pub fn of(snapshot: &Snapshot, now: Timestamp, process: ProcessState) -> Self {
        match (snapshot.state, process) {
            (RunState::Complete, _) => Self::Complete,
            (RunState::Stopped, _) => Self::Stopped,
            (RunState::Failed, _) => Self::Failed,
            (RunState::Running, ProcessState::Alive) => Self::Live,
            (RunState::Running, _) if snapshot.last.is_none() => Self::Waiting,
            (RunState::Running, ProcessState::Dead) => Self::Killed,
            (RunState::Running, ProcessState::Unknown) if snapshot.is_live(now, PATIENCE_S) => Self::Live,
            (RunState::Running, ProcessState::Unknown) => Self::Silent,
        }
    }

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Live => "running",
            Self::Silent => "silent",
            Self::Killed => "killed",
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }

    /// A few words, with the outcome of the run or how long it has been silent.
    pub fn sentence(self, snapshot: &Snapshot, now: Timestamp) -> String {
        let since = || match snapshot.last {
            Some(last) => {
                let age_s = (now.as_ms() - last.as_ms()) as f64 / 1e3;
                format!("{} ({} ago)", moment(last), number::seconds(age_s))
            }
            None => "its start".to_owned(),
        };
        match self {
            Self::Silent => format!("killed or silent since {}", since()),
            Self::Killed => format!("killed; last event {}", since()),
            _ => match &snapshot.outcome {
                Some(outcome) => format!("{}: {}", self.word(), number::clean(outcome)),
                None => self.word().to_owned(),
            },
        }
    }

    /// Whether nothing more will come.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Live)
    }

    /// Whether it ended as it should: complete, or stopped by the user.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Complete | Self::Stopped)
    }
}

/// A time for people: `2026-01-06 12:34:56 UTC`.
pub fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    let whole = text.split('.').next().unwrap_or(&text);
    format!("{} UTC", whole.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use tidemill_telemetry::Event;

    use super::*;

    #[test]
    fn silence_is_told_from_death_by_the_pulse() {
        let mut snapshot = Snapshot::default();
        let at = |ms: i64| Timestamp::from_ms(1_767_702_896_123 + ms);
        assert_eq!(RunStatus::of(&snapshot, at(0), ProcessState::Unknown), RunStatus::Waiting);
        let mut event = Event::new("r", "run", "start");
        event.timestamp = at(0);
        snapshot.apply(&event);
        assert_eq!(RunStatus::of(&snapshot, at(29_999), ProcessState::Unknown), RunStatus::Live);
        let silent = RunStatus::of(&snapshot, at(192_000), ProcessState::Unknown);
        assert_eq!(silent, RunStatus::Silent);
        let text = "killed or silent since 2026-01-06 12:34:56 UTC (3m12s ago)";
        assert_eq!(silent.sentence(&snapshot, at(192_000)), text);
        assert_eq!(RunStatus::of(&snapshot, at(192_000), ProcessState::Alive), RunStatus::Live);
        assert_eq!(RunStatus::of(&snapshot, at(1), ProcessState::Dead), RunStatus::Killed);
        assert!(silent.is_over() && !silent.is_good());
    }

    #[test]
    fn an_outcome_is_quoted() {
        let mut snapshot = Snapshot::default();
        snapshot.apply(&Event::new("r", "run", "start"));
        snapshot.apply(&Event::new("r", "run", "end").parameter("outcome", "failed").note("disk full"));
        let status = RunStatus::of(&snapshot, Timestamp::now(), ProcessState::Dead);
        assert_eq!(status.sentence(&snapshot, Timestamp::now()), "failed: disk full");
    }
}
