"""What is searched for: sequences, reverse complements, translations, and position-specific scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import complement_codes
from plait.align.letters import (
    CODES,
    ILLEGAL_CODE,
    PAD_CODE,
    SAMPLE,
    SAY_KIND,
    Letters,
    Record,
    count_letters,
    count_sample,
    encode_residues,
    kind_of,
    letters_of,
)
from plait.align.profiles import Profile, is_profile, read_profile
from plait.align.scoring import Scoring, masked
from plait.align.settings import Kind, SearchSettings
from plait.align.sweeps import SearchQuery, matrix_columns, search_query
from plait.alphabets import reverse_complement, translate
from plait.dp.pairs.lists import FreeEnds
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import NameRegister
from plait.formats.fastq import read_sequences

T = TypeVar("T")

#: Sequences with names: pairs, a mapping, or records that have ``id`` and ``seq`` (Biopython's).
NamedSequences = Mapping[str, Letters] | Iterable[Any]
#: What is searched for: the path of a file of sequences or of a profile, sequences with names, or a profile.
Queries = str | os.PathLike[str] | NamedSequences | Record | Profile

#: Residues of the queries that are searched for at a time.
_BATCH_RESIDUES: Final = 1 << 24
_BLOCK_BYTES: Final = 1 << 22
_WORDS: Final[dict[Kind, str]] = {"protein": "proteins", "dna": "nucleotides"}
_LOWER: Final = bytes(range(ord("a"), ord("z") + 1))
#: Takes lower-case nucleotides for N.
_MASKED_BASES: Final = bytes.maketrans(_LOWER, b"n" * len(_LOWER))
_FRAMES: Final = (1, 2, 3, -1, -2, -3)


class _Read(NamedTuple):
    """A query as read: its name, its letters, and its codes, which nucleotides to be translated have not."""

    name: str
    letters: bytes
    codes: NDArray[np.uint8] | None


def named_sequences(sequences: NamedSequences | Record, what: str) -> Iterator[tuple[str, str | bytes]]:
    """Names and letters; `InvalidInput` if something else is among them."""
    given: Any = [sequences] if hasattr(sequences, "seq") else sequences
    pairs = given.items() if isinstance(given, Mapping) else given
    for number, item in enumerate(pairs, 1):
        pair: Any = item
        if hasattr(item, "seq"):
            pair = (getattr(item, "id", None) or getattr(item, "name", None), item.seq)
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            found = f"a {type(item).__name__} as number {number}"
            raise InvalidInput(what, found=found, expected="pairs of name and sequence, or records")
        yield pair[0], letters_of(pair[1], f"{what}, number {number}")


@dataclass(frozen=True, kw_only=True)
class QueryReader:
    """How queries are read for a search with `scoring` of a database of `kind`, with these settings."""

    scoring: Scoring
    kind: Kind
    free: FreeEnds
    settings: SearchSettings

    def batches(self, queries: Queries, most: int) -> Iterator[list[tuple[SearchQuery, ...]]]:
        """Queries in all their forms, `most` at a time; at least one list, maybe empty.

        Forms are the query and, if asked for, its reverse complement, or its translations. `InvalidInput` or,
        with file and line, `FormatError` if a letter is not in the matrix, the queries are of another kind,
        or a name comes twice and must not.
        """
        source: Any = queries
        of_file = isinstance(source, str | os.PathLike)
        profile = read_profile(source) if of_file and is_profile(source) else source
        forms: Iterable[tuple[SearchQuery, ...]]
        if isinstance(profile, Profile):
            forms = [self._of_profile(profile)]
        else:
            read = self._of_file(source) if of_file else self._in_memory(source)
            forms = map(self._forms(), read)
        batches = groups(forms, lambda own: own[0].codes.size, most, _BATCH_RESIDUES)
        yield next(batches, [])
        yield from batches

    @property
    def _given(self) -> Kind:
        """What the letters of queries are."""
        return "dna" if self.settings.translate else self.kind

    @property
    def _sure(self) -> bool:
        """Whether queries are what they have to be even if they do not look like it."""
        return self.settings.kind is not None

    def _forms(self) -> Callable[[_Read], tuple[SearchQuery, ...]]:
        columns = matrix_columns(self.scoring, self.kind)

        def one(name: str, letters: bytes, codes: NDArray[np.uint8], **more: Any) -> SearchQuery:
            return search_query(name, letters, codes, self.scoring, columns, self.free, **more)

        def frames(query: _Read) -> tuple[SearchQuery, ...]:
            text = query.letters.translate(_MASKED_BASES if self.settings.mask_lower_case else None).decode()
            strands = text, reverse_complement(text)
            found = []
            for frame in _FRAMES:
                amino_acids = translate(strands[frame < 0], abs(frame) - 1).encode()
                codes = self.scoring.encode(amino_acids, f"a translation of {query.name!r}")
                found.append(one(query.name, amino_acids, codes, frame=frame, residues=len(text)))
            return tuple(found)

        if self.settings.translate:
            return frames
        complements = complement_codes(self.scoring) if self.settings.strand == "both" else None

        def strands(query: _Read) -> tuple[SearchQuery, ...]:
            assert query.codes is not None
            own = one(query.name, query.letters, query.codes)
            if complements is None:
                return (own,)
            letters = reverse_complement(query.letters.decode("latin-1")).encode()
            return own, one(query.name, letters, np.ascontiguousarray(complements[query.codes[::-1]]))

        return strands

    def _of_profile(self, profile: Profile) -> tuple[SearchQuery, ...]:
        """A profile as a query whose every position has a code of its own."""
        if self.kind != "protein" or self.settings.translate or self.settings.strand == "both":
            asked = "nucleotides" if self.kind != "protein" else "other strands or frames"
            raise InvalidInput("profile", found=f"a search of {asked}", expected="a search of proteins")
        if self.settings.hits_per_target > 1 or self.settings.composition:
            what = "composition" if self.settings.composition else "hits_per_target"
            raise InvalidInput(what, found="a profile", expected="sequences as queries")
        scores = profile.scores_for(self.scoring.matrix)
        columns = matrix_columns(self.scoring, self.kind)
        codes = self.scoring.encode(profile.consensus, "the consensus of the profile")
        own: dict[str, Any] = {"profile": scores, "k": profile.k}
        return (
            search_query(profile.name, profile.consensus, codes, self.scoring, columns, self.free, **own),
        )

    @property
    def _encoding(self) -> Scoring:
        return masked(self.scoring) if self.settings.mask_lower_case else self.scoring

    def _of_file(self, path: str | os.PathLike[str]) -> Iterator[_Read]:
        names = None if self.settings.allow_duplicate_names else NameRegister()
        if not self._sure and _is_other(count_sample(path), self._given):
            found, expected, hint = self._other_kind()
            raise FormatError(path, found=found, expected=expected, hint=hint)
        encoding = self._encoding
        for sequences in read_sequences(path, block_residues=_BLOCK_BYTES):
            codes = None
            if self.settings.translate:
                encode_residues(path, sequences, "dna")
            else:
                codes = encoding.encode_records(path, sequences)
            for duplicate in names.add(path, sequences) if names else ():
                raise duplicate.error("give it another name, or allow duplicate names")
            for k, name in enumerate(sequences.names):
                own = None if codes is None else codes[sequences.offsets[k] : sequences.offsets[k + 1]]
                yield _Read(name, sequences.sequence(k), own)

    def _in_memory(self, queries: NamedSequences | Record) -> Iterator[_Read]:
        known: set[str] = set()
        encoding = self._encoding
        for number, (name, sequence, letters) in enumerate(self._looked_at(queries)):
            if name in known and not self.settings.allow_duplicate_names:
                raise InvalidInput(
                    "queries",
                    found=f"a second query named {name!r}, number {number + 1}",
                    expected="a name of its own for every query",
                    hint="give it another name, or allow duplicate names",
                )
            known.add(name)
            if self.settings.translate:
                check_letters(letters, "dna", f"query {name!r}")
                yield _Read(name, letters, None)
            else:
                yield _Read(name, letters, encoding.encode(sequence, f"query {name!r}"))

    def _looked_at(self, queries: NamedSequences | Record) -> Iterator[tuple[str, str | bytes, bytes]]:
        """Queries with their letters as bytes; `SAMPLE` letters are looked at before any is told."""
        ahead: list[tuple[str, str | bytes, bytes]] = []
        sure, size = self._sure, 0
        for name, sequence in named_sequences(queries, "queries"):
            letters = sequence.encode("ascii", "replace") if isinstance(sequence, str) else bytes(sequence)
            ahead.append((name, sequence, letters))
            size += len(letters)
            if not sure and size >= SAMPLE:
                self._look_at(ahead)
                sure = True
            if sure:
                yield from ahead
                ahead.clear()
        if not sure:
            self._look_at(ahead)
        yield from ahead

    def _look_at(self, queries: Sequence[tuple[str, str | bytes, bytes]]) -> None:
        """Refuse queries that look like another kind."""
        letters = np.frombuffer(b"".join(own for _, _, own in queries), np.uint8)
        if _is_other(count_letters(letters), self._given):
            found, expected, hint = self._other_kind()
            raise InvalidInput("queries", found=found, expected=expected, hint=hint)

    def _other_kind(self) -> tuple[str, str, str]:
        """What to say of queries of another kind than is wanted: found, expected, hint."""
        looks: Kind = "protein" if self._given == "dna" else "dna"
        found = f"queries that look like {_WORDS[looks]}"
        if self.settings.translate:
            return found, "nucleotides, to be translated", "leave --translate (translate=) out for proteins"
        return found, f"{_WORDS[self.kind]}, as in the database", f"if they are, {SAY_KIND}"


def check_letters(letters: bytes, kind: Kind, what: str) -> bytes:
    """The codes of letters in databases; `InvalidInput` if one is none of the kind's."""
    codes = letters.translate(CODES[kind])
    # What stands for the end of a sequence is no letter of one.
    wrong = [at for code in (ILLEGAL_CODE, PAD_CODE) if (at := codes.find(code)) >= 0]
    if wrong:
        at = min(wrong)
        found = f"{chr(letters[at])!r} at position {at + 1}"
        raise InvalidInput(what, found=found, expected=f"letters of {_WORDS[kind]}")
    return codes


def _is_other(counts: NDArray[np.int64], kind: Kind) -> bool:
    """Whether letters say that queries are not of a kind; what is open they may be."""
    return kind_of(counts) not in (kind, None)


def groups(items: Iterable[T], size: Callable[[T], int], most: int, most_size: int) -> Iterator[list[T]]:
    """Items in order, up to `most` and a size of `most_size` at a time, or one."""
    group: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        if group and (total + own > most_size or len(group) == most):
            yield group
            group, total = [], 0
        group.append(item)
        total += own
    if group:
        yield group
