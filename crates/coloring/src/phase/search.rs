//! Searches with a fixed number of colours as phases, on the CPU or on a device.

mod colony;
mod evolve;
mod walk;

use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::tabu::{Partial, Tabu, Weighted};
use colony::Colony;
pub(crate) use evolve::{Evolve, Step};
use walk::Walk;

/// The search of a kind, where there is one; it begins at the input's colouring.
pub fn search<'a>(kind: PhaseKind, input: &PhaseInput<'a>) -> Option<Box<dyn Phase + 'a>> {
    match kind {
        PhaseKind::Tabu if input.device.is_none() => {
            Some(Box::new(Walk::new(kind, *input, |input, random, colors| {
                Tabu::new(input.graph, input.matrix, input.k, random, colors)
            })))
        }
        PhaseKind::Tabu | PhaseKind::Memetic | PhaseKind::Tempering | PhaseKind::Annealing => {
            Some(Box::new(Colony::new(kind, *input)))
        }
        PhaseKind::Partial => Some(Box::new(Walk::new(kind, *input, |input, random, colors| {
            Partial::new(input.graph, input.matrix, input.k, random, colors)
        }))),
        PhaseKind::Edge => Some(Box::new(Walk::new(kind, *input, |input, random, colors| {
            Weighted::new(input.graph, input.k, random, colors)
        }))),
        _ => None,
    }
}
