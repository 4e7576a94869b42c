"""Frames of other libraries as what the native half takes."""

from __future__ import annotations

from typing import Any

_HINT = "pass a polars or pandas frame, a pyarrow table, a path, or a dict of symbols and frames"

Column = tuple[str, str, Any]


def streamed(frame: Any) -> Any:
    """The frame itself if it can hand over Arrow's stream, else its columns as numpy buffers."""
    if hasattr(frame, "to_frame") and not hasattr(frame, "columns"):
        frame = frame.to_frame()  # one column, such as closes alone
    if type(frame).__module__.split(".")[0] == "pandas":
        return _of_pandas(frame)
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        frame = frame.collect()  # a lazy frame of polars
    if hasattr(frame, "__arrow_c_stream__"):
        return frame
    raise TypeError(f"{type(frame).__name__} is no table\n  hint: {_HINT}")


def _of_pandas(frame: Any) -> Any:
    index = frame.index
    if index.nlevels == 1 and index.name is None and index.dtype.kind in "iu":
        frame = frame.reset_index(drop=True)  # numbers of rows, left over from a selection
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return _columns(frame)
    return frame


def _columns(frame: Any) -> list[Column]:
    """Columns by numpy. An index that is more than a row number comes first, as pyarrow would have it."""
    import pandas

    columns: list[Column] = []
    index = frame.index
    if not isinstance(index, pandas.RangeIndex):
        for at in range(index.nlevels):
            name = index.names[at]
            values = index.get_level_values(at).to_series()
            columns.append(_column("__index_level_0__" if name is None else str(name), values))
    columns.extend(_column(str(name), frame[name]) for name in frame.columns)
    return columns


def _column(name: str, series: Any) -> Column:
    import numpy
    import pandas

    if isinstance(series.dtype, pandas.DatetimeTZDtype):
        plain = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return name, f"time:{series.dtype.unit}:UTC", plain.to_numpy().view("i8").copy()
    if series.dtype.kind == "M":
        unit = numpy.datetime_data(series.dtype)[0]
        return name, f"time:{unit}", series.to_numpy().view("i8").copy()
    if series.dtype.kind in "iu":
        return name, "whole", numpy.ascontiguousarray(series.to_numpy(), dtype="i8")
    if series.dtype.kind in "fb":
        return name, "number", numpy.ascontiguousarray(series.to_numpy(), dtype="f8")
    places, words = pandas.factorize(series)
    return name, "text", (numpy.ascontiguousarray(places, dtype="i8"), [str(word) for word in words])


def renamed(frame: Any, by: tuple[str, ...]) -> Any:
    """The frame with the columns that rows are matched by under the names that the native half looks for."""
    columns = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    *symbol, time = by
    missing = [name for name in by if name not in columns]
    if missing:
        raise ValueError(f"by={by!r}: the frame has no column {', '.join(missing)}; it has {', '.join(map(str, columns))}")
    names = {time: "timestamp", **{name: "symbol" for name in symbol}}
    # What bears one of these names and is not meant must not be taken for it.
    others = {name: f"{name}_" for name in ("timestamp", "symbol") if name in columns and name not in by}
    names.update(others)
    if hasattr(frame, "rename_columns"):
        return frame.rename_columns([names.get(name, name) for name in columns])
    if type(frame).__module__.split(".")[0] == "pandas":
        return frame.rename(columns=names)
    return frame.rename(names)
