"""The command ``plait``: one module a command, and no logic."""

from __future__ import annotations

from plait.cli.entry import command, main

__all__ = ["command", "main"]
