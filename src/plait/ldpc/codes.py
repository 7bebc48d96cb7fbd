"""Codes by their parity checks: by name, or from alist files; and their encoders."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.errors import FormatError, InvalidInput, whole
from plait.formats.files import read_text
from plait.lang.compile import kernel

NAMES: Final = "ar4ja-1/2-1024 (rates 1/2, 2/3, 4/5; 1024, 4096, 16384 bits), c2, wimax-1248 (576 to 2304)"
_EXPECTED: Final = "a code in alist format"
#: Columns and checks of a code in a file.
_MOST: Final = 1 << 20


class Code:
    """A binary linear code.

    Parameters
    ----------
    name
        Its name.
    size
        Columns of the parity-check matrix.
    checks
        Columns of the ones of each row of the matrix.
    sent
        Columns of the bits that are sent, in order, -1 for a 0 that fills up; otherwise all.
    known
        Columns of bits that are always 0 and not sent.
    most
        Bits of information at most; what is free besides is 0.

    Attributes
    ----------
    bits
        Columns of the ones, row by row, int64, shape (ones,).
    starts
        Where each row begins in `bits`, int64, shape (checks + 1,).
    n
        Bits that are sent.

    Raises
    ------
    InvalidInput
        If there is no such column.
    """

    def __init__(
        self, name: str, size: int, checks: Any, sent: Any = None, known: Any = (), most: int | None = None
    ) -> None:
        self.name, self.size, self.most, self.known = name, size, most, np.array(known, np.int64)
        own = [sorted({*check}) for check in checks]
        self.bits = np.array([column for check in own for column in check], np.int64)
        self.starts = np.cumsum([0, *map(len, own)])
        self.sent = np.arange(size) if sent is None else np.array(sent, np.int64)
        self.n = self.sent.size
        for what, least in (("bits", 0), ("sent", -1), ("known", 0)):
            columns = getattr(self, what)
            for column in (columns.min(initial=0), columns.max(initial=0)):
                whole(what, column, least, size - 1)

    def __repr__(self) -> str:
        return f"Code({self.name!r}, {self.n:,} bits)"

    @property
    def k(self) -> int:
        """Bits of information."""
        return self.information.size

    @functools.cached_property
    def _solved(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
        """Columns of information, what each adds to the other columns as packed rows, and these columns."""
        words = -(-self.size // 64)
        rows = np.zeros((self.starts.size - 1, words), np.uint64)
        # Columns from the right: the information stands at the front, as the standards have it.
        places = self.size - 1 - self.bits
        checks = np.repeat(np.arange(rows.shape[0]), np.diff(self.starts))
        np.bitwise_xor.at(rows, (checks, places >> 6), np.uint64(1) << (places & 63).astype(np.uint64))
        pivots = np.full(rows.shape[0], -1, np.int64)
        eliminate(rows, self.size, pivots)
        solved = np.flatnonzero(pivots >= 0)
        parity = self.size - 1 - pivots[solved]
        free = np.ones(self.size, bool)
        free[parity] = free[self.known] = False
        information = np.flatnonzero(free)[: self.most]
        packed = np.zeros((information.size, -(-parity.size // 64)), np.uint64)
        for k, column in enumerate(self.size - 1 - information):
            ones = rows[solved, column >> 6] >> np.uint64(column & 63) & np.uint64(1)
            octets = np.packbits(ones.astype(np.uint8), bitorder="little")
            packed[k].view(np.uint8)[: octets.size] = octets
        return information, packed, parity

    @property
    def information(self) -> NDArray[np.int64]:
        """Columns of the information, int64, shape (k,)."""
        return self._solved[0]

    def encode(self, information: ArrayLike) -> NDArray[np.uint8]:
        """Words of the code.

        Parameters
        ----------
        information
            Bits 0 and 1, shape (words, k).

        Returns
        -------
        numpy.ndarray
            Bits as they are sent, uint8, shape (words, n).

        Raises
        ------
        InvalidInput
            If the shape is another one, or something is no bit.
        """
        columns, packed, parity = self._solved
        given = np.asarray(information)
        if given.ndim != 2 or given.shape[1] != columns.size:
            raise InvalidInput("information", found=given.shape, expected=f"(words, {columns.size:,})")
        if not np.isin(given, (0, 1)).all():
            raise InvalidInput("information", found="other numbers", expected="bits, 0 and 1")
        found = np.zeros((given.shape[0], self.size + 1), np.uint8)
        found[:, columns] = given
        sums = np.zeros((given.shape[0], packed.shape[1]), np.uint64)
        add_rows(np.array(given, np.uint8, order="C"), packed, sums)
        found[:, parity] = np.unpackbits(sums.view(np.uint8), axis=1, bitorder="little")[:, : parity.size]
        return found[:, self.sent]


@kernel
def eliminate(rows: Any, columns: int, pivots: Any) -> None:
    """Solve packed rows, uint64 (rows, words), for their first columns: `pivots` int64 (rows,), -1 before."""
    for column in range(columns):
        word, bit, row = column >> 6, np.uint64(column & 63), 0
        while row < rows.shape[0] and (pivots[row] >= 0 or not rows[row, word] >> bit & np.uint64(1)):
            row += 1
        for other in range(rows.shape[0] if row < rows.shape[0] else 0):
            if other != row and rows[other, word] >> bit & np.uint64(1):
                for k in range(rows.shape[1]):
                    rows[other, k] ^= rows[row, k]
        if row < rows.shape[0]:
            pivots[row] = column


@kernel
def add_rows(chosen: Any, rows: Any, sums: Any) -> None:
    """Sums without carry of the rows that are chosen by each of some words, uint8 (words, rows)."""
    for a in range(chosen.shape[0]):
        for b in range(chosen.shape[1]):
            if chosen[a, b]:
                for k in range(rows.shape[1]):
                    sums[a, k] ^= rows[b, k]


def code_named(name: str) -> Code:
    """A code of a standard, or of a file.

    Parameters
    ----------
    name
        ``ar4ja-R-K`` and ``c2`` of CCSDS 131.0-B, ``wimax-N`` of rate 1/2 of IEEE 802.16e, or the path of an
        alist file. Of AR4JA, the last columns are not sent; C2 is the (8160, 7136) code, whose columns 0 to
        17 are 0.

    Returns
    -------
    Code
        The code.

    Raises
    ------
    InvalidInput
        If there is no such name.
    FormatError
        If a file is missing or is no alist file.

    Examples
    --------
    >>> code = code_named("wimax-1248")
    >>> code.n, code.k
    (1248, 624)
    """
    found = _standard(name)
    if found is None and os.sep not in name and not os.path.exists(name) and not name.endswith(".alist"):
        raise InvalidInput("code", found=repr(name), expected=f"an alist file, or {NAMES}")
    return found or read_alist(name)


@functools.lru_cache(4)
def _standard(name: str) -> Code | None:
    """A code of a standard; None if it is none of theirs."""
    tables = json.loads(Path(__file__).with_name("data").joinpath("codes.json").read_text())
    if found := re.fullmatch(r"ar4ja-(1/2|2/3|4/5)-(1024|4096|16384)", name):
        blocks = {"1/2": 2, "2/3": 4, "4/5": 8}[found[1]]
        m = int(found[2]) // blocks
        theta, phi = tables["ar4ja"]["theta"], tables["ar4ja"]["phi"][str(m)]

        def turned(number: int, i: int) -> int:
            j = 4 * i // m
            quarter = (theta[number - 1] + j) % 4 * (m // 4)
            return i if number == 0 else quarter + (phi[j][number - 1] + i) % (m // 4)

        base = [row[8 - blocks :] for row in tables["ar4ja"]["blocks"]]
        return Code(name, (blocks + 3) * m, _expanded(base, m, turned), range((blocks + 2) * m))
    if name == "c2":
        checks = _expanded(tables["c2"], 511, lambda shift, i: (i + shift) % 511)
        return Code(name, 8176, checks, [*range(18, 8176), -1, -1], range(18), 7136)
    if (found := re.fullmatch(r"wimax-(\d{3,4})", name)) and int(found[1]) in range(576, 2305, 96):
        z = int(found[1]) // 24
        checks = _expanded(tables["wimax-1/2"], z, lambda shift, i: (i + shift * z // 96) % z)
        return Code(name, 24 * z, checks)
    return None


def _expanded(base: Sequence[Sequence[Sequence[int]]], m: int, column: Any) -> list[list[int]]:
    """Checks of a matrix of blocks of m x m, sums of permutations; twice the same one is none."""
    checks = []
    for row in base:
        for i in range(m):
            places: set[int] = set()
            for k, block in enumerate(row):
                for number in block:
                    places ^= {k * m + column(number, i)}
            checks.append(sorted(places))
    return checks


def read_alist(path: str | os.PathLike[str]) -> Code:
    """A code in MacKay's alist format; lists of columns and of checks are compared with each other."""
    text = read_text(path, _EXPECTED).splitlines()
    lines = [(number, line.split()) for number, line in enumerate(text, 1) if line.strip()]
    left = iter(lines)

    def numbers(what: str, least: int, most: int, count: int, *, filled: bool = False) -> list[int]:
        line, words = next(left, (None, ["the", "end", "of", "the", "file"]))
        whole = all(word.isascii() and word.isdigit() and len(word) < 8 for word in words)
        # Shorter lists are filled up with 0, and name nothing twice.
        found = [one for one in map(int, words if whole else ()) if one or not filled]
        wrong = len(found) != count or (filled and len(set(found)) != count)
        if not whole or wrong or not all(least <= one <= most for one in found):
            raise FormatError(path, found=" ".join(words)[:40], expected=what, line=line)
        return found

    size, checks = numbers(f"numbers of columns and of checks, up to {_MOST:,}", 1, _MOST, 2)
    numbers("the largest weights of columns and of checks", 0, _MOST, 2)
    heavy = numbers(f"weights of {size:,} columns", 0, checks, size)
    weights = heavy, numbers(f"weights of {checks:,} checks", 1, size, checks)
    kinds = ("checks of a column", checks), ("columns of a check", size)
    by_column, by_check = (
        [numbers(f"{weight} different {kind}, 1 to {most:,}", 1, most, weight, filled=True) for weight in own]
        for own, (kind, most) in zip(weights, kinds, strict=True)
    )
    for line, _ in left:
        raise FormatError(path, found="more lines", expected="the end of the file", line=line)
    ones = {(m, column) for column, own in enumerate(by_column, 1) for m in own}
    for m, column in sorted(ones ^ {(m, column) for m, own in enumerate(by_check, 1) for column in own}):
        what = f"column {column} in the list of check {m}, and the check in that of the column"
        raise FormatError(path, found="it in one list", expected=what, line=lines[3 + size + m][0])
    return Code(os.fspath(path), size, [[column - 1 for column in own] for own in by_check])
