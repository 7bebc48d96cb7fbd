"""The neighbourhood index: every place of a text, sorted by its seed and the letters behind it.

A seed is `seed_length` letters, and its neighbourhood the 16 letters behind it. ``start[seed]`` is where the
entries of a seed begin; an entry is an int64, the neighbourhood less 2^31 in its upper half and the place in
its lower, and those of a seed are sorted. So the places of any word, of one letter or of up to `seed_length`
+ 16, are consecutive: a shorter word than a seed is a range of seeds. Each letter A, C, G or T has an entry;
what follows behind the end of a contig, or in place of another letter, counts as A, which gives more places,
never fewer.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import over_threads
from plait.errors import MOST_THREADS, FormatError, InvalidInput, whole
from plait.formats.atomic import AtomicFile, check_not_input, output_errors
from plait.formats.files import check_readable, fast_zlib, parse_json
from plait.lang.compile import kernel, shared
from plait.mapping.genome import MARGIN_WORDS, PLANES, Genome, References, read_genome
from plait.settings import thread_count

#: Letters of a neighbourhood.
NEIGHBOURS: Final = 16
SHORTEST_SEED: Final = 4
LONGEST_SEED: Final = 13
#: Entries of a seed up to which they are sorted one by one.
_FEW: Final = 16
#: Entries that are compared one by one to find where a neighbourhood begins or ends.
_COUNTED: Final = 64
_HALF: Final = 1 << 31
_SHIFTED: Final = 1 << 16

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"\x89plaitix"
_FIXED: Final = struct.Struct("<8sIIQ")
_ALIGNMENT: Final = 4096
#: Bytes that a checksum is of.
_BLOCK_BYTES: Final = 1 << 24
_AGAIN: Final = "build it again with 'plait index'"
_EXPECTED: Final = "an index made by 'plait index'"
_MOST_HEADER: Final = 1 << 30

_Path = str | os.PathLike[str]


class IndexArrays(NamedTuple):
    """What is read: `start` uint32 (4^u + 1,), `entries` int64, `words` int64 (words, 3), seed length."""

    start: Any
    entries: Any
    words: Any
    u: int


@kernel
def count_kernel(words: Any, u: int, first: int, last: int, start: Any) -> None:
    """Count the places of the seeds `first` to `last`, not included, in ``start[seed + 1]``, uint32."""
    mask = (1 << (2 * u)) - 1
    key = 0
    for word in range(words.shape[0] - 1):
        low, high = words[word, 0], words[word, 1]
        # A place is known when the last letter of its seed is: that many letters later.
        others = _shifted(words, word, 2, u - 1)
        for bit in range(64):
            key = ((key << 2) | ((low >> bit) & 1) | (((high >> bit) & 1) << 1)) & mask
            if not (others >> bit) & 1 and first <= key < last:
                start[key + 1] += np.uint32(1)


@shared
def _shifted(words: Any, word: int, plane: int, back: int) -> Any:
    """A plane's 64 letters that end `back` letters, 0 < back < 64, before a word's; ones before all."""
    before = words[word - 1, plane] if word > 0 else np.int64(-1)
    return (words[word, plane] << back) | ((before >> (64 - back)) & ~(-1 << back))


@kernel
def place_kernel(words: Any, u: int, first: int, last: int, start: Any, entries: Any) -> None:
    """Write the entries of the seeds `first` to `last`, exclusive; ``start[seed]`` becomes where they end."""
    behind = u + NEIGHBOURS - 1
    mask = (1 << (2 * (behind + 1))) - 1
    window = 0
    for word in range(words.shape[0] - 1):
        low, high = words[word, 0], words[word, 1]
        others = _shifted(words, word, 2, behind)
        place = 64 * word - behind
        for bit in range(64):
            window = ((window << 2) | ((low >> bit) & 1) | (((high >> bit) & 1) << 1)) & mask
            key = window >> 32
            if not (others >> bit) & 1 and first <= key < last:
                at = np.int64(start[key])
                start[key] = np.uint32(at + 1)
                entries[at] = (((window & 0xFFFFFFFF) - _HALF) << 32) | (place + bit)


@kernel
def sort_kernel(start: Any, first: int, last: int, entries: Any, stack: Any) -> None:
    """Sort the entries of each seed from `first` to `last`, exclusive; `stack` int64 (130, 3) is memory."""
    for key in range(first, last):
        begin, end = np.int64(start[key]), np.int64(start[key + 1])
        if end - begin > 1:
            sort_entries(entries, begin, end, stack)


@shared
def sort_entries(entries: Any, begin: Any, end: Any, stack: Any) -> None:
    """Sort a stretch of int64 in place: by bits from the highest on, few of them by insertion."""
    stack[0, 0], stack[0, 1], stack[0, 2] = begin, end, 63
    top = 1
    while top > 0:
        top -= 1
        low, high, bit = stack[top, 0], stack[top, 1], stack[top, 2]
        if high - low <= _FEW or bit < 0:
            for i in range(low + 1, high):
                value = entries[i]
                j = i - 1
                while j >= low and entries[j] > value:
                    entries[j + 1] = entries[j]
                    j -= 1
                entries[j + 1] = value
            continue
        # The sign is set in the smaller half, any other bit in the larger one.
        small = 1 if bit == 63 else 0
        i, j = low, high
        while i < j:
            if (entries[i] >> bit) & 1 == small:
                i += 1
            else:
                j -= 1
                entries[i], entries[j] = entries[j], entries[i]
        stack[top, 0], stack[top, 1], stack[top, 2] = low, i, bit - 1
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = i, high, bit - 1
        top += 2


@kernel
def places_kernel(entries: Any, first: int, last: int) -> int:
    """Whether (1 or 0) all places are between these, the last exclusive."""
    least, most = np.int64(first), np.int64(first)
    for k in range(entries.size):
        place = entries[k] & 0xFFFFFFFF
        least = min(least, place)
        most = max(most, place)
    return int(least >= first and most < max(last, first + 1))


@shared
def keys_of(u: int, window: Any, length: int) -> Any:
    """First and last (exclusive) seed that begins like a window's first `length` letters.

    A window is 32 letters, two bits each, the first one in the highest.
    """
    free = 2 * max(u - length, 0)
    key = (window >> (64 - 2 * u)) & ((1 << (2 * u)) - 1) & (-1 << free)
    return key, key + (1 << free)


@shared
def narrowed(arrays: Any, window: Any, length: int, first: Any, last: Any) -> Any:
    """Those entries of a window's seed that have the letters behind it, too, of `length` together."""
    more = min(length - arrays.u, NEIGHBOURS)
    if more <= 0 or first == last:
        return first, last
    near = (window >> (64 - 2 * (arrays.u + more))) & ((1 << (2 * more)) - 1)
    return neighbourhood_range(arrays.entries, first, last, near, more)


@shared
def entries_of(arrays: Any, window: Any, length: int) -> Any:
    """First and last (exclusive) entry of a window's first `length` letters, all of them known."""
    low, high = keys_of(arrays.u, window, length)
    return narrowed(arrays, window, length, np.int64(arrays.start[low]), np.int64(arrays.start[high]))


@shared
def neighbourhood_range(entries: Any, first: int, last: int, near: Any, letters: int) -> Any:
    """Those of a seed's sorted entries of which the neighbourhood begins with `near`, of so many letters."""
    free = 2 * (NEIGHBOURS - letters)
    least = ((near << free) - _HALF) << 32
    # No place is as large as the lower half.
    most = ((((near + 1) << free) - 1 - _HALF) << 32) | 0xFFFFFFFF
    low = _behind_less(entries, first, last, least)
    return low, _behind_less(entries, low, last, most)


@shared
def _behind_less(entries: Any, first: int, last: int, bound: Any) -> int:
    """Behind those of some sorted entries that are less; few are counted, without a branch."""
    low, high = first, last
    while high - low > _COUNTED:
        middle = (low + high) >> 1
        if entries[middle] < bound:
            low = middle + 1
        else:
            high = middle
    # An index without a sign is not looked at, so that many are compared at a time.
    of, found = np.uint64(low), 0
    for k in range(np.uint64(high - low)):
        found += 1 if entries[of + k] < bound else 0
    return low + found


def seed_length_of(letters: int) -> int:
    """The longest seed for a text of so many letters, with a table of a byte a letter at the most."""
    length = SHORTEST_SEED
    while length < LONGEST_SEED and 4 ** (length + 2) <= letters:
        length += 1
    return length


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """A neighbourhood index of a reference, in memory or in a mapped file.

    Attributes
    ----------
    genome
        The contigs and their letters.
    arrays
        What is looked up.
    path
        The file, if it is in one.
    """

    genome: Genome
    arrays: IndexArrays
    path: str | None = None

    @classmethod
    def build(
        cls, reference: References, *, seed_length: int | None = None, threads: int | None = None
    ) -> Index:
        """Build the index of a reference.

        Parameters
        ----------
        reference
            A FASTA file, plain, gzip or zstd, or sequences by name.
        seed_length
            Letters of a seed, 4 to 13; otherwise as fits the size.
        threads
            Number of threads; otherwise ``PLAIT_THREADS``, or the processors there are.

        Returns
        -------
        Index
            An index in memory.

        Raises
        ------
        InvalidInput
            If a setting is wrong.
        FormatError
            If the file is not what it should be, or two contigs have one name.

        Examples
        --------
        >>> index = Index.build({"chr1": "ACGTTACGTA"})
        >>> index.genome.names, index.genome.letters
        (('chr1',), 10)
        """
        if seed_length is not None:
            whole("seed_length", seed_length, SHORTEST_SEED, LONGEST_SEED)
        if threads is not None:
            whole("threads", threads, 1, MOST_THREADS)
        genome = read_genome(reference)
        u = seed_length or seed_length_of(genome.letters)
        made = _built(genome.words, u, threads or thread_count())
        for array in (genome.starts, genome.lengths, genome.words, *made[:3]):
            # As those of an index file, so that kernels see one type.
            array.setflags(write=False)
        return cls(genome, made)

    @classmethod
    def open(cls, path: _Path) -> Index:
        """Open an index file: its arrays are mapped into memory once all checksums have been compared.

        Parameters
        ----------
        path
            A file made by `save`, or by ``plait index``.

        Returns
        -------
        Index
            The index.

        Raises
        ------
        FormatError
            If it is no index, one of another version, or damaged.
        """
        return _opened(path)

    def save(self, path: _Path) -> None:
        """Write the index to a file, whole or not at all.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        InvalidInput
            If the file cannot be named so.
        FormatError
            If it cannot be written.
        """
        check_not_input(path, [source for source in (self.genome.source, self.path) if source])
        _write(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Processes share the file; InvalidInput if there is none."""
        if self.path is None:
            raise InvalidInput(
                "reference",
                found="an index in memory",
                expected="the file of one, which all workers can open",
                hint="make it by plait index",
            )
        return Index.open, (os.path.abspath(self.path),)

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        arrays = self.arrays
        return int(arrays.start.nbytes + arrays.entries.nbytes + arrays.words.nbytes)


def _built(words: NDArray[np.int64], u: int, threads: int) -> IndexArrays:
    start = np.zeros(4**u + 1, np.uint32)
    # Each thread reads the whole text and has seeds of its own, so that none waits for another.
    even = [4**u * k // threads for k in range(threads + 1)]
    over_threads(threads, list(pairwise(even)), lambda own: count_kernel(words, u, *own, start))
    np.cumsum(start, out=start)
    entries = np.empty(int(start[-1]), np.int64)
    edges = np.searchsorted(start, [entries.size * k // threads for k in range(1, threads)]).tolist()
    stretches = list(pairwise([0, *edges, 4**u]))
    over_threads(threads, stretches, lambda own: place_kernel(words, u, *own, start, entries))
    # What is where a seed ends begins the next one; moved in pieces, because all of it would be a copy.
    for end in range(start.size - 1, 0, -_SHIFTED):
        first = max(end - _SHIFTED, 0)
        start[first + 1 : end + 1] = start[first:end].copy()
    start[0] = 0

    def sort(own: tuple[int, int]) -> None:
        sort_kernel(start, *own, entries, np.empty((130, 3), np.int64))

    over_threads(threads, stretches, sort)
    return IndexArrays(start, entries, words, u)


_SECTIONS: Final = ("starts", "lengths", "words", "start", "entries")
_TYPES: Final = {"starts": "<i8", "lengths": "<i8", "words": "<i8", "start": "<u4", "entries": "<i8"}


def _checksums(data: memoryview) -> list[int]:
    pieces = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)]
    return over_threads(thread_count(), pieces, fast_zlib().crc32)


def _write(index: Index, path: _Path) -> None:
    genome, arrays = index.genome, index.arrays
    held = {
        "starts": genome.starts,
        "lengths": genome.lengths,
        "words": genome.words,
        "start": arrays.start,
        "entries": arrays.entries,
    }
    content = {
        "plait": __version__,
        "seed_length": arrays.u,
        "source": genome.source,
        "digest": genome.digest,
        "names": genome.names,
        "sizes": {name: int(array.nbytes) for name, array in held.items()},
        "checksums": {name: _checksums(memoryview(array).cast("B")) for name, array in held.items()},
    }
    text = json.dumps(content, separators=(",", ":")).encode("ascii")
    with AtomicFile(path) as file, output_errors(path):
        end = file.stream.write(
            _FIXED.pack(_MAGIC, FORMAT_VERSION, fast_zlib().crc32(text), len(text)) + text
        )
        for array in held.values():
            end += file.stream.write(bytes(-end % _ALIGNMENT))
            end += file.stream.write(memoryview(array).cast("B"))


def is_index(path: _Path) -> bool:
    """Whether a file starts as an index does; `FormatError` if it is no readable file."""
    check_readable(path)
    return _head(path).startswith(_MAGIC)


def check_index(path: _Path, reference: References) -> None:
    """Check that an index file is whole, and of this reference; `FormatError` if not."""
    index = Index.open(path)
    genome = read_genome(reference)
    if index.genome.digest != genome.digest:
        raise FormatError(
            path,
            found=f"the index of another text, made from {index.genome.source}",
            expected=f"that of {genome.source}",
            hint=_AGAIN,
        )


def _head(path: _Path) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(_FIXED.size)
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected="a file to read") from error


def _opened(path: _Path) -> Index:
    status = check_readable(path)
    head = _head(path)
    if not head.startswith(_MAGIC) or len(head) < _FIXED.size:
        found = f"a file that starts with {head[:8]!r}" if head else "an empty file"
        raise FormatError(path, found=found, expected=_EXPECTED)
    _, version, checksum, size = _FIXED.unpack(head)
    if version != FORMAT_VERSION:
        raise FormatError(
            path,
            found=f"an index of format version {version}",
            expected=f"version {FORMAT_VERSION}",
            hint=_AGAIN if version < FORMAT_VERSION else f"use a newer plait, or {_AGAIN}",
        )
    with open(path, "rb") as stream:
        text = stream.read(_FIXED.size + min(size, _MOST_HEADER, status.st_size))[_FIXED.size :]
        if len(text) != size:
            raise _cut_off(path, status.st_size, _FIXED.size + size)
        if fast_zlib().crc32(text) != checksum:
            raise _damaged(path, "the header")
        facts = parse_json(text, path, expected="the header of an index")
        sizes = _sizes(path, facts)
        places, end = {}, _FIXED.size + size
        for name in _SECTIONS:
            places[name] = end + -end % _ALIGNMENT
            end = places[name] + sizes[name]
        if status.st_size != end:
            raise _cut_off(path, status.st_size, end)
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    arrays = {}
    for name in _SECTIONS:
        part = mapped[places[name] : places[name] + sizes[name]]
        if _checksums(part) != facts["checksums"].get(name):
            raise _damaged(path, f"the section {name!r}")
        arrays[name] = np.frombuffer(part, _TYPES[name])
    words = arrays["words"].reshape(-1, PLANES)
    names = tuple(facts["names"])
    genome = Genome(names, arrays["starts"], arrays["lengths"], words, facts["source"], facts["digest"])
    _check_places(path, genome, arrays, facts["seed_length"])
    seeds = IndexArrays(arrays["start"], arrays["entries"], words, facts["seed_length"])
    return Index(genome, seeds, os.fspath(path))


def _sizes(path: _Path, facts: Any) -> dict[str, int]:
    """Bytes of the sections as the header says; `FormatError` if it is not one that `_write` makes."""
    kinds = {
        "seed_length": int,
        "source": str,
        "digest": str,
        "names": list,
        "sizes": dict,
        "checksums": dict,
    }
    if not isinstance(facts, dict) or any(type(facts.get(name)) is not kind for name, kind in kinds.items()):
        raise FormatError(path, found="a header without what it should say", expected=_EXPECTED, hint=_AGAIN)
    sizes = facts["sizes"]
    good = all(type(sizes.get(name)) is int and 0 <= sizes[name] < 1 << 62 for name in _SECTIONS)
    good = good and all(sizes[name] % np.dtype(_TYPES[name]).itemsize == 0 for name in _SECTIONS)
    good = good and SHORTEST_SEED <= facts["seed_length"] <= LONGEST_SEED
    good = good and sizes["starts"] == sizes["lengths"] == 8 * len(facts["names"])
    good = (
        good and sizes["words"] % (8 * PLANES) == 0 and sizes["start"] == 4 * (4 ** facts["seed_length"] + 1)
    )
    if not good or not all(isinstance(name, str) for name in facts["names"]):
        raise FormatError(path, found="sizes that do not fit one another", expected=_EXPECTED, hint=_AGAIN)
    return dict(sizes)


def _check_places(path: _Path, genome: Genome, arrays: dict[str, Any], u: int) -> None:
    """Check that the numbers are places in what they point into; kernels use them as they are."""
    start, entries = arrays["start"], arrays["entries"]
    ends = genome.starts + genome.lengths
    good = bool(np.all(start[1:] >= start[:-1])) and start[0] == 0 and int(start[-1]) == entries.size
    good = good and bool(np.all(genome.lengths >= 0)) and bool(np.all(genome.starts[1:] > ends[:-1]))
    # Windows reach over both ends of contigs, so that there is a margin.
    margin = 64 * MARGIN_WORDS
    last = 64 * len(genome.words) - margin
    good = good and bool(np.all(genome.lengths <= last)) and bool(np.all(genome.starts <= last))
    good = good and (not ends.size or (int(genome.starts[0]) >= margin and int(ends[-1]) <= last))
    good = good and bool(places_kernel(entries, margin, last))
    if not good:
        raise _damaged(path, "its tables")


def _cut_off(path: _Path, found: int, expected: int) -> FormatError:
    return FormatError(
        path,
        found=f"{found:,} bytes",
        expected=f"{expected:,}, as its header says",
        hint=f"copy it again, or {_AGAIN}",
    )


def _damaged(path: _Path, what: str) -> FormatError:
    return FormatError(
        path,
        found=f"another checksum of {what}",
        expected="that of its header",
        hint=f"copy it again, or {_AGAIN}",
    )
