"""Runs the commands of a page: each ``sh`` block when its turn comes, in a folder of the page's own.

When what they print has changed for a good reason, the page is brought up to date by::

    python docs/page_commands.py docs/from-reads-to-sharing.md
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from plait.cli import main

_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"(?<=^```{testoutput}\n).*?(?=^```)", re.MULTILINE | re.DOTALL)
_TIMES = re.compile(r"in [\d.]+ s, [\d,]+")


class Page:
    """The ``sh`` blocks of a page.

    Parameters
    ----------
    path
        The page, in ``docs/``.

    Attributes
    ----------
    folder : Path
        Where the commands run.
    """

    def __init__(self, path: Path) -> None:
        self._blocks = _BLOCK.findall(path.read_text(encoding="utf-8"))
        self._tools = path.resolve().parents[1] / "tools"
        # Removed when the page is forgotten.
        self._kept = tempfile.TemporaryDirectory(prefix="plait-docs-")
        self.folder = Path(self._kept.name)

    def run(self) -> None:
        """Run the next block and print what its commands print; a file that ends with END is written."""
        lines = iter(self._blocks.pop(0).replace("\\\n", " ").splitlines())
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[:2] == ["cat", ">"]:
                text = itertools.takewhile(lambda text: text != "END", lines)
                (self.folder / words[2]).write_text("".join(f"{one}\n" for one in text))
            elif words:
                self._run(line, words)

    @property
    def left(self) -> int:
        """Blocks that have not been run yet."""
        return len(self._blocks)

    def _run(self, line: str, words: list[str]) -> None:
        shown, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(shown),
            contextlib.redirect_stderr(errors),
        ):
            if words[0] == "python":
                with _arguments([str(self._tools / Path(words[1]).name), *words[2:]]):
                    runpy.run_path(sys.argv[0], run_name="__main__")
                status = 0
            else:
                status = main(words[1:])
        if status:
            raise RuntimeError(f"{line}: status {status}: {errors.getvalue()}")
        shown.flush()
        print(shown.buffer.getvalue().decode(), end="")


@contextlib.contextmanager
def _arguments(words: list[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = words
    try:
        yield
    finally:
        sys.argv = before


def refresh(path: Path) -> None:
    """Write what the commands of a page print into its ``testoutput`` blocks, all but the times.

    Parameters
    ----------
    path
        The page. Commands that print nothing have no such block.
    """
    page = Page(path)
    printed = []
    while page.left:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            page.run()
        if shown.getvalue():
            printed.append(_TIMES.sub("in ... s, ...", shown.getvalue()))
    text = path.read_text(encoding="utf-8")
    blocks = _OUTPUT.findall(text)
    if len(blocks) != len(printed):
        raise RuntimeError(f"{path}: {len(printed)} outputs for {len(blocks)} testoutput blocks")
    path.write_text(_OUTPUT.sub(lambda _: printed.pop(0), text), encoding="utf-8")


if __name__ == "__main__":
    refresh(Path(sys.argv[1]))
