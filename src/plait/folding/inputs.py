"""Files of sequences to be folded, and of what is known of them."""

from __future__ import annotations

import heapq
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.folding.constraints import SIGNS, Molecule, Restraints, molecule_of
from plait.folding.folds import LONGEST, FoldSettings, Loop, check_memory, codes_checked, loops_of
from plait.folding.parameters import LETTERS, codes_of
from plait.formats.fasta import first_text, read_fasta, sequence_file_kind, shown_start
from plait.formats.files import ByteSource, check_readable, read_text

_Path = str | os.PathLike[str]
#: Bases of a block, and of one for GPUs, which work on thousands of sequences at a time.
_BLOCK_BASES, GPU_BLOCK_BASES = 1 << 13, 1 << 20
#: Of longer sequences a block has fewer, so that no thread is left with many: squares of their bases.
_BLOCK_SQUARES: Final = 1 << 20
_EXPECTED: Final = "FASTA, or a sequence a line; plain, gzip or zstd"
_REACTIVITIES: Final = "lines of a base and its reactivity"
_PIECE: Final = 1 << 20
#: Bytes of a file that is kept as it was looked through, in the file and in memory, and those of an object.
_HELD_BYTES, _OBJECT_BYTES = 1 << 25, 128
#: Memory that is told beforehand.
_MUCH: Final = 1 << 28


class Reactivities(NamedTuple):
    """Reactivities of a sequence by base, from 1 on, with the letter if given and the line."""

    line: int
    values: Mapping[int, tuple[str | None, float, int]]


def read_reactivities(path: str | os.PathLike[str]) -> dict[str | None, Reactivities]:
    """Reactivities by the name of their sequence; None where no line ``>name`` stands before them.

    Lines have a base from 1 on, maybe its letter, and a number or NA. FormatError if they have not.
    """
    found: dict[str | None, Reactivities] = {}
    values: dict[int, tuple[str | None, float, int]] = {}
    for number, line in enumerate(read_text(path, _REACTIVITIES).splitlines(), 1):
        words = line.split()
        if line.startswith(">"):
            name = line[1:].split()[0] if len(line.split()[0]) > 1 else ""
            if name in found or not name:
                raise FormatError(path, line=number, found=repr(line[:40]), expected="a name of its own")
            values = {}
            found[name] = Reactivities(number, values)
        elif words and not line.startswith("#"):
            if not found:
                found[None] = Reactivities(number, values)
            place, entry = _entry(path, number, words)
            if place in values:
                raise FormatError(path, line=number, found=f"base {place:,} again", expected="each base once")
            values[place] = entry
    if not found:
        raise FormatError(path, found="no reactivities", expected=_REACTIVITIES)
    return found


def _entry(path: object, number: int, words: list[str]) -> tuple[int, tuple[str | None, float, int]]:
    """A base, its letter if given, its reactivity and the line."""
    told = re.fullmatch(r"0*([1-9][0-9]{0,8})( \S(?= ))?( \S+)?", " ".join(words))
    value = (told[3] or " NA").strip() if told else ""
    try:
        reactivity = -1.0 if value.upper() in ("NA", "NAN") else float(value)
    except ValueError:
        reactivity = math.nan
    if told is None or not math.isfinite(reactivity):
        expected = "a base from 1 on, maybe its letter, and a reactivity or NA"
        raise FormatError(path, line=number, found=repr(" ".join(words)[:40]), expected=expected)
    return int(told[1]), (told[2] and told[2][1], reactivity, number)


def reactivities_of(path: object, told: Reactivities, codes: NDArray[np.int8]) -> NDArray[np.float64]:
    """Reactivities of all bases of a sequence, unknown ones -1; FormatError if they are not of it."""
    found = np.full(codes.size, -1.0)
    for place, (letter, value, line) in told.values.items():
        if place > codes.size:
            raise FormatError(
                path, line=line, found=f"base {place:,}", expected=f"at most {codes.size:,}, the sequence's"
            )
        base = LETTERS[codes[place - 1]]
        if letter is not None and codes_of(letter.encode("utf-8", "replace"))[0] != codes[place - 1]:
            raise FormatError(path, line=line, found=f"{letter!r} as base {place:,}", expected=repr(base))
        found[place - 1] = value
    return found


class Given(NamedTuple):
    """A constraint and where it stands."""

    text: str
    path: _Path
    line: int


class Records(NamedTuple):
    """Consecutive sequences: `names` without the header's sign, or None where there are no headers."""

    names: list[str] | None
    sequences: list[bytes]
    lines: list[int]
    bytes_read: int
    constraints: list[Given | None] | None = None

    def name(self, k: int) -> str | None:
        """The first word of a header."""
        return None if self.names is None else self.names[k].split()[0]

    def cut(self) -> Iterator[Records]:
        """The same in parts that take about as long as a block of short sequences."""
        step = max(1, _BLOCK_SQUARES // max([1, *map(len, self.sequences)]) ** 2)
        for at in range(0, len(self.sequences), step):
            part = slice(at, at + step)
            names, given = self.names and self.names[part], self.constraints and self.constraints[part]
            yield Records(names, self.sequences[part], self.lines[part], self.bytes_read, given)


@dataclass(frozen=True)
class Inputs:
    """Files of sequences, of constraints in their order, and of SHAPE reactivities.

    `constrained`: a constraint may stand below each sequence.
    """

    path: _Path
    constrained: bool = False
    constraints: _Path | None = None
    shape: _Path | None = None

    @property
    def paths(self) -> list[_Path]:
        """All files that are read."""
        return [path for path in (self.path, self.constraints, self.shape) if path is not None]

    @cached_property
    def reactivities(self) -> Mapping[str | None, Reactivities]:
        """Reactivities by the names of sequences."""
        return {} if self.shape is None else read_reactivities(self.shape)

    @cached_property
    def _held(self) -> list[Records]:
        """Blocks of a file that is small enough to be read once; else none."""
        held, left = [], _HELD_BYTES - check_readable(self.path).st_size
        for records in self._read(_BLOCK_BASES) if left >= 0 else ():
            # What is compressed may be many times as long as its file.
            left -= sum(map(len, records.sequences), len(records.sequences) * _OBJECT_BYTES)
            if left < 0:
                return []
            held.append(records)
        return held

    def records(self, block: int = _BLOCK_BASES) -> Iterator[Records]:
        """Sequences with their constraints, in blocks of bases; FormatError says what is wrong where."""
        return iter((block == _BLOCK_BASES and self._held) or self._read(block))

    def _read(self, block: int) -> Iterator[Records]:
        if self.constraints is None:
            for records in read_records(self.path, block, constrained=self.constrained):
                yield _with_constraints(records, self.path) if self.constrained else records
            return
        others = chain.from_iterable(
            zip(records.sequences, records.lines, strict=True) for records in read_records(self.constraints)
        )
        count = 0
        for records in read_records(self.path, block):
            found = list(islice(others, len(records.sequences)))
            count += len(found)
            if len(found) < len(records.sequences):
                raise self._not_as_many(count, "more")
            given: list[Given | None] = [
                Given(text.decode("utf-8", "replace"), self.constraints, line) for text, line in found
            ]
            yield records._replace(constraints=given)
        if next(others, None) is not None:
            raise self._not_as_many(count + 1, f"{count:,}")

    def _not_as_many(self, count: int, expected: str) -> FormatError:
        told = f"{count:,} constraint{'s' if count != 1 else ''}"
        return FormatError(
            self.constraints, found=told, expected=f"one a sequence of {self.path}, which has {expected}"
        )

    def molecule(self, records: Records, k: int, settings: FoldSettings) -> Molecule:
        """A sequence with what is known of it; FormatError if there is something wrong."""
        given = records.constraints[k] if records.constraints is not None else None
        try:
            codes = codes_checked(records.sequences[k], k + 1)
            values = self.reactivities_of(records.name(k), codes) if self.shape else None
            known = Restraints(given and given.text, values) if given or self.shape else None
            return molecule_of(codes, known, settings)
        except InvalidInput as wrong:
            of = "" if records.names is None else f" of {records.name(k)}"
            plain = not self.constrained and wrong.what.startswith("sequence")
            told = "; --constraint for constraints below" if plain and str(wrong.found)[1] in SIGNS else ""
            expected = f"{wrong.expected}{told}"
            raise self.unfit(records, k, f"{wrong.found}{of}", expected, wrong.what) from None

    def reactivities_of(self, name: str | None, codes: NDArray[np.int8]) -> NDArray[np.float64] | None:
        """Reactivities of a sequence, if there are any; FormatError if they are not of it."""
        told = self.reactivities.get(name) or self.reactivities.get(None)
        return None if told is None or self.shape is None else reactivities_of(self.shape, told, codes)

    def check_names(self, names: set[str | None], count: int) -> None:
        """FormatError if there are reactivities of none of so many sequences, or of no one knows which."""
        if None in self.reactivities and count > 1:
            expected = f"'>name' before them: {count:,} sequences"
            raise FormatError(self.shape, found="reactivities without a name", expected=expected)
        for name, told in self.reactivities.items():
            if name not in names and name is not None:
                expected = f"a sequence of {self.path}"
                raise FormatError(self.shape, line=told.line, found=repr(name), expected=expected)

    def unfit(
        self, records: Records, k: int, found: str, expected: str, what: str = "constraint"
    ) -> FormatError:
        """What is wrong with a constraint, or else with its sequence."""
        given = records.constraints[k] if records.constraints is not None and what == "constraint" else None
        path, line = (given.path, given.line) if given else (self.path, records.lines[k])
        return FormatError(path, line=line, found=found, expected=expected)


def _with_constraints(records: Records, path: _Path) -> Records:
    """Sequences apart from the constraints that stand below them."""
    sequences: list[bytes] = []
    given: list[Given | None] = []
    for text, line in zip(records.sequences, records.lines, strict=True):
        at = next((place for place, sign in enumerate(text) if chr(sign) in SIGNS), len(text))
        sequences.append(text[:at])
        given.append(Given(text[at:].decode("utf-8", "replace"), path, line) if at < len(text) else None)
    return records._replace(sequences=sequences, constraints=given)


def survey(
    inputs: Inputs, settings: FoldSettings, ensemble: bool, samples: int, threads: int
) -> tuple[int, str | None]:
    """Look through all that is to be folded, so that nothing is written if something is wrong with it.

    How many sequences there are, and what is said before a run that needs much memory. FormatError says what
    is wrong where; Unsupported if there is too little memory.
    """
    longest: list[int] = []
    count = bases = 0
    names: set[str | None] = set()
    for records in inputs.records():
        sizes = [inputs.molecule(records, k, settings).codes.size for k in range(len(records.sequences))]
        count, bases = count + len(sizes), bases + sum(sizes)
        longest = heapq.nlargest(threads, [*longest, *sizes])
        if inputs.shape is not None:
            names.update(records.name(k) for k in range(len(sizes)))
    inputs.check_names(names, count)
    bases = min(bases, sum(max(_BLOCK_BASES, size) for size in longest))
    need = check_memory(f"{inputs.path}: ", longest, ensemble or settings.enforce, samples, bases)
    told = f"up to {max(longest, default=0):,} bases: needs {need / 2**20:,.0f} MiB of memory"
    return count, told if need >= _MUCH else None


def read_records(
    path: _Path, block_bases: int = _BLOCK_BASES, *, constrained: bool = False
) -> Iterator[Records]:
    """Sequences of a file, FASTA or one a line, in blocks, each with what stands below it as a constraint.

    FormatError says what is wrong where.
    """
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        first, line = first_text(source, _PIECE, _EXPECTED)
        if not first:
            raise FormatError(path, found="no sequence, only blank lines", expected=_EXPECTED)
        if not first.startswith(b">"):
            shown_start(path, first, _EXPECTED)
            yield from _lines(path, source, first, line, constrained, block_bases)
            return
    for block in read_fasta(path, block_residues=block_bases):
        names = [f"{one} {told}".rstrip() for one, told in zip(block.names, block.descriptions, strict=True)]
        sequences = [block.sequence(k) for k in range(len(block))]
        yield Records(names, sequences, block.lines.tolist(), block.bytes_read)


def _lines(
    path: _Path, source: ByteSource, text: bytes, line: int, constrained: bool, block_bases: int
) -> Iterator[Records]:
    held, bases = text, 0
    block: list[bytes] = []
    lines: list[int] = []
    while held:
        piece = source.read(_PIECE)
        whole, _, rest = held.rpartition(b"\n") if piece else (held, b"", b"")
        for word in map(bytes.strip, whole.split(b"\n") if whole else []):
            if word and constrained and block and chr(word[0]) in SIGNS:
                block[-1] += word
            elif word:
                if bases >= block_bases:
                    yield Records(None, block, lines, source.bytes_read)
                    block, lines, bases = [], [], 0
                bases += len(word)
                block.append(word)
                lines.append(line)
            line += 1
        if len(rest) > LONGEST + _PIECE:
            expected = f"at most {LONGEST:,} bases"
            raise FormatError(path, line=line, found="a very long line", expected=expected)
        held = rest + piece
    if block:
        yield Records(None, block, lines, source.bytes_read)


def evaluated(inputs: Inputs, settings: FoldSettings) -> Iterator[tuple[str | None, str, str, list[Loop]]]:
    """Name, sequence, structure and loops of every record of a file as RNAfold writes them."""
    path = inputs.path
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        lines = b"".join(iter(lambda: source.read(_PIECE), b"")).decode("utf-8", "replace").splitlines()
    found: list[tuple[str | None, str, str, list[Loop]]] = []
    name, sequence = None, None
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            name, sequence = line[1:].strip(), None
        elif line.strip() and sequence is None:
            sequence = line.strip()
        elif line.strip() and sequence is not None:
            structure = line.split()[0]
            try:
                codes = codes_checked(sequence, name or len(found) + 1)
                values = inputs.reactivities_of(name.split()[0] if name else None, codes)
                one = molecule_of(codes, Restraints(reactivities=values), settings)
                loops = loops_of(one, structure, settings.model)
            except InvalidInput as wrong:
                raise FormatError(path, line=number, found=wrong.found, expected=wrong.expected) from None
            found.append((name, sequence, structure, loops))
            name, sequence = None, None
    if sequence is not None:
        found_last = "a sequence without a structure"
        raise FormatError(path, line=len(lines), found=found_last, expected="one below it")
    inputs.check_names({name.split()[0] for name, *_ in found if name}, len(found))
    yield from found
