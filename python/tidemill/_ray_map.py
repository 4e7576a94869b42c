"""Studies on a Ray cluster, each whole in an actor of its own.

Ray decides where an actor runs and when; one that is lost is made again and begins with what its folder held here.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _tidemill
from ._cluster import Packed, packed, unpacked
from ._error import Error, StudyError
from ._progress import Told
from ._ray import connect, reason_of, refuse_number
from ._strategy import Strategy
from ._study import Study

_LOOK_EVERY_S = 0.5
"""Time between two looks at how far the studies are."""
_MOST_LOSSES = 5
"""A study whose actor is lost so often has failed."""
_BEGUN_WITHIN_S = 3.0
"""What a study that has begun said first is here within this time."""
_STOP_WITHIN_S = 120.0
"""After Ctrl-C a study has so long to bring back what it has done."""

Files = dict[str, bytes]
Far = tuple[int, int, float | None, bool]
Plan = tuple[Strategy, dict[str, Any], dict[str, Any]]
"""A strategy, the cut of the data, and the options of a search."""


@dataclass
class _Ended:
    """A study that comes back."""

    files: Files
    summary: str | None = None
    failure: Exception | None = None


class Runner:
    """What runs on a node: one study."""

    def __init__(self, threads: int) -> None:
        # Before the threads that compute are started, which is with the first batch.
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        self._is_stopped = False
        self._far: Far = (0, 0, None, False)

    def run(self, files: Files, plan: Plan | None, bars: Packed | None, device: str, shown: str) -> _Ended:
        """Runs the study of a folder to its end, or until it is stopped; `shown` is its folder as messages name it."""
        with tempfile.TemporaryDirectory(prefix="tidemill-") as kept:
            folder = os.path.join(kept, "study")
            _write(folder, files)
            try:
                if plan is None or bars is None:
                    summary = _tidemill.stored_sweep(folder, None, None, device, None, self._hear)
                else:
                    strategy, cut, options = plan
                    summary = _tidemill.sweep(strategy._raw, unpacked(bars), folder, cut, {**options, "device": device}, None, self._hear)
            except KeyboardInterrupt:
                return _Ended(_read(folder))
            except Exception as error:
                # Of one of the few kinds that are the same everywhere.
                kind = ValueError if isinstance(error, ValueError) else StudyError
                return _Ended(_read(folder), failure=kind(str(error).replace(folder, shown)))
            return _Ended(_read(folder), summary)

    def _hear(self, done: int, total: int, best: float | None, is_judging: bool) -> None:
        self._far = (done, total, best, is_judging)
        if self._is_stopped:
            raise KeyboardInterrupt

    def far(self) -> Far:
        """How far it is."""
        return self._far

    def stop(self) -> None:
        """Ends it after the batches that run."""
        self._is_stopped = True


def _names(folder: str) -> set[str]:
    """The files of a study folder, if there is one, but its lock."""
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return {os.path.relpath(path, folder) for path in paths if not path.endswith(".lock")}


def _read(folder: str) -> Files:
    files = {}
    for name in _names(folder):
        with open(os.path.join(folder, name), "rb") as file:
            files[name] = file.read()
    return files


def _write(folder: str, files: Files, before: Iterable[str] = ()) -> None:
    """Writes the files of a study; those that it had `before` and has no more go."""
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as file:
            file.write(content)
        os.replace(path + ".new", path)
    # Last: trials that moved from the log to a table are in both until then.
    for name in set(before).difference(files):
        os.remove(os.path.join(folder, name))


def _n_asked(study: Study) -> int:
    return 0 if study._made is None else int(study._made.options["trials"])


class _Crew:
    """The studies of one call, and the actors that run them."""

    def __init__(self, ray: Any, studies: list[Study]) -> None:
        self._ray = ray
        self._studies = studies
        self._waiting = deque(range(len(studies)))
        self._actors: dict[int, Any] = {}
        self._calls: dict[Any, int] = {}
        self._first: dict[int, Any] = {}  # what was asked of each before it began
        self._bars: dict[int, Any] = {}
        self._sent: dict[int, list[str]] = {}
        self._asked: dict[Any, int] = {}
        self._far: dict[int, Far] = {at: (0, _n_asked(study), None, False) for at, study in enumerate(studies)}
        self._n_lost = [0] * len(studies)
        self.failures: dict[int, Exception] = {}

    def run(self, told: Told | None) -> None:
        while self._fill():
            self._take(_LOOK_EVERY_S)
            if told is not None:
                self._look()
                told(*self._in_all())

    def stop(self) -> None:
        """Ends what runs, and takes what it has done."""
        self._waiting.clear()
        if self._actors:
            first = {self._first[at]: at for at in self._actors}
            said, _ = self._ray.wait(list(first), num_returns=len(first), timeout=_BEGUN_WITHIN_S)
            begun = {first[answer] for answer in said}
            # Those that Ray has had no room for have done nothing.
            self._calls = {call: at for call, at in self._calls.items() if at in begun}
            for at in begun:
                self._actors[at].stop.remote()
        while self._calls and self._take(_STOP_WITHIN_S):
            pass

    def close(self) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor, no_restart=True)
        self._actors.clear()

    def _fill(self) -> bool:
        """Gives Ray some more studies than it has room for; whether any is left to wait for."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        n_gpus, n_cpus = (int(sum(node.get(kind, 0) for node in nodes)) for kind in ("GPU", "CPU"))
        while self._waiting and len(self._calls) < max(8, 2 * n_cpus):
            at = self._waiting.popleft()
            device = self._studies[at]._device
            if device != "cpu" and n_gpus > 0:
                device, threads, room = ("cuda" if device == "auto" else device), max(1, n_cpus // n_gpus), {"num_cpus": 0, "num_gpus": 1}
            elif device in ("auto", "cpu") and n_cpus > 0:
                # All processors, in equal parts, none larger than a node.
                largest = max((int(node.get("CPU", 0)) for node in nodes), default=1)
                threads = max(1, min(largest, n_cpus // len(self._studies)))
                device, room = "cpu", {"num_cpus": threads}
            else:
                wanted = "CPU" if device in ("auto", "cpu") else "GPU"
                self.failures[at] = Error(f"device={device!r}: no node of the Ray cluster offers a {wanted}")
                continue
            self._start(at, device, threads, room)
        return bool(self._calls)

    def _start(self, at: int, device: str, threads: int, room: dict[str, int]) -> None:
        study = self._studies[at]
        actor = self._ray.remote(Runner).options(**room, max_restarts=0, max_task_retries=0, max_concurrency=2).remote(threads)
        made, plan, bars = study._made, None, None
        if made is not None:
            plan = (Strategy._of(made.strategy), made.cut, made.options)
            key = id(made.bars._raw)
            if key not in self._bars:
                # Once, for all studies that share them.
                self._bars[key] = self._ray.put(packed(made.bars._raw))
            bars = self._bars[key]
        files = _read(study.folder)
        self._actors[at] = actor
        self._sent[at] = list(files)
        self._first[at] = actor.far.remote()
        self._calls[actor.run.remote(files, plan, bars, device, study.folder)] = at

    def _take(self, seconds: float) -> bool:
        """Takes studies that have ended; whether there were any."""
        done, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=seconds)
        for call in done:
            at = self._calls.pop(call)
            actor = self._actors.pop(at)
            try:
                ended: _Ended = self._ray.get(call)
            except self._ray.exceptions.RayActorError as error:
                self._lost(at, error)
                continue
            except self._ray.exceptions.RayError as error:
                self.failures[at] = Error(reason_of(error))
                continue
            finally:
                self._ray.kill(actor, no_restart=True)
            study = self._studies[at]
            _write(study.folder, ended.files, self._sent[at])
            if ended.failure is not None:
                self.failures[at] = ended.failure
            if ended.summary is not None:
                study._ran(ended.summary)
                self._far[at] = (len(study), len(study), None, False)
        return bool(done)

    def _lost(self, at: int, error: Exception) -> None:
        self._n_lost[at] += 1
        if self._n_lost[at] < _MOST_LOSSES:
            self._waiting.append(at)
        else:
            self.failures[at] = Error(f"its worker was lost {_MOST_LOSSES} times: {reason_of(error)}")

    def _look(self) -> None:
        """Asks how far all are, those again that have answered; who waits for room answers when it has begun."""
        waiting = {*self._asked.values()}
        self._asked |= {actor.far.remote(): at for at, actor in self._actors.items() if at not in waiting}
        if self._asked:
            answered, _ = self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=_LOOK_EVERY_S)
            for answer in answered:
                at = self._asked.pop(answer)
                try:
                    self._far[at] = self._ray.get(answer)
                except self._ray.exceptions.RayError:
                    pass  # lost, which the call of the study tells

    def _in_all(self) -> Far:
        """How far all of them are; their best values are of different things."""
        return sum(far[0] for far in self._far.values()), sum(far[1] for far in self._far.values()), None, False


def run_studies(studies: list[Study], told: Told | None) -> dict[int, Exception]:
    """Runs studies on the Ray cluster that this process is connected to or that RAY_ADDRESS names; those that failed, by their place."""
    for study in studies:
        refuse_number(study._device)
    ray, is_ours = connect()
    crew = _Crew(ray, studies)
    try:
        crew.run(told)
    except KeyboardInterrupt:
        crew.stop()
        raise
    finally:
        crew.close()
        if is_ours:
            ray.shutdown()
    return crew.failures
