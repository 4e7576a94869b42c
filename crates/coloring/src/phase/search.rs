//! Searches with a fixed number of colours as phases, on the CPU or on a device.

mod colony;
mod evolve;
mod walk;

use super::{Clock, Finding, Phase, PhaseKind, Report, Scene, Slice};
use crate::tabu::{Partial, Tabu, Weighted};
use colony::Colony;
pub(crate) use evolve::{Evolve, Step};
use walk::Walk;

/// The search of a kind, where there is one; it begins at the scene's colouring. `stream` is its number among those of a device.
pub fn search<'a>(kind: PhaseKind, scene: &Scene<'a>, stream: u32) -> Option<Box<dyn Phase + 'a>> {
    match kind {
        PhaseKind::Tabu if scene.device.is_none() => {
            Some(Box::new(Walk::new(kind, *scene, |scene, random, colors| {
                Tabu::new(scene.graph, scene.matrix, scene.k, random, colors)
            })))
        }
        PhaseKind::Tabu | PhaseKind::Memetic | PhaseKind::Tempering | PhaseKind::Annealing => {
            Some(Box::new(Colony::new(kind, *scene, stream)))
        }
        PhaseKind::Partial => Some(Box::new(Walk::new(kind, *scene, |scene, random, colors| {
            Partial::new(scene.graph, scene.matrix, scene.k, random, colors)
        }))),
        PhaseKind::Edge => Some(Box::new(Walk::new(kind, *scene, |scene, random, colors| {
            Weighted::new(scene.graph, scene.k, random, colors)
        }))),
        _ => None,
    }
}
