"""Many studies: each is whole on one machine, and as many run at a time as there is room for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from ._error import StudyError
from ._progress import Progress
from ._study import Study


def map(  # noqa: A001
    studies: Iterable[Study], /, *, cluster: Literal["ray"] | None = None, progress: bool | None = None
) -> list[Study]:
    """Runs studies that `tm.sweep(..., run=False)` made or `tm.open` opened, and returns them.

    With `cluster="ray"` each runs on one GPU or some processors of a Ray cluster, and its folder comes back here when it ends. Without a
    cluster they run here, one after the other. Where some fail the others still run to their end, and then a StudyError says which.
    Ctrl-C stops all of them and keeps what each has done; the same line goes on.
    """
    asked = list(studies)
    for study in asked:
        if not isinstance(study, Study):
            raise TypeError(f"{type(study).__name__} is no study\n  hint: tm.sweep(..., run=False) makes one that has not begun")
    folders = {os.path.realpath(study.folder) for study in asked}
    if len(folders) < len(asked):
        raise ValueError("two of these studies have the same folder")
    if cluster is None:
        failures = _here(asked, progress)
    elif cluster == "ray":
        from ._ray_map import run_studies

        with Progress(progress) as told:
            failures = run_studies(asked, told)
    else:
        raise ValueError(f'cluster={cluster!r}: expected "ray"')
    if failures:
        at, first = min(failures.items(), key=lambda failure: failure[0])
        others = f", and {len(failures) - 1} more failed" if len(failures) > 1 else ""
        raise StudyError(f"study {at + 1} of {len(asked)}: {first}{others}") from first
    return asked


def _here(studies: list[Study], progress: bool | None) -> dict[int, Exception]:
    """Runs studies one after the other; those that fail, by their place."""
    failures: dict[int, Exception] = {}
    for at, study in enumerate(studies):
        try:
            study.run(progress=progress)
        except Exception as error:
            failures[at] = error
    return failures
