"""The command line: `tidemill …` and `python -m tidemill …`."""

import sys


def main() -> int:
    """Runs the program with the arguments of this process."""
    from tidemill import _tidemill

    return _tidemill.run(["tidemill", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
