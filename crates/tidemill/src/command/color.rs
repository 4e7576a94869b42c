//! `tidemill color`: a proper colouring of a graph with as few colours as possible.

mod generate;
pub mod output;
mod progress;
mod resolve;
mod store;
mod verify;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use tidemill_coloring::{Controller, Ending, PassEvent, RecordContext, RunRecorder, read_graph};

use super::sweep::{device_choice, stop_flag};
use crate::exit::ExitCode;
use crate::input::set_threads;
use crate::settings::Settings;
use crate::table::Display;
use progress::Progress;
use tidemill_lab::number;
use tidemill_lab::{DeviceChoice, Devices};

/// Colour a graph with as few colours as possible.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  tidemill color DSJC250.5.col.gz --time 30
  tidemill color DSJC250.5.col.gz --target 28 --out best.sol
  tidemill color graph.txt --out runs/graph --time 600      a folder: best so far, journal, and what --resume needs
  tidemill color graph.txt --out runs/graph --resume --time 600
  tidemill color graph.col --phases tabu,memetic --iterations 50000000 --seed 7 --json
  tidemill color graph.col --phases +tempering,-edge
  tidemill color verify graph.col best.sol
  tidemill color generate flat --vertices 300 --colors 20 --density 0.5 --out flat300.col

GRAPH is a DIMACS .col file or a list of edges, two vertices a line; both may be compressed with gzip.
Every colouring is checked against the file before it is shown or written. Ctrl-C stops with the best so far.")]
pub struct ColorArgs {
    #[command(subcommand)]
    command: Option<ColorCommand>,
    /// DIMACS .col file or list of edges, gzipped or not.
    #[arg(value_name = "GRAPH", required = true)]
    graph: Option<PathBuf>,
    /// Stop once a colouring has this many colours.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    target: Option<usize>,
    /// Stop after this many seconds [default: 60, if there is no other limit].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    time: Option<f64>,
    /// Stop after this many iterations of all searches. The same seed then gives the same colouring.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    iterations: Option<u64>,
    /// Stop after this many passes; a pass tries one number of colours.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    passes: Option<u64>,
    /// Stop after this many passes in a row that saved fewer than --min-delta colours.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    patience: Option<u64>,
    /// Colours that a pass must save to count as progress for --patience [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    min_delta: Option<usize>,
    /// Seed [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Where searches run: auto, cpu, cuda or cuda:N [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Phases, separated by commas; +NAME and -NAME change the default ones. docs/color.md lists them and their aliases.
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    phases: Option<Vec<String>>,
    /// Rules that tune the run: off, advise (print what they would change) or on (change it) [default: advise].
    #[arg(long, value_name = "MODE")]
    hypertune: Option<Hypertune>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Write the best colouring to this .sol file, or to a folder together with everything that --resume needs.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Resume the run in the --out folder.
    #[arg(long)]
    resume: bool,
    /// Append the events of the run to this journal, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum ColorCommand {
    /// Check a colouring against a graph, edge by edge.
    Verify(verify::VerifyArgs),
    /// Write a graph of a known family.
    Generate(generate::GenerateArgs),
}

/// The values of `--hypertune`.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Hypertune {
    Off,
    Advise,
    On,
}

/// Runs the command.
pub fn run(args: ColorArgs, display: &Display) -> Result<ExitCode> {
    match args.command {
        Some(ColorCommand::Verify(args)) => verify::run(&args),
        Some(ColorCommand::Generate(args)) => generate::run(&args),
        None => color(&args, display),
    }
}

/// `1 vertex`, `2 vertices`.
fn vertices(n: usize) -> String {
    if n == 1 { "1 vertex".to_owned() } else { format!("{} vertices", number::count(n as u64)) }
}

fn color(args: &ColorArgs, display: &Display) -> Result<ExitCode> {
    let Some(path) = &args.graph else { bail!("GRAPH is missing") };
    let settings = Settings::load(args.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let began = Instant::now();
    let instance = read_graph(path)?;
    instance.remarks.iter().for_each(|remark| eprintln!("note: {}: {remark}", path.display()));
    let config = resolve::resolve(args, &settings)?;
    // Opened before the work, so that a path that cannot be written fails at once.
    let mut store = store::open(args, &instance, &config)?;
    let devices =
        Devices::choose(device_choice(args.device, &settings)?)?.with_wait_limit(settings.gpu.wait_limit());
    eprintln!(
        "colouring {}: {}, {}, seed {}, on {}",
        instance.name,
        vertices(instance.n),
        number::counted(instance.edges().len() as u64, "edge"),
        config.options.seed,
        devices.shown()
    );
    if let Some(note) = &devices.note {
        eprintln!("note: {note}");
    }
    let state = store.take_state();
    let is_resumed = state.is_some();
    if let Some(state) = &state {
        let k = number::counted(state.k as u64, "colour");
        eprintln!("resuming after {} passes, with {k}", state.pass);
    }
    let mut controller = Controller::new(&instance, config.options.clone())?;
    for device in &devices.devices {
        controller = controller.on(device.clone(), devices.may_fall_back);
    }
    if let Some(state) = state {
        controller = controller.resume(state)?;
    }
    let stop = stop_flag();
    let mut progress = Progress::new();
    let mut show = |event: &PassEvent<'_>| progress.show(event);
    let context = RecordContext::new(began, devices.unusable.clone());
    let recorder = RunRecorder::start(&instance, &config, &store, is_resumed, context, &mut show)?;
    let outcome = match recorder.run(controller, &stop) {
        Ok(outcome) => outcome,
        Err(error) => {
            store.close()?;
            return Err(error.into());
        }
    };
    // Also where a resumed run found nothing better.
    store.write_best(&instance, outcome.k, &outcome.colors)?;
    if let Some(path) = store.best_file() {
        eprintln!("wrote {}", path.display());
    }
    store.close()?;
    output::print(args, &instance, &outcome, began.elapsed().as_secs_f64(), &display.screen)?;
    if display.is_verbose {
        progress.advice().for_each(|sentence| eprintln!("{sentence}"));
    }
    if outcome.ending == Ending::Stopped && store.is_folder() {
        eprintln!("  hint: --resume continues the run");
    }
    Ok(ExitCode::SUCCESS)
}
