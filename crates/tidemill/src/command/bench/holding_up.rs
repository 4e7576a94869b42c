//! Whether verdicts are right: winners of sweeps where there is nothing to find, and of sweeps where there is.

mod cost;
mod sweep;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_market::synth::{Planted, RegimeOptions, regime, walk};
use tidemill_search::SamplerKind;
use tidemill_verdict::Grade;

use crate::holding::Report;
use crate::input::set_threads;
use crate::number;
use crate::table::Table;
use cost::Cost;
use sweep::Swept;

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
    /// Trials whose probability of overfitting is timed; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    speed_trials: usize,
    /// Rounds in which sweeps with and without verdict are timed; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 5)]
    cost_rounds: usize,
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
    fn add(&mut self, swept: &Swept) {
        self.n += 1;
        self.seconds += swept.seconds;
        self.verdict_seconds += swept.verdict_seconds;
        if let Some(report) = &swept.report {
            self.add_report(report);
        }
    }

    fn add_report(&mut self, report: &Report) {
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
        none.add(&sweep::run(&walk(seed, 1, N_BARS), &FAIR, kind, args.trials, seed, true)?);
        let planted_edge = Planted { strength: args.edge, ..Planted::default() };
        let options =
            RegimeOptions { seed: seed + 1, planted: Some(planted_edge), ..RegimeOptions::hourly(1, N_BARS) };
        planted.add(&sweep::run(&regime(&options), &[], kind, args.trials, seed, true)?);
        eprint!("\r{} of {} sweeps", seed + 1, args.sweeps);
    }
    eprintln!();
    let seconds = (args.speed_trials > 0).then(|| cost::overfit_seconds(args.speed_trials));
    let costs = cost::measure(kind, args.cost_rounds)?;
    // Of few sweeps one is allowed to go wrong.
    let most_lucky = (args.sweeps as f64 * 0.05).max(1.0);
    let is_right = none.good as f64 <= most_lucky && planted.good as f64 >= args.sweeps as f64 * 0.9 - 1.0;
    let mut out = std::io::stdout().lock();
    if args.json {
        let overfit = json!({ "trials": args.speed_trials, "blocks": 16, "seconds": seconds });
        let document = json!({
            "trials": args.trials, "sampler": kind.name(), "edge": args.edge,
            "no_edge": none.json(), "planted_edge": planted.json(), "overfit": overfit,
            "cost": costs, "is_right": is_right,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        write!(out, "{}", table(&args, &none, &planted).render(1))?;
        if let Some(seconds) = seconds {
            let trials = number::count(args.speed_trials as u64);
            writeln!(out, "\nprobability of overfitting of {trials} trials × 16 blocks: {seconds:.2} s")?;
        }
        if !costs.is_empty() {
            write!(out, "\n{}", cost_table(&costs).render(1))?;
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
    // Without costs there is no check of them, so that one kind of market may have more checks than the other.
    for (name, _) in &planted.survived {
        row(&format!("survives {name} [%]"), &|tried| {
            let count = tried.survived.iter().find(|(of, _)| of == name).map(|(_, count)| *count);
            count.map_or_else(|| "–".into(), |count| format!("{:.0}", 100.0 * tried.share(count)))
        });
    }
    row("verdict's share of the time [%]", &|tried| {
        format!("{:.1}", 100.0 * tried.verdict_seconds / tried.seconds.max(1e-9))
    });
    table
}

/// What verdicts cost.
fn cost_table(costs: &[Cost]) -> Table {
    let header = ["sweep", "trials", "without verdict [s]", "with [s]", "ratio of medians", "of the fastest"];
    let mut table = Table::new(header);
    for cost in costs {
        let seconds = |seconds: f64| format!("{seconds:.3}");
        table.row([
            cost.data.to_string(),
            number::count(cost.trials),
            seconds(cost.without_s),
            seconds(cost.with_s),
            seconds(cost.ratio),
            seconds(cost.fastest_ratio),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The full size is `tidemill bench holding-up`.
    #[test]
    fn luck_is_not_called_good_and_an_edge_is() {
        let (mut none, mut planted) = (Tried::default(), Tried::default());
        for seed in 0..4 {
            none.add(&sweep::run(&walk(seed, 1, 6_000), &FAIR, SamplerKind::Auto, 300, seed, true).unwrap());
            let edge = Planted { strength: 1.0, ..Planted::default() };
            let options =
                RegimeOptions { seed: seed + 1, planted: Some(edge), ..RegimeOptions::hourly(1, 9_000) };
            planted.add(&sweep::run(&regime(&options), &[], SamplerKind::Auto, 300, seed, true).unwrap());
        }
        assert_eq!(none.good, 0, "{}", none.json());
        assert!(planted.good >= 3, "{}", planted.json());
        assert!(none.mean(none.overfit) > planted.mean(planted.overfit));
    }
}
