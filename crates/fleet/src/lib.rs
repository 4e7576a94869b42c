//! A study on many workers: the [`Fleet`] is an [`Evaluator`](tidemill_search::Evaluator) that cuts batches into shards, sends them to
//! workers and puts the rows together again.
//!
//! A trial has one result wherever it is evaluated. So a shard may be sent twice, answered late or lost, and a worker may come and go: the
//! results of the study are the same bits. What a worker answers is believed only after it has evaluated a few probe trials with the bits of
//! the coordinator's CPU, and whatever two workers answer to the same shard must be equal.
//!
//! Everything that passes between the two sides is a [`frame`] of bytes, so that any way to carry bytes is a [`Transport`]: threads
//! ([`InProcess`]), pipes ([`ChildProcesses`]), [`Sockets`], or the actors of another system. On the other side a [`Worker`] is a function from frame to
//! frame.
//!
//! What a study consists of, this crate does not know: a [`StudyBuilder`] makes the evaluator of a worker from the text in the [`Hello`].

pub mod child;
mod digest;
pub mod error;
pub mod event;
pub mod fleet;
pub mod frame;
pub mod in_process;
pub mod link;
pub mod message;
pub mod mock;
mod payload;
pub mod pool;
pub mod socket;
pub mod token;
pub mod transport;
pub mod worker;

pub use child::ChildProcesses;
pub use error::FleetError;
pub use event::{FleetEvent, Hunger};
pub use fleet::{Fleet, FleetOptions, FleetStudy};
pub use frame::{FrameError, MAX_PAYLOAD, PROTOCOL};
pub use in_process::InProcess;
pub use message::{Hello, Message, Refusal, RefusalCode, Shard, ShardAnswer, ShardPoints, Welcome};
pub use pool::WorkerPool;
pub use socket::Sockets;
pub use token::{Token, TokenError};
pub use transport::{Transport, TransportEvent, WorkerId};
pub use worker::{Identity, OpenStudy, StudyBuilder, Worker};
