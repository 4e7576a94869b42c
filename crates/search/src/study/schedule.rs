//! The lag contract in one place: in which order a sampler is asked and told.
//!
//! Batch `b` is asked after exactly the batches `0 … b − 1 − L` were told. Whoever drives a [`Schedule`], live or in replay, on one
//! thread or on three, can only follow that order, which is why all of them get the same points. What a [`Controller`] changes holds from
//! a batch on: it is applied in the turn of that batch, before anything is told for its sake.
//!
//! Every batch is asked in full, also where fewer trials are left. Of the last one the first trials are handed out then, and it is not
//! told: a study that gets more trials later asks the same batch again, hands out all of it and goes on.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::point::Points;
use crate::sampler::Sampler;
use crate::score::Scores;
use crate::study::control::{Change, Controller, Settings};
use crate::study::error::{StudyError, panic_message};
use crate::study::evaluator::Batch;

/// A sampler and how far it has got.
pub(super) struct Schedule<'a> {
    sampler: &'a mut dyn Sampler,
    n_params: usize,
    n_trials: u64,
    batch: usize,
    lag: u64,
    n_asked_trials: u64,
    n_asked: u64,
    n_told: u64,
    /// Whether the sampler ran out of points.
    is_ended: bool,
    /// Whether the last batch was handed out in part.
    is_cut: bool,
    /// Changes of earlier runs, by batch.
    recorded: VecDeque<Change>,
    controller: Option<&'a mut dyn Controller>,
    /// Batches whose changes are applied.
    n_turned: u64,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(
        sampler: &'a mut dyn Sampler,
        n_params: usize,
        n_trials: u64,
        batch: usize,
        lag: usize,
        recorded: Vec<Change>,
    ) -> Self {
        Self {
            sampler,
            n_params,
            n_trials,
            batch: batch.max(1),
            lag: lag as u64,
            n_asked_trials: 0,
            n_asked: 0,
            n_told: 0,
            is_ended: false,
            is_cut: false,
            recorded: recorded.into(),
            controller: None,
            n_turned: 0,
        }
    }

    /// Trials that are asked at a time, at first.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// From here on there are new changes too, behind those that were recorded.
    pub(super) fn control(&mut self, controller: Option<&'a mut dyn Controller>) {
        self.controller = controller;
    }

    /// Applies what holds from the next batch on. Before each batch it must be called before anything is told or asked; a second call does
    /// nothing.
    pub(super) fn turn(&mut self) -> Result<(), StudyError> {
        if self.n_turned > self.n_asked || self.is_ended() {
            return Ok(());
        }
        self.n_turned = self.n_asked + 1;
        let batch = self.n_asked;
        while self.recorded.front().is_some_and(|change| change.batch <= batch) {
            if let Some(change) = self.recorded.pop_front() {
                self.apply(&change)?;
            }
        }
        if let Some(controller) = &mut self.controller {
            let now = Settings { batch: self.batch, lag: self.lag as usize, knobs: self.sampler.knobs() };
            let changes = controller
                .changes(batch, &now, &self.sampler.facts())
                .map_err(|source| StudyError::Controller { batch, source })?;
            for change in changes {
                self.apply(&change)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: &Change) -> Result<(), StudyError> {
        let whole = change.value >= 0.0 && change.value == change.value.trunc();
        let is_applied = match change.knob.as_str() {
            "batch" if whole && change.value >= 1.0 => {
                self.batch = change.value as usize;
                true
            }
            "lag" if whole => {
                self.lag = change.value as u64;
                true
            }
            knob => self.sampler.turn(knob, change.value),
        };
        if is_applied { Ok(()) } else { Err(StudyError::Change(change.clone())) }
    }

    /// How many trials of the next batch are handed out, at most.
    pub(super) fn next_len(&self) -> usize {
        usize::try_from(self.n_trials - self.n_asked_trials).unwrap_or(usize::MAX).min(self.batch)
    }

    /// Whether a batch must be told before the next is asked, or before all is done.
    pub(super) fn is_tell_due(&self) -> bool {
        let n_due = if self.is_ended() {
            self.n_asked - u64::from(self.is_cut)
        } else {
            self.n_asked.saturating_sub(self.lag)
        };
        self.n_told < n_due
    }

    /// Whether the sampler ran out of points before all trials were asked.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_ended && self.n_asked_trials < self.n_trials
    }

    /// Whether there is nothing more to ask.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended || self.n_asked_trials >= self.n_trials
    }

    /// The next batch, unless there is none. No tell may be due.
    pub(super) fn ask(&mut self) -> Result<Option<Batch>, StudyError> {
        debug_assert!(!self.is_tell_due(), "the lag is exact");
        if self.is_ended() {
            return Ok(None);
        }
        let index = self.n_asked;
        let (n, n_handed_out) = (self.batch, self.next_len());
        let sampler = &mut *self.sampler;
        let points = catch_unwind(AssertUnwindSafe(|| sampler.ask(n)))
            .map_err(|payload| self.panicked(index, &*payload))?;
        let check = |what, expected, got| StudyError::SamplerShape {
            sampler: self.sampler.name(),
            batch: index,
            what,
            expected,
            got,
        };
        if points.len() > n {
            return Err(check("points", n, points.len()));
        }
        if points.n_params() != self.n_params {
            return Err(check("parameters", self.n_params, points.n_params()));
        }
        // Fewer than requested means that a finite sampler has run out.
        self.is_ended = points.len() < n;
        if points.is_empty() {
            return Ok(None);
        }
        self.is_cut = points.len() > n_handed_out;
        let points = if self.is_cut { points.first(n_handed_out) } else { points };
        let batch = Batch { index, first_trial: self.n_asked_trials, points: Arc::new(points) };
        self.n_asked += 1;
        self.n_asked_trials += batch.points.len() as u64;
        Ok(Some(batch))
    }

    /// Tells the next batch.
    pub(super) fn tell(&mut self, points: &Points, scores: &Scores) -> Result<(), StudyError> {
        debug_assert!(self.is_tell_due(), "the lag is exact");
        let index = self.n_told;
        let sampler = &mut *self.sampler;
        catch_unwind(AssertUnwindSafe(|| sampler.tell(points, scores)))
            .map_err(|payload| self.panicked(index, &*payload))?;
        self.n_told += 1;
        Ok(())
    }

    fn panicked(&self, batch: u64, payload: &(dyn std::any::Any + Send)) -> StudyError {
        StudyError::SamplerPanic { sampler: self.sampler.name(), batch, message: panic_message(payload) }
    }
}
