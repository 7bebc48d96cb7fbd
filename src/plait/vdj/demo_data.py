"""The repertoires of the demo: human TRB of 12 donors, a data file of the package pyimmunarch."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from plait.errors import InvalidInput

__all__ = ["demo_repertoires"]

_PACKAGE = "pyimmunarch"
_FILE = "_data/immdata.parquet"


def demo_repertoires() -> Path:
    """The file, in immunarch's layout; the package is found and never imported.

    Raises
    ------
    InvalidInput
        If the package is not installed, or lacks the file.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    raise InvalidInput(
        "demo data",
        found=f"{_PACKAGE} without {_FILE}" if folders else f"no package {_PACKAGE}",
        expected="the repertoires of 12 donors that it brings",
        hint="install it: pip install 'plait[demo]', or pip install '.[demo]' in a checkout",
    )
