"""The sixteen variable-to-variable codes of the hybrid entropy coder (CCSDS 123.0-B-2, annex B), as data."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

import numpy as np

from plait.schedules.hybrid_words import LOOKUP_BITS, WordTables

__all__ = ["HIGH_ENTROPY_THRESHOLD", "HybridCode", "flush_words", "hybrid_codes", "word_tables"]

#: A sample is of high entropy from this threshold on: S * 2**14 >= G * threshold. That of the first code.
HIGH_ENTROPY_THRESHOLD = 303336


@dataclass(frozen=True, slots=True)
class HybridCode:
    """One code.

    Attributes
    ----------
    limit
        L, the largest residual that is a symbol of its own; larger ones are the escape symbol ``X``.
    threshold
        T: the code serves where S * 2**14 < G * T.
    words
        Output word, as bits, of each complete input word, as hexadecimal digits and ``X``.
    flush
        Output word of each incomplete input word.
    """

    limit: int
    threshold: int
    words: dict[str, str]
    flush: dict[str, str]


@functools.cache
def hybrid_codes() -> tuple[HybridCode, ...]:
    """The codes, in order of falling thresholds."""
    data = resources.files("plait.hyperspectral") / "data" / "hybrid_codes.json"
    found = json.loads(data.read_text(encoding="ascii"))
    return tuple(
        HybridCode(limit, threshold, table["code"], table["flush"])
        for limit, threshold, table in zip(found["L"], found["T"], found["tables"], strict=True)
    )


def _digit(symbol: str, limit: int) -> int:
    return limit + 1 if symbol == "X" else int(symbol, 16)


class _Tables:
    """`WordTables` under way, as lists."""

    def __init__(self) -> None:
        self.codes: list[list[int]] = []
        self.nodes: list[list[int]] = []
        self.words: list[list[int]] = []
        self.symbols: list[int] = []
        self.lookup: list[list[int]] = []
        self.branches: list[list[int]] = []
        #: Node of each incomplete word of each code, and where its symbols are.
        self.node_of: list[dict[str, int]] = []
        self.place_of: list[dict[str, int]] = []

    def add(self, code: HybridCode) -> None:
        """Append a code."""
        nodes = {prefix: len(self.nodes) + k for k, prefix in enumerate(code.flush)}
        places: dict[str, int] = {}
        self.nodes += [[0] * 16 for _ in nodes]
        self.codes.append([code.threshold, code.limit, nodes[""]])
        reversed_words = {}
        for word, bits in code.words.items():
            number = -1 - len(self.words)
            reversed_words[bits[::-1]] = number
            start = len(self.symbols)
            for k in range(len(word)):
                after = nodes.get(word[: k + 1], number)
                self.nodes[nodes[word[:k]]][_digit(word[k], code.limit)] = after
                places[word[:k]] = start
            self.words.append([int(bits, 2), len(bits), start, len(word)])
            self.symbols += [_digit(symbol, code.limit) for symbol in word]
        self.node_of.append(nodes)
        self.place_of.append(places)
        self._add_lookup(reversed_words)

    def _add_lookup(self, words: dict[str, int]) -> None:
        own = [0] * (1 << LOOKUP_BITS)
        roots: dict[str, int] = {}
        for bits, number in words.items():
            if len(bits) <= LOOKUP_BITS:
                low = int(bits[::-1], 2)
                for entry in range(low, 1 << LOOKUP_BITS, 1 << len(bits)):
                    own[entry] = number
                continue
            root, rest = bits[:LOOKUP_BITS], bits[LOOKUP_BITS:]
            if root not in roots:
                roots[root] = self._branch()
                own[int(root[::-1], 2)] = roots[root]
            branch = roots[root]
            for bit in rest[:-1]:
                if self.branches[branch][int(bit)] == 0:
                    self.branches[branch][int(bit)] = self._branch()
                branch = self.branches[branch][int(bit)]
            self.branches[branch][int(rest[-1])] = number
        self.lookup.append(own)

    def _branch(self) -> int:
        # Branch 0 is nobody's, so that 0 says that there is none yet.
        if not self.branches:
            self.branches.append([-1, -1])
        self.branches.append([0, 0])
        return len(self.branches) - 1


@functools.cache
def _tables() -> _Tables:
    tables = _Tables()
    for code in hybrid_codes():
        tables.add(code)
    return tables


@functools.cache
def word_tables() -> WordTables:
    """The codes as arrays."""
    found = _tables()
    arrays = found.codes, found.nodes, found.words, [found.symbols], found.lookup, found.branches
    return WordTables(*(np.array(array, np.int64) for array in arrays))


@functools.cache
def flush_words() -> tuple[tuple[dict[int, str], dict[str, tuple[int, int]]], ...]:
    """What ends the open word of each code.

    Returns
    -------
    tuple
        For each code: the output word of each node; and for each output word, where the symbols of its input
        word begin and how many there are.
    """
    found, words = _tables(), []
    for code, nodes, places in zip(hybrid_codes(), found.node_of, found.place_of, strict=True):
        out = {node: code.flush[prefix] for prefix, node in nodes.items()}
        back = {code.flush[prefix]: (places[prefix], len(prefix)) for prefix in nodes}
        words.append((out, back))
    return tuple(words)
