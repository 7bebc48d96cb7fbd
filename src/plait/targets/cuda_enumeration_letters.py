"""The two data layouts of the exhaustive enumeration, and how symbols are compared in each.

`ByteLetters`
    One byte per symbol, holding its mask: serves IUPAC codes, and texts, ends and fragments of any length.
`PackedLetters`
    Two bits per symbol, for A, C, G and T alone. A text is a record of 32-bit words: the numbers of its
    prefix and suffix and its length, then its symbols. With at most 32 prefixes and 32 suffixes and 56
    symbols these are the published 16 bytes (5, 5 and 6 bits and 112); longer records have wider fields.

Both say in the same words what the kernels ask (`text_of`, `prefix_run`, ...).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type_of, shared

__all__ = [
    "BYTE_ENTRY",
    "MOST",
    "PACKED_ENTRY",
    "ByteLetters",
    "Fragments",
    "PackedLetters",
    "example_letters",
    "fragment_fits",
    "note_wanted",
    "prefix_run",
    "suffix_run",
    "text_of",
    "word_of",
]

#: Most N symbols: 2 bits for each stand in one 32-bit word, and a byte for each in three.
MOST = 10
#: Numbers in an entry of a list: the wanted codes, or three words of wanted masks; then the ways.
PACKED_ENTRY, BYTE_ENTRY = 2, 4


class Fragments(NamedTuple):
    """Distinct fragments, choice by choice, shortest first; the last choice is to have none.

    Attributes
    ----------
    first
        int32 (choices + 1,): fragments ``first[f]`` to ``first[f + 1]`` belong to choice f.
    start, length
        int32 (n,): a fragment is ``symbols[start:start + length]`` of the fragment symbols.
    ways
        int32 (n,): in how many ways it is cut from its D.
    """

    first: Any
    start: Any
    length: Any
    ways: Any


@shared
def word_of(spread: Any, string: Any, n: Any, word: Any) -> Any:
    """One-hot bytes of an N string: its last four symbols in word 0, the four before in word 1, and so on.

    Parameters
    ----------
    spread
        int32 (256,): the four bytes of every four symbols, the last symbol in the lowest byte.
    string
        Its number: symbol k is ``string >> 2 * k & 3``.
    n
        Symbols in it.
    word
        0, 1 or 2. Where the string has fewer symbols, bytes are 0.
    """
    last = n - 4 * word
    if last <= 0:
        return np.int32(0)
    if last >= 4:
        return spread[(string >> (2 * last - 8)) & 255]
    made = spread[(string << (8 - 2 * last)) & 255]
    return np.int32(made & ((1 << (8 * last)) - 1))


@shared
def piece(words: Any, first: Any, bit: Any, bits: Any) -> Any:
    """Up to 32 bits from bit `bit` after word `first`; two words are read."""
    at = first + (bit >> 5)
    both = np.int64(words[at]) | (np.int64(words[at + 1]) << 32)
    return (both >> (bit & 31)) & ((1 << bits) - 1)


class ByteLetters(NamedTuple):
    """Texts and germline parts, one mask per byte.

    Attributes
    ----------
    symbols
        uint8 (total,).
    start
        int64 (texts,).
    length, prefix, suffix
        int32 (texts,).
    prefix_symbols, suffix_symbols
        uint8 (n, width): suffixes last symbol first.
    prefix_length, suffix_length
        int32 (n,).
    fragment_symbols
        uint8 (m,).
    allowed
        uint8 (suffixes, choices): which choices of D a suffix may follow.
    """

    symbols: Any
    start: Any
    length: Any
    prefix: Any
    suffix: Any
    prefix_symbols: Any
    prefix_length: Any
    suffix_symbols: Any
    suffix_length: Any
    fragment_symbols: Any
    allowed: Any


class PackedLetters(NamedTuple):
    """Texts and germline parts, 2 bits a symbol: A=0, T=1, G=2, C=3.

    Attributes
    ----------
    records
        uint32 (texts * record_words + 2,): the bits of a text from the lowest on.
    record_words
        Words of a record.
    field_bits
        Bits of the number of the prefix, and of that of the suffix.
    length_bits
        Bits of the length.
    prefix_words, suffix_words
        uint32: `end_words` for each end, suffixes last symbol first; two more at the end.
    prefix_length, suffix_length
        int32 (n,).
    end_words
        Words of an end.
    fragment_words
        uint32 (m,): fragment symbols, and two words more.
    allowed
        uint8 (suffixes, choices): which choices of D a suffix may follow.
    """

    records: Any
    record_words: Any
    field_bits: Any
    length_bits: Any
    prefix_words: Any
    prefix_length: Any
    suffix_words: Any
    suffix_length: Any
    end_words: Any
    fragment_words: Any
    allowed: Any


def _byte_text_of(letters: Any, item: Any) -> Any:
    return letters.length[item], letters.prefix[item], letters.suffix[item]


def _byte_prefix_run(letters: Any, item: Any, length: Any, prefix: Any) -> Any:
    first, kept = letters.start[item], 0
    longest = min(length, letters.prefix_length[prefix])
    while kept < longest and (letters.symbols[first + kept] & letters.prefix_symbols[prefix, kept]) != 0:
        kept += 1
    return kept


def _byte_suffix_run(letters: Any, item: Any, length: Any, suffix: Any) -> Any:
    end, kept = letters.start[item] + length - 1, 0
    longest = min(length, letters.suffix_length[suffix])
    while kept < longest and (letters.symbols[end - kept] & letters.suffix_symbols[suffix, kept]) != 0:
        kept += 1
    return kept


def _byte_fragment_fits(letters: Any, item: Any, a: Any, start: Any, size: Any) -> Any:
    first = letters.start[item] + a
    for k in range(size):  # noqa: SIM110  # compiled code has no all()
        if (letters.symbols[first + k] & letters.fragment_symbols[start + k]) == 0:
            return False
    return True


def _byte_note_wanted(
    letters: Any, item: Any, v: Any, n1: Any, b: Any, n2: Any, ways: Any, lists: Any, entry: Any
) -> None:
    first, n = letters.start[item], n1 + n2
    for word in range(3):
        masks = np.int64(0)
        for place in range(min(4, n - 4 * word)):
            k = n - 1 - 4 * word - place
            at = v + k if k < n1 else b + k - n1
            masks |= np.int64(letters.symbols[first + at]) << (8 * place)
        lists[entry + word] = masks
    lists[entry + 3] = ways


@shared
def text_piece(letters: Any, item: Any, at: Any, symbols: Any) -> Any:
    """Up to 16 symbols of a packed text."""
    header = 2 * letters.field_bits + letters.length_bits
    return piece(letters.records, item * letters.record_words, header + 2 * at, 2 * symbols)


def _packed_text_of(letters: Any, item: Any) -> Any:
    first, bits = item * letters.record_words, letters.field_bits
    prefix = piece(letters.records, first, 0, bits)
    suffix = piece(letters.records, first, bits, bits)
    return piece(letters.records, first, 2 * bits, letters.length_bits), prefix, suffix


def _packed_prefix_run(letters: Any, item: Any, length: Any, prefix: Any) -> Any:
    longest, kept = min(length, letters.prefix_length[prefix]), 0
    end = prefix * letters.end_words
    while kept < longest and text_piece(letters, item, kept, 1) == piece(
        letters.prefix_words, end, 2 * kept, 2
    ):
        kept += 1
    return kept


def _packed_suffix_run(letters: Any, item: Any, length: Any, suffix: Any) -> Any:
    longest, kept = min(length, letters.suffix_length[suffix]), 0
    end = suffix * letters.end_words
    while kept < longest and text_piece(letters, item, length - 1 - kept, 1) == piece(
        letters.suffix_words, end, 2 * kept, 2
    ):
        kept += 1
    return kept


def _packed_fragment_fits(letters: Any, item: Any, a: Any, start: Any, size: Any) -> Any:
    for k in range(0, size, 16):
        some = min(16, size - k)
        if text_piece(letters, item, a + k, some) != piece(
            letters.fragment_words, 0, 2 * (start + k), 2 * some
        ):
            return False
    return True


def _packed_note_wanted(
    letters: Any, item: Any, v: Any, n1: Any, b: Any, n2: Any, ways: Any, lists: Any, entry: Any
) -> None:
    wanted = text_piece(letters, item, v, n1) | (text_piece(letters, item, b, n2) << (2 * n1))
    lists[entry] = wanted
    lists[entry + 1] = ways


#: Length of a text, and the numbers of its prefix and its suffix: ``(letters, item)``.
text_of = by_type_of({ByteLetters: _byte_text_of, PackedLetters: _packed_text_of})
#: Symbols at the start of a text that are those of a prefix, up to the first mismatch:
#: ``(letters, item, length, prefix)``.
prefix_run = by_type_of({ByteLetters: _byte_prefix_run, PackedLetters: _packed_prefix_run})
#: Symbols at the end of a text that are those of a suffix, from the end to the first mismatch:
#: ``(letters, item, length, suffix)``.
suffix_run = by_type_of({ByteLetters: _byte_suffix_run, PackedLetters: _packed_suffix_run})
#: Whether a fragment stands at `a` in a text, up to the first mismatch: ``(letters, item, a, start, size)``.
fragment_fits = by_type_of({ByteLetters: _byte_fragment_fits, PackedLetters: _packed_fragment_fits})
#: Write down the N string text[v:v + n1) + text[b:b + n2), and in how many ways it is asked for:
#: ``(letters, item, v, n1, b, n2, ways, lists, entry)``.
note_wanted = by_type_of({ByteLetters: _byte_note_wanted, PackedLetters: _packed_note_wanted})


def example_letters() -> list[tuple[Any, Fragments]]:
    """Values of both layouts, for their types."""
    one, masks = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    table, words = np.zeros((1, 1), np.uint8), np.zeros(2, np.uint32)
    fragments = Fragments(one, one, one, one)
    coded = ByteLetters(masks, np.zeros(1, np.int64), one, one, one, table, one, table, one, masks, table)
    packed = PackedLetters(words, 4, 5, 6, words, one, words, one, 1, words, table)
    return [(coded, fragments), (packed, fragments)]
