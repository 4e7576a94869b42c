//! Market data for Tidemill: [`Bars`] of one symbol, a [`Universe`] of many, where they come from and what is computed from them.

pub mod align;
pub mod atc;
pub mod bars;
pub mod clean;
mod error;
mod fingerprint;
pub mod glob;
pub mod indicator;
mod jump;
mod load;
pub mod memory;
pub mod report;
pub mod resample;
pub mod session;
pub mod synth;
pub mod timeframe;
pub mod timestamp;
mod write;
pub mod year;

pub use bars::{Bars, DAY_MS, Universe};
pub use error::MarketError;
pub use load::{
    BarStamp, GivenFrame, JoinOptions, LoadOptions, LoadProgress, LoadStage, LoadState, LoadedData, files_of,
    join_frame, load, load_frames, symbol_of_file,
};
pub use report::DataReport;
pub use write::{
    TableColumn, bar_batches, check_output, table_batch, write, write_csv, write_parquet, write_table,
};
pub use year::year_days;
