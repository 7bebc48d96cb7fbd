"""From columns of junctions and of V and J calls to what is counted, with a reason where that cannot be.

Also causes of zeros and foreign genes, tested on the rows and told in words, only what the numbers support;
and the names of clonotypes and subjects: the columns that rows are grouped by, from tables of any source.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK, reverse_complement
from plait.dp.chain.tables import Junctions
from plait.errors import FormatError, InvalidInput, one_of
from plait.formats.checkpoints import letters_of
from plait.formats.layouts import as_int64
from plait.lang.compile import kernel
from plait.run.rows import RunningSums
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.bundled import bundled_germlines, load_germline
from plait.vdj.germline.germline_set import LOCI, Segment, split_call

#: What each status or reason means in plain words, by what has them; their order is that of codes.
MEANINGS: Final[Mapping[str, Mapping[str, str]]] = json.loads(
    (Path(__file__).with_name("data") / "meanings.json").read_text("utf-8")
)
STATUS_MEANINGS: Final = MEANINGS["counts"]
#: Every value of the status column. All but the first are reasons for having no counts.
STATUSES: Final = tuple(STATUS_MEANINGS)

#: Where nothing else is said, immunoglobulins whose V is less like its germline are mutated, as in chronic
#: lymphocytic leukaemia (Damle et al. 1999, Blood 94, 1840; Hamblin et al. 1999, Blood 94, 1848).
_LEAST_V_IDENTITY: Final = 0.98
_MUTATED: Final = STATUSES.index("mutated")


class IdentityLimit(NamedTuple):
    """Least share of V like its germline of rows that are not mutated; -1 where no column has it."""

    least: float = 0.0
    column: int = -1

    @classmethod
    def of(cls, given: float | None, locus: str, columns: list[str], names: Sequence[str]) -> IdentityLimit:
        """The limit as `given`, or of a `locus`; v_identity, if it is there, joins the `columns` worked on.

        `names` are all columns. InvalidInput for a limit that is none.
        """
        least = given if given is not None else _LEAST_V_IDENTITY if locus.startswith("IG") else 0.0
        if not 0 <= least <= 1:
            raise InvalidInput("min_v_identity", found=repr(given), expected="a number from 0 to 1")
        if not least or "v_identity" not in names:
            return cls()
        columns.append("v_identity")
        return cls(least, len(columns) - 1)

    def mutated(self, columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
        """Which rows lie below the limit; v_identity is a share, or above 1 in per cent."""
        if self.column < 0:
            return np.zeros(len(columns[0]), np.bool_)
        given = columns[self.column]
        try:
            if not pa.types.is_floating(given.type):
                text = pc.utf8_trim_whitespace(given.cast(pa.string()))
                given = pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
        except pa.ArrowInvalid as error:
            told = str(error)[:80]
            raise InvalidInput("v_identity", found=told, expected="numbers, or nothing") from error
        share = given.to_numpy(zero_copy_only=False)
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = np.where(share > 1, share / 100, share) < self.least
        return found

    def mark(self, status: NDArray[np.uint8], columns: Sequence[pa.Array]) -> None:
        """Give rows that are mutated that status."""
        status[self.mutated(columns)] = _MUTATED

    @property
    def parameters(self) -> dict[str, float]:
        """What provenance says of it."""
        return {} if self.column < 0 else {"min_v_identity": self.least}


ANY_IDENTITY: Final = IdentityLimit()

Ambiguity = Literal["first", "all", "fail"]
AMBIGUITY_POLICIES: tuple[Ambiguity, ...] = ("first", "all", "fail")


def first_name(call: str | None) -> str:
    """The first name in a call, as it is written, without score.

    >>> first_name("TRBV12-3*01(346), TRBV12-4*01")
    'TRBV12-3*01'
    """
    names = split_call(call or "")
    return names[0] if names else ""


@lru_cache(maxsize=1 << 14)
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
        one_of("ambiguous", policy, AMBIGUITY_POLICIES)
        self._germline = germline
        self._segment: Literal["V", "J"] = segment
        self._policy = policy
        self._known: dict[str | None, tuple[str, tuple[int, ...]]] = {}

    def resolve(self, calls: pa.Array) -> tuple[NDArray[np.int64], list[tuple[str, tuple[int, ...]]]]:
        """For each row, int64 (n,), which of the found it is; and the found, as (reason, allele indices).

        A found one has reason ``""`` and one or more alleles, or a reason and no allele.
        """
        encoded = calls if pa.types.is_dictionary(calls.type) else looked_up(calls)
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


def looked_up(calls: pa.Array) -> pa.Array:
    """Calls as places in a dictionary, in which nulls stand, too."""
    return pc.dictionary_encode(calls, null_encoding="encode")


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


#: Letters from which on a kernel encodes them, while other threads have Python.
_MANY_LETTERS: Final = 1 << 20


def encode_junctions(junctions: pa.Array) -> EncodedJunctions:
    """Encode a string array of nucleotides, from the Cys to the Phe/Trp codon, in any case.

    Spaces around a junction do not occur in any known format and are invalid.
    """
    return encode_column(junctions, IUPAC_MASK, 0, SHORTEST_JUNCTION, LONGEST_JUNCTION)


def encode_column(
    junctions: pa.Array, code: NDArray[np.uint8], invalid: int, shortest: int, longest: int
) -> EncodedJunctions:
    """Encode a string array by the `code` (256,) of each byte, which is `invalid` for those that are."""
    raw, starts = letters_of(junctions)
    if raw.size < _MANY_LETTERS:
        # What others have made may be written to, so that kernels are the same.
        symbols = np.frombuffer(bytearray(raw).translate(code.tobytes()), np.uint8)
        any_wrong = True
    else:
        symbols = raw.copy()
        any_wrong = encode_letters(symbols, code.copy(), invalid) > 0
    start, length = starts[:-1], np.diff(starts)
    status = np.zeros(length.size, np.uint8)
    if any_wrong:
        wrong = np.flatnonzero(symbols == invalid)
        status[np.searchsorted(start, wrong, side="right") - 1] = STATUSES.index("invalid_symbol")
    return EncodedJunctions(symbols, start, length, length_statuses(status, length, shortest, longest))


@kernel
def encode_letters(letters: Any, code: Any, invalid: int) -> int:
    """Put the code (256,) of each letter (n,) in its place; how many codes are invalid.

    Of a truth value as result only Numba could call it, and importing that takes longer than many a run.
    """
    found = 0
    for i in range(letters.size):
        letters[i] = code[letters[i]]
        found += letters[i] == invalid
    return found


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
        if reasons.any():
            undecided = status == 0
            status[undecided] = reasons[codes[undecided]]
    bad = status != 0
    # Mostly each row is one item.
    row: Any = slice(None)
    first = np.arange(status.size)
    v_rank = j_rank = np.zeros(1, np.int64)
    if any(len(alleles) > 1 for found in (v_found, j_found) for _, alleles in found):
        v_count = np.array([len(alleles) for _, alleles in v_found], np.int64)[v_codes]
        j_count = np.array([len(alleles) for _, alleles in j_found], np.int64)[j_codes]
        pairs = np.where(bad, 1, v_count * j_count)
        first = np.cumsum(pairs) - pairs
        row = np.repeat(np.arange(status.size), pairs)
        v_rank, j_rank = np.divmod(np.arange(row.size) - first[row], np.maximum(j_count[row], 1))
    texts = Junctions(
        symbols=encoded.symbols,
        start=encoded.start[row],
        length=encoded.length[row],
        v=_nth(v_found, v_codes[row], v_rank),
        j=_nth(j_found, j_codes[row], j_rank),
    )
    none = np.flatnonzero(bad[row])
    texts.length[none] = texts.v[none] = texts.j[none] = 0
    return Items(texts, first, status)


def _nth(
    found: list[tuple[str, tuple[int, ...]]], codes: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The allele of the given rank in each call."""
    width = max((len(alleles) for _, alleles in found), default=0)
    table = np.zeros((max(len(found), 1), max(width, 1)), np.int64)
    for row, (_, alleles) in zip(table, found, strict=False):
        row[: len(alleles)] = alleles
    return table[codes, np.minimum(rank, width - 1)] if width > 1 else table[:, 0][codes]


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
        there = pc.unique(status).to_pylist()
        for name, segment in BLAMED.items():
            if segment in calls and name in there:
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
class RowTotals(RunningSums):
    """How many rows have each status, and the calls behind statuses that blame one. Sums of blocks."""

    statuses: Counter[str] = field(default_factory=Counter)
    blamed: BlamedCalls = field(default_factory=BlamedCalls)

    def add_statuses(self, status: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block: the status of every row, and its V (``"v"``) and J calls (``"j"``) as far as used."""
        if pc.all(pc.equal(status, "ok")).as_py():
            # As mostly, and to see this takes less than to count.
            self.statuses.update({"ok": len(status)} if len(status) else {})
            return
        for entry in pc.value_counts(status).to_pylist():
            self.statuses[entry["values"]] += entry["counts"]
        self.blamed.add(status, calls)

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


#: The columns that make a clonotype: junction in upper case, first V gene, first J gene.
CLONOTYPE = ("junction", "v_gene", "j_gene")


class ClonotypeKey(NamedTuple):
    """What makes a clonotype: a junction as nucleotides or as `acids`, with its `v` and `j` gene or not."""

    acids: bool = False
    v: bool = True
    j: bool = True

    @classmethod
    def named(cls, text: str) -> ClonotypeKey:
        """The key of a name.

        >>> ClonotypeKey.named("cdr3aa+v").columns
        ('junction_aa', 'v_gene')
        """
        junction, *genes = text.lower().split("+")
        if (
            junction not in ("cdr3nt", "cdr3aa")
            or not set(genes) <= {"v", "j"}
            or len(set(genes)) < len(genes)
        ):
            raise InvalidInput(
                "key",
                found=repr(text),
                expected="cdr3nt or cdr3aa, and +v and +j if they are wanted, as cdr3aa+v+j",
            )
        return cls(junction == "cdr3aa", "v" in genes, "j" in genes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are equal within a clonotype."""
        junction = "junction_aa" if self.acids else "junction"
        return (junction, *(["v_gene"] if self.v else []), *(["j_gene"] if self.j else []))

    @property
    def required(self) -> list[tuple[str, ...]]:
        """AIRR fields of which a table must have one each."""
        calls = [(f"{segment}_call",) for segment in "vj" if getattr(self, segment)]
        return [("junction_aa", "junction") if self.acids else ("junction",), *calls]

    def __str__(self) -> str:
        return f"cdr3{'aa' if self.acids else 'nt'}{'+v' if self.v else ''}{'+j' if self.j else ''}"


#: Reads or molecules of one row; with no more of them, sums over 8 million rows fit.
_MOST_COPIES = 1 << 40


def first_genes(calls: pa.Array) -> pa.Array:
    """The first gene of every V or J call, as it is written; empty where there is no call."""
    encoded = text_of(calls).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    return pa.array([first_gene(call) for call in texts], pa.large_string()).take(encoded.indices)


def named_rows(
    columns: Mapping[str, pa.Array], left_out: Counter[str], word: str = "missing"
) -> NDArray[np.bool_]:
    """Which rows have names in all text columns; the others are added to `left_out` by reason.

    The first column that is blank, behind `word`, is the reason.
    """
    kept: NDArray[np.bool_] = np.ones(len(next(iter(columns.values()))), np.bool_)
    for name, column in columns.items():
        blank = kept & ~np.asarray(pc.fill_null(pc.not_equal(column, ""), False))
        if blank.any():
            left_out[f"{word}_{name}"] += int(blank.sum())
        kept &= ~blank
    return kept


def text_of(column: pa.Array) -> pa.Array:
    """A column as text, empty where it is null; any that Arrow can write as text."""
    return pc.fill_null(column.cast(pa.large_string()), "")


def whole_numbers(column: pa.Array, *, path: str, name: str) -> pa.Array:
    """A column of numbers of reads or molecules as whole numbers, null where it is null or blank.

    Numbers, or text with numbers; 12.0 is 12. FormatError, which names `path` and `name`, for anything else:
    text, a negative number, or one that no sequencer reaches, with which sums would not fit.
    """
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        texts = text_of(column)
        column = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
    try:
        found = as_int64(column)
    except pa.ArrowInvalid as error:
        raise FormatError(path, column=name, found=str(error), expected="whole numbers") from error
    least, most = pc.min_max(found).values()
    for value in (least.as_py(), most.as_py()):
        if value is not None and not 0 <= value <= _MOST_COPIES:
            raise FormatError(
                path, column=name, found=f"{value}", expected=f"whole numbers from 0 to {_MOST_COPIES}"
            )
    return found


#: Causes in the order in which they are looked for; the last one is none.
CAUSES: Final = (*MEANINGS["zero_causes"], "unexplained")
#: Zero rows of a block that are put to the test, and rows that are compared with gene ends.
_EXAMINED: Final = 64
#: Parts of a longer sequence that are tried.
_MOST_WINDOWS: Final = 24
#: Codons of a junction within a longer sequence.
_SHORTEST, _LONGEST = 6, 40
#: How much more of its ends another set must match.
_MORE_ALIKE: Final = 3
#: An end that matches so far is that of a gene and not chance.
_MATCHED: Final = 6
#: Behind the first mismatch of a mutated end, so many of so many nucleotides match again.
_AGAIN, _OF_NEXT = 5, 6
_MOST_LENGTHS: Final = 1000
_NT_START, _NT_END = re.compile("(?=TG[TC])"), re.compile("(?=(?:TT[TC]|TGG)(?:GG|$))")
_AA_START, _AA_END = re.compile("(?=C)"), re.compile("(?=[FW](?:G|$))")
_NT_CODON_FIRST, _NT_CODON_LAST = re.compile("TG[TC]"), re.compile("(?:TT[TC]|TGG)$")

#: Texts by each of their beginnings; of other sets than the own one, the beginnings alone.
Beginnings = Mapping[str, set[str]]
Ends = tuple[Beginnings, Beginnings]
OtherEnds = tuple[Set[str], Set[str]]
Possible = Callable[[Sequence[str], NDArray[np.int64]], NDArray[np.bool_]]


@dataclass
class TableCauses(RunningSums):
    """What was found. Sums of blocks, in any order.

    `causes` of the `examined` zero rows; of the rows `compared` with gene ends, zero or not, those that are
    `whole`, from Cys to Phe or Trp as junctions are, and those clearly more `alike` the genes of another
    bundled set, by its name; `lengths` of the junctions of all rows.
    """

    examined: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    whole: int = 0
    alike: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)

    def merge(self, other: Self) -> None:
        """Add those of other blocks, which are left unchanged."""
        super().merge(other)
        if len(self.lengths) > _MOST_LENGTHS:
            self.lengths = Counter(dict(self.lengths.most_common(_MOST_LENGTHS)))

    def as_dict(self) -> dict[str, Any]:
        """All but the lengths, of which the most frequent one, ready for JSON."""
        most = self.lengths.most_common(1)
        return {
            "examined": self.examined,
            **{cause: self.causes[cause] for cause in CAUSES if self.causes[cause]},
            "compared": self.compared,
            "whole": self.whole,
            "like_another_set": dict(self.alike.most_common()),
            "most_frequent_length": most[0][0] if most else None,
            "rows_of_that_length": most[0][1] if most else 0,
            "rows": self.lengths.total(),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> TableCauses:
        """What `as_dict` told; of the lengths, the most frequent and all others as one."""
        most, n, rows = (facts[k] for k in ("most_frequent_length", "rows_of_that_length", "rows"))
        lengths = Counter({} if most is None else {int(most): int(n), -1: int(rows) - int(n)})
        found = Counter({cause: int(facts[cause]) for cause in CAUSES if cause in facts})
        alike = Counter({str(name): int(n) for name, n in facts["like_another_set"].items()})
        examined, compared, whole = (int(facts[name]) for name in ("examined", "compared", "whole"))
        return cls(examined, found, compared, whole, alike, +lengths)


def ends_of(v: Sequence[str | None], j: Sequence[str | None]) -> Ends:
    """Gene ends to compare with: V from the conserved codon on, J up to it, reversed."""
    return _beginnings(end for end in v if end), _beginnings(end[::-1] for end in j if end)


def _beginnings(texts: Iterable[str]) -> Beginnings:
    found: dict[str, set[str]] = {}
    for text in texts:
        for size in range(len(text) + 1):
            found.setdefault(text[:size], set()).add(text)
    return found


@cache
def _bundled_ends(name: str) -> OtherEnds:
    found = load_germline(name)
    v, j = {a.cdr3_end or "" for a in found.v}, {(a.cdr3_end or "")[::-1] for a in found.j}
    # Of all sets: to make a set of texts for each beginning takes many times as long.
    begun = [{text[:size] for text in texts for size in range(len(text) + 1)} for texts in (v, j)]
    return begun[0], begun[1]


_READING: Final = Lock()


@cache
def _others(genes: frozenset[str]) -> tuple[dict[str, OtherEnds], OtherEnds]:
    """Bundled sets of another species or locus, those that have few of these V genes; and all their ends."""
    found = {
        name: _bundled_ends(name)
        for name in bundled_germlines()
        if 2 * len(genes & {a.gene for a in load_germline(name).v}) < max(len(genes), 1)
    }
    v, j = (set[str]().union(*(ends[side] for ends in found.values())) for side in (0, 1))
    return found, (v, j)


class CauseFinder:
    """Puts zero rows to the test.

    `insertions`: most nucleotides between V and J that no gene needs to match, N nucleotides and the longest
    D. `acids`: junctions are amino acids.
    """

    def __init__(self, ends: Ends, insertions: int, v_genes: Collection[str], *, acids: bool = False) -> None:
        self._ends, self._insertions, self._acids = ends, insertions, acids
        self._v_genes = frozenset(v_genes)

    def causes(
        self,
        junctions: pa.Array,
        counted: NDArray[np.bool_],
        zero: NDArray[np.bool_],
        possible: Possible,
        at_default_limits: Possible | None = None,
    ) -> TableCauses:
        """What explains zeros of a block: of rows `counted`, those with a number, and `zero` among them.

        `possible` tells, for texts in the place of the junctions of given rows, whether they have a number
        above 0; `at_default_limits` the same with wider limits, where the limits are tight.
        """
        found = TableCauses()
        sizes = pc.value_counts(pc.binary_length(those(junctions, counted)))
        for entry in sizes.to_pylist():
            found.lengths[entry["values"]] += entry["counts"]
        compared = _texts(junctions, _some(np.flatnonzero(counted)))
        found.compared = len(compared)
        found.whole = sum(map(self._is_whole, compared))
        if not self._acids:
            found.alike.update(name for text in compared if (name := self._another(text)))
        rows = _some(np.flatnonzero(zero))
        texts = dict(zip(rows.tolist(), _texts(junctions, rows), strict=True))
        found.examined = len(texts)
        tests: list[tuple[str, Possible, Callable[[str], Iterable[str]]]] = [
            ("reverse_complement", possible, self._turned),
            ("no_conserved_codons", possible, self._flanked),
            ("longer_sequence", possible, self._windows),
        ]
        if at_default_limits is not None:
            tests.append(("tight_limits", at_default_limits, lambda whole: (whole,)))
        for cause, is_possible, variants in tests:
            tried = [(row, text) for row, whole in texts.items() for text in variants(whole)]
            if not tried:
                continue
            at = np.array([row for row, _ in tried], np.int64)
            above = is_possible([text for _, text in tried], at)
            for row in set(at[above].tolist()):
                found.causes[cause] += 1
                del texts[row]
        found.causes.update("unexplained" if self._acids else self._of_ends(t) for t in texts.values())
        return found

    def _turned(self, text: str) -> Iterator[str]:
        if not self._acids and not _NT_CODON_FIRST.match(text):
            turned = reverse_complement(text)
            if _NT_CODON_FIRST.match(turned) and _NT_CODON_LAST.search(turned):
                yield turned

    def _flanked(self, text: str) -> Iterator[str]:
        if self._acids:
            # One that has its last conserved residue has an error in the first.
            if not text.startswith("C") and not text.endswith(("F", "W")):
                yield from (f"C{text}{last}" for last in "FW")
        elif not _NT_CODON_FIRST.match(text):
            # By chance, a junction with an error in its first codon has a number above 0 too.
            ends = product(("TGT", "TGC"), ("TTT", "TTC", "TGG"))
            for whole in (f"{first}{text}{last}" for first, last in ends):
                if min(_matched(whole, self._ends)) >= _MATCHED:
                    yield whole

    def _windows(self, text: str) -> Iterator[str]:
        if self._is_whole(text):
            return
        first, last = (_AA_START, _AA_END) if self._acids else (_NT_START, _NT_END)
        step = 1 if self._acids else 3
        starts = [match.start() for match in first.finditer(text)]
        ends = [match.start() + step for match in last.finditer(text)]
        windows = [
            text[a:b]
            for a in starts
            for b in ends
            if _SHORTEST * step <= b - a <= _LONGEST * step and b - a < len(text)
            # By chance, some part of nearly every sequence has a number above 0.
            if self._acids or min(_matched(text[a:b], self._ends)) >= _MATCHED
        ]
        yield from windows[:_MOST_WINDOWS]

    def _is_whole(self, text: str) -> bool:
        """Whether it begins with Cys and ends with Phe or Trp, as a junction does."""
        if self._acids:
            return text.startswith("C") and text.endswith(("F", "W"))
        return bool(_NT_CODON_FIRST.match(text) and _NT_CODON_LAST.search(text))

    def _another(self, text: str) -> str:
        """The bundled set whose ends match clearly more than those of the own one; empty if there is none."""
        least = max(sum(_matched(text, self._ends)) + _MORE_ALIKE, 2 * _MATCHED)
        # Threads begin together: one of them reads the sets.
        with _READING:
            others, together = _others(self._v_genes)
        if sum(_matched(text, together)) < least:
            return ""
        score, name = max(
            ((sum(_matched(text, ends)), name) for name, ends in others.items()), default=(0, "")
        )
        return name if score >= least else ""

    def _of_ends(self, text: str) -> str:
        if self._another(text):
            return "genes_of_another_set"
        v, j = _matched(text, self._ends)
        if v >= _MATCHED and j >= _MATCHED and len(text) - v - j > self._insertions:
            return "long_insertions"
        sides = ((text, self._ends[0]), (text[::-1], self._ends[1]))
        return "mutations" if any(_mutated(side, ends) for side, ends in sides) else "unexplained"


def _texts(junctions: pa.Array, rows: NDArray[np.int64]) -> list[str]:
    return [text.upper().replace("U", "T") for text in junctions.take(pa.array(rows)).to_pylist()]


def those(column: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    """Some rows of a column: without a copy where they are all, as they mostly are."""
    return column if rows.all() else column.filter(pa.array(rows))


def _some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most so many of them, evenly spaced."""
    if rows.size <= _EXAMINED:
        return rows
    return rows[np.linspace(0, rows.size - 1, _EXAMINED).astype(np.int64)]


def _matched(text: str, ends: Ends | OtherEnds) -> tuple[int, int]:
    """Longest match of a V end and of a J end."""
    return _furthest(text, ends[0]), _furthest(text[::-1], ends[1])


def _furthest(text: str, ends: Beginnings | Set[str]) -> int:
    """Longest common beginning with one of the ends; what is longer than one of them is none."""
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if text[:middle] in ends:
            least = middle
        else:
            most = middle - 1
    return least


def _mutated(text: str, ends: Beginnings) -> bool:
    """Whether one of the ends that match furthest goes on to match behind its first mismatch."""
    most = _furthest(text, ends)
    for end in ends.get(text[:most], ()):
        a, b = (one[most + 1 : most + 1 + _OF_NEXT] for one in (text, end))
        if len(b) == _OF_NEXT and sum(map(str.__eq__, a, b)) >= _AGAIN:
            return True
    return False


#: A cause is named from this share of the rows on that were looked at, and from so many rows on.
_NOTABLE: Final = 0.1
_FEWEST: Final = 3
#: Causes that a few zeros in a healthy table can look like are named from this share of zeros on.
_MANY_ZEROS: Final = 0.05
_UNSURE: Final = ("genes_of_another_set", "long_insertions", "mutations")
#: A window of fixed length: such a share of the rows, of so many at least, have one length in nucleotides.
_ONE_LENGTH: Final = 0.95
_FEWEST_ROWS: Final = 20
_WINDOW: Final = 60
#: A set that has this share of the foreign names is where they come from.
_KNOWN: Final = 0.8


def _named(causes: TableCauses, zeros: int, rows: int, concentrated: bool) -> list[str]:
    enough = max(_NOTABLE * causes.examined, min(_FEWEST, causes.examined))
    return [
        cause
        for cause in MEANINGS["zero_causes"]
        if 0 < enough <= causes.causes[cause]
        and (cause not in _UNSURE or (zeros >= _MANY_ZEROS * rows and not concentrated))
    ]


def explained(causes: TableCauses, zeros: int, rows: int, concentrated: bool = False) -> bool:
    """Whether what concerns the whole table explains most zeros, so that no gene is to blame.

    `rows` have a number, `zeros` of them 0. `concentrated`: most zeros are of few genes, while the others
    have few.
    """
    return (
        2 * sum(causes.causes[cause] for cause in _named(causes, zeros, rows, concentrated)) > causes.examined
    )


def cause_sentences(
    causes: TableCauses, zeros: int, rows: int, *, what: str, own: str, concentrated: bool = False
) -> list[str]:
    """Causes, each with its numbers, as for `explained`.

    `what` is the number, as ``"path count"``, `own` what the rows were compared with, as
    ``"germline set mouse_trb"``.
    """
    named = _named(causes, zeros, rows, concentrated)
    others = " and ".join(name for name, n in causes.alike.most_common() if n >= _NOTABLE * causes.compared)
    others = others or "another set"
    of = f"{causes.examined:,} rows with 0 that were put to the test"
    found = []
    for cause in named:
        told = MEANINGS["zero_causes"][cause].format(what=what, others=others, own=own)
        found.append(f"{causes.causes[cause]:,} of {of} {told}{'' if told.endswith('?') else '.'}")
    alike = causes.alike.total()
    if alike >= max(_NOTABLE * causes.compared, min(_FEWEST, causes.compared), 1):
        found.append(
            f"{alike:,} of {causes.compared:,} rows that were compared, zero or not, begin and end clearly "
            f"more like genes of {others} than like those of the {own}."
        )
    length, most = next(iter(causes.lengths.most_common(1)), (0, 0))
    rows_told = causes.lengths.total()
    fixed = length >= _WINDOW and most >= max(_ONE_LENGTH * rows_told, _FEWEST_ROWS)
    if fixed and 2 * causes.whole < causes.compared and 2 * zeros > rows:
        found.append(
            f"{most:,} of {rows_told:,} rows are {length} nt long, and junctions differ in length: a window "
            "of fixed length, which begins in V or ends in J, is no junction."
        )
    if not found and 2 * zeros > rows and causes.examined:
        found.append(
            f"Most rows have 0, and nothing that was looked for explains it in the {of}: reverse "
            "complements, CDR3s without the conserved codons, longer sequences, genes of the other bundled "
            "sets, long insertions, mutations."
        )
    return found


def foreign_sentences(
    unknown: Mapping[str, Mapping[str, int]], called: int, *, locus: str, own: str, genes: Collection[str]
) -> list[str]:
    """What is to be said of calls that belong to another locus or species, or of alleles of known `genes`.

    `unknown`: rows of each name that is not known, for V (``"v"``) and J (``"j"``), of `called` rows with
    calls. `locus` is empty if not known; `own` as in `cause_sentences`.
    """
    found = []
    segments: tuple[Segment, Segment] = ("V", "J")
    for segment in segments:
        names = unknown.get(segment.lower(), {})
        n = sum(names.values())
        if n < max(_NOTABLE * called, min(_FEWEST, called)) or not n:
            continue
        examples = ", ".join(list(names)[:3])
        loci = Counter[str]()
        for name, rows in names.items():
            loci[_locus(name)] += rows
        elsewhere, there = loci.most_common(1)[0]
        if sum(rows for name, rows in names.items() if first_gene(name) in genes) >= _KNOWN * n:
            told = (
                f"{n:,} of {called:,} rows name {segment} alleles that the {own} does not have, of genes that"
            )
            found.append(f"{told} it has ({examples}). The same calls without the allele can be used.")
            continue
        told = f"{n:,} of {called:,} rows name {segment} genes that the {own} does not have ({examples})"
        if elsewhere not in ("", locus) and there >= _KNOWN * n:
            found.append(f"{told}: genes of {elsewhere}{f', and not of {locus}' if locus else ''}.")
            continue
        having = [name for name in bundled_germlines() if _rows_known(name, segment, names) >= _KNOWN * n]
        if having:
            found.append(f"{told} and {' and '.join(having)} has: rows of another species?")
    return found


def _locus(name: str) -> str:
    """Locus that a name begins with, in the styles of the field."""
    start = name.strip().upper().replace("TCR", "TR", 1)[:3]
    return start if start in LOCI else ""


def _rows_known(germline: str, segment: Segment, names: Mapping[str, int]) -> int:
    known = load_germline(germline)
    return sum(
        rows
        for name, rows in names.items()
        if (found := known.resolve_all(name, segment)) and None not in found
    )
