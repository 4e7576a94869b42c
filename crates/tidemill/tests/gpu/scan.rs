//! Scans on the GPU, or under emulation where there is none, against the CPU, bit for bit.

use tidemill_gpu::{ContextOptions, Device};
use tidemill_market::atc::{AtcOptions, Preset};
use tidemill_scan::{DeviceOptions, Row, ScanOptions, Scanned, Scanner, Symbol};

use crate::device::{gpu_or_host, is_gpu};

/// A walk of `n` bars with a hole and a halt in it.
pub fn walk(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut price = 10.0 + (seed % 90) as f64;
    let step = |bar: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        price *= 1.0 + ((state >> 40) as f64 / (1_u64 << 24) as f64 - 0.5) * 0.03;
        match (seed % 11, bar) {
            (3, 57) => f64::NAN,
            (5, 60) => 0.0,
            (7, 44) => f64::INFINITY,
            _ => price,
        }
    };
    (0..n).map(step).collect()
}

fn bits(row: &Row) -> (usize, u64, Option<Vec<u64>>) {
    // All NaNs are one.
    let canonical = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let average = row.average.as_ref().map(|average| average.iter().copied().map(canonical).collect());
    (row.index, canonical(row.signal), average)
}

pub fn assert_same(found: &Scanned, expected: &Scanned, what: &str) {
    assert_eq!(found.rows.len(), expected.rows.len(), "{what}");
    for (a, b) in found.rows.iter().zip(&expected.rows) {
        assert!(bits(a) == bits(b), "{what}: {} has {}, not {}", a.symbol, a.signal, b.signal);
    }
    assert_eq!(format!("{:?}", found.skipped), format!("{:?}", expected.skipped), "{what}");
}

/// Scans twice on a device.
pub fn scan(
    device: &Device,
    options: &ScanOptions,
    device_options: &DeviceOptions,
    symbols: &[Symbol<'_>],
) -> Scanned {
    let mut scanner =
        Scanner::on_devices(options.clone(), std::slice::from_ref(device), device_options).unwrap();
    let first = scanner.scan(symbols, |_| ()).unwrap();
    // Again in memory that is no longer fresh.
    assert_same(&scanner.scan(symbols, |_| ()).unwrap(), &first, "again");
    first
}

#[test]
fn scans_have_the_bits_of_the_cpu_whatever_the_streams() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = gpu_or_host() else { return };
    let is_gpu = is_gpu(&device);
    let (n_symbols, most_bars) = if is_gpu { (3_000, 1_500) } else { (70, 90) };
    let closes: Vec<Vec<f64>> =
        (0..n_symbols).map(|seed| walk(seed as u64, 20 + (seed * 37) % most_bars)).collect();
    let names: Vec<String> = (0..n_symbols).map(|seed| format!("S{seed}")).collect();
    let both = names.iter().zip(&closes);
    let symbols: Vec<Symbol<'_>> = both.map(|(name, closes)| Symbol { name, closes }).collect();
    for preset in [Preset::V2, Preset::Head, Preset::Pine] {
        for history in [false, true] {
            let atc = AtcOptions { cutout: 7, ..AtcOptions::preset(preset) };
            let options = ScanOptions { atc, min_signal: 0.0, history, ..ScanOptions::default() };
            let expected = Scanner::cpu(options.clone()).unwrap().scan(&symbols, |_| ()).unwrap();
            assert!(expected.rows.len() > n_symbols / 3);
            for streams in if is_gpu { 1..=16 } else { 3..=4 } {
                for batch_symbols in [None, Some(17 * streams)] {
                    let device_options =
                        DeviceOptions { context: ContextOptions::parallel(streams), batch_symbols };
                    let found = scan(&device, &options, &device_options, &symbols);
                    assert_same(
                        &found,
                        &expected,
                        &format!("{preset}, {streams} streams, {batch_symbols:?}"),
                    );
                }
            }
        }
    }
}
