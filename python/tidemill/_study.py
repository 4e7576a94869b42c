"""Searches, and the studies that they leave."""

from __future__ import annotations

import builtins
import json
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _page, _tidemill
from ._argument import checked, count, names
from ._backtest import Backtest, cut_options
from ._bars import Bars, Path, Source, bars_of, paths_of
from ._cluster import Cluster, reached
from ._error import StudyError
from ._progress import Progress
from ._signal import Signal, signal_of
from ._strategy import Setting, Strategy, strategy, value_text
from ._table import Table
from ._time import Time, time_text

if TYPE_CHECKING:
    import optuna

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".json": "json"}


@dataclass(frozen=True)
class Trial:
    """One parameter set of a study and what it made."""

    number: int
    value: float | None
    values: list[float | None]
    params: dict[str, Any]
    metrics: dict[str, float | None]
    out_of_sample: dict[str, Any] | None

    @classmethod
    def _of(cls, row: Mapping[str, Any]) -> Trial:
        further = [row[key] for key in sorted(row) if key.startswith("objective_")]
        return cls(
            row["trial"],
            row["objective"],
            [row["objective"], *further],
            {name: value for name, value in row["parameters"].items() if value is not None},
            dict(row["metrics"]),
            row.get("out_of_sample"),
        )


@dataclass(frozen=True)
class Check:
    """One check of a winner."""

    name: str
    survived: bool
    value: float | None
    limit: float
    words: str


@dataclass(frozen=True)
class Verdict:
    """Whether the best trial of a study holds up."""

    trial: int
    holds_up: bool
    grade: str
    sentence: str
    checks: list[Check]
    document: dict[str, Any]
    """All findings about the search and its winners, as `tidemill study show --json` has them."""

    def __str__(self) -> str:
        return f"trial {self.trial} {self.sentence}"


class Study:
    """A search and its trials, in a folder that the command line reads too."""

    def __init__(self, folder: str, *, made: _Made | None, kept: object = None) -> None:
        self._folder = folder
        self._made = made
        self._kept = kept  # a temporary folder, which goes with the study
        self._summary: dict[str, Any] = {}
        self._known: tuple[object, dict[str, Any]] | None = None

    @property
    def folder(self) -> str:
        """Where the study is. One without `out` is temporary and goes with the object."""
        return self._folder

    def run(
        self,
        *,
        trials: int | None = None,
        device: str | None = None,
        cluster: Cluster | None = None,
        progress: bool | None = None,
    ) -> Study:
        """Goes on to the end, or to more `trials` than were asked for before. Ctrl-C stops it after the batches that run; what was done is
        kept, and `run` goes on from there, with other devices or another `cluster` too: neither changes a result.
        """
        trials = None if trials is None else count("trials", trials)
        made = self._made
        if made is not None:
            if trials is not None:
                made.options.update(trials=trials, plan_trials=None)
            if device is not None:
                made.options["device"] = device
            cluster = made.cluster if cluster is None else cluster
        device = device or self._device
        # Workers load what was loaded by its path by that path, and get what was a frame.
        bars = made.bars._raw if made is not None and made.bars._raw.is_in_memory else None
        with reached(cluster, device, bars) as transport, Progress(progress) as told:
            if made is None:
                summary = _tidemill.stored_sweep(self._folder, None, trials, device, transport, told)
            else:
                summary = _tidemill.sweep(made.strategy, made.bars._raw, self._folder, made.cut, made.options, transport, told)
        self._ran(summary)
        return self

    def _ran(self, summary: str) -> None:
        """Takes what a run says of itself."""
        self._summary = json.loads(summary)
        for warning in self._summary["warnings"]:
            warnings.warn(warning, RuntimeWarning, stacklevel=3)

    @property
    def _device(self) -> str:
        return "auto" if self._made is None else str(self._made.options["device"])

    def _look(self, top: int = 10) -> dict[str, Any]:
        """The study as it is now."""
        trials = os.path.join(self._folder, "trials")
        files = sorted(os.scandir(trials), key=lambda file: file.name) if os.path.isdir(trials) else []
        verdict = os.path.join(self._folder, "verdict.json")
        stamp = (
            top,
            [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files],
            os.stat(verdict).st_mtime_ns if os.path.exists(verdict) else None,
        )
        if self._known is None or self._known[0] != stamp:
            self._known = (stamp, json.loads(_tidemill.study(self._folder, top)))
        return self._known[1]

    @property
    def state(self) -> str:
        """`running`, `complete` or `stopped`."""
        return str(json.loads(_tidemill.study(self._folder, 0))["state"])

    def __len__(self) -> int:
        return int(self._look()["trials"])

    @property
    def notes(self) -> list[str]:
        """What limits how far the results can be trusted, as the last run found it."""
        return list(self._summary.get("notes", []))

    @property
    def trials(self) -> Table:
        """Every trial: number, parameters, metrics, objectives; invalid ones without an objective."""
        return Table(_tidemill.trials(self._folder))

    def best(self, n: int = 10) -> list[Trial]:
        """The best trials, best first; of several objectives those that no other one beats in every respect."""
        return [Trial._of(row) for row in self._look(n)["best"]]

    @property
    def best_trial(self) -> Trial:
        """The best trial."""
        best = self.best()
        if not best:
            reason = self._summary.get("why_invalid") or "the study has no valid trial yet"
            raise StudyError(str(reason).strip())
        return best[0]

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the best trial that were active."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """The objective of the best trial."""
        value = self.best_trial.value
        if value is None:
            raise StudyError("the best trial has no objective")
        return value

    @property
    def verdict(self) -> Verdict | None:
        """Whether the best trial holds up; None if that was not checked."""
        found = self._look()["holding_up"]
        if not found or not found["winners"]:
            return None
        winner = found["winners"][0]
        checks = [Check(**check) for check in winner["checks"]]
        grade = str(winner["grade"])
        return Verdict(winner["trial"], grade == "good", grade, winner["sentence"], checks, found)

    def judge(self, data: Source | None = None, *, top: int = 10) -> Verdict | None:
        """Checks whether the best trials hold up, of a study that was stopped or made without a verdict."""
        _tidemill.judge(self._folder, self._bars(data), top)
        return self.verdict

    def importance(self) -> dict[str, float]:
        """The share of each parameter in what separates the best tenth of the trials from the others, largest first."""
        return {each["parameter"]: each["share"] for each in self._look()["importance"]}

    def _number(self, trial: int | Trial | None) -> int:
        """The number of a trial, of the best one if none is named."""
        named = self.best_trial if trial is None else trial
        return named.number if isinstance(named, Trial) else count("trial", named)

    def backtest(self, trial: int | Trial | None = None, data: Source | None = None) -> Backtest:
        """Evaluates a trial in full, with the settings of the study. A study of a frame that was opened again needs its `data`."""
        return Backtest(_tidemill.backtest_trial(self._folder, self._number(trial), self._bars(data)))

    def signal(
        self,
        trial: int | Trial | None = None,
        data: Source | None = None,
        *,
        at: Time | None = None,
        trade: Sequence[str] | None = None,
    ) -> Signal:
        """Says what a trial holds and wants after the last bar that has closed by `at`, on other bars than those of the study too.

        Paths are loaded as the data of the study was. `trade` names the symbols to say it of; without it those that the study trades.
        """
        number = self._number(trial)
        files, bars = paths_of(data), None
        if not files:
            bars = self._bars(data)
        return signal_of(_tidemill.signal_of_trial(self._folder, number, bars, files, names("trade", trade), time_text(at)))

    def _bars(self, data: Source | None) -> _tidemill.RawBars | None:
        if data is None:
            return None if self._made is None else self._made.bars._raw
        return bars_of(data, None)._raw

    def to_optuna(self, n: int = 5_000) -> optuna.Study:
        """The `n` best trials and their order as a study of Optuna, for its plots and its dashboard.

        Parameters that were not active are missing, invalid trials are failed ones; metrics are user attributes.
        """
        from ._optuna import to_optuna

        return to_optuna(self, n)

    @property
    def strategy(self) -> Strategy:
        """The strategy as it was searched."""
        return Strategy._of(_tidemill.stored_strategy(self._folder))

    @property
    def document(self) -> dict[str, Any]:
        """The study as `tidemill study show --json` prints it."""
        return self._look()

    def html(self) -> str:
        """The study as one self-contained page."""
        return _tidemill.study_html(self._folder, 10)

    def save(self, path: Path) -> None:
        """Writes the page as .html, or all trials as .csv, .parquet or .json, byte for byte as `tidemill study export` does."""
        ending = os.path.splitext(os.fspath(path))[1]
        if ending in (".html", ".htm"):
            with builtins.open(path, "w", encoding="utf-8") as file:
                file.write(self.html())
        elif ending in _FORMATS:
            _tidemill.export(self._folder, _FORMATS[ending], os.fspath(path))
        else:
            raise ValueError(f"{os.fspath(path)}: a study is saved as .html, .csv, .parquet or .json")

    def __repr__(self) -> str:
        if not os.path.exists(self._folder):
            return "Study(not begun)"
        now = self._look()
        head = f"Study({now['strategy']}: {now['trials']:,} trials, {now['valid']:,} valid, {now['state']}"
        if not now["best"]:
            return head + ")"
        best = Trial._of(now["best"][0])
        params = ", ".join(f"{name}={value}" for name, value in best.params.items())
        lines = [head, f"  best {best.value!r} by trial {best.number}: {params}"]
        if self.verdict is not None:
            lines.append(f"  {self.verdict}")
        return "\n".join(lines) + ")"

    def _repr_html_(self) -> str:
        return _page.framed(self.html())


@dataclass
class _Made:
    """What a study is made from, to go on with it."""

    strategy: _tidemill.RawStrategy
    bars: Bars
    cut: dict[str, Any]
    options: dict[str, Any]
    cluster: Cluster | None


def sweep(
    of: Strategy | str | os.PathLike[str],
    data: Source | None = None,
    /,
    *,
    trials: int = 10_000,
    plan_trials: int | None = None,
    sampler: str = "auto",
    batch: int | None = None,
    lag: int | None = None,
    seed: int = 1,
    enqueue: Sequence[Mapping[str, Setting] | str] = (),
    from_: Time | None = None,
    to: Time | None = None,
    split: float | None = None,
    folds: int | None = None,
    holdout: Time | None = None,
    embargo: str | None = None,
    trade: Sequence[str] | None = None,
    benchmark: str | None = None,
    profile: str | None = None,
    objective: str | Sequence[str] = (),
    set: Mapping[str, Setting] | None = None,  # noqa: A002
    top: int = 10,
    verdict: bool = True,
    hypertune: Literal["off", "advise", "on"] = "advise",
    device: str = "auto",
    cluster: Cluster | None = None,
    out: Path | None = None,
    progress: bool | None = None,
    run: bool = True,
) -> Study:
    """Searches the parameters of a strategy for good ones, and checks whether the winners hold up.

    The arguments are the flags of `tidemill sweep`, and give the same trials. With `out` all trials are kept in that folder, and the same
    line goes on with a study that it holds. Ctrl-C stops after the batches that run and raises KeyboardInterrupt, whose `study` is the
    study as far as it got; its `run` goes on. With `run=False` nothing is searched until then. With `cluster="ray"` the workers of a Ray
    cluster evaluate, with the same bits; `device` is then theirs.
    """
    queue = [each if isinstance(each, str) else ",".join(f"{k}={_plain(v)}" for k, v in each.items()) for each in enqueue]
    objectives = [objective] if isinstance(objective, str) else list(objective)
    made = _Made(
        strategy(of)._with(set or {}, profile, objectives),
        bars_of(data, benchmark, progress),
        cut_options(from_, to, split, folds, holdout, embargo, trade),
        checked(
            {
                "trials": trials,
                "plan_trials": plan_trials,
                "sampler": sampler,
                "batch": batch,
                "lag": lag,
                "seed": seed,
                "top": top,
                "enqueue": queue,
                "verdict": verdict,
                "hypertune": hypertune,
                "device": device,
            }
        ),
        cluster,
    )
    if out is None:
        kept = tempfile.TemporaryDirectory(prefix="tidemill-")
        study = Study(os.path.join(kept.name, "study"), made=made, kept=kept)
    else:
        study = Study(os.fspath(out), made=made)
    if run:
        try:
            study.run(progress=progress)
        except KeyboardInterrupt as interrupt:
            interrupt.study = study  # type: ignore[attr-defined]
            raise
    return study


def _plain(value: Setting) -> str:
    return value if isinstance(value, str) else value_text(value)


def open(folder: Path) -> Study:  # noqa: A001
    """Opens a study by its folder, whoever made it, also one that is running."""
    path = os.fspath(folder)
    _tidemill.study(path, 0)
    return Study(path, made=None)
