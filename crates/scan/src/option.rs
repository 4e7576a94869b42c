//! Options of a scan, and of the devices that run it.

use tidemill_gpu::ContextOptions;
use tidemill_market::atc::AtcOptions;

use crate::error::ScanError;

/// Options that decide the result of a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanOptions {
    /// Options of the computation.
    pub atc: AtcOptions,
    /// Weakest signal that is kept, as a size; one that equals it is kept.
    pub min_signal: f64,
    /// Use this many bars of each symbol, the last ones; all if none. Results depend on where the window begins, so a symbol
    /// with fewer bars is skipped.
    pub bars: Option<usize>,
    /// Whether rows carry the average of every bar.
    pub history: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { atc: AtcOptions::default(), min_signal: 0.01, bars: None, history: false }
    }
}

impl ScanOptions {
    /// Refuses values that are not allowed.
    pub fn validate(&self) -> Result<(), ScanError> {
        self.atc.validate()?;
        if !(self.min_signal >= 0.0 && self.min_signal.is_finite()) {
            return Err(ScanError::Option {
                name: "min_signal",
                value: self.min_signal.to_string(),
                expected: "a number that is not negative",
            });
        }
        if self.bars == Some(0) {
            return Err(ScanError::Option { name: "bars", value: "0".into(), expected: "at least 1" });
        }
        Ok(())
    }
}

/// Most streams of a device.
pub const MAX_STREAMS: usize = 16;

/// Options of a device. No result depends on them.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOptions {
    /// Streams, 1 to [`MAX_STREAMS`], and as many batches in flight; with one, or in sequence, nothing overlaps. And the share of the
    /// free memory that batches may use.
    pub context: ContextOptions,
    /// Most symbols of a batch; chosen by their number and the streams if none.
    pub batch_symbols: Option<usize>,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self { context: ContextOptions::parallel(8), batch_symbols: None }
    }
}

impl DeviceOptions {
    /// Refuses values that are not allowed.
    pub fn validate(&self) -> Result<(), ScanError> {
        let ContextOptions { streams, memory_fraction, .. } = self.context;
        let refuse = |name, value, expected| Err(ScanError::Option { name, value, expected });
        if !(1..=MAX_STREAMS).contains(&streams) {
            return refuse("streams", streams.to_string(), "a number from 1 to 16");
        }
        if self.batch_symbols == Some(0) {
            return refuse("batch_symbols", "0".into(), "at least 1");
        }
        if !(memory_fraction > 0.0 && memory_fraction <= 1.0) {
            return refuse("memory_fraction", memory_fraction.to_string(), "a share above 0, at most 1");
        }
        Ok(())
    }
}
