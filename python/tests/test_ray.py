"""Studies on a real Ray cluster of several nodes on this machine. Without Ray they are skipped, and the reason is stated."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import CommandLine

import tidemill as tm
from tidemill._ray import RayTransport

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray", exc_type=ImportError)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of one processor each, to which this process is connected."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()  # type: ignore[no-untyped-call]


def workers(journal: Path) -> list[int]:
    """Processes of the actors that a study has had and that still live."""
    names = re.findall(r'"name":"[^"]*:(\d+)"', journal.read_text())
    return [pid for pid in sorted({int(name) for name in names}) if is_actor(pid)]


def n_shards(journal: Path) -> int:
    return journal.read_text().count('"shard"') if journal.exists() else 0


def is_actor(pid: int) -> bool:
    with suppress(OSError):
        return b"ray::Actor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def exported(study: tm.Study, path: Path) -> bytes:
    study.save(path)
    return path.read_bytes()


# So many trials that the study is under way until the test ends it, however quick the machine is.
ENDLESS = """
import sys, tidemill as tm
tm.sweep(sys.argv[1], tm.generate(bars=20_000, symbols=2, seed=5), cluster="ray", out=sys.argv[2], trials=100_000_000, **eval(sys.argv[3]))
"""
OPTIONS: dict[str, Any] = {"plan_trials": 100_000_000, "batch": 256, "split": 0.7, "verdict": False, "device": "cpu", "progress": False}


def test_nodes_and_workers_come_and_go_and_no_byte_changes(cluster: Any, dip: tm.Strategy, tmp_path: Path) -> None:
    """One node is killed and one joins in mid-study, workers are killed at random, and Ctrl-C keeps what was done."""
    folder, draw, n_killed = tmp_path / "study", random.Random(3), 0
    journal = folder / "journal.jsonl"
    command = [sys.executable, "-c", ENDLESS, dip.text, str(folder), repr(OPTIONS)]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    search = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)

    def after_shards(n: int) -> None:
        """Waits for so many further shards."""
        wanted = n_shards(journal) + n
        wait_until(lambda: n_shards(journal) >= wanted or search.poll() is not None)

    try:
        after_shards(6)
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        after_shards(2)
        cluster.add_node(num_cpus=1)
        while search.poll() is None and n_killed < 6:
            after_shards(3)
            wait_until(lambda: workers(journal) != [])
            with suppress(ProcessLookupError, IndexError):
                os.kill(draw.choice(workers(journal)), signal.SIGKILL)
                n_killed += 1
        after_shards(3)
        search.send_signal(signal.SIGINT)
        said = search.communicate(timeout=300)[1]
    finally:
        search.kill()
    assert n_killed == 6 and "KeyboardInterrupt" in said, said
    study = tm.open(folder)
    serial = tm.sweep(dip, tm.generate(bars=20_000, symbols=2, seed=5), trials=len(study), **OPTIONS)
    assert exported(study, tmp_path / "study.csv") == exported(serial, tmp_path / "serial.csv")
    records = journal.read_text()
    assert records.count('"lost"') >= 3 and records.count('"joined"') >= 6, records
    wait_until(lambda: not workers(journal))


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for what Ray does in its own time."""
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_files_are_read_where_workers_are_and_gpus_have_workers_of_their_own(
    cluster: Any, dip: tm.Strategy, file: Path, tmp_path: Path, tidemill: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that was loaded by its path is not sent; and a place that is no GPU takes no worker of one."""
    options: dict[str, Any] = {"trials": 400, "verdict": False, "progress": False}
    serial = tm.sweep(dip, file, device="cpu", **options)
    study = tm.sweep(dip, file, device="cpu", cluster="ray", **options)
    assert exported(study, tmp_path / "study.csv") == exported(serial, tmp_path / "serial.csv")
    dip.save(tmp_path / "dip.toml")
    flags = ["--data", file, "--trials", "400", "--verdict", "off", "--device", "cpu", "--cluster", "ray", "--out", tmp_path / "program"]
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    said = tidemill("sweep", tmp_path / "dip.toml", *flags)
    assert said.returncode == 0, said.stderr
    assert exported(tm.open(tmp_path / "program"), tmp_path / "program.csv") == exported(serial, tmp_path / "serial.csv")
    pace = ["--train", "15d", "--test", "10d", "--trials", "100", "--device", "cpu", "--json"]
    walks = [tidemill("walkforward", tmp_path / "dip.toml", "--data", file, *pace, *more) for more in ([], ["--cluster", "ray"])]
    assert walks[0].returncode == walks[1].returncode == 0, walks[1].stderr
    assert walks[0].stdout == walks[1].stdout
    with pytest.raises(tm.Error, match="no node of the Ray cluster offers a GPU"):
        tm.sweep(dip, file, device="cuda", cluster="ray", **options)
    with pytest.raises(ValueError, match="Ray gives each worker its GPU"):
        tm.sweep(dip, file, device="cuda:1", cluster="ray", **options)


def test_studies_run_side_by_side_and_come_back(cluster: Any, dip: tm.Strategy, market: tm.Bars, file: Path, tmp_path: Path) -> None:
    """Also one that was begun before, one whose worker is killed, and one that fails."""
    options: dict[str, Any] = {"device": "cpu", "verdict": False, "progress": False}
    tm.sweep(dip, market, trials=200, plan_trials=600, out=tmp_path / "begun", **options)
    studies = [
        tm.sweep(dip, market, trials=600, plan_trials=600, out=tmp_path / "begun", run=False, **options),
        tm.sweep(dip, file, trials=600, seed=2, set={"window": 50}, run=False, **options),
        tm.sweep(dip, market, trials=40_000, seed=3, run=False, **options),
        tm.sweep(dip, market, trials=600, run=False, **{**options, "device": "cuda"}),
    ]
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_runner, args=[killed], daemon=True)
    killer.start()
    with pytest.raises(tm.StudyError, match="study 4 of 4: .*no node of the Ray cluster offers a GPU"):
        tm.map(studies, cluster="ray", progress=False)
    killer.join()
    assert len(killed) == 1
    alone = [
        tm.sweep(dip, market, trials=600, plan_trials=600, **options),
        tm.sweep(dip, file, trials=600, seed=2, set={"window": 50}, **options),
        tm.sweep(dip, market, trials=40_000, seed=3, **options),
    ]
    for study, other in zip(studies, alone, strict=False):
        assert exported(study, tmp_path / "study.csv") == exported(other, tmp_path / "alone.csv")
        assert study.state == "complete"
    assert len(tm.open(tmp_path / "begun")) == 600


def runners() -> list[int]:
    """Processes that run a study."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"ray::Runner" in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def has_trials(pid: int) -> bool:
    """Whether a process holds a file of trials open, which it makes with the first batch."""
    with suppress(OSError):
        return any("/study/trials/" in os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir())
    return False


def kill_one_runner(killed: list[int]) -> None:
    wait_until(lambda: runners() != [])
    killed.append(runners()[0])
    os.kill(killed[0], signal.SIGKILL)


def test_ctrl_c_keeps_what_every_study_has_done(cluster: Any, dip: tm.Strategy, tmp_path: Path) -> None:
    script = """
import sys, tidemill as tm
bars = tm.generate(bars=20_000, symbols=2, seed=5)
make = lambda seed: tm.sweep(sys.argv[1], bars, seed=seed, out=f"{sys.argv[2]}/{seed}", trials=100_000_000, run=False, **eval(sys.argv[3]))
tm.map([make(seed) for seed in (1, 2)], cluster="ray")
"""
    options = {**OPTIONS, "progress": False}
    command = [sys.executable, "-c", script, dip.text, str(tmp_path), repr(options)]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    search = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        wait_until(lambda: sum(map(has_trials, runners())) == 2 or search.poll() is not None)
        search.send_signal(signal.SIGINT)
        said = search.communicate(timeout=300)[1]
    finally:
        search.kill()
    assert "KeyboardInterrupt" in said, said
    for seed in (1, 2):
        study = tm.open(tmp_path / str(seed))
        assert len(study) > 0
        serial = tm.sweep(dip, tm.generate(bars=20_000, symbols=2, seed=5), seed=seed, trials=len(study), **OPTIONS)
        assert exported(study, tmp_path / "study.csv") == exported(serial, tmp_path / "serial.csv")
    wait_until(lambda: not runners())


def test_every_gpu_of_a_node_has_a_worker(cluster: Any, dip: tm.Strategy, file: Path, tmp_path: Path) -> None:
    """Two that Ray only believes in, on which kernels run as the CPU emulates them."""
    options: dict[str, Any] = {"trials": 200, "batch": 50, "verdict": False, "progress": False}
    serial = tm.sweep(dip, file, device="cpu", **options)
    try:
        tm.sweep(dip, file, device="emulated", **{**options, "trials": 10})
    except tm.DeviceError as error:
        if os.environ.get("TIDEMILL_REQUIRE_EMULATION"):
            raise
        pytest.skip(str(error))
    node = cluster.add_node(num_cpus=1, num_gpus=2)
    try:
        study = tm.sweep(dip, file, device="emulated", cluster="ray", **options)
        assert exported(study, tmp_path / "study.csv") == exported(serial, tmp_path / "serial.csv")
        transport = RayTransport("emulated")
        names: list[object] = []

        def have_joined() -> bool:
            names.extend(what for _, _, what in transport.poll(0.1))
            return len(names) == 2

        wait_until(have_joined)
        transport.close()
    finally:
        cluster.remove_node(node)


def test_no_cluster_is_started_silently() -> None:
    script = "import tidemill as tm; tm.sweep('zscore-dip', tm.generate(bars=500), trials=10, cluster='ray')"
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert said.returncode == 1 and "RAY_ADDRESS=auto is the one that" in said.stderr, said.stderr
