"""Hypothesis strategies: any parameters that CCSDS 123 allows, and cubes that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from plait.hyperspectral.parameters import (
    BlockAdaptive,
    Coder,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Order,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    SupplementaryTable,
    WeightOffsets,
)

__all__ = [
    "PREDICTOR_KINDS",
    "coders",
    "cubes",
    "error_limits",
    "images",
    "near_lossless",
    "predictors",
    "stream_parameters",
    "supplementary",
]

#: Local sum, and whether there are sample representatives and weight offsets: each is compiled on its own.
PREDICTOR_KINDS = tuple(
    (sums, damped, offsets)
    for sums in ("wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column")
    for damped in (False, True)
    for offsets in (False, True)
)


@st.composite
def images(draw: st.DrawFn, *, most_bands: int = 18, one_column: bool = True) -> ImageLayout:
    """Sizes and sample types.

    Parameters
    ----------
    draw
        Given by hypothesis.
    most_bands
        Limit of the bands.
    one_column
        Whether there may be images of a single column.
    """
    return ImageLayout(
        columns=draw(st.integers(1 if one_column else 2, 9)),
        rows=draw(st.integers(1, 6)),
        bands=draw(st.integers(1, most_bands)),
        dynamic_range=draw(st.integers(2, 32)),
        signed=draw(st.booleans()),
    )


def _tables(bands: int, length: Any, low: int, high: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    one = st.integers(low, high)
    return st.tuples(
        *(st.lists(one, min_size=length(z), max_size=length(z)).map(tuple) for z in range(bands))
    )


@st.composite
def predictors(
    draw: st.DrawFn, image: ImageLayout, kinds: Sequence[tuple[str, bool, bool]] = PREDICTOR_KINDS
) -> Predictor:
    """Predictors for an image.

    Parameters
    ----------
    draw
        Given by hypothesis.
    image
        The image.
    kinds
        Some of `PREDICTOR_KINDS`; the sum is a column-oriented one where the image demands it.
    """
    sums, damped, offset = draw(st.sampled_from(kinds))
    if image.columns == 1:
        sums = sums.replace("neighbor", "column")
    omega, low = draw(st.integers(4, 19)), draw(st.integers(-6, 9))
    facts: dict[str, Any] = {
        "prediction_bands": draw(st.integers(0, 15)),
        "mode": "reduced" if image.columns == 1 else draw(st.sampled_from(["full", "reduced"])),
        "local_sum": sums,
        "register_size": draw(st.integers(max(32, image.dynamic_range + omega + 2), 64)),
        "weight_resolution": omega,
        "weight_interval": 1 << draw(st.integers(4, 11)),
        "weight_initial": low,
        "weight_final": draw(st.integers(low, 9)),
    }
    plain = Predictor(**facts)
    if draw(st.booleans()):
        bits = draw(st.integers(3, omega + 3))
        half = 1 << (bits - 1)
        facts["weight_table_resolution"] = bits
        facts["weight_table"] = draw(_tables(image.bands, plain.components, -half, half - 1))
    if offset:
        own = draw(_tables(1, lambda _: image.bands, -6, 5))[0]
        full = plain.mode == "full"
        bands = min(15, plain.prediction_bands)
        facts["weight_offsets"] = WeightOffsets(
            own=own if full else (0,) * image.bands,
            others=draw(_tables(image.bands, lambda z: min(z, bands), -6, 5)),
        )
    if damped:
        theta = draw(st.integers(0, 4))
        phi = st.integers(0, (1 << theta) - 1)
        many = st.lists(phi, min_size=image.bands, max_size=image.bands).map(tuple)
        facts["representatives"] = Representatives(
            resolution=theta,
            damping=draw(st.one_of(phi, many)),
            offset=draw(st.sampled_from([0, (0,) * image.bands])),
        )
    return Predictor(**facts)


@st.composite
def error_limits(draw: st.DrawFn, image: ImageLayout, *, updated: bool = False) -> ErrorLimits:
    """Error limits for an image.

    Parameters
    ----------
    draw
        Given by hypothesis.
    image
        The image.
    updated
        Whether they are updated after some rows.
    """
    kinds = draw(st.sampled_from([("absolute",), ("relative",), ("absolute", "relative")]))
    facts: dict[str, Any] = {"update_exponent": draw(st.integers(0, 3)) if updated else None}
    periods = -(-image.rows >> facts["update_exponent"]) if updated else 1
    for name in kinds:
        bits = draw(st.integers(1, min(image.dynamic_range - 1, 16)))
        one, by_band = st.integers(0, (1 << bits) - 1), draw(st.booleans())
        count = image.bands if by_band else 1
        row = st.lists(one, min_size=count, max_size=count).map(tuple)
        if updated:
            facts[name] = draw(st.lists(row, min_size=periods, max_size=periods).map(tuple))
        else:
            facts[name] = draw(row if by_band else one)
        facts |= {f"{name}_bits": bits, f"{name}_by_band": by_band}
    return ErrorLimits(**facts)


@st.composite
def coders(draw: st.DrawFn, image: ImageLayout) -> Coder:
    """Entropy coders for an image.

    Parameters
    ----------
    draw
        Given by hypothesis.
    image
        The image.
    """
    kind = draw(st.sampled_from([SampleAdaptive, BlockAdaptive, HybridCoder]))
    if kind is BlockAdaptive:
        return BlockAdaptive(
            block_size=draw(st.sampled_from([8, 16, 32, 64])),
            reference_interval=draw(st.one_of(st.integers(1, 70), st.sampled_from([64, 128, 4096]))),
            restricted=draw(st.booleans()),
        )
    start = draw(st.integers(1, 8))
    facts: dict[str, Any] = {
        "unary_length_limit": draw(st.integers(8, 32)),
        "initial_count_exponent": start,
        "rescaling_counter_size": draw(st.integers(max(4, start + 1), 11)),
    }
    if kind is HybridCoder:
        return HybridCoder(**facts)
    one = st.integers(0, min(image.dynamic_range - 2, 14))
    if draw(st.booleans()):
        return SampleAdaptive(**facts, accumulator_constant=draw(one))
    table = draw(st.lists(one, min_size=image.bands, max_size=image.bands).map(tuple))
    return SampleAdaptive(**facts, accumulator_constant=None, accumulator_table=table)


@st.composite
def supplementary(draw: st.DrawFn, image: ImageLayout) -> SupplementaryTable:
    """Supplementary tables for an image.

    Parameters
    ----------
    draw
        Given by hypothesis.
    image
        The image.
    """
    kind = draw(st.sampled_from(["unsigned", "signed", "float"]))
    facts: dict[str, Any] = {"kind": kind, "purpose": draw(st.integers(0, 15))}
    facts["structure"], facts["user_field"] = draw(st.integers(0, 3)), draw(st.integers(0, 15))
    if kind == "float":
        facts["significand_bits"] = draw(st.integers(1, 23))
        facts["exponent_bits"] = draw(st.integers(2, 8))
        facts["exponent_bias"] = draw(st.integers(0, (1 << facts["exponent_bits"]) - 1))
    else:
        facts["depth"] = draw(st.integers(1, 32))
    empty = SupplementaryTable(**facts, values=())
    low = -(1 << (empty.depth - 1)) if kind == "signed" else 0
    one = st.integers(low, (1 << empty.bits) - 1 + low)
    count = empty.count(image.columns, image.rows, image.bands)
    values = draw(st.lists(one, min_size=count, max_size=count).map(tuple))
    return SupplementaryTable(**facts, values=values)


@st.composite
def stream_parameters(
    draw: st.DrawFn,
    kinds: Sequence[tuple[str, bool, bool]] = PREDICTOR_KINDS,
    *,
    most_bands: int = 18,
    tables: bool = False,
) -> StreamParameters:
    """Parameters of streams.

    Parameters
    ----------
    draw
        Given by hypothesis.
    kinds
        As in `predictors`.
    most_bands
        Limit of the bands.
    tables
        Whether there may be supplementary tables.
    """
    neighbor = all("neighbor" in sums for sums, _, _ in kinds)
    image = draw(images(most_bands=most_bands, one_column=not neighbor))
    order: Order = draw(st.sampled_from(("bi", "bsq")))
    return StreamParameters(
        image=image,
        predictor=draw(predictors(image, kinds)),
        coder=draw(coders(image)),
        order=order,
        interleaving_depth=draw(st.integers(1, image.bands)) if order == "bi" else 1,
        output_word_size=draw(st.integers(1, 8)),
        user_field=draw(st.integers(0, 255)),
        supplementary=tuple(draw(st.lists(supplementary(image), max_size=2))) if tables else (),
    )


@st.composite
def near_lossless(
    draw: st.DrawFn, kinds: Sequence[tuple[str, bool, bool]] = PREDICTOR_KINDS, *, most_bands: int = 18
) -> StreamParameters:
    """Parameters of near-lossless streams.

    Parameters
    ----------
    draw
        Given by hypothesis.
    kinds
        As in `predictors`.
    most_bands
        Limit of the bands.
    """
    plain = draw(stream_parameters(kinds, most_bands=most_bands))
    updated = plain.order == "bi" and draw(st.booleans())
    limits = draw(error_limits(plain.image, updated=updated))
    predictor = replace(plain.predictor, error_limits=limits)
    found = predictor.representatives
    if found is not None:
        psi = st.integers(0, (1 << found.resolution) - 1)
        bands = plain.image.bands
        many = st.lists(psi, min_size=bands, max_size=bands).map(tuple)
        predictor = replace(predictor, representatives=replace(found, offset=draw(st.one_of(psi, many))))
    return replace(plain, predictor=predictor)


@st.composite
def cubes(draw: st.DrawFn, image: ImageLayout) -> NDArray[np.int64]:
    """Samples of an image, shape (rows, columns, bands): noise, constants, ramps, extremes, rare events.

    Parameters
    ----------
    draw
        Given by hypothesis.
    image
        The image.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (image.rows, image.columns, image.bands)
    kind = draw(st.sampled_from(["noise", "constant", "ramp", "extremes", "events", "walk"]))
    if kind == "noise":
        return rng.integers(image.least, image.largest + 1, shape)
    if kind == "constant":
        return np.full(shape, rng.integers(image.least, image.largest + 1), np.int64)
    if kind == "extremes":
        return np.where(rng.random(shape) < 0.5, image.least, image.largest)
    if kind == "ramp":
        values = np.arange(np.prod(shape)).reshape(shape) * rng.integers(-3, 4) + image.middle
    elif kind == "events":
        values = (rng.random(shape) < 0.05) * rng.integers(0, 9, shape) + image.middle
    else:
        values = np.cumsum(rng.integers(-2, 3, shape), axis=1) + image.middle
    return np.asarray(np.clip(values, image.least, image.largest), np.int64)
