//! The scanner itself: it chooses the bars, has the CPU or devices compute them, and sorts the symbols into lists.

use std::sync::mpsc::channel;

use tidemill_gpu::Device;
use tidemill_market::atc::{Class, Growth, Plan, average, trend};

use crate::batch::{Queue, sort_for_device};
use crate::cpu;
use crate::device::{DeviceScanner, Message};
use crate::error::ScanError;
use crate::event::{BatchDone, ScanEvent};
use crate::option::{DeviceOptions, ScanOptions};
use crate::outcome::{Filtered, Row, Scanned, SkipReason, Skipped, Symbol};

/// Averages of one symbol.
#[derive(Clone, Debug)]
pub(crate) struct Averages {
    pub last: f64,
    /// The class of the last one, from where it was computed.
    pub class: Class,
    /// Of every bar, if requested.
    pub all: Option<Vec<f64>>,
}

/// Scans symbols, as often as wanted, on the CPU or on devices.
pub struct Scanner {
    options: ScanOptions,
    /// Empty on the CPU.
    devices: Vec<DeviceScanner>,
    may_fall_back: bool,
    fallback: Option<String>,
    growth: Growth,
}

impl Scanner {
    /// A scanner on the CPU.
    pub fn cpu(options: ScanOptions) -> Result<Self, ScanError> {
        options.validate()?;
        let growth = Growth::new(&options.atc, 0);
        Ok(Self { options, devices: Vec::new(), may_fall_back: false, fallback: None, growth })
    }

    /// A scanner on these devices, which share the symbols. Compiles the kernels.
    pub fn on_devices(
        options: ScanOptions,
        devices: &[Device],
        device_options: &DeviceOptions,
    ) -> Result<Self, ScanError> {
        device_options.validate()?;
        let mut scanner = Self::cpu(options)?;
        let plan = Plan::new(&scanner.options.atc)?;
        for (number, device) in devices.iter().enumerate() {
            let made = DeviceScanner::new(device, number, plan, device_options);
            let made = made.map_err(|error| ScanError::Device { device: device.info().name.clone(), error });
            scanner.devices.push(made?);
        }
        Ok(scanner)
    }

    /// A scanner on these devices that falls back to the CPU, with the same results, when one of them fails: now or during a scan.
    pub fn or_cpu(
        options: ScanOptions,
        devices: &[Device],
        device_options: &DeviceOptions,
    ) -> Result<Self, ScanError> {
        match Self::on_devices(options.clone(), devices, device_options) {
            Err(error @ ScanError::Device { .. }) => {
                Ok(Self { fallback: Some(error.to_string()), ..Self::cpu(options)? })
            }
            made => Ok(Self { may_fall_back: true, ..made? }),
        }
    }

    /// Why it fell back to the CPU, if it did.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// The options it was made with.
    pub fn options(&self) -> &ScanOptions {
        &self.options
    }

    /// Scans symbols and calls `observe` in the calling thread for every event.
    pub fn scan(
        &mut self,
        symbols: &[Symbol<'_>],
        mut observe: impl FnMut(ScanEvent),
    ) -> Result<Scanned, ScanError> {
        let mut skipped = Vec::new();
        // Symbol and window.
        let mut work: Vec<(usize, &[f64])> = Vec::with_capacity(symbols.len());
        for (index, symbol) in symbols.iter().enumerate() {
            match self.window(symbol.closes) {
                Ok(window) => work.push((index, window)),
                Err(reason) => skipped.push(Skipped { symbol: symbol.name.into(), index, reason }),
            }
        }
        sort_for_device(&mut work);
        let windows: Vec<&[f64]> = work.iter().map(|(_, window)| *window).collect();
        let longest = windows.iter().map(|window| window.len()).max().unwrap_or(0);
        if self.growth.factors().len() < longest {
            self.growth = Growth::new(&self.options.atc, longest);
        }
        let averages = match self.compute(&windows, &mut observe) {
            Err(error @ ScanError::Device { .. }) if self.may_fall_back => {
                let reason = error.to_string();
                self.devices.clear();
                self.fallback = Some(reason.clone());
                observe(ScanEvent::FellBack { reason });
                self.compute(&windows, &mut observe)?
            }
            averages => averages?,
        };

        let mut found: Vec<(usize, &[f64], Averages)> = work
            .into_iter()
            .zip(averages)
            .map(|((index, window), averages)| (index, window, averages))
            .collect();
        found.sort_by_key(|(index, ..)| *index);
        let mut scanned = Scanned { skipped, ..Scanned::default() };
        for (index, window, averages) in found {
            self.sort_in(symbols[index].name, index, window, averages, &mut scanned);
        }
        scanned.skipped.sort_by_key(|skipped| skipped.index);
        Ok(scanned)
    }

    /// The average of every bar of one symbol's window, computed on the CPU; it has the bits of a device.
    pub fn average(&self, closes: &[f64]) -> Result<Vec<f64>, SkipReason> {
        let window = self.window(closes)?;
        let mut out = vec![f64::NAN; window.len()];
        let own;
        let growth = if self.growth.factors().len() < window.len() {
            own = Growth::new(&self.options.atc, window.len());
            &own
        } else {
            &self.growth
        };
        match average(window, &self.options.atc, growth, &mut out) {
            Ok(()) => Ok(out),
            Err(error) => Err(SkipReason::Refused { error }),
        }
    }

    /// The bars to scan, or why there are none.
    fn window<'a>(&self, closes: &'a [f64]) -> Result<&'a [f64], SkipReason> {
        let window = match self.options.bars {
            Some(wanted) if closes.len() < wanted && !closes.is_empty() => {
                return Err(SkipReason::FewBars { bars: closes.len(), wanted });
            }
            Some(wanted) => &closes[closes.len().saturating_sub(wanted)..],
            None => closes,
        };
        if u32::try_from(window.len()).is_err() {
            return Err(SkipReason::ManyBars { bars: window.len() });
        }
        let Some(&price) = window.last() else { return Err(SkipReason::NoBars) };
        if !(price.is_finite() && price > 0.0) {
            return Err(SkipReason::BadPrice { price });
        }
        match self.options.atc.check_bars(window.len()) {
            Ok(()) => Ok(window),
            Err(error) => Err(SkipReason::Refused { error }),
        }
    }

    /// Puts a symbol into its list.
    fn sort_in(&self, name: &str, index: usize, window: &[f64], averages: Averages, scanned: &mut Scanned) {
        let (symbol, signal) = (name.to_string(), averages.last);
        if signal.is_nan() {
            scanned.skipped.push(Skipped { symbol, index, reason: SkipReason::NoSignal });
        } else if signal.abs() < self.options.min_signal {
            scanned.filtered.push(Filtered { symbol, index, signal });
        } else {
            scanned.rows.push(Row {
                symbol,
                index,
                signal,
                trend: trend(signal),
                class: averages.class,
                price: window[window.len() - 1],
                bars: window.len(),
                average: averages.all,
            });
        }
    }

    fn compute(
        &mut self,
        windows: &[&[f64]],
        observe: &mut impl FnMut(ScanEvent),
    ) -> Result<Vec<Averages>, ScanError> {
        if self.devices.is_empty() {
            let ScanOptions { atc, history, .. } = &self.options;
            return Ok(cpu::scan(windows, atc, &self.growth, *history, observe)?);
        }
        self.scan_on_devices(windows, observe)
    }

    /// Every device takes batches from one queue; results are placed by the number of their first symbol.
    fn scan_on_devices(
        &mut self,
        windows: &[&[f64]],
        observe: &mut impl FnMut(ScanEvent),
    ) -> Result<Vec<Averages>, ScanError> {
        let queue = Queue::new(windows);
        let (growth, history) = (&self.growth, self.options.history);
        let mut all: Vec<Option<Averages>> = vec![None; windows.len()];
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let mut workers = Vec::new();
            for device in &mut self.devices {
                let (queue, sender, name) = (&queue, sender.clone(), device.name().to_string());
                let work = move || device.run(windows, queue, growth, history, &sender);
                workers.push((name, scope.spawn(work)));
            }
            drop(sender);
            let (mut number, mut done) = (0, 0);
            for message in receiver {
                match message {
                    Message::Done { first, averages, stages } => {
                        let symbols = averages.len();
                        let bars = windows[first..first + symbols].iter().map(|window| window.len()).sum();
                        for (place, averages) in all[first..].iter_mut().zip(averages) {
                            *place = Some(averages);
                        }
                        done += symbols;
                        let total = windows.len();
                        observe(ScanEvent::Batch(BatchDone { number, symbols, bars, done, total, stages }));
                        number += 1;
                    }
                    Message::Shrunk { device, symbols, reason } => {
                        observe(ScanEvent::Shrunk { device, symbols, reason });
                    }
                }
            }
            for (number, (device, worker)) in workers.into_iter().enumerate() {
                let Ok(result) = worker.join() else { return Err(ScanError::Worker { device }) };
                let statistics = result.map_err(|error| ScanError::Device { device, error })?;
                observe(ScanEvent::DeviceDone { device: number, statistics });
            }
            Ok(())
        })?;
        // Without an error every batch came back.
        Ok(all.into_iter().flatten().collect())
    }
}
