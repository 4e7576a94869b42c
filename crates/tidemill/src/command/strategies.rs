//! `tidemill strategies`: lists or prints the shipped strategies.

use std::io::Write;

use anyhow::{Result, bail};
use clap::Args;

use crate::exit::ExitCode;
use crate::table::{Display, Table};
use tidemill_backtest::diagnostic::nearest;
use tidemill_lab::shipped::SHIPPED;

/// List the shipped strategies, or print one.
#[derive(Args)]
#[command(after_help = "Example: tidemill strategies ema-cross > my-strategy.toml")]
pub struct StrategiesArgs {
    /// Print the file of this strategy.
    name: Option<String>,
}

pub fn run(args: StrategiesArgs, display: &Display) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    match args.name {
        Some(name) => match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, source)) => out.write_all(source.as_bytes())?,
            None => {
                let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                if let Some(near) = nearest(&name.replace('_', "-"), names.iter().copied()) {
                    bail!("there is no shipped strategy `{name}`\n  hint: did you mean `{near}`?");
                }
                bail!("there is no shipped strategy `{name}`; the shipped ones are {}", names.join(", "));
            }
        },
        None => {
            let mut table = Table::new(["strategy", "what it does"]);
            for (name, source) in SHIPPED {
                let description = source
                    .lines()
                    .find_map(|line| line.strip_prefix("description = "))
                    .map_or("", |text| text.trim_matches('"'));
                table.row([name.to_string(), description.to_string()]);
            }
            write!(out, "{}", table.render(2, &display.screen))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
