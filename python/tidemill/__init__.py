"""Tidemill: back-test millions of parameter sets of a trading strategy, exactly.

Verbs are functions (`load`, `sweep`, `backtest`, …) with the flags of the command line as keyword arguments; results are objects.
"""

from __future__ import annotations

import sys as _sys

from . import _tidemill
from ._backtest import Backtest, backtest
from ._bars import Bars, generate, load
from ._color import Coloring, color
from ._error import DataError, DeviceError, Error, Problem, StrategyError, StudyError
from ._map import map
from ._scan import Scan, scan
from ._signal import Signal, signal
from ._strategy import Range, Strategy, bool_, choice, float, int, strategies, strategy
from ._study import Check, Study, Trial, Verdict, open, sweep
from ._table import Table
from ._walk import WalkForward, walkforward

__version__, semantics = _tidemill.version()

# NVRTC of the extra `cuda` lies in one of these; nothing is looked for before a GPU needs it.
_tidemill.look_for_nvrtc_in([folder for folder in _sys.path if folder])

__all__ = [
    "Backtest",
    "Bars",
    "Check",
    "Coloring",
    "DataError",
    "DeviceError",
    "Error",
    "Problem",
    "Range",
    "Scan",
    "Signal",
    "Strategy",
    "StrategyError",
    "Study",
    "StudyError",
    "Table",
    "Trial",
    "Verdict",
    "WalkForward",
    "backtest",
    "bool_",
    "choice",
    "color",
    "float",
    "generate",
    "int",
    "load",
    "map",
    "open",
    "scan",
    "semantics",
    "signal",
    "strategies",
    "strategy",
    "sweep",
    "walkforward",
]
