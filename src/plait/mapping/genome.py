"""A reference in bit planes: 2 bits a letter, and one that says which letters are other than A, C, G and T.

Contigs stand one behind the other, each from a multiple of 64 on, with `GAP` letters or more between them
that match nothing, so that no alignment with `MOST_ERRORS` errors or fewer reaches from one into the next.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK, shown_letter
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.fasta import NameRegister, Sequences, read_fasta
from plait.lang.compile import kernel, shared

#: Errors of a read at the most.
MOST_ERRORS: Final = 31
#: Letters of a read at the most.
LONGEST_READ: Final = 400
#: Letters between contigs: windows of alignments reach over either end by twice the errors.
GAP: Final = 4 * MOST_ERRORS + 4
#: Words of nothing before the first contig and behind the last.
MARGIN_WORDS: Final = 16
#: The code of letters that match nothing.
OTHER: Final = 4
#: Planes of a text: lower bit of a letter, upper bit, and whether it is another letter than A, C, G or T.
PLANES: Final = 3
#: Letters that 32 bits can number, with all that stands between.
_MOST_LETTERS: Final = (1 << 32) - (1 << 12)

_Path = str | os.PathLike[str]
#: A FASTA file, or sequences by name.
References = _Path | Mapping[str, str | bytes]


def _code_of_byte() -> NDArray[np.uint8]:
    table = np.full(256, OTHER, np.uint8)
    for code, mask in enumerate((1, 4, 8, 2)):
        table[mask == IUPAC_MASK] = code
    table.setflags(write=False)
    return table


#: Code of every byte: A, C, G, T (or U) as 0 to 3, so that 3 less a code is its complement. Shape (256,).
CODE_OF_BYTE: Final = _code_of_byte()


@shared
def letter_at(words: Any, at: Any) -> Any:
    """Code of a letter of a text in planes, int64 (words, 3)."""
    word, bit = at >> 6, at & 63
    if (words[word, 2] >> bit) & 1:
        return 4
    return ((words[word, 0] >> bit) & 1) | (((words[word, 1] >> bit) & 1) << 1)


@kernel
def pack_kernel(letters: Any, offsets: Any, starts: Any, table: Any, words: Any) -> None:
    """Letters uint8 of sequences into planes int64 (words, 3); `starts` are multiples of 64 letters."""
    for sequence in range(starts.size):
        word = starts[sequence] >> 6
        at, end = offsets[sequence], offsets[sequence + 1]
        while at < end:
            low = high = other = np.int64(0)
            count = min(64, end - at)
            for bit in range(count):
                code = np.int64(table[letters[at + bit]])
                low |= (code & 1) << bit
                high |= ((code >> 1) & 1) << bit
                other |= (code >> 2) << bit
            words[word, 0] = low
            words[word, 1] = high
            words[word, 2] = other if count == 64 else other | (-1 << count)
            at += 64
            word += 1


@kernel
def letters_kernel(words: Any, first: int, bytes_of: Any, out: Any) -> None:
    """Letters of a text from `first` on as bytes, as many as `out` uint8 has; `bytes_of` uint8 (5,)."""
    for k in range(out.size):
        out[k] = bytes_of[letter_at(words, first + k)]


@dataclass(frozen=True, eq=False, repr=False)
class Genome:
    """Contigs in planes.

    `words` int64 (words, 3); contig i begins at letter ``starts[i]`` of them and has ``lengths[i]`` letters,
    int64 (contigs,). `letters` are those of all contigs, `source` is where they come from. `digest` tells a
    text from another one.
    """

    names: tuple[str, ...]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    words: NDArray[np.int64]
    source: str
    digest: str

    @property
    def letters(self) -> int:
        """Letters of all contigs."""
        return int(self.lengths.sum())

    def letters_of(self, contig: int, first: int = 0, most: int = _MOST_LETTERS) -> NDArray[np.uint8]:
        """Letters of a contig from one on as bytes, at most so many; N for others than A, C, G and T."""
        out = np.empty(min(int(self.lengths[contig]) - first, most), np.uint8)
        start = int(self.starts[contig]) + first
        letters_kernel(self.words, start, np.frombuffer(b"ACGTN", np.uint8).copy(), out)
        return out


def read_genome(reference: References) -> Genome:
    """Contigs of a FASTA file, or those given by name.

    `FormatError` if a file is not what it should be, a letter is no IUPAC code, or a name is there twice;
    `Unsupported` if there are 2^32 letters or more.
    """
    names: list[str] = []
    lengths: list[NDArray[np.int64]] = []
    parts = [_nothing(MARGIN_WORDS)]
    total = MARGIN_WORDS
    for sequences in _sequences(reference):
        names += sequences.names
        lengths.append(sequences.lengths)
        widths = words_of(sequences.lengths)
        starts = 64 * (np.cumsum(widths) - widths)
        part = _nothing(int(widths.sum()))
        pack_kernel(sequences.letters, sequences.offsets, starts, CODE_OF_BYTE, part)
        parts.append(part)
        total += len(part)
        if 64 * total > _MOST_LETTERS:
            raise Unsupported("a reference of 2^32 letters or more", why="map to parts of it")
    parts.append(_nothing(MARGIN_WORDS))
    words = np.concatenate(parts)
    del parts
    all_lengths = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    widths = words_of(all_lengths)
    starts = 64 * (MARGIN_WORDS + np.cumsum(widths) - widths)
    source = "sequences in memory" if isinstance(reference, Mapping) else os.fspath(reference)
    return Genome(tuple(names), starts, all_lengths, words, source, text_digest(names, all_lengths, words))


def words_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Words of each contig with the gap behind it."""
    return (lengths + (GAP + 63)) >> 6


def text_digest(names: Iterable[str], lengths: NDArray[np.int64], words: NDArray[np.int64]) -> str:
    """What tells a reference from another: a digest of names, lengths and letters."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update("\n".join(names).encode())
    digest.update(lengths.astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(words, "<i8").data)
    return digest.hexdigest()


def _nothing(count: int) -> NDArray[np.int64]:
    words = np.zeros((count, PLANES), np.int64)
    words[:, 2] = -1
    return words


def _sequences(reference: References) -> Iterator[Sequences]:
    if isinstance(reference, Mapping):
        yield _in_memory(reference)
        return
    register = NameRegister()
    for sequences in read_fasta(reference):
        for duplicate in register.add(reference, sequences):
            raise duplicate.error("SAM and tables name contigs; rename one")
        good = IUPAC_MASK[sequences.letters] != 0
        if not good.all():
            at = int(np.argmin(good))
            record = int(np.searchsorted(sequences.offsets, at, "right")) - 1
            raise FormatError(
                reference,
                line=int(sequences.lines[record]),
                found=f"{shown_letter(sequences.letters, at)} at position "
                f"{at - int(sequences.offsets[record]) + 1:,} of {sequences.names[record]!r}",
                expected="the IUPAC letters of nucleotides",
                hint="are these proteins?",
            )
        yield sequences


def _in_memory(given: Mapping[str, str | bytes]) -> Sequences:
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in given.values()]
    letters = np.frombuffer(bytearray(b"".join(texts)), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    if letters.size and not IUPAC_MASK[letters].all():
        at = int(np.argmin(IUPAC_MASK[letters] != 0))
        name = list(given)[int(np.searchsorted(offsets, at, "right")) - 1]
        raise InvalidInput(
            f"sequence {name!r}", found=shown_letter(letters, at), expected="the IUPAC letters of nucleotides"
        )
    return Sequences(list(given), [""] * len(given), letters, offsets, np.zeros(len(given), np.int64))
