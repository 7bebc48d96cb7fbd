"""Packages that only some formats need, loaded when they are."""

from __future__ import annotations

import importlib
from typing import Any

from plait.errors import TargetUnavailable


def load_package(name: str, purpose: str, extra: str = "hsi") -> Any:
    """Import a package that an extra of plait brings; `purpose` is what needs it, for the message.

    TargetUnavailable if it cannot be imported; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TargetUnavailable(
            name,
            reason=f"{purpose} needs it, and it cannot be imported ({error})",
            fix=f"install it: pip install 'plait[{extra}]'",
        ) from error
