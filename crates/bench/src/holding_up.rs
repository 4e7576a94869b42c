//! Whether verdicts are right: winners of sweeps where there is nothing to find, and of sweeps where there is.

mod cost;
mod kind;
mod sweep;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_market::{Bars, LoadOptions, load};
use tidemill_search::SamplerKind;
use tidemill_verdict::Grade;

use cost::Cost;
use kind::{Demand, MarketKind, Sources};
use sweep::SweepResult;
use tidemill::set_threads;
use tidemill::{Screen, Table};
use tidemill_lab::number;
use tidemill_lab::verdict::VerdictReport;

#[derive(Args)]
pub struct HoldingUpArgs {
    /// Which kinds of markets, separated by commas [default: all; shuffled only with --data].
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kind: Vec<MarketKind>,
    /// Files of hourly bars whose blocks are shuffled, one symbol for each market in turn.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
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
    /// Markets swept at a time. No verdict depends on it [default: one for each worker thread].
    #[arg(long, value_name = "N")]
    markets: Option<usize>,
}

/// Bars of every market: two years of hours.
const N_BARS: usize = 17_520;

/// Fewest bars of a symbol whose blocks are shuffled: half a year of hours.
const LEAST_REAL_BARS: usize = 4_380;

/// Results of the sweeps of one kind of market.
#[derive(Default)]
struct KindResult {
    n: u64,
    good: u64,
    doubtful: u64,
    overfit: f64,
    sharpe: f64,
    deflated: f64,
    beyond: f64,
    by_spread: f64,
    survived: Vec<(&'static str, u64)>,
    seconds: f64,
    verdict_seconds: f64,
}

impl KindResult {
    fn add(&mut self, swept: &SweepResult) {
        self.n += 1;
        self.seconds += swept.seconds;
        self.verdict_seconds += swept.verdict_seconds;
        if let Some(report) = &swept.report {
            self.add_report(report);
        }
    }

    fn add_report(&mut self, report: &VerdictReport) {
        self.overfit += report.overfit.as_ref().map_or(f64::NAN, |overfit| overfit.probability);
        let Some(winner) = report.winners.first() else { return };
        self.good += u64::from(winner.verdict.grade == Grade::Good);
        self.doubtful += u64::from(winner.verdict.grade == Grade::Doubtful);
        self.sharpe += winner.sharpe.in_sample.unwrap_or(f64::NAN);
        // Returns that are the market's own have no ratio beyond it, and no claim to one.
        self.deflated += winner.deflated.unwrap_or(0.0);
        self.beyond += winner.deflated_beyond_market.unwrap_or(0.0);
        self.by_spread += winner.deflated_by_spread.unwrap_or(0.0);
        for check in &winner.verdict.checks {
            match self.survived.iter_mut().find(|(name, _)| *name == check.name) {
                Some((_, count)) => *count += u64::from(check.survived),
                None => self.survived.push((check.name, u64::from(check.survived))),
            }
        }
    }

    /// Whether verdicts were right as often as is demanded; of few sweeps one is allowed to go wrong.
    fn is_right(&self, demand: Demand) -> bool {
        let (n, good) = (self.n as f64, self.good as f64);
        match demand {
            Demand::Null => good <= (n * 0.05).max(1.0),
            Demand::Edge => good >= n * 0.9 - if self.n < 20 { 1.0 } else { 0.0 },
            Demand::None => true,
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
            "mean_deflated_beyond_market": self.mean(self.beyond),
            "mean_deflated_by_spread": self.mean(self.by_spread),
            "survived": survived,
            "seconds": self.seconds,
            "verdict_share_of_time": self.verdict_seconds / self.seconds.max(1e-9),
        })
    }
}

/// Runs it. The exit code says whether the verdicts were right often enough.
pub fn run(args: HoldingUpArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    if args.sweeps == 0 || args.trials == 0 || args.markets == Some(0) {
        bail!("--sweeps, --trials and --markets must be at least 1");
    }
    let sampler: SamplerKind = args.sampler.parse()?;
    let real = real_bars(&args.data)?;
    let sources = Sources { n_bars: N_BARS, edge: args.edge, real: &real };
    let kinds =
        if args.kind.is_empty() { MarketKind::default_kinds(!real.is_empty()) } else { args.kind.clone() };
    if kinds.contains(&MarketKind::Shuffled) && real.is_empty() {
        bail!("--kind shuffled needs --data with hourly bars of at least {LEAST_REAL_BARS} for a symbol");
    }
    let n_markets = args.markets.unwrap_or_else(rayon::current_num_threads);
    let mut tried: Vec<(MarketKind, KindResult)> = Vec::new();
    for kind in kinds {
        eprintln!("{}: {} sweeps", kind.name(), args.sweeps);
        let market = |seed: u64| kind.market(seed, &sources);
        let swept =
            all(args.sweeps, n_markets, |seed| sweep::run(&market(seed), sampler, args.trials, seed, true))?;
        // In the order of the seeds, so that sums do not depend on who was first.
        let mut of_kind = KindResult::default();
        swept.iter().for_each(|swept| of_kind.add(swept));
        tried.push((kind, of_kind));
    }
    let seconds = (args.speed_trials > 0).then(|| cost::overfit_seconds(args.speed_trials));
    let costs = cost::measure(sampler, args.cost_rounds)?;
    let is_right = tried.iter().all(|(kind, tried)| tried.is_right(kind.demand()));
    let mut out = std::io::stdout().lock();
    if args.json {
        let overfit = json!({ "trials": args.speed_trials, "blocks": 16, "seconds": seconds });
        let kinds: Map<String, Value> =
            tried.iter().map(|(kind, tried)| (kind.name(), tried.json())).collect();
        let document = json!({
            "trials": args.trials, "sampler": sampler.name(), "edge": args.edge,
            "kinds": kinds, "overfit": overfit, "cost": costs, "is_right": is_right,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        write!(out, "{}", table(&args, &tried).render(1, &Screen::PLAIN))?;
        if let Some(seconds) = seconds {
            let trials = number::count(args.speed_trials as u64);
            writeln!(out, "\nprobability of overfitting of {trials} trials × 16 blocks: {seconds:.2} s")?;
        }
        if !costs.is_empty() {
            write!(out, "\n{}", cost_table(&costs).render(1, &Screen::PLAIN))?;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The symbols of files that are long enough to be shuffled.
fn real_bars(files: &[PathBuf]) -> Result<Vec<Bars>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let symbols = load(files, &LoadOptions::default()).context("--data")?.universe.symbols;
    Ok(symbols.into_iter().filter(|bars| bars.len() >= LEAST_REAL_BARS).collect())
}

/// Sweeps of all seeds, several at a time, in the order of the seeds. The first error ends it.
///
/// Threads of their own, not those of the pool: a sweep waits for work that it gives to the pool.
fn all(
    n_sweeps: u64,
    n_at_a_time: usize,
    one: impl Fn(u64) -> Result<SweepResult> + Sync,
) -> Result<Vec<SweepResult>> {
    let n_sweeps = n_sweeps as usize;
    let (next, n_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done: Mutex<Vec<Option<Result<SweepResult>>>> = Mutex::new((0..n_sweeps).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..n_at_a_time.min(n_sweeps) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= n_sweeps {
                        return;
                    }
                    let swept = one(seed as u64);
                    if swept.is_err() {
                        next.store(n_sweeps, Ordering::SeqCst);
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner)[seed] = Some(swept);
                    eprint!("\r{} of {n_sweeps} sweeps", n_done.fetch_add(1, Ordering::SeqCst) + 1);
                }
            });
        }
    });
    eprintln!();
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

fn table(args: &HoldingUpArgs, tried: &[(MarketKind, KindResult)]) -> Table {
    let mut header = vec![format!("{} sweeps of {} trials", args.sweeps, number::count(args.trials))];
    header.extend(tried.iter().map(|(kind, _)| kind.name()));
    let mut table = Table::new(header);
    let mut row = |name: &str, cell: &dyn Fn(&KindResult) -> String| {
        let mut cells = vec![name.to_string()];
        cells.extend(tried.iter().map(|(_, tried)| cell(tried)));
        table.row(cells);
    };
    row("called good [%]", &|tried| format!("{:.1}", 100.0 * tried.share(tried.good)));
    row("called doubtful [%]", &|tried| format!("{:.1}", 100.0 * tried.share(tried.doubtful)));
    row("mean probability of overfitting", &|tried| format!("{:.2}", tried.mean(tried.overfit)));
    row("mean Sharpe of the winner", &|tried| format!("{:.2}", tried.mean(tried.sharpe)));
    row("mean deflated Sharpe", &|tried| format!("{:.2}", tried.mean(tried.deflated)));
    row("the same beyond the market", &|tried| format!("{:.2}", tried.mean(tried.beyond)));
    row("the same by the spread of trials", &|tried| format!("{:.2}", tried.mean(tried.by_spread)));
    // Without costs there is no check of them, so that one kind of market may have more checks than the other.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in tried.iter().flat_map(|(_, tried)| &tried.survived) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for name in names {
        row(&format!("survives {name} [%]"), &|tried| {
            let count = tried.survived.iter().find(|(of, _)| *of == name).map(|(_, count)| *count);
            count.map_or_else(|| "–".into(), |count| format!("{:.0}", 100.0 * tried.share(count)))
        });
    }
    row("verdict's share of the time [%]", &|tried| {
        format!("{:.1}", 100.0 * tried.verdict_seconds / tried.seconds.max(1e-9))
    });
    table
}

/// The time that verdicts take.
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

    /// Winners of few small markets of a kind.
    fn small(kind: MarketKind, n_bars: usize, edge: f64) -> KindResult {
        // Real bars are not shipped; bursts of volatility are what shuffling keeps of them.
        let real = MarketKind::Clustered.market(77, &Sources { n_bars, edge, real: &[] }).universe.symbols;
        let sources = Sources { n_bars, edge, real: &real };
        let mut tried = KindResult::default();
        for seed in 0..4 {
            let market = kind.market(seed, &sources);
            tried.add(&sweep::run(&market, SamplerKind::Auto, 300, seed, true).unwrap());
        }
        tried
    }

    /// The full size is `tidemill-bench holding-up`.
    #[test]
    fn luck_is_not_called_good_and_an_edge_is() {
        let none = small(MarketKind::Walk, 6_000, 0.0);
        for kind in [MarketKind::Bull, MarketKind::Clustered, MarketKind::Shuffled] {
            let tried = small(kind, 6_000, 0.0);
            assert_eq!(tried.good, 0, "{kind:?}: {}", tried.json());
        }
        assert_eq!(none.good, 0, "{}", none.json());
        for kind in [MarketKind::Edge, MarketKind::EdgeBull] {
            let planted = small(kind, 9_000, 1.0);
            assert!(planted.good >= 3, "{kind:?}: {}", planted.json());
            assert!(none.mean(none.overfit) > planted.mean(planted.overfit));
        }
    }

    #[test]
    fn being_always_long_in_a_rising_market_is_no_edge() {
        let long = small(MarketKind::AlwaysLong, N_BARS, 0.0);
        let survived = |name: &str| long.survived.iter().find(|(of, _)| *of == name).unwrap().1;
        assert_eq!((long.good, survived("market")), (0, 0), "{}", long.json());
        // Nothing else would have told: the ratio is far above luck, and the part that was not seen confirms it.
        assert!(long.mean(long.deflated) > 0.95 && survived("out of sample") == 4, "{}", long.json());
    }
}
