//! Tables that are in memory already, as Arrow's batches: what a data frame of Python hands over.
//!
//! They take the way of a file from the first look at their columns on, so that equal rows give equal bars.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::arrow::sample;
use super::column::Wanted;
use super::frame::{Plan, Rows, check_rows, stack};
use super::join::attach_table;
use super::name::Name;
use super::read::{Outcome, check_stamp};
use super::table::Table;
use super::{JoinOptions, LoadOptions, LoadedData, assemble, zone};
use crate::bars::Universe;
use crate::clean::Source;
use crate::error::MarketError;
use crate::report::FeatureReport;

/// A table in memory.
#[derive(Clone, Debug)]
pub struct GivenFrame {
    /// The symbol of all rows, if no column names them.
    pub symbol: String,
    /// What stands for its file in messages and in the report.
    pub origin: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl GivenFrame {
    fn table(&self, zone: &TimeZone, wanted: Wanted) -> Result<Table, MarketError> {
        let path = Path::new(&self.origin);
        let fail = |message: String| MarketError::Arrow { path: path.to_path_buf(), message };
        let n_rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        check_rows(n_rows as u64, path)?;
        let sample = sample(&self.schema, self.batches.iter().find(|batch| batch.num_rows() > 0));
        let mut tables = Vec::new();
        for (ticker, plan) in Plan::all(&self.schema, &sample, path, wanted)? {
            let mut rows = Rows::new(&plan, n_rows);
            for batch in &self.batches {
                let chosen = batch.project(&plan.wanted).map_err(|error| fail(error.to_string()))?;
                rows.push(&chosen).map_err(fail)?;
            }
            tables.push((ticker, rows.finish(zone, path)?));
        }
        Ok(stack(tables))
    }
}

/// Cleans tables in memory as [`load`](crate::load()) cleans files.
pub fn load_frames(frames: &[GivenFrame], options: &LoadOptions) -> Result<LoadedData, MarketError> {
    let zone = zone(options)?;
    let read = |frame: &GivenFrame| -> Result<(Source, &'static str), MarketError> {
        let table = frame.table(&zone, Wanted::Bars)?;
        check_stamp(Path::new(&frame.origin), &table, options.stamp)?;
        let symbol = options.name.clone().unwrap_or_else(|| frame.symbol.clone());
        // Frames that are given under one name are parts of one history.
        Ok((Source { file: frame.origin.clone(), name: Name { symbol, is_part: true }, table }, "frame"))
    };
    let outcome =
        |frame: &GivenFrame| Outcome { path: frame.origin.clone().into(), is_given: true, read: read(frame) };
    assemble(frames.par_iter().map(outcome).collect(), &zone, options)
}

/// Joins the columns of a table in memory to bars by time, as [`LoadOptions::join`] joins those of a file.
pub fn join_frame(
    universe: &mut Universe,
    frame: &GivenFrame,
    join: &JoinOptions,
    timezone: Option<&str>,
) -> Result<FeatureReport, MarketError> {
    let options = LoadOptions { timezone: timezone.map(str::to_owned), ..LoadOptions::default() };
    attach_table(universe, &frame.table(&zone(&options)?, Wanted::Features)?, join)
}
