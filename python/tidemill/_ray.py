"""Ray as a cluster: an actor on each GPU, or on each node without one, holds a worker, and calls of its method carry frames.

Ray restarts nothing and keeps no lineage here: an actor that dies is reported as lost, and another one, with another number, takes its place.
"""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

from . import _tidemill
from ._cluster import Event, Packed, unpacked
from ._error import Error

_LOOK_EVERY_S = 1.0
"""Time between two looks at the nodes."""
_MOST_FAILURES = 5
"""A place whose workers are lost so often in a row, without one answer, gets no further one."""
_IN_FLIGHT = 3
"""Calls that an actor takes at a time, which is how many shards a worker has."""
_NO_CLUSTER = (
    'cluster="ray": this process is connected to no Ray cluster, and none is started silently\n'
    "  hint: call ray.init(address=...) first, or set RAY_ADDRESS; RAY_ADDRESS=auto is the one that `ray start --head` began on this machine"
)


def connect() -> tuple[Any, bool]:
    """Ray, connected to a cluster that exists, and whether it was connected here."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("cluster=\"ray\" needs Ray\n  hint: pip install 'tidemill[ray]'") from error
    if ray.is_initialized():
        return ray, False
    address = os.environ.get("RAY_ADDRESS")
    if not address or address == "local":
        raise Error(_NO_CLUSTER)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except Exception as error:
        raise Error(f"RAY_ADDRESS={address}: {error}\n  hint: `ray status --address {address}` says whether it runs") from error
    return ray, True


def refuse_number(device: str) -> None:
    """Raises an error for a device with a number."""
    if ":" in device:
        raise ValueError(f'device={device!r}: Ray gives each worker its GPU; expected "auto", "cpu", "cuda" or "emulated"')


class Actor:
    """What runs on a node: a worker, and its one method."""

    def __init__(self, device: str, threads: int) -> None:
        # Before the threads that compute are started, which is with the first shard.
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        self._device = device

    def open(self, bars: Packed | None) -> str:
        """Makes the worker; the result is its name."""
        import socket

        name = f"{socket.gethostname()}:{os.getpid()}"
        self._worker = _tidemill.RawWorker(self._device, None if bars is None else unpacked(bars), name)
        return name

    def handle(self, frame: bytes) -> bytes | None:
        """The answer to a frame."""
        return self._worker.handle(frame)


@dataclass
class _Place:
    """Where a worker can be: a GPU, or a node without one."""

    node: str
    device: str
    threads: int
    n_gpus: int
    worker: int | None = None
    n_failures: int = 0
    is_closed: bool = False
    reason: str = ""


@dataclass
class _Worker:
    place: _Place
    actor: Any
    has_joined: bool = False
    calls: set[Any] = field(default_factory=set)


class RayTransport:
    """The workers of a Ray cluster. Nodes may come and go."""

    def __init__(self, device: str = "auto", bars: Packed | None = None) -> None:
        refuse_number(device)
        self._ray, self._is_ours = connect()
        self._device = device
        # Once, for all workers; it lives as long as this object.
        self._bars = None if bars is None else self._ray.put(bars)
        self._places: dict[tuple[str, int], _Place] = {}
        self._workers: dict[int, _Worker] = {}
        self._calls: dict[Any, int] = {}
        self._events: list[Event] = []
        self._n_workers = 0
        self._looked: float | None = None
        self._is_closed = False

    def submit(self, worker: int, frame: bytes) -> None:
        """Sends a frame."""
        if worker in self._workers:
            self._call(worker, self._workers[worker].actor.handle.remote(frame))

    def poll(self, seconds: float) -> list[Event]:
        """What has happened."""
        self._look()
        calls = list(self._calls)
        if calls:
            done, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0)
            if not done and not self._events:
                done, _ = self._ray.wait(calls, num_returns=1, timeout=seconds)
            for call in done:
                self._take(call)
        elif not self._events:
            time.sleep(seconds)
        events, self._events = self._events, []
        return events

    def dismiss(self, worker: int, may_return: bool) -> None:
        """Lets go of a worker."""
        if worker in self._workers:
            self._drop(worker, "it was dismissed", may_return)

    def close(self) -> None:
        """Ends all actors, and the connection if it was made here."""
        for worker in list(self._workers):
            self._drop(worker, "the search is over", False)
        self._bars = None
        if self._is_ours:
            self._ray.shutdown()

    def _look(self) -> None:
        """Looks at the nodes from time to time, and fills all places."""
        now = time.monotonic()
        if self._looked is not None and now < self._looked + _LOOK_EVERY_S:
            return
        self._looked = now
        nodes = {node["NodeID"]: node["Resources"] for node in self._ray.nodes() if node["Alive"]}
        for key, place in list(self._places.items()):
            if place.node not in nodes:
                del self._places[key]
                if place.worker is not None:
                    self._lose(place.worker, "its node is gone")
        for node, resources in nodes.items():
            for at, place in enumerate(self._places_of(node, resources)):
                self._places.setdefault((node, at), place)
        for place in self._places.values():
            if place.worker is None and not place.is_closed:
                self._start(place)
        open_places = [place for place in self._places.values() if not place.is_closed]
        if not open_places and not self._is_closed:
            self._is_closed = True
            reasons = {place.reason for place in self._places.values()} or {self._nowhere()}
            self._events.append(("closed", 0, "; ".join(sorted(reasons))))

    def _places_of(self, node: str, resources: dict[str, float]) -> list[_Place]:
        n_gpus, n_cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
        if self._device != "cpu" and n_gpus > 0:
            device = "cuda" if self._device == "auto" else self._device
            return [_Place(node, device, max(1, n_cpus // n_gpus), 1) for _ in range(n_gpus)]
        if self._device in ("auto", "cpu") and n_cpus > 0:
            return [_Place(node, "cpu", n_cpus, 0)]
        return []

    def _nowhere(self) -> str:
        wanted = "CPU" if self._device in ("auto", "cpu") else "GPU"
        return f"no node of the Ray cluster offers a {wanted}"

    def _start(self, place: _Place) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "num_cpus": 0 if place.n_gpus else place.threads,
            "num_gpus": place.n_gpus,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": _IN_FLIGHT,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node, soft=False),
        }
        worker = self._n_workers
        self._n_workers += 1
        actor = self._ray.remote(Actor).options(**options).remote(place.device, place.threads)
        self._workers[worker] = _Worker(place, actor)
        place.worker = worker
        self._call(worker, actor.open.remote(self._bars))

    def _call(self, worker: int, call: Any) -> None:
        self._calls[call] = worker
        self._workers[worker].calls.add(call)

    def _take(self, call: Any) -> None:
        """Takes the result of a call that is over."""
        number = self._calls.pop(call, None)
        if number is None:
            return  # of a worker that was lost by another call
        worker = self._workers[number]
        worker.calls.discard(call)
        try:
            answer = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            self._lose(number, reason_of(error))
            return
        if not worker.has_joined:
            worker.has_joined = True
            self._events.append(("joined", number, answer))
        elif answer is not None:
            worker.place.n_failures = 0
            self._events.append(("answered", number, answer))

    def _lose(self, worker: int, reason: str) -> None:
        if self._workers[worker].has_joined:
            self._events.append(("lost", worker, reason))
        self._drop(worker, reason, True)

    def _drop(self, worker: int, reason: str, may_return: bool) -> None:
        gone = self._workers.pop(worker)
        for call in gone.calls:
            self._calls.pop(call, None)
        self._ray.kill(gone.actor, no_restart=True)
        place = gone.place
        place.worker, place.reason = None, reason
        place.n_failures += 1
        place.is_closed = not may_return or place.n_failures >= _MOST_FAILURES
        self._looked = None  # its place is filled at once


def reason_of(error: BaseException) -> str:
    """What an exception of Ray says, without its pages of advice: the cause where an actor could not be made, else the first line."""
    cause = getattr(error, "cause", None)
    text = re.sub(r"\x1b\[\d+m", "", str(cause if cause is not None else error))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if "creation task" in lines[0] else lines[0]
