//! The exported equity: its figures, computed from the file alone, are those of the report.

use std::collections::BTreeMap;
use std::path::Path;

use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Metric, Overrides};
use tidemill_lab::parts::PartFigures;
use tidemill_lab::{BacktestReport, Dataset, Experiment, equity, open_strategy};
use tidemill_market::timestamp::parse_ms;

const DAY_MS: i64 = 86_400_000;

struct Row {
    day: i64,
    part: String,
    /// equity, return, exposure, benchmark, benchmark_return
    numbers: [f64; 5],
}

fn exported(report: &BacktestReport, path: &Path) -> Vec<Row> {
    equity::write(report, path).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("date,part,equity,return,exposure,benchmark,benchmark_return"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Row {
            day: parse_ms(cells[0]).unwrap() / DAY_MS,
            part: cells[1].into(),
            numbers: std::array::from_fn(|at| cells[at + 2].parse().unwrap()),
        }
    };
    lines.map(row).collect()
}

fn report(set: &[(&str, &str)]) -> BacktestReport {
    let set = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let strategy = open_strategy("zscore-dip", &Overrides { set, ..Overrides::default() }).unwrap();
    let layout = Layout {
        // At midnight, so that every day belongs to one part alone.
        cut_ms: Some(parse_ms("2020-04-15").unwrap()),
        holdout_from_ms: Some(parse_ms("2020-06-01").unwrap()),
        ..Layout::default()
    };
    Experiment::new(strategy, Dataset::generated()).layout(layout).backtest().unwrap()
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0)
}

/// Total return and Sharpe ratio by the formulas of `docs/semantics.md`.
fn figures(returns: &[f64], year_days: f64) -> (f64, f64) {
    let total = returns.iter().fold(1.0, |equity, change| equity * (1.0 + change)) - 1.0;
    let n = returns.len() as f64;
    let mean = returns.iter().sum::<f64>() / n;
    let variance = returns.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (total, mean / variance.sqrt() * year_days.sqrt())
}

#[test]
fn figures_of_the_file_are_those_of_the_report_on_every_part() {
    let dir = tempfile::tempdir().unwrap();
    let report = report(&[]);
    let rows = exported(&report, &dir.path().join("equity.csv"));
    let parts = &report.parts;
    let check = |part: &PartFigures, rows: &[&Row]| {
        assert_eq!((rows.len(), rows[0].day), (part.days, part.daily[0].day), "{:?}", part.part);
        let column = |at: usize| rows.iter().map(|row| row.numbers[at]).collect::<Vec<f64>>();
        let (total, sharpe) = figures(&column(1), part.year_days);
        assert!(near(total, part.metrics.get(Metric::TotalReturn).unwrap()), "{:?}", part.part);
        assert!((sharpe / part.metrics.get(Metric::Sharpe).unwrap() - 1.0).abs() < 1e-9, "{:?}", part.part);
    };
    check(&parts.whole, &rows.iter().collect::<Vec<_>>());
    for part in [Some(&parts.in_sample), parts.out_of_sample.as_ref(), parts.holdout.as_ref()] {
        let part = part.unwrap();
        check(part, &rows.iter().filter(|row| row.part == part.part.key()).collect::<Vec<_>>());
    }
    // Marks follow from returns, and the benchmark's from its own.
    let (mut equity, mut held) = (1.0, 1.0);
    for row in &rows {
        equity *= 1.0 + row.numbers[1];
        held *= 1.0 + row.numbers[4];
        assert!(near(row.numbers[0], equity) && near(row.numbers[3], held), "day {}", row.day);
    }
    assert!(near(held - 1.0, parts.whole.benchmark_return.unwrap()));
    assert!((equity - 1.0).abs() > 1e-3 && (held - 1.0).abs() > 1e-3, "both moved");
}

#[test]
fn exposure_by_the_day_averages_to_that_of_the_whole_period() {
    let dir = tempfile::tempdir().unwrap();
    for sizing in ["all_in", "{ fraction = 0.25 }"] {
        let report = report(&[("sizing", sizing)]);
        let rows = exported(&report, &dir.path().join("equity.csv"));
        let mut n_bars: BTreeMap<i64, usize> = BTreeMap::new();
        for segment in &report.segments {
            let bars = &report.experiment.data.universe.symbols[segment.symbol];
            segment.range.clone().for_each(|bar| *n_bars.entry(bars.day(bar)).or_default() += 1);
        }
        let held: f64 = rows.iter().map(|row| row.numbers[2] * n_bars[&row.day] as f64).sum();
        let mean = held / n_bars.values().sum::<usize>() as f64;
        let wanted = report.parts.whole.market.unwrap().net_exposure.unwrap();
        assert!(wanted > 0.01 && near(mean, wanted), "{sizing}: {mean} {wanted}");
    }
}
