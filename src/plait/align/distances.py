"""Edit and Hamming distances of lists of pairs, of any letters.

A module of its own: letters are compared as they are, without a matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.align.scoring import free_ends_of
from plait.align.settings import FreeEnd, Mode
from plait.devices.target import over_threads, resolve, stretches
from plait.dp.bitparallel.edit_lists import EDIT_LIST
from plait.dp.bitparallel.edits import edit_batch, edit_bytes
from plait.dp.pairs.lists import PairList
from plait.errors import InvalidInput, Unsupported, whole
from plait.lang.compile import kernel, shared

#: Bytes for one pair.
_MOST_BYTES = 1 << 33
#: Letters whose differences a byte counts, and fewest pairs of a thread.
_COUNTED: Final = 192
_FEWEST_PAIRS: Final = 256


def _joined(what: str, sequences: Iterable[str | bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The letters of texts, one after the other, and how many each has."""
    expected = "several texts, each bytes or an ASCII str"
    if isinstance(sequences, str | bytes) or not isinstance(sequences, Iterable):
        raise InvalidInput(what, found=f"one {type(sequences).__name__}", expected=expected)
    texts: list[Any] = list(sequences)
    kinds = set(map(type, texts))
    # All at once takes a tenth of the time.
    whole = "".join(texts) if kinds == {str} else ""
    if kinds == {str} and whole.isascii():
        letters = whole.encode()
    else:
        letters = b"".join(texts if kinds <= {bytes} else _encoded(what, texts, expected))
    return np.frombuffer(letters, np.uint8), np.fromiter(map(len, texts), np.int64, len(texts))


def _encoded(what: str, texts: list[Any], expected: str) -> Iterator[bytes]:
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str | bytes):
            found = f"a {type(text).__name__} as number {number}"
            raise InvalidInput(what, found=found, expected=expected)
        if isinstance(text, str) and not text.isascii():
            letter = next(letter for letter in text if not letter.isascii())
            raise InvalidInput(what, found=f"the letter {letter!r} in number {number}", expected=expected)
        yield text.encode() if isinstance(text, str) else text


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where texts of so many letters begin, and the end of the last."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _checked_limit(at_most: int | None) -> None:
    if at_most is not None:
        whole("at_most", at_most)


def edit_distances(
    queries: Iterable[str | bytes],
    targets: Iterable[str | bytes],
    *,
    mode: Mode = "global",
    free_ends: Sequence[FreeEnd] | None = None,
    at_most: int | None = None,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Fewest letters to replace, insert and delete: the first query with the first target, and so on.

    The distance of Levenshtein; with free ends, what is left out costs nothing. `align_pairs` gives the
    alignments, with scores of 0 and -1 and gap costs of 1.

    Parameters
    ----------
    queries, targets
        Texts of any bytes, as many of each; letters are the same if their bytes are, so that case matters.
    mode, free_ends
        ``"global"``; ``"semiglobal"``, by default with both ends of the target left out; or ``"overlap"``: as
        for `align`.
    at_most
        Distances above it are not worked out, which takes less time; by default all are.
    threads
        Threads; by default those of the settings.

    Returns
    -------
    NDArray[np.int64]
        Shape (pairs,); -1 where the distance is more than `at_most`.

    Raises
    ------
    InvalidInput
        If a setting is wrong, the numbers of texts differ, or more than 32 different letters occur.
    Unsupported
        If a pair is too long; the bytes that it needs are named.

    Examples
    --------
    >>> edit_distances(["CATTATAG", "GATTACA"], ["CATATATC", "CATTTTACA"]).tolist()
    [3, 3]
    >>> edit_distances(["TTAC", "TTAC"], ["GGTTCGG", "CCCCCCC"], mode="semiglobal", at_most=2).tolist()
    [1, -1]
    """
    (query, rows), (target, columns) = _joined("queries", queries), _joined("targets", targets)
    if rows.size != columns.size:
        found = f"{rows.size} queries and {columns.size} targets"
        raise InvalidInput("pairs", found=found, expected="as many queries as targets")
    free = free_ends_of(mode, free_ends)
    if free.anywhere:
        found, expected = repr(mode), "global, semiglobal or overlap"
        raise InvalidInput("mode", found=found, expected=expected)
    _checked_limit(at_most)
    needed = int(edit_bytes(rows, columns).max(initial=0))
    if needed > _MOST_BYTES:
        why = f"it needs {needed:,} bytes of memory, more than {_MOST_BYTES:,}"
        raise Unsupported("the distance of so long a pair", why=why)
    most = rows + columns if at_most is None else np.minimum(rows + columns, min(int(at_most), _MOST_BYTES))
    # An empty text is all gap, unless that is free.
    distances = np.where(free.query_start or free.query_end, 0, rows)
    distances = distances + np.where(free.target_start or free.target_end, 0, columns)
    distances[distances > most] = -1
    some = (rows > 0) & (columns > 0)
    if some.any():
        if not some.all():
            query, target = query[np.repeat(some, rows)], target[np.repeat(some, columns)]
        task = PairList(query, _starts(rows[some]), target, _starts(columns[some]), None, 1, 1, free)
        launched = resolve("cpu", threads).launch(EDIT_LIST, edit_batch(task, False, most[some]))
        distances[some] = launched.scores
    return distances


@shared
def count_differences(
    query: Any, query_starts: Any, target: Any, target_firsts: Any, pairs: Any, most: int, distances: Any
) -> None:
    """Letters that differ, of the pairs from the first to before the last; -1 where more than `most` do."""
    for pair in range(pairs[0], pairs[1]):
        first, last = query_starts[pair], query_starts[pair + 1]
        shift = target_firsts[pair] - first
        count = 0
        for block in range(first, last, _COUNTED):
            own = query[block : min(block + _COUNTED, last)]
            other = target[block + shift : block + shift + own.size]
            few = np.uint8(0)
            for k in range(own.size):
                few = np.uint8(few + np.uint8(own[k] != other[k]))
            count += int(few)
            if count > most:
                break
        distances[pair] = count if count <= most else -1


def hamming_distances(
    queries: Iterable[str | bytes],
    targets: Iterable[str | bytes],
    *,
    at_most: int | None = None,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Letters that differ between texts of one length: the first query with the first target, and so on.

    Parameters
    ----------
    queries
        Texts of any bytes; letters are the same if their bytes are, so that case matters.
    targets
        As many, each as long as its query; or one text, with which all are compared.
    at_most
        Distances above it are not worked out, which takes less time; by default all are.
    threads
        Threads; by default those of the settings.

    Returns
    -------
    NDArray[np.int64]
        Shape (pairs,); -1 where the distance is more than `at_most`.

    Raises
    ------
    InvalidInput
        If a setting is wrong, or the numbers or the lengths of texts differ; the pair is named.

    Examples
    --------
    >>> hamming_distances(["GATTACA", "CASSLG"], ["CATTATA", "CASSQG"]).tolist()
    [2, 1]
    >>> hamming_distances(["ACGT", "AGGT", "TTTT"], "ACGT", at_most=2).tolist()
    [0, 1, -1]
    """
    single = isinstance(targets, str | bytes)
    query, sizes = _joined("queries", queries)
    target, lengths = _joined("targets", [targets] if isinstance(targets, str | bytes) else targets)
    if not single and sizes.size != lengths.size:
        found = f"{sizes.size} queries and {lengths.size} targets"
        raise InvalidInput("pairs", found=found, expected="as many queries as targets, or one target")
    _checked_limit(at_most)
    unequal = np.flatnonzero(sizes != lengths)
    if unequal.size:
        k = int(unequal[0])
        found = f"{sizes[k]} and {lengths[0 if single else k]} letters in number {k + 1}"
        raise InvalidInput("pairs", found=found, expected="texts of the same length")
    starts = _starts(sizes)
    places = np.zeros(sizes.size, np.int64) if single else starts[:-1]
    distances = np.zeros(sizes.size, np.int64)
    most, workers = (
        query.size if at_most is None else int(min(at_most, query.size)),
        resolve("cpu", threads).threads,
    )

    def run(pairs: tuple[int, int]) -> None:
        differences_kernel(query, starts, target, places, pairs, most, distances)

    over_threads(workers, stretches(workers, sizes.size, _FEWEST_PAIRS), run)
    return distances


differences_kernel = kernel(count_differences)
