"""Write aligned pairs as text: EMBOSS-like, SAM or a line each; whole or not at all."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from plait.align.pairs import AlignedPair, PairColumn
from plait.align.results import Alignment
from plait.align.sam import sam_line, unmapped_sam_line
from plait.align.text import alignment_lines
from plait.errors import InvalidInput
from plait.formats.atomic import write_json
from plait.formats.output import TextOutput
from plait.types import Provenance

__all__ = ["AlignmentWriter", "LinesWriter", "SamWriter", "TextWriter", "json_line"]


class AlignmentWriter(ABC):
    """Aligned pairs being written; made by `open_alignments`.

    Attributes
    ----------
    pairs : int
        Pairs written so far.
    left_out : int
        Those among them that have no line of their own. Only SAM leaves pairs out: a query that aligns to
        some targets has no line for the others, and one that aligns to nothing has a single line.
    """

    def __init__(self) -> None:
        self.pairs = 0
        self.left_out = 0

    def write(self, pair: AlignedPair) -> None:
        """Append a pair.

        Parameters
        ----------
        pair
            The pair. In SAM, pairs of one query stand together, and its first line is the primary one.

        Raises
        ------
        InvalidInput
            If the format needs an alignment and there is only a score, or SAM cannot hold the query's name.
        FormatError
            If the disk is full.
        BrokenPipeError
            If whoever reads standard output has gone.
        """
        self._write(pair)
        self.pairs += 1

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        self._close()

    def discard(self) -> None:
        """Remove the unfinished file; an older one of the same name stays as it was."""
        self._discard()

    @abstractmethod
    def _write(self, pair: AlignedPair) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def _discard(self) -> None: ...

    def __enter__(self) -> AlignmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise


class TextWriter(AlignmentWriter):
    """Pairs in EMBOSS's pair format (srspair).

    Parameters
    ----------
    output
        Where the text goes.
    version
        Version of plait.
    command
        The command line; ``""`` leaves it out.
    """

    def __init__(self, output: TextOutput, version: str, command: str) -> None:
        super().__init__()
        self._output = output
        rule = 40 * "#"
        called = f"# Commandline: {' '.join(command.split())}\n" if command else ""
        start = f"{rule}\n# Program: plait {version}\n{called}# Align_format: srspair\n{rule}\n\n"
        # The command line may hold file names that are no UTF-8.
        output.write(start.encode("utf-8", "backslashreplace"))

    def _write(self, pair: AlignedPair) -> None:
        names = (pair.query_name, pair.target_name)
        for line in alignment_lines(_alignment(pair), pair.query, pair.target, names=names):
            self._output.write(line.encode("utf-8"))

    def _close(self) -> None:
        self._output.write(2 * f"#{39 * '-'}\n".encode())
        self._output.close()

    def _discard(self) -> None:
        self._output.discard()


class SamWriter(AlignmentWriter):
    """Pairs as SAM.

    Parameters
    ----------
    output
        Where the text goes; discarded if the header fails.
    header
        Lines of the header, with line ends.
    md
        Whether to write the tag MD.
    """

    def __init__(self, output: TextOutput, header: Iterable[str], md: bool) -> None:
        super().__init__()
        self._output = output
        self._md = md
        #: First pair of the query whose pairs are being written, and whether the query has a line.
        self._first: AlignedPair | None = None
        self._mapped = False
        try:
            for line in header:
                output.write(line.encode("utf-8", "backslashreplace"))
        except BaseException:
            output.discard()
            raise

    def _write(self, pair: AlignedPair) -> None:
        alignment = _alignment(pair)
        if self._first is None or pair.query_name != self._first.query_name:
            self._end_query()
            self._first, self._mapped = pair, False
        if not alignment.matches + alignment.mismatches:
            self.left_out += 1
            return
        line = sam_line(pair, alignment, secondary=self._mapped, md=self._md)
        self._mapped = True
        self._output.write(line.encode("ascii"))

    def _end_query(self) -> None:
        if self._first is not None and not self._mapped:
            self._output.write(unmapped_sam_line(self._first).encode("ascii"))
            self.left_out -= 1

    def _close(self) -> None:
        self._end_query()
        self._output.close()

    def _discard(self) -> None:
        self._output.discard()


class LinesWriter(AlignmentWriter):
    """Pairs as one line each.

    Parameters
    ----------
    output
        Where the text goes.
    line
        Text of a pair, without the line end.
    facts
        File for what is known about all of them, if there is to be one.
    provenance
        How the pairs were aligned.
    header
        What stands before the first line.
    """

    def __init__(
        self,
        output: TextOutput,
        line: Callable[[AlignedPair], str],
        facts: str | None,
        provenance: Provenance,
        *,
        header: str = "",
    ) -> None:
        super().__init__()
        self._output = output
        self._line = line
        self._facts = facts
        self._provenance = provenance
        output.write(header.encode("utf-8"))

    def _write(self, pair: AlignedPair) -> None:
        self._output.write((self._line(pair) + "\n").encode("utf-8"))

    def _close(self) -> None:
        self._output.close()
        if self._facts is not None:
            write_json(self._facts, {"pairs": self.pairs, "provenance": self._provenance.as_dict()})

    def _discard(self) -> None:
        self._output.discard()


def json_line(columns: Mapping[str, PairColumn]) -> Callable[[AlignedPair], str]:
    """How a pair is written as a JSON object with these columns."""

    def line(pair: AlignedPair) -> str:
        row = {name: column.value(pair) for name, column in columns.items()}
        return json.dumps(row, ensure_ascii=False)

    return line


def _alignment(pair: AlignedPair) -> Alignment:
    if pair.alignment is None:
        raise InvalidInput("pair", found="a score alone", expected="an alignment, which this format shows")
    return pair.alignment
