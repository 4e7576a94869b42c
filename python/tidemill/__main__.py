"""The command line: `tidemill …` and `python -m tidemill …`."""

import sys


def main() -> int:
    """Runs the program with the arguments of this process."""
    from tidemill import _tidemill

    program = [sys.executable, "-m", "tidemill"] if sys.executable else []
    return _tidemill.run(["tidemill", *sys.argv[1:]], program)


if __name__ == "__main__":
    sys.exit(main())
