"""The problems of generation probabilities and their parity matrix: as `support.problems`.

A *combination* is a problem (a chain with D genes or without, and a kind of junctions) solved by one schedule
on one target, with one algebra, in lane groups of one width, with texts laid out as one kind of graph and one
way of splitting the batch. Every combination must give the oracle's answer, which is a list of all ways to
make every text that a junction stands for (`support.recombination.ways_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.chain_values import Amounts, chain_in, empty_table, scratch_in
from support.problems import SPLITS
from support.recombination import coding_texts, drawn_junctions, small_model, ways_of

from plait.dp.chain.graphs import CodedJunctions
from plait.dp.chain.weigh import weigh_kernel
from plait.lang.algebras import COUNT, EXACTNESS, LOG_SUM, MAX_PRODUCT, PROBABILITY, WEIGHTED_SUM
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.model.junctions import EndShape, TextKind, encode_texts, make_scratch, model_shapes
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = [
    "GENERATION_ALGEBRAS",
    "GENERATION_PROBLEMS",
    "GENERATION_TARGETS",
    "GenerationAlgebra",
    "GenerationBatch",
    "GenerationCombination",
    "GenerationProblem",
    "batch_texts",
    "generation_combinations",
    "insertion_amounts",
    "solve_generation",
    "spelled",
    "weigh_batch",
]

_CODES: Mapping[str, str] = {"N": "ACGT", "R": "AG", "Y": "CT"}
_ACIDS = "ACDEFGHIKLMNPQRSTVWY*"
#: Genes that are allowed, for each text; None for all.
_Genes = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class GenerationBatch:
    """Junctions to be weighed in one run.

    Attributes
    ----------
    model
        The model; all its genes are functional.
    kind
        What the junctions are.
    texts
        The junctions.
    v, j
        Genes that each may have.
    """

    model: RecombinationModel
    kind: TextKind
    texts: tuple[str, ...]
    v: _Genes
    j: _Genes

    @property
    def plain(self) -> bool:
        """Whether every letter stands for one nucleotide."""
        return self.kind == "nt" and set("".join(self.texts)) <= set("ACGT")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationProblem:
    """A problem.

    Attributes
    ----------
    name
        Its name.
    inputs
        Where inputs come from.
    edge_cases
        Inputs that are always tried.
    oracle
        For each junction, the ways to make it: pairs of probability and number of inserted nucleotides.
    schedules
        Names of the schedules that solve it.
    algebras
        Names of the algebras in which the answer is meant.
    benchmark_sizes
        Numbers of junctions at which speed is measured.
    """

    name: str
    inputs: st.SearchStrategy[GenerationBatch]
    edge_cases: tuple[GenerationBatch, ...]
    oracle: Callable[[GenerationBatch], list[list[tuple[float, int]]]]
    schedules: tuple[str, ...]
    algebras: tuple[str, ...] = ("probability", "max_product", "count", "log_sum", "weighted_sum")
    benchmark_sizes: tuple[int, ...] = (20_000, 200_000)


class GenerationAlgebra(NamedTuple):
    """An algebra as the matrix uses it.

    Attributes
    ----------
    algebra
        The algebra.
    answer
        From the ways to make a junction, its value.
    grouped
        Whether its operations take groups of lanes.
    """

    algebra: Any
    answer: Callable[[list[tuple[float, int]]], Any]
    grouped: bool

    @property
    def exactness(self) -> str:
        """``"bitwise"`` or ``"ulp"``."""
        return EXACTNESS[type(self.algebra)]


GENERATION_ALGEBRAS = {
    "probability": GenerationAlgebra(PROBABILITY, lambda ways: sum(p for p, _ in ways), True),
    "max_product": GenerationAlgebra(MAX_PRODUCT, lambda ways: max((p for p, _ in ways), default=0.0), True),
    "count": GenerationAlgebra(COUNT, len, True),
    "log_sum": GenerationAlgebra(
        LOG_SUM, lambda ways: math.log(sum(p for p, _ in ways)) if ways else -math.inf, False
    ),
    "weighted_sum": GenerationAlgebra(
        WEIGHTED_SUM, lambda ways: (sum(p for p, _ in ways), sum(p * n for p, n in ways)), False
    ),
}


class GenerationCombination(NamedTuple):
    """One cell of the matrix: names of its parts, and the width."""

    problem: str
    schedule: str
    target: str
    algebra: str
    width: int
    graph: str
    split: str

    @property
    def id(self) -> str:
        """Name of a test of it."""
        return "-".join(map(str, self))

    @property
    def seldom(self) -> bool:
        """Whether what it runs is compiled in ``make test-all`` alone: no command asks for it."""
        return self.target == "cpu" and self.algebra in ("max_product", "log_sum")


_HOST = host_lanes().width
#: For each target: algebra, graph and the widths worth running. Where code is compiled, each takes seconds.
GENERATION_TARGETS: Mapping[str, Mapping[tuple[str, str], tuple[int, ...]]] = {
    "reference": {
        (name, graph): tuple(LANES) if choice.grouped else (1,)
        for name, choice in GENERATION_ALGEBRAS.items()
        for graph in ("path", "graph")
    },
    "cpu": {
        ("probability", "path"): (_HOST,),
        ("probability", "graph"): (_HOST,),
        ("max_product", "path"): (_HOST,),
        ("log_sum", "path"): (1,),
    },
}


def generation_combinations() -> Iterator[GenerationCombination]:
    """Every combination that makes sense; ways of splitting are tried with one algebra and width."""
    for problem in GENERATION_PROBLEMS.values():
        for schedule in problem.schedules:
            for target, kernels in GENERATION_TARGETS.items():
                for (algebra, graph), widths in kernels.items():
                    if algebra not in problem.algebras or (
                        graph == "path" and not problem.name.endswith("nt")
                    ):
                        continue
                    for width in sorted(set(widths)):
                        few = target == "cpu" and schedule == "weighted_pairs"
                        if few and (algebra != "probability" or width != _HOST):
                            continue
                        splits = SPLITS if (algebra, width) == ("probability", _HOST) else ("whole",)
                        for split in splits:
                            yield GenerationCombination(
                                problem.name, schedule, target, algebra, width, graph, split
                            )


def insertion_amounts(table: str, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Amounts of `plait.lang.algebras.WeightedSum` by which it sums numbers of inserted nucleotides."""
    return np.arange(p.size, dtype=float) if table.endswith("_length") else np.zeros(p.shape)


def batch_texts(batch: GenerationBatch, v: EndShape, j: EndShape) -> tuple[Any, CodedJunctions]:
    """What codes stand for, and the texts.

    Parameters
    ----------
    batch
        The batch.
    v, j
        Ends of the model's genes.
    """
    encoded = encode_texts(pa.array(batch.texts), batch.kind)
    roots = []
    for shape, genes in ((v, batch.v), (j, batch.j)):
        chosen = [[shape.together] if one is None else shape.root[list(one)].tolist() for one in genes]
        first = np.cumsum([0, *map(len, chosen)])
        roots += [first, np.array([root for one in chosen for root in one], np.int32)]
    return encoded.parts, CodedJunctions(encoded.codes, encoded.start, encoded.length, *roots)


def weigh_batch(
    batch: GenerationBatch,
    algebra: Any,
    lanes: Any,
    *,
    interpreted: bool,
    plain: bool,
    split: str = "whole",
    amounts: Amounts | None = None,
) -> list[Any]:
    """Weights of a batch.

    Parameters
    ----------
    batch
        What.
    algebra, lanes
        How.
    interpreted
        Whether the bodies are run as Python.
    plain
        Whether texts are paths and not graphs.
    split
        Name in `support.problems.SPLITS`.
    amounts
        See `support.chain_values.chain_in`.
    """
    shapes = model_shapes(batch.model)
    chain = chain_in(algebra, batch.model, shapes, amounts)
    parts, texts = batch_texts(batch, shapes.v, shapes.j)
    kernel: Any = getattr(weigh_kernel, "py_func", weigh_kernel) if interpreted else weigh_kernel
    out = empty_table(algebra, (len(batch.texts),))
    longest = max(1, int(texts.length.max(initial=0)))

    def run(piece: tuple[int, int]) -> None:
        scratch = scratch_in(algebra, make_scratch(chain, parts, longest, plain=plain))
        kernel(lanes, algebra, chain, parts, texts, *piece, scratch, out)

    chosen = SPLITS[split]
    pieces = chosen.pieces(len(batch.texts))
    list(chosen.executor().map(run, pieces) if chosen.executor else map(run, pieces))
    found: list[Any] = out.tolist()
    return found


def solve_generation(combination: GenerationCombination, batch: GenerationBatch) -> list[Any] | None:
    """Run a combination; None if its graphs cannot hold the texts.

    Parameters
    ----------
    combination
        How.
    batch
        What.
    """
    if combination.graph == "path" and not batch.plain:
        return None
    return weigh_batch(
        batch,
        GENERATION_ALGEBRAS[combination.algebra].algebra,
        LANES[combination.width],
        interpreted=combination.target == "reference",
        plain=combination.graph == "path",
        split=combination.split,
        amounts=insertion_amounts,
    )


def spelled(text: str, kind: str) -> list[str]:
    """All nucleotide texts that a junction stands for."""
    if kind == "nt":
        return ["".join(letters) for letters in product(*(_CODES.get(letter, letter) for letter in text))]
    sets, inside = [], False
    for letter in text:
        if letter in "[]":
            inside = letter == "["
            sets += [""] if inside else []
        elif inside:
            sets[-1] += letter
        else:
            sets.append(_ACIDS[:-1] if letter == "." else letter)
    return coding_texts(sets)


def _ways(batch: GenerationBatch) -> list[list[tuple[float, int]]]:
    return [
        [
            (way.probability, sum(way.lengths))
            for spelling in spelled(text, batch.kind)
            for way in ways_of(batch.model, spelling, v, j)
            if way.probability > 0
        ]
        for text, v, j in zip(batch.texts, batch.v, batch.j, strict=True)
    ]


def _drawn(
    seed: int, kind: TextKind, *, d: bool, letters: int = 3, codes: bool = False, calls: bool = True
) -> GenerationBatch:
    """Some junctions that a small model makes, half of them changed, with and without calls."""
    rng = np.random.default_rng(seed)
    most = int(rng.integers(0, 5)) if calls else 4
    model = small_model(seed, d=d, genes=3, letters=letters, most=most)
    texts = drawn_junctions(model, seed, 4 if kind == "nt" else 30)
    if kind != "nt":
        # No more than two codons: amino acids and motifs stand for many texts.
        whole = [text for text in texts if len(text) == 6]
        texts = [_acids(text, kind, rng) for text in (whole or ["ACGTGC"])[:2]]
    for k in range(0, len(texts), 2):
        at = int(rng.integers(len(texts[k])))
        if kind == "nt":
            texts[k] = (
                texts[k][:at] + str(rng.choice(list("ACGTN" if codes else "ACGT"))) + texts[k][at + 1 :]
            )
    choices = (None, (0,), (2, 0), (1,))
    v, j = (tuple(choices[int(rng.integers(4))] if calls else None for _ in texts) for _ in range(2))
    return GenerationBatch(model, kind, tuple(texts), v, j)


def _acids(text: str, kind: str, rng: np.random.Generator) -> str:
    """Amino acids that a text codes for or, of a motif, sets that hold the first two."""
    found = ""
    for k in range(0, len(text), 3):
        acid = next(acid for acid in _ACIDS if text[k : k + 3] in coding_texts([acid]))
        other = str(rng.choice(list(_ACIDS)))
        found += f"[{acid}{other}]" if kind == "motif" and k < 6 and other != acid else acid
    return found


def _edge_cases(kind: TextKind, *, d: bool) -> tuple[GenerationBatch, ...]:
    batches = [
        _drawn(1, kind, d=d, letters=2, calls=False),
        _drawn(2, kind, d=d, letters=2, codes=True),
        _drawn(3, kind, d=d, letters=4),
    ]
    # Nothing inserted, and a junction far longer than anything that is made.
    model = small_model(5, d=d, most=0)
    texts: tuple[str, ...] = ("TY", "CA")
    if kind == "nt":
        texts = (*drawn_junctions(model, 5, 2), "ACGTTA", "ACGT" * 6)
    elif kind == "motif":
        texts = ("T.", ".[YC]")
    genes = ((0,), None, (1, 0), None)[: len(texts)]
    batches.append(GenerationBatch(model, kind, texts, (None,) * len(texts), genes))
    return tuple(batches)


def _problem(chain: str, kind: TextKind) -> GenerationProblem:
    d = chain == "vdj"
    return GenerationProblem(
        name=f"{chain}-{kind}",
        inputs=st.builds(_drawn, st.integers(0, 1 << 20), st.just(kind), d=st.just(d), codes=st.booleans()),
        edge_cases=_edge_cases(kind, d=d),
        oracle=_ways,
        schedules=("weighted_chain",) if d else ("weighted_pairs",),
    )


_KINDS: tuple[TextKind, ...] = ("nt", "aa", "motif")
#: Every problem, by name.
GENERATION_PROBLEMS = {
    problem.name: problem for problem in (_problem(chain, kind) for chain in ("vdj", "vj") for kind in _KINDS)
}
