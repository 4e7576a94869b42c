//! Arguments that several commands share: strategy, data and its segments.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Overrides, Strategy};
use tidemill_lab::shipped::{SHIPPED, open_strategy};
use tidemill_lab::{CutTexts, Dataset, Recipe};
use tidemill_market::{BarStamp, JoinOptions, LoadOptions, timeframe};

use crate::progress::while_loading;
use crate::settings::{DataSettings, Settings};

/// What a strategy is opened with.
#[derive(Args, Clone)]
pub struct StrategyArgs {
    /// Set a parameter or an execution key; a set parameter is not searched. Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub set: Vec<(String, String)>,
    /// Apply this profile of the strategy file.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Maximise this metric or expression instead of the file's. A sweep takes several.
    #[arg(long, value_name = "EXPR")]
    pub objective: Vec<String>,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// How files are read.
#[derive(Args, Clone)]
pub struct ReadingArgs {
    /// Only these symbols, separated by commas; * stands for any text: *USDT.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    symbols: Option<Vec<String>>,
    /// Resample to larger bars, for example 1h.
    #[arg(long, value_name = "TIMEFRAME")]
    resample: Option<String>,
    /// Time zone of timestamps without one, for example America/New_York [default: UTC].
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Whether timestamps mark the open or the end of a bar [default: open].
    #[arg(long, value_name = "open|close", value_parser = stamp_parser(), hide_possible_values = true)]
    stamp: Option<BarStamp>,
    /// The symbol of files without a symbol column [default: the name of the file, without date and bar length].
    #[arg(long, value_name = "SYMBOL", conflicts_with = "name_from")]
    name: Option<String>,
    /// The symbol of files without a symbol column by a regular expression: its first group in the path as given.
    #[arg(long, value_name = "REGEX")]
    name_from: Option<String>,
    /// Refuse a folder with a file that cannot be read, instead of reporting it and going on without it.
    #[arg(long)]
    strict: bool,
    /// Join the columns of this file to the bars by time, as series of the strategy.
    #[arg(long, value_name = "FILE")]
    join: Option<PathBuf>,
    /// Whether a bar reads the joined rows that exist by its close or by its open [default: close].
    #[arg(long, value_name = "open|close", value_parser = stamp_parser(), hide_possible_values = true, requires = "join")]
    as_of: Option<BarStamp>,
    /// Do not read joined rows that are older than this, for example 2h.
    #[arg(long, value_name = "DURATION", requires = "join")]
    max_age: Option<String>,
    /// What the names of joined columns begin with, for example ml_.
    #[arg(long, value_name = "TEXT", requires = "join")]
    prefix: Option<String>,
}

impl ReadingArgs {
    /// The options of a load; the settings fill in what is not given.
    pub fn options(&self, settings: &DataSettings) -> Result<LoadOptions> {
        let resample =
            self.resample.as_deref().map(timeframe::parse_duration).transpose().context("--resample")?;
        let max_age_ms =
            self.max_age.as_deref().map(timeframe::parse_span).transpose().context("--max-age")?;
        let join = self.join.clone().map(|path| JoinOptions {
            path,
            as_of: self.as_of.unwrap_or(BarStamp::Close),
            max_age_ms,
            prefix: self.prefix.clone().unwrap_or_default(),
        });
        Ok(LoadOptions {
            join,
            symbols: self.symbols.clone(),
            timezone: self.timezone.clone().or_else(|| settings.timezone.clone()),
            stamp: self.stamp.or(settings.stamp).unwrap_or_default(),
            resample,
            name: self.name.clone(),
            name_from: self.name_from.clone(),
            strict: self.strict,
            ..LoadOptions::default()
        })
    }

    /// Refuses flags that do not apply to generated data; `needed` is the argument that names files.
    pub fn refuse_without_files(&self, needed: &str) -> Result<()> {
        for (is_given, flag) in [
            (self.symbols.is_some(), "--symbols"),
            (self.timezone.is_some(), "--timezone"),
            (self.stamp.is_some(), "--stamp"),
            (self.resample.is_some(), "--resample"),
            (self.name.is_some(), "--name"),
            (self.name_from.is_some(), "--name-from"),
            (self.strict, "--strict"),
            (self.join.is_some(), "--join"),
        ] {
            if is_given {
                bail!("{flag} needs {needed}: it does not apply to generated data");
            }
        }
        Ok(())
    }
}

/// What data is loaded and how it is cut.
#[derive(Args, Clone)]
pub struct DataSource {
    /// CSV, Parquet, Arrow or zip files, or folders of them [default: generated data with a planted edge].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// First bar that counts, for example 2023-01-01. Indicators see all bars before it.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// First bar that no longer counts.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Share of the time span that is in-sample; the rest is only reported.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub split: Option<f64>,
    /// Cut the in-sample part into this many blocks and reduce the objective over them.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub folds: Option<usize>,
    /// Data that the search never sees, to test its winners on: from 2024-01-01 on, or 2024-01-01..2025-01-01.
    #[arg(long, value_name = "FROM[..TO]")]
    pub holdout: Option<String>,
    /// Leave this much time out between two parts, for example 2d, so that they share nothing.
    #[arg(long, value_name = "DURATION")]
    pub embargo: Option<String>,
    /// Trade only these symbols, separated by commas; strategies read the others all the same: *USDT.
    #[arg(long, value_name = "A,B*", value_delimiter = ',')]
    pub trade: Option<Vec<String>>,
    /// Compare results with holding this instead of every symbol: a symbol of the data, or a file with the bars of one.
    #[arg(long, value_name = "SYMBOL|FILE")]
    pub benchmark: Option<String>,
}

/// Reads `open` or `end`.
fn stamp_parser() -> impl TypedValueParser<Value = BarStamp> {
    PossibleValuesParser::new(["open", "close"])
        .map(|text| if text == "close" { BarStamp::Close } else { BarStamp::Open })
}

/// Reads a count as people write it: `20000`, `10k`, `1e6`.
pub fn parse_count(text: &str) -> Result<u64, String> {
    tidemill_telemetry::number::parse_count(text)
        .ok_or_else(|| "expected a whole number, for example 20000, 10k, 2M or 1e6".into())
}

/// Reads `NAME=VALUE`.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        _ => Err("expected NAME=VALUE, for example --set fast=20".into()),
    }
}

impl StrategyArgs {
    /// Opens a shipped strategy by name or a file by path, for a command that takes one objective.
    pub fn open(&self, strategy: &str, settings: &Settings) -> Result<Strategy> {
        if self.objective.len() > 1 {
            bail!(
                "--objective is given {} times; only a sweep takes several objectives",
                self.objective.len()
            );
        }
        self.open_all(strategy, settings)
    }

    /// The same with all objectives.
    pub fn open_all(&self, strategy: &str, settings: &Settings) -> Result<Strategy> {
        let mut set = settings.execution_settings();
        if self.profile.is_some() && !set.is_empty() {
            eprintln!("note: [execution] of {} overrides the profile", settings.origin());
        }
        set.extend(self.set.iter().cloned());
        let objectives = self.objective.clone();
        Ok(open_strategy(strategy, &Overrides { profile: self.profile.clone(), set, objectives })?)
    }
}

impl DataSource {
    /// Loads or generates the data.
    pub fn open(&self, settings: &Settings) -> Result<(Dataset, Layout)> {
        let files = if self.data.is_empty() { &settings.data.files } else { &self.data };
        let cut = CutTexts {
            from: self.from.clone(),
            to: self.to.clone(),
            split: self.split,
            folds: self.folds,
            holdout: self.holdout.clone(),
            embargo: self.embargo.clone(),
            trade: self.trade.clone(),
        };
        let layout = cut.layout()?;
        let options = self.reading.options(&settings.data)?;
        if files.is_empty() {
            self.reading.refuse_without_files("--data")?;
        }
        for file in files {
            let name = file.to_string_lossy();
            let shipped = !file.exists() && SHIPPED.iter().any(|(shipped, _)| *shipped == name);
            if shipped || name.ends_with(".toml") {
                bail!("`{name}` was taken for a data file\n  hint: write the strategy before --data");
            }
        }
        let progress = options.progress.clone();
        let data = while_loading(&progress, || {
            let data = Recipe::new(files, options).load()?;
            match &self.benchmark {
                Some(name) => data.with_benchmark(name),
                None => Ok(data),
            }
        })?;
        Ok((data, layout))
    }
}

/// More threads than this are a mistake.
const MAX_THREADS: usize = 1024;

/// Sets the number of worker threads.
pub fn set_threads(threads: Option<usize>) -> Result<()> {
    if let Some(threads) = threads
        && !(1..=MAX_THREADS).contains(&threads)
    {
        bail!("the number of threads must lie between 1 and {MAX_THREADS}, found {threads}");
    }
    if let Some(threads) = threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("cannot start worker threads")?;
    }
    Ok(())
}
