//! `Runtime`: how an experiment runs. Nothing here changes a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemill_backtest::{DeviceOptions, EngineOptions};

use crate::cluster::Cluster;
use crate::device::Devices;

/// Devices, memory, and a way to stop.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Where trials are evaluated.
    pub devices: Arc<Devices>,
    /// Settings of devices.
    pub device_options: DeviceOptions,
    /// Memory for the columns and masks that trials share on the CPU.
    pub cache_bytes: usize,
    /// Whether proposing, evaluating and storing run side by side.
    pub pipeline: bool,
    /// Whether to keep when each stage ran on the devices.
    pub keeps_spans: bool,
    /// Stops the run once it is set; finished trials are kept.
    pub stop: Arc<AtomicBool>,
    /// Workers that evaluate the trials in place of the devices, if there are any.
    pub cluster: Option<Cluster>,
}

impl Default for Runtime {
    /// The CPU.
    fn default() -> Self {
        Self {
            devices: Arc::new(Devices::of(Vec::new(), false)),
            device_options: DeviceOptions::default(),
            cache_bytes: EngineOptions::default().cache_bytes,
            pipeline: true,
            keeps_spans: false,
            stop: Arc::default(),
            cluster: None,
        }
    }
}

impl Runtime {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn engine_options(&self) -> EngineOptions {
        EngineOptions { cache_bytes: self.cache_bytes, ..EngineOptions::default() }
    }
}
