//! The names of the phases, and which of them run by default.

use std::str::FromStr;

use crate::initial::Initial;

/// A phase by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Takes out vertices that do not matter.
    Reduction,
    /// A first colouring, largest degree first.
    Greedy,
    /// A first colouring, most constrained vertex first.
    Dsatur,
    /// A first colouring, class by class.
    Rlf,
    /// A first colouring along the Fiedler vector.
    Spectral,
    /// A first colouring, community by community.
    Community,
    /// The best of many first colourings.
    Randomized,
    /// Priorities: response of a network whose neurons are the vertices.
    Reservoir,
    /// Priorities: information that flows between conflict histories.
    Transfer,
    /// Priorities: expected conflicts less information gain.
    Inference,
    /// TabuCol.
    Tabu,
    /// PartialCol.
    Partial,
    /// TabuCol with weights on edges.
    Edge,
    /// Hybrid evolutionary search.
    Memetic,
    /// Parallel tempering.
    Tempering,
    /// Path-integral annealing.
    Annealing,
    /// The verifier.
    Validation,
}

/// The role of a phase in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Makes the graph smaller.
    Reduce,
    /// Makes a first colouring.
    Initial(Initial),
    /// Measures priorities.
    Signal,
    /// Searches with a fixed number of colours.
    Search,
    /// Judges.
    Judge,
}

/// Phase, name, what it does, whether it runs by default.
const TABLE: [(PhaseKind, &str, Family, bool); 17] = [
    (PhaseKind::Reduction, "reduction", Family::Reduce, true),
    (PhaseKind::Greedy, "greedy", Family::Initial(Initial::Greedy), true),
    (PhaseKind::Dsatur, "dsatur", Family::Initial(Initial::Dsatur), true),
    (PhaseKind::Rlf, "rlf", Family::Initial(Initial::Rlf), true),
    (PhaseKind::Spectral, "spectral", Family::Initial(Initial::Spectral), false),
    (PhaseKind::Community, "community", Family::Initial(Initial::Community), false),
    (PhaseKind::Randomized, "randomized", Family::Initial(Initial::Randomized), false),
    (PhaseKind::Reservoir, "reservoir", Family::Signal, false),
    (PhaseKind::Transfer, "transfer", Family::Signal, false),
    (PhaseKind::Inference, "inference", Family::Signal, false),
    (PhaseKind::Tabu, "tabu", Family::Search, true),
    (PhaseKind::Partial, "partial", Family::Search, true),
    (PhaseKind::Edge, "edge", Family::Search, true),
    (PhaseKind::Memetic, "memetic", Family::Search, true),
    (PhaseKind::Tempering, "tempering", Family::Search, false),
    (PhaseKind::Annealing, "annealing", Family::Search, false),
    (PhaseKind::Validation, "validation", Family::Judge, true),
];

/// Names that lists of phases and filters of records also take. The ensemble is the searches that race.
const ALIASES: [(&str, &[PhaseKind]); 5] = [
    ("thermodynamic", &[PhaseKind::Tempering]),
    ("quantum", &[PhaseKind::Annealing]),
    ("ensemble", &[PhaseKind::Tabu, PhaseKind::Partial, PhaseKind::Edge, PhaseKind::Memetic]),
    ("active_inference", &[PhaseKind::Inference]),
    ("transfer_entropy", &[PhaseKind::Transfer]),
];

impl PhaseKind {
    /// All of them, in the order in which they come.
    pub fn all() -> impl Iterator<Item = PhaseKind> {
        TABLE.iter().map(|row| row.0)
    }

    /// The phases that run by default.
    pub fn defaults() -> Vec<PhaseKind> {
        TABLE.iter().filter(|row| row.3).map(|row| row.0).collect()
    }

    /// The phases of a name that other systems give them; none if there is no such name.
    pub fn aliased(name: &str) -> Option<&'static [PhaseKind]> {
        ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, kinds)| *kinds)
    }

    /// The phase under which the journal has records of such a name: the ensemble reports its rounds.
    pub fn recorded_as(alias: &str) -> Option<&'static str> {
        match Self::aliased(alias)? {
            [kind] => Some(kind.name()),
            _ => Some("round"),
        }
    }

    fn row(self) -> &'static (PhaseKind, &'static str, Family, bool) {
        &TABLE[self as usize]
    }

    /// Its name in commands, records and lines.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its role in a run.
    pub fn family(self) -> Family {
        self.row().2
    }

    /// Whether it has a kernel, so that it can run on a device.
    pub fn has_kernel(self) -> bool {
        matches!(
            self,
            Self::Reservoir
                | Self::Transfer
                | Self::Inference
                | Self::Tabu
                | Self::Memetic
                | Self::Tempering
                | Self::Annealing
        )
    }

    /// Whether it searches with a fixed number of colours.
    pub fn is_search(self) -> bool {
        self.family() == Family::Search
    }
}

impl FromStr for PhaseKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(PhaseKind::name).collect();
            format!("there is no phase `{text}`; the phases are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_finds_its_own_row() {
        for (at, kind) in PhaseKind::all().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(kind.name().parse(), Ok(kind));
            if let Family::Initial(initial) = kind.family() {
                assert_eq!(format!("{initial:?}").to_lowercase(), kind.name());
            }
        }
        assert!(
            ALIASES.iter().all(|(alias, kinds)| alias.parse::<PhaseKind>().is_err() && !kinds.is_empty()),
            "no alias hides a phase"
        );
        let is_default = |kind: &PhaseKind| kind.is_search() && kind.row().3;
        let searches: Vec<PhaseKind> = PhaseKind::all().filter(is_default).collect();
        assert_eq!(PhaseKind::aliased("ensemble"), Some(&searches[..]));
        assert_eq!(PhaseKind::recorded_as("ensemble"), Some("round"));
        assert_eq!(
            (PhaseKind::recorded_as("quantum"), PhaseKind::recorded_as("tabu")),
            (Some("annealing"), None)
        );
        assert!(
            "simplex"
                .parse::<PhaseKind>()
                .unwrap_err()
                .starts_with("there is no phase `simplex`; the phases are reduction,")
        );
    }
}
