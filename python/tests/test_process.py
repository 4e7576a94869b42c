"""The package within a process: signals, threads, forks, descriptors, time to import."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import nbclient
import nbformat
import pytest

import tidemill as tm
from tidemill import _tidemill

LONG = """
import sys, tidemill as tm
bars = tm.generate(bars=20_000, symbols=2)
rule = tm.Strategy(name="dip", params=dict(window=tm.int(20, 2_000), k=tm.float(0.5, 4.0)),
                   long=dict(enter="zscore(close, window) < -k", max_hold=12), maximize="sharpe")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to another process")
def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    script = LONG + f"""
import threading, os, signal, time
folder = {str(tmp_path / "study")!r}
def press():
    while True:  # until the study has trials
        try:
            if len(tm.open(folder)) > 0:
                break
        except (tm.Error, OSError):
            pass
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    tm.sweep(rule, bars, trials=50_000_000, batch=256, sampler="random", out=folder, device="cpu", progress=False)
except KeyboardInterrupt as interrupt:
    study = interrupt.study
    done = len(study)
    assert 0 < done < 50_000_000, done
    assert study.state == "stopped" and len(study.trials) == done
    print("kept", done, len(tm.open(folder)))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    word, kept, opened = found.stdout.split()
    assert word == "kept" and kept == opened


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to another process")
def test_a_stopped_study_goes_on_to_the_same_trials(tmp_path: Path) -> None:
    script = LONG + f"""
import os, signal
study = tm.sweep(rule, bars, trials=6_000, batch=64, out={str(tmp_path / "study")!r}, device="cpu", run=False)
class Pressed(Exception): pass
def pressed(*_): raise Pressed
signal.signal(signal.SIGUSR1, pressed)
import threading
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    study.run(progress=False)
except Pressed:
    pass
study.run(progress=False)
whole = tm.sweep(rule, bars, trials=6_000, batch=64, device="cpu", progress=False)
assert len(study) == 6_000
study.save({str(tmp_path / "a.csv")!r}); whole.save({str(tmp_path / "b.csv")!r})
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_other_threads_go_on_during_a_sweep(dip: tm.Strategy) -> None:
    """A heart that only a released lock lets beat stops a sweep that would take very long."""
    bars = tm.generate(bars=20_000, symbols=2)
    has_begun = threading.Event()

    def beat() -> None:
        has_begun.wait()
        for _ in range(20):
            threading.Event().wait(0.001)
        _thread.interrupt_main()

    heart = threading.Thread(target=beat)
    heart.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        has_begun.set()
        tm.sweep(dip, bars, trials=100_000_000, sampler="random", verdict=False, device="cpu", progress=False)
    heart.join()
    assert len(raised.value.study) < 100_000_000  # type: ignore[attr-defined]


def test_a_long_load_shows_what_it_does_and_a_short_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    class Bar:
        def __init__(self, **options: object) -> None:
            self.n = 0
            self.total: int | None = None
            shown.append(f"made in {options['unit']}")

        def set_postfix_str(self, note: str, refresh: bool) -> None:
            shown.append(note)

        def update(self, n: int) -> None:
            self.n += n

        def reset(self) -> None:
            self.n = 0

        def close(self) -> None:
            shown.append("closed")

    tqdm = types.ModuleType("tqdm.auto")
    tqdm.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)
    file = tmp_path / "a.parquet"
    tm.generate(bars=100).save(file)
    monkeypatch.setattr("tidemill._progress.PATIENCE_S", 1e9)
    tm.load(file)
    assert shown == []
    monkeypatch.setattr("tidemill._progress.PATIENCE_S", -1.0)
    tm.load(file, progress=False)
    assert shown == []
    tm.load(file)
    assert (shown[0], shown[-2:]) == ("made in B", ["cleaning 1 symbol", "closed"])


def test_many_sweeps_in_a_notebook_leave_no_descriptor_behind(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list descriptors")
    cell = """
import os, tidemill as tm
rule = tm.Strategy(params=dict(k=tm.float(0.5, 4.0)), long=dict(enter="zscore(close, 20) < -k", max_hold=3), maximize="sharpe")
bars = tm.generate(bars=300)
def sweep():
    tm.sweep(rule, bars, trials=8, sampler="random", verdict=False, device="cpu", progress=True)
for _ in range(3):
    sweep()
before = len(os.listdir("/proc/self/fd"))
for _ in range(200):
    sweep()
f"{before} and then {len(os.listdir('/proc/self/fd'))}"
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])  # type: ignore[no-untyped-call]
    os.environ["IPYTHONDIR"] = str(tmp_path)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    shown = client.execute().cells[0]["outputs"]
    said = next(each["data"]["text/plain"] for each in shown if each["output_type"] == "execute_result")
    before, after = (int(word) for word in said.strip("'").split(" and then "))
    assert after <= before


def test_a_panic_is_an_error_of_the_package() -> None:
    """Whatever goes wrong inside, `except Exception` sees it; PyO3's PanicException would pass by."""
    for is_long in (False, True):
        with pytest.raises(tm.Error, match="failed unexpectedly: the wheel came off") as raised:
            _tidemill.panic_for_test("the wheel came off", is_long)
        assert "report this" in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_is_told_to_spawn() -> None:
    script = LONG + """
import os
child = os.fork()
if child == 0:
    try:
        tm.generate(bars=10)
    except tm.Error as error:
        os._exit(7 if "spawn" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "7", found.stderr


def test_importing_is_quick_and_brings_nothing_else() -> None:
    script = """
import sys, time
began = time.process_time()
import tidemill
took = time.process_time() - began
heavy = {"numpy", "pandas", "polars", "pyarrow", "tqdm", "optuna"} & set(sys.modules)
print(took, *sorted(heavy))
"""
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(3)]
    times, heavy = zip(*((float(run.stdout.split()[0]), run.stdout.split()[1:]) for run in runs), strict=True)
    assert heavy == ([], [], [])
    assert min(times) < 0.2, times


def test_the_command_line_is_in_the_package(tmp_path: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tidemill", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    version = run("--version")
    assert version.returncode == 0 and version.stdout.strip() == f"tidemill {tm.__version__}"
    assert run("sweep", "--no-such-flag").returncode == 2
    failed = run("sweep", "no-such-strategy")
    assert failed.returncode == 2 and failed.stderr.startswith("error: there is no strategy")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to another process")
def test_ctrl_c_stops_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    command = [sys.executable, "-m", "tidemill", "sweep", "--trials", "50000000", "--sampler", "random"]
    command += ["--batch", "256", "--device", "cpu", "--out", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as program:
        while program.poll() is None:
            log = folder / "trials" / "log.bin"
            if log.exists() and log.stat().st_size > 10_000:
                program.send_signal(signal.SIGINT)
                break
        _, said = program.communicate()
    assert program.returncode == 130, said
    assert "the same command resumes it" in said
