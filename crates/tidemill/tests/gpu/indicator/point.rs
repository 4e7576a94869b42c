//! The device functions that give an indicator at one bar, against their Rust twins.

use tidemill_gpu::{Device, DevicePtr, HostOptions, Launch, Source, kernel_structs};
use tidemill_market::indicator::device::point_pieces;
use tidemill_market::indicator::{self, Moments};

use super::bench::{Bench, FIRST};
use super::{LENGTHS, N_TRIALS};
use crate::device::unless_unavailable;

kernel_structs! {
    const LAYOUTS;

    /// What the test's own kernel takes: one symbol's part of a column and of its sums.
    struct PointArgs {
        x: DevicePtr<f64>,
        sums: [DevicePtr<f64>; 3],
        counts: [DevicePtr<f64>; 3],
        out: DevicePtr<f64>,
        n: u32,
        w: u32,
        ahead: u32,
        unused: u32,
    }
}

const POINT_KERNEL: &str = "
struct PointArgs {
  const double* x;
  const double* sums[3];
  const Counts* counts[3];
  double* out;
  u32 n, w, ahead, unused;
};

KERNEL(points, PointArgs) {
  u32 bar = blockIdx.x * blockDim.x + threadIdx.x;
  if (bar > args.n) return;
  double* out = args.out + (u64)bar * 10;
  u32 n = args.n, w = args.w;
  const PairSums* squares = (const PairSums*)args.sums[1];
  const PairSums* index = (const PairSums*)args.sums[2];
  out[0] = sma_at((const DoubleDouble*)args.sums[0], args.counts[0], n, bar, w);
  out[1] = stddev_at(squares, args.counts[1], n, bar, w);
  out[2] = stddev_sample_at(squares, args.counts[1], n, bar, w);
  out[3] = zscore_at(args.x, squares, args.counts[1], n, bar, w);
  out[4] = lsma_at(index, args.counts[2], n, bar, w);
  out[5] = wma_at(index, args.counts[2], n, bar, w);
  out[6] = highest_at(args.x, n, bar, w);
  out[7] = lowest_at(args.x, n, bar, w);
  out[8] = swing_high_at(args.x, n, bar, w, args.ahead);
  out[9] = swing_low_at(args.x, n, bar, w, args.ahead);
}
";

#[test]
fn values_at_one_bar_equal_their_twins() {
    let bench = Bench::new(Device::host(HostOptions::default()), &LENGTHS, N_TRIALS);
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_EMULATION") else { return };
    let pieces: Vec<(&str, &str)> = point_pieces().into_iter().chain([("points.cu", POINT_KERNEL)]).collect();
    let source = Source::splice("points.cu", &pieces).comparing("", &[LAYOUTS]);
    let points = bench.device.load(&source).unwrap().kernel("points").unwrap();
    for kind in 0..4 {
        let columns = bench.columns(true, 5, kind).unwrap();
        let moments = [Moments::Sum, Moments::SumSquares, Moments::SumIndex];
        let prefixes = moments.map(|moments| bench.prefixes(moments, &columns).unwrap());
        let n_entries = bench.n_bars() + LENGTHS.len();
        for (symbol, bars) in bench.symbols().enumerate().filter(|(_, bars)| bars.len() <= 700) {
            let (n, x) = (bars.len(), &columns.items[0][bars.clone()]);
            let out = bench.device.alloc::<f64>((n + 1) * 10).unwrap();
            for (w, ahead) in [(0, 0), (1, 0), (2, 1), (5, 1), (14, 3), (33, 8), (300, 20), (301, 0)] {
                let item = |k: usize| prefixes[k].buffer.ptr().add(FIRST * prefixes[k].stride as usize);
                let (wide, entry) = ([2, 4, 4], bars.start + symbol);
                let args = PointArgs {
                    x: columns.buffer.ptr().add(bars.start),
                    sums: [0, 1, 2].map(|k| item(k).add(wide[k] * entry)),
                    counts: [0, 1, 2].map(|k| item(k).add(wide[k] * n_entries + entry)),
                    out: out.ptr(),
                    n: n as u32,
                    w: w as u32,
                    ahead: ahead as u32,
                    unused: 0,
                };
                let stream = bench.device.stream().unwrap();
                let shape = Launch::blocks((n as u32 + 1).div_ceil(64), 64);
                // SAFETY: the kernel reads the series, prefix sums and counts of one symbol and writes ten numbers for each of `n + 1` bars.
                unsafe { stream.launch(&points, shape, &args).unwrap() };
                stream.synchronize().unwrap();
                let [sum, squares, index] = [0, 1, 2].map(|k| &prefixes[k].items[0][symbol]);
                let mut zscore = vec![f64::NAN; n + 1];
                indicator::zscore(x, squares, w, &mut zscore[..n]);
                for (bar, kernel) in out.to_vec().unwrap().chunks(10).enumerate() {
                    let twins = [
                        sum.mean_at(bar, w),
                        squares.std_pop_at(bar, w),
                        squares.std_sample_at(bar, w),
                        zscore[bar],
                        index.lsma_at(bar, w),
                        index.wma_at(bar, w),
                        indicator::highest_at(x, w, bar),
                        indicator::lowest_at(x, w, bar),
                        indicator::swing_high_at(x, w, ahead, bar),
                        indicator::swing_low_at(x, w, ahead, bar),
                    ];
                    for (k, (kernel, twin)) in kernel.iter().zip(twins).enumerate() {
                        assert!(
                            kernel.to_bits() == twin.to_bits() || (kernel.is_nan() && twin.is_nan()),
                            "value {k} of window {w} at bar {bar} of symbol {symbol}: {kernel:?}, not {twin:?}"
                        );
                    }
                }
            }
        }
    }
}
