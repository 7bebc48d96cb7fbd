"""How much arithmetic a generation probability is, and how fast one core could do no more than that."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from regression_limit import multiply_adds_per_second

from plait.dp.chain.weigh import weigh_kernel
from plait.lang.lanes import host_lanes, width_of
from plait.vdj.model import RecombinationModel
from plait.vdj.model.junctions import JunctionEncoder, make_scratch, model_shapes, weighted_chain

__all__ = ["instructions_per_text", "pairs_per_second"]

_COUNTS: Counter[tuple[str, bool]] = Counter()


class _Counted(NamedTuple):
    """Probabilities, of which every operation is counted: on groups of lanes, and on numbers."""

    zero: Any = 0.0
    one: Any = 1.0

    @staticmethod
    def choice(alg: _Counted, a: Any, b: Any) -> Any:
        _COUNTS["add", isinstance(a, np.ndarray)] += 1
        return a + b

    @staticmethod
    def extend(alg: _Counted, a: Any, b: Any) -> Any:
        _COUNTS["multiply", isinstance(a, np.ndarray)] += 1
        return a * b


def instructions_per_text(
    model: RecombinationModel, junctions: Any, v_call: Any, j_call: Any, kind: str
) -> dict[tuple[str, bool], float]:
    """Mean number of additions and multiplications, of groups of lanes (True) and of numbers.

    The schedule runs as Python with the groups of this processor, so what is counted is what is compiled.
    """
    shapes = model_shapes(model)
    chain = weighted_chain(model, shapes)
    parts, texts, rows, *_ = JunctionEncoder(model, shapes=shapes).encode(
        junctions, v_call, j_call, kind=kind
    )
    scratch = make_scratch(chain, parts, int(texts.length.max()), plain=kind == "nt")
    _COUNTS.clear()
    weigh_kernel.py_func(
        host_lanes(), _Counted(), chain, parts, texts, 0, rows.size, scratch, np.zeros(rows.size)
    )
    return {name: count / rows.size for name, count in _COUNTS.items()}


def pairs_per_second(repeat: int) -> float:
    """Multiplications of groups of lanes, each with an addition, that one core does in registers a second."""
    return multiply_adds_per_second(repeat) / width_of(host_lanes())
