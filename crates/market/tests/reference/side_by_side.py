"""Writes `side_by_side.parquet`: a frame with two levels of columns, as yfinance gives it for several tickers."""

import numpy as np
import pandas as pd

dates = pd.date_range("2024-01-01", periods=8, name="Date")
days = np.arange(1, 9, dtype=float)
offsets = {"Close": 0.0, "High": 1.0, "Low": -1.0, "Open": 0.5, "Volume": 90.0, "Adj Close": -0.5}
columns = {}
for price, offset in offsets.items():
    columns[(price, "AAPL")] = 10 + days + offset
    columns[(price, "MSFT")] = np.where(days > 2, 20 + days + offset, np.nan)
frame = pd.DataFrame(columns, index=dates)
frame.columns.names = ["Price", "Ticker"]
frame.to_parquet("side_by_side.parquet")
