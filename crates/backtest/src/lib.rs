//! Back-tests for Tidemill. The principal type is the [`Engine`]: a [`Strategy`] compiled for data, evaluating trials over [`segment::Segment`]s.
//!
//! A strategy file is read ([`strategy`]), its expressions become a typed graph ([`compile`], [`graph`]), the plan decides what is shared ([`plan`]),
//! and the executor walks the trials ([`exec`]). What the walk counts ([`tally`]) becomes metrics ([`metric`]) and a score ([`objective`]).

pub mod compile;
pub mod cuda;
pub mod diagnostic;
pub mod document;
pub mod exec;
pub mod expr;
pub mod graph;
pub mod metric;
pub mod objective;
pub mod plan;
pub mod point;
pub mod random;
pub mod segment;
pub mod space;
pub mod strategy;
mod synonym;
pub mod tally;
pub mod trade;

/// Number of the rules in `docs/semantics.md`, and of what samplers propose. A change of either raises it, so that a study never mixes
/// results that mean different things.
pub const SEMANTICS: u32 = 8;

pub use cuda::{DeviceDetail, DeviceEngine, DeviceOptions, FoundTrade, Stage, StageSpan};
pub use exec::engine::{
    Benchmark, Detail, Engine, EngineOptions, LetSeries, Measure, Outcome, Outlook, OutlookLevel,
    OutlookPosition, POOL_NOTE, SegmentPool, let_series, pool_year_days,
};
pub use metric::{METRICS, Metric, Metrics};
pub use strategy::{Overrides, Strategy, StrategyError};
