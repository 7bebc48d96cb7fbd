"""Texts, ends and D fragments brought into the layouts of the exhaustive enumeration."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from plait.errors import InvalidInput, Unsupported
from plait.schedules.chain_tables import ChainTables, Texts
from plait.targets.cuda_enumeration_letters import ByteLetters, Fragments, PackedLetters

__all__ = ["Group", "Layout", "arrange"]

#: ``"2bit"`` packs what it can and refuses the rest; ``"auto"`` gives the rest one byte per symbol.
Layout = Literal["auto", "8bit", "2bit"]

_Numbers = NDArray[Any]

#: Code of each mask in 2 bits, and -1 where there is none: A=0, T=1, G=2, C=3.
_CODE = np.full(16, -1, np.int8)
_CODE[[1, 2, 8, 4]] = range(4)
#: Codes for every byte; `_NO_CODE` where there is none.
_NO_CODE = 4
_TRANSLATION = bytes(int(_CODE[mask]) if mask < 16 and _CODE[mask] >= 0 else _NO_CODE for mask in range(256))
#: The published record: 16 bytes, with numbers of ends of 5 bits and a length of 6.
_RECORD = (5, 6, 56)
#: The wider one: its words are as many as its longest text needs.
_WIDE_RECORD = (12, 16, 236)
_WINDOW = 240


class Group(NamedTuple):
    """Texts that share a layout.

    Attributes
    ----------
    items
        int64 (n,): which texts of the batch.
    letters
        `ByteLetters` or `PackedLetters`, in host memory.
    fragments
        The D fragments.
    """

    items: NDArray[np.int64]
    letters: ByteLetters | PackedLetters
    fragments: Fragments


def arrange(tables: ChainTables, texts: Texts, layout: Layout) -> list[Group]:
    """Put every text of a batch into one of at most three groups.

    Parameters
    ----------
    tables
        The chain.
    texts
        The batch.
    layout
        Which layouts to use.

    Raises
    ------
    InvalidInput
        If there is no such layout.
    Unsupported
        If two bits a symbol are asked for, and some text, end or fragment holds ambiguity codes.
    """
    if layout not in ("auto", "8bit", "2bit"):
        raise InvalidInput("layout", found=repr(layout), expected="one of auto, 8bit, 2bit")
    parts = _fragment_masks(tables)
    fragments = _fragments(tables, parts)
    symbols = np.concatenate([*parts, np.zeros(1, np.uint8)])
    every = np.arange(texts.start.size)
    if layout == "8bit":
        return [Group(every, _bytes(tables, texts, symbols), fragments)]
    # With enough behind the last text for a window as long as the longest.
    codes = np.frombuffer(texts.symbols.tobytes().translate(_TRANSLATION) + bytes(_WINDOW), np.uint8)
    fits = _fit(tables, texts, symbols, codes)
    short = fits & (texts.length <= _RECORD[2])
    if max(_numbered(ends[short])[0].size for ends in (texts.prefix, texts.suffix)) > 1 << _RECORD[0]:
        short[:] = False
    long = fits & ~short
    if layout == "2bit" and not fits.all():
        raise Unsupported(
            f"{int((~fits).sum())} texts in the 2-bit layout",
            why="2 bits hold A, C, G or T: ambiguity codes in a text or a gene need the 8-bit layout",
        )
    groups = [
        Group(every[chosen], _packed(tables, _take(texts, every[chosen]), symbols, codes, record), fragments)
        for chosen, record in ((short, _RECORD), (long, _WIDE_RECORD))
        if chosen.any()
    ]
    if not fits.all():
        rest = every[~fits]
        groups.append(Group(rest, _bytes(tables, _take(texts, rest), symbols), fragments))
    return groups


def _take(texts: Texts, items: NDArray[np.int64]) -> Texts:
    return Texts(texts.symbols, *(field[items] for field in texts[1:]))


def _fragment_masks(tables: ChainTables) -> list[NDArray[np.uint8]]:
    """Masks of every fragment, read back from the words of the chain."""
    words, found = tables.words, []
    for f in range(words.length.size):
        places = np.arange(words.length[f]) + words.first[f]
        bits = [words.places[words.word[f], 1 << bit] >> places & 1 for bit in range(4)]
        found.append(sum(b << k for k, b in enumerate(bits)).astype(np.uint8))
    return found


def _fragments(tables: ChainTables, parts: list[NDArray[np.uint8]]) -> Fragments:
    """Distinct parts of every fragment, with their multiplicity; what matches nothing is left out."""
    empty = tables.fragment_weights[tables.empty_row, 0]
    return _distinct(tuple(masks.tobytes() for masks in parts), tuple(int(ways) for ways in empty))


@functools.lru_cache(maxsize=16)
def _distinct(parts: tuple[bytes, ...], empty: tuple[int, ...]) -> Fragments:
    """Distinct parts of strings of masks; the empty part is had in `empty` ways."""
    first, rows, offset = [0], [], 0
    for masks, ways in zip(parts, empty, strict=True):
        seen = {b"": [0, offset, ways]} if ways else {}
        for size in range(1, len(masks) + 1):
            for start in range(len(masks) - size + 1):
                part = masks[start : start + size]
                if 0 not in part:
                    seen.setdefault(part, [size, offset + start, 0])[2] += 1
        rows += sorted(seen.values())
        first.append(len(rows))
        offset += len(masks)
    rows.append([0, 0, 1])
    table = np.array(rows, np.int32)
    bounds = np.array([*first, len(rows)], np.int32)
    return Fragments(bounds, table[:, 1].copy(), table[:, 0].copy(), table[:, 2].copy())


def _bytes(tables: ChainTables, texts: Texts, fragment_symbols: NDArray[np.uint8]) -> ByteLetters:
    return ByteLetters(
        np.concatenate([texts.symbols, np.zeros(1, np.uint8)]),
        texts.start.astype(np.int64),
        texts.length.astype(np.int32),
        texts.prefix.astype(np.int32),
        texts.suffix.astype(np.int32),
        tables.prefix_symbols,
        tables.prefix_length.astype(np.int32),
        tables.suffix_symbols,
        tables.suffix_length.astype(np.int32),
        fragment_symbols,
        _with_none(tables.allowed),
    )


def _with_none(allowed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A column for having no D, which any suffix may follow."""
    return np.concatenate([allowed, np.ones((allowed.shape[0], 1), np.uint8)], axis=1)


def _fit(
    tables: ChainTables, texts: Texts, fragment_symbols: NDArray[np.uint8], codes: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Which texts, with their ends, are of A, C, G and T."""
    if (_CODE[fragment_symbols[fragment_symbols != 0]] < 0).any():
        return np.zeros(texts.start.size, np.bool_)
    fits: NDArray[np.bool_] = texts.length <= _WIDE_RECORD[2]
    coded = codes == _NO_CODE
    if coded.any():
        before = np.concatenate([[0], np.cumsum(coded)])
        fits &= before[texts.start + texts.length] == before[texts.start]
    for symbols, lengths, which in (
        (tables.prefix_symbols, tables.prefix_length, texts.prefix),
        (tables.suffix_symbols, tables.suffix_length, texts.suffix),
    ):
        whole = _whole(symbols, lengths)
        plain = [bool((_CODE[row[:n]] >= 0).all()) for row, n in zip(symbols, whole, strict=True)]
        fits &= np.array(plain, np.bool_)[which]
        if len(plain) > 1 << _WIDE_RECORD[0]:
            fits[:] = False
    return fits


def _whole(symbols: NDArray[np.uint8], lengths: _Numbers) -> NDArray[np.int32]:
    """Symbols of each end up to the first that matches nothing."""
    found = [int((np.append(row[:n], 0) == 0).argmax()) for row, n in zip(symbols, lengths, strict=True)]
    return np.array(found, np.int32)


def _packed(
    tables: ChainTables,
    texts: Texts,
    fragment_symbols: NDArray[np.uint8],
    codes: NDArray[np.uint8],
    record: tuple[int, int, int],
) -> PackedLetters:
    field_bits, length_bits, most = record
    (v, prefix), (j, suffix) = _numbered(texts.prefix), _numbered(texts.suffix)
    symbols = most if record is _RECORD else -(-int(texts.length.max()) // 8) * 8
    ends = prefix | suffix << field_bits | texts.length << 2 * field_bits
    records = _records(texts.start, codes, symbols, ends, 2 * field_bits + length_bits)
    width = max(tables.prefix_symbols.shape[1], tables.suffix_symbols.shape[1])
    return PackedLetters(
        _padded(records),
        records.shape[1],
        field_bits,
        length_bits,
        *_packed_ends(tables.prefix_symbols[v], tables.prefix_length[v], width),
        *_packed_ends(tables.suffix_symbols[j], tables.suffix_length[j], width),
        -(-width // 16),
        _padded(_pack(fragment_symbols[None, :])),
        _with_none(tables.allowed[j]),
    )


def _numbered(ends: _Numbers) -> tuple[_Numbers, _Numbers]:
    """The ends that occur, and for each text the place of its own among them."""
    occurs = np.bincount(ends) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[ends]


def _records(
    start: _Numbers, codes: NDArray[np.uint8], symbols: int, header: _Numbers, header_bits: int
) -> NDArray[np.uint32]:
    """A row of words for each text: a whole number of bytes with its header, then four symbols in each byte.

    Behind a text is what follows it in memory, which nobody looks at. `symbols` is a multiple of 8.
    """
    head = header_bits // 8
    eights = sliding_window_view(codes, symbols)[start].view("<u8") & np.uint64(0x0303030303030303)
    # Two bits of every byte move together: into four bits, a byte, and two bytes.
    for shift, kept in ((6, 0x000F000F000F000F), (12, 0x000000FF000000FF), (24, 0xFFFF)):
        eights = (eights | eights >> np.uint64(shift)) & np.uint64(kept)
    body = eights.astype("<u2").view(np.uint8)
    made = np.zeros((start.size, -(-(head + body.shape[1]) // 4) * 4), np.uint8)
    made[:, :head] = header.astype("<u8")[:, None].view(np.uint8)[:, :head]
    made[:, head : head + body.shape[1]] = body
    return made.view("<u4").astype(np.uint32, copy=False)


def _packed_ends(symbols: NDArray[np.uint8], lengths: _Numbers, width: int) -> tuple[_Numbers, _Numbers]:
    rows = np.zeros((symbols.shape[0], width), np.uint8)
    rows[:, : symbols.shape[1]] = symbols
    return _padded(_pack(rows)), _whole(symbols, lengths)


def _pack(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Rows of masks as rows of words, 16 symbols in each; what has no code is packed as 0."""
    words = np.zeros((rows.shape[0], -(-rows.shape[1] // 16)), np.uint32)
    for k in range(rows.shape[1]):
        words[:, k // 16] |= np.maximum(_CODE[rows[:, k]], 0).astype(np.uint32) << np.uint32(2 * (k % 16))
    return words


def _padded(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Words in one row, with two more, so that reading two at a time never leaves it."""
    return np.concatenate([words.ravel(), np.zeros(2, np.uint32)])
