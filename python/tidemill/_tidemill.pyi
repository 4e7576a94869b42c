"""
The native half of Tidemill.
"""

from _typeshed import Incomplete, SupportsGetItem
from os import PathLike
from typing import Any, SupportsFloat, SupportsIndex, final

__all__ = ["RawBacktest", "RawBars", "RawStrategy", "RawTable", "RawWorker", "backtest", "backtest_trial", "color", "export", "generate", "generated", "judge", "load_frames", "load_paths", "look_for_nvrtc_in", "open_strategy", "panic_for_test", "run", "scan", "shipped", "signal", "signal_of_trial", "stored_strategy", "stored_sweep", "study", "study_html", "sweep", "trials", "unpack_bars", "version", "walkforward"]

@final
class RawBacktest:
    """
    A back-test and all that it found.
    """
    def document(self, /) -> str:
        """
        What `tidemill backtest --json` prints, without the trades, which are a table.
        """
    def equity(self, /) -> RawTable:
        """
        Equity by the day.
        """
    def html(self, /, for_notebook: bool) -> str:
        """
        The report as a page; for a notebook it holds fewer bars.
        """
    def trades(self, /) -> RawTable:
        """
        The trades.
        """

@final
class RawBars:
    """
    Clean bars of one or more symbols.
    """
    def __len__(self, /) -> int:
        """
        Bars of all symbols.
        """
    def fingerprint(self, /) -> str:
        """
        A hash of all names and columns.
        """
    @property
    def is_in_memory(self, /) -> bool:
        """
        Whether nothing says where the bars could be loaded from.
        """
    def join(self, /, frame: Any, as_of: str, max_age: str | None, prefix: str, timezone: str | None) -> RawBars:
        """
        The same with the columns of a frame joined by time.
        """
    @property
    def notes(self, /) -> list[str]:
        """
        What loading found.
        """
    @property
    def origin(self, /) -> str:
        """
        Where the bars come from, in a few words.
        """
    def pack(self, /, folder: str | PathLike[str]) -> str:
        """
        Writes everything that another process needs into a folder; the result goes to `unpack_bars` with it.
        """
    def report(self, /) -> str:
        """
        The report of the load as JSON.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Writes Parquet or CSV.
        """
    @property
    def symbols(self, /) -> list[str]:
        """
        Names of the symbols.
        """
    def table(self, /) -> RawTable:
        """
        All bars as a table.
        """
    def with_benchmark(self, /, name: str) -> RawBars:
        """
        The same with another benchmark.
        """

@final
class RawStrategy:
    """
    A strategy that was read.
    """
    def __new__(cls, /, file: str, source: str, options: Incomplete) -> RawStrategy:
        """
        Reads a text; `file` is the name shown in messages.
        """
    @property
    def file(self, /) -> str:
        """
        The file it came from, or what stands for it.
        """
    @property
    def laid_over(self, /) -> Incomplete:
        """
        What is laid over the text.
        """
    @property
    def name(self, /) -> str:
        """
        Its name.
        """
    @property
    def objectives(self, /) -> list[str]:
        """
        What a search maximises.
        """
    def params(self, /) -> str:
        """
        The parameters as JSON: name, domain, default, fixed value.
        """
    @property
    def profiles(self, /) -> list[str]:
        """
        Its profiles.
        """
    @property
    def source(self, /) -> str:
        """
        The text.
        """

@final
class RawTable:
    """
    A table that anything which speaks Arrow can take.
    """
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> Any:
        """
        The stream of Arrow's PyCapsule interface; a requested schema is not looked at, as the interface allows.
        """
    def __len__(self, /) -> int:
        """
        Number of rows.
        """
    def fill(self, /, name: str, array: Any) -> list[str]:
        """
        Writes a column into an array of numpy of its kind. Where there is nothing it is NaN, of times the least number, of texts -1. The
        result are the distinct texts.
        """
    def head(self, /, n_rows: SupportsIndex) -> RawTable:
        """
        The first rows.
        """
    def kind(self, /, name: str) -> str:
        """
        What numpy holds a column as: `f8`, `i8` or `u8` as they are, `f8` also for whole numbers of which some are missing, `time` for
        milliseconds, `text` for places among words, `switch` for bytes of 0 and 1, and `list` for anything else.
        """
    def metadata(self, /, name: str) -> dict[str, str]:
        """
        What a column says about itself, such as the role that it has in a study.
        """
    @property
    def names(self, /) -> list[str]:
        """
        Names of the columns.
        """
    def values(self, /, name: str) -> list[Any]:
        """
        A column as plain values; times are UTC milliseconds.
        """
    def zone(self, /, name: str) -> str | None:
        """
        The zone of a column of times, empty where they have none; `None` for any other column.
        """

@final
class RawWorker:
    """
    A worker: evaluates shards of any study that a coordinator tells it of. It keeps the data of the last one.
    """
    def __new__(cls, /, device: str, bars: RawBars | None = None, name: str | None = None) -> RawWorker:
        """
        A worker that evaluates on this device; `bars` are used where they are the data of the study, which is else loaded by its paths.
        """
    def handle(self, /, frame: bytes) -> bytes | None:
        """
        The answer to a frame; none to a farewell. Several threads may ask at a time.
        """

def backtest(strategy: RawStrategy, bars: RawBars, cut: Incomplete) -> RawBacktest:
    """
    Evaluates the defaults of a strategy.
    """

def backtest_trial(folder: str | PathLike[str], trial: SupportsIndex, bars: RawBars | None) -> RawBacktest:
    """
    Evaluates a trial of a stored study, on its own data or on bars that equal it.
    """

def color(graph: str | PathLike[str], options: Incomplete) -> str:
    """
    Colours the graph in a file; the result is what `tidemill color --json` prints. Ctrl-C ends the run with an exception.
    """

def export(folder: str | PathLike[str], format: str, path: str | PathLike[str]) -> int:
    """
    Writes all trials as one file; the result is their number.
    """

def generate(kind: str, bars: SupportsIndex, symbols: SupportsIndex | None, timeframe: str | None, seed: SupportsIndex | None, edge: SupportsFloat | SupportsIndex | None, drift: SupportsFloat | SupportsIndex | None) -> RawBars:
    """
    Generates a market.
    """

def generated() -> RawBars:
    """
    The market that commands use where no data is named.
    """

def judge(folder: str | PathLike[str], bars: RawBars | None, top: SupportsIndex) -> str:
    """
    Judges the winners of a stored study, on its own data or on bars that equal it. The result is the verdict as JSON.
    """

def load_frames(frames: SupportsGetItem[int, tuple[str, str, Any]], options: Incomplete) -> RawBars:
    """
    Cleans frames: symbol, what stands for a file name, and the frame of each.
    """

def load_paths(paths: SupportsGetItem[int, str | PathLike[str]], options: Incomplete, progress: Any | None) -> RawBars:
    """
    Loads files and folders. `progress` is called from this thread with the bytes that are read, of how many if that is known, and
    what is being done.
    """

def look_for_nvrtc_in(folders: SupportsGetItem[int, str | PathLike[str]]) -> None:
    """
    Names the folders of Python packages, in which the wheel of NVRTC is looked for when the first kernel is compiled.
    """

def open_strategy(name: str, options: Incomplete) -> RawStrategy:
    """
    Opens a file by path or a shipped strategy by name.
    """

def panic_for_test(message: str, is_long: bool) -> None:
    """
    Panics inside, in short or in long work: the tests of the package look at what becomes of it.
    """

def run(args: SupportsGetItem[int, str], program: SupportsGetItem[int, str]) -> int:
    """
    Runs the command line; the result is its exit code. `program` starts it in another process. Only the script calls it: it takes over Ctrl-C.
    """

def scan(bars: RawBars, preset: str, set: SupportsGetItem[int, tuple[str, str]], min_signal: SupportsFloat | SupportsIndex, n_bars: SupportsIndex | None, history: bool, device: str) -> tuple[RawTable, RawTable | None, str]:
    """
    Scans; the result is a table of the symbols with a signal, one of the average of every bar, and the others with their reasons as JSON.
    """

def shipped() -> list[tuple[str, str]]:
    """
    Name and text of the shipped strategies.
    """

def signal(strategy: RawStrategy, bars: RawBars, trade: SupportsGetItem[int, str] | None, at: str | None) -> tuple[str, str]:
    """
    The state of a strategy with its defaults: what `tidemill signal --json` prints, and the same in words.
    """

def signal_of_trial(folder: str | PathLike[str], trial: SupportsIndex, bars: RawBars | None, files: SupportsGetItem[int, str | PathLike[str]], trade: SupportsGetItem[int, str] | None, at: str | None) -> tuple[str, str]:
    """
    The state of a trial of a stored study: on bars, on files that are loaded as those of the study were, or on its own data.
    """

def stored_strategy(folder: str | PathLike[str]) -> RawStrategy:
    """
    The strategy of a stored study as it was searched.
    """

def stored_sweep(folder: str | PathLike[str], bars: RawBars | None, trials: SupportsIndex | None, device: str, transport: Any | None, progress: Any | None) -> str:
    """
    Goes on with a stored study as it was made, on its own data or on bars that equal it.
    """

def study(folder: str | PathLike[str], top: SupportsIndex) -> str:
    """
    What `tidemill study show --json` prints.
    """

def study_html(folder: str | PathLike[str], top: SupportsIndex) -> str:
    """
    The page that `tidemill study show --html` writes.
    """

def sweep(strategy: RawStrategy, bars: RawBars, folder: str | PathLike[str], cut: Incomplete, options: Incomplete, transport: Any | None, progress: Any | None) -> str:
    """
    Searches, and keeps all trials in the folder; resumes the study that it holds. `progress` is called from this thread with the trials
    done, the trials in all, the best value and whether winners are being judged. With a `transport` its workers evaluate. The result is a
    JSON document.
    """

def trials(folder: str | PathLike[str]) -> RawTable:
    """
    All trials as a table.
    """

def unpack_bars(folder: str | PathLike[str], about: str) -> RawBars:
    """
    Bars that `RawBars.pack` wrote, with everything but the report of their load.
    """

def version() -> tuple[str, int]:
    """
    Version of the program, and of what it computes.
    """

def walkforward(strategy: RawStrategy, bars: RawBars, folder: str | PathLike[str] | None, cut: Incomplete, windows: Incomplete, options: Incomplete, transport: Any | None, progress: Any | None) -> tuple[str, str]:
    """
    Walks forward, on the workers of a `transport` if there is one; the result is what `tidemill walkforward --json` prints and the page that `--html` writes.
    """
