"""Compiled entry points of the chain of weighted choices."""

from __future__ import annotations

from typing import Any

from plait.dp.chain.adjoint import expect_pair_text, expect_text, tell_pair_text, tell_text
from plait.dp.chain.weigh import weigh_pair_text, weigh_text
from plait.lang.compile import kernel


@kernel
def weigh_kernel(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, first: int, last: int, scratch: Any, out: Any
) -> None:
    """Texts `first` to `last`, see `plait.dp.chain.weigh.weigh_text`."""
    for item in range(first, last):
        weigh_text(lanes, alg, chain, parts, texts, item, scratch, out)


@kernel
def weigh_pairs_kernel(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, first: int, last: int, scratch: Any, out: Any
) -> None:
    """Texts `first` to `last`, see `plait.dp.chain.weigh.weigh_pair_text`."""
    for item in range(first, last):
        weigh_pair_text(lanes, alg, chain, parts, texts, item, scratch, out)


@kernel
def expect_kernel(
    lanes: Any,
    chain: Any,
    parts: Any,
    texts: Any,
    first: int,
    last: int,
    shares: Any,
    scratch: Any,
    turned: Any,
    counts: Any,
    out: Any,
    told: Any,
    each: Any,
) -> None:
    """Texts `first` to `last`, see `plait.dp.chain.adjoint.expect_text`.

    If `each`, what every text tells goes into `told`, see `plait.dp.chain.adjoint.tell_text`.
    """
    for item in range(first, last):
        expect_text(lanes, chain, parts, texts, item, shares[item], scratch, turned, counts, out)
        if each and out[item] > 0.0:
            tell_text(chain, parts, texts, item, scratch, counts, told)


@kernel
def expect_pairs_kernel(
    lanes: Any,
    chain: Any,
    parts: Any,
    texts: Any,
    first: int,
    last: int,
    shares: Any,
    scratch: Any,
    turned: Any,
    counts: Any,
    out: Any,
    told: Any,
    each: Any,
) -> None:
    """Texts `first` to `last`, see `plait.dp.chain.adjoint.expect_pair_text`.

    If `each`, what every text tells goes into `told`, see `plait.dp.chain.adjoint.tell_pair_text`.
    """
    for item in range(first, last):
        expect_pair_text(lanes, chain, parts, texts, item, shares[item], scratch, turned, counts, out)
        if each and out[item] > 0.0:
            tell_pair_text(chain, parts, texts, item, scratch, counts, told)
