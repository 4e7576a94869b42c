"""Tries the installed package with one extra or none, in an environment that holds nothing else.

    python -I try_extra.py EXTRA DOCS_PYTHON_MD

Runs the ten lines of the page, the command line, and what the extra is for. The working folder is written to.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tidemill as tm


def installed() -> set[str]:
    """Names of the packages here."""
    return {each.metadata["Name"].lower() for each in importlib.metadata.distributions()} - {"pip"}


def script() -> Path:
    """The command line of the wheel."""
    return Path(sys.executable).with_name("tidemill.exe" if os.name == "nt" else "tidemill")


def doctor(*flags: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The checks of `tidemill doctor`, by the script of the wheel."""
    version = subprocess.run([script(), "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"tidemill {tm.__version__}"
    done = subprocess.run([script(), "doctor", "--json", *flags], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {check["what"]: check for check in json.loads(done.stdout)["checks"]}, done.stdout


def without(study: tm.Study, test: tm.Backtest) -> None:
    """Nothing else is needed, and nothing else is here."""
    assert installed() == {"tidemill"}, installed()
    assert len(test.trades.to_dict()["return"]) == len(test.trades) > 0
    study.save("trials.csv")
    doctor()
    # Processes of this environment, which no variable names.
    flags = ["ema-cross", "--trials", "300", "--verdict", "off", "--device", "cpu"]
    for workers, out in (([], "alone"), (["--workers", "local:2"], "spread")):
        command = [str(script()), "sweep", *flags, *workers, "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        tm.open(out).save(f"{out}.csv")
    assert Path("alone.csv").read_bytes() == Path("spread.csv").read_bytes()


def compiles(major: str, *, all_kernels: bool) -> Callable[[tm.Study, tm.Backtest], None]:
    """Kernels compile with the NVRTC that the extra brought, and no variable is set."""

    def check(study: tm.Study, test: tm.Backtest) -> None:
        assert not {"TIDEMILL_NVRTC", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"} & set(os.environ)
        checks, said = doctor() if all_kernels else doctor("--quick")
        found = checks["NVRTC"]["found"]
        assert found.startswith(f"{major}.") and sys.prefix in found, found
        kernels = {what: check["state"] for what, check in checks.items() if what.startswith("kernels of ")}
        assert len(kernels) > (len(tm.strategies()) if all_kernels else 0) and set(kernels.values()) == {"ok"}, said

    return check


def frames_of(library: str) -> Callable[[tm.Study, tm.Backtest], None]:
    """Frames go out and come back, without pyarrow."""

    def check(study: tm.Study, test: tm.Backtest) -> None:
        assert "pyarrow" not in installed()
        bars = tm.generate(bars=2_000, symbols=2)
        out: Callable[[Any], Any] = lambda table: getattr(table, f"to_{library}")()  # noqa: E731
        assert tm.load(out(bars)).fingerprint == bars.fingerprint
        assert len(out(study.trials)) == len(study) and len(out(test.trades)) == len(test.trades)

    return check


def progress_bar(study: tm.Study, test: tm.Backtest) -> None:
    """tqdm draws the bar, and its widget for Jupyter can be made."""
    from tidemill._progress import Progress

    with Progress(None) as told:
        assert told is not None and told.__self__._bar._tqdm.__module__.startswith("tqdm")  # type: ignore[attr-defined]
        told(1, 10, 0.5, False)
    import ipywidgets  # type: ignore[import-not-found, unused-ignore]

    assert ipywidgets.IntProgress(value=1).value == 1


def optuna_study(study: tm.Study, test: tm.Backtest) -> None:
    """Optuna takes the study."""
    assert study.to_optuna(n=20).best_value == study.best_value


def ray_is_asked_for(study: tm.Study, test: tm.Backtest) -> None:
    """Ray is here, and no cluster is started silently."""
    try:
        tm.sweep("zscore-dip", trials=10, cluster="ray")
    except tm.Error as error:
        assert "RAY_ADDRESS" in str(error), error
    else:
        raise AssertionError("a cluster was started")


CHECKS: dict[str, Callable[[tm.Study, tm.Backtest], None]] = {
    "none": without,
    "cuda": compiles("13", all_kernels=True),
    # That all kernels compile with this version too, for every generation of cards, the tests of the GPU show.
    "cuda12": compiles("12", all_kernels=False),
    "polars": frames_of("polars"),
    "pandas": frames_of("pandas"),
    "notebook": progress_bar,
    "optuna": optuna_study,
    "ray": ray_is_asked_for,
}


def main() -> None:
    """Runs the ten lines and the check of the extra."""
    extra, page = sys.argv[1:]
    text = Path(page).read_text(encoding="utf-8")
    ten = re.search(r"^## Ten lines\n+```python\n((?:.*\n)*?)```$", text, re.MULTILINE)
    assert ten is not None, "the page has lost its ten lines"
    names: dict[str, Any] = {}
    exec(compile(ten[1], page, "exec"), names)  # noqa: S102
    CHECKS[extra](names["study"], names["test"])


if __name__ == "__main__":
    main()
