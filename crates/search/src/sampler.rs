//! The [`Sampler`]: proposes points of a space and learns from their scores.

mod archive;
mod auto;
mod cmaes;
mod differential;
mod enqueue;
mod evolution;
mod fingerprint;
mod fresh;
mod generational;
mod genetic;
mod grid;
mod nsga2;
mod random;
mod sobol;
mod start;
mod steered;
mod tpe;

pub use auto::Auto;
pub use cmaes::CmaEs;
pub use differential::Differential;
pub use enqueue::{Enqueue, EnqueueError};
pub use generational::Generational;
pub use genetic::Genetic;
pub use grid::Grid;
pub use nsga2::Nsga2;
pub use random::Random;
pub use sobol::{Sobol, TABLE_DIMENSIONS};
pub use steered::Steered;
pub use tpe::{Tpe, TpeMultivariate};

use std::fmt;
use std::str::FromStr;

use fresh::Fresh;

use crate::point::Points;
use crate::score::Scores;
use crate::space::Space;

/// Proposes points and learns from their scores.
///
/// A sampler is a pure state machine, seeded once. Obligations:
///
/// - `ask` returns exactly `n` points, or fewer if the sampler is finite and runs out; then none, for ever.
/// - Every value lies in its domain. A fixed parameter has its fixed value. A parameter whose condition does not hold is NaN, also
///   a fixed one; conditions are judged in the order of the parameters and see inactive ones as their default.
/// - Points depend on the seed and on the sequence of calls alone: not on clocks, threads, addresses or the order of a hash map.
///   Between two `tell`s, the cut into batches does not matter: `ask(10)` twice gives the points of `ask(20)`.
/// - `tell` is given points in the order in which they were asked, each once. It may come later than further `ask`s.
/// - A score may be invalid, all of them may be; an invalid point is worse than every valid one and nothing else is known of it.
pub trait Sampler: Send {
    /// The name by which users choose it.
    fn name(&self) -> &'static str;

    /// The next `n` points.
    fn ask(&mut self, n: usize) -> Points;

    /// Reports the scores of points that were asked, one for each.
    fn tell(&mut self, points: &Points, scores: &Scores);

    /// At most how many points are still to come; `None` if there is no end. Exact if no parameter is conditional.
    fn remaining(&self) -> Option<u64>;

    /// Passes over the next `n` points as if they had been asked; false, and nothing happens, where they cannot be known before others are told.
    fn skip(&mut self, _n: u64) -> bool {
        false
    }

    /// Points that somebody else asks, and that need not be asked again.
    fn exclude(&mut self, _points: &Points) {}

    /// Points that were asked and will not be told, because they had been asked before.
    fn retract(&mut self, _points: &Points) {}

    /// The knobs that can change while it runs.
    fn knobs(&self) -> Vec<SamplerKnob> {
        Vec::new()
    }

    /// Turns a knob, for all points asked from here on; false if there is none of this name, or it cannot have this value.
    fn turn(&mut self, _knob: &str, _value: f64) -> bool {
        false
    }

    /// Figures about itself, by name: for example the shares of a portfolio.
    fn facts(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

/// A number that decides how a sampler explores, and that can be turned while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerKnob {
    /// As tuning rules and journals spell it.
    pub name: &'static str,
    /// Its value now.
    pub value: f64,
    /// The least value it can have.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl SamplerKnob {
    /// Whether it can have a value.
    pub fn admits(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Settings that a sampler is built with. All of them are part of a study's configuration, because points may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerSettings {
    /// The same seed gives the same points.
    pub seed: u64,
    /// How many points will be asked in total, if that is known.
    pub n_trials: Option<u64>,
    /// How many points are asked at a time, usually.
    pub batch: usize,
    /// Number of objectives, at least one.
    pub n_objectives: usize,
}

impl SamplerSettings {
    /// One objective, an unknown number of trials, batches of 64.
    pub fn new(seed: u64) -> Self {
        Self { seed, n_trials: None, batch: 64, n_objectives: 1 }
    }
}

/// The samplers that users may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplerKind {
    /// Independent uniform points.
    Random,
    /// A scrambled Sobol sequence.
    Sobol,
    /// All combinations.
    Grid,
    /// Tree-structured Parzen estimator, one parameter at a time.
    Tpe,
    /// Tree-structured Parzen estimator, all parameters jointly.
    TpeMultivariate,
    /// A genetic algorithm on the best points of the study.
    Genetic,
    /// Differential evolution on the best points of the study.
    Differential,
    /// Covariance matrix adaptation, for numeric parameters above all.
    CmaEs,
    /// A genetic algorithm for several objectives.
    Nsga2,
    /// The generational genetic algorithm of the seller-exhaustion system.
    Generational,
    /// A portfolio of the others that moves its trials to whatever pays.
    Auto,
}

impl SamplerKind {
    /// Every kind, in the order shown to users.
    pub const ALL: [Self; 11] = [
        Self::Random,
        Self::Sobol,
        Self::Grid,
        Self::Tpe,
        Self::TpeMultivariate,
        Self::Genetic,
        Self::Differential,
        Self::CmaEs,
        Self::Nsga2,
        Self::Generational,
        Self::Auto,
    ];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sobol => "sobol",
            Self::Grid => "grid",
            Self::Tpe => "tpe",
            Self::TpeMultivariate => "tpe-mv",
            Self::Genetic => "ga",
            Self::Differential => "de",
            Self::CmaEs => "cmaes",
            Self::Nsga2 => "nsga2",
            Self::Generational => "ga-seller",
            Self::Auto => "auto",
        }
    }

    /// Whether its points depend on the scores of earlier ones.
    pub fn learns(self) -> bool {
        !matches!(self, Self::Random | Self::Sobol | Self::Grid)
    }

    /// Whether it learns from, or does not depend on, more than one objective.
    fn serves_several_objectives(self) -> bool {
        !matches!(self, Self::Genetic | Self::Differential | Self::CmaEs | Self::Generational)
    }

    /// A sampler of this kind over a valid space. One that learns asks no point twice, and ends where no other is left.
    pub fn build(self, space: &Space, settings: &SamplerSettings) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(self.without_repeats(space, settings, self.plain(space, settings)?))
    }

    /// The same with the knobs of [`Steered`].
    pub fn build_steered(
        self,
        space: &Space,
        settings: &SamplerSettings,
    ) -> Result<Box<dyn Sampler>, SamplerError> {
        let steered = Steered::new(space, settings.seed, self.plain(space, settings)?);
        Ok(self.without_repeats(space, settings, Box::new(steered)))
    }

    fn without_repeats(
        self,
        space: &Space,
        settings: &SamplerSettings,
        sampler: Box<dyn Sampler>,
    ) -> Box<dyn Sampler> {
        if self.learns() { Box::new(Fresh::new(space, settings, sampler)) } else { sampler }
    }

    /// A sampler that may ask a point twice.
    fn plain(self, space: &Space, settings: &SamplerSettings) -> Result<Box<dyn Sampler>, SamplerError> {
        let &SamplerSettings { seed, n_trials, n_objectives, .. } = settings;
        if n_objectives > 1 && !self.serves_several_objectives() {
            return Err(SamplerError::SeveralObjectives { kind: self, n_objectives });
        }
        Ok(match self {
            Self::Random => Box::new(Random::new(space, seed)),
            Self::Sobol => Box::new(Sobol::new(space, seed)),
            Self::Grid => Box::new(Grid::new(space, n_trials)),
            Self::Tpe => Box::new(Tpe::new(space, settings)),
            Self::TpeMultivariate => Box::new(TpeMultivariate::new(space, settings)),
            Self::Genetic => Box::new(Genetic::new(space, settings)),
            Self::Differential => Box::new(Differential::new(space, settings)),
            Self::CmaEs => Box::new(CmaEs::new(space, settings)),
            Self::Nsga2 => Box::new(Nsga2::new(space, settings)),
            Self::Generational => Box::new(Generational::new(space, settings)),
            Self::Auto => Box::new(Auto::new(space, settings)),
        })
    }
}

impl fmt::Display for SamplerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why there is no such sampler.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// A name that does not exist.
    #[error("there is no sampler `{name}`; choose one of {}", SamplerKind::ALL.map(SamplerKind::name).join(", "))]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// A sampler that cannot learn from several objectives.
    #[error("the sampler `{kind}` serves one objective, and there are {n_objectives}; choose one of {}", SamplerKind::ALL.into_iter().filter(|kind| kind.serves_several_objectives()).map(SamplerKind::name).collect::<Vec<_>>().join(", "))]
    SeveralObjectives {
        /// The sampler.
        kind: SamplerKind,
        /// How many objectives there are.
        n_objectives: usize,
    },
}

impl FromStr for SamplerKind {
    type Err = SamplerError;

    fn from_str(name: &str) -> Result<Self, SamplerError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| SamplerError::Unknown { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_unknown_ones_list_the_choices() {
        for kind in SamplerKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.build(&Space::default(), &SamplerSettings::new(0)).unwrap().name(), kind.name());
        }
        let error = "tpee".parse::<SamplerKind>().unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("there is no sampler `tpee`; choose one of random, sobol, grid"),
            "{message}"
        );
    }

    #[test]
    fn a_sampler_for_one_objective_refuses_several_and_names_those_that_do_not() {
        let settings = SamplerSettings { n_objectives: 2, ..SamplerSettings::new(0) };
        for kind in SamplerKind::ALL {
            let built = kind.build(&Space::default(), &settings);
            assert_eq!(built.is_ok(), kind.serves_several_objectives(), "{kind}");
        }
        let error = SamplerKind::Genetic.build(&Space::default(), &settings).err().unwrap();
        let message = error.to_string();
        let start =
            "the sampler `ga` serves one objective, and there are 2; choose one of random, sobol, grid";
        assert!(message.starts_with(start), "{message}");
    }
}
