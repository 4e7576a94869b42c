//! Prices, devices and comparisons for the tests.

use tidemill_gpu::{Device, Fault, GpuError, HostOptions};
use tidemill_scan::{DeviceOptions, Row, ScanError, ScanOptions, Scanned, Scanner, Symbol};

/// A walk of `n` bars, from integers alone.
pub fn walk(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut price = 50.0 + seed as f64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        price *= 1.0 + ((state >> 40) as f64 / (1_u64 << 24) as f64 - 0.5) * 0.03;
        price
    };
    (0..n).map(step).collect()
}

/// Symbols of many lengths: some empty, some too short, some with holes.
pub fn ragged() -> Vec<(String, Vec<f64>)> {
    let lengths = [60, 0, 34, 33, 120, 1, 75, 75, 200, 41, 90, 36, 150, 64, 35, 99, 60, 180, 55, 70];
    let mut all: Vec<(String, Vec<f64>)> = (0_u64..)
        .zip(lengths.iter().cycle().take(45))
        .map(|(seed, &n)| (format!("S{seed:02}"), walk(seed + 1, n)))
        .collect();
    all[4].1[50] = f64::NAN;
    all[8].1[100] = f64::INFINITY;
    all[12].1[70] = 0.0;
    all[6].1[74] = f64::NAN;
    all[7].1[74] = 0.0;
    all
}

pub fn symbols(all: &[(String, Vec<f64>)]) -> Vec<Symbol<'_>> {
    all.iter().map(|(name, closes)| Symbol { name, closes }).collect()
}

/// Every signal counts.
pub fn all_signals() -> ScanOptions {
    ScanOptions { min_signal: 0.0, ..ScanOptions::default() }
}

pub fn on_cpu(options: &ScanOptions, all: &[(String, Vec<f64>)]) -> Scanned {
    Scanner::cpu(options.clone()).unwrap().scan(&symbols(all), |_| ()).unwrap()
}

pub fn host(faults: &[Fault]) -> Device {
    Device::host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() })
}

/// A scanner on a device, or nothing where kernels cannot be emulated. With `TIDEMILL_REQUIRE_EMULATION=1` that is a failure.
pub fn on_device(
    options: &ScanOptions,
    devices: &[Device],
    device_options: &DeviceOptions,
) -> Option<Scanner> {
    match Scanner::on_devices(options.clone(), devices, device_options) {
        Ok(scanner) => Some(scanner),
        Err(ScanError::Device { error: error @ GpuError::Unavailable { .. }, .. }) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn bits(row: &Row) -> (usize, u64, u64, Option<Vec<u64>>) {
    // All NaNs are one.
    let canonical = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let average = row.average.as_ref().map(|average| average.iter().copied().map(canonical).collect());
    (row.index, canonical(row.signal), canonical(row.price), average)
}

/// Whether two scans found the same, in every bit.
pub fn assert_same(found: &Scanned, expected: &Scanned, what: &str) {
    let all = |scanned: &Scanned| scanned.rows.iter().map(bits).collect::<Vec<_>>();
    assert_eq!(all(found), all(expected), "{what}");
    let text = |scanned: &Scanned| format!("{:?}{:?}", scanned.skipped, scanned.filtered);
    assert_eq!(text(found), text(expected), "{what}");
}
