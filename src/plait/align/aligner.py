"""The settings of alignments, checked once, and the way from them to the schedules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import (
    against,
    align_batch,
    align_long_pair,
    align_many_codes,
    align_pair_codes,
    choose_target,
    ignore_progress,
    needs_bytes,
    score_many_codes,
    score_pair_codes,
)
from plait.align.codes import CodeList, PairBatch, code_list, common_kind, count_letters, encode_list
from plait.align.matrices import Kind, SubstitutionMatrix
from plait.align.results import Alignment, make_alignment
from plait.align.scoring import FreeEnd, Mode, Scoring, free_ends_of, make_scoring
from plait.devices.target import Target
from plait.dp.pairs.lists import FreeEnds
from plait.dp.pairs.rows import RowSweep, row_sweep
from plait.errors import InvalidInput, Unsupported

#: A matrix, the name of a bundled one, or a file in NCBI's format.
Matrix = str | os.PathLike[str] | SubstitutionMatrix
#: A sequence.
Letters = str | bytes
#: How the choices of a pair are kept for walking back.
Traceback = Literal["auto", "full", "linear"]
#: Bytes that are asked for at most.
_MOST_BYTES = 1 << 32
#: Further than any two residues are apart, and far below the limits of 64 bits.
_FAR = 1 << 40


def _counts(sequences: Sequence[Letters]) -> NDArray[np.int64]:
    raw = (s.encode("ascii", "replace") if isinstance(s, str) else s for s in sequences)
    return count_letters(np.frombuffer(b"".join(raw), np.uint8))


def guess_scoring(
    queries: Sequence[Letters],
    targets: Sequence[Letters],
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
) -> Scoring:
    """The scoring that is asked for, with defaults that suit the sequences.

    The sequences are looked at if neither `matrix` nor `kind` is given: see `plait.align.codes.kind_of`.
    """
    if matrix is None and kind is None:
        kind = common_kind({"the queries": _counts(queries), "the targets": _counts(targets)})
    return make_scoring(matrix, gap_open, gap_extend, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligner:
    """All settings of an alignment, checked once; for many calls. `make_aligner` builds it.

    Attributes
    ----------
    scoring
        Matrix and gap costs.
    mode
        Mode.
    free_ends
        For mode semiglobal.
    free
        What may be left out.
    band
        Least and largest column minus row, or None.
    x_drop
        For mode extension, or None.
    traceback
        How the choices for the traceback are kept, as for `align`.
    target
        Where to compute.
    """

    scoring: Scoring
    mode: Mode
    free_ends: tuple[FreeEnd, ...] | None
    free: FreeEnds
    band: tuple[int, int] | None
    x_drop: int | None
    traceback: Traceback
    target: Target

    @property
    def limited(self) -> bool:
        """Whether not all cells are visited."""
        return self.band is not None or self.x_drop is not None

    def encode(self, sequences: Sequence[Letters], what: str) -> CodeList:
        """Codes of sequences.

        Parameters
        ----------
        sequences
            Letters of the matrix.
        what
            What they are called in errors.
        """
        return encode_list(self.scoring, sequences, what)

    def pair(self, query: Letters, target: Letters) -> PairBatch:
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
        if self.limited:
            pairs = range(len(batch))
            found = [self._rows(batch.queries[k], batch.targets[k]).score().score for k in pairs]
            return np.array(found, np.int64)
        return score_pair_codes(batch, self.scoring, self.free, self.target, progress)

    def align_codes(
        self, batch: PairBatch, progress: Callable[[int], None] = ignore_progress
    ) -> list[Alignment]:
        """Alignments of pairs.

        Parameters
        ----------
        batch, progress
            As for `score_codes`.
        """
        pairs = range(len(batch))
        if self.limited:
            return [self._align_rows(batch.queries[k], batch.targets[k]) for k in pairs]
        if self.traceback == "auto":
            return align_pair_codes(batch, self.scoring, self.free, self.target, progress)
        return [self._align_one(batch.only(np.array([k])), progress) for k in pairs]

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
        return score_many_codes(query, targets, self.scoring, self.free, self.target, progress)

    def align_many(
        self, query: NDArray[np.uint8], targets: CodeList, progress: Callable[[int], None] = ignore_progress
    ) -> list[Alignment]:
        """Alignments of one query with each of many targets.

        Parameters
        ----------
        query, targets, progress
            As for `score_many`.
        """
        if self.limited or self.traceback != "auto":
            return self.align_codes(against(query, targets), progress)
        return align_many_codes(query, targets, self.scoring, self.free, self.target, progress)

    def _align_one(self, batch: PairBatch, progress: Callable[[int], None]) -> Alignment:
        some = bool(batch.cells[0])
        if self.traceback == "linear" and some:
            return align_long_pair(batch, self.scoring, self.free, self.target, progress)
        needed = needs_bytes(batch, self.scoring, self.free) if some else 0
        _check_bytes(
            needed, "traceback='full'", "traceback='linear' needs memory for the edges of tiles alone"
        )
        return align_batch(batch, self.scoring, self.free, self.target, progress, tiled=False)[0]

    def _rows(self, query: NDArray[np.uint8], target: NDArray[np.uint8]) -> RowSweep:
        return row_sweep(
            query,
            target,
            self.scoring.matrix.scores,
            gap_open=self.scoring.gap_open,
            gap_extend=self.scoring.gap_extend,
            mode=self.mode,
            free_ends=("target_start", "target_end") if self.free_ends is None else self.free_ends,
            band=self.band,
            x_drop=self.x_drop,
            interpreted=self.target.name == "reference",
        )

    def _align_rows(self, query: NDArray[np.uint8], target: NDArray[np.uint8]) -> Alignment:
        rows = self._rows(query, target)
        if self.x_drop is None:
            _check_bytes(rows.direction_bytes(), "this band", "a narrower one needs less")
        path = rows.align()
        ends = (path.query_end, path.target_end)
        return make_alignment(query, target, self.scoring, path.score, *ends, path.runs)


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
        if mode != "extension" or not isinstance(x_drop, int | np.integer) or x_drop < 0:
            found = f"{x_drop!r} in mode {mode!r}"
            raise InvalidInput(
                "x_drop", found=found, expected="a whole number, 0 or more, in mode 'extension'"
            )
        x_drop = min(int(x_drop), _FAR)
    return Aligner(
        scoring=scoring,
        mode=mode,
        free_ends=named,
        free=free,
        band=band,
        x_drop=x_drop,
        traceback=traceback,
        target=choose_target(device, threads),
    )


def _limits_of(band: Any) -> tuple[int, int] | None:
    """The two limits of a band, held where no sequence reaches them."""
    if band is None:
        return None
    limits = (-band, band) if isinstance(band, int | np.integer) else band
    whole = isinstance(limits, tuple | list) and all(isinstance(limit, int | np.integer) for limit in limits)
    if not whole or len(limits) != 2 or limits[0] > limits[1]:
        raise InvalidInput(
            "band", found=repr(band), expected="a whole number, 0 or more, or two limits, the lower one first"
        )
    low, high = (min(max(int(limit), -_FAR), _FAR) for limit in limits)
    return low, high
