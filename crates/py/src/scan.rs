//! The trend of many symbols, ranked.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use tidemill_market::atc::{AtcOptions, Preset};
use tidemill_market::{TableColumn, table_batch};
use tidemill_scan::{DeviceOptions, Row, ScanError, ScanOptions, Scanner, Symbol};

use crate::attend::released;
use crate::bars::RawBars;
use crate::error;
use crate::frame::RawTable;
use crate::study::runtime;

/// Scans; the result is a table of the symbols with a signal, one of the average of every bar, and the others with their reasons as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the flags of the command")]
pub fn scan(
    py: Python<'_>,
    bars: &RawBars,
    preset: &str,
    set: Vec<(String, String)>,
    min_signal: f64,
    n_bars: Option<usize>,
    history: bool,
    device: &str,
) -> PyResult<(RawTable, Option<RawTable>, String)> {
    let preset: Preset = preset.parse().map_err(|error| PyValueError::new_err(format!("preset: {error}")))?;
    let mut atc = AtcOptions::preset(preset);
    for (name, value) in &set {
        atc.set(name, value)
            .map_err(|error| PyValueError::new_err(format!("set {name}={value}: {error}")))?;
    }
    let options = ScanOptions { atc, min_signal, bars: n_bars, history };
    let runtime = runtime(py, device, &Arc::new(AtomicBool::new(false)))?;
    let universe = &bars.data.universe;
    // A signal of an older bar would pass for the latest, so a symbol whose newest row was dropped is not scanned.
    let is_usable =
        |at: usize| bars.report.symbols.get(at).is_none_or(|found| found.newest_dropped.is_none());
    let usable: Vec<usize> = (0..universe.symbols.len()).filter(|at| is_usable(*at)).collect();
    let scanned = released(py, || {
        let devices = &runtime.devices;
        let device_options = DeviceOptions::default();
        let mut scanner = match devices.may_fall_back {
            true => Scanner::or_cpu(options, &devices.devices, &device_options)?,
            false => Scanner::on_devices(options, &devices.devices, &device_options)?,
        };
        let symbols = usable.iter().map(|at| &universe.symbols[*at]);
        let symbols: Vec<Symbol<'_>> =
            symbols.map(|bars| Symbol { name: &bars.symbol, closes: &bars.close }).collect();
        scanner.scan(&symbols, |_| ())
    })?;
    let scanned = scanned.map_err(|error| match error {
        ScanError::Device { .. } => error::raised(py, "DeviceError", &error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    })?;
    let ranking = scanned.ranking();
    let rows: Vec<&Row> = ranking.long.iter().chain(&ranking.short).copied().collect();
    let times = |row: &Row| {
        let times = &universe.symbols[usable[row.index]].ts_ms;
        &times[times.len().saturating_sub(row.bars)..]
    };
    let number = |of: fn(&Row) -> f64| TableColumn::Number(rows.iter().map(|row| of(row)).collect());
    let whole = |of: fn(&Row) -> i64| TableColumn::Whole(rows.iter().map(|row| of(row)).collect());
    let table = [
        ("symbol", TableColumn::Text(rows.iter().map(|row| row.symbol.clone()).collect())),
        ("signal", number(|row| row.signal)),
        ("trend", whole(|row| row.trend.into())),
        ("class", TableColumn::Text(rows.iter().map(|row| row.class.to_string()).collect())),
        ("price", number(|row| row.price)),
        ("bars", whole(|row| row.bars as i64)),
        (
            "first_time",
            TableColumn::Time(rows.iter().filter_map(|row| times(row).first().copied()).collect()),
        ),
        ("last_time", TableColumn::Time(rows.iter().filter_map(|row| times(row).last().copied()).collect())),
    ];
    let history = history.then(|| {
        let each = rows.iter().flat_map(|row| {
            let average = row.average.as_deref().unwrap_or_default();
            times(row).iter().zip(average).map(|(time, value)| (row.symbol.clone(), *time, *value))
        });
        let (names, (times, values)): (Vec<String>, (Vec<i64>, Vec<f64>)) =
            each.map(|(name, time, value)| (name, (time, value))).unzip();
        [
            ("symbol", TableColumn::Text(names)),
            ("timestamp", TableColumn::Time(times)),
            ("average", TableColumn::Number(values)),
        ]
    });
    let others = json!({
        "filtered": scanned.filtered.iter().map(|one| json!({ "symbol": one.symbol, "signal": one.signal })).collect::<Vec<_>>(),
        "skipped": scanned.skipped.iter().map(|one| json!({ "symbol": one.symbol, "reason": one.reason.to_string() })).chain(
            (0..universe.symbols.len()).filter(|at| !is_usable(*at)).map(|at| {
                json!({ "symbol": universe.symbols[at].symbol, "reason": "its newest row could not be used" })
            })
        ).collect::<Vec<_>>(),
    });
    let made = |columns: &[(&str, TableColumn)]| {
        let batch = table_batch(columns).map_err(|error| error::defect(py, &error.to_string()))?;
        PyResult::Ok(RawTable::new(batch.schema(), vec![batch]))
    };
    Ok((made(&table)?, history.map(|columns| made(&columns)).transpose()?, others.to_string()))
}
