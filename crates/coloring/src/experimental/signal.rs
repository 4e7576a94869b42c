//! Priorities of vertices, measured on a short search: which of them decide whether a colouring is found.
//!
//! Three signals, each by its own measure. They bias the order of first colourings and how a dissolved class is dealt out. None of them
//! is on by default: docs/color.md has the measurements. On a device each has a kernel; the short search that they are measured on runs on the CPU.

pub mod device;
mod inference;
mod phase;
mod reservoir;
mod trajectory;
mod transfer;

pub use device::DeviceSignals;
pub use inference::inference;
pub use phase::SignalPhase;
pub use reservoir::reservoir;
pub use trajectory::Trajectory;
pub use transfer::transfer;

/// Brings priorities onto [0, 1]; equal ones become 0.
pub fn normalized(priority: &[f64]) -> Vec<f64> {
    let low = priority.iter().copied().fold(f64::INFINITY, f64::min);
    let high = priority.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = high - low;
    priority.iter().map(|value| if range > 0.0 { (value - low) / range } else { 0.0 }).collect()
}
