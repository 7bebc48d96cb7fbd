"""``python -m plait``."""

from __future__ import annotations

from plait.cli import command

if __name__ == "__main__":
    command()
