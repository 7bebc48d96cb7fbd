"""Low-density parity-check codes: decoding by sum-product and min-sum, encoding, curves of error rates.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.ldpc.codes import Code, code_named
    from plait.ldpc.decoding import Decoded, decode
    from plait.ldpc.simulation import ErrorRates, simulate

__all__ = ["Code", "Decoded", "ErrorRates", "code_named", "decode", "simulate"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
