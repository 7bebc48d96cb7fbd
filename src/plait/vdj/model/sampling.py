"""Junctions drawn from a recombination model."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.executors.local import LocalExecutor
from plait.schedules.scenario_sampling import FIELDS, AliasTables, ChainDraws, DrawOutput
from plait.settings import thread_count
from plait.targets.sampling_kernels import draw_kernel
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["Draws", "JunctionSampler"]

#: Draws that are made at a time.
_BLOCK: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Draws:
    """Junctions drawn, in the order of their numbers.

    Attributes
    ----------
    symbols
        uint8 (n, most): 0 to 3 for A, C, G and T.
    length
        int64 (n,).
    fields
        int32 (n, 9): see `plait.schedules.scenario_sampling.FIELDS`; cuts count from the longest P extension.
    number
        int64 (n,): which draws they are.
    productive
        bool (n,): in frame, without stop codon, from Cys to Phe or Trp.
    """

    symbols: NDArray[np.uint8]
    length: NDArray[np.int64]
    fields: NDArray[np.int32]
    number: NDArray[np.int64]
    productive: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Draws:
        """Some of them.

        Parameters
        ----------
        rows
            Which ones.
        """
        return Draws(
            self.symbols[rows],
            self.length[rows],
            self.fields[rows],
            self.number[rows],
            self.productive[rows],
        )

    def texts(self) -> list[str]:
        """The junctions as text."""
        letters = np.frombuffer(b"ACGT", np.uint8)[self.symbols]
        return [bytes(row[:n]).decode() for row, n in zip(letters, self.length.tolist(), strict=True)]


class JunctionSampler:
    """Draws junctions from a model.

    Parameters
    ----------
    model
        The model; its distributions are scaled to a sum of 1.
    seed
        What the draws depend on, 0 to 2^64 - 1.
    functional
        Whether only functional genes are drawn.
    """

    def __init__(self, model: RecombinationModel, *, seed: int = 0, functional: bool = True) -> None:
        self.model = model
        self._seed = np.uint64(seed)
        self._draws, self._most = _chain_draws(model, functional)

    def blocks(self, first: int = 0, *, threads: int | None = None) -> Generator[Draws, None, None]:
        """Draws from a number on, without end, a block at a time.

        Parameters
        ----------
        first
            Number of the first draw.
        threads
            Blocks made at a time; nothing depends on it.
        """
        executor = LocalExecutor(thread_count() if threads is None else threads)
        starts = iter(range(first, 1 << 62, _BLOCK))
        with closing(executor.map(self.block, starts)) as blocks:
            yield from blocks

    def block(self, first: int, count: int = _BLOCK) -> Draws:
        """Draws `first` to ``first + count``, without those that made no junction.

        Parameters
        ----------
        first
            Number of the first draw.
        count
            How many draws.
        """
        out = DrawOutput(
            np.zeros((count, self._most), np.uint8),
            np.zeros(count, np.int64),
            np.zeros((count, len(FIELDS)), np.int32),
        )
        draw_kernel(self._draws, self._seed, first, count, out)
        number = np.arange(first, first + count)
        draws = Draws(out.symbols, out.length, out.fields, number, _productive(out.symbols, out.length))
        made = out.length > 0
        return draws if made.all() else draws.take(np.flatnonzero(made))


def _alias(p: NDArray[np.float64]) -> tuple[list[float], list[int]]:
    """Walker's tables by Vose's method."""
    n = p.size
    scaled = (p / p.sum() * n).tolist() if p.sum() > 0 else [1.0] * n
    keep, other = [1.0] * n, list(range(n))
    small = [k for k in range(n) if scaled[k] < 1]
    large = [k for k in range(n) if scaled[k] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        keep[low], other[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    # What is left over by rounding is a whole place, unless it was never to be drawn.
    for k in small:
        if p[k] == 0:
            keep[k], other[k] = 0.0, int(np.argmax(p))
    return keep, other


def _chain_draws(model: RecombinationModel, functional: bool) -> tuple[ChainDraws, int]:
    v = np.array([gene.functional or not functional for gene in model.v])
    j = np.array([gene.functional or not functional for gene in model.j])
    tables: list[NDArray[np.float64]] = [model.p_v * v]
    first: dict[str, int] = {}

    def add(name: str, found: list[NDArray[np.float64]]) -> None:
        first[name] = len(tables)
        tables.extend(found)

    add("joint", [(given * j).ravel() for given in model.p_dj])
    add("prefix_cut", list(model.p_v_deletions))
    add("fragment_cut", [table.ravel() for table in model.p_d_deletions] if model.d else [])
    add("suffix_cut", list(model.p_j_deletions))
    add("length", [model.p_vd_length, model.p_dj_length])
    add("left_step", [*model.vd_steps, model.vd_first])
    add("right_step", [*model.dj_steps, model.dj_first])
    made = [_alias(table) for table in tables]
    texts = {
        "prefix": [model.extended("V", k) for k in range(len(model.v))],
        "fragment": [model.extended("D", k) for k in range(len(model.d))],
        "suffix": [model.extended("J", k) for k in range(len(model.j))],
    }
    symbols = "".join(text for kind in texts.values() for text in kind)
    edges: dict[str, Any] = {}
    at = 0
    for name, kind in texts.items():
        edges[f"{name}_first"] = at + np.concatenate([[0], np.cumsum([len(text) for text in kind])]).astype(
            np.int64
        )
        at = int(edges[f"{name}_first"][-1])
    most = sum(max((len(text) for text in kind), default=0) for kind in texts.values())
    most += model.p_vd_length.size + model.p_dj_length.size
    sizes = [table.size for table in tables]
    draws = ChainDraws(
        tables=AliasTables(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.array([value for keep, _ in made for value in keep]),
            np.array([value for _, other in made for value in other], np.int64),
        ),
        joints=len(model.p_dj),
        suffixes=len(model.j),
        cuts_right=model.p_d_deletions.shape[-1] if model.d else 1,
        symbols=np.array(["ACGT".index(letter) for letter in symbols], np.uint8),
        **first,
        **edges,
    )
    return draws, most


def _productive(symbols: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """In frame, without stop codon, from Cys to Phe or Trp."""
    found: NDArray[np.bool_] = (length % 3 == 0) & (length >= 6)
    rows = np.flatnonzero(found)
    if rows.size:
        codons = length[rows] // 3
        # Bytes: whole columns at a time, in the least memory.
        first, second, third = (symbols[rows, k : 3 * int(codons.max()) : 3] for k in range(3))
        codes = first << 4 | second << 2 | third
        stopped = (_STOPS[codes] & (np.arange(codes.shape[1]) < codons[:, None])).any(axis=1)
        last = codes[np.arange(rows.size), codons - 1]
        found[rows] = ~stopped & _STARTS[codes[:, 0]] & _ENDS[last]
    return found


def _marked(*codons: str) -> NDArray[np.bool_]:
    """Which of the 64 codons are meant."""
    found = np.zeros(64, np.bool_)
    for codon in codons:
        found[["ACGT".index(letter) for letter in codon] @ np.array([16, 4, 1])] = True
    return found


_STOPS: Final = _marked("TAA", "TAG", "TGA")
_STARTS: Final = _marked("TGC", "TGT")
_ENDS: Final = _marked("TTC", "TTT", "TGG")
