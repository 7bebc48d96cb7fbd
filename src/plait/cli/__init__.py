"""The command ``plait``: one module a command, and no logic."""

from __future__ import annotations

import gc
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after ``plait``; those of this process by default.

    Returns
    -------
    int
        Exit status: 0 done; 1 a checked germline set has errors; 2 a wrong request or input; 70 an error of
        plait itself; 130 and 143 ended by Ctrl-C and by SIGTERM.
    """
    threshold = gc.get_threshold()
    # Each search for cycles looks at all that modules have, and other threads wait for it.
    gc.set_threshold(threshold[0] and 50_000)
    try:
        from plait.cli.entry import run

        return run(arguments)
    finally:
        gc.set_threshold(*threshold)
