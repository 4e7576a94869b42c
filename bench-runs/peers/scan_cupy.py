"""The computation of `tidemill bench scan` in CuPy, for comparison: preset v2, 54 averages a symbol, last average of each.

Written as one would write it well without kernels of one's own: whatever is a window is computed for all bars at once from
running sums, whatever is a recurrence is a loop over time on whole arrays (symbols x variants), and the body of each loop is
fused by `cupy.fuse`. Bars come first in memory, so that a step reads and writes contiguously. The data has no gaps, and none
are handled here.

    tidemill bench scan --dump runs/scan --device cuda        # writes closes.npy and signals.npy
    python scan_cupy.py runs/scan                             # times this file and compares

Time is from prices in page-locked host memory to signals in host memory, after a first run that compiles. With --numpy it
runs on the CPU: slow, to check that it computes the same.
"""

import argparse
import json
import pathlib
import time

import numpy

OFFSETS = {"Narrow": (1, 2, 3, 4), "Medium": (1, 2, 4, 6), "Wide": (1, 3, 5, 7)}
LENGTH, ROBUSTNESS = 28, "Medium"
GROWTH_RATE, DECAY = 0.02 / 1000.0, 0.03 / 100.0
LONG_CUT, SHORT_CUT, FLOOR = 0.1, -0.1, 0.25


def lengths():
    """The nine lengths of a family, in the order of summation."""
    steps = OFFSETS[ROBUSTNESS]
    return [LENGTH, *(LENGTH + k for k in steps), *(max(LENGTH - k, 1) for k in steps)]


class Scan:
    """The computation on a module with the interface of NumPy."""

    def __init__(self, xp):
        self.xp = xp
        fuse = xp.fuse if hasattr(xp, "fuse") else lambda f: f

        @fuse
        def ema(before, x, weight):
            return (1.0 - weight) * before + weight * x

        @fuse
        def kama(before, x, smoothing):
            return before + smoothing * (x - before)

        @fuse
        def equity(before, signal, gain):
            return xp.maximum((before * (1.0 - DECAY)) * (1.0 + xp.sign(signal) * gain), FLOOR)

        @fuse
        def latch(before, crossing):
            return xp.where(crossing != 0.0, crossing, before)

        self.ema_step, self.kama_step, self.equity_step, self.latch_step = ema, kama, equity, latch

    def exponential(self, source, seeds, weights, first):
        """Exponential averages of (bars, symbols, variants), each seeded at its own first bar."""
        xp = self.xp
        out = xp.full(source.shape, xp.nan)
        now = xp.full(source.shape[1:], xp.nan)
        starts = {}
        for variant, bar in enumerate(first):
            starts.setdefault(bar, []).append(variant)
        for bar in range(min(starts), len(source)):
            now = self.ema_step(now, source[bar], weights)
            for variant in starts.get(bar, ()):
                now[:, variant] = seeds[:, variant]
            out[bar] = now
        return out

    def averages(self, x):
        """All 54 moving averages: (bars, symbols, 54)."""
        xp, (n, symbols), spans = self.xp, x.shape, lengths()
        out = xp.full((n, symbols, 54), xp.nan)
        zero = xp.zeros((1, symbols))
        sums = xp.concatenate([zero, xp.cumsum(x, axis=0)])
        ramp = xp.arange(n, dtype=x.dtype)[:, None]
        ramped = xp.concatenate([zero, xp.cumsum(x * ramp, axis=0)])
        ways = xp.concatenate([zero, zero, xp.cumsum(xp.abs(x[1:] - x[:-1]), axis=0)])

        wide = xp.broadcast_to(x[:, :, None], (n, symbols, 9))
        weights = xp.asarray([2.0 / (span + 1) for span in spans])[None, :]
        first = [span - 1 for span in spans]
        seeds = xp.stack([sums[span] / span for span in spans], axis=1)
        once = self.exponential(wide, seeds, weights, first)
        out[:, :, 0:9] = once
        seeds = xp.stack([once[span - 1, :, variant] for variant, span in enumerate(spans)], axis=1)
        out[:, :, 27:36] = 2.0 * once - self.exponential(once, seeds, weights, first)

        smoothing = xp.zeros((n, symbols, 9))
        for variant, span in enumerate(spans):
            total = sums[span:] - sums[:-span]
            # Sum of k * x over the window, k = 1 for its oldest bar.
            start = ramp[: n - span + 1]
            weighted = (ramped[span:] - ramped[:-span]) - (start - 1.0) * total
            out[span - 1 :, :, 9 + variant] = total / span
            out[span - 1 :, :, 18 + variant] = weighted / (span * (span + 1) / 2)
            sx = span * (span + 1) / 2
            sxx = sx * (2 * span + 1) / 3
            d = span * sxx - sx * sx
            slope = (span * weighted - sx * total) / d
            out[span - 1 :, :, 36 + variant] = slope * span + (total * sxx - sx * weighted) / d
            noise = ways[span + 1 :] - ways[1 : n - span + 1]
            ratio = xp.abs(x[span:] - x[:-span]) / xp.where(noise == 0.0, 1.0, noise)
            smoothing[span:, :, variant] = (ratio * (0.666 - 0.064) + 0.064) ** 2
        now = wide[0].copy()
        for bar in range(n):
            now = self.kama_step(now, wide[bar], smoothing[bar])
            out[bar, :, 45:54] = now
        return out

    def last_average(self, closes):
        """The last average of each symbol; closes are (symbols, bars) on the device."""
        xp = self.xp
        x = xp.ascontiguousarray(closes.T)
        n, symbols = x.shape
        average = self.averages(x)
        price = x[:, :, None]
        above, below = price > average, price < average
        at_most, at_least = price <= average, price >= average
        crossing = xp.zeros(average.shape, dtype=numpy.float64)
        crossing[1:] = (above[1:] & at_most[:-1]).astype(numpy.float64)
        crossing[1:] -= (below[1:] & at_least[:-1]).astype(numpy.float64)
        del average, above, below, at_most, at_least

        bar = xp.maximum(xp.arange(n, dtype=numpy.float64), 1.0)
        gain = xp.zeros((n, symbols))
        gain[1:] = (x[1:] / x[:-1] - 1.0) * xp.exp(GROWTH_RATE * bar)[1:, None]

        shape = (symbols, 54)
        signal, equity = xp.zeros(shape), xp.ones(shape)
        voices, equities = xp.empty((n, symbols, 54)), xp.empty((n, symbols, 54))
        for at in range(n):
            if at > 0:
                equity = self.equity_step(equity, signal, gain[at][:, None])
            signal = self.latch_step(signal, crossing[at])
            xp.multiply(signal, equity, out=voices[at])
            equities[at] = equity
        families = (n, symbols, 6, 9)
        layer1 = voices.reshape(families).sum(axis=3) / equities.reshape(families).sum(axis=3)
        layer1 = xp.rint(layer1 * 100.0) / 100.0
        del crossing, voices, equities

        weight = xp.ones((symbols, 6))
        for at in range(1, n):
            weight = self.equity_step(weight, layer1[at - 1], gain[at][:, None])
        last = layer1[-1]
        vote = (last > LONG_CUT).astype(numpy.float64) - (last < SHORT_CUT).astype(numpy.float64)
        return (vote * weight).sum(axis=1) / weight.sum(axis=1)


def main():
    """Times the computation and compares it with the dump."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=pathlib.Path, help="folder with closes.npy and signals.npy")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions; the median counts")
    parser.add_argument("--symbols", type=int, help="only the first symbols")
    parser.add_argument("--chunk", type=int, default=10_000, help="symbols at a time, for the memory")
    parser.add_argument("--numpy", action="store_true", help="run on the CPU")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()

    closes = numpy.load(args.dump / "closes.npy")[: args.symbols]
    expected = numpy.load(args.dump / "signals.npy")[: args.symbols]
    if args.numpy:
        xp, name = numpy, "NumPy"
        there, back, wait = (lambda a: a), (lambda a: a), (lambda: None)
        host = closes
    else:
        import cupy
        import cupyx

        xp = cupy
        name = f"CuPy {cupy.__version__} on {cupy.cuda.runtime.getDeviceProperties(0)['name'].decode()}"
        there, back, wait = cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize
        host = cupyx.empty_pinned(closes.shape, dtype=closes.dtype)
        host[...] = closes
    scan = Scan(xp)

    def run():
        parts = [back(scan.last_average(there(host[at : at + args.chunk]))) for at in range(0, len(host), args.chunk)]
        wait()
        return numpy.concatenate(parts)

    found, times = run(), []
    for _ in range(args.repeat):
        began = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - began)
    seconds = float(numpy.median(times))
    error = numpy.abs(found - expected)
    result = {
        "name": name,
        "symbols": len(closes),
        "bars": closes.shape[1],
        "median_s": seconds,
        "best_s": min(times),
        "symbols_per_s": len(closes) / seconds,
        "largest_difference": float(error.max()),
        "beyond_1e-9": int((error > 1e-9).sum()),
    }
    if args.json:
        print(json.dumps(result))
        return
    print(f"{name}: {result['symbols']} symbols x {result['bars']} bars in {seconds * 1e3:.1f} ms (best {min(times) * 1e3:.1f})")
    print(f"  {result['symbols_per_s']:.0f} symbols/s")
    print(f"  {result['beyond_1e-9']} signals differ by more than 1e-9, the largest by {result['largest_difference']:.3g}")


if __name__ == "__main__":
    main()
