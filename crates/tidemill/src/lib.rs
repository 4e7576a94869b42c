//! The command line: flags to configurations, events to text. The experiments themselves are in `tidemill-lab`.

/// Prints a line to standard error. If it is closed (`tidemill … 2>&1 | head`) the line is dropped and the run continues; the
/// macro of the standard library would panic.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::message::print(format_args!($($text)*), "\n") };
}

/// The same without a line end.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::message::print(format_args!($($text)*), "") };
}

mod cluster;
mod command;
mod exit;
mod input;
mod message;
mod parts_text;
mod progress;
pub mod result;
mod settings;
mod table;
mod trace;
mod verdict_text;
mod year;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

pub use cluster::{ClusterOpener, open_clusters_by, start_workers_by};
pub use input::set_threads;
pub use table::{Screen, Table};

use exit::ExitCode;
use table::{Display, stdout_screen};

/// Back-test millions of parameter sets of a trading strategy, and rank them.
#[derive(Parser)]
#[command(name = "tidemill", version, propagate_version = true, max_term_width = 120)]
#[command(after_help = "Examples:
  tidemill sweep                                          a first result: built-in strategy, generated data
  tidemill sweep ema-cross --data btc.parquet --trials 20000 --split 0.7 --out runs/ema
  tidemill backtest seller-exhaustion --data btc.csv --set vol_z=1.5 --report report.html
  tidemill study show runs/ema --html ema.html
  tidemill scan data/ --bars 1500                         trends of all symbols in a folder, ranked
  tidemill color DSJC250.5.col.gz --time 30               colour a graph
  tidemill monitor runs/ema                               watch it while it runs
  tidemill dash runs --open                               all of them in a browser
  tidemill data inspect data/*.parquet

Exit codes: 0 done, 1 ran but a check failed, 2 bad input or error, 130 stopped by Ctrl-C.")]
struct Cli {
    /// Colours: auto shows them on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "auto|always|never", default_value = "auto")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    color: ColorWhen,
    /// Print details of a run: the times of every batch, the advice of tuning rules, where the time went.
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, ValueEnum)]
enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    fn choice(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

#[derive(Subcommand)]
enum Command {
    /// Evaluate many parameter sets of a strategy and rank them.
    Sweep(command::sweep::SweepArgs),
    /// Repeat a search through time, and trade each winner on the period that follows.
    Walkforward(command::walkforward::WalkforwardArgs),
    /// Evaluate one parameter set: metrics, trades, report.
    Backtest(command::backtest::BacktestArgs),
    /// Say what to do now: enter, exit, hold or nothing.
    Signal(command::signal::SignalArgs),
    /// Classify the trend of many symbols at once and rank them.
    Scan(command::scan::ScanArgs),
    /// Colour a graph with as few colours as possible.
    Color(command::color::ColorArgs),
    /// List studies, show their results, export their trials.
    Study(command::study::StudyArgs),
    /// Watch a run: a full screen, its lines, or a summary.
    Monitor(command::monitor::MonitorArgs),
    /// Show runs in a browser: live progress, trials, parameters, charts.
    Dash(command::dash::DashArgs),
    /// Inspect, convert and generate data.
    Data(command::data::DataArgs),
    /// List the shipped strategies, or print one to start from.
    Strategies(command::strategies::StrategiesArgs),
    /// Check whether this machine can use a GPU, and run a small sweep on it.
    Doctor(command::doctor::DoctorArgs),
    /// Compare a GPU with the CPU, bit for bit.
    Parity(command::parity::ParityArgs),
    /// Measure how fast this machine is.
    Bench(command::bench::BenchArgs),
    /// Evaluate trials for a search that runs elsewhere.
    Worker(command::worker::WorkerArgs),
    /// Print the script that completes commands and flags in a shell.
    Completions(command::completions::CompletionsArgs),
    /// Print the manual page of the program or of a command.
    Man(command::completions::ManArgs),
}

/// Runs the program with these arguments, the first of which is its name; the result is its exit code.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> i32 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too. Where nobody reads them there is nothing left to say.
            let _ = error.print();
            return error.exit_code();
        }
    };
    cli.color.choice().write_global();
    let display = Display { screen: stdout_screen(), is_verbose: cli.verbose };
    let result = match cli.command {
        Command::Sweep(args) => command::sweep::run(args, &display),
        Command::Walkforward(args) => command::walkforward::run(args, &display),
        Command::Backtest(args) => command::backtest::run(args, &display),
        Command::Signal(args) => command::signal::run(&args),
        Command::Scan(args) => command::scan::run(args, &display),
        Command::Color(args) => command::color::run(args, &display),
        Command::Study(args) => command::study::run(args, &display),
        Command::Monitor(args) => command::monitor::run(args),
        Command::Dash(args) => command::dash::run(args),
        Command::Data(args) => command::data::run(args, &display),
        Command::Strategies(args) => command::strategies::run(args, &display),
        Command::Doctor(args) => command::doctor::run(args),
        Command::Parity(args) => command::parity::run(args, &display),
        Command::Bench(args) => command::bench::run(args, &display),
        Command::Worker(args) => command::worker::run(args),
        Command::Completions(args) => command::completions::run(&args, Cli::command()),
        Command::Man(args) => command::completions::man(&args, Cli::command()),
    };
    let code = match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    };
    code.into()
}

/// `tidemill … | head` closes our output early; that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
