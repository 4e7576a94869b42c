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
pub mod report;
pub mod segment;
pub mod space;
pub mod strategy;
pub mod tally;
pub mod trade;

pub use cuda::{DeviceEngine, DeviceOptions, Stage, StageSpan};
pub use exec::engine::{Benchmark, Detail, Engine, EngineOptions, Outcome, POOL_NOTE};
pub use metric::{METRICS, Metric, Metrics};
pub use strategy::{Overrides, Strategy, StrategyError};
