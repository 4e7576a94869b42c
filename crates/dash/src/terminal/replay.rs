//! Replays a run from its start.
//!
//! Events are read anew and folded as they come due, so that a replay needs no more memory than the run itself took to watch.

use std::iter::Peekable;
use std::time::Duration;

use tidemill_telemetry::{Event, Snapshot, Timestamp};

/// Speeds that can be chosen.
const SPEEDS: [f64; 16] =
    [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0];

/// Seconds that a replay takes at the speed it starts with.
const WANTED_S: f64 = 30.0;

/// Events that are folded at a time at most, so that keys are handled in between.
const MOST_EVENTS: usize = 20_000;

/// State of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySpeed {
    /// Seconds of the run per second.
    pub speed: f64,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether it has reached the end.
    pub is_over: bool,
}

impl ReplaySpeed {
    /// A few characters: `20×`.
    pub fn text(self) -> String {
        match self {
            Self { is_over: true, .. } => "at its end".to_owned(),
            Self { is_paused: true, speed, .. } => format!("{speed}× paused"),
            Self { speed, .. } => format!("{speed}×"),
        }
    }
}

/// A replay of these events.
#[derive(Debug)]
pub struct Replay<I: Iterator<Item = Event>> {
    events: Peekable<I>,
    snapshot: Snapshot,
    /// The time of the run that is reached, in milliseconds since 1970.
    clock_ms: f64,
    speed_idx: usize,
}

impl<I: Iterator<Item = Event>> Replay<I> {
    /// A replay of a run of this length, at a speed that shows all of it in about half a minute.
    pub fn new(events: I, length_s: f64) -> Self {
        let mut events = events.peekable();
        let clock_ms = events.peek().map_or(0.0, |event| event.timestamp.as_ms() as f64);
        let real = SPEEDS.iter().position(|speed| *speed >= 1.0).unwrap_or(0);
        let fast = SPEEDS.iter().position(|speed| length_s / speed <= WANTED_S).unwrap_or(SPEEDS.len() - 1);
        Self { events, snapshot: Snapshot::default(), clock_ms, speed_idx: fast.max(real) }
    }

    /// Advances by this much time of the viewer. Returns whether anything happened in the run.
    pub fn advance(&mut self, elapsed: Duration) -> bool {
        let Some(next) = self.events.peek() else { return false };
        // Nothing can be seen between a kill and the resumption.
        let next_ms = next.timestamp.as_ms() as f64;
        let is_resumption = next.phase == "run" && next.step != "end";
        self.clock_ms += elapsed.as_secs_f64() * 1e3 * self.speed();
        if is_resumption {
            self.clock_ms = self.clock_ms.max(next_ms);
        }
        for n_folded in 0..MOST_EVENTS {
            match self.events.next_if(|event| event.timestamp.as_ms() as f64 <= self.clock_ms) {
                Some(event) => self.snapshot.apply(&event),
                None => {
                    // Time stops at the last event.
                    if self.events.peek().is_none() {
                        self.clock_ms = self.snapshot.last.map_or(self.clock_ms, |last| last.as_ms() as f64);
                    }
                    return n_folded > 0;
                }
            }
        }
        // There is more than could be folded: the clock waits for it.
        self.clock_ms = self.snapshot.last.map_or(self.clock_ms, |last| last.as_ms() as f64);
        true
    }

    /// The fold of what was replayed.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The time of the run that is reached.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.clock_ms as i64)
    }

    /// Its state.
    pub fn pace(&mut self, is_paused: bool) -> ReplaySpeed {
        ReplaySpeed { speed: self.speed(), is_paused, is_over: self.events.peek().is_none() }
    }

    /// The next higher speed.
    pub fn faster(&mut self) {
        self.speed_idx = (self.speed_idx + 1).min(SPEEDS.len() - 1);
    }

    /// The next lower speed.
    pub fn slower(&mut self) {
        self.speed_idx = self.speed_idx.saturating_sub(1);
    }

    fn speed(&self) -> f64 {
        SPEEDS[self.speed_idx]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64, phase: &str, step: &str) -> Event {
        let mut event = Event::new("r", phase, step);
        event.timestamp = Timestamp::from_ms(1_700_000_000_000 + ms);
        event
    }

    #[test]
    fn events_come_when_they_are_due() {
        let events = (0..10).map(|idx| at(1000 * idx, "kernel", "batch"));
        let mut replay = Replay::new(events, 9.0);
        assert_eq!(replay.pace(false).speed, 1.0, "a short run is shown as fast as it was");
        assert!(replay.advance(Duration::from_millis(2500)));
        assert_eq!(replay.snapshot().n_events, 3);
        assert!(!replay.advance(Duration::from_millis(100)));
        replay.faster();
        assert!(replay.advance(Duration::from_secs(60)));
        let pace = replay.pace(false);
        assert_eq!((replay.snapshot().n_events, pace.is_over), (10, true));
        assert_eq!(replay.now(), Timestamp::from_ms(1_700_000_009_000));
    }

    #[test]
    fn a_long_run_is_shown_in_half_a_minute() {
        let mut replay = Replay::new(std::iter::empty(), 3600.0);
        assert_eq!(replay.pace(false).speed, 200.0);
        replay.slower();
        assert_eq!(replay.pace(true).speed, 100.0);
    }

    #[test]
    fn the_time_between_a_kill_and_the_resumption_is_skipped() {
        let events = [at(0, "run", "start"), at(10, "kernel", "b"), at(86_400_000, "run", "resume")];
        let mut replay = Replay::new(events.into_iter(), 1.0);
        replay.advance(Duration::from_millis(20));
        assert_eq!(replay.snapshot().n_events, 2);
        replay.advance(Duration::from_millis(20));
        assert_eq!(replay.snapshot().n_resumes, 1);
    }

    #[test]
    fn a_flood_of_events_is_taken_in_parts() {
        let n = MOST_EVENTS as u64 + 5;
        let mut replay = Replay::new((0..n).map(|_| at(0, "kernel", "b")), 1.0);
        replay.advance(Duration::from_millis(1));
        assert_eq!(replay.snapshot().n_events, MOST_EVENTS as u64);
        replay.advance(Duration::from_millis(1));
        assert_eq!(replay.snapshot().n_events, n);
    }
}
