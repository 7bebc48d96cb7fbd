"""Queries of a search, checked and encoded, as many at a time as fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Letters
from plait.align.residues import SAMPLE, SAY_KIND, Kind, count_letters, count_sample, kind_of
from plait.align.scoring import Scoring
from plait.align.search_sources import matrix_columns
from plait.align.sweeps import SearchQuery, search_query
from plait.errors import FormatError, InvalidInput
from plait.formats.duplicate_names import NameRegister
from plait.formats.fasta import read_fasta

__all__ = ["Queries", "query_batches"]

#: What is searched for: the path of a FASTA file, or names and sequences.
Queries = str | os.PathLike[str] | Iterable[tuple[str, Letters]]

#: Residues of the queries that are searched for at a time.
_BATCH_RESIDUES: Final = 1 << 24
_BLOCK_BYTES: Final = 1 << 22
_WORDS: Final[dict[Kind, str]] = {"protein": "proteins", "dna": "nucleotides"}


def query_batches(
    queries: Queries,
    scoring: Scoring,
    *,
    kind: Kind,
    sure: bool,
    most: int,
    allow_duplicate_names: bool,
) -> Iterator[list[SearchQuery]]:
    """Queries, some at a time; at least one list, which may be empty.

    Parameters
    ----------
    queries
        The path of a FASTA file, or names and sequences.
    scoring
        Of which they must have the letters.
    kind
        What they must be.
    sure
        Whether they are that, even if they do not look like it.
    most
        How many at a time.
    allow_duplicate_names
        Whether several may have one name.

    Raises
    ------
    InvalidInput, FormatError
        If a letter is not in the matrix, the queries are of the other kind, or a name comes twice. Errors in
        a file name it and the line.
    """
    if isinstance(queries, str | os.PathLike):
        single = _of_file(queries, scoring, kind, sure, allow_duplicate_names)
    else:
        single = _in_memory(queries, scoring, kind, sure, allow_duplicate_names)
    batch: list[SearchQuery] = []
    size, batches = 0, 0
    for query in single:
        if batch and (len(batch) == most or size + query.codes.size > _BATCH_RESIDUES):
            yield batch
            batches += 1
            batch, size = [], 0
        batch.append(query)
        size += query.codes.size
    if batch or not batches:
        yield batch


def _of_file(
    path: str | os.PathLike[str], scoring: Scoring, kind: Kind, sure: bool, duplicates: bool
) -> Iterator[SearchQuery]:
    columns = matrix_columns(scoring, kind)
    names = None if duplicates else NameRegister()
    if not sure and _is_other(count_sample(path), kind):
        found, expected, hint = _other_kind(kind)
        raise FormatError(path, found=found, expected=expected, hint=hint)
    for sequences in read_fasta(path, block_residues=_BLOCK_BYTES):
        codes = scoring.encode_letters(
            sequences.letters,
            offsets=sequences.offsets,
            names=sequences.names,
            path=path,
            lines=sequences.lines,
        )
        for duplicate in names.add(path, sequences) if names else ():
            raise duplicate.error("give it another name, or allow duplicate names")
        for k, name in enumerate(sequences.names):
            own = codes[sequences.offsets[k] : sequences.offsets[k + 1]]
            yield search_query(name, sequences.sequence(k), own, scoring, columns)


def _in_memory(
    queries: Iterable[tuple[str, Letters]], scoring: Scoring, kind: Kind, sure: bool, duplicates: bool
) -> Iterator[SearchQuery]:
    columns = matrix_columns(scoring, kind)
    known: set[str] = set()
    for number, (name, sequence, letters) in enumerate(_looked_at(queries, kind, sure)):
        if name in known and not duplicates:
            raise InvalidInput(
                "queries",
                found=f"a second query named {name!r}, number {number + 1}",
                expected="a name of its own for every query",
                hint="give it another name, or allow duplicate names",
            )
        known.add(name)
        codes = scoring.encode(sequence, f"query {name!r}")
        yield search_query(name, letters, codes, scoring, columns)


def _looked_at(
    queries: Iterable[tuple[str, Letters]], kind: Kind, sure: bool
) -> Iterator[tuple[str, Letters, bytes]]:
    """Queries with their letters as bytes; the first `SAMPLE` letters are looked at before any is told."""
    ahead: list[tuple[str, Letters, bytes]] = []
    counts, looking = np.zeros(256, np.int64), not sure
    for name, sequence in queries:
        letters = sequence.encode("ascii", "replace") if isinstance(sequence, str) else bytes(sequence)
        ahead.append((name, sequence, letters))
        if looking:
            counts += count_letters(np.frombuffer(letters, np.uint8))
            looking = counts.sum() < SAMPLE
        if not looking:
            if not sure and _is_other(counts, kind):
                break
            yield from ahead
            ahead.clear()
            sure = True
    if not sure and _is_other(counts, kind):
        found, expected, hint = _other_kind(kind)
        raise InvalidInput("queries", found=found, expected=expected, hint=hint)
    yield from ahead


def _is_other(counts: NDArray[np.int64], kind: Kind) -> bool:
    """Whether letters say that queries are not what the database is; what is open they may be."""
    return kind_of(counts) not in (kind, None)


def _other_kind(kind: Kind) -> tuple[str, str, str]:
    """What to say of queries of another kind than the database: found, expected, hint."""
    looks: Kind = "protein" if kind == "dna" else "dna"
    return (
        f"queries that look like {_WORDS[looks]}",
        f"{_WORDS[kind]}, as in the database",
        f"if they are, {SAY_KIND}",
    )
