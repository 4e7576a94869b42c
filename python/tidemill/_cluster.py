"""What a search needs of a cluster: frames of bytes to workers and back."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from . import _tidemill

Event = tuple[Literal["joined", "answered", "lost", "closed"], int, bytes | str]
"""What happened, to which worker, and its name, its answer, or the reason. `closed`: no worker will join any more."""


class Transport(Protocol):
    """Carries frames to workers, each of which passes them to `handle` of a `_tidemill.RawWorker` and sends back what that returns.

    A number is never used for a second worker. Nothing is reported of a worker before it joined or after it is lost. Whatever is raised
    ends the study, which keeps what was done. All methods are called from one thread, which is not the main one.
    """

    def submit(self, worker: int, frame: bytes, /) -> None:
        """Sends a frame, and does not wait for its answer; one for a worker that is gone is dropped."""

    def poll(self, seconds: float, /) -> list[Event]:
        """What has happened since the last call; waits until something has, at most so long."""

    def dismiss(self, worker: int, may_return: bool, /) -> None:
        """Lets go of a worker; another one may take its place if it `may_return`."""

    def close(self) -> None:
        """Lets go of all workers; the search is over."""


Cluster = Literal["ray"] | Transport
"""`"ray"`: the Ray cluster that this process is connected to or that RAY_ADDRESS names. Or any object with these methods."""

Packed = tuple[str, dict[str, bytes]]
"""Bars on their way to another process."""


@contextmanager
def reached(cluster: Cluster | None, device: str, bars: _tidemill.RawBars | None) -> Iterator[Transport | None]:
    """The transport of an argument `cluster`, until the search is over. Workers get the `bars`, or load the data by its paths."""
    if cluster is None:
        yield None
        return
    if cluster == "ray":
        from ._ray import RayTransport

        transport: Transport = RayTransport(device, None if bars is None else packed(bars))
    elif all(callable(getattr(cluster, name, None)) for name in ("submit", "poll", "dismiss", "close")):
        transport = cluster
    else:
        raise ValueError(f'cluster={cluster!r}: expected "ray", or an object with submit, poll, dismiss and close')
    try:
        yield transport
    finally:
        transport.close()


def opened(name: str, device: str) -> Transport:
    """The cluster of `--cluster`, whose workers load the data by its paths."""
    if name != "ray":
        raise ValueError(f"--cluster {name}: expected ray")
    from ._ray import RayTransport

    # Ray prints what happens to its nodes; the output of the program is its own, and goes past this.
    sys.stdout = sys.stderr
    return RayTransport(device)


def packed(bars: _tidemill.RawBars) -> Packed:
    """Bars as bytes; the report of their load stays behind."""
    with tempfile.TemporaryDirectory(prefix="tidemill-") as folder:
        about = bars.pack(folder)
        files = {}
        for entry in os.scandir(folder):
            with open(entry.path, "rb") as file:
                files[entry.name] = file.read()
    return about, files


def unpacked(bars: Packed) -> _tidemill.RawBars:
    """The bars that were packed."""
    about, files = bars
    with tempfile.TemporaryDirectory(prefix="tidemill-") as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        return _tidemill.unpack_bars(folder, about)
