"""The parameters of a CCSDS 123 stream, by the names of the standard, checked.

Each class is one part of the header: the image, the predictor and one of three entropy coders. A stream that
uses nothing of 123.0-B-2 is one of 123.0-B-1, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from plait.hyperspectral.coder_parameters import BlockAdaptive, Coder, HybridCoder, SampleAdaptive
from plait.hyperspectral.image_layout import ImageLayout, check_choice, check_number
from plait.hyperspectral.parameter_types import check_types
from plait.hyperspectral.predictor_parameters import (
    LocalSum,
    Mode,
    Predictor,
    Representatives,
    WeightOffsets,
)
from plait.hyperspectral.supplementary import SupplementaryTable

__all__ = [
    "BlockAdaptive",
    "Coder",
    "HybridCoder",
    "ImageLayout",
    "LocalSum",
    "Mode",
    "Order",
    "Predictor",
    "Representatives",
    "SampleAdaptive",
    "StreamParameters",
    "WeightOffsets",
]

Order = Literal["bi", "bsq"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParameters:
    """Everything the header of a stream says.

    Attributes
    ----------
    image, predictor, coder
        The three parts.
    order
        Order of the codewords: band-interleaved or band-sequential.
    interleaving_depth
        M of the band-interleaved order, 1 (BIL) to the number of bands (BIP).
    output_word_size
        B, 1 to 8 bytes: the length of a stream is a multiple of it.
    user_field
        The byte that users may give a meaning to.
    supplementary
        Supplementary tables (123.0-B-2), at most 15.

    Raises
    ------
    InvalidInput
        If a value is out of its range, or does not go with another.
    """

    image: ImageLayout
    predictor: Predictor = field(default_factory=Predictor)
    coder: Coder = field(default_factory=SampleAdaptive)
    order: Order = "bi"
    interleaving_depth: int = 1
    output_word_size: int = 1
    user_field: int = 0
    supplementary: tuple[SupplementaryTable, ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        self.predictor.check(self.image)
        self.coder.check(self.image)
        check_choice("order", self.order, ("bi", "bsq"))
        if self.order == "bi":
            check_number("interleaving_depth", self.interleaving_depth, 1, self.image.bands)
        check_number("output_word_size", self.output_word_size, 1, 8)
        check_number("user_field", self.user_field, 0, 255)
        check_number("number of supplementary tables", len(self.supplementary), 0, 15)
        for table in self.supplementary:
            table.check(self.image.columns, self.image.rows, self.image.bands)
