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
        """As a pandas frame; pyarrow is not needed for it."""
        import numpy
        import pandas

        columns: dict[str, Any] = {}
        for name in self.columns:
            kind, values = self._raw.column(name)
            if kind == "list":
                columns[name] = values
            elif kind == "text":
                places, words = values
                places = numpy.frombuffer(places, dtype="i8")
                columns[name] = pandas.Series(words, dtype=None if words else "str").array.take(places, allow_fill=True)
            elif kind == "time":
                times = pandas.Series(numpy.frombuffer(values, dtype="i8").view("M8[ms]"))
                columns[name] = times.dt.tz_localize("UTC") if self._raw.zone(name) else times
            else:
                columns[name] = numpy.frombuffer(values, dtype=kind)
        return pandas.DataFrame(columns, copy=False)


def _shown(value: Any, is_time: bool) -> str:
    """A cell of a notebook; times are milliseconds."""
    if value is None:
        return ""
    if is_time:
        return (datetime(1970, 1, 1) + timedelta(milliseconds=value)).isoformat(" ")
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
