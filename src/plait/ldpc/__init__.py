"""Low-density parity-check codes: decoding by sum-product and min-sum, encoding, curves of error rates.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.ldpc.codes import Code, code_named
    from plait.ldpc.decoding import Decoded, decode
    from plait.ldpc.simulation import ErrorRates, simulate

__all__ = ["Code", "Decoded", "ErrorRates", "code_named", "decode", "simulate"]

_HOME = {
    "Code": "codes",
    "code_named": "codes",
    "Decoded": "decoding",
    "decode": "decoding",
    "ErrorRates": "simulation",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
