"""Makes the tables that tests/reference.rs compares with.

The probabilistic and deflated Sharpe ratio come from skfolio 1.12.2, the rest from NumPy 2.4 and SciPy 1.17, computed from whole series of
returns: no sums by block, no shortcuts. Run it in this folder:

    pip install numpy scipy skfolio==1.12.2 statsmodels==0.15.0 && python make_tables.py

α, β and t(α) come from statsmodels' OLS with `cov_type="HAC"`: Bartlett kernel (its default), `maxlags` by Newey and West's rule, and
`use_correction=False` (also its default), that is without the factor T / (T - 2) for small samples.
"""

import csv
import itertools

import numpy as np
import scipy.special
import scipy.stats
import statsmodels.api as sm
from skfolio.measures import deflated_sharpe_ratio, probabilistic_sharpe_ratio

MASK = (1 << 64) - 1
WEYL = 0x9E3779B97F4A7C15


def mix(bits):
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


class Stream:
    """The random numbers of the program, written a second time."""

    def __init__(self, seed, dimension):
        self.start = mix((mix((seed + WEYL) & MASK) + dimension * WEYL) & MASK)
        self.increment = mix(self.start ^ WEYL) | 1
        if bin(self.increment ^ (self.increment >> 1)).count("1") < 24:
            self.increment ^= 0xAAAAAAAAAAAAAAAA

    def bits(self, counter):
        return mix((self.start + counter * self.increment) & MASK)

    def unit(self, counter):
        return (self.bits(counter) >> 11) * 2.0**-53


def returns(seed, trial, n, drift):
    """Noise with fat tails that leans to one side."""
    stream = Stream(seed, trial)
    noise = np.array([stream.unit(day) for day in range(n)]) - 0.4
    return noise * noise * noise + drift


def sharpe_table():
    rows = []
    for seed, n, drift, benchmark, n_trials in [
        (1, 250, -0.022, 0.0, 10),
        (2, 1000, -0.018, 0.05, 1000),
        (3, 60, 0.01, 0.1, 7),
        (4, 3000, -0.027, 0.0, 100),
        (5, 500, -0.02, 0.02, 10000),
    ]:
        series = returns(seed, 0, n, drift)
        # Ratios of trials with a given spread, as the library wants them one by one.
        trials = np.array([Stream(seed, 99).unit(at) for at in range(n_trials)]) * 0.1
        sharpe = series.mean() / series.std(ddof=1)
        skew, kurtosis = scipy.stats.skew(series), scipy.stats.kurtosis(series, fisher=False)
        spread = 1 - skew * sharpe + (kurtosis - 1) / 4 * sharpe**2
        z = scipy.stats.norm.ppf(0.95)
        length = 1 + spread * (z / (sharpe - benchmark)) ** 2 if sharpe > benchmark else ""
        rows.append(
            [seed, n, drift, benchmark, n_trials, trials.var(ddof=1), sharpe, skew, kurtosis,
             probabilistic_sharpe_ratio(series, benchmark), deflated_sharpe_ratio(series, trials), length]
        )
    write("sharpe.csv", "seed,n,drift,benchmark,n_trials,variance,sharpe,skew,kurtosis,probabilistic,deflated,length", rows)


def ratio(part):
    return part.mean(axis=0) / part.std(axis=0, ddof=1)


def overfit_table():
    rows = []
    for seed, n_trials, n_days, n_blocks, step in [
        (1, 50, 160, 8, 0.0),
        (2, 33, 120, 10, 1e-4),
        (3, 40, 320, 16, 0.0),
        (4, 7, 30, 6, 3e-3),
        (5, 100, 240, 12, 5e-5),
    ]:
        table = np.stack([returns(seed, at, n_days, step * at - 0.01) for at in range(n_trials)], axis=1)
        blocks = np.split(table, n_blocks)
        logits, inside, outside = [], [], []
        for chosen in itertools.combinations(range(n_blocks), n_blocks // 2):
            rest = [at for at in range(n_blocks) if at not in chosen]
            own = ratio(np.concatenate([blocks[at] for at in chosen]))
            other = ratio(np.concatenate([blocks[at] for at in rest]))
            best = np.argmax(own)
            place = scipy.stats.rankdata(other)[best] / (n_trials + 1)
            logits.append(scipy.special.logit(place))
            inside.append(own[best])
            outside.append(other[best])
        logits, outside = np.array(logits), np.array(outside)
        sums = np.stack([block.sum(axis=0) for block in blocks], axis=1)
        pairs = np.corrcoef(sums)[np.triu_indices(n_trials, 1)]
        rows.append(
            [seed, n_trials, n_days, n_blocks, step, (logits <= 0).mean(), (outside < 0).mean(),
             scipy.stats.linregress(inside, outside).slope, logits.mean(), pairs.mean()]
        )
    write("overfit.csv", "seed,n_trials,n_days,n_blocks,step,probability,loss,slope,mean_logit,correlation", rows)


def bootstrap_table():
    rows = []
    for seed, n, drift, n_resamples, confidence in [(1, 40, 0.01, 200, 0.9), (2, 301, 0.0, 500, 0.95), (3, 2, 0.0, 100, 0.5)]:
        values = returns(seed, 5, n, drift)
        means = np.array(
            [values[[(Stream(seed, at).bits(draw) * n) >> 64 for draw in range(n)]].mean() for at in range(n_resamples)]
        )
        low, high = np.quantile(means, [(1 - confidence) / 2, 1 - (1 - confidence) / 2])
        rows.append([seed, n, drift, n_resamples, confidence, values.mean(), low, high, (means > 0).mean()])
    write("bootstrap.csv", "seed,n,drift,n_resamples,confidence,mean,low,high,positive", rows)


def alpha_table():
    rows = []
    for seed, n, drift, market_drift, beta, year_days in [
        (1, 250, -0.02, -0.018, 0.5, 252),
        (2, 1000, -0.018, -0.025, 1.0, 365),
        (3, 30, 0.01, 0.0, -0.4, 365),
        (4, 3000, -0.027, -0.01, 0.0, 260),
        (5, 77, -0.02, -0.02, 1.7, 52),
    ]:
        market = returns(seed, 7, n, market_drift)
        own = returns(seed, 8, n, drift)
        # Each day remembers the last one, so that the lags of the error matter.
        own[1:] += 0.5 * own[:-1]
        series = own + beta * market
        lags = int(np.floor(4 * (n / 100) ** (2 / 9)))
        fit = sm.OLS(series, sm.add_constant(market)).fit(
            cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": False}
        )
        rows.append(
            [seed, n, drift, market_drift, beta, year_days, lags,
             fit.params[1], fit.params[0] * year_days, fit.tvalues[0]]
        )
    write("alpha.csv", "seed,n,drift,market_drift,share,year_days,lags,beta,alpha,t_alpha", rows)


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header.split(","))
        out.writerows([[repr(float(value)) if isinstance(value, (float, np.floating)) else value for value in row] for row in rows])


sharpe_table()
overfit_table()
bootstrap_table()
alpha_table()
