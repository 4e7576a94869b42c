"""The parts of a classification in CuPy, each on its own, beside `cargo bench -p tidemill-market --bench atc -- SYMBOLS BARS`.

A family is nine averages of every symbol. Prices are on the device before the clock starts and results stay there, as in the bench of the
kernels; a figure is the best of some rounds. Each part is also computed by NumPy for a few symbols and compared, loosely: running sums over
many bars lose digits in other ways on a device.

    python parts_cupy.py [--symbols 1000] [--bars 100,1000,10000] [--rounds 5]
"""

import argparse
import time

import numpy

from scan_cupy import LONG_CUT, SHORT_CUT, Scan, lengths

PARTS = ["EMA", "HMA", "WMA", "DEMA", "LSMA", "KAMA", "equity", "weighted_signal", "classify", "atc"]


class Parts(Scan):
    """One part at a time; arrays are (bars, symbols) or (bars, symbols, 9)."""

    def __init__(self, xp, prices, signals, equities, averages):
        super().__init__(xp)
        self.x = xp.ascontiguousarray(xp.asarray(prices).T)
        self.signals, self.equities = xp.asarray(signals), xp.asarray(equities)
        self.last = xp.asarray(averages)
        self.closes = xp.asarray(prices)

    def sums(self, y):
        xp = self.xp
        return xp.concatenate([xp.zeros((1, y.shape[1])), xp.cumsum(y, axis=0)])

    def once(self):
        xp, x, spans = self.xp, self.x, lengths()
        wide = xp.broadcast_to(x[:, :, None], (*x.shape, 9))
        weights = xp.asarray([2.0 / (span + 1) for span in spans])[None, :]
        first = [span - 1 for span in spans]
        sums = self.sums(x)
        seeds = xp.stack([sums[span] / span for span in spans], axis=1)
        return self.exponential(wide, seeds, weights, first), weights, first

    def windows(self, of):
        xp, x = self.xp, self.x
        n, symbols = x.shape
        ramp = xp.arange(n, dtype=x.dtype)[:, None]
        sums, ramped = self.sums(x), self.sums(x * ramp)
        out = xp.full((n, symbols, 9), xp.nan)
        for variant, span in enumerate(lengths()):
            total = sums[span:] - sums[:-span]
            weighted = (ramped[span:] - ramped[:-span]) - (ramp[: n - span + 1] - 1.0) * total
            out[span - 1 :, :, variant] = of(span, total, weighted)
        return out

    def run(self, part):
        xp, x = self.xp, self.x
        n, symbols = x.shape
        if part == "EMA":
            return self.once()[0]
        if part == "DEMA":
            once, weights, first = self.once()
            seeds = xp.stack([once[bar, :, variant] for variant, bar in enumerate(first)], axis=1)
            return 2.0 * once - self.exponential(once, seeds, weights, first)
        if part == "HMA":
            return self.windows(lambda span, total, _: total / span)
        if part == "WMA":
            return self.windows(lambda span, _, weighted: weighted / (span * (span + 1) / 2))
        if part == "LSMA":

            def line(span, total, weighted):
                sx = span * (span + 1) / 2
                sxx = sx * (2 * span + 1) / 3
                d = span * sxx - sx * sx
                return (span * weighted - sx * total) / d * span + (total * sxx - sx * weighted) / d

            return self.windows(line)
        if part == "KAMA":
            ways = xp.concatenate([xp.zeros((2, symbols)), xp.cumsum(xp.abs(x[1:] - x[:-1]), axis=0)])
            smoothing = xp.zeros((n, symbols, 9))
            for variant, span in enumerate(lengths()):
                noise = ways[span + 1 :] - ways[1 : n - span + 1]
                ratio = xp.abs(x[span:] - x[:-span]) / xp.where(noise == 0.0, 1.0, noise)
                smoothing[span:, :, variant] = (ratio * (0.666 - 0.064) + 0.064) ** 2
            wide = xp.broadcast_to(x[:, :, None], (n, symbols, 9))
            out, now = xp.empty((n, symbols, 9)), wide[0].copy()
            for bar in range(n):
                now = self.kama_step(now, wide[bar], smoothing[bar])
                out[bar] = now
            return out
        if part == "equity":
            gain = xp.zeros((n, symbols))
            gain[1:] = x[1:] / x[:-1] - 1.0
            equity, out = xp.ones(symbols), xp.empty((n, symbols))
            out[0] = equity
            for bar in range(1, n):
                equity = self.equity_step(equity, self.signals[bar - 1, :, 0], gain[bar])
                out[bar] = equity
            return out
        if part == "weighted_signal":
            voice = (self.signals * self.equities).sum(axis=2) / self.equities.sum(axis=2)
            return xp.rint(voice * 100.0) / 100.0
        if part == "classify":
            return (self.last > LONG_CUT).astype(numpy.int32) - (self.last < SHORT_CUT).astype(numpy.int32)
        return self.last_average(self.closes)


def data(n_symbols, n_bars):
    """Prices (symbols, bars), nine signals and equities, averages."""
    random = numpy.random.default_rng(7)
    prices = 500.0 * numpy.cumprod(1.0 + 0.02 * (random.random((n_symbols, n_bars)) - 0.5), axis=1)
    shape = (n_bars, n_symbols, 9)
    signals = numpy.floor(random.random(shape) * 3.0) - 1.0
    return prices, signals, 0.25 + 3.0 * random.random(shape), 2.0 * random.random((n_bars, n_symbols)) - 1.0


def main():
    """Times all parts."""
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--symbols", type=int, default=1000)
    args.add_argument("--bars", default="100,1000,10000")
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--numpy", action="store_true", help="run on the CPU")
    args = args.parse_args()
    if args.numpy:
        xp, wait, back = numpy, (lambda: None), (lambda a: a)
    else:
        import cupy as xp

        wait, back = xp.cuda.Device().synchronize, xp.asnumpy
    print(f"{'part':<16} {'symbols':>8} {'bars':>8} {'us/symbol':>16}")
    for n_bars in map(int, args.bars.split(",")):
        given = data(args.symbols, n_bars)
        few = Parts(numpy, given[0][:3], given[1][:, :3], given[2][:, :3], given[3][:, :3])
        parts = Parts(xp, *given)
        for part in PARTS:
            found = back(parts.run(part))
            expected = few.run(part)
            found = found[:3] if part == "atc" else found[:, :3]
            assert numpy.allclose(found, expected, rtol=1e-6, atol=1e-6, equal_nan=True), part
            best = float("inf")
            for _ in range(args.rounds):
                wait()
                began = time.perf_counter()
                kept = parts.run(part)
                wait()
                best = min(best, time.perf_counter() - began)
                del kept
            print(f"{part:<16} {args.symbols:>8} {n_bars:>8} {best * 1e6 / args.symbols:>16.3f}", flush=True)


if __name__ == "__main__":
    main()
