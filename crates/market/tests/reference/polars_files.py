"""Writes `polars.arrow` and `polars.parquet`, the same bars in both."""

from datetime import datetime, timedelta

import polars as pl

hours = list(range(50))
frame = pl.DataFrame(
    {
        "timestamp": [datetime(2024, 1, 1) + timedelta(hours=hour) for hour in hours],
        "open": [100.0 + hour % 7 for hour in hours],
        "high": [108.0 + hour % 7 for hour in hours],
        "low": [99.0 - hour % 3 for hour in hours],
        "close": [101.0 + hour % 5 for hour in hours],
        "volume": [float(hour) for hour in hours],
    }
)
frame.write_ipc("polars.arrow", compression="lz4")
frame.write_parquet("polars.parquet")
