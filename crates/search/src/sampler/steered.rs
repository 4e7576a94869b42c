//! Any sampler, with a share of its trials given to chance or to the surroundings of the best.

use crate::point::Points;
use crate::rng::{Stream, to_unit};
use crate::sampler::{Random, Sampler, SamplerKnob};
use crate::scale::Scale;
use crate::score::Scores;
use crate::space::Space;

/// Keeps the draws apart from those of other samplers under the same seed.
const SEED_TWIST: u64 = 0x5374_6565_7265_6421;

/// The increment that spreads trials evenly: 2^64 divided by the golden ratio, made odd.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// How far from the best a restart draws, as a share of a parameter's range: this far, half as far, and so on, in turn.
const FARTHEST: f64 = 0.5;

/// So many halvings, one trial after the other.
const HALVINGS: u64 = 6;

/// The most trials of a restart.
const MAX_RESTART: f64 = 1e6;

/// The proposer of a trial.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Inner,
    Chance,
    Best,
}

/// Two more knobs for a sampler: `random_share`, the share of its trials that is drawn at random, and `restart`, how many of the next trials
/// are drawn around the best so far, near and far. The sampler learns from them as from its own. As long as neither is turned, its points are
/// what they are without.
pub struct Steered {
    space: Space,
    inner: Box<dyn Sampler>,
    chance: Random,
    seed: u64,
    random_share: f64,
    n_restart: u64,
    n_asked: u64,
    n_around: u64,
    best: Option<(f64, Vec<f64>)>,
}

impl Steered {
    /// Around a sampler of this space.
    pub fn new(space: &Space, seed: u64, inner: Box<dyn Sampler>) -> Self {
        Self {
            space: space.clone(),
            inner,
            chance: Random::new(space, seed ^ SEED_TWIST),
            seed: seed ^ SEED_TWIST.rotate_left(17),
            random_share: 0.0,
            n_restart: 0,
            n_asked: 0,
            n_around: 0,
            best: None,
        }
    }

    fn own_knobs(&self) -> [SamplerKnob; 2] {
        [
            SamplerKnob { name: "random_share", value: self.random_share, low: 0.0, high: 0.9 },
            SamplerKnob { name: "restart", value: self.n_restart as f64, low: 0.0, high: MAX_RESTART },
        ]
    }

    /// The proposer of the next trial.
    fn next_owner(&mut self) -> Owner {
        let place = to_unit(self.n_asked.wrapping_mul(WEYL));
        self.n_asked += 1;
        if self.n_restart > 0 && self.best.is_some() {
            self.n_restart -= 1;
            Owner::Best
        } else if place < self.random_share {
            Owner::Chance
        } else {
            Owner::Inner
        }
    }

    /// Points around the best.
    fn around(&mut self, n: usize) -> Points {
        let first = self.n_around;
        self.n_around += n as u64;
        let Some((_, best)) = &self.best else { return Points::new(self.space.len()) };
        let mut whole = best.clone();
        self.space.fill_inactive(&mut whole);
        let column = |(param_idx, param): (usize, &crate::space::Param)| {
            if let Some(value) = param.fixed {
                return vec![value; n];
            }
            let scale = Scale::new(&param.domain);
            let middle = param.domain.to_unit(whole[param_idx]);
            let stream = Stream::new(self.seed, param_idx as u64);
            let draw = |at: u64| {
                let reach = FARTHEST / (1_u64 << (at % HALVINGS)) as f64;
                // Steps of a triangular law, reflected at the ends; options are drawn anew with a probability that is the reach.
                if param.domain.is_ordered() {
                    let step = reach * (stream.unit(2 * at) + stream.unit(2 * at + 1) - 1.0);
                    let place = (middle + step).abs();
                    scale.value(if place > 1.0 { 2.0 - place } else { place })
                } else if stream.unit(2 * at) < reach {
                    scale.value(stream.unit(2 * at + 1))
                } else {
                    whole[param_idx]
                }
            };
            (first..first + n as u64).map(draw).collect()
        };
        let columns = self.space.params.iter().enumerate().map(column).collect();
        let mut points = Points::from_columns(n, columns);
        self.space.deactivate(&mut points);
        points
    }
}

impl Sampler for Steered {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn ask(&mut self, n: usize) -> Points {
        if self.random_share == 0.0 && self.n_restart == 0 {
            self.n_asked += n as u64;
            return self.inner.ask(n);
        }
        let owners: Vec<Owner> = (0..n).map(|_| self.next_owner()).collect();
        let count = |owner: Owner| owners.iter().filter(|known| **known == owner).count();
        let (n_inner, n_chance, n_best) = (count(Owner::Inner), count(Owner::Chance), count(Owner::Best));
        let (inner, chance, best) = (self.inner.ask(n_inner), self.chance.ask(n_chance), self.around(n_best));
        let mut next = [0; 3];
        let mut points = Points::new(self.space.len());
        for owner in owners {
            let from = match owner {
                Owner::Inner => &inner,
                Owner::Chance => &chance,
                Owner::Best => &best,
            };
            let at = next[owner as usize];
            next[owner as usize] += 1;
            if at >= from.len() {
                // A finite sampler has run out, and with it all.
                break;
            }
            points.extend_from(from, at..at + 1);
        }
        points
    }

    fn skip(&mut self, n: u64) -> bool {
        let can_skip = self.random_share == 0.0 && self.n_restart == 0 && self.inner.skip(n);
        self.n_asked += if can_skip { n } else { 0 };
        can_skip
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        for at in 0..points.len() {
            if let Some(score) = scores.first(at).value()
                && self.best.as_ref().is_none_or(|(best, _)| score > *best)
            {
                let mut row = vec![0.0; points.n_params()];
                points.read_row(at, &mut row);
                self.best = Some((score, row));
            }
        }
        self.inner.tell(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        self.inner.remaining()
    }

    fn exclude(&mut self, points: &Points) {
        self.inner.exclude(points);
    }

    fn retract(&mut self, points: &Points) {
        self.inner.retract(points);
    }

    fn knobs(&self) -> Vec<SamplerKnob> {
        let mut knobs = self.own_knobs().to_vec();
        knobs.extend(self.inner.knobs());
        knobs
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        let Some(own) = self.own_knobs().into_iter().find(|own| own.name == knob) else {
            return self.inner.turn(knob, value);
        };
        if !own.admits(value) {
            return false;
        }
        match knob {
            "random_share" => self.random_share = value,
            _ => self.n_restart = value as u64,
        }
        true
    }

    fn facts(&self) -> Vec<(String, f64)> {
        self.inner.facts()
    }
}
