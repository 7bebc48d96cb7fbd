"""A run over the pairs of files: batches aligned ahead of the one that is written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, groupby
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Aligner
from plait.align.codes import PairBatch
from plait.align.file_pairs import FilePairs, PairStretch, batches_of, codes_of
from plait.align.many import align_many_codes, score_many_codes
from plait.align.pairs import AlignedPair
from plait.align.results import Alignment
from plait.align.statistics import KarlinAltschul
from plait.align.table_writers import PairTableWriter
from plait.align.writers import AlignmentWriter
from plait.errors import InvalidInput, PlaitError, Unsupported
from plait.executors.local import LocalExecutor

__all__ = ["AlignProgress", "FileRun", "band_width"]

#: Parts of a batch for each thread, where pairs are aligned one by one.
_PARTS_PER_THREAD: Final = 4
#: Targets from which a query is worth a call of its own.
_FEWEST_TARGETS: Final = 16


@dataclass(frozen=True, slots=True)
class AlignProgress:
    """How far a run is.

    Attributes
    ----------
    cells, total_cells
        Cells visited, and cells of all pairs.
    """

    cells: int
    total_cells: int


class _Stopped(Exception):
    """Nobody waits for the results any more."""


class _Meter:
    """Counts cells for several threads, and ends their work where it can be ended."""

    def __init__(self, total: int, progress: Callable[[AlignProgress], None] | None) -> None:
        self._lock = Lock()
        self._total = total
        self._progress = progress
        self._cells = 0
        self.stopped = False

    def add(self, cells: int) -> None:
        if self.stopped:
            raise _Stopped
        with self._lock:
            # Tiles that an alignment passes through are visited twice.
            self._cells = min(self._cells + cells, self._total)
            if self._progress is not None:
                self._progress(AlignProgress(self._cells, self._total))


_Batch = list[PairStretch]


class _Results(NamedTuple):
    """Scores of pairs, and their alignments where those are asked for."""

    scores: list[int]
    alignments: Sequence[Alignment | None]


def _scores_alone(scores: NDArray[np.int64]) -> _Results:
    return _Results(scores.tolist(), [None] * len(scores))


def _with_scores(alignments: list[Alignment]) -> _Results:
    return _Results([alignment.score for alignment in alignments], alignments)


def _joined(parts: list[_Results]) -> _Results:
    if len(parts) == 1:
        return parts[0]
    scores, alignments = zip(*parts, strict=True)
    return _Results(list(chain.from_iterable(scores)), list(chain.from_iterable(alignments)))


def _parts(batch: _Batch) -> Iterator[_Batch]:
    """The stretches in which one query meets enough targets each by itself, the others together."""
    for alone, stretches in groupby(batch, lambda s: s.has_one_query and len(s) >= _FEWEST_TARGETS):
        if alone:
            yield from ([stretch] for stretch in stretches)
        else:
            yield list(stretches)


def band_width(aligner: Aligner) -> int | None:
    """Columns of a row that are visited; None if there is no band."""
    return None if aligner.band is None else max(aligner.band[1] - aligner.band[0] + 1, 0)


class FileRun:
    """Everything that is fixed for one run.

    Parameters
    ----------
    aligner
        How to align.
    names
        Columns of a table; empty for other formats.
    scores_only
        Whether scores are all that is asked for.
    statistics
        For bit scores and E-values, if they are asked for.
    cells
        Cells of all pairs.
    progress
        Called often, from several threads.
    """

    def __init__(
        self,
        aligner: Aligner,
        names: Sequence[str],
        *,
        scores_only: bool,
        statistics: KarlinAltschul | None,
        cells: int,
        progress: Callable[[AlignProgress], None] | None,
    ) -> None:
        self._aligner = aligner
        self._names = names
        self._scores_only = scores_only
        self._statistics = statistics
        self._meter = _Meter(cells, progress)
        self._executor = LocalExecutor(aligner.target.tile_steps().threads)

    def write(self, files: FilePairs, writer: AlignmentWriter) -> None:
        """Align all pairs and write what is found, in order.

        Parameters
        ----------
        files
            The pairs.
        writer
            Takes them.

        Raises
        ------
        InvalidInput, Unsupported
            If a pair cannot be aligned; it is named.
        """
        batches = batches_of(files.stretches(), width=band_width(self._aligner))
        with closing(self._ahead(batches)) as found:
            for batch, results in found:
                first = 0
                for stretch in batch:
                    rows = slice(first, first + len(stretch))
                    own = _Results(results.scores[rows], results.alignments[rows])
                    self._write_stretch(stretch, own, writer)
                    first += len(stretch)

    def _ahead(self, batches: Iterator[_Batch]) -> Generator[tuple[_Batch, _Results], None, None]:
        """Results of batches; the next batch is worked on while the caller writes the last one."""
        with ThreadPoolExecutor(1, thread_name_prefix="plait-align") as pool:
            try:
                under_way: tuple[_Batch, Future[_Results]] | None = None
                for batch in batches:
                    following = batch, pool.submit(self._compute, batch)
                    if under_way is not None:
                        yield under_way[0], under_way[1].result()
                    under_way = following
                if under_way is not None:
                    yield under_way[0], under_way[1].result()
            finally:
                # After Ctrl-C the pool waits for its work, which may be one pair of a million residues each.
                self._meter.stopped = True

    def _compute(self, batch: _Batch) -> _Results:
        try:
            if self._aligner.limited or self._aligner.traceback != "auto":
                return self._align(codes_of(batch))
            return _joined([self._align_part(part) for part in _parts(batch)])
        except PlaitError:
            self._name_the_pair(batch)
            raise

    def _align_part(self, part: _Batch) -> _Results:
        if len(part) > 1 or not part[0].has_one_query:
            return self._align(codes_of(part))
        query = part[0].queries.codes[int(part[0].query_rows[0])]
        targets = part[0].targets.codes.between(*part[0].target_range)
        how = self._aligner.scoring, self._aligner.free, self._aligner.target, self._meter.add
        if self._scores_only:
            return _scores_alone(score_many_codes(query, targets, *how))
        return _with_scores(align_many_codes(query, targets, *how))

    def _align(self, codes: PairBatch) -> _Results:
        if self._aligner.limited:
            return self._align_one_by_one(codes)
        if self._scores_only:
            return _scores_alone(self._aligner.score_codes(codes, self._meter.add))
        return _with_scores(self._aligner.align_codes(codes, self._meter.add))

    def _align_one_by_one(self, codes: PairBatch) -> _Results:
        """Bands and X-drop have no schedule for many pairs: parts of the batch side by side."""
        width = band_width(self._aligner)

        def part(rows: NDArray[np.int64]) -> _Results:
            own = codes.only(rows)
            if self._scores_only:
                found = _scores_alone(self._aligner.score_codes(own))
            else:
                found = _with_scores(self._aligner.align_codes(own))
            columns = own.targets.sizes if width is None else np.minimum(own.targets.sizes, width)
            self._meter.add(int(own.queries.sizes @ columns))
            return found

        count = min(len(codes), _PARTS_PER_THREAD * self._executor.threads)
        parts = np.array_split(np.arange(len(codes)), count)
        return _joined(list(self._executor.map(part, parts)))

    def _name_the_pair(self, batch: _Batch) -> None:
        """Raise the error of the first pair that cannot be aligned, with its names."""
        codes = codes_of(batch)
        pairs = (
            (stretch.queries.sequences.names[i], stretch.targets.sequences.names[j])
            for stretch in batch
            for i, j in stretch.rows()
        )
        for k, (query, target) in enumerate(pairs):
            try:
                self._align(codes.only(np.array([k])))
            except Unsupported as error:
                raise Unsupported(f"{query} and {target}: {error.what}", why=error.why) from error
            except InvalidInput as error:
                what = f"{error.what} for {query} and {target}"
                raise InvalidInput(
                    what, found=error.found, expected=error.expected, hint=error.hint
                ) from error

    def _write_stretch(self, stretch: PairStretch, results: _Results, writer: AlignmentWriter) -> None:
        bits: Sequence[float | None] = [None] * len(stretch)
        evalues = bits
        if self._statistics is not None:
            bits = self._statistics.bit_score(results.scores).tolist()
            evalues = self._statistics.evalue(results.scores, *stretch.sizes).tolist()
        if self._scores_only and isinstance(writer, PairTableWriter):
            writer.write_columns(self._score_columns(stretch, results.scores, bits, evalues))
            return
        queries, targets = stretch.queries.sequences, stretch.targets.sequences
        row, query = -1, b""
        facts = zip(stretch.rows(), *results, bits, evalues, strict=True)
        for (i, j), score, alignment, bit_score, evalue in facts:
            if i != row:
                row, query = i, queries.sequence(i)
            writer.write(
                AlignedPair(
                    query_name=queries.names[i],
                    target_name=targets.names[j],
                    query=query,
                    target=targets.sequence(j),
                    score=score,
                    alignment=alignment,
                    mode=self._aligner.mode,
                    bit_score=bit_score,
                    evalue=evalue,
                )
            )

    def _score_columns(
        self,
        stretch: PairStretch,
        scores: Sequence[int],
        bits: Sequence[float | None],
        evalues: Sequence[float | None],
    ) -> list[Sequence[object]]:
        """The columns that need no alignment, of all pairs at once: ten times faster than pair by pair."""
        queries, targets = stretch.queries.sequences.names, stretch.targets.sequences.names
        makers: dict[str, Callable[[], Sequence[object]]] = {
            "query": lambda: [queries[i] for i in stretch.query_rows.tolist()],
            "target": lambda: [targets[j] for j in stretch.target_rows.tolist()],
            "score": lambda: scores,
            "bit_score": lambda: bits,
            "evalue": lambda: evalues,
            "query_length": lambda: stretch.sizes[0].tolist(),
            "target_length": lambda: stretch.sizes[1].tolist(),
            "mode": lambda: [self._aligner.mode] * len(stretch),
        }
        return [makers[name]() for name in self._names]
