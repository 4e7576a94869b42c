//! How busy and how full the devices of a run were.
//!
//! Busy is the share of the time in which something ran on the device: the union of all stages of all streams. A device is busy also while a
//! single warp follows a single trial. Fill asks how much of it was used: the sum over all stages of their time, times the share of the
//! device that their kernels fill ([`StageSpan::fill`]), over the same time. Streams that run side by
//! side add up, as they do on the device. The sum is not limited to 1: where streams have more work at a time than the device has room for,
//! some of it waits inside a stage, and a fill above 1 says so.
//!
//! The CPU works with all its threads while it works, so that it is as full as it is busy.

use std::collections::VecDeque;

use tidemill_backtest::StageSpan;

use crate::evaluator::BatchSpan;

/// Batches over which the shares of a record are taken.
const BATCHES: usize = 8;

/// Stretches of time that are kept of a device, the newest: more than the streams of a device can have open.
const MOST_STRETCHES: usize = 256;

/// How well the devices were used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceUse {
    /// Share of the time in which they worked, 0 to 1.
    pub busy: f64,
    /// How full they were: time of their kernels, each times the share of the device that it fills, over the whole time. Above 1 where
    /// streams have more work at a time than fits.
    pub fill: f64,
    /// Devices that worked; 0 is the CPU.
    pub n_devices: usize,
}

impl DeviceUse {
    /// Sums up the spans of some batches that took so long.
    pub fn of(spans: &[BatchSpan], wall_ms: f64) -> Option<Self> {
        let mut meter = UseMeter::default();
        meter.on_devices(spans.iter().map(|of| (of.device, of.span)));
        meter.in_all(wall_ms)
    }
}

/// Follows how well the devices are used, batch by batch.
#[derive(Debug, Default)]
pub(crate) struct UseMeter {
    devices: Vec<WorkedTime>,
    busy_ms: f64,
    filled_ms: f64,
    cpu_ms: f64,
    /// After each of the last batches: its end, and the times until then.
    marks: VecDeque<UseMark>,
}

#[derive(Clone, Copy, Debug)]
struct UseMark {
    end_ms: f64,
    busy_ms: f64,
    filled_ms: f64,
}

impl UseMeter {
    /// Takes in the stages of a batch, each with the number of its device; returns the shares over the last batches, NaN before there are two.
    pub fn on_devices(&mut self, spans: impl IntoIterator<Item = (usize, StageSpan)>) -> DeviceUse {
        let mut end_ms = f64::NEG_INFINITY;
        for (device, span) in spans {
            if self.devices.len() <= device {
                self.devices.resize_with(device + 1, WorkedTime::default);
            }
            self.busy_ms += self.devices[device].add(span.begin_ms, span.end_ms);
            self.filled_ms += (span.end_ms - span.begin_ms) * span.fill;
            end_ms = end_ms.max(span.end_ms);
        }
        self.marks.push_back(UseMark { end_ms, busy_ms: self.busy_ms, filled_ms: self.filled_ms });
        if self.marks.len() > BATCHES + 1 {
            self.marks.pop_front();
        }
        let (first, last) = (self.marks[0], self.marks[self.marks.len() - 1]);
        let n_devices = self.devices.len();
        let time_ms = (last.end_ms - first.end_ms) * n_devices as f64;
        let share = |ms: f64| if time_ms > 0.0 { ms / time_ms } else { f64::NAN };
        DeviceUse {
            busy: share(last.busy_ms - first.busy_ms).clamp(0.0, 1.0),
            fill: share(last.filled_ms - first.filled_ms),
            n_devices,
        }
    }

    /// Takes in a batch that the CPU evaluated, after so much time without work; returns its own shares.
    pub fn on_cpu(&mut self, evaluate_ms: f64, idle_ms: f64) -> DeviceUse {
        self.cpu_ms += evaluate_ms;
        let whole_ms = evaluate_ms + idle_ms;
        let busy = if whole_ms > 0.0 { evaluate_ms / whole_ms } else { f64::NAN };
        DeviceUse { busy, fill: busy, n_devices: 0 }
    }

    /// The shares of everything so far, in so much time; none if there was no work.
    pub fn in_all(&self, wall_ms: f64) -> Option<DeviceUse> {
        let n_devices = self.devices.len();
        let share = |ms: f64| (ms / n_devices.max(1) as f64 + self.cpu_ms) / wall_ms;
        (wall_ms > 0.0 && self.busy_ms + self.cpu_ms > 0.0).then(|| DeviceUse {
            busy: share(self.busy_ms).min(1.0),
            fill: share(self.filled_ms),
            n_devices,
        })
    }
}

/// When a device worked: stretches that neither meet nor overlap, in the order of time, the newest.
///
/// Batches are collected one after the other, and a later one may have worked in the gaps of an earlier one.
#[derive(Debug, Default)]
struct WorkedTime(VecDeque<(f64, f64)>);

impl WorkedTime {
    /// Adds a stretch; returns how much of it is new.
    fn add(&mut self, begin_ms: f64, end_ms: f64) -> f64 {
        if end_ms <= begin_ms {
            return 0.0;
        }
        if self.0.len() >= MOST_STRETCHES {
            self.0.pop_front();
        }
        let from = self.0.partition_point(|known| known.1 < begin_ms);
        let to = self.0.partition_point(|known| known.0 <= end_ms);
        if from >= to {
            self.0.insert(from, (begin_ms, end_ms));
            return end_ms - begin_ms;
        }
        // All of these touch the new one, and all become one stretch.
        let known_ms: f64 = self.0.range(from..to).map(|known| known.1 - known.0).sum();
        let joined = (self.0[from].0.min(begin_ms), self.0[to - 1].1.max(end_ms));
        self.0.drain(from + 1..to);
        self.0[from] = joined;
        joined.1 - joined.0 - known_ms
    }
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::Stage;

    use super::*;

    fn span(device: usize, begin_ms: f64, end_ms: f64, fill: f64) -> (usize, StageSpan) {
        (device, StageSpan { stage: Stage::Walk, lane: 0, job: 0, begin_ms, end_ms, fill })
    }

    fn used_in_10_ms(spans: &[(usize, StageSpan)]) -> Option<DeviceUse> {
        let mut meter = UseMeter::default();
        meter.on_devices(spans.iter().copied());
        meter.in_all(10.0)
    }

    #[test]
    fn time_counts_once_in_whatever_order_it_comes() {
        let mut worked = WorkedTime::default();
        assert_eq!(worked.add(0.0, 2.0), 2.0);
        assert_eq!(worked.add(5.0, 10.0), 5.0);
        assert_eq!(worked.add(6.0, 7.0), 0.0);
        assert_eq!(worked.add(2.0, 5.0), 3.0, "the gap of an earlier batch");
        assert_eq!(worked.add(9.0, 12.0), 2.0);
        assert_eq!(worked.add(20.0, 21.0), 1.0);
        assert_eq!(worked.add(-1.0, 30.0), 18.0);
        assert_eq!(Vec::from(worked.0), [(-1.0, 30.0)]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest_counts() {
        let mut worked = WorkedTime::default();
        let added: f64 = (0..1000).map(|at| worked.add(f64::from(2 * at), f64::from(2 * at + 1))).sum();
        assert_eq!((added, worked.0.len()), (1000.0, MOST_STRETCHES));
        assert_eq!(worked.add(1990.0, 2000.0), 5.0);
    }

    #[test]
    fn a_busy_device_may_be_nearly_empty() {
        // Ten milliseconds, of which a kernel of a tenth of the device takes eight, and one that fills it takes one.
        let used = used_in_10_ms(&[span(0, 0.0, 8.0, 0.1), span(0, 8.0, 9.0, 1.0)]).unwrap();
        assert_eq!(used, DeviceUse { busy: 0.9, fill: 0.18, n_devices: 1 });
        assert_eq!(used_in_10_ms(&[]), None);
    }

    #[test]
    fn streams_side_by_side_add_up_and_are_not_cut_off() {
        let used = |fill: f64| used_in_10_ms(&[span(0, 0.0, 10.0, fill), span(0, 0.0, 10.0, fill)]);
        assert_eq!(used(0.25), Some(DeviceUse { busy: 1.0, fill: 0.5, n_devices: 1 }));
        assert_eq!(used(1.0), Some(DeviceUse { busy: 1.0, fill: 2.0, n_devices: 1 }));
        // Two devices are as full as both together.
        let used = used_in_10_ms(&[span(0, 0.0, 10.0, 1.0), span(1, 0.0, 5.0, 0.5)]).unwrap();
        assert_eq!(used, DeviceUse { busy: 0.75, fill: 0.625, n_devices: 2 });
    }

    #[test]
    fn records_look_at_the_last_batches() {
        let mut meter = UseMeter::default();
        let first = meter.on_devices([span(0, 0.0, 10.0, 0.5)]);
        assert!(first.busy.is_nan() && first.fill.is_nan());
        for at in 1..=20 {
            let begin_ms = f64::from(10 * at);
            let used = meter.on_devices([span(0, begin_ms, begin_ms + 8.0, 0.25)]);
            if at > 9 {
                assert_eq!((used.busy, used.fill), (0.8, 0.2));
            }
        }
    }

    #[test]
    fn the_cpu_is_as_full_as_it_is_busy() {
        let mut meter = UseMeter::default();
        assert!(meter.on_cpu(0.0, 0.0).fill.is_nan(), "a batch that was read back");
        assert_eq!(meter.in_all(10.0), None);
        assert_eq!(meter.on_cpu(9.0, 1.0), DeviceUse { busy: 0.9, fill: 0.9, n_devices: 0 });
        assert_eq!(meter.in_all(10.0), Some(DeviceUse { busy: 0.9, fill: 0.9, n_devices: 0 }));
        // A device that is left half-way: both parts count.
        let mut meter = UseMeter::default();
        meter.on_devices([span(0, 0.0, 4.0, 0.5)]);
        meter.on_cpu(5.0, 1.0);
        assert_eq!(meter.in_all(10.0), Some(DeviceUse { busy: 0.9, fill: 0.7, n_devices: 1 }));
    }
}
