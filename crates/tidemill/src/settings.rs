//! `tidemill.toml`: settings of a project, between the flags and the strategy file.
//!
//! Flags win over this file, this file over the strategy, the strategy over the defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tidemill_telemetry::hypertune::{Mode, Thresholds};

use tidemill_backtest::DeviceOptions;
use tidemill_coloring::{ColorSettings, InitialSettings, IterativeSettings};
use tidemill_gpu::ContextOptions;
use tidemill_market::BarStamp;

/// Name of the file that is looked for in the working folder.
const FILE: &str = "tidemill.toml";

/// Everything that can be set there. Unknown keys are errors.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where data comes from.
    pub data: DataSettings,
    /// Settings that change no result.
    pub run: RunSettings,
    /// The device runtime.
    pub gpu: GpuSettings,
    /// Defaults of `sweep`.
    pub sweep: SweepSettings,
    /// Defaults of `color`.
    pub color: ColorSettings,
    /// The passes of `color`.
    pub iterative: IterativeSettings,
    /// Where `color` begins.
    pub initial_coloring: InitialSettings,
    /// Rules that watch a run.
    pub hypertune: HypertuneSettings,
    /// Execution keys laid over every strategy.
    pub execution: toml::Table,
    /// Where it was read from.
    #[serde(skip)]
    path: PathBuf,
}

/// Where data comes from.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataSettings {
    /// Files or folders to use where no `--data` is given.
    pub files: Vec<PathBuf>,
    /// Time zone of timestamps without one.
    pub timezone: Option<String>,
    /// Whether timestamps mark the open or the end of a bar.
    pub stamp: Option<BarStamp>,
}

/// Settings that change no result.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Worker threads.
    pub threads: Option<usize>,
    /// Memory for shared columns, in MiB.
    pub cache_mb: Option<usize>,
}

/// The device runtime. No result depends on it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GpuSettings {
    /// The default of `--device`; a number is that of a GPU.
    #[serde(alias = "device_id", deserialize_with = "number_or_text")]
    pub device: Option<String>,
    /// Streams of a device. A sweep computes as many batches, or parts of one, at a time; a scan has one for uploads and one for downloads
    /// among them; colourings give each phase one in turn.
    pub streams: Option<usize>,
    /// Whether streams run side by side.
    pub stream_mode: Option<StreamMode>,
    /// Share of a device's free memory that may be used.
    pub memory_fraction: Option<f64>,
    /// Seconds to wait for a device before it counts as lost.
    pub wait_limit_s: Option<f64>,
}

impl GpuSettings {
    /// How a workload uses a device, where these are its defaults.
    pub fn context(&self, default: ContextOptions) -> ContextOptions {
        ContextOptions {
            streams: self.streams.unwrap_or(default.streams),
            mode: match self.stream_mode {
                Some(StreamMode::Sequential) => tidemill_gpu::StreamMode::Sequential,
                Some(StreamMode::Parallel) => tidemill_gpu::StreamMode::Parallel,
                None => default.mode,
            },
            memory_fraction: self.memory_fraction.unwrap_or(default.memory_fraction),
        }
    }

    /// Settings of a device engine.
    pub fn device_options(&self) -> DeviceOptions {
        let default = DeviceOptions::default();
        DeviceOptions { context: self.context(default.context), ..default }
    }

    /// How long to wait for a device, if that is set.
    pub fn wait_limit(&self) -> Option<Duration> {
        // A time that no `Duration` can hold means no limit.
        self.wait_limit_s.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// Whether streams run side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// One after the other, on one stream.
    Sequential,
    /// Side by side.
    #[default]
    Parallel,
}

/// Defaults of `sweep`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SweepSettings {
    /// Number of trials.
    pub trials: Option<u64>,
    /// Sampler.
    pub sampler: Option<String>,
    /// Trials proposed at a time: a number, or `auto`.
    #[serde(deserialize_with = "number_or_text")]
    pub batch: Option<String>,
    /// Batches by which the sampler lags behind: a number, or `auto`.
    #[serde(deserialize_with = "number_or_text")]
    pub lag: Option<String>,
    /// Seed.
    pub seed: Option<u64>,
    /// Trials shown.
    pub top: Option<usize>,
}

/// Rules that watch a run: `mode`, and thresholds by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct HypertuneSettings {
    table: toml::Table,
}

impl HypertuneSettings {
    /// The default of `--hypertune`.
    pub fn mode(&self) -> Result<Mode> {
        match self.table.get("mode") {
            None => Ok(Mode::Advise),
            Some(value) => value.clone().try_into().map_err(|_| {
                anyhow::anyhow!("settings: hypertune.mode = {value}: expected \"off\", \"advise\" or \"on\"")
            }),
        }
    }

    /// When rules fire.
    pub fn thresholds(&self) -> Result<Thresholds> {
        let mut table = self.table.clone();
        table.remove("mode");
        let thresholds: Thresholds =
            table.try_into().map_err(|error| anyhow::anyhow!("settings: [hypertune]: {error}"))?;
        thresholds.check().map_err(|error| anyhow::anyhow!("settings: hypertune.{error}"))?;
        Ok(thresholds)
    }
}

/// Takes `batch = 64` as well as `batch = "auto"`.
fn number_or_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
    }
    Ok(Some(match Either::deserialize(deserializer)? {
        Either::Number(number) => number.to_string(),
        Either::Text(text) => text,
    }))
}

impl Settings {
    /// Reads the file given, or `tidemill.toml` of the working folder if there is one.
    pub fn load(path: Option<&Path>) -> Result<Self> {
        let path = match path {
            Some(path) => path,
            None if Path::new(FILE).is_file() => Path::new(FILE),
            None => return Ok(Self::default()),
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read settings {}", path.display()))?;
        let mut settings: Self = toml::from_str(&text).map_err(|error| {
            anyhow::anyhow!("settings {}: {}", path.display(), error.to_string().trim_end())
        })?;
        settings.path = path.into();
        settings.check()?;
        Ok(settings)
    }

    /// Path of the file, for messages.
    pub fn origin(&self) -> String {
        self.path.display().to_string()
    }

    /// Refuses values that no flag could correct, and names the file.
    fn check(&self) -> Result<()> {
        if self.sweep.trials == Some(0) {
            anyhow::bail!("settings {}: sweep.trials must be at least 1", self.origin());
        }
        if self.gpu.streams.is_some_and(|streams| !(1..=16).contains(&streams)) {
            anyhow::bail!("settings {}: gpu.streams must lie between 1 and 16", self.origin());
        }
        if self.gpu.memory_fraction.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            anyhow::bail!("settings {}: gpu.memory_fraction must lie between 0 and 1", self.origin());
        }
        if self.gpu.wait_limit_s.is_some_and(|seconds| seconds.is_nan() || seconds < 1.0) {
            anyhow::bail!("settings {}: gpu.wait_limit_s must be at least 1", self.origin());
        }
        self.hypertune.mode()?;
        self.hypertune.thresholds()?;
        let checked = self.color.on_cpu().and_then(|_| self.initial_coloring.phases());
        checked.with_context(|| format!("settings {}", self.origin()))?;
        for key in self.execution.keys() {
            if !tidemill_backtest::strategy::EXECUTION_KEYS.contains(&key.as_str()) {
                let known = tidemill_backtest::strategy::EXECUTION_KEYS.join(", ");
                anyhow::bail!(
                    "settings {}: unknown key execution.{key}; known keys are {known}",
                    self.origin()
                );
            }
        }
        Ok(())
    }

    /// Execution keys as `name=value` settings.
    pub fn execution_settings(&self) -> Vec<(String, String)> {
        self.execution.iter().map(|(key, value)| (format!("execution.{key}"), value.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_waiting_is_that_of_the_settings() {
        let limit =
            |wait_limit_s: Option<f64>| GpuSettings { wait_limit_s, ..GpuSettings::default() }.wait_limit();
        assert_eq!(limit(Some(90.0)), Some(Duration::from_secs(90)));
        assert_eq!(limit(Some(1e300)), Some(Duration::MAX), "too long for a duration is no limit");
        assert_eq!(limit(None), None);
    }
}
