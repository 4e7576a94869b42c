//! The figures of a parameter set by part agree with one another and with back-tests of each part alone.

use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Metric, Overrides};
use tidemill_lab::{Dataset, Experiment, PartFigures, Parts, open_strategy};
use tidemill_market::synth;

const DAY_MS: i64 = 86_400_000;

fn experiment(n_symbols: usize, layout: Layout, set: &[(&str, &str)]) -> Experiment {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let strategy = open_strategy("zscore-dip", &Overrides { set, ..Overrides::default() }).unwrap();
    Experiment::new(strategy, Dataset::of(synth::walk(3, n_symbols, 24 * 200))).layout(layout)
}

/// Cut at midnight, so that no two parts share a day.
fn layout(n_symbols: usize) -> (Layout, i64, i64) {
    let first = synth::walk(3, n_symbols, 2).symbols[0].ts_ms[0];
    let (cut, holdout) = (first + 100 * DAY_MS, first + 150 * DAY_MS);
    assert_eq!(first % DAY_MS, 0);
    (Layout { cut_ms: Some(cut), holdout_from_ms: Some(holdout), ..Layout::default() }, cut, holdout)
}

fn bits(part: &PartFigures) -> Vec<u64> {
    part.metrics.values().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_part_is_the_back_test_of_its_time() {
    for n_symbols in [1, 3] {
        let (layout, cut, holdout) = layout(n_symbols);
        let parts = experiment(n_symbols, layout, &[]).backtest().unwrap().parts;
        let alone = |from_ms: Option<i64>, to_ms: Option<i64>| {
            let layout = Layout { from_ms, to_ms, ..Layout::default() };
            experiment(n_symbols, layout, &[]).backtest().unwrap().parts.whole
        };
        let [out_of_sample, held_out] =
            [&parts.out_of_sample, &parts.holdout].map(|part| part.as_ref().unwrap());
        let apart = [
            (&parts.in_sample, alone(None, Some(cut))),
            (out_of_sample, alone(Some(cut), Some(holdout))),
            (held_out, alone(Some(holdout), None)),
        ];
        for (part, alone) in apart {
            assert_eq!(bits(part), bits(&alone), "{:?}", part.part);
            assert_eq!(part.market, alone.market, "{:?}", part.part);
            assert_eq!((&part.from, &part.to, part.days), (&alone.from, &alone.to, alone.days));
            assert!(part.metrics.get(Metric::Trades).unwrap() > 5.0);
        }
    }
}

#[test]
fn the_whole_period_is_its_parts_one_after_the_other() {
    for n_symbols in [1, 3] {
        let parts = experiment(n_symbols, layout(n_symbols).0, &[]).backtest().unwrap().parts;
        let own = [Some(&parts.in_sample), parts.out_of_sample.as_ref(), parts.holdout.as_ref()];
        let sum = |of: &dyn Fn(&PartFigures) -> f64| own.iter().flatten().map(|part| of(part)).sum::<f64>();
        let whole = |metric: Metric| parts.whole.metrics.get(metric).unwrap();
        assert_eq!(whole(Metric::Trades), sum(&|part| part.metrics.get(Metric::Trades).unwrap()));
        assert_eq!(parts.whole.days as f64, sum(&|part| part.days as f64));
        let growth = own
            .iter()
            .flatten()
            .map(|part| 1.0 + part.metrics.get(Metric::TotalReturn).unwrap())
            .product::<f64>();
        assert!((growth - 1.0 - whole(Metric::TotalReturn)).abs() < 1e-12);
        let deepest = own.iter().flatten().map(|part| part.metrics.get(Metric::MaxDrawdown).unwrap());
        assert!(deepest.fold(0.0, f64::min) >= whole(Metric::MaxDrawdown));
        let last = *parts.equity().last().unwrap();
        assert!((last.1 - 1.0 - whole(Metric::TotalReturn)).abs() < 1e-12);
        assert!((last.2 - 1.0 - parts.whole.benchmark_return.unwrap()).abs() < 1e-12);
        assert_eq!(*parts.thinned_equity(7).last().unwrap(), last);
        assert!(parts.thinned_equity(7).len() <= 7);
    }
}

#[test]
fn one_part_alone_is_shown_once_and_units_are_not_compared() {
    let all = experiment(1, Layout::default(), &[("sizing", "unit")]).backtest().unwrap().parts;
    let labels = |parts: &Parts| parts.shown().iter().map(|part| part.part.label()).collect::<Vec<_>>();
    assert_eq!(labels(&all), ["whole period"]);
    assert!(all.additive && all.whole.market.is_none() && all.whole.spread.volatility.is_none());
    assert!(all.summary().iter().all(|row| row.key != "excess_return"));
    let searched = experiment(1, Layout::default(), &[]).sweep().trials(64).run().unwrap();
    assert_eq!(labels(&searched.parts.unwrap()), ["in sample"]);
}

#[test]
fn the_winner_of_a_sweep_has_its_parts_with_and_without_a_verdict_and_after_reading() {
    let experiment = experiment(2, layout(2).0, &[]);
    let sweep = || experiment.sweep().trials(64);
    let judged = sweep().run().unwrap();
    let parts = judged.parts.unwrap();
    assert_eq!(parts.shown().len(), 4);
    let plain = sweep().verdict(false).run().unwrap().parts.unwrap();
    assert_eq!(parts.table(), plain.table());
    let best = &judged.best[0];
    assert_eq!(parts.in_sample.objective, best.objective());
    assert_eq!(parts.out_of_sample.as_ref().unwrap().objective, best.test_objective());
    let report = serde_json::to_value(&*judged.verdict.unwrap()).unwrap();
    let read = tidemill_lab::verdict::store::winners(&report).remove(0);
    assert_eq!(read.parts.unwrap().table(), parts.table());
}
