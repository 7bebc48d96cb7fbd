"""What a worker process that was started here does first."""

from __future__ import annotations

import signal
import threading


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C, which reaches all processes of a terminal, to the one that has started this one."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
