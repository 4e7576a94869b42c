"""Writes the files of the test `a_join_is_what_pandas_calls_merge_asof` with pandas and pyarrow."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
start = pd.Timestamp("2024-01-01", tz="UTC")
hour = pd.Timedelta("1h")
bars, features = [], []
for symbol in ["AAA", "BBB", "CCC"]:
    times = start + hour * np.sort(rng.choice(80, 60, replace=False))
    bars.append(pd.DataFrame({"symbol": symbol, "timestamp": times, "open": 5.0, "high": 6.0, "low": 4.0, "close": 5.0}))
    stamps = start + pd.to_timedelta(np.sort(rng.integers(-120, 5_000, 50)), unit="min")
    score = np.where(rng.random(50) < 0.1, np.nan, rng.normal(size=50).round(6))
    features.append(pd.DataFrame({"ticker": symbol, "ts": stamps, "score": score, "side": rng.integers(-1, 2, 50)}))
bars, features = pd.concat(bars), pd.concat(features)
# Exactly at a close, and twice at one stamp: the last row counts.
edge = pd.DataFrame({"ticker": "AAA", "ts": bars.timestamp.iloc[9] + hour, "score": [7.0, 8.0], "side": [1, 0]})
features = pd.concat([features, edge]).sort_values("ts", kind="stable")
left = bars.assign(close_time=bars.timestamp + hour).sort_values("close_time", kind="stable")
joined = pd.merge_asof(
    left, features, left_on="close_time", right_on="ts", left_by="symbol", right_by="ticker", tolerance=2 * hour
)
joined = joined.sort_values(["symbol", "timestamp"])
joined["timestamp"] = joined.timestamp.dt.as_unit("ms").astype("int64")
bars.to_csv("merge_asof_bars.csv", index=False)
features.reset_index(drop=True).to_parquet("merge_asof_features.parquet")
joined[["symbol", "timestamp", "score", "side"]].to_csv("merge_asof.csv", index=False)
