//! Whether verdicts are right: winners of sweeps where there is nothing to find, and of sweeps where there is.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, METRICS, Overrides, Strategy};
use tidemill_market::Universe;
use tidemill_market::synth::{Planted, RegimeOptions, regime, walk};
use tidemill_search::rng::Stream;
use tidemill_search::{FunctionEvaluator, SamplerKind, SamplerSettings, Study, StudyEvent};
use tidemill_verdict::blocks::block_lengths;
use tidemill_verdict::{Blocks, Grade, overfit};

use crate::command::sweep::best::Best;
use crate::command::sweep::evaluate::{judge, scored};
use crate::holding::{self, Report, Witness};
use crate::input::{set_threads, shipped};
use crate::number;
use crate::table::Table;

#[derive(Args)]
pub struct HoldingUpArgs {
    /// Sweeps of each kind of market.
    #[arg(long, value_name = "N", default_value_t = 100)]
    sweeps: u64,
    /// Trials of a sweep.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    trials: u64,
    /// How parameter sets are chosen.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    sampler: String,
    /// Strength of the planted edge.
    #[arg(long, value_name = "X", default_value_t = 0.5)]
    edge: f64,
    /// Trials of the measurement of speed; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    speed_trials: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Bars of every market: two years of hours.
const N_BARS: usize = 17_520;

/// Without costs a random walk is a fair game: what a search finds there is luck alone. A stop would be none, because it fills at its level,
/// and a walk that is made of steps jumps over it.
const FAIR: [(&str, &str); 3] = [("fee_bps", "0"), ("slippage_bps", "0"), ("use_stop", "false")];

/// What came of the sweeps of one kind of market.
#[derive(Default)]
struct Tried {
    n: u64,
    good: u64,
    doubtful: u64,
    overfit: f64,
    sharpe: f64,
    deflated: f64,
    survived: Vec<(&'static str, u64)>,
    seconds: f64,
    verdict_seconds: f64,
}

impl Tried {
    fn add(&mut self, report: &Report, seconds: f64, verdict_seconds: f64) {
        self.n += 1;
        self.seconds += seconds;
        self.verdict_seconds += verdict_seconds;
        self.overfit += report.overfit.as_ref().map_or(f64::NAN, |overfit| overfit.probability);
        let Some(winner) = report.winners.first() else { return };
        self.good += u64::from(winner.verdict.grade == Grade::Good);
        self.doubtful += u64::from(winner.verdict.grade == Grade::Doubtful);
        self.sharpe += winner.sharpe.in_sample.unwrap_or(f64::NAN);
        self.deflated += winner.deflated.unwrap_or(f64::NAN);
        for check in &winner.verdict.checks {
            match self.survived.iter_mut().find(|(name, _)| *name == check.name) {
                Some((_, count)) => *count += u64::from(check.survived),
                None => self.survived.push((check.name, u64::from(check.survived))),
            }
        }
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.n.max(1) as f64
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.n.max(1) as f64
    }

    fn json(&self) -> Value {
        let survived: serde_json::Map<String, Value> = self
            .survived
            .iter()
            .map(|(name, count)| ((*name).to_string(), json!(self.share(*count))))
            .collect();
        json!({
            "sweeps": self.n,
            "good": self.share(self.good),
            "doubtful": self.share(self.doubtful),
            "mean_overfit": self.mean(self.overfit),
            "mean_sharpe": self.mean(self.sharpe),
            "mean_deflated": self.mean(self.deflated),
            "survived": survived,
            "seconds": self.seconds,
            "verdict_share_of_time": self.verdict_seconds / self.seconds.max(1e-9),
        })
    }
}

/// Runs it. The exit code says whether the verdicts were right often enough.
pub fn run(args: HoldingUpArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    if args.sweeps == 0 || args.trials == 0 {
        bail!("--sweeps and --trials must be at least 1");
    }
    let kind: SamplerKind = args.sampler.parse()?;
    let mut none = Tried::default();
    let mut planted = Tried::default();
    for seed in 0..args.sweeps {
        sweep(&walk(seed, 1, N_BARS), &FAIR, kind, args.trials, seed, &mut none)?;
        let planted_edge = Planted { strength: args.edge, ..Planted::default() };
        let options =
            RegimeOptions { seed: seed + 1, planted: Some(planted_edge), ..RegimeOptions::hourly(1, N_BARS) };
        sweep(&regime(&options), &[], kind, args.trials, seed, &mut planted)?;
        eprint!("\r{} of {} sweeps", seed + 1, args.sweeps);
    }
    eprintln!();
    let seconds = (args.speed_trials > 0).then(|| speed(args.speed_trials));
    // Of few sweeps one is allowed to go wrong.
    let most_lucky = (args.sweeps as f64 * 0.05).max(1.0);
    let is_right = none.good as f64 <= most_lucky && planted.good as f64 >= args.sweeps as f64 * 0.9 - 1.0;
    let mut out = std::io::stdout().lock();
    if args.json {
        let overfit = json!({ "trials": args.speed_trials, "blocks": 16, "seconds": seconds });
        let document = json!({
            "trials": args.trials, "sampler": kind.name(), "edge": args.edge,
            "no_edge": none.json(), "planted_edge": planted.json(), "overfit": overfit, "is_right": is_right,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        write!(out, "{}", table(&args, &none, &planted).render(1))?;
        if let Some(seconds) = seconds {
            let trials = number::count(args.speed_trials as u64);
            writeln!(out, "\nprobability of overfitting of {trials} trials × 16 blocks: {seconds:.2} s")?;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn table(args: &HoldingUpArgs, none: &Tried, planted: &Tried) -> Table {
    let title = format!("{} sweeps of {} trials", args.sweeps, number::count(args.trials));
    let mut table = Table::new([title, "no edge".into(), "planted edge".into()]);
    let mut row =
        |name: &str, cell: &dyn Fn(&Tried) -> String| table.row([name.into(), cell(none), cell(planted)]);
    row("called good [%]", &|tried| format!("{:.1}", 100.0 * tried.share(tried.good)));
    row("called doubtful [%]", &|tried| format!("{:.1}", 100.0 * tried.share(tried.doubtful)));
    row("mean probability of overfitting", &|tried| format!("{:.2}", tried.mean(tried.overfit)));
    row("mean Sharpe of the winner", &|tried| format!("{:.2}", tried.mean(tried.sharpe)));
    row("mean deflated Sharpe", &|tried| format!("{:.2}", tried.mean(tried.deflated)));
    for (name, _) in &none.survived {
        row(&format!("survives {name} [%]"), &|tried| {
            let count = tried.survived.iter().find(|(of, _)| of == name).map_or(0, |(_, count)| *count);
            format!("{:.0}", 100.0 * tried.share(count))
        });
    }
    row("verdict's share of the time [%]", &|tried| {
        format!("{:.1}", 100.0 * tried.verdict_seconds / tried.seconds.max(1e-9))
    });
    table
}

/// Sweeps a market with a third of it out of sample, and judges the winner.
fn sweep(
    universe: &Universe,
    set: &[(&str, &str)],
    kind: SamplerKind,
    trials: u64,
    seed: u64,
    tried: &mut Tried,
) -> Result<()> {
    let source = shipped("zscore-dip").context("the strategy zscore-dip is not shipped")?;
    let set = set.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let strategies = [Strategy::parse("zscore-dip.toml", source, &overrides)?];
    let began = Instant::now();
    let layout = Layout { split: Some(0.67), ..Layout::default() };
    let options = EngineOptions::default();
    let mut engine = Engine::new(&strategies[0], universe, layout.segments(universe)?, options)?;
    engine.keep_blocks(holding::n_blocks(engine.n_train_days()));
    let space = engine.space();
    let settings = SamplerSettings { n_trials: Some(trials), batch: 128, ..SamplerSettings::new(seed) };
    let mut sampler = kind.build(&space, &settings)?;
    let witness = Witness::new(&engine);
    let mut best = Best::new(&space, 1, kind.learns());
    let observe = |event: StudyEvent<'_>| {
        if let StudyEvent::Finished { batch, evaluated, .. } = event {
            witness.count(evaluated);
            best.extend(batch, &evaluated.scores);
        }
    };
    let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
    let study = Study::new(&space, &mut *sampler).trials(trials).batch(128).metrics(&names);
    let mut evaluator = FunctionEvaluator::new(|batch| {
        let outcomes = engine.evaluate(&batch.points);
        let evaluated = scored(&engine, &strategies, &batch.points, &outcomes);
        witness.see(batch.first_trial, &outcomes, &evaluated.scores);
        Ok(evaluated)
    });
    study.observe(observe).run(&mut evaluator)?;
    let ended = Instant::now();
    let winners = judge(&mut engine, &strategies, best.into_trials());
    let case = holding::Case {
        strategies: &strategies,
        universe,
        holdout: Vec::new(),
        space: &space,
        is_guided: kind.learns(),
        options,
    };
    let report = holding::judge(&case, &mut engine, witness, &winners)?;
    tried.add(&report, began.elapsed().as_secs_f64(), ended.elapsed().as_secs_f64());
    Ok(())
}

/// Seconds that the probability of overfitting takes for so many trials of noise in 16 blocks.
fn speed(n_trials: usize) -> f64 {
    let days = block_lengths(1000, 16);
    let mut blocks = Blocks::new(&days);
    for trial in 0..n_trials as u64 {
        let stream = Stream::new(9, trial);
        let sums: Vec<[f64; 2]> = (0..16_u64)
            .map(|block| [stream.unit(2 * block) - 0.5, 0.2 + stream.unit(2 * block + 1)])
            .collect();
        blocks.push(&sums);
    }
    let began = Instant::now();
    std::hint::black_box(overfit(&blocks));
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The full size is `tidemill bench holding-up`.
    #[test]
    fn luck_is_not_called_good_and_an_edge_is() {
        let (mut none, mut planted) = (Tried::default(), Tried::default());
        for seed in 0..4 {
            sweep(&walk(seed, 1, 6_000), &FAIR, SamplerKind::Auto, 300, seed, &mut none).unwrap();
            let edge = Planted { strength: 1.0, ..Planted::default() };
            let options =
                RegimeOptions { seed: seed + 1, planted: Some(edge), ..RegimeOptions::hourly(1, 9_000) };
            sweep(&regime(&options), &[], SamplerKind::Auto, 300, seed, &mut planted).unwrap();
        }
        assert_eq!(none.good, 0, "{}", none.json());
        assert!(planted.good >= 3, "{}", planted.json());
        assert!(none.mean(none.overfit) > planted.mean(planted.overfit));
    }
}
