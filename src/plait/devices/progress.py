"""Progress of work that may have to be done again elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Told:
    """Passes numbers of cells on, and knows how many were told.

    The first `before` cells were told in vain and are not told again.
    """

    def __init__(self, progress: Callable[[int], None], before: int = 0) -> None:
        self._progress = progress
        self._before = before
        self._cells = 0
        self._lock = threading.Lock()

    def __call__(self, cells: int) -> None:
        """Tell so many more."""
        with self._lock:
            known = max(self._before - self._cells, 0)
            self._cells += cells
            new = cells - known
        if new > 0:
            self._progress(new)

    def again(self) -> Told:
        """For the same work from its beginning."""
        return Told(self._progress, max(self._cells, self._before))
