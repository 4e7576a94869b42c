"""Studies on workers: by a transport of Python's own in this process. What Ray adds is in `test_ray.py`."""

from __future__ import annotations

import pickle
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

import tidemill as tm
from tidemill import _cluster, _tidemill


class Threads:
    """A transport to workers in threads of this process. Some are lost with what they were sent, and others come."""

    def __init__(self, bars: tm.Bars, lose_every: int = 0) -> None:
        # By way of bytes, as another process would get them.
        self._bars = _cluster.unpacked(_cluster.packed(bars._raw))
        self._events: queue.Queue[_cluster.Event] = queue.Queue()
        self._workers: dict[int, _tidemill.RawWorker] = {}
        self._lose_every = lose_every
        self.n_joined = self.n_frames = self.n_closed = 0
        self._join()
        self._join()

    def _join(self) -> None:
        worker = self.n_joined
        self.n_joined += 1
        self._workers[worker] = _tidemill.RawWorker("cpu", self._bars, f"thread-{worker}")
        self._events.put(("joined", worker, f"thread-{worker}"))

    def submit(self, worker: int, frame: bytes) -> None:
        if worker not in self._workers:
            return
        self.n_frames += 1
        if self._lose_every and self.n_frames % self._lose_every == 0:
            del self._workers[worker]
            self._events.put(("lost", worker, "the test took it away"))
            self._join()
            return
        threading.Thread(target=self._handle, args=(worker, frame), daemon=True).start()

    def _handle(self, worker: int, frame: bytes) -> None:
        held = self._workers.get(worker)
        answer = None if held is None else held.handle(frame)
        if answer is not None and worker in self._workers:
            self._events.put(("answered", worker, answer))

    def poll(self, seconds: float) -> list[_cluster.Event]:
        events: list[_cluster.Event] = []
        try:
            events.append(self._events.get(timeout=seconds))
            while True:
                events.append(self._events.get_nowait())
        except queue.Empty:
            return events

    def dismiss(self, worker: int, may_return: bool) -> None:
        self._workers.pop(worker, None)
        if may_return:
            self._join()

    def close(self) -> None:
        self.n_closed += 1


def exported(study: tm.Study, path: Path) -> bytes:
    study.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("sampler", ["auto", "sobol"])
def test_workers_change_no_byte(dip: tm.Strategy, market: tm.Bars, tmp_path: Path, sampler: str) -> None:
    options: dict[str, Any] = {"trials": 1_500, "batch": 128, "sampler": sampler, "split": 0.7, "device": "cpu", "progress": False}
    serial = tm.sweep(dip, market, **options)
    for lose_every in (0, 7):
        workers = Threads(market, lose_every)
        study = tm.sweep(dip, market, cluster=workers, **options)
        assert exported(study, tmp_path / "cluster.csv") == exported(serial, tmp_path / "serial.csv")
        assert workers.n_closed == 1 and workers.n_frames > 10
        assert (workers.n_joined > 2) == (lose_every > 0)


def test_a_study_goes_on_with_and_without_workers(dip: tm.Strategy, market: tm.Bars, tmp_path: Path) -> None:
    options: dict[str, Any] = {"plan_trials": 900, "batch": 128, "device": "cpu", "progress": False}
    serial = tm.sweep(dip, market, trials=900, **options)
    study = tm.sweep(dip, market, trials=300, out=tmp_path / "study", **options)
    study.run(trials=600, cluster=Threads(market), progress=False).run(trials=900, progress=False)
    assert exported(study, tmp_path / "study.csv") == exported(serial, tmp_path / "serial.csv")


def test_packed_bars_are_the_same_bars(market: tm.Bars, file: Path) -> None:
    for bars in (market, tm.load(file), tm.load(file)._raw.with_benchmark("SYN1")):
        raw = bars if isinstance(bars, _tidemill.RawBars) else bars._raw
        found = _cluster.unpacked(_cluster.packed(raw))
        assert found.fingerprint() == raw.fingerprint()
        assert (found.origin, found.notes, found.is_in_memory) == (raw.origin, raw.notes, raw.is_in_memory)


def test_a_transport_that_fails_ends_the_study(dip: tm.Strategy, market: tm.Bars) -> None:
    class Broken(Threads):
        def poll(self, seconds: float) -> list[_cluster.Event]:
            raise RuntimeError("the cable is cut")

    broken = Broken(market)
    with pytest.raises(tm.Error, match="the cable is cut"):
        tm.sweep(dip, market, trials=100, cluster=broken, progress=False)
    assert broken.n_closed == 1


def test_what_is_no_cluster_is_refused(dip: tm.Strategy, market: tm.Bars) -> None:
    with pytest.raises(ValueError, match='expected "ray"'):
        tm.sweep(dip, market, trials=100, cluster="dask")  # type: ignore[arg-type]


def test_any_bytes_have_an_answer(market: tm.Bars) -> None:
    worker = _tidemill.RawWorker("cpu")
    for frame in (b"", b"x", b"tide" * 100, bytes(1000)):
        answer = worker.handle(frame)
        assert answer is not None and len(answer) > 0
    with pytest.raises(ValueError, match="device"):
        _tidemill.RawWorker("abacus")


def test_a_walk_forward_on_workers_is_the_same(dip: tm.Strategy, market: tm.Bars) -> None:
    options: dict[str, Any] = {"train": "15d", "test": "10d", "trials": 200, "batch": 64, "device": "cpu", "progress": False}
    alone = tm.walkforward(dip, market, **options)
    workers = Threads(market, lose_every=9)
    spread = tm.walkforward(dip, market, cluster=workers, **options)
    assert spread.document == alone.document and len(alone.windows) >= 2
    assert workers.n_closed == 1 and workers.n_joined > 2


def test_studies_run_one_after_the_other_where_there_is_no_cluster(dip: tm.Strategy, market: tm.Bars, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 300, "device": "cpu", "verdict": False, "progress": False}
    studies = [tm.sweep(dip, market, seed=seed, out=tmp_path / str(seed), run=False, **options) for seed in (1, 2)]
    assert tm.map(studies, progress=False) == studies
    for seed, study in zip((1, 2), studies, strict=True):
        alone = tm.sweep(dip, market, seed=seed, **options)
        assert exported(study, tmp_path / "map.csv") == exported(alone, tmp_path / "alone.csv")


def test_a_study_that_fails_does_not_keep_others_from_their_end(dip: tm.Strategy, market: tm.Bars, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 100, "device": "cpu", "verdict": False, "progress": False, "run": False}
    good = tm.sweep(dip, market, **options)
    (tmp_path / "file").write_text("no folder")
    bad = tm.sweep(dip, market, out=tmp_path / "file", **options)
    with pytest.raises(tm.StudyError, match="study 1 of 2: ") as raised:
        tm.map([bad, good], progress=False)
    assert raised.value.__cause__ is not None and len(good) == 100
    with pytest.raises(ValueError, match="the same folder"):
        tm.map([bad, tm.sweep(dip, market, out=f"{tmp_path}/./file", **options)])
    with pytest.raises(TypeError, match="is no study"):
        tm.map([dip])  # type: ignore[list-item]
    with pytest.raises(ValueError, match='expected "ray"'):
        tm.map([good], cluster="dask")  # type: ignore[arg-type]


def test_a_strategy_goes_to_another_process_with_all_that_is_laid_over_it(market: tm.Bars, tmp_path: Path) -> None:
    text = tm.strategies()["ema-cross"]
    laid = tm.Strategy._of(tm.strategy(text)._with({"fast": 9, "execution.fee_bps": 3.0}, None, ["total_return"]))
    sent = pickle.loads(pickle.dumps(laid))
    assert (sent.text, sent.params, sent.objectives) == (laid.text, laid.params, laid.objectives)
    options: dict[str, Any] = {"trials": 50, "device": "cpu", "verdict": False, "progress": False}
    found = [exported(tm.sweep(each, market, **options), tmp_path / "sent.csv") for each in (laid, sent, tm.strategy(text))]
    assert found[0] == found[1] != found[2]
