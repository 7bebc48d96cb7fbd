"""Queries of a search, checked and encoded, as many at a time as fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Letters
from plait.align.residues import CODES, ILLEGAL_CODE, Kind, guess_kind
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
    for sequences in read_fasta(path, block_residues=_BLOCK_BYTES):
        problem = None if sure else _other_kind(sequences.letters, kind)
        if problem:
            found, expected, hint = problem
            raise FormatError(path, found=found, expected=expected, hint=hint)
        sure = True
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
    for number, (name, sequence) in enumerate(queries):
        letters = sequence.encode("ascii", "replace") if isinstance(sequence, str) else bytes(sequence)
        problem = None if sure or not letters else _other_kind(np.frombuffer(letters, np.uint8), kind)
        if problem:
            found, expected, hint = problem
            raise InvalidInput("queries", found=found, expected=expected, hint=hint)
        sure = sure or bool(letters)
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


def _other_kind(letters: NDArray[np.uint8], kind: Kind) -> tuple[str, str, str] | None:
    """What is wrong if queries look like something else than the database: found, expected, hint."""
    looks = guess_kind(letters)
    if not letters.size or looks == kind:
        return None
    if kind == "dna":
        # Many ambiguous letters look like a protein; a protein has letters that nucleotides lack.
        codes = np.frombuffer(letters.tobytes().translate(CODES[kind]), np.uint8)
        if codes.max() != ILLEGAL_CODE:
            return None
    return (
        f"queries that look like {_WORDS[looks]}",
        f"{_WORDS[kind]}, as in the database",
        f"if they are, say so: kind {kind!r}",
    )
