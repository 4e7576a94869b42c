//! Follows journals, each once for any number of viewers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidemill_telemetry::Follower;

use super::source::{RunSource, SourceError};
use super::view::{Sections, sections};

/// Shortest time between two polls of a journal.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// Most journals to follow at a time; beyond it, the least recently requested one is dropped.
const MAX_FOLLOWED: usize = 32;

/// The sections of a run at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct RunSections {
    pub(super) sections: Arc<Sections>,
    /// Whether nothing more is to be expected soon.
    pub(super) is_over: bool,
}

/// All journals that are followed.
#[derive(Default)]
pub(super) struct LiveJournals {
    followed: Mutex<HashMap<PathBuf, FollowedJournal>>,
}

struct FollowedJournal {
    asked: Instant,
    journal: Arc<Mutex<Journal>>,
}

struct Journal {
    follower: Follower,
    looked: Option<(Instant, RunSections)>,
}

impl LiveJournals {
    /// The sections of a run now. May take a while the first time.
    pub(super) fn look(&self, dir: &Path, source: &dyn RunSource) -> Result<RunSections, SourceError> {
        let journal = self.journal(dir);
        let mut journal = lock(&journal);
        if let Some((at, look)) = &journal.looked
            && at.elapsed() < LOOK_EVERY
        {
            return Ok(look.clone());
        }
        // Checked first, so that the last events of a run that ends just now are not missed.
        let pulse = source.pulse(dir);
        let polled = journal.follower.poll(|_| ());
        polled.map_err(|error| SourceError::Failed { message: error.to_string() })?;
        let snapshot = journal.follower.snapshot();
        if snapshot.last.is_none() {
            return Err(SourceError::Missing { what: "its journal has no events yet".into() });
        }
        let now = tidemill_telemetry::Timestamp::now();
        let look = RunSections {
            sections: Arc::new(sections(snapshot, pulse, source.has_trials(dir))),
            is_over: crate::terminal::RunStatus::of(snapshot, now, pulse).is_over(),
        };
        journal.looked = Some((Instant::now(), look.clone()));
        Ok(look)
    }

    fn journal(&self, dir: &Path) -> Arc<Mutex<Journal>> {
        let mut followed = lock(&self.followed);
        if !followed.contains_key(dir) && followed.len() >= MAX_FOLLOWED {
            let oldest = followed.iter().min_by_key(|(_, one)| one.asked).map(|(dir, _)| dir.clone());
            oldest.map(|oldest| followed.remove(&oldest));
        }
        let one = followed.entry(dir.to_owned()).or_insert_with(|| {
            let journal = Journal { follower: Follower::open(dir), looked: None };
            FollowedJournal { asked: Instant::now(), journal: Arc::new(Mutex::new(journal)) }
        });
        one.asked = Instant::now();
        one.journal.clone()
    }
}

/// Ignores the poison of a panicked thread, which leaves no inconsistent state here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
