//! How good and how fast colourings are: a ladder of graphs with known numbers of colours, and what single phases contribute.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{Controller, Instance, Options, Outcome, Quiet, read_graph, verify};
use tidemill_search::quality::median;

use tidemill::set_threads;
use tidemill::{Screen, Table};
use tidemill_lab::{DeviceChoice, Devices};

/// Graphs and the colours that count as success on a CPU, and on a GPU.
const LADDER: [(&str, usize, usize); 13] = [
    ("DSJC125.5", 17, 17),
    ("DSJC250.5", 28, 28),
    ("DSJC500.1", 12, 12),
    ("flat1000_50_0", 50, 50),
    ("le450_25c", 26, 26),
    ("le450_15c", 16, 15),
    ("r250.5", 65, 65),
    ("flat300_28_0", 31, 28),
    ("DSJC500.5", 49, 48),
    ("DSJC500.9", 127, 126),
    ("DSJC1000.1", 21, 20),
    ("flat1000_60_0", 60, 60),
    ("DSJC1000.5", 87, 83),
];

#[derive(Args)]
pub struct ColorBenchArgs {
    /// Folder of the graphs, NAME.col.gz or NAME.col.
    #[arg(long, value_name = "DIR")]
    graphs: PathBuf,
    /// Only these, separated by commas; NAME=K sets the number of colours [default: the whole ladder].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// Seeds 1 to N.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Seconds for each.
    #[arg(long, value_name = "S", default_value_t = 120.0)]
    time: f64,
    /// Where searches run: auto, cpu, cuda or cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Also leave out each default phase in turn, and add each of the others.
    #[arg(long)]
    ablation: bool,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A graph and its goal.
struct Rung {
    instance: Instance,
    target: usize,
}

pub fn run(args: ColorBenchArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let devices = Devices::choose(args.device)?;
    let rungs = rungs(&args, !devices.devices.is_empty())?;
    let Ok(time) = Duration::try_from_secs_f64(args.time) else {
        bail!("--time {}: expected a number of seconds", args.time);
    };
    let hardware = devices.shown();
    let mut table = Table::new(["graph", "phases", "target", "success", "k", "median s", "M it/s"]);
    let mut rows = Vec::new();
    for rung in &rungs {
        for (name, phases) in variants(args.ablation) {
            eprintln!("{}: {name}", rung.instance.name);
            let mut outcomes = Vec::new();
            for seed in 1..=args.seeds.max(1) {
                let options = Options {
                    phases: phases.clone(),
                    seed,
                    target: Some(rung.target),
                    time: Some(time),
                    ..Options::default()
                };
                outcomes.push(color(&rung.instance, options, &devices)?);
            }
            let row = Row::new(rung, name, &outcomes);
            table.row(row.cells());
            rows.push(row.json(&outcomes));
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(
            out,
            "{:#}",
            json!({ "hardware": hardware, "seeds": args.seeds, "time_s": args.time, "rows": rows })
        )?;
    } else {
        writeln!(
            out,
            "{} seeds, {} s each, on {hardware}\n{}",
            args.seeds,
            args.time,
            table.render(2, &Screen::PLAIN)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rungs(args: &ColorBenchArgs, is_gpu: bool) -> Result<Vec<Rung>> {
    let goal = |row: &(&str, usize, usize)| if is_gpu { row.2 } else { row.1 };
    let wanted: Vec<(String, usize)> = match &args.only {
        None => LADDER.iter().map(|row| (row.0.to_owned(), goal(row))).collect(),
        Some(names) => names
            .iter()
            .map(|name| match name.split_once('=') {
                Some((name, k)) => match k.parse() {
                    Ok(k) => Ok((name.to_owned(), k)),
                    Err(_) => bail!("--only {name}={k}: expected a number of colours"),
                },
                None => match LADDER.iter().find(|row| row.0 == name) {
                    Some(row) => Ok((name.clone(), goal(row))),
                    None => bail!("--only {name}: not on the ladder; write {name}=K"),
                },
            })
            .collect::<Result<_>>()?,
    };
    wanted
        .into_iter()
        .map(|(name, target)| {
            let plain = args.graphs.join(format!("{name}.col"));
            let path = if plain.is_file() { plain } else { args.graphs.join(format!("{name}.col.gz")) };
            Ok(Rung { instance: read_graph(&path)?, target })
        })
        .collect()
}

/// Sets of phases by name.
fn variants(is_ablation: bool) -> Vec<(String, Vec<PhaseKind>)> {
    let defaults = PhaseKind::defaults();
    let mut variants = vec![("default".to_owned(), defaults.clone())];
    if !is_ablation {
        return variants;
    }
    for kind in PhaseKind::all().filter(|kind| *kind != PhaseKind::Validation) {
        let mut phases = defaults.clone();
        if defaults.contains(&kind) {
            phases.retain(|of| *of != kind);
            variants.push((format!("-{}", kind.name()), phases));
        } else {
            phases.push(kind);
            phases.sort_unstable();
            variants.push((format!("+{}", kind.name()), phases));
        }
    }
    variants
}

fn color(instance: &Instance, options: Options, devices: &Devices) -> Result<Outcome> {
    let mut controller = Controller::new(instance, options)?;
    if let [device, ..] = &devices.devices[..] {
        controller = controller.on(device.clone(), devices.may_fall_back);
    }
    let outcome = controller.run(&mut Quiet, &AtomicBool::new(false))?;
    let verified = verify(instance, &outcome.colors).map(|verified| verified.k);
    anyhow::ensure!(verified == Ok(outcome.k), "a colouring did not pass the verifier: {verified:?}");
    Ok(outcome)
}

/// One line of the table.
struct Row {
    graph: String,
    phases: String,
    target: usize,
    n_success: usize,
    n_seeds: usize,
    least: usize,
    most: usize,
    median_s: Option<f64>,
    it_per_s: f64,
}

impl Row {
    fn new(rung: &Rung, phases: String, outcomes: &[Outcome]) -> Self {
        let solved: Vec<f64> = outcomes
            .iter()
            .filter(|outcome| outcome.k <= rung.target)
            .map(|outcome| outcome.found_s)
            .collect();
        let colors = || outcomes.iter().map(|outcome| outcome.k);
        let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
        let iterations: u64 = outcomes.iter().map(|outcome| outcome.iterations).sum();
        Self {
            graph: rung.instance.name.clone(),
            phases,
            target: rung.target,
            n_success: solved.len(),
            n_seeds: outcomes.len(),
            least: colors().min().unwrap_or(0),
            most: colors().max().unwrap_or(0),
            median_s: (!solved.is_empty()).then(|| median(solved)),
            it_per_s: iterations as f64 / seconds.max(1e-9),
        }
    }

    fn cells(&self) -> [String; 7] {
        let colors = if self.least == self.most {
            self.least.to_string()
        } else {
            format!("{}–{}", self.least, self.most)
        };
        [
            self.graph.clone(),
            self.phases.clone(),
            self.target.to_string(),
            format!("{}/{}", self.n_success, self.n_seeds),
            colors,
            self.median_s.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.2}")),
            format!("{:.2}", self.it_per_s / 1e6),
        ]
    }

    fn json(&self, outcomes: &[Outcome]) -> Value {
        let runs: Vec<Value> = outcomes
            .iter()
            .map(|it| json!({ "k": it.k, "found_s": it.found_s, "found_by": it.by.name(), "seconds": it.seconds }))
            .collect();
        json!({
            "graph": self.graph,
            "phases": self.phases,
            "target": self.target,
            "successes": self.n_success,
            "seeds": self.n_seeds,
            "median_s": self.median_s,
            "it_per_s": self.it_per_s,
            "runs": runs,
        })
    }
}
