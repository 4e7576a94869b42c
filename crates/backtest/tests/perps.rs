//! `strategies/perps-trend.toml`, the strategy of the benchmark perps-142: it has as many parameters as it says, it trades, and its parameters matter.

use std::path::Path;

use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::Universe;
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::{Domain, Points, SamplerKind, SamplerSettings};

/// Points from which each parameter is changed.
const BASES: usize = 8;

fn strategy() -> Strategy {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies/perps-trend.toml");
    Strategy::open(&file, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn engine<'a>(strategy: &'a Strategy, universe: &'a Universe) -> Engine<'a> {
    let segments = Layout::default().segments(universe).unwrap();
    Engine::new(strategy, universe, segments, EngineOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Other values of a parameter: all of a few, some of many.
fn others(domain: &Domain, value: f64) -> Vec<f64> {
    let mut all = domain.grid_values(5);
    all.retain(|other| *other != value);
    all
}

#[test]
fn the_strategy_has_142_parameters_and_trades() {
    let (strategy, universe) = (strategy(), regime(&RegimeOptions::hourly(8, 5_000)));
    assert_eq!(strategy.params.len(), 142);
    let mut engine = engine(&strategy, &universe);
    assert_eq!(engine.space().n_free(), 142);
    let mut points = Points::new(142);
    points.push(&engine.space().default_point());
    for (bars, tally) in universe.symbols.iter().zip(engine.evaluate(&points)[0].segments()) {
        assert!((20..=200).contains(&tally.trades), "{} has {} trades", bars.symbol, tally.trades);
        assert!(tally.longs > 0 && tally.longs < tally.trades, "{}: both sides", bars.symbol);
    }
}

/// Random points that trade, and around each of them one parameter at a time, where it is active.
#[test]
fn every_parameter_changes_results() {
    let (strategy, universe) = (strategy(), regime(&RegimeOptions::hourly(2, 5_000)));
    let mut engine = engine(&strategy, &universe);
    let space = engine.space();
    let drawn = SamplerKind::Random.build(&space, &SamplerSettings::new(1)).unwrap().ask(3_000);
    let results = engine.evaluate(&drawn);
    let trading: Vec<usize> = (0..drawn.len()).filter(|at| results[*at].train.trades >= 40).collect();
    let mut idle = Vec::new();
    for (param_idx, param) in space.params.iter().enumerate() {
        let mut changed = Points::new(space.len());
        let mut base_of = Vec::new();
        let active = trading.iter().filter(|at| !drawn.value(**at, param_idx).is_nan());
        for base in active.take(BASES) {
            let mut row = vec![0.0; space.len()];
            for other in others(&param.domain, drawn.value(*base, param_idx)) {
                drawn.read_row(*base, &mut row);
                row[param_idx] = other;
                changed.push(&row);
                base_of.push(*base);
            }
        }
        space.deactivate(&mut changed);
        let matters = engine
            .evaluate(&changed)
            .iter()
            .zip(base_of)
            .any(|(outcome, base)| outcome.segments() != results[base].segments());
        if !matters {
            idle.push(param.name.as_str());
        }
    }
    assert!(idle.is_empty(), "these parameters change nothing: {idle:?}");
}
