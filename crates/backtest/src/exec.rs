//! The CPU executor: columns once per distinct tuple, masks, jumps, trials side by side.

pub mod book;
pub mod cache;
pub mod column;
pub mod convoy;
pub mod cost;
mod distinct;
pub mod engine;
mod exit;
mod fill;
pub mod formula;
pub mod frame;
mod gather;
pub mod grid;
pub mod lazy;
pub mod mask;
mod over;
pub mod places;
mod recursion;
pub mod simd;
mod spare;
pub mod symbol;
mod tile;
pub mod walk;
