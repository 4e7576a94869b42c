//! Times the parts of Adaptive Trend Classification at 100, 1,000 and 10,000 bars: `cargo bench -p tidemill-market`.
//!
//! On a GPU too where there is one. With two numbers after `--`, so many symbols of so many bars instead.

use std::time::Duration;

use tidemill_gpu::Device;
use tidemill_market::atc::AtcOptions;
use tidemill_market::atc::bench::{MeasureError, measure};

fn main() -> Result<(), MeasureError> {
    let device = Device::cuda(0).map_err(|error| eprintln!("on the host only: {error}")).ok();
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = match numbers[..] {
        [n_symbols, n_bars] => vec![(n_symbols, n_bars)],
        _ => vec![(100, 100), (100, 1_000), (10, 10_000)],
    };
    println!(
        "{:<16} {:>8} {:>8} {:>16} {:>16}",
        "part", "symbols", "bars", "host us/symbol", "device us/symbol"
    );
    for (n_symbols, n_bars) in sizes {
        for one in measure(device.as_ref(), &AtcOptions::default(), n_symbols, n_bars, 5)? {
            let each = |time: Duration| time.as_secs_f64() * 1e6 / one.n_symbols as f64;
            let device = one.device.map_or("-".into(), |time| format!("{:.3}", each(time)));
            println!(
                "{:<16} {:>8} {:>8} {:>16.3} {:>16}",
                one.part,
                one.n_symbols,
                one.n_bars,
                each(one.host),
                device
            );
        }
    }
    Ok(())
}
