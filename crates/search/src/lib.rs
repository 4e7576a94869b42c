//! Search for Tidemill: a [`Space`] of parameters, samplers that propose [`Points`] of it, and a folder that keeps what was tried.

pub mod point;
pub mod space;

pub use point::{Points, Score};
pub use space::{Choice, Condition, Domain, Param, Space};
