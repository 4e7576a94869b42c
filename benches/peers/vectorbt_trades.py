"""Closed trades of S1 by vectorbt, set by set.

    python vectorbt_trades.py OUT.npz [--data FILE.parquet] [--every 1] [--fee 0.0005] [--peers DIR]

writes the trades of all 1,000 sets (or every k-th) as one npz: `sets` (fast, slow, sl, tp), `fee`, `total_return` (by set, what is
left open marked at the last close), `offset` (trades of set `i` are `offset[i]:offset[i+1]`), `entry_idx`, `exit_idx`, `entry`,
`exit`, `reason` (index into `reasons`).

vectorbt does not say why a position was closed. The reason is found from its own rule: the level it used (entry price less or
plus the fraction given at the entry bar) and the exit bar decide what had to happen, and the exit price must be exactly that.
A trade that the rule does not explain is an error, not a guess. Prices are those of vectorbt's orders; its trade records divide a
sum of values by a sum of sizes, which costs the last bit.
"""

import argparse
import pathlib

import numpy as np

from rival import add_peers_argument, load_peers

FIRST_ENTRY = 250
REASONS = ("STOP", "STOP_GAP", "TARGET", "SIGNAL")
STOP, STOP_GAP, TARGET, SIGNAL = range(4)
FIELDS = ("entry_idx", "exit_idx", "entry", "exit", "reason")


def closed_trades(bars, sets, fee, chunk=50):
    """For each set (fast, slow, sl, tp) a dictionary: arrays entry_idx, exit_idx, entry, exit, reason, and total_return."""
    import pandas as pd
    import vectorbt as vbt

    index = pd.date_range("2020-01-01", periods=len(bars["close"]), freq="15min")
    series = {name: pd.Series(bars[name], index=index) for name in ("open", "high", "low", "close")}
    spans = sorted({int(span) for pair in sets for span in pair[:2]})
    ema = {span: vbt.MA.run(series["close"], window=span, ewm=True).ma.values for span in spans}
    atr = vbt.ATR.run(series["high"], series["low"], series["close"], window=14, ewm=False).atr.values
    # A stop is given as a fraction of the entry price. Before the 14th bar there is none, and no entry either.
    relative_atr = np.nan_to_num(atr / bars["close"], nan=0.01)

    out = []
    for start in range(0, len(sets), chunk):
        part = np.asarray(sets[start : start + chunk])
        above = np.column_stack([ema[int(fast)] > ema[int(slow)] for fast, slow, _, _ in part])
        enter = np.zeros_like(above)
        leave = np.zeros_like(above)
        enter[1:] = above[1:] & ~above[:-1]
        leave[1:] = ~above[1:] & above[:-1]
        enter[:FIRST_ENTRY] = False
        # Nothing can become of it but the fee, so Tidemill does not enter on the last bar.
        enter[-1] = False
        columns = pd.RangeIndex(len(part))
        portfolio = vbt.Portfolio.from_signals(
            series["close"],
            pd.DataFrame(enter, index=index, columns=columns),
            pd.DataFrame(leave, index=index, columns=columns),
            open=series["open"],
            high=series["high"],
            low=series["low"],
            sl_stop=relative_atr[:, None] * part[None, :, 2],
            tp_stop=relative_atr[:, None] * part[None, :, 3],
            fees=fee,
            init_cash=100_000.0,
            freq="15min",
            accumulate=False,
        )
        records = portfolio.orders.values
        total_return = portfolio.total_return().to_numpy()
        for column, (_, _, sl, tp) in enumerate(part):
            orders = records[records["col"] == column]
            pairs = len(orders) // 2  # a buy without its sale is still open
            buys, sales = orders[0 : 2 * pairs : 2], orders[1 : 2 * pairs : 2]
            if (orders["side"] != np.arange(len(orders)) % 2).any():
                raise ValueError("vectorbt does not buy and sell in turn")
            trades = {
                "entry_idx": buys["idx"].astype(np.int64),
                "exit_idx": sales["idx"].astype(np.int64),
                "entry": buys["price"].copy(),
                "exit": sales["price"].copy(),
            }
            trades["reason"] = reasons(trades, bars, relative_atr, sl, tp, leave[:, column])
            trades["total_return"] = total_return[column]
            out.append(trades)
    return out


def reasons(trades, bars, relative_atr, sl, tp, leave):
    """Why each trade was closed, by vectorbt's own rule; the exit price must be exactly what the rule gives."""
    fraction = relative_atr[trades["entry_idx"]]
    stop = trades["entry"] * (1 - fraction * sl)
    target = trades["entry"] * (1 + fraction * tp)
    at = trades["exit_idx"]
    open_, high, low, close = (bars[name][at] for name in ("open", "high", "low", "close"))
    ladder = [
        (open_ <= stop, STOP_GAP, open_),
        (low <= stop, STOP, stop),
        (target <= open_, TARGET, open_),
        (target <= high, TARGET, target),
        (leave[at], SIGNAL, close),
    ]
    reason = np.select([rung[0] for rung in ladder], [rung[1] for rung in ladder], default=-1)
    price = np.select([rung[0] for rung in ladder], [rung[2] for rung in ladder], default=np.nan)
    if (reason < 0).any() or (price != trades["exit"]).any():
        raise ValueError("a trade of vectorbt is not explained by its rule")
    if (trades["entry"] != bars["close"][trades["entry_idx"]]).any():
        raise ValueError("an entry of vectorbt is not at the close")
    return reason


def read_bars(path):
    """Columns open, high, low, close of a Parquet file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return {name: table[name].to_numpy() for name in ("open", "high", "low", "close")}


def s1_bars(peers, n_bars=None):
    """The bars of S1 themselves."""
    columns = peers.data() if n_bars is None else peers.data(n_bars)
    return dict(zip(("open", "high", "low", "close"), columns))


def save(path, sets, fee, trades):
    """Writes the trades of all sets as one npz."""
    counts = [len(one["exit_idx"]) for one in trades]
    arrays = {name: np.concatenate([one[name] for one in trades]) for name in FIELDS}
    offset = np.concatenate(([0], np.cumsum(counts)))
    arrays["total_return"] = np.array([one["total_return"] for one in trades])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, sets=np.asarray(sets), fee=fee, offset=offset, reasons=np.array(REASONS), **arrays)


def load(path):
    """What `save` wrote: the sets, the fee and the trades."""
    file = np.load(path)
    offset = file["offset"]
    arrays = {name: file[name] for name in FIELDS}
    trades = [
        {name: arrays[name][offset[i] : offset[i + 1]] for name in FIELDS} | {"total_return": total}
        for i, total in enumerate(file["total_return"])
    ]
    return file["sets"], float(file["fee"]), trades


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, help="Parquet of make_data.py; without it the bars are made")
    parser.add_argument("--every", type=int, default=1, help="only every k-th set")
    parser.add_argument("--fee", type=float, help="share of the value traded, by default that of the rivals' scripts")
    add_peers_argument(parser)
    args = parser.parse_args()
    peers = load_peers(args.peers)
    fee = peers.FEE if args.fee is None else args.fee
    bars = read_bars(args.data) if args.data else s1_bars(peers)
    sets = peers.grid(1_000)[:: args.every]
    trades = closed_trades(bars, sets, fee)
    save(args.out, sets, fee, trades)
    reason = np.concatenate([one["reason"] for one in trades])
    counts = {name: int((reason == code).sum()) for code, name in enumerate(REASONS)}
    print(f"{args.out}: {len(sets)} sets, {len(reason):,} closed trades {counts}")


if __name__ == "__main__":
    main()
