"""One case of a parser: what it is for the case to pass, and how a failing one is told from another."""

from __future__ import annotations

import json
import os
import resource
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.fuzz.mutation import Mutate

from plait.errors import FormatError, InvalidInput, PlaitError, TaskFailed, Unsupported

#: Beyond this a case is slow, if it is so a second time, when nothing is compiled or loaded any more.
SLOW_SECONDS = 2.0
MOST_MEMORY = 512 << 20
_LONGEST_MESSAGE = 6000
_OUT_OF_MEMORY = ("malloc", "realloc", "Unable to allocate", "out of memory", "Cannot allocate")


@dataclass(frozen=True, kw_only=True)
class Parser:
    """A parser under test.

    Attributes
    ----------
    name
        Its name, and that of its folder of failures.
    seeds
        Files that it accepts, or nearly.
    mutate
        Makes a case out of them.
    read
        Gives the case, written into a folder of its own, to the parser; asserts what can be checked.
    cases
        How many a full run makes.
    least_accepted, least_refused
        Shares without which the mutations test nothing.
    """

    name: str
    seeds: Sequence[bytes]
    mutate: Mutate
    read: Callable[[bytes, Path], Any]
    cases: int = 100_000
    least_accepted: float = 0.02
    least_refused: float = 0.02


class Outcome(NamedTuple):
    """What became of a case: accepted, refused (with the kind of message), or failed (why and where)."""

    state: str
    told: str = ""


def _fault(error: PlaitError) -> str | None:
    """What is wrong with an error that plait raises on purpose."""
    text = str(error)
    if isinstance(error, TaskFailed) and error.unexpected:
        return "an unexpected error in a task"
    fields: dict[type, tuple[str, ...]] = {
        FormatError: ("path", "expected", "found"),
        InvalidInput: ("what", "expected", "found"),
        Unsupported: ("what", "why"),
    }
    for kind, names in fields.items():
        if isinstance(error, kind):
            empty = [name for name in names if not str(getattr(error, name)).strip()]
            if empty:
                return f"nothing said of {', '.join(empty)}"
    if len(text) > _LONGEST_MESSAGE:
        return "a message of more than 6,000 characters"
    if any(word in text for word in _OUT_OF_MEMORY):
        return "ran out of memory"
    return None


def _place(error: BaseException) -> str:
    """The innermost function of plait, or else of the parser's own check, that the error came through."""
    step, found = error.__traceback__, "?"
    while step is not None:
        code = step.tb_frame.f_code
        if "/plait/" in code.co_filename or (
            "/fuzz/" in code.co_filename and "trial.py" not in code.co_filename
        ):
            found = f"{os.path.basename(code.co_filename)}:{code.co_name}"
        step = step.tb_next
    return found


def _told(error: PlaitError) -> str:
    what = getattr(error, "expected", getattr(error, "why", ""))
    return f"{type(error).__name__} {_place(error)} {str(what)[:24]}"


def _once(parser: Parser, case: bytes, folder: Path) -> Outcome:
    try:
        parser.read(case, folder)
    except PlaitError as error:
        fault = _fault(error)
        if fault:
            return Outcome("failed", f"{type(error).__name__} ({fault}) at {_place(error)}")
        return Outcome("refused", _told(error))
    except MemoryError as error:
        return Outcome("failed", f"MemoryError at {_place(error)}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # A panic of a compiled library need not be an Exception.
        return Outcome("failed", f"{type(error).__name__} at {_place(error)}")
    return Outcome("accepted")


def outcome(parser: Parser, case: bytes, folder: Path) -> Outcome:
    """Run a case; one that takes long is run again, because the first may have compiled something."""
    began = time.process_time()
    found = _once(parser, case, folder)
    if time.process_time() - began > SLOW_SECONDS:
        began = time.process_time()
        found = _once(parser, case, folder)
        if time.process_time() - began > SLOW_SECONDS:
            return Outcome("failed", f"more than {SLOW_SECONDS:g} s")
    return found


def explained(parser: Parser, case: bytes, folder: Path) -> str:
    """Where and how a case fails, in two lines."""
    try:
        parser.read(case, folder)
    except BaseException as error:
        lines = traceback.format_exception_only(error)[-1].strip()[:400]
        return f"    {lines}\n    at {_place(error)}"
    return ""


def limit_memory(most: int = MOST_MEMORY) -> None:
    """Let this process have so much more address space than it has; 0 for any."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = hard
    if most:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + most
    resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def minimised(parser: Parser, case: bytes, told: str, folder: Path, *, seconds: float = 2.0) -> bytes:
    """A smaller case with the same failure."""
    end = time.process_time() + seconds

    def fails(candidate: bytes) -> bool:
        return _once(parser, candidate, folder) == Outcome("failed", told)

    # How deep is too deep depends on the place in the program.
    if "more than" in told or "RecursionError" in told or not fails(case):
        return case
    size = len(case) // 2
    while size and time.process_time() < end:
        place = 0
        while place < len(case) and time.process_time() < end:
            candidate = case[:place] + case[place + size :]
            if fails(candidate):
                case = candidate
            else:
                place += size
        size //= 2
    return case


def as_json(content: Any) -> bytes:
    """A seed of JSON."""
    return json.dumps(content).encode()
