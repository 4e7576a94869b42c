//! `tidemill parity`: the device against the CPU on this machine, bit for bit.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_gpu::Device;
use tidemill_lab::parity::{Difference, ParityRow};
use tidemill_lab::{DeviceChoice, Devices, ParityCheck, ParityReport, number};
use tidemill_market::LoadProgress;

use crate::exit::ExitCode;
use crate::progress::{ProgressLine, while_loading};
use crate::settings::Settings;
use crate::table::{Display, Screen, Table};

/// Compare a GPU with the CPU, bit for bit.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill parity
  tidemill parity ema-cross my.toml --data btc.parquet
  tidemill parity --trials 1000000 --random 200 --seed 7
  tidemill parity --device emulated       the same kernels on the CPU, slowly

Exit codes: 0 no bit differs, 1 something differs, 2 the comparison could not be made.")]
pub struct ParityArgs {
    /// Strategy files, or names of shipped strategies [default: all shipped ones, and random ones].
    strategy: Vec<String>,
    /// Compare on these CSV or Parquet files or folders too.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
    /// About how many trials in all [default: 100000, 2000 under emulation].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<u64>,
    /// Random strategies, each on random data [default: 32, 2 under emulation, 0 if strategies are given].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    random: Option<usize>,
    /// What is compared with the CPU: cuda (all GPUs), cuda:N or emulated [default: cuda].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Seed of the random data, strategies and trials.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: ParityArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.config.as_deref())?;
    let devices = choose(&args, &settings)?;
    let is_emulated = devices[0].info().kind == tidemill_gpu::DeviceKind::Host;
    let trials = args.trials.unwrap_or(if is_emulated { 2_000 } else { 100_000 });
    if trials == 0 {
        bail!("--trials must be at least 1");
    }
    let n_random = args.random.unwrap_or(match (&args.strategy[..], is_emulated) {
        ([], true) => 2,
        ([], false) => 32,
        _ => 0,
    });
    let loading = LoadProgress::default();
    let check = while_loading(&loading, || {
        ParityCheck::new(&args.strategy, &args.data, n_random, trials, args.seed, &loading)
    })?;
    let n_trials = check.n_trials()?;
    let names: Vec<&str> = devices.iter().map(|device| device.info().name.as_str()).collect();
    eprintln!(
        "comparing {} with the CPU: {} strategies or profiles, {} data sets, {n_random} random strategies, {} trials",
        names.join(", "),
        check.n_strategies(),
        check.n_data_sets(),
        number::count(n_trials)
    );
    for (strategy, set) in check.left_out()? {
        eprintln!("note: {strategy} is left out on {set}, which lacks the symbols it reads");
    }
    let began = Instant::now();
    let progress = ProgressLine::new(n_trials, "trials");
    let report = check.run(&devices, &settings.gpu.device_options(), |n_trials| progress.inc(n_trials));
    progress.finish_and_clear();
    let shown = Shown {
        report: &report?,
        device: names.join(", "),
        seed: args.seed,
        seconds: began.elapsed().as_secs_f64(),
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", shown.json())?,
        false => write!(out, "{}", shown.text(&display.screen))?,
    }
    out.flush()?;
    Ok(if shown.report.total.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The devices; there is at least one.
fn choose(args: &ParityArgs, settings: &Settings) -> Result<Vec<Device>> {
    let choice = match super::sweep::device_choice(args.device, settings)? {
        // A comparison with nothing would always pass.
        DeviceChoice::Auto => DeviceChoice::Cuda(None),
        DeviceChoice::Cpu => {
            bail!(
                "the CPU is the reference that devices are compared with\n  hint: --device cuda or --device emulated"
            )
        }
        other => other,
    };
    let devices = Devices::choose(choice)
        .context("there is no device to compare with; --device emulated runs its kernels on the CPU")?;
    Ok(devices.with_wait_limit(settings.gpu.wait_limit()).devices)
}

/// A report with what is printed beside it.
struct Shown<'a> {
    report: &'a ParityReport,
    device: String,
    seed: u64,
    seconds: f64,
}

impl Shown<'_> {
    fn text(&self, screen: &Screen) -> String {
        let mut table = Table::new(["strategy", "data", "segments", "trials", "trades", "differing"]);
        for ParityRow { names: [strategy, data, segments], compared } in &self.report.rows {
            table.row([
                strategy.clone(),
                data.clone(),
                segments.clone(),
                number::count(compared.trials),
                number::count(compared.trades),
                number::count(compared.different),
            ]);
        }
        let total = &self.report.total;
        let mut out = table.render(3, screen);
        let what = format!(
            "{} trials, {} of them trade by trade, {} trades, {} in {:.1} s",
            number::count(total.trials),
            number::count(total.detailed),
            number::count(total.trades),
            self.device,
            self.seconds
        );
        match &self.report.first {
            None => out += &format!("\n{what}: not one bit differs\n"),
            Some(first) => {
                let Difference { trial, part, fields, .. } = &first.difference;
                let [strategy, data, segments] = &first.names;
                out += &format!("\n{what}: {} trials differ\n", number::count(total.different));
                out += &format!(
                    "first: trial {trial} of a population of {}, {strategy} on {data} ({segments}), seed {}\n",
                    first.population, self.seed
                );
                out += &format!("  parameters: {}\n", Value::Object(first.parameters.clone()));
                for (name, cpu, device) in fields {
                    out += &format!("  {part}: {name} is {cpu:?} on the CPU, {device:?} on the device\n");
                }
                if fields.is_empty() {
                    out += &format!("  {part}\n");
                }
                if first.is_random {
                    out += &format!("\n{}", first.source);
                }
            }
        }
        out
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .report
            .rows
            .iter()
            .map(|ParityRow { names: [strategy, data, segments], compared }| {
                json!({
                    "strategy": strategy, "data": data, "segments": segments, "trials": compared.trials,
                    "trades": compared.trades, "different": compared.different,
                })
            })
            .collect();
        let number = |value: f64| json!({ "value": value, "bits": format!("{:016x}", value.to_bits()) });
        let first = self.report.first.as_ref().map(|first| {
            let Difference { trial, part, fields, .. } = &first.difference;
            let [strategy, data, segments] = &first.names;
            let fields: Vec<Value> = fields
                .iter()
                .map(|(name, cpu, device)| json!({ "field": name, "cpu": number(*cpu), "device": number(*device) }))
                .collect();
            json!({
                "strategy": strategy, "data": data, "segments": segments,
                "source": first.source, "population": first.population, "trial": trial,
                "parameters": first.parameters, "part": part, "fields": fields,
            })
        });
        let total = &self.report.total;
        json!({
            "device": self.device, "seed": self.seed, "seconds": self.seconds, "trials": total.trials,
            "detailed": total.detailed, "trades": total.trades, "different": total.different, "rows": rows, "first": first,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill_lab::parity::{Compared, FirstDifference};

    #[test]
    fn a_difference_is_shown_with_its_parameters() {
        let compared =
            |different| Compared { trials: 14, trades: 4_000, detailed: 6, different, ..Compared::default() };
        let names = || ["zscore-dip".to_owned(), "regimes".into(), "split 0.7".into()];
        let report = |different, first| ParityReport {
            rows: vec![ParityRow { names: names(), compared: compared(different) }],
            total: compared(different),
            first,
        };
        let difference =
            Difference { trial: 4, row: vec![33.0], part: "LCG".into(), fields: vec![("equity", 1.0, 1.5)] };
        let first = FirstDifference {
            names: names(),
            source: "name = \"drawn\"".into(),
            is_random: false,
            population: 7,
            parameters: serde_json::Map::from_iter([("window".to_owned(), json!(33))]),
            difference,
        };
        let shown = |report| Shown {
            report: Box::leak(Box::new(report)),
            device: "host".into(),
            seed: 5,
            seconds: 1.0,
        };
        assert!(shown(report(0, None)).text(&Screen::PLAIN).ends_with(
            "14 trials, 6 of them trade by trade, 4,000 trades, host in 1.0 s: not one bit differs\n"
        ));
        let other = shown(report(1, Some(first.clone())));
        let text = other.text(&Screen::PLAIN);
        let expected = "first: trial 4 of a population of 7, zscore-dip on regimes (split 0.7), seed 5\n  \
             parameters: {\"window\":33}\n  LCG: equity is 1.0 on the CPU, 1.5 on the device\n";
        assert!(text.ends_with(expected), "{text}");
        let json = other.json();
        assert_eq!(json["first"]["fields"][0]["device"]["value"], 1.5);
        assert_eq!(json["different"], 1);
        let drawn = shown(report(1, Some(FirstDifference { is_random: true, ..first })));
        assert!(
            drawn.text(&Screen::PLAIN).ends_with("name = \"drawn\""),
            "a random strategy is shown in full"
        );
    }
}
