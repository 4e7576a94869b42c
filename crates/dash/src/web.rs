//! Runs in the browser: a local server with its pages built in.
//!
//! [`serve`] starts it. The journal of a run is folded here, into the same [`Snapshot`](tidemill_telemetry::Snapshot) that the terminal shows, and
//! sent on while it grows. What a journal does not hold (trials, parameters, charts) comes from a [`RunSource`], which the application implements
//! over plain data. The server only reads: it takes no lock, and stopping it disturbs no run.
//!
//! Two decisions make it safe by default. It listens on this machine alone unless a token is set, and even there it answers only to
//! its own pages (`guard`). And one place turns names of runs into folders, and none of them leaves the folder of runs (`folder`).

mod answer;
mod asset;
mod filter;
mod folder;
mod guard;
mod live;
mod model;
mod route;
mod server;
mod source;
mod summary;
mod token;
mod view;

pub use filter::{BoundFilter, Cell, Filter, FilterError};
pub use model::{
    Backtest, BarQuery, BarWindow, Column, ColumnKind, Curve, Figure, Fold, Parameters, SymbolLine, Trade,
    Trial, TrialPage, TrialQuery, UnseenTrials,
};
pub use server::{Options, Server, WebError, serve};
pub use source::{RunSource, SourceError};
pub use summary::{BestEvaluated, BestTrial, StudySummary, VerdictSummary, WalkSummary};
pub use token::{Token, TokenError};
