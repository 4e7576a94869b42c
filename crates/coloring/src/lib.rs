//! Graph colouring: graphs, the phases of a search on CPU and GPU, and the [`Controller`] over them.
//!
//! ```
//! use tidemill_coloring::generate::Family;
//! use tidemill_coloring::{Controller, Options, Quiet, verify};
//!
//! let instance = Family::Queen { side: 5 }.generate(0).unwrap();
//! let options = Options { target: Some(5), max_iterations: Some(1_000_000), ..Options::default() };
//! let outcome = Controller::new(&instance, options).unwrap().run(&mut Quiet, &Default::default()).unwrap();
//! assert_eq!(verify(&instance, &outcome.colors).unwrap().k, 5);
//! ```

mod bound;
mod certificate;
mod clique;
mod config;
mod controller;
pub mod device;
mod draw;
mod ensemble;
mod error;
mod event;
pub mod experimental;
mod folder;
pub mod generate;
mod graph;
pub mod initial;
mod instance;
mod knob;
pub mod memetic;
pub mod phase;
pub mod random;
mod read;
mod record;
mod reduce;
mod settings;
mod slot;
mod store;
pub mod tabu;
mod tune;
mod verify;
mod warm;

pub use bound::lower_bound;
pub use certificate::{Certificate, Refutation};
pub use clique::clique;
pub use config::RunConfig;
pub use controller::{Controller, Ending, Observer, Options, Outcome, PhaseTotal, Quiet, State};
pub use ensemble::{Best, Credit, Ensemble};
pub use error::ColoringError;
pub use event::{PassEvent, RecordContext, RoundWork};
pub use folder::RunFolder;
pub use graph::Graph;
pub use instance::{Instance, MAX_VERTICES};
pub use knob::{KnobRange, Knobs, RANGES};
pub use read::{parse_graph, read_graph};
pub use record::RunRecorder;
pub use reduce::Reduction;
pub use settings::{ColorSettings, InitialSettings, IterativeSettings, Strategy};
pub use slot::{CpuSlots, Slots};
pub use store::RunStore;
pub use verify::{Flaw, Verified, verify};
pub use warm::warm_start;
