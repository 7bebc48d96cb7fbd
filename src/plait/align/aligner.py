"""Score and align: two sequences, lists of pairs, one sequence against many; settings are checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import CodeList, PairBatch, PairSweep, against, code_list, ignore_progress
from plait.align.letters import Letters, common_kind, count_letters, letters_of
from plait.align.results import Alignment, Alignments, alignment_of, make_alignment
from plait.align.scoring import Matrix, Scoring, SubstitutionMatrix, free_ends_of, make_scoring
from plait.align.settings import FreeEnd, Kind, Mode, SeveralBest, Traceback
from plait.align.short_pairs import MOST_RESIDUES, ShortPairs, ShortResult
from plait.devices.target import resolve, spelled
from plait.dp.pairs.kbest import Ranks
from plait.dp.pairs.rows import RowSweep, row_sweep
from plait.errors import InvalidInput, Unsupported, whole
from plait.settings import thread_count

#: Bytes that are asked for at most.
_MOST_BYTES = 1 << 32
#: Further than any two residues are apart, and far below the limits of 64 bits.
_FAR = 1 << 40


def _joined(sequences: Sequence[str | bytes]) -> bytes:
    return b"".join([s.encode("ascii", "replace") if isinstance(s, str) else s for s in sequences])


def guess_kind(queries: Sequence[str | bytes], targets: Sequence[str | bytes]) -> Kind:
    """What the sequences are: see `plait.align.letters.kind_of`."""
    alone = len(queries) == len(targets) == 1 and queries[0] and targets[0]
    # The rules of all letters take ten times as long as an alignment of few.
    if alone and not _joined([*queries, *targets]).translate(None, b"ACGTUacgtu"):
        return "dna"
    counts = [count_letters(np.frombuffer(_joined(own), np.uint8)) for own in (queries, targets)]
    return common_kind(dict(zip(("the queries", "the targets"), counts, strict=True)))


class AlignmentEnds(NamedTuple):
    """Scores of best alignments, and where they end, exclusive; int64, (pairs,) each.

    Attributes
    ----------
    score
        The scores.
    query_end, target_end
        As of the `Alignment`.
    """

    score: NDArray[np.int64]
    query_end: NDArray[np.int64]
    target_end: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Aligner(PairSweep):
    """All settings of an alignment, checked once; for many calls. `make_aligner` builds it.

    Attributes
    ----------
    scoring
        Matrix and gap costs.
    free
        What may be left out.
    target
        Where to compute.
    mode
        Mode.
    free_ends
        For mode semiglobal.
    band
        Least and largest column minus row, or None.
    x_drop
        For mode extension, or None.
    traceback
        How the choices for the traceback are kept, as for `align`.
    """

    mode: Mode
    free_ends: tuple[FreeEnd, ...] | None
    band: tuple[int, int] | None
    x_drop: int | None
    traceback: Traceback

    @cached_property
    def _short(self) -> ShortPairs:
        return ShortPairs(self)

    @property
    def _usual(self) -> bool:
        """Whether pairs are swept whole, in the usual way."""
        return not self.limited and self.traceback == "auto" and not self.interpreted

    def _single(self, query: str | bytes, target: str | bytes, keep: bool) -> ShortResult | None:
        """The alignment of one pair that `ShortPairs` is for, as its `find`."""
        short = max(len(query), len(target)) <= MOST_RESIDUES and query and target
        if not short or not self._usual or not (query.isascii() and target.isascii()):
            return None
        own, other = (text.encode() if isinstance(text, str) else text for text in (query, target))
        return self._short.find(own, other, keep)

    def score(self, query: Letters, target: Letters) -> int:
        """Score of a best alignment of two sequences.

        Parameters
        ----------
        query, target
            Sequences; either may be empty.
        """
        query, target = letters_of(query, "query"), letters_of(target, "target")
        found = self._single(query, target, False)
        return int(self.score_codes(self.pair(query, target))[0]) if found is None else int(found[0][0])

    def align(self, query: Letters, target: Letters) -> Alignment:
        """A best alignment of two sequences, the same as of `plait.align.align`.

        Parameters
        ----------
        query, target
            As for `score`.
        """
        query, target = letters_of(query, "query"), letters_of(target, "target")
        found = self._single(query, target, True)
        if found is None:
            return self.align_codes(self.pair(query, target)).of([query], [target])[0]
        (score, query_end, target_end), (query_start, target_start, *counts), cigar = found
        ends = (score, query_start, query_end, target_start, target_end)
        return alignment_of(ends, cigar, counts, self.scoring, query, target)

    @property
    def limited(self) -> bool:
        """Whether not all cells are visited."""
        return self.band is not None or self.x_drop is not None

    def encode(self, sequences: Sequence[str | bytes], what: str) -> CodeList:
        """Codes of sequences.

        Parameters
        ----------
        sequences
            Letters of the matrix.
        what
            What they are called in errors.
        """
        return CodeList(*self.scoring.encode_many(sequences, what))

    def checked_best(self, asked: SeveralBest) -> SeveralBest:
        """Several alignments of each pair, if these settings have them.

        Parameters
        ----------
        asked
            Which are asked for.
        """
        if self.mode != "local" or self.limited:
            found = f"mode {self.mode!r}" if self.mode != "local" else "a band"
            raise InvalidInput("several alignments of a pair", found=found, expected="mode 'local', no band")
        for what, value, least in (
            ("best", asked.most, 1), ("apart", asked.apart, 0), ("min_score", asked.min_score, 1),
        ):  # fmt: skip
            whole(what, value, least)
        return asked

    def pair(self, query: str | bytes, target: str | bytes) -> PairBatch:
        """Codes of one pair.

        Parameters
        ----------
        query, target
            Letters of the matrix.
        """
        codes = (self.scoring.encode(query, "query"), self.scoring.encode(target, "target"))
        return PairBatch(code_list([codes[0]]), code_list([codes[1]]))

    def score_codes(
        self, batch: PairBatch, progress: Callable[[int], None] = ignore_progress
    ) -> NDArray[np.int64]:
        """Scores of pairs.

        Parameters
        ----------
        batch
            The pairs.
        progress
            Called with numbers of cells that are done.
        """
        if not self.limited:
            return super().score_codes(batch, progress)
        return np.array([self._rows(*pair).score().score for pair in batch], np.int64)

    def end_codes(self, batch: PairBatch, progress: Callable[[int], None] = ignore_progress) -> AlignmentEnds:
        """Scores and ends of pairs.

        Parameters
        ----------
        batch, progress
            As for `score_codes`.
        """
        if not self.limited:
            found = self.results(batch, False, progress)
            return AlignmentEnds(found.scores, found.ends[:, 1].copy(), found.ends[:, 3].copy())
        ends = [self._rows(*pair).score() for pair in batch]
        return AlignmentEnds(*np.array(ends, np.int64).reshape(-1, 3).T.copy())

    def align_codes(self, batch: PairBatch, progress: Callable[[int], None] = ignore_progress) -> Alignments:
        """Alignments of pairs.

        Parameters
        ----------
        batch, progress
            As for `score_codes`.
        """
        if self.limited:
            return Alignments(self._align_rows(*pair) for pair in batch)
        if self.traceback == "auto":
            return super().align_codes(batch, progress)
        one_by_one = (batch.only(np.array([k])) for k in range(len(batch)))
        return Alignments(self._align_one(own, progress) for own in one_by_one)

    def score_many(
        self, query: NDArray[np.uint8], targets: CodeList, progress: Callable[[int], None] = ignore_progress
    ) -> NDArray[np.int64]:
        """Scores of one query with each of many targets.

        Parameters
        ----------
        query, targets
            Codes.
        progress
            As for `score_codes`.
        """
        if self.limited:
            return self.score_codes(against(query, targets), progress)
        return super().score_many(query, targets, progress)

    def align_many(
        self, query: NDArray[np.uint8], targets: CodeList, progress: Callable[[int], None] = ignore_progress
    ) -> Alignments:
        """Alignments of one query with each of many targets.

        Parameters
        ----------
        query, targets, progress
            As for `score_many`.
        """
        if self.limited or self.traceback != "auto":
            return self.align_codes(against(query, targets), progress)
        return super().align_many(query, targets, progress)

    def _align_one(self, batch: PairBatch, progress: Callable[[int], None]) -> Alignment:
        some = bool(batch.cells[0])
        if self.traceback == "linear" and some:
            return self.align_long(batch, progress)
        needed = self.choice_bytes(batch) if some else 0
        _check_bytes(
            needed, "traceback='full'", "traceback='linear' needs memory for the edges of tiles alone"
        )
        return self.align_each(batch, progress, tiled=False)[0]

    def _rows(self, query: NDArray[np.uint8], target: NDArray[np.uint8]) -> RowSweep:
        return row_sweep(
            query,
            target,
            self.scoring.matrix.scores,
            gap_open=self.scoring.gap_open,
            gap_extend=self.scoring.gap_extend,
            free=self.free,
            band=self.band,
            x_drop=self.x_drop,
            interpreted=self.interpreted,
        )

    def _align_rows(self, query: NDArray[np.uint8], target: NDArray[np.uint8]) -> Alignment:
        rows = self._rows(query, target)
        if self.x_drop is None:
            _check_bytes(rows.direction_bytes(), "this band", "a narrower one needs less")
        path = rows.align()
        found = (path.score, path.query_end, path.target_end, path.runs)
        return make_alignment(query, target, self.scoring, *found, interpreted=self.interpreted)


def _check_bytes(needed: int, what: str, instead: str) -> None:
    if needed > _MOST_BYTES:
        why = f"it needs {needed:,} bytes of memory, more than {_MOST_BYTES:,}; {instead}"
        raise Unsupported(what, why=why)


def make_aligner(
    scoring: Scoring,
    *,
    mode: Mode = "global",
    free_ends: Iterable[FreeEnd] | None = None,
    band: tuple[int, int] | int | None = None,
    x_drop: int | None = None,
    traceback: Traceback = "auto",
    threads: int | None = None,
    device: str = "auto",
) -> Aligner:
    """Check the settings of alignments.

    Parameters
    ----------
    scoring
        Matrix and gap costs.
    mode, free_ends, band, x_drop, traceback, threads, device
        As for `align`.

    Raises
    ------
    InvalidInput
        If a setting is wrong or does not go with another.
    """
    named = None if free_ends is None else tuple(free_ends)
    free = free_ends_of(mode, named)
    if traceback not in ("auto", "full", "linear"):
        raise InvalidInput("traceback", found=repr(traceback), expected="auto, full or linear")
    band = _limits_of(band)
    if x_drop is not None:
        if mode != "extension":
            raise InvalidInput("x_drop", found=f"{x_drop!r} in mode {mode!r}", expected="mode 'extension'")
        x_drop = min(whole("x_drop", x_drop), _FAR)
    return Aligner(
        scoring=scoring,
        mode=mode,
        free_ends=named,
        free=free,
        band=band,
        x_drop=x_drop,
        traceback=traceback,
        target=resolve(device, threads),
    )


def _limits_of(band: Any) -> tuple[int, int] | None:
    """The two limits of a band, held where no sequence reaches them."""
    if band is None:
        return None
    limits = (-band, band) if isinstance(band, int | np.integer) else band
    two = isinstance(limits, tuple | list) and all(isinstance(limit, int | np.integer) for limit in limits)
    if not two or len(limits) != 2 or limits[0] > limits[1]:
        raise InvalidInput(
            "band", found=repr(band), expected="a whole number, 0 or more, or two limits, the lower one first"
        )
    low, high = (min(max(int(limit), -_FAR), _FAR) for limit in limits)
    return low, high


class AlignmentSettings(TypedDict, total=False):
    """Settings of alignments, all optional.

    Attributes
    ----------
    mode
        ``"global"``, ``"local"``, ``"semiglobal"``, ``"overlap"`` or ``"extension"``: see
        `plait.align.scoring.free_ends_of`.
    free_ends
        For ``"semiglobal"``, any of query_start, query_end, target_start, target_end: residues left out there
        cost nothing. By default both ends of the target.
    matrix
        A matrix, the name of a bundled one, a file in NCBI's format, or what `plait.align.to_matrix` takes
        besides. By default BLOSUM62 for proteins, and 2 for a match and -3 for a mismatch for nucleotides.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap, as positive numbers: a gap of g residues
        costs ``gap_open + (g - 1) * gap_extend``. (BLAST's existence G and extension E are G + E and E.)
        By default those of BLAST for the matrix.
    match, mismatch
        Scores of two equal and of two different letters, in the place of a matrix; 2 and -3 if one is left
        out.
    kind
        ``"protein"`` or ``"dna"`` (RNA too). By default what the matrix is for; without one, what the letters
        of both say: see `plait.align.letters.kind_of`. Where they leave it open, it has to be said.
    band
        Only cells with ``low <= j - i <= high`` are aligned, for row i and column j; one number b is (-b, b).
        Where no local alignment has a positive score, the one without columns lies at the band's first cell.
    x_drop
        For ``"extension"``: stop where the score has fallen so far below the best; see
        `plait.dp.pairs.rows`.
    traceback
        ``"full"`` keeps half a byte for each cell; ``"linear"`` keeps the edges of tiles and sweeps those the
        alignment passes through again; ``"auto"`` chooses by size. The alignment is the same.
    threads
        Threads; by default those of the settings.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``,
        ``"cuda:all"`` or ``"reference"`` (plain Python).
    """

    mode: Mode
    free_ends: Iterable[FreeEnd] | None
    matrix: Matrix | None
    match: int | None
    mismatch: int | None
    gap_open: int | None
    gap_extend: int | None
    kind: Kind | None
    band: tuple[int, int] | int | None
    x_drop: int | None
    traceback: Traceback
    threads: int | None
    device: str


#: Those of the scoring; the others are of the aligner.
_OF_SCORING: Final = ("matrix", "match", "mismatch", "gap_open", "gap_extend", "kind")
#: Aligners that are kept for calls with the same settings.
_KEPT: Final = 32


def _aligner(
    queries: Sequence[str | bytes], targets: Sequence[str | bytes], settings: AlignmentSettings
) -> Aligner:
    """The aligner that is asked for, with a scoring that suits the sequences."""
    given: dict[str, Any] = dict(settings)
    matrix = given.get("matrix")
    if matrix is None and given.get("kind") is None:
        given["kind"] = guess_kind(queries, targets)
    if matrix is None or isinstance(matrix, SubstitutionMatrix):
        # Files may change between calls, and so may arrays.
        threads = thread_count() if given.get("threads") is None else given["threads"]
        try:
            return _kept_aligner(threads, *((name, type(value), value) for name, value in given.items()))
        except TypeError:
            # Something that cannot be compared, such as a list.
            pass
    return _make_aligner(given)


@lru_cache(_KEPT)
def _kept_aligner(threads: int, *settings: tuple[str, type, Any]) -> Aligner:
    return _make_aligner({name: value for name, _, value in settings})


def _make_aligner(given: dict[str, Any]) -> Aligner:
    scoring = {name: given.pop(name) for name in _OF_SCORING if name in given}
    return make_aligner(make_scoring(**scoring), **given)


def score(
    query: Letters,
    target: Letters,
    **settings: Unpack[AlignmentSettings],
) -> int:
    """Score of a best alignment of two sequences.

    Parameters
    ----------
    query, target
        Sequences; either may be empty.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    int
        The score.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.

    Examples
    --------
    >>> score("ACGTACGT", "ACGTCGT")
    7
    >>> score("HEAGAWGHEE", "PAWHEAE", mode="local", matrix="BLOSUM50", gap_open=8, gap_extend=8)
    28
    """
    query, target = letters_of(query, "query"), letters_of(target, "target")
    return _aligner([query], [target], settings).score(query, target)


def align(
    query: Letters,
    target: Letters,
    **settings: Unpack[AlignmentSettings],
) -> Alignment:
    """A best alignment of two sequences.

    Of several best alignments always the same one is given, whatever the schedule: it ends at the earliest
    query residue, then at the earliest target residue; in the traceback from there, two residues are aligned
    where that is best, else a residue of the target stands alone, else one of the query; and a gap is closed
    as soon as that is best.

    Parameters
    ----------
    query, target
        Sequences; either may be empty.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    Alignment
        Score, coordinates, CIGAR and counts.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    Unsupported
        If more memory is asked for than is sensible; the bytes are named.

    Examples
    --------
    >>> found = align("ACGTACGT", "ACGTCGT")
    >>> found.score, found.cigar
    (7, '4=1I3=')
    >>> found = align("HEAGAWGHEE", "PAWHEAE", mode="local", matrix="BLOSUM50", gap_open=8, gap_extend=8)
    >>> found.cigar, found.query_start, found.target_start
    ('2=1I2=', 4, 1)
    """
    query, target = letters_of(query, "query"), letters_of(target, "target")
    return _aligner([query], [target], settings).align(query, target)


def local_best(
    query: Letters,
    target: Letters,
    k: int = 200,
    *,
    apart: int = 5,
    disjoint: bool = False,
    min_score: int = 1,
    ranks: Ranks | None = None,
    **settings: Unpack[AlignmentSettings],
) -> Alignments:
    """The k best local alignments of two sequences; exact, and the same list on every device.

    There are two meanings. With `apart`, an end counts if no better alignment ends less than so many residues
    away in both sequences: all ends are gone through from the highest score, of equal ones from the earliest
    in the target, then in the query (kernel 1 of SSCA#1). With `disjoint`, the best alignment is found, then
    the best of those that align no two residues that it aligned with each other, and so on (Waterman and
    Eggert, J Mol Biol 197:723, 1987). Each alignment is traced back as by `align`.

    Parameters
    ----------
    query, target
        Sequences; either may be empty.
    k
        Alignments at the most.
    apart
        Rows or columns between two ends, 1 or more.
    disjoint
        Whether alignments without a common pair of residues are wanted; `apart` is not looked at then.
    min_score
        Lowest score, 1 or more.
    ranks
        Processes that share the matrix, each with a thread or a GPU: a `plait.run.mpi.MpiExecutor`. All of
        them call this with the same arguments (but for `device`), and all get the alignments.
    **settings
        See `AlignmentSettings`; the mode is local, without a band.

    Returns
    -------
    Alignments
        Best first; fewer than `k` where no others score `min_score`.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    Unsupported
        If scores could reach 2^29, or a pair is too long for `disjoint`.

    Examples
    --------
    >>> found = local_best("ACGTTGCA", "TTACGTTGTTTTTTTCGTTGCACC", 2)
    >>> [(one.score, one.query_start, one.target_start, one.cigar) for one in found]
    [(14, 1, 15, '7='), (12, 0, 2, '6=')]
    """
    given: AlignmentSettings = {"mode": "local", **settings}
    query, target = letters_of(query, "query"), letters_of(target, "target")
    aligner = _aligner([query], [target], given)
    apart = 0 if disjoint else whole("apart", apart, 1)
    asked = aligner.checked_best(SeveralBest(most=k, apart=apart, min_score=min_score))
    found = aligner.best_of_pair(aligner.pair(query, target), asked, ranks=ranks)
    return found.of([query] * len(found), [target] * len(found))


def _listed(what: str, sequences: Iterable[Letters]) -> list[str | bytes]:
    """The letters of sequences as a list: they are gone through more than once."""
    one = isinstance(sequences, str | bytes | bytearray | Mapping) or hasattr(sequences, "__bytes__")
    if one or not isinstance(sequences, Iterable):
        expected = "several sequences, each a str or bytes"
        raise InvalidInput(what, found=f"one {type(sequences).__name__}", expected=expected)
    listed: list[Any] = list(sequences)
    if {*map(type, listed)} <= {str, bytes}:
        return listed
    return [letters_of(sequence, f"{what}, number {k}") for k, sequence in enumerate(listed, 1)]


def _pairs(
    queries: Iterable[Letters], targets: Iterable[Letters]
) -> tuple[list[str | bytes], list[str | bytes]]:
    listed = _listed("queries", queries), _listed("targets", targets)
    if len(listed[0]) != len(listed[1]):
        found = f"{len(listed[0])} queries and {len(listed[1])} targets"
        raise InvalidInput("pairs", found=found, expected="as many queries as targets")
    return listed


def score_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> NDArray[np.int64]:
    """Scores of best alignments: the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    NDArray[np.int64]
        Shape (pairs,).

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong, or the numbers of sequences differ.
    """
    rows, columns = _pairs(queries, targets)
    aligner = _aligner(rows, columns, settings)
    return aligner.score_codes(PairBatch(aligner.encode(rows, "query"), aligner.encode(columns, "target")))


def end_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> AlignmentEnds:
    """Scores and ends of best alignments: of the first query with the first target, and so on; no traceback.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    AlignmentEnds
        Scores and ends, in the order of the pairs.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong, or the numbers of sequences differ.

    Examples
    --------
    >>> found = end_pairs(["ACGT", "GGA"], ["TTACGTT", "AAGGA"], mode="local")
    >>> found.score.tolist(), found.query_end.tolist(), found.target_end.tolist()
    ([8, 6], [4, 3], [6, 5])
    """
    rows, columns = _pairs(queries, targets)
    aligner = _aligner(rows, columns, settings)
    return aligner.end_codes(PairBatch(aligner.encode(rows, "query"), aligner.encode(columns, "target")))


def align_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> Alignments:
    """Best alignments: of the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each. A query that comes with many targets is aligned with all of them at once.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    Alignments
        In the order of the pairs.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong, or the numbers of sequences differ.
    """
    rows, columns = _pairs(queries, targets)
    aligner = _aligner(rows, columns, settings)
    batch = PairBatch(aligner.encode(rows, "query"), aligner.encode(columns, "target"))
    return aligner.align_codes(batch).of(rows, columns)


def score_many(
    query: Letters,
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> NDArray[np.int64]:
    """Scores of best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    NDArray[np.int64]
        Shape (targets,).

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    """
    letters, columns = letters_of(query, "query"), _listed("targets", targets)
    aligner = _aligner([letters], columns, settings)
    return aligner.score_many(aligner.scoring.encode(letters), aligner.encode(columns, "target"))


def align_many(
    query: Letters,
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> Alignments:
    """Best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    Alignments
        In the order of the targets.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    """
    letters, columns = letters_of(query, "query"), _listed("targets", targets)
    aligner = _aligner([letters], columns, settings)
    found = aligner.align_many(aligner.scoring.encode(letters), aligner.encode(columns, "target"))
    return found.of([letters] * len(columns), columns)


for _function in (score, end_pairs, align, align_pairs, align_many, score_pairs, score_many):
    spelled(_function, make_scoring, make_aligner)
