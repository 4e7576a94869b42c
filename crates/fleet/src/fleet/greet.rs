//! The handshake: a worker takes part once its program, its study, its data and the bits of the probe trials are the coordinator's.

use std::time::{Duration, Instant};

use super::Fleet;
use super::crew::{CrewMember, Stage};
use crate::event::FleetEvent;
use crate::message::{Welcome, header_digest, results_digest};
use crate::transport::WorkerId;
use crate::worker::Identity;

impl Fleet<'_> {
    /// Names the study to a worker that has joined.
    pub(super) fn greet(&mut self, worker: WorkerId, label: String) {
        self.crew.insert(worker, CrewMember::new(label));
        self.send_hello(worker);
    }

    /// Names the study to a worker, for the first time or after it has lost it.
    pub(super) fn send_hello(&mut self, worker: WorkerId) {
        if let Some(member) = self.crew.get_mut(worker) {
            member.stage = Stage::Greeting { since: Instant::now() };
        }
        self.pool.submit(worker, &self.hello);
    }

    /// A worker says that it is ready.
    pub(super) fn welcome(&mut self, worker: WorkerId, welcome: &Welcome) {
        let name = welcome.name.clone();
        let Some(member) = self.crew.get_mut(worker) else { return };
        let is_known = member.lane.is_some();
        member.name.clone_from(&name);
        if let Some(reason) = self.objection(welcome) {
            return self.turn_away(worker, &reason, false);
        }
        let lane = if is_known { None } else { Some(self.crew.next_lane()) };
        let Some(member) = self.crew.get_mut(worker) else { return };
        member.is_welcome(welcome.probes.scores.len(), Duration::from_micros(welcome.took_us));
        let Some(lane) = lane else { return };
        member.lane = Some(lane);
        self.lonely = None;
        (self.observer)(FleetEvent::Joined { lane, name, device: welcome.device.clone() });
    }

    /// Why a worker cannot take part, if it cannot.
    fn objection(&self, welcome: &Welcome) -> Option<String> {
        let Welcome { program, semantics, header_digest: header, data, probes, .. } = welcome;
        let theirs = Identity { program: program.clone(), semantics: *semantics };
        let ours = &self.study.identity;
        if theirs != *ours {
            return Some(format!(
                "it is Tidemill {program}, semantics {semantics}, and this is {}, semantics {}\n  hint: install the same version on both",
                ours.program, ours.semantics
            ));
        }
        if *header != header_digest(&self.study.header) {
            return Some("it has built another study".into());
        }
        if *data != self.study.data {
            return Some(format!(
                "it has other data: its fingerprint is {data}, and that of the study is {}\n  hint: give it the same files (`tidemill worker --data`)",
                self.study.data
            ));
        }
        if probes.scores.len() != self.study.probes.len() || results_digest(probes) != self.expected {
            return Some(
                "the probe trials have other bits there than on this machine's CPU, so that its results cannot be used\n  hint: `tidemill doctor` \
                 and `tidemill parity` on that machine look for the cause"
                    .into(),
            );
        }
        None
    }
}
