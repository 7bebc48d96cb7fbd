"""``plait`` itself: help, version, exit statuses, signals and messages."""

from __future__ import annotations

import errno
import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from cyclopts import App
from support.examples import often

from plait import __version__
from plait.cli import command as command_of_process
from plait.cli import options
from plait.cli.entry import EXAMPLES, app
from plait.errors import InvalidInput

COUNT = ("vdj", "count", "x.tsv", "--germline", "mouse_trb", "-o", "x.parquet")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), ("vdj", "germline", "demo", "--version")),
        (("vdj",), ("count", "explain", "sharing")),
        (("vdj", "count"), ("--germline", "--sweep-pi", "--resume", "--threads", "--device")),
        (("germline",), ("list", "show", "validate", "convert")),
    ],
)
def test_help(plait: Any, words: tuple[str, ...], named: tuple[str, ...]) -> None:
    found = plait(*words, "--help")
    assert (found.status, found.err) == (0, "")
    assert all(name in found.out for name in named)
    assert max(map(len, found.out.splitlines())) <= 80


EXAMPLE_LINES = [*((name, lines[0]) for name, lines in EXAMPLES.items())]
EXAMPLE_LINES += [(name, line) for name, lines in EXAMPLES.items() for line in lines[1:]]


@pytest.mark.parametrize(("command", "line"), often(len(EXAMPLES), EXAMPLE_LINES))
def test_examples_are_command_lines(plait: Any, command: str, line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    assert words[0] == "plait" and words[1 : 1 + len(command.split())] == command.split()
    _, bound, *_ = app.parse_args(words[1:], exit_on_error=False, print_error=False)
    assert bound.arguments or command in ("germline list",)
    shown = plait(*command.split(), "--help").out
    assert line in " ".join(shown.partition("For example:")[2].replace("\\\n", " ").split())


def test_the_page_for_users_of_other_programs_has_command_lines(repository: Path) -> None:
    page = (repository / "docs/coming-from.md").read_text(encoding="utf-8")
    lines = re.findall(r"`(plait [^`]+)`", page)
    assert len(lines) > 15
    for line in lines:
        _, bound, *_ = app.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)
        assert bound.arguments, line


def test_every_command_has_an_example() -> None:
    def names(of: App) -> set[str]:
        found = {name: of[name] for name in of if not name.startswith("-")}
        return set(found) | {f"{name} {one}" for name, app in found.items() for one in names(app)}

    grouped = {"vdj", "hsi", "germline", "ldpc"}
    assert set(EXAMPLES) == names(app) - grouped


@pytest.mark.slow
@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(s, marks=pytest.mark.slow) for s in ("zsh", "fish"))]
)
def test_completion_is_written_for_every_shell(plait: Any, shell: str) -> None:
    found = plait("completion", shell)
    assert found.status == 0
    assert all(word in found.out for word in ("sharing", "germline", "find"))


@pytest.mark.parametrize(
    "words",
    often(1, [["--help"], ["--version"], ["search", "--help"], ["vdj", "count", "--help"], ["vdj", "x"]]),
)
def test_words_alone_load_neither_compiler_nor_tables(words: list[str]) -> None:
    loaded = _loaded(f"import plait.cli; plait.cli.main({words!r})")
    assert {"numba", "pyarrow", "matplotlib"}.isdisjoint(loaded)


def test_what_tells_of_mistakes_is_loaded_when_there_is_one() -> None:
    loaded = _loaded("import plait.vdj.reads.annotate_files, plait.align.hits, plait.vdj.model")
    assert "pyarrow" in loaded and {"difflib", "statistics", "plait.cli"}.isdisjoint(loaded)


def _loaded(program: str) -> set[str]:
    """Modules that a process has loaded."""
    program = f"import sys; {program}; print(*sys.modules, file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(found.stderr.split())


def test_garbage_is_looked_for_seldom_from_before_libraries_are_loaded() -> None:
    program = "import atexit, gc, sys, plait.cli; loaded = 'cyclopts' in sys.modules; seen = []\n"
    program += "gc.callbacks.append(lambda phase, told: seen.append(phase))\n"
    program += "atexit.register(lambda: print(loaded, 'cyclopts' in sys.modules, len(seen)))\n"
    program += "plait.cli.command()"
    command = [sys.executable, "-c", program, "--version"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout == f"{__version__}\nFalse True 0\n"


def test_version(plait: Any) -> None:
    assert plait("--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(("loaded", "told"), [("sys", ""), ("mpi4py", "last\n"), ("cProfile", "last\n")])
def test_a_process_ends_at_once(loaded: str, told: str) -> None:
    """Output, status and functions at exit are there; nothing is taken apart, but with MPI or a profiler."""
    program = f"import atexit, sys; sys.modules[{loaded!r}] = sys\n"
    program += "last = type('Last', (), {'__del__': lambda own, tell=print: tell('last')})()\n"
    program += "atexit.register(print, 'exit'); import plait.cli; plait.cli.command()"
    for words, status, out in (("--version", 0, f"{__version__}\n"), ("nonsense", 2, "")):
        command = [sys.executable, "-c", program, words]
        found = subprocess.run(command, capture_output=True, text=True)
        assert (found.returncode, found.stdout) == (status, f"{out}exit\n{told}")
        assert ("Unknown command" in found.stderr) == (status == 2)


def test_a_process_removes_its_folder_of_compiled_code(tmp_path: Path) -> None:
    program = "import plait.cli, plait.lang.compile\n"
    program += "print(plait.lang.compile._temporary_folder().is_dir()); plait.cli.command()"
    command = [sys.executable, "-c", program, "--version"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (found.returncode, found.stdout) == (0, f"True\n{__version__}\n")
    assert not list(tmp_path.glob("plait-*"))


@pytest.mark.parametrize(
    ("closed", "status", "shown", "told"),
    [
        (">&-", 2, "", "plait: error: output: found it closed, expected room for it\n"),
        ("2>&-", 0, f"{__version__}\n", ""),
        (">&- 2>&-", 2, "", ""),
    ],
)
def test_streams_that_are_closed(closed: str, status: int, shown: str, told: str) -> None:
    command = ["sh", "-c", f'"$0" -m plait --version {closed}', sys.executable]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (status, shown, told)


def test_results_that_nobody_can_read(tmp_path: Path) -> None:
    (tmp_path / "rna.fa").write_text(">a\nGGGGAAAACCCC\n")
    for output, status in (("", 2), ("-o found.txt", 0)):
        command = ["sh", "-c", f'"$0" -m plait fold rna.fa {output} >&-', sys.executable]
        found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert found.returncode == status
        assert ("standard output: found it closed" in found.stderr) == (status == 2)


def test_a_table_is_whole_though_its_summary_has_no_reader(
    tmp_path: Path, write_tsv: Any, mouse_rows: Any
) -> None:
    """As with ``cp -v a b >&-``: the status is of what was asked to be printed, too."""
    options = "--germline mouse_trb --device reference -o out.tsv"
    line = f'"$0" -m plait vdj count {write_tsv(mouse_rows(3))} {options}'
    for closed, status in (("", 0), (">&-", 2)):
        found = subprocess.run(
            ["sh", "-c", f"{line} {closed}", sys.executable], cwd=tmp_path, capture_output=True
        )
        assert found.returncode == status
        assert len((tmp_path / "out.tsv").read_text().splitlines()) == 4
        (tmp_path / "out.tsv").unlink()


def test_the_module_and_the_script_are_the_same(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())
    module, _, name = project["project"]["scripts"]["plait"].partition(":")
    assert getattr(importlib.import_module(module), name) is command_of_process
    command = [sys.executable, "-m", "plait", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == __version__


@pytest.mark.parametrize(
    ("words", "message", "command"),
    [
        (("vdj", "count", "--colour"), "Unknown option: --colour", "plait vdj count"),
        (("vdj", "count", "x.tsv"), "--germline is required", "plait vdj count"),
        (("vdj", "count", "x.tsv", "--germline"), "--germline requires an argument", "plait vdj count"),
        (("similar",), "TEXTS is required", "plait similar"),
        (("vdj", "cuont"), 'Did you mean "count"?', "plait vdj"),
        (("nothing",), 'Unknown command "nothing"', "plait"),
        (("nothing",), "similar, fold, ...", "plait"),
        ((*COUNT, "--strands", "3"), 'Invalid value "3" for --strands', "plait vdj count"),
        ((*COUNT, "--pi", "4.5"), "--pi: found '4.5', expected a whole number", "plait vdj count"),
        ((*COUNT, "--device", "gpu"), "--device: found 'gpu', expected one of auto, cpu", "plait vdj count"),
    ],
)
def test_wrong_words(plait: Any, words: tuple[str, ...], message: str, command: str) -> None:
    found = plait(*words)
    assert (found.status, found.out) == (2, "")
    first, second = found.err.splitlines()
    assert first.startswith("plait: error: ") and message in first
    assert second == f"See {command} --help"


def test_an_error_is_one_line(plait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_DEBUG", raising=False)
    found = plait("germline", "show", "nothing_trb")
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("plait: error: ") and found.err.count("\n") == 1


def test_a_traceback_on_demand(plait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_DEBUG", "1")
    found = plait("germline", "show", "nothing_trb")
    assert found.status == 2
    assert found.err.startswith("Traceback") and InvalidInput.__name__ in found.err


def test_an_error_of_plait_itself(plait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_DEBUG", raising=False)
    monkeypatch.setattr("plait.cli.germline.bundled_germlines", lambda: 1 / 0)
    found = plait("germline", "list")
    assert found.status == 70
    assert found.err.startswith("plait: error: ZeroDivisionError: division by zero (an error of plait itself")
    assert found.err.count("\n") == 1


def test_a_status_of_a_command_is_passed_on(plait: Any, tmp_path: Path) -> None:
    path = tmp_path / "only_d.fasta"
    path.write_text(">TRBD1*01\nGGGACAGGGGGC\n")
    assert plait("germline", "validate", path).status == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(plait: Any, monkeypatch: pytest.MonkeyPatch, number: int, status: int) -> None:
    monkeypatch.setattr("plait.cli.germline.bundled_germlines", lambda: signal.raise_signal(number))
    # Whoever started the tests may have had Ctrl-C ignored for them.
    before = signal.signal(number, signal.default_int_handler)
    try:
        assert plait("germline", "list") == (status, "", "plait: stopped\n")
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_signal_while_modules_are_loaded() -> None:
    program = (
        "import os, signal, sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'plait.cli.entry':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from plait.cli import command\n"
        "sys.meta_path.insert(0, Stop())\n"
        "command()\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    # Which a shell calls 130.
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, "", "")


def test_an_ignored_signal_stays_ignored(plait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "plait.cli.germline.bundled_germlines", lambda: signal.raise_signal(signal.SIGTERM) or ()
    )
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert plait("germline", "list").status == 0
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("words", [("germline", "list"), ("--help",)])
def test_no_room_for_what_is_printed(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "plait", *words]
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, found.stderr) == (
        2,
        f"plait: error: output: found {os.strerror(errno.ENOSPC)}, expected room for it\n",
    )


# JSON is printed by Python; help and the other table are laid out by a library, which ends the process.
@pytest.mark.parametrize("words", [("germline", "show", "human_trb", "--format", "json"), ("--help",)])
def test_a_closed_pipe_is_quiet(start_plait: Any, words: tuple[str, ...]) -> None:
    process = start_plait(*words)
    process.stdout.close()
    assert process.wait(60) == 141
    with process.stderr as stderr:
        assert stderr.read() == ""


def test_options_offer_what_there_is() -> None:
    from plait.formats.layouts import LAYOUTS
    from plait.vdj import calls, models
    from plait.vdj.chain import Overflow
    from plait.vdj.germline import germline_set

    assert get_args(options.AmbiguousOption) == calls.AMBIGUITY_POLICIES
    assert get_args(options.ChainOption) == ("auto", *get_args(germline_set.Chain))
    assert get_args(options.EmptyDOption) == get_args(models.EmptyD)
    assert get_args(options.LayoutOption) == ("auto", *LAYOUTS)
    assert get_args(options.ModelOption) == get_args(models.ModelName)
    assert get_args(options.OverflowOption) == get_args(Overflow)


@pytest.mark.parametrize(
    ("text", "values"),
    [("0:4", (0, 1, 2, 3, 4)), ("3:3", (3,)), ("0,2,10", (0, 2, 10)), (" 1 , 2", (1, 2)), ("7", (7,))],
)
def test_values_of_a_sweep(text: str, values: tuple[int, ...]) -> None:
    assert options.values_of("--sweep-pi", text) == values


@pytest.mark.parametrize(
    "text", ["", ":", "4:0", "0:4:2", "a:b", "0-4", "-1:3", "1,,2", "1.5", "0:100000", "²"]
)
def test_bad_values_of_a_sweep(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--sweep-nu: found .*, expected a range such as 0:4"):
        options.values_of("--sweep-nu", text)


def test_a_word_with_nul_is_refused(plait: Any) -> None:
    found = plait("hsi", "decompress", "a\0b", "-o", "o.img")
    assert found.status == 2
    assert "arguments: found 'a\\x00b', expected words without NUL characters" in found.err
