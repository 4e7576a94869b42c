//! How good samplers search.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::quality::{Suite, median};
use tidemill_search::{Evaluated, FunctionEvaluator, SamplerKind, SamplerSettings, Study, StudyEvent};

use tidemill::set_threads;
use tidemill::{Screen, Table};
use tidemill_lab::number;
use tidemill_lab::score::evaluate;
use tidemill_lab::shipped::SHIPPED;

/// The name of the suite on a generated market.
const PLANTED: &str = "planted";

/// Budgets on the market: trials and batch.
const PLANTED_BUDGETS: [(u64, usize); 4] = [(128, 8), (256, 16), (1024, 64), (4096, 64)];

#[derive(Args)]
pub struct QualityArgs {
    /// Suites, separated by commas: sequential, small, large (test functions), planted (a market with a known optimum).
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "sequential,small,large,planted")]
    suite: Vec<String>,
    /// Samplers, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "auto,tpe,random")]
    sampler: Vec<String>,
    /// Seeds 0 to N − 1; medians are shown.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Batches by which the samplers lag behind.
    #[arg(long, value_name = "L", default_value_t = 0)]
    lag: usize,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(args: QualityArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let kinds: Vec<SamplerKind> = args.sampler.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let seeds: Vec<u64> = (0..args.seeds.max(1)).collect();
    for name in &args.suite {
        if name != PLANTED && Suite::by_name(name).is_none() {
            let known: Vec<&str> = Suite::ALL.iter().map(|suite| suite.name()).chain([PLANTED]).collect();
            bail!("there is no suite `{name}`; choose among {}", known.join(", "));
        }
    }
    for name in &args.suite {
        eprintln!("searching: {name}");
        let table = match Suite::by_name(name) {
            Some(suite) => suite.compare(&kinds, &seeds, args.lag)?.to_string(),
            None => planted(&kinds, &seeds, args.lag)?,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{name} ({} seeds, lag {})\n{table}", seeds.len(), args.lag)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The strategy whose optimum the generated market hides: its objective at that optimum, and what searches find.
fn planted(kinds: &[SamplerKind], seeds: &[u64], lag: usize) -> Result<String> {
    let Some((_, source)) = SHIPPED.iter().find(|(name, _)| *name == "zscore-dip") else {
        bail!("the strategy zscore-dip is not shipped");
    };
    let strategy = Strategy::parse("zscore-dip.toml", source, &Overrides::default())?;
    let universe = regime(&RegimeOptions::default());
    let segments = Layout::default().segments(&universe)?;
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default())?;
    let space = engine.space();
    let mut header = vec!["trials".to_string(), "batch".to_string()];
    header.extend(kinds.iter().map(|kind| kind.name().to_string()));
    let mut table = Table::new(header);
    for (n_trials, batch) in PLANTED_BUDGETS {
        let mut row = vec![number::count(n_trials), batch.to_string()];
        for kind in kinds {
            let mut found = Vec::new();
            for seed in seeds {
                let settings =
                    SamplerSettings { n_trials: Some(n_trials), batch, ..SamplerSettings::new(*seed) };
                let mut sampler = kind.build(&space, &settings)?;
                let mut best = f64::NEG_INFINITY;
                let observe = |event: StudyEvent<'_>| {
                    if let StudyEvent::Finished { evaluated, .. } = event {
                        let values = evaluated.scores.column(0).iter().filter(|value| !value.is_nan());
                        best = values.fold(best, |best, value| if *value > best { *value } else { best });
                    }
                };
                let study = Study::new(&space, &mut *sampler).trials(n_trials).batch(batch).lag(lag);
                let mut evaluator = FunctionEvaluator::new(|batch| {
                    let scores = evaluate(&mut engine, &strategy, &batch.points).scores;
                    Ok(Evaluated { scores, metrics: Vec::new() })
                });
                study.observe(observe).run(&mut evaluator)?;
                found.push(best);
            }
            row.push(number::short(Some(median(found))));
        }
        table.row(row);
    }
    let title =
        format!("best {} of zscore-dip on generated data, larger is better\n", strategy.objective().text);
    Ok(title + &table.render(0, &Screen::PLAIN))
}
