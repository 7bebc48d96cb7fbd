"""Parsers of patterns and of texts in which they are looked for."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from tests.fuzz.mutation import raw_mutation, text_mutation
from tests.fuzz.tables import place
from tests.fuzz.trial import Parser

from plait.formats.twobit import read_two_bit
from plait.mapping.patterns import read_patterns

_PATTERNS = (
    b"name\tsequence\npam\tACGTACGTAC\nb\tGATTACAGATTN\tNGG\n",
    b">a x\nACGTAC\nGTAC\n>b\nRYSWKMNACGT\n",
    b"@a\nACGTACGT\n+\nIIIIIIII\n@b\nGGGGCCCC\n+\nIIIIIIII\n",
    b"# ours\nACGTACGTACGT\n\nGATTACAGATTACA\r\n",
    b"/data/hg38.fa\nNNNNNNNNNNNNNNNNNNNNNRG 2 1\nGGCCGACCTGTCGCTGACGCNNN 5\nCGCCAGCGTCAGCGACAGGTNNN 3 x\n",
)


def _patterns(data: bytes, folder: Path) -> None:
    found = read_patterns(place(folder, data))
    assert found.patterns and len({pattern.name for pattern in found.patterns}) == len(found.patterns)
    again = read_patterns([(pattern.name, pattern.sequence) for pattern in found.patterns])
    assert [p.sequence for p in again.patterns] == [p.sequence for p in found.patterns]


def _two_bit_file(order: str) -> bytes:
    codes = np.random.default_rng(3).integers(0, 256, 40, np.uint8).tobytes()
    first = 16 + 2 * 6
    one = struct.pack(f"{order}I I2I2I I2I2I I", 150, 2, 0, 90, 5, 20, 2, 3, 100, 9, 50, 0) + codes[:38]
    two = struct.pack(f"{order}5I", 3, 0, 0, 0, 0)[:16] + codes[:1]
    index = b"".join(
        struct.pack("B", 1) + name + struct.pack(f"{order}I", at)
        for name, at in ((b"a", first), (b"b", first + len(one)))
    )
    return struct.pack(f"{order}4I", 0x1A412743, 0, 2, 0) + index + one + two


def _two_bit(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    whole = [(p.name, p.start, p.letters.tobytes(), p.last) for p in read_two_bit(path)]
    pieces: dict[tuple[int, str], bytes] = {}
    number = -1
    for piece in read_two_bit(path, piece=16):
        number += piece.start == 0
        key = (number, piece.name)
        pieces[key] = pieces.get(key, b"") + piece.letters.tobytes()
    assert [letters for _, _, letters, _ in whole] == list(pieces.values())


PARSERS = {
    "patterns": lambda: Parser(
        name="patterns", seeds=_PATTERNS, mutate=text_mutation((b"ACGT", b"NGG", b"@", b">")), read=_patterns
    ),
    "two_bit": lambda: Parser(
        name="two_bit",
        seeds=(_two_bit_file("<"), _two_bit_file(">")),
        mutate=raw_mutation,
        read=_two_bit,
    ),
}
