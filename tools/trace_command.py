"""Which files of plait a command enters, and how many of its frames stand above each call into a room.

Run ``python tools/trace_command.py vdj count rows.tsv --germline mouse_trb -o out.tsv --threads 1``. The
command runs twice, so that what the first run imports, compiles or keeps in memory is not counted. With
``--calls dp/`` the deepest stack above each function of these files is shown; kernels are called there.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import plait
from plait.cli import main

SOURCES = f"{Path(plait.__file__).parent}/"


class Trace:
    """Counts calls by file, and keeps the deepest stack above each function of some files."""

    def __init__(self, within: str) -> None:
        self.calls: Counter[str] = Counter()
        self.stacks: dict[str, list[str]] = {}
        self._within = within

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        """Note a call."""
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(SOURCES):
            return
        name = path.removeprefix(SOURCES)
        self.calls[name] += 1
        if not self._within or not name.startswith(self._within):
            return
        stack: list[str] = []
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_filename.startswith(SOURCES):
                stack.append(f"{above.f_code.co_filename.removeprefix(SOURCES)}:{above.f_code.co_name}")
            above = above.f_back
        if len(stack) > len(self.stacks.get(stack[0], ())):
            self.stacks[stack[0]] = stack


def traced(words: list[str], within: str = "") -> Trace:
    """The calls of the second run of a command line."""
    trace = Trace(within)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if main(words) != 0:
            raise SystemExit(f"plait {' '.join(words)} failed")
        threading.setprofile(trace)
        sys.setprofile(trace)
        try:
            main(words)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as sys.setprofile takes it
    return trace


if __name__ == "__main__":
    given = sys.argv[1:]
    room = given[given.index("--calls") + 1] if "--calls" in given else ""
    found = traced([word for word in given if word not in ("--calls", room)], room)
    print(f"{len(found.calls)} files of plait, {found.calls.total():,} calls")
    for name, calls in sorted(found.calls.items()):
        print(f"{calls:9,}  {name}")
    for name, stack in sorted(found.stacks.items()):
        print(f"{len(stack):3} frames  {name} < {' < '.join(stack[1:])}")
