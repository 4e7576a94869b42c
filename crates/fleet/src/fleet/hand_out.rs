//! Who gets which shard next: what was lost, then what two are to evaluate, then new rows; and copies of what is late.

use std::time::Instant;

use tidemill_search::Points;

use super::assembly::Assembly;
use super::shard::{Holder, SentShard};
use super::{Fleet, MOST_IN_FLIGHT};
use crate::event::FleetEvent;
use crate::message::{Message, Shard, ShardPoints, most_rows, points_digest};
use crate::transport::WorkerId;

impl Fleet<'_> {
    /// Gives workers what they can take, those first that have least.
    pub(super) fn hand_out(&mut self) {
        while let Some(worker) = self.crew.next_free(MOST_IN_FLIGHT) {
            if !(self.send_again(worker) || self.send_check(worker) || self.send_new(worker)) {
                // Another one may be allowed what this one is not.
                self.crew.pass(worker);
            }
        }
        self.crew.end_round();
    }

    /// Sends a shard that somebody lost.
    fn send_again(&mut self, worker: WorkerId) -> bool {
        let lost = |sent: &SentShard| sent.holders.is_empty() && sent.answer.is_none();
        let Some(shard) = self.shards.iter().find(|(_, sent)| lost(sent)).map(|(shard, _)| *shard) else {
            return false;
        };
        self.send(worker, shard);
        true
    }

    /// Sends a shard that two workers are to evaluate to the second of them.
    fn send_check(&mut self, worker: WorkerId) -> bool {
        let wanted = |sent: &SentShard| {
            !sent.is_checked
                && match (&sent.answer, &sent.holders[..]) {
                    (Some(first), []) => first.worker != worker,
                    (None, [one]) => one.worker != worker,
                    _ => false,
                }
        };
        let Some(shard) = self.shards.iter().find(|(_, sent)| wanted(sent)).map(|(shard, _)| *shard) else {
            return false;
        };
        self.send(worker, shard);
        true
    }

    /// Cuts a new shard out of the oldest batch that has rows left, unless the study is to stop.
    fn send_new(&mut self, worker: WorkerId) -> bool {
        if self.is_stopping() {
            return false;
        }
        let n_unassigned: usize = self.batches.iter().map(Assembly::n_unassigned).sum();
        let most = most_rows(self.study.probes.n_params(), self.n_columns);
        let Some(member) = self.crew.get(worker) else { return false };
        let n_rows =
            member.shard_rows(n_unassigned, self.crew.total_rate(), self.options.shard_time).min(most);
        let Some(assembly) = self.batches.iter_mut().find(|of| of.n_unassigned() > 0) else { return false };
        let rows = assembly.cut(n_rows);
        let mut points = Points::new(assembly.batch.points.n_params());
        points.extend_from(&assembly.batch.points, rows.clone());
        let number = self.n_shards;
        self.n_shards += 1;
        self.shards.insert(
            number,
            SentShard {
                batch: assembly.batch.index,
                first_trial: assembly.batch.first_trial + rows.start as u64,
                points_digest: points_digest(&points),
                points,
                rows,
                holders: Vec::new(),
                answer: None,
                is_checked: !number.is_multiple_of(self.options.check_one_in.max(1)),
                n_tries: 0,
            },
        );
        self.send(worker, number);
        true
    }

    fn send(&mut self, worker: WorkerId, shard: u64) {
        let (Some(member), Some(sent)) = (self.crew.get_mut(worker), self.shards.get_mut(&shard)) else {
            return;
        };
        member.n_in_flight += 1;
        let points = match self.study.is_drawn && member.draws {
            true => ShardPoints::Drawn { count: sent.rows.len() as u32, digest: sent.points_digest },
            false => ShardPoints::Given(sent.points.clone()),
        };
        let expected = member.time_for(sent.rows.len()) * member.n_in_flight as u32;
        sent.holders.push(Holder { worker, sent: Instant::now(), expected });
        let message = Shard { session: self.session, shard, first_trial: sent.first_trial, points };
        self.pool.submit(worker, &Message::Shard(message));
    }

    /// Gives a copy of what is late to workers that have nothing to do.
    pub(super) fn hedge(&mut self, now: Instant) {
        if self.batches.iter().any(|assembly| assembly.n_unassigned() > 0) {
            return;
        }
        while let Some(worker) = self.crew.idle() {
            let after = self.options.hedge_after;
            let late = |sent: &SentShard| match &sent.holders[..] {
                [one] => sent.answer.is_none() && one.worker != worker && one.is_late(now, after),
                _ => false,
            };
            let Some((shard, sent)) = self.shards.iter().find(|(_, sent)| late(sent)) else { return };
            let (shard, n_trials) = (*shard, sent.rows.len());
            let late = self.crew.name(sent.holders[0].worker);
            self.send(worker, shard);
            let name = self.crew.name(worker);
            (self.observer)(FleetEvent::Hedged { late, name, n_trials });
        }
    }

    /// A check needs a second worker; where there is none, it is left out.
    pub(super) fn excuse_checks(&mut self) {
        if self.crew.n_ready() >= 2 {
            return;
        }
        let can_wait = self.crew.n_present() >= 2;
        for sent in self.shards.values_mut() {
            if sent.answer.is_some() && sent.holders.is_empty() && !can_wait {
                sent.is_checked = true;
            }
        }
        self.tidy();
    }
}
