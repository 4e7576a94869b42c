"""Where the rivals' scripts are, and their shared module.

The scripts of the peer benchmarks (`common.py`, `bench_numba.py`, `cpu_lanes.c` …) are not part of this repository. They are
looked for in `--peers DIR`, else in the environment's `PEERS`, else in `../shared/bench` beside the repository.
"""

import importlib
import os
import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEFAULT = REPOSITORY.parent / "shared" / "bench"


def add_peers_argument(parser):
    """Adds `--peers` to a command line."""
    default = pathlib.Path(os.environ.get("PEERS", DEFAULT))
    parser.add_argument("--peers", type=pathlib.Path, default=default, help="folder of the rivals' scripts")


def load_peers(folder):
    """The module with the rivals' data, grid and fee."""
    if not (folder / "common.py").exists():
        sys.exit(f"no common.py in {folder}: give the folder of the rivals' scripts with --peers")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    return importlib.import_module("common")
