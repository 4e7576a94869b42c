//! How long each part of a classification takes, on the host and on a device.
//!
//! Results are compared bit for bit before anything is timed. A figure is the best of several rounds, because everything that
//! disturbs one makes it longer.

use std::time::{Duration, Instant};

use tidemill_gpu::{Device, DeviceBuffer, GpuError, Stream};

use super::device::{AtcKernels, AtcLaunch, AveragesLaunch, EquityLaunch, Symbols, WeightedLaunch};
use super::family::{Family, N_LENGTHS};
use super::{AtcOptions, Growth, Plan, average, classify, equity, moving_averages, weighted_signal};

/// The time of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The part: the name of a family, `equity`, `weighted_signal`, `classify`, or `atc` for the whole.
    pub part: &'static str,
    /// How many symbols there were.
    pub n_symbols: usize,
    /// How many bars each of them had.
    pub n_bars: usize,
    /// All symbols, one after another, in one thread of the host. A family is nine averages.
    pub host: Duration,
    /// All symbols on the device, without transfers, if there was one.
    pub device: Option<Duration>,
}

/// Times all parts over generated prices, on the host and, if there is one, on a device.
///
/// Panics if the device gives other bits than the host: a fast wrong answer is no measurement.
pub fn measure(
    device: Option<&Device>,
    options: &AtcOptions,
    n_symbols: usize,
    n_bars: usize,
    rounds: usize,
) -> Result<Vec<Measurement>, MeasureError> {
    let plan = Plan::new(options)?;
    options.check_bars(n_bars)?;
    let host = Host::new(options, n_symbols, n_bars)?;
    let bench = device.map(|device| OnDevice::new(device, &plan, &host)).transpose()?;
    let mut all = Vec::new();
    for part in PARTS {
        let mut expected = Vec::new();
        let host_time = best(rounds, || -> Result<(), MeasureError> {
            expected = host.run(part)?;
            Ok(())
        })?;
        let device_time = match &bench {
            None => None,
            Some(bench) => {
                bench.run(part, &plan)?;
                bench.stream.synchronize()?;
                let found = bench.result(part)?;
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(
                    found.len() == expected.len() && found.iter().zip(&expected).all(same),
                    "{part} differs"
                );
                Some(best(rounds, || -> Result<(), MeasureError> {
                    bench.run(part, &plan)?;
                    Ok(bench.stream.synchronize()?)
                })?)
            }
        };
        all.push(Measurement { part, n_symbols, n_bars, host: host_time, device: device_time });
    }
    Ok(all)
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The options do not fit.
    #[error(transparent)]
    Options(#[from] super::AtcError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] GpuError),
}

const PARTS: [&str; 10] =
    ["EMA", "HMA", "WMA", "DEMA", "LSMA", "KAMA", "equity", "weighted_signal", "classify", "atc"];

fn family(part: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| family.name() == part)
}

fn best(rounds: usize, mut run: impl FnMut() -> Result<(), MeasureError>) -> Result<Duration, MeasureError> {
    let mut best = Duration::MAX;
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// What is measured, on the host.
struct Host<'a> {
    options: &'a AtcOptions,
    growth: Growth,
    n_symbols: usize,
    n_bars: usize,
    prices: Vec<f64>,
    /// Nine series of signals and equities.
    signals: Vec<Vec<f64>>,
    equities: Vec<Vec<f64>>,
    averages: Vec<f64>,
}

impl<'a> Host<'a> {
    fn new(options: &'a AtcOptions, n_symbols: usize, n_bars: usize) -> Result<Self, MeasureError> {
        let mut state = 7_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let n = n_symbols * n_bars;
        let mut prices = Vec::with_capacity(n);
        for _ in 0..n_symbols {
            let mut price = 1.0 + 1_000.0 * unit();
            for _ in 0..n_bars {
                price *= 1.0 + 0.02 * (unit() - 0.5);
                prices.push(price);
            }
        }
        let mut series = |of: fn(f64) -> f64| -> Vec<f64> { (0..n).map(|_| of(unit())).collect() };
        let signals = (0..N_LENGTHS).map(|_| series(|u| (u * 3.0).floor() - 1.0)).collect();
        let equities = (0..N_LENGTHS).map(|_| series(|u| 0.25 + 3.0 * u)).collect();
        let averages = series(|u| 2.0 * u - 1.0);
        let growth = Growth::new(options, n_bars);
        Ok(Self { options, growth, n_symbols, n_bars, prices, signals, equities, averages })
    }

    fn run(&self, part: &str) -> Result<Vec<f64>, MeasureError> {
        let n = self.prices.len();
        let symbols = || self.prices.chunks(self.n_bars);
        if let Some(family) = family(part) {
            let mut out: [Vec<f64>; N_LENGTHS] = std::array::from_fn(|_| Vec::with_capacity(n));
            for prices in symbols() {
                let nine = moving_averages(family, prices, self.options)?;
                out.iter_mut().zip(nine).for_each(|(out, series)| out.extend(series));
            }
            return Ok(out.concat());
        }
        let mut out = vec![0.0; n];
        match part {
            "equity" => {
                let both =
                    symbols().zip(self.signals[0].chunks(self.n_bars)).zip(out.chunks_mut(self.n_bars));
                for ((prices, signal), out) in both {
                    equity(prices, signal, 1.0, self.options, &self.growth, out)?;
                }
            }
            "weighted_signal" => {
                let signals: [&[f64]; N_LENGTHS] = std::array::from_fn(|k| &self.signals[k][..]);
                let equities: [&[f64]; N_LENGTHS] = std::array::from_fn(|k| &self.equities[k][..]);
                weighted_signal(&signals, &equities, self.options.l1_round2, &mut out)?;
            }
            "classify" => {
                for (out, average) in out.iter_mut().zip(&self.averages) {
                    *out = f64::from(classify(*average, self.options).number());
                }
            }
            _ => {
                for (prices, out) in symbols().zip(out.chunks_mut(self.n_bars)) {
                    average(prices, self.options, &self.growth, out)?;
                }
                return Ok(out.chunks(self.n_bars).map(|series| series[self.n_bars - 1]).collect());
            }
        }
        Ok(out)
    }
}

/// The same on a device.
struct OnDevice {
    kernels: AtcKernels,
    stream: Stream,
    n: usize,
    n_symbols: u32,
    round: bool,
    offsets: DeviceBuffer<u64>,
    lengths: DeviceBuffer<u32>,
    prices: DeviceBuffer<f64>,
    signals: DeviceBuffer<f64>,
    equities: DeviceBuffer<f64>,
    averages: DeviceBuffer<f64>,
    growth: DeviceBuffer<f64>,
    scratch: DeviceBuffer<f64>,
    out: DeviceBuffer<f64>,
    classes: DeviceBuffer<i32>,
}

impl OnDevice {
    fn new(device: &Device, plan: &Plan, host: &Host<'_>) -> Result<Self, GpuError> {
        let kernels = AtcKernels::new(device)?;
        let (n, n_symbols) = (host.prices.len(), host.n_symbols as u32);
        let offsets: Vec<u64> = (0..host.n_symbols).map(|symbol| (symbol * host.n_bars) as u64).collect();
        Ok(Self {
            stream: device.stream()?,
            n,
            n_symbols,
            round: host.options.l1_round2,
            offsets: device.alloc_from(&offsets)?,
            lengths: device.alloc_from(&vec![host.n_bars as u32; host.n_symbols])?,
            prices: device.alloc_from(&host.prices)?,
            signals: device.alloc_from(&host.signals.concat())?,
            equities: device.alloc_from(&host.equities.concat())?,
            averages: device.alloc_from(&host.averages)?,
            growth: device.alloc_from(host.growth.factors())?,
            scratch: device.alloc(kernels.scratch_len(plan, n_symbols))?,
            out: device.alloc(n * N_LENGTHS)?,
            classes: device.alloc(n)?,
            kernels,
        })
    }

    fn run(&self, part: &str, plan: &Plan) -> Result<(), GpuError> {
        let symbols =
            Symbols { offsets: self.offsets.ptr(), lengths: self.lengths.ptr(), n_symbols: self.n_symbols };
        let (stream, stride) = (&self.stream, self.n as u64);
        if let Some(family) = family(part) {
            let launch = AveragesLaunch {
                plan,
                symbols,
                source: self.prices.ptr(),
                scratch: self.scratch.ptr(),
                out: self.out.ptr(),
                stride,
            };
            // SAFETY: `new` made all memory for these symbols, and only this stream uses it.
            return unsafe { self.kernels.moving_averages(stream, family, &launch) };
        }
        // SAFETY: as above.
        unsafe {
            match part {
                "equity" => self.kernels.equity(
                    stream,
                    &EquityLaunch {
                        plan,
                        symbols,
                        prices: self.prices.ptr(),
                        signal: self.signals.ptr(),
                        growth: self.growth.ptr(),
                        start: 1.0,
                        out: self.out.ptr(),
                    },
                ),
                "weighted_signal" => self.kernels.weighted_signal(
                    stream,
                    &WeightedLaunch {
                        signals: self.signals.ptr(),
                        equities: self.equities.ptr(),
                        stride,
                        n_bars: stride,
                        round: self.round,
                        out: self.out.ptr(),
                    },
                ),
                "classify" => {
                    self.kernels.classify(stream, plan, self.averages.ptr(), stride, self.classes.ptr())
                }
                _ => self.kernels.launch(
                    stream,
                    &AtcLaunch {
                        plan,
                        symbols,
                        prices: self.prices.ptr(),
                        source: None,
                        growth: self.growth.ptr(),
                        scratch: self.scratch.ptr(),
                        last: self.out.ptr(),
                        classes: self.classes.ptr(),
                        averages: None,
                    },
                ),
            }
        }
    }

    fn result(&self, part: &str) -> Result<Vec<f64>, GpuError> {
        let mut out = self.out.to_vec()?;
        match part {
            "classify" => return Ok(self.classes.to_vec()?.into_iter().map(f64::from).collect()),
            "atc" => out.truncate(self.n_symbols as usize),
            "equity" | "weighted_signal" => out.truncate(self.n),
            _ => {}
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_measured() {
        let options = AtcOptions::default();
        let all = measure(None, &options, 2, 60, 1).unwrap();
        assert_eq!(all.len(), PARTS.len());
        assert!(all.iter().all(|one| one.host > Duration::ZERO && one.device.is_none()));
        assert!(measure(None, &options, 2, 20, 1).is_err());
    }

    #[test]
    fn device_is_measured_and_compared() {
        let device = Device::host(tidemill_gpu::HostOptions::default());
        match measure(Some(&device), &AtcOptions::default(), 3, 40, 1) {
            Ok(all) => assert!(all.iter().all(|one| one.device.is_some())),
            Err(MeasureError::Device(GpuError::Unavailable { .. })) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
