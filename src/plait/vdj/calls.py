"""From columns of junctions and of V and J calls to what is counted, with a reason where that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK
from plait.dp.chain.tables import Junctions
from plait.errors import InvalidInput
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.allele import split_call

#: Every value of the status column. All but the first are reasons for having no counts.
STATUSES = (
    "ok",
    "missing_junction",
    "invalid_symbol",
    "too_short",
    "too_long",
    "missing_v_call",
    "unknown_v_call",
    "ambiguous_v_call",
    "no_v_anchor",
    "missing_j_call",
    "unknown_j_call",
    "ambiguous_j_call",
    "no_j_anchor",
    "count_overflow",
)
#: Every one of them in plain words.
STATUS_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "ok": "counted",
        "missing_junction": "the junction is empty",
        "invalid_symbol": "the junction holds something that is no nucleotide code",
        "too_short": "the junction cannot hold both conserved codons",
        "too_long": "the junction is a whole read, or more",
        "missing_v_call": "the V call is empty",
        "unknown_v_call": "the germline set has no such V gene or allele",
        "ambiguous_v_call": "the V call is a list (--ambiguous fail)",
        "no_v_anchor": "the conserved Cys of this V allele is not known",
        "missing_j_call": "the J call is empty",
        "unknown_j_call": "the germline set has no such J gene or allele",
        "ambiguous_j_call": "the J call is a list (--ambiguous fail)",
        "no_j_anchor": "the conserved Phe or Trp of this J allele is not known",
        "count_overflow": "the count does not fit; see --overflow",
    }
)

Ambiguity = Literal["first", "all", "fail"]
AMBIGUITY_POLICIES: tuple[Ambiguity, ...] = ("first", "all", "fail")


def first_name(call: str | None) -> str:
    """The first name in a call, as it is written, without score.

    >>> first_name("TRBV12-3*01(346), TRBV12-4*01")
    'TRBV12-3*01'
    """
    names = split_call(call or "")
    return names[0] if names else ""


def first_gene(call: str | None) -> str:
    """The first gene of a call, as it is written, without allele and score.

    >>> first_gene("TRBV12-3*01(346), TRBV12-4*01")
    'TRBV12-3'
    """
    return first_name(call).partition("*")[0]


class CallResolver:
    """Resolves the calls of one segment; every distinct call text is looked up once.

    `policy` says what a list of several alleles means: its ``"first"`` one, ``"all"`` of them, or ``"fail"``.
    A gene name is not a list: it means the gene's allele with the lowest number.
    """

    def __init__(self, germline: GermlineSet, segment: Literal["V", "J"], policy: Ambiguity) -> None:
        if policy not in AMBIGUITY_POLICIES:
            raise InvalidInput(
                "ambiguous", found=repr(policy), expected="one of " + ", ".join(AMBIGUITY_POLICIES)
            )
        self._germline = germline
        self._segment: Literal["V", "J"] = segment
        self._policy = policy
        self._known: dict[str | None, tuple[str, tuple[int, ...]]] = {}

    def resolve(self, calls: pa.Array) -> tuple[NDArray[np.int64], list[tuple[str, tuple[int, ...]]]]:
        """For each row, int64 (n,), which of the found it is; and the found, as (reason, allele indices).

        A found one has reason ``""`` and one or more alleles, or a reason and no allele.
        """
        encoded = pc.dictionary_encode(calls, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, [self._look_up(text) for text in encoded.dictionary.to_pylist()]

    def _look_up(self, text: str | None) -> tuple[str, tuple[int, ...]]:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._decide(text)
        return found

    def _decide(self, text: str | None) -> tuple[str, tuple[int, ...]]:
        name = self._segment.lower()
        if text is None or not text.strip():
            return f"missing_{name}_call", ()
        named = self._germline.resolve_all(text, self._segment)
        if len(set(named)) > 1 and self._policy == "fail":
            return f"ambiguous_{name}_call", ()
        kept = named[:1] if self._policy == "first" else named
        alleles = tuple(dict.fromkeys(index for index in kept if index is not None))
        if len(alleles) < len(set(kept)) or not kept:
            return f"unknown_{name}_call", ()
        if any(self._germline.alleles(self._segment)[index].anchor is None for index in alleles):
            return f"no_{name}_anchor", ()
        return "", alleles


#: A junction holds at least the two conserved codons.
SHORTEST_JUNCTION = 6
#: Far beyond any real junction; longer text is a whole read in the wrong column.
LONGEST_JUNCTION = 1000


class EncodedJunctions(NamedTuple):
    """A column of n junctions.

    `symbols`, uint8: masks of all junctions, in which `start` and `length`, int64 (n,), place each. `status`,
    uint8 (n,): index into `plait.vdj.calls.STATUSES`; 0 where the junction can be counted.
    """

    symbols: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    status: NDArray[np.uint8]


def encode_junctions(junctions: pa.Array) -> EncodedJunctions:
    """Encode a string array of nucleotides, from the Cys to the Phe/Trp codon, in any case.

    Spaces around a junction do not occur in any known format and are invalid.
    """
    return encode_column(junctions, IUPAC_MASK, 0, SHORTEST_JUNCTION, LONGEST_JUNCTION)


def encode_column(
    junctions: pa.Array, code: NDArray[np.uint8], invalid: int, shortest: int, longest: int
) -> EncodedJunctions:
    """Encode a string array by the `code` (256,) of each byte, which is `invalid` for those that are."""
    raw, start, length = text_bytes(junctions)
    symbols = code[raw]
    wrong = np.flatnonzero(symbols == invalid)
    status = np.zeros(length.size, np.uint8)
    if wrong.size:
        status[np.searchsorted(start, wrong, side="right") - 1] = STATUSES.index("invalid_symbol")
    return EncodedJunctions(symbols, start, length, length_statuses(status, length, shortest, longest))


def as_column(values: Any, name: str = "junctions") -> pa.Array:
    """Junctions, or an Arrow array of them, as one array of texts; those of pandas that are missing are null.

    InvalidInput, which calls them `name`, if it is one text alone, or something else.
    """
    if isinstance(values, str | bytes):
        raise InvalidInput(name, found="one text", expected="a sequence of texts")
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            return pa.array(list(values), pa.large_string(), from_pandas=True)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            raise InvalidInput(name, found=f"values of type {values.type}", expected="texts")
        return values.cast(pa.large_string())
    except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(name, found=f"{type(values).__name__}: {error}", expected="texts") from error


def text_bytes(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of n texts, of which null is none, with the start and the length of each, (n,)."""
    texts = column.cast(pa.large_string()).fill_null("")
    n = len(texts)
    _, ends, data = texts.buffers()
    if not n or data is None:
        return np.zeros(0, np.uint8), np.zeros(n, np.int64), np.zeros(n, np.int64)
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + n + 1]
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return raw, offsets[:-1] - offsets[0], np.diff(offsets)


def length_statuses(
    status: NDArray[np.uint8], length: NDArray[np.int64], shortest: int, longest: int
) -> NDArray[np.uint8]:
    """Statuses with those of junctions that are too short, too long or missing."""
    undecided = status == 0
    status[undecided & (length < shortest)] = STATUSES.index("too_short")
    status[undecided & (length > longest)] = STATUSES.index("too_long")
    status[length == 0] = STATUSES.index("missing_junction")
    return status


class Items(NamedTuple):
    """What to count, and where it goes.

    A row that cannot be counted has one empty item among the m `texts`, so that rows need no spreading out.
    `first`, int64 (n,): first item of each row; a row's items follow each other. `status`, uint8 (n,), is
    that of every row.
    """

    texts: Junctions
    first: NDArray[np.int64]
    status: NDArray[np.uint8]


def make_items(
    junctions: pa.Array, v: CallResolver, v_call: pa.Array, j: CallResolver, j_call: pa.Array
) -> Items:
    """Items of a batch of rows."""
    encoded = encode_junctions(junctions)
    status = encoded.status.copy()
    v_codes, v_found = v.resolve(v_call)
    j_codes, j_found = j.resolve(j_call)
    for codes, found in ((v_codes, v_found), (j_codes, j_found)):
        reasons = np.array([STATUSES.index(reason) if reason else 0 for reason, _ in found], np.uint8)
        undecided = status == 0
        status[undecided] = reasons[codes[undecided]]
    bad = status != 0
    v_count = np.array([len(alleles) for _, alleles in v_found], np.int64)[v_codes]
    j_count = np.array([len(alleles) for _, alleles in j_found], np.int64)[j_codes]
    pairs = np.where(bad, 1, v_count * j_count)
    first = np.cumsum(pairs) - pairs
    row = np.repeat(np.arange(status.size), pairs)
    v_rank, j_rank = np.divmod(np.arange(row.size) - first[row], np.maximum(j_count[row], 1))
    texts = Junctions(
        symbols=encoded.symbols,
        start=encoded.start[row],
        length=np.where(bad[row], 0, encoded.length[row]),
        v=np.where(bad[row], 0, _nth(v_found, v_codes[row], v_rank)),
        j=np.where(bad[row], 0, _nth(j_found, j_codes[row], j_rank)),
    )
    return Items(texts, first, status)


def _nth(
    found: list[tuple[str, tuple[int, ...]]], codes: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The allele of the given rank in each call."""
    width = max((len(alleles) for _, alleles in found), default=0)
    table = np.zeros((max(len(found), 1), max(width, 1)), np.int64)
    for row, (_, alleles) in zip(table, found, strict=False):
        row[: len(alleles)] = alleles
    return table[codes, np.minimum(rank, table.shape[1] - 1)]


#: Statuses that blame a call, and the segment of the call.
BLAMED = {"unknown_v_call": "v", "no_v_anchor": "v", "unknown_j_call": "j", "no_j_anchor": "j"}
#: Different calls kept per status; a wrong column can hold another text in every row.
_MOST_CALLS = 1000
_OTHER = "(other)"


@dataclass(slots=True)
class BlamedCalls:
    """How many rows each call has cost. Sums of blocks, in any order."""

    _calls: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in BLAMED})

    def add(self, status: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block: the status of every row, and its V (``"v"``) and J calls (``"j"``) as far as used."""
        for name, segment in BLAMED.items():
            if segment in calls:
                blamed = calls[segment].filter(pc.equal(status, name))
                for entry in pc.value_counts(blamed).to_pylist():
                    self._blame(name, first_name(entry["values"]), entry["counts"])

    def merge(self, other: BlamedCalls) -> None:
        """Add those of other blocks; `other` is left unchanged."""
        for status, names in other._calls.items():
            self.blame(status, names)

    def blame(self, status: str, names: Mapping[str, int]) -> None:
        """Add rows of calls, by name, to a status of `BLAMED`."""
        for name, rows in names.items():
            self._blame(status, name, rows)

    def _blame(self, status: str, name: str, rows: int) -> None:
        known = self._calls[status]
        known[name if name in known or len(known) < _MOST_CALLS else _OTHER] += rows

    def of(self, status: str) -> dict[str, int]:
        """Rows per gene of the calls behind a status, the most frequent first; none if not in `BLAMED`."""
        return dict(sorted(self._calls.get(status, {}).items(), key=lambda item: (-item[1], item[0])))

    def as_dict(self) -> dict[str, dict[str, int]]:
        """All of them, ready for JSON."""
        return {name: self.of(name) for name in BLAMED if self._calls[name]}


@dataclass
class RowTotals:
    """How many rows have each status, and the calls behind statuses that blame one. Sums of blocks."""

    statuses: Counter[str] = field(default_factory=Counter)
    blamed: BlamedCalls = field(default_factory=BlamedCalls)

    def add_statuses(self, status: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block: the status of every row, and its V (``"v"``) and J calls (``"j"``) as far as used."""
        for entry in pc.value_counts(status).to_pylist():
            self.statuses[entry["values"]] += entry["counts"]
        self.blamed.add(status, calls)

    def merge(self, other: Self) -> None:
        """Add the totals of other blocks; `other` is left unchanged."""
        self.statuses.update(other.statuses)
        self.blamed.merge(other.blamed)

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.statuses.values())

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        return {
            "statuses": dict(sorted(self.statuses.items(), key=lambda item: (-item[1], item[0]))),
            "blamed_calls": self.blamed.as_dict(),
        }
