"""What the architecture tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def package(repository: Path) -> Path:
    """Folder of the package's sources."""
    return repository / "src" / "plait"
