"""Writes the bars of `tests/sources.rs` as pandas, polars, DuckDB and yfinance write them; needs pandas, pyarrow, polars, duckdb."""

import duckdb
import pandas as pd
import polars as pl

N_BARS = 60


def base(bar):
    return 100 + bar * 37 % 11 / 7


bars = range(N_BARS)
opens = [base(bar) for bar in bars]
closes = [base(bar + 1) for bar in bars]
prices = {
    "open": opens,
    "high": [max(pair) + 0.25 for pair in zip(opens, closes)],
    "low": [min(pair) - 0.25 for pair in zip(opens, closes)],
    "close": closes,
    "volume": [float(bar * bar % 97 + 1) for bar in bars],
}
# Clocks change in Europe on 2024-03-31.
times = pd.date_range("2024-03-30", periods=N_BARS, freq="h", name="timestamp")

frame = pd.DataFrame(prices, index=times)
frame.to_parquet("pandas.parquet")
frame.tz_localize("UTC").to_csv("pandas.csv")
frame.reset_index().to_feather("pandas.feather")

hourly = pl.DataFrame({"timestamp": list(times.to_pydatetime()), **prices})
hourly.write_parquet("polars_bars.parquet")
hourly.write_csv("polars_bars.csv")
hourly.write_ipc("polars_bars.arrow", compression="zstd")

duckdb.sql("copy (select * from hourly) to 'duckdb.parquet' (format parquet)")
duckdb.sql("copy (select * from hourly) to 'duckdb.csv' (header)")

# yfinance with several tickers: two levels of columns, hourly bars with a zone.
wide = frame.rename(columns=str.capitalize).tz_localize("UTC")
wide = pd.concat({ticker: wide for ticker in ["AAPL", "MSFT"]}, axis=1, names=["Ticker", "Price"])
wide.index.name = "Datetime"
wide = wide.swaplevel(axis=1).sort_index(axis=1)
wide.to_csv("yfinance.csv")
wide.to_parquet("yfinance.parquet")
