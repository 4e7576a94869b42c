"""Tables in the form of whatever library the caller uses."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Any

from . import _tidemill

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """Rows of a result. Anything that speaks Arrow takes it as it is: polars, pyarrow, DuckDB."""

    def __init__(self, raw: _tidemill.RawTable) -> None:
        self._raw = raw

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._raw.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._raw)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._raw.names

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        n_shown = 10
        first = self._raw.head(n_shown)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        cells = ([_shown(value, first.zone(name) is not None) for value in first.values(name)] for name in self.columns)
        rows = zip(*cells, strict=True)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        more = f"<p>{len(self):,} rows, the first {n_shown} shown</p>" if len(self) > n_shown else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists of plain values; None where there is none. It needs no other library."""
        return {name: self._raw.values(name) for name in self.columns}

    def to_polars(self) -> polars.DataFrame:
        """As a polars frame, without a copy."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """As a pyarrow table, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame of its own. pyarrow makes it several times quicker where it is installed, and is not needed."""
        try:
            from pyarrow import RecordBatchReader
        except ImportError:
            return self._by_numpy()
        if not hasattr(RecordBatchReader, "from_stream"):
            return self._by_numpy()  # before pyarrow 15
        # Not with `split_blocks`: columns would not be copied, and pandas could not write to them.
        frame: pandas.DataFrame = RecordBatchReader.from_stream(self).read_all().to_pandas()
        return frame

    def _by_numpy(self) -> pandas.DataFrame:
        """As a pandas frame, with the types and values that pyarrow would give it."""
        import numpy
        import pandas

        columns: dict[str, Any] = {}
        for name in self.columns:
            kind = self._raw.kind(name)
            if kind == "list":
                columns[name] = self._raw.values(name)
                continue
            values = numpy.empty(len(self), dtype={"text": "i8", "time": "i8", "switch": "u1"}.get(kind, kind))
            words = self._raw.fill(name, values)
            if kind == "text":
                columns[name] = pandas.Series(words, dtype=None if words else "str").array.take(values, allow_fill=True)
            elif kind == "time":
                times = pandas.Series(values.view("M8[ms]"))
                columns[name] = times.dt.tz_localize("UTC") if self._raw.zone(name) else times
            else:
                columns[name] = values.view("?") if kind == "switch" else values
        return pandas.DataFrame(columns, copy=False)


def _shown(value: Any, is_time: bool) -> str:
    """A cell of a notebook; times are milliseconds."""
    if value is None:
        return ""
    if is_time:
        return (datetime(1970, 1, 1) + timedelta(milliseconds=value)).isoformat(" ")
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
