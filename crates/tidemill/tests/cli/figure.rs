//! Figures of whole commands, worked out a second time from the daily returns of single trials: what a verdict is given, and what a walk
//! sums up. By their definitions (`docs/semantics.md`, the papers named in `crates/verdict`), over a market with weekends and one without.

#[path = "figure/definition.rs"]
mod definition;

use serde_json::Value;
use tidemill_backtest::segment::{Layout, Role, Segment};
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::synth::{Planted, RegimeOptions, regime};
use tidemill_market::{Bars, DAY_MS, Universe, write_parquet};
use tidemill_search::Space;
use tidemill_verdict::bootstrap::N_RESAMPLES;
use tidemill_verdict::{Alpha, Blocks, Moments, bootstrap, neighbors, overfit, plateau};

use self::definition::{correlation, mean, moment, moments, sample_variance, sharpe};
use crate::support::Place;

const STRATEGY: &str = r#"
[params]
window = { int = [20, 90], default = 60 }
threshold = { float = [0.4, 2.8], default = 1.5 }

[long]
enter = "zscore(close, window) < -threshold"
max_hold = 12

[execution]
fee_bps = 1.0
slippage_bps = 0.5

[objective]
maximize = "sharpe"
require = "trades >= 40"
"#;

/// Blocks of time that trials are compared by, and the seed of what is drawn for a verdict.
const N_BLOCKS: usize = 16;
const SEED: u64 = 0x7469_6465;

/// Hourly bars of 240 days from 1 January 2020 on, and the days of their year.
fn markets() -> [(Universe, f64); 2] {
    let edge = Planted { strength: 0.3, ..Planted::default() };
    let options = RegimeOptions { planted: Some(edge), ..RegimeOptions::hourly(1, 24 * 240) };
    let all = regime(&options);
    let mut week = all.clone();
    for bars in &mut week.symbols {
        // 1 January 1970 was a Thursday.
        let is_kept: Vec<bool> = bars.ts_ms.iter().map(|ts| (ts.div_euclid(DAY_MS) + 3) % 7 < 5).collect();
        let mut flags = is_kept.iter();
        bars.ts_ms.retain(|_| *flags.next().unwrap());
        for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close, &mut bars.volume] {
            let mut flags = is_kept.iter();
            column.retain(|_| *flags.next().unwrap());
        }
    }
    [(all, 365.0), (week, 252.0)]
}

fn place(universe: &Universe) -> Place {
    let place = Place::new();
    write_parquet(universe, &place.path("bars.parquet")).unwrap();
    place.write("dip.toml", STRATEGY);
    place
}

fn strategy(source: &str) -> Strategy {
    Strategy::parse("dip.toml", source, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// One trial over segments: its daily returns on a part, the days included on which nothing changed, and the returns of its trades.
struct Walk {
    daily: Vec<(i64, f64)>,
    trades: Vec<f64>,
}

impl Walk {
    fn new(strategy: &Strategy, universe: &Universe, segments: &[Segment], row: &[f64], role: Role) -> Self {
        let options = EngineOptions::default();
        let mut engine = Engine::new(strategy, universe, segments.to_vec(), options).unwrap();
        let details = engine.detail(row);
        let counting = segments.iter().zip(&details).filter(|(segment, _)| segment.role == role);
        let trades = counting.flat_map(|(_, detail)| detail.trades.iter().map(|trade| trade.ret)).collect();
        Self { daily: engine.daily_returns(&details, role), trades }
    }

    fn returns(&self) -> Vec<f64> {
        self.daily.iter().map(|(_, change)| *change).collect()
    }

    fn sharpe(&self, year_days: f64) -> f64 {
        sharpe(&self.returns()) * year_days.sqrt()
    }
}

/// The market: daily returns of buying at the first open of a part and closing at its last close, with the costs of the strategy.
fn held(bars: &Bars, part: &Segment) -> Vec<f64> {
    let cost = (1.0 + 0.5) / 10_000.0;
    let entry = bars.open[part.range.start];
    let day = |bar: usize| bars.ts_ms[bar].div_euclid(DAY_MS);
    let mut last = 1.0;
    let mut out = Vec::new();
    for bar in part.range.clone() {
        if bar + 1 == part.range.end || day(bar + 1) != day(bar) {
            let close = bars.close[bar];
            let mark = 1.0 + (close - entry - (entry + close) * cost) / entry;
            out.push(mark / last - 1.0);
            last = mark;
        }
    }
    out
}

#[track_caller]
fn same(found: &Value, wanted: f64, what: &str) {
    let value = found.as_f64().unwrap_or_else(|| panic!("{what}: found {found}, wanted {wanted}"));
    assert!(
        (value - wanted).abs() <= 1e-9 * wanted.abs().max(1e-3),
        "{what}: found {value}, wanted {wanted}"
    );
}

/// The rows of an export, by column.
struct Trials {
    names: Vec<String>,
    rows: Vec<Vec<Option<f64>>>,
}

impl Trials {
    fn of(place: &Place, study: &str) -> Self {
        let text = place.ok(&format!("study export {study} --format csv")).stdout;
        let mut lines = text.lines();
        let names = lines.next().unwrap().split(',').map(str::to_owned).collect();
        let rows = lines.map(|line| line.split(',').map(|cell| cell.parse().ok()).collect()).collect();
        Self { names, rows }
    }

    fn get(&self, trial: usize, name: &str) -> Option<f64> {
        self.rows[trial][self.names.iter().position(|known| known == name).unwrap()]
    }

    fn row(&self, trial: usize) -> Vec<f64> {
        ["window", "threshold"].map(|name| self.get(trial, name).unwrap()).to_vec()
    }
}

#[test]
fn every_number_of_a_verdict_follows_from_the_trials() {
    // 20 July 2020.
    let holdout_from_ms = 18_463 * DAY_MS;
    for (universe, year_days) in markets() {
        let place = place(&universe);
        let line = "sweep dip.toml --data bars.parquet --sampler sobol --trials 96 --top 3 --split 0.75";
        let answer = place.json(&format!("{line} --holdout 2020-07-20.. --device cpu --out study"));
        assert_eq!(answer["year_days"], year_days);
        let strategy = strategy(STRATEGY);
        let layout =
            Layout { split: Some(0.75), holdout_from_ms: Some(holdout_from_ms), ..Layout::default() };
        let segments = layout.segments(&universe).unwrap();
        let holdout = layout.holdout(&universe).unwrap();
        let walk = |row: &[f64], role| Walk::new(&strategy, &universe, &segments, row, role);

        let trials = Trials::of(&place, "study");
        let valid: Vec<usize> = (0..96).filter(|at| trials.get(*at, "objective").is_some()).collect();
        assert!((30..90).contains(&valid.len()), "some trials are valid and some are not: {}", valid.len());
        let returns: Vec<Vec<f64>> =
            valid.iter().map(|at| walk(&trials.row(*at), Role::Train).returns()).collect();
        for (at, returns) in valid.iter().zip(&returns) {
            let stored = trials.get(*at, "sharpe").unwrap();
            same(&stored.into(), sharpe(returns) * year_days.sqrt(), "the ratio that a trial is stored with");
        }

        // What all trials together say.
        let report = &answer["holding_up"];
        let n = valid.len() as f64;
        same(&report["trials"], n, "trials");
        let ratios: Vec<f64> = returns.iter().map(|returns| sharpe(returns)).collect();
        same(&report["sharpe_variance"], sample_variance(&ratios), "variance of the ratios, by the day");
        let n_days = returns[0].len();
        let cut = |block: usize| n_days * block / N_BLOCKS;
        let days: Vec<u32> = (0..N_BLOCKS).map(|block| (cut(block + 1) - cut(block)) as u32).collect();
        let by_block = |returns: &[f64], of: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            (0..N_BLOCKS).map(|block| of(&returns[cut(block)..cut(block + 1)])).collect()
        };
        let sums: Vec<Vec<f64>> =
            returns.iter().map(|returns| by_block(returns, &|block| block.iter().sum())).collect();
        let mut pairs = Vec::new();
        for (at, a) in sums.iter().enumerate() {
            pairs.extend(sums[..at].iter().map(|b| correlation(a, b)));
        }
        let shared = mean(&pairs);
        same(&report["mean_correlation"], shared, "mean correlation of all pairs");
        assert!(shared > 0.1, "trials are alike: {shared}");
        let independent = shared + (1.0 - shared) * n;
        same(&report["independent_trials"], independent, "independent trials");
        // Without variance the ratio of a block counts as 0.
        let flat_is_0 = |block: &[f64]| if sample_variance(block) > 0.0 { sharpe(block) } else { 0.0 };
        let noises: Vec<f64> = returns
            .iter()
            .map(|returns| sample_variance(&by_block(returns, &flat_is_0)) / N_BLOCKS as f64)
            .filter(|noise| *noise > 0.0)
            .collect();
        let noise = mean(&noises).max(1.0 / (n_days as f64 - 1.0));
        same(&report["noise_variance"], noise, "variance of a ratio by chance");
        let mut blocks = Blocks::new(&days);
        returns.iter().for_each(|returns| blocks.push_returns(returns));
        let overfitting = overfit(&blocks).unwrap().probability;
        same(&report["overfit"]["probability"], overfitting, "probability of overfitting");
        same(&report["overfit"]["n_trials"], n, "trials behind it");

        // What each winner is given.
        let costly =
            self::strategy(&STRATEGY.replace("fee_bps = 1.0", "fee_bps = 2.0").replace("0.5", "1.0"));
        let late = "(zscore(close, window) < -threshold)[1]";
        let late = self::strategy(&STRATEGY.replace("zscore(close, window) < -threshold", late));
        let space = space(&strategy, &universe, &segments);
        let winners = report["winners"].as_array().unwrap();
        assert_eq!(winners.len(), 3);
        for winner in winners {
            let trial = winner["trial"].as_u64().unwrap() as usize;
            let row = trials.row(trial);
            let train = walk(&row, Role::Train);
            let returns = train.returns();
            let moments = moments(&returns);
            same(&winner["moments"]["n"], moments.n as f64, "days");
            same(&winner["moments"]["sharpe"], moments.sharpe, "ratio by the day");
            same(&winner["moments"]["skew"], moments.skew, "skew");
            same(&winner["moments"]["kurtosis"], moments.kurtosis, "kurtosis");
            same(&winner["probabilistic"], moments.probabilistic(0.0), "probabilistic ratio");
            let deflated = moments.deflated(independent, noise);
            same(&winner["deflated"], deflated, "deflated ratio");
            let of_all = moments.deflated(n, noise);
            assert!(deflated - of_all > 1e-6, "all trials would give another one: {deflated} and {of_all}");
            let by_spread = moments.deflated(independent, sample_variance(&ratios));
            same(&winner["deflated_by_spread"], by_spread, "deflated by the spread of the trials");
            let length = moments.min_track_record(0.0, 0.95).unwrap();
            same(&winner["min_track_record_days"], length, "least length of a record");

            let in_sample = train.sharpe(year_days);
            assert!(in_sample > 0.0);
            let counting: Vec<Segment> =
                segments.iter().filter(|segment| segment.role == Role::Train).cloned().collect();
            let under = |strategy: &Strategy| {
                Walk::new(strategy, &universe, &counting, &row, Role::Train).sharpe(year_days)
            };
            let unseen = walk(&row, Role::Test).sharpe(year_days);
            let held_out = Walk::new(&strategy, &universe, &holdout, &row, Role::Test).sharpe(year_days);
            let ratios = [
                ("in_sample", in_sample),
                ("out_of_sample", unseen),
                ("holdout", held_out),
                ("double_costs", under(&costly)),
                ("delayed", under(&late)),
            ];
            for (name, wanted) in ratios {
                same(&winner["sharpe"][name], wanted, name);
                if name == "in_sample" || name == "out_of_sample" || name == "holdout" {
                    same(&winner["objective"][name], wanted, &format!("objective {name}"));
                }
            }

            // Against the market, on every part.
            let [test, held_out_walk] = [(&segments, Role::Test), (&holdout, Role::Test)]
                .map(|(segments, role)| Walk::new(&strategy, &universe, segments, &row, role));
            let unseen_part = segments.iter().find(|segment| segment.role == Role::Test).unwrap();
            let parts = [
                ("in_sample", &train, &counting[0]),
                ("out_of_sample", &test, unseen_part),
                ("holdout", &held_out_walk, &holdout[0]),
            ];
            let mut beyond = f64::NAN;
            let mut t_alpha = f64::NAN;
            for (name, walk, part) in parts {
                let (r, h) = (walk.returns(), held(&universe.symbols[0], part));
                assert_eq!(r.len(), h.len(), "{name}");
                let found = &winner["market"][name];
                let beta = correlation(&r, &h) * (moment(&r, 2) / moment(&h, 2)).sqrt();
                same(&found["beta"], beta, &format!("beta {name}"));
                let alpha = (mean(&r) - beta * mean(&h)) * year_days;
                same(&found["alpha"], alpha, &format!("alpha {name}"));
                let total =
                    |returns: &[f64]| returns.iter().fold(1.0, |equity, change| equity * (1.0 + change));
                same(&found["benchmark_return"], total(&h) - 1.0, &format!("the market's return {name}"));
                same(&found["excess_return"], total(&r) - total(&h), &format!("return beyond it {name}"));
                let t = Alpha::new(&r, &h, year_days).t_alpha;
                assert_eq!(found["t_alpha"].is_null(), t.is_none(), "{name}");
                if let Some(t) = t {
                    same(&found["t_alpha"], t, &format!("t of alpha {name}"));
                }
                if name == "in_sample" {
                    let left: Vec<f64> = r.iter().zip(&h).map(|(r, h)| r - beta * h).collect();
                    beyond = self::moments(&left).deflated(independent, noise);
                    t_alpha = t.unwrap();
                }
            }
            same(&winner["deflated_beyond_market"], beyond, "deflated ratio beyond the market");

            let near = neighbors(&space, &row, 12, SEED);
            let around: Vec<Option<f64>> = (0..near.len())
                .map(|at| {
                    let mut row = vec![0.0; 2];
                    near.read_row(at, &mut row);
                    let walk = walk(&row, Role::Train);
                    (walk.trades.len() >= 40).then(|| walk.sharpe(year_days))
                })
                .collect();
            let kept = plateau(in_sample, &around).and_then(|plateau| plateau.kept).unwrap();
            same(&winner["neighbors"]["kept"], kept, "what the neighbours keep");
            let interval = bootstrap(&train.trades, N_RESAMPLES, 0.95, SEED).unwrap();
            same(&winner["trades"]["mean"], mean(&train.trades), "mean of the trades");
            same(&winner["trades"]["n"], train.trades.len() as f64, "trades");
            same(&winner["trades"]["low"], interval.low, "lower end of their mean");

            // What the checks compare with their limits.
            let checks = [
                ("luck", deflated.min(beyond)),
                ("market", t_alpha),
                ("overfitting", overfitting),
                ("out of sample", unseen / in_sample),
                ("holdout", held_out / in_sample),
                ("costs", under(&costly) / in_sample),
                ("delay", under(&late) / in_sample),
                ("neighbours", kept),
                ("trades", interval.low),
            ];
            for (name, wanted) in checks {
                let all = winner["checks"].as_array().unwrap();
                let check = all.iter().find(|check| check["name"] == name);
                let check = check.unwrap_or_else(|| panic!("there is no check `{name}`"));
                same(&check["value"], wanted, name);
                if name == "luck" {
                    let words = check["words"].as_str().unwrap();
                    assert!(words.contains(&format!(" {independent:.0} independent")), "{words}");
                }
            }
        }
    }
}

fn space(strategy: &Strategy, universe: &Universe, segments: &[Segment]) -> Space {
    Engine::new(strategy, universe, segments.to_vec(), EngineOptions::default()).unwrap().space()
}

/// Midnight of a date.
fn midnight_ms(date: &Value) -> i64 {
    let date: jiff::civil::Date = date.as_str().unwrap().parse().unwrap();
    date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_millisecond()
}

#[test]
fn every_number_of_a_walk_follows_from_its_windows() {
    for (universe, year_days) in markets() {
        let place = place(&universe);
        let line =
            "walkforward dip.toml --data bars.parquet --train 80d --test 20d --sampler sobol --trials 24";
        let answer = place.json(&format!("{line} --device cpu"));
        assert_eq!(answer["year_days"], year_days);
        let walk = &answer["walk_forward"];
        let windows = walk["windows"].as_array().unwrap();
        assert_eq!(windows.len(), 8);
        let strategy = strategy(STRATEGY);
        let (mut stitched, mut promised, mut n_trades, mut n_winning) = (Vec::new(), Vec::new(), 0, 0);
        for (at, window) in windows.iter().enumerate() {
            let layout = Layout {
                from_ms: Some(midnight_ms(&window["train_from"])),
                cut_ms: Some(midnight_ms(&window["test_from"])),
                // The last one ends with the data.
                to_ms: (at < 7).then(|| midnight_ms(&window["test_to"])),
                ..Layout::default()
            };
            let segments = layout.segments(&universe).unwrap();
            let chosen = &window["parameters"];
            assert!(window["trial"].is_number(), "every search has a winner: {window}");
            let row = ["window", "threshold"].map(|name| chosen[name].as_f64().unwrap());
            let [train, test] =
                [Role::Train, Role::Test].map(|role| Walk::new(&strategy, &universe, &segments, &row, role));
            same(&window["sharpe"][0], train.sharpe(year_days), "ratio of what was searched");
            same(&window["objective"][0], train.sharpe(year_days), "objective of what was searched");
            same(&window["mean_daily"][0], mean(&train.returns()), "mean of what was searched");
            if !test.trades.is_empty() {
                same(&window["sharpe"][1], test.sharpe(year_days), "ratio of what was traded");
                same(&window["objective"][1], test.sharpe(year_days), "objective of what was traded");
            }
            same(&window["mean_daily"][1], mean(&test.returns()), "mean of what was traded");
            let total = test.returns().iter().fold(1.0, |equity, change| equity * (1.0 + change)) - 1.0;
            same(&window["total_return"], total, "return of a window");
            same(&window["trades"], test.trades.len() as f64, "trades of a window");
            n_trades += test.trades.len();
            n_winning += usize::from(total > 0.0);
            promised.push(mean(&train.returns()));
            stitched.extend(test.daily);
        }
        let returns: Vec<f64> = stitched.iter().map(|(_, change)| *change).collect();
        let (mut value, mut peak, mut deepest) = (1.0_f64, 1.0_f64, 0.0_f64);
        let equity = walk["equity"].as_array().unwrap();
        assert_eq!(equity.len(), stitched.len());
        for (found, (day, change)) in equity.iter().zip(&stitched) {
            value *= 1.0 + change;
            peak = peak.max(value);
            deepest = deepest.min(value / peak - 1.0);
            assert_eq!(found[0].as_i64(), Some(*day));
            same(&found[1], value, "equity");
        }
        same(&walk["sharpe"], sharpe(&returns) * year_days.sqrt(), "ratio of the whole, by the year");
        same(&walk["total_return"], value - 1.0, "return of the whole");
        same(&walk["max_drawdown"], deepest, "deepest fall of the whole");
        let sure = Moments::new(&returns).unwrap().probabilistic(0.0);
        same(&walk["probabilistic_sharpe"], sure, "probability that the ratio is above 0");
        same(&walk["efficiency"], mean(&returns) / mean(&promised), "what was kept of the promises");
        same(&walk["winning_windows"], n_winning as f64 / 8.0, "windows that won");
        same(&walk["trades"], n_trades as f64, "trades of the whole");
    }
}

/// The signals of `crates/backtest/tests/metrics` as columns beside the prices.
fn planned(symbol: &str) -> String {
    let rows = |text: &'static str| -> Vec<Vec<&'static str>> {
        text.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[0] == symbol).collect()
    };
    let bars = rows(include_str!("../../../backtest/tests/metrics/bars.csv"));
    // Side, whether to leave, stop and target; a level of 0 is none.
    let mut told = vec![["0", "0", "0", "0"]; bars.len()];
    for trade in rows(include_str!("../../../backtest/tests/metrics/trades.csv")) {
        let [entry, exit] = [1, 2].map(|at| trade[at].parse::<usize>().unwrap());
        (told[entry - 1][0], told[entry - 1][2]) = (trade[3], trade[6]);
        told[entry - 1][3] = if trade[7].is_empty() { "0" } else { trade[7] };
        if trade[8] == "signal" {
            told[exit - 1][1] = "1";
        }
    }
    let mut text = "timestamp,open,high,low,close,volume,side,leave,stop_at,target_at\n".to_owned();
    for (bar, told) in bars.iter().zip(&told) {
        text += &format!("{},1,{}\n", bar[1..].join(","), told.join(","));
    }
    text
}

#[test]
fn commands_show_the_metrics_that_other_libraries_find() {
    let place = Place::new();
    let side = |name: &str, side: &str| {
        format!(
            "[{name}]\nenter = 'side == {side} and idle > 0'\nstop = 'stop_at'\ntarget = 'target_at'\nexit = 'leave == 1'\n"
        )
    };
    let head = "[params]\nidle = { int = [1, 2], default = 1 }\n";
    let tail = "[execution]\nfee_bps = 4.0\nslippage_bps = 2.0\n[objective]\nmaximize = 'sharpe'\nreduce = 'pooled'\n";
    place.write("planned.toml", format!("{head}{}{}{tail}", side("long", "1"), side("short", "-1")));
    for symbol in ["coin", "stock", "token"] {
        place.write(&format!("{symbol}.csv"), planned(symbol));
    }
    let table = include_str!("../../../backtest/tests/metrics/expected.csv");
    let cases: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let all: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    for (case, data, year_days) in [
        ("coin", "coin.csv", 365.0),
        ("stock", "stock.csv", 252.0),
        ("pool", "coin.csv token.csv", 365.0),
        ("mixed", "coin.csv stock.csv", 365.0),
    ] {
        let column = cases.iter().position(|known| *known == case).unwrap();
        let tested = place.json(&format!("backtest planned.toml --data {data}"));
        let swept = place.json(&format!(
            "sweep planned.toml --data {data} --trials 2 --sampler grid --verdict off --device cpu"
        ));
        for (command, answer, metrics) in
            [("backtest", &tested, &tested["metrics"]), ("sweep", &swept, &swept["best"][0]["metrics"])]
        {
            assert_eq!(answer["year_days"], year_days, "{command} {case}");
            for (name, found) in metrics.as_object().unwrap() {
                let Some(row) = all.iter().find(|cells| cells[0] == name) else {
                    panic!("{name} has no row in the table")
                };
                let what = format!("{command} {case}: {name}");
                match row[column] {
                    "" => assert!(found.is_null(), "{what}: {found}"),
                    wanted => same(found, wanted.parse().unwrap(), &what),
                }
            }
        }
        same(&tested["objective"]["value"], tested["metrics"]["sharpe"].as_f64().unwrap(), "objective");
        assert_eq!(swept["best"][0]["objective"], swept["best"][0]["metrics"]["sharpe"]);
    }
}
