//! The workers of a study: which are ready, how fast they are, how much each has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::FleetOptions;
use super::shard::SentShard;
use crate::transport::WorkerId;

/// Rows of a shard, at least: below that a worker does nothing but talk.
const LEAST_ROWS: f64 = 16.0;

/// How far a worker has come.
pub(super) enum Stage {
    /// It was sent the study.
    Greeting { since: Instant },
    /// It takes shards.
    Ready,
}

/// One worker.
pub(super) struct CrewMember {
    pub(super) name: String,
    pub(super) stage: Stage,
    /// Its number in journals, once it has been ready.
    pub(super) lane: Option<usize>,
    pub(super) n_in_flight: usize,
    pub(super) n_failures: u32,
    /// Whether it draws points itself.
    pub(super) draws: bool,
    /// Rows a second, over the last shards.
    rate: f64,
    heard: Instant,
}

impl CrewMember {
    pub(super) fn new(name: String) -> Self {
        let now = Instant::now();
        Self {
            name,
            stage: Stage::Greeting { since: now },
            lane: None,
            n_in_flight: 0,
            n_failures: 0,
            draws: true,
            rate: 1.0,
            heard: now,
        }
    }

    /// It has evaluated its probes and takes shards.
    pub(super) fn is_welcome(&mut self, n_rows: usize, took: Duration) {
        self.stage = Stage::Ready;
        self.rate = rate(n_rows, took);
        self.heard = Instant::now();
    }

    /// It has answered a shard.
    pub(super) fn answered(&mut self, n_rows: usize, took: Duration) {
        self.n_in_flight = self.n_in_flight.saturating_sub(1);
        self.n_failures = 0;
        self.heard = Instant::now();
        self.rate = (self.rate + rate(n_rows, took)) / 2.0;
    }

    /// How long it should take for so many rows.
    pub(super) fn time_for(&self, n_rows: usize) -> Duration {
        Duration::try_from_secs_f64(n_rows as f64 / self.rate).unwrap_or(Duration::MAX)
    }

    /// How many rows its next shard has: half of its share of what is left, so that all end together, within the times that a shard may take.
    pub(super) fn shard_rows(
        &self,
        n_unassigned: usize,
        total_rate: f64,
        [least, most]: [Duration; 2],
    ) -> usize {
        let share = n_unassigned as f64 * self.rate / total_rate.max(self.rate) / 2.0;
        let least = (self.rate * least.as_secs_f64()).max(LEAST_ROWS);
        let most = (self.rate * most.as_secs_f64()).max(least);
        share.clamp(least, most).ceil() as usize
    }

    fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready)
    }
}

fn rate(n_rows: usize, took: Duration) -> f64 {
    n_rows as f64 / took.as_secs_f64().max(1e-6)
}

/// All workers that were greeted.
#[derive(Default)]
pub(super) struct Crew {
    members: BTreeMap<WorkerId, CrewMember>,
    /// Those that can take nothing of what is there now.
    passed: BTreeSet<WorkerId>,
}

impl Crew {
    pub(super) fn insert(&mut self, worker: WorkerId, member: CrewMember) {
        self.members.insert(worker, member);
    }

    pub(super) fn remove(&mut self, worker: WorkerId) -> Option<CrewMember> {
        self.members.remove(&worker)
    }

    pub(super) fn get(&self, worker: WorkerId) -> Option<&CrewMember> {
        self.members.get(&worker)
    }

    pub(super) fn get_mut(&mut self, worker: WorkerId) -> Option<&mut CrewMember> {
        self.members.get_mut(&worker)
    }

    pub(super) fn name(&self, worker: WorkerId) -> String {
        self.get(worker).map_or_else(|| format!("worker {worker}"), |member| member.name.clone())
    }

    /// The first lane that nobody has. One that is lost leaves its lane to the next, so that a picture of them stays small.
    pub(super) fn next_lane(&self) -> usize {
        let is_free = |lane: &usize| !self.members.values().any(|member| member.lane == Some(*lane));
        (0..).find(is_free).unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn n_present(&self) -> usize {
        self.members.len()
    }

    pub(super) fn n_ready(&self) -> usize {
        self.ready().count()
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready().next().is_some()
    }

    pub(super) fn total_rate(&self) -> f64 {
        self.ready().map(|(_, member)| member.rate).sum()
    }

    /// The worker with the least to do that can take more.
    pub(super) fn next_free(&self, most: usize) -> Option<WorkerId> {
        let free = self
            .ready()
            .filter(|(worker, member)| member.n_in_flight < most && !self.passed.contains(worker));
        free.min_by_key(|(_, member)| member.n_in_flight).map(|(worker, _)| worker)
    }

    /// This worker is not asked again in this round.
    pub(super) fn pass(&mut self, worker: WorkerId) {
        self.passed.insert(worker);
    }

    pub(super) fn end_round(&mut self) {
        self.passed.clear();
    }

    /// A worker that has nothing to do.
    pub(super) fn idle(&self) -> Option<WorkerId> {
        self.idlers().next().map(|(worker, _)| worker)
    }

    pub(super) fn n_idle(&self) -> usize {
        self.idlers().count()
    }

    fn idlers(&self) -> impl Iterator<Item = (WorkerId, &CrewMember)> {
        self.ready().filter(|(_, member)| member.n_in_flight == 0)
    }

    /// Workers that have said nothing for too long, and what to say of them.
    pub(super) fn silent(
        &self,
        shards: &BTreeMap<u64, SentShard>,
        now: Instant,
        options: &FleetOptions,
    ) -> Vec<(WorkerId, String)> {
        let mut expected: BTreeMap<WorkerId, Duration> = BTreeMap::new();
        for holder in shards.values().flat_map(|sent| &sent.holders) {
            // The one that was sent last counts: all others come before it.
            if now.saturating_duration_since(holder.sent) > options.silence_limit {
                expected.insert(holder.worker, holder.expected);
            }
        }
        let silent = self.members.iter().filter_map(|(worker, member)| match member.stage {
            Stage::Greeting { since } => {
                let waited = now.saturating_duration_since(since);
                (waited > options.greeting_limit)
                    .then(|| (*worker, format!("it was not ready after {} s", waited.as_secs())))
            }
            Stage::Ready => {
                let waited = now.saturating_duration_since(member.heard);
                let limit = options.silence_limit.saturating_add(expected.get(worker)?.saturating_mul(20));
                (waited > limit).then(|| (*worker, format!("it has said nothing for {} s", waited.as_secs())))
            }
        });
        silent.collect()
    }

    fn ready(&self) -> impl Iterator<Item = (WorkerId, &CrewMember)> {
        self.members.iter().filter(|(_, member)| member.is_ready()).map(|(worker, member)| (*worker, member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(rate: f64) -> CrewMember {
        CrewMember { rate, ..CrewMember::new("w".into()) }
    }

    #[test]
    fn a_shard_follows_the_share_of_a_worker_and_the_times_it_may_take() {
        let times = [20, 500].map(Duration::from_millis);
        assert_eq!(member(1000.0).shard_rows(800, 4000.0, times), 100, "half of a quarter");
        assert_eq!(member(1000.0).shard_rows(80_000, 4000.0, times), 500, "half a second");
        assert_eq!(member(10_000.0).shard_rows(40, 20_000.0, times), 200, "20 ms, however little is left");
        assert_eq!(member(0.5).shard_rows(40, 1.0, times), 16, "a slow one still gets some");
    }

    #[test]
    fn the_one_with_the_least_to_do_is_next() {
        let mut crew = Crew::default();
        for (worker, n_in_flight) in [(1, 2), (2, 1), (3, 3)] {
            crew.insert(worker, CrewMember { n_in_flight, stage: Stage::Ready, ..member(1.0) });
        }
        crew.insert(4, member(1.0));
        assert_eq!(crew.next_free(3), Some(2));
        crew.pass(2);
        assert_eq!(crew.next_free(3), Some(1));
        crew.end_round();
        assert_eq!((crew.next_free(1), crew.idle(), crew.n_ready(), crew.n_present()), (None, None, 3, 4));
    }
}
