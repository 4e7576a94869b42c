//! Whether a study feeds its workers: how long they had nothing to do, and which batch and lag would change that.

use std::time::{Duration, Instant};

use crate::event::{Feeding, Hunger};

/// Said of workers that had nothing to do for this share of the time.
const HUNGRY: f64 = 0.25;

/// Batches after which it can be said.
const LEAST_BATCHES: u32 = 8;

/// Trials that are to be there for each worker, as time: two of the shortest shards.
const SHARDS_EACH: u32 = 2;

const MOST_LAG: u64 = 64;

/// Time of workers, and of the coordinator, since the first of them was ready.
#[derive(Default)]
pub(super) struct Feed {
    began: Option<Instant>,
    /// When it was looked at last, with how many workers, and how many of them had nothing to do.
    last: Option<(Instant, usize, usize)>,
    present: Duration,
    idle: Duration,
    /// Since when the coordinator does something else: proposes, learns, stores.
    left: Option<Instant>,
    away: Duration,
    n_batches: u32,
    /// Batches that were there at a time, at most: one more than the lag.
    n_most: usize,
    is_said: bool,
}

/// What is known of the workers now.
pub(super) struct Appetite {
    pub(super) n_workers: usize,
    /// Rows a second, of all together.
    pub(super) rate: f64,
    pub(super) batch: usize,
    pub(super) least_shard: Duration,
}

impl Feed {
    /// So many workers are ready from now on, and so many of them have nothing to do.
    pub(super) fn look(&mut self, now: Instant, n_ready: usize, n_idle: usize) {
        if let Some((then, n_ready, n_idle)) = self.last.replace((now, n_ready, n_idle)) {
            let passed = now.saturating_duration_since(then);
            self.present += passed * n_ready as u32;
            self.idle += passed * n_idle as u32;
        }
        if n_ready > 0 {
            self.began.get_or_insert(now);
        }
    }

    /// The coordinator is here.
    pub(super) fn enter(&mut self, now: Instant, n_batches: usize) {
        let left = self.left.take().filter(|_| self.began.is_some());
        self.away += left.map_or(Duration::ZERO, |left| now.saturating_duration_since(left));
        self.n_most = self.n_most.max(n_batches);
    }

    /// The coordinator goes on with something else.
    pub(super) fn leave(&mut self, now: Instant) {
        self.left = Some(now);
    }

    /// A batch is over: what is to be said, once, of workers that have had too little for so long.
    pub(super) fn hunger(&mut self, now: Instant, after: Duration, appetite: &Appetite) -> Option<Hunger> {
        self.n_batches += u32::from(self.began.is_some());
        let is_time = self.began.is_some_and(|began| now.saturating_duration_since(began) >= after);
        let idle = self.idle.as_secs_f64() / self.present.as_secs_f64().max(1e-9);
        if self.is_said || !is_time || self.n_batches < LEAST_BATCHES || idle < HUNGRY {
            return None;
        }
        self.is_said = true;
        let ask = self.away / self.n_batches;
        let lag = self.n_most.saturating_sub(1) as u64;
        Some(Hunger { idle, n_workers: appetite.n_workers, feeding: feeding(ask, lag, appetite) })
    }
}

/// What would feed the workers of a study that asks for a batch in this time.
fn feeding(ask: Duration, lag: u64, appetite: &Appetite) -> Feeding {
    let Appetite { rate, batch, least_shard, .. } = *appetite;
    let evaluate = |batch: usize| batch as f64 / rate;
    // One of the shortest shards for each.
    let least = (rate * least_shard.as_secs_f64()).ceil().min(1e9) as usize;
    // A small batch takes hardly less time to propose than a large one, so that comes after.
    if batch >= least && ask.as_secs_f64() >= evaluate(batch) {
        let evaluate = Duration::try_from_secs_f64(evaluate(batch)).unwrap_or(Duration::MAX);
        return Feeding::Proposing { ask, evaluate };
    }
    let wanted_batch = if batch >= least { batch } else { least.next_power_of_two() };
    // What the workers do while a batch is asked for and the last shards of another one are on their way.
    let gap = ask.as_secs_f64() + (SHARDS_EACH * least_shard).as_secs_f64();
    let mut wanted_lag = ((gap / evaluate(wanted_batch)).ceil() as u64).clamp(2, MOST_LAG);
    if wanted_batch == batch {
        // That much it has, and it was too little.
        wanted_lag = wanted_lag.max((2 * lag).min(MOST_LAG));
    }
    let is_more = wanted_batch > batch || wanted_lag > lag;
    let batch = if is_more { wanted_batch } else { 2 * batch };
    Feeding::Larger { batch, lag: wanted_lag }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Workers that evaluate 1,000 rows a second each.
    fn appetite(n_workers: usize, batch: usize) -> Appetite {
        Appetite { n_workers, rate: 1e3 * n_workers as f64, batch, least_shard: ms(20) }
    }

    #[test]
    fn what_would_feed_them_has_shards_for_all_and_bridges_the_time_to_ask() {
        let larger = |batch, lag| Feeding::Larger { batch, lag };
        assert_eq!(feeding(ms(1), 0, &appetite(16, 64)), larger(512, 2), "20 rows for each");
        assert_eq!(feeding(ms(1), 0, &appetite(2, 256)), larger(256, 2), "128 ms a batch bridge 41 ms");
        assert_eq!(
            feeding(ms(30), 0, &appetite(8, 256)),
            larger(256, 3),
            "32 ms a batch do not bridge 70 ms"
        );
        assert_eq!(feeding(ms(1), 4, &appetite(2, 256)), larger(256, 8), "four were too few");
        assert_eq!(feeding(ms(1), 64, &appetite(2, 256)), larger(512, 64), "no lag is longer");
        assert_eq!(feeding(ms(50), 0, &appetite(4, 16)), larger(128, 3), "proposing more takes no longer");
        let proposing = Feeding::Proposing { ask: ms(50), evaluate: ms(25) };
        assert_eq!(feeding(ms(50), 2, &appetite(4, 100)), proposing);
    }

    #[test]
    fn it_is_said_once_and_only_of_workers_that_wait() {
        let start = Instant::now();
        for (n_idle, is_said) in [(3, true), (0, false)] {
            let mut feed = Feed::default();
            for at in 0..20 {
                let now = start + ms(100 * at);
                feed.enter(now, 1);
                feed.look(now, 4, n_idle);
                let hunger = feed.hunger(now, ms(1_000), &appetite(4, 100));
                assert_eq!(hunger.is_some(), is_said && at == 10, "{at}");
                if let Some(hunger) = hunger {
                    assert_eq!((hunger.idle, hunger.n_workers), (0.75, 4));
                    assert!(hunger.to_string().contains("75 %"), "{hunger}");
                }
                feed.leave(now);
            }
        }
    }
}
