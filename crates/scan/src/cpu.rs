//! A scan on the CPU: symbols side by side.

use std::time::Instant;

use rayon::prelude::*;
use tidemill_market::atc::{AtcError, AtcOptions, Growth, average, classify};

use crate::event::{BatchDone, ScanEvent, Stage, StageSpan};
use crate::scanner::Averages;

/// Symbols between two reports of progress.
const BATCH_SYMBOLS: usize = 1_024;

/// Computes all windows.
pub(crate) fn scan(
    windows: &[&[f64]],
    options: &AtcOptions,
    growth: &Growth,
    history: bool,
    mut observe: impl FnMut(ScanEvent),
) -> Result<Vec<Averages>, AtcError> {
    let began = Instant::now();
    let mut all = Vec::with_capacity(windows.len());
    for (number, batch) in windows.chunks(BATCH_SYMBOLS).enumerate() {
        let begin_ms = began.elapsed().as_secs_f64() * 1e3;
        let of = |scratch: &mut Vec<f64>, window: &&[f64]| {
            scratch.clear();
            scratch.resize(window.len(), f64::NAN);
            average(window, options, growth, scratch)?;
            let last = scratch.last().copied().unwrap_or(f64::NAN);
            let class = classify(last, options);
            Ok(Averages { last, class, all: history.then(|| scratch.clone()) })
        };
        let done: Result<Vec<Averages>, AtcError> = batch.par_iter().map_init(Vec::new, of).collect();
        all.extend(done?);
        let end_ms = began.elapsed().as_secs_f64() * 1e3;
        let span = StageSpan { stage: Stage::Kernel, device: None, stream: 0, begin_ms, end_ms };
        observe(ScanEvent::Batch(BatchDone {
            number,
            symbols: batch.len(),
            bars: batch.iter().map(|window| window.len()).sum(),
            done: all.len(),
            total: windows.len(),
            stages: vec![span],
        }));
    }
    Ok(all)
}
