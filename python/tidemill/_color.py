"""Colourings of graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _tidemill
from ._argument import checked
from ._bars import Path


@dataclass(frozen=True, repr=False)
class Coloring:
    """A proper colouring; the verifier has checked it against the file."""

    k: int
    """Number of colours."""
    lower_bound: int
    """Fewer colours are not possible."""
    colors: list[int]
    """The colour of each vertex."""
    document: dict[str, Any]
    """Everything, as `tidemill color --json` prints it."""

    @property
    def is_optimal(self) -> bool:
        """Whether no colouring has fewer colours."""
        return self.k == self.lower_bound

    def __repr__(self) -> str:
        proof = "which is least" if self.is_optimal else f"at least {self.lower_bound} are needed"
        return f"Coloring({self.document['graph']}: {self.k} colours, {proof})"


def color(
    graph: Path,
    /,
    *,
    target: int | None = None,
    time: float | None = None,
    iterations: int | None = None,
    passes: int | None = None,
    patience: int | None = None,
    min_delta: int = 1,
    seed: int = 1,
    phases: Sequence[str] | None = None,
    device: str = "auto",
) -> Coloring:
    """Colours the graph of a DIMACS file or a list of edges with few colours.

    The arguments are the flags of `tidemill color`; without any limit it ends after 60 seconds.
    """
    if time is None and iterations is None and passes is None and patience is None:
        time = 60.0
    options = {
        "target": target,
        "time": time,
        "iterations": iterations,
        "passes": passes,
        "patience": patience,
        "min_delta": min_delta,
        "seed": seed,
        "phases": phases,
        "device": device,
    }
    document = json.loads(_tidemill.color(os.fspath(graph), checked(options)))
    return Coloring(document["k"], document["lower_bound"], document["coloring"], document)
