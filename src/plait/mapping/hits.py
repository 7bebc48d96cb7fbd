"""Hits as columns: where patterns occur, with which errors; strings of them are made when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER
from plait.dp.bitparallel.paths import EXTRA, MATCH, MISMATCH, MISSING
from plait.lang.compile import kernel
from plait.mapping.alignments import write_number
from plait.mapping.patterns import Pattern
from plait.types import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

#: Stands for no operation behind those of a hit.
NOTHING: Final = 255
#: A start that is not known.
UNKNOWN: Final = -(1 << 62)
_CIGAR: Final = {MATCH: "=", MISMATCH: "X", EXTRA: "D", MISSING: "I"}


@dataclass(frozen=True, slots=True, eq=False)
class HitRows:
    """Columns of hits, one entry each: numbers of pattern and sequence; 0-based and half-open places.

    `strand` is 1 where the reverse complement of the pattern was found. `start` is `UNKNOWN` where only ends
    are asked for. `extra` letters of the text are DNA bulges, `missing` ones RNA bulges. `letters` uint8
    (hits, enough) are bytes of the text that are aligned, `steps` uint8 (hits, enough) operations along it.
    `pams` uint8 (hits, letters) are those of PAMs as in the text.
    """

    pattern: NDArray[np.int64]
    sequence: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    strand: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    extra: NDArray[np.int64]
    missing: NDArray[np.int64]
    letters: NDArray[np.uint8]
    steps: NDArray[np.uint8]
    pams: NDArray[np.uint8]

    def __len__(self) -> int:
        return int(self.pattern.size)

    @property
    def distance(self) -> NDArray[np.int64]:
        """Errors of all kinds."""
        return self.mismatches + self.extra + self.missing

    def taken(self, which: Any) -> HitRows:
        """Some of the rows, by number or by a mask."""
        return HitRows(*(getattr(self, field.name)[which] for field in fields(self)))

    def in_order(self) -> HitRows:
        """By sequence, start, end, strand and pattern."""
        keys = (self.pattern, self.strand, self.end, self.start, self.sequence)
        return self.taken(np.lexsort(keys))


def joined(parts: Sequence[HitRows]) -> HitRows:
    """Rows of several parts, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for field in fields(HitRows):
        own = [getattr(part, field.name) for part in parts]
        if own and own[0].ndim == 2:
            width = max(column.shape[1] for column in own)
            fill = NOTHING if field.name == "steps" else 0
            own = [
                np.pad(column, ((0, 0), (0, width - column.shape[1])), constant_values=fill) for column in own
            ]
        columns.append(np.concatenate(own))
    return HitRows(*columns)


def ranks(pattern: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many hits of its pattern come before each one; `before` (patterns,) were earlier, and grows."""
    order = np.argsort(pattern, kind="stable")
    found = np.empty(pattern.size, np.int64)
    found[order] = np.arange(pattern.size) - np.searchsorted(pattern[order], pattern[order])
    found += before[pattern]
    np.add.at(before, pattern, 1)
    return found


def no_hits() -> HitRows:
    """No rows."""
    none, table = np.zeros(0, np.int64), np.zeros((0, 0), np.uint8)
    return HitRows(none, none, none, none, none, none, none, none, table, table, table)


@kernel
def bam_alignments_kernel(
    steps: Any, letters: Any, operations: Any, runs: Any, counts: Any, differences: Any, sizes: Any
) -> None:
    """Alignments as BAM has them: runs of `operations`, int64 (hits, most), and the text of the tag MD.

    `letters` uint8 (hits, enough) are those of the text that are aligned; `counts` and `sizes` int64 (hits,)
    say how much of `runs` and of `differences` uint8 (hits, enough) is used.
    """
    for hit in range(counts.size):
        count = at = same = place = 0
        before = NOTHING
        for k in range(steps.shape[1]):
            step = steps[hit, k]
            if step == NOTHING:
                break
            if step != before:
                runs[hit, count] = operations[step]
                count += 1
            runs[hit, count - 1] += 16
            if step == MATCH:
                same += 1
            elif step != MISSING:
                if step == MISMATCH or before != EXTRA:
                    at = write_number(differences, hit, at, same)
                    same = 0
                    if step == EXTRA:
                        differences[hit, at] = 94
                        at += 1
                differences[hit, at] = letters[hit, place] & 0xDF
                at += 1
            if step != MISSING:
                place += 1
            before = step
        counts[hit] = count
        sizes[hit] = write_number(differences, hit, at, same)


def aligned_places(rows: HitRows, pam_side: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the aligned letters of hits begin and end: without their PAMs, int64."""
    sizes = (rows.pams != 0).sum(axis=1)
    first = (rows.strand == 0) == (pam_side == 5)
    return rows.start + np.where(first, sizes, 0), rows.end - np.where(first, 0, sizes)


def _texts(table: NDArray[np.uint8]) -> list[str]:
    if not table.shape[1]:
        return [""] * table.shape[0]
    return [text.rstrip(b"\0").decode("latin-1") for text in _bytes(table)]


def _bytes(table: NDArray[np.uint8]) -> list[bytes]:
    """Rows as bytes; there are columns."""
    return list(np.ascontiguousarray(table).view(f"V{table.shape[1]}").ravel().tolist())


def _oriented(table: NDArray[np.uint8], lengths: NDArray[np.int64], strand: NDArray[np.int64]) -> Any:
    """Rows in the direction of the pattern: reverse complements of those of the other strand."""
    columns = np.arange(table.shape[1])
    places = np.where(strand[:, None] == 1, lengths[:, None] - 1 - columns, columns)
    turned = np.take_along_axis(table, np.clip(places, 0, None), axis=1) if table.shape[1] else table
    upper = COMPLEMENT_LETTER[turned]
    complement = np.where(upper == ord("?"), turned, upper | (turned & 32))
    complement = np.where((turned == ord("-")) | (turned == 0), turned, complement)
    return np.where(
        columns < lengths[:, None], np.where(strand[:, None] == 1, complement, turned), np.uint8(0)
    )


def targets(rows: HitRows) -> list[str]:
    """The text at every hit along the pattern, mismatches in lower case, - for missing letters."""
    steps = rows.steps
    from_text = (steps == MATCH) | (steps == MISMATCH) | (steps == EXTRA)
    if not steps.shape[1]:
        return [""] * len(rows)
    places = np.clip(np.cumsum(from_text, axis=1) - 1, 0, max(rows.letters.shape[1] - 1, 0))
    letters = np.take_along_axis(rows.letters, places, axis=1)
    letters = np.where(steps == MISMATCH, letters | 32, letters & 0xDF)
    letters = np.where(from_text, letters, np.where(steps == MISSING, np.uint8(ord("-")), np.uint8(0)))
    return _texts(_oriented(letters.astype(np.uint8), (steps != NOTHING).sum(axis=1), rows.strand))


def queries(rows: HitRows, patterns: Sequence[Pattern]) -> list[str]:
    """The pattern at every hit, with - for extra letters of the text."""
    if not rows.steps.shape[1]:
        return [patterns[g].sequence for g in rows.pattern.tolist()]
    lengths = (rows.steps != NOTHING).sum(axis=1)
    columns = np.arange(rows.steps.shape[1])
    places = np.where(rows.strand[:, None] == 1, lengths[:, None] - 1 - columns, columns)
    steps = np.take_along_axis(rows.steps, np.clip(places, 0, None), axis=1)
    inside = columns < lengths[:, None]
    used = inside & (steps != EXTRA)
    table = np.zeros((len(patterns), max(len(p.sequence) for p in patterns)), np.uint8)
    for row, pattern in zip(table, patterns, strict=True):
        row[: len(pattern.sequence)] = np.frombuffer(pattern.sequence.upper().encode(), np.uint8)
    at = np.clip(np.cumsum(used, axis=1) - 1, 0, table.shape[1] - 1)
    letters = np.take_along_axis(table[rows.pattern], at, axis=1)
    return _texts(np.where(used, letters, np.where(inside, np.uint8(ord("-")), np.uint8(0))).astype(np.uint8))


@lru_cache(maxsize=1 << 14)
def _cigar(steps: bytes) -> str:
    own = steps.rstrip(bytes([NOTHING]))
    return "".join(f"{len(list(run))}{_CIGAR[step]}" for step, run in groupby(own))


def cigars(rows: HitRows) -> list[str]:
    """CIGAR of every hit along the text, with = and X; D for an extra letter of it, I for a missing one."""
    if not rows.steps.size:
        return [""] * len(rows)
    return [_cigar(steps) for steps in _bytes(rows.steps)]


def pam_texts(rows: HitRows) -> list[str]:
    """Letters of the PAMs in the direction of the pattern."""
    lengths = (rows.pams != 0).sum(axis=1)
    return _texts(_oriented(rows.pams, lengths, rows.strand)) if rows.pams.shape[1] else [""] * len(rows)


#: Columns of tables of hits, and how each is made of rows, patterns and names of sequences.
COLUMNS: Final = (
    "pattern_name",
    "pattern",
    "sequence_name",
    "start",
    "end",
    "strand",
    "distance",
    "mismatches",
    "dna_bulges",
    "rna_bulges",
    "cigar",
    "target",
    "pam",
)


def hit_table(rows: HitRows, patterns: Sequence[Pattern], names: Sequence[str]) -> pa.RecordBatch:
    """Rows as a table with `COLUMNS`."""
    import pyarrow as pa

    known = rows.steps.shape[1] > 0
    none = [None] * len(rows)
    unknown = rows.start == UNKNOWN

    def words(values: Sequence[str], numbers: NDArray[np.int64]) -> Any:
        kept = pa.array(values, pa.string())
        return kept.take(pa.array(numbers)) if len(rows) else pa.array([], pa.string())

    def whole(values: NDArray[np.int64], *, partial: bool = False) -> Any:
        return pa.array(values, pa.int64(), mask=unknown if partial else None)

    columns = [
        words([pattern.name for pattern in patterns], rows.pattern),
        words([pattern.sequence for pattern in patterns], rows.pattern),
        words(names, rows.sequence),
        whole(rows.start, partial=True),
        whole(rows.end),
        words(["+", "-"], rows.strand),
        whole(rows.distance),
        whole(rows.mismatches, partial=True),
        whole(rows.extra, partial=True),
        whole(rows.missing, partial=True),
        pa.array(cigars(rows) if known else none, pa.string()),
        pa.array(targets(rows) if known else none, pa.string()),
        pa.array(pam_texts(rows), pa.string()),
    ]
    return pa.record_batch(columns, names=list(COLUMNS))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hits(Tabular):
    """All hits of patterns in texts, and what became of each pattern.

    `to_arrow` has the columns pattern_name, pattern, sequence_name, start, end (0-based, half-open), strand,
    distance, mismatches, dna_bulges, rna_bulges, cigar, target and pam.

    Attributes
    ----------
    patterns
        What was looked for.
    statuses
        Of each pattern: ``ok``, ``too_short``, ``too_long``, ``errors_too_many`` or ``too_many_hits``.
    names, lengths
        The sequences of the texts, and their letters.
    rows
        The hits, in the order of the texts.
    by_distance
        Numbers of hits by pattern and distance, those that are not in `rows` included. Shape (patterns,
        errors + 1).
    """

    patterns: tuple[Pattern, ...]
    statuses: tuple[str, ...]
    names: tuple[str, ...]
    lengths: tuple[int, ...]
    rows: HitRows
    by_distance: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> Any:
        """A column of `to_arrow`, as an array or a list."""
        if name.startswith("_") or name not in COLUMNS:
            raise AttributeError(name)
        if name in ("start", "end", "distance", "mismatches"):
            return getattr(self.rows, name)
        return self.to_arrow().column(name).to_pylist()

    def _table(self, rows: int | None) -> pa.Table:
        import pyarrow as pa

        some = self.rows if rows is None else self.rows.taken(slice(rows))
        return pa.Table.from_batches([hit_table(some, self.patterns, self.names)])

    def counts(self) -> dict[str, list[int]]:
        """Numbers of hits of each pattern, by its name, at distance 0, 1, and so on."""
        return {p.name: row.tolist() for p, row in zip(self.patterns, self.by_distance, strict=True)}
