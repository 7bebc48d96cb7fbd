"""The command ``plait``: one module a command, and no logic."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.cli.entry import main

__all__ = ["command", "main"]
__getattr__, __dir__ = on_first_use(__name__, __file__)


def command() -> NoReturn:
    """Run the command line of this process, and end it.

    But with MPI or a profiler, it ends when functions of `atexit` have run: to take apart what modules and
    drivers of GPUs have made is a fifth of a short command, or up to a second, and the system gives all of it
    back anyway.
    """
    # Each search for cycles looks at all that modules have, and other threads wait for it.
    gc.set_threshold(gc.get_threshold()[0] and 50_000)
    # Ctrl-C while modules are loaded ends the process as it does later, and not with a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from plait.cli.entry import main

    # There is none where the shell has closed it: results that go there fail, as they would with a full disk.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115  # while it runs
    status = main()
    # MPI is to know of the end, and profilers write behind it.
    if not sys.modules.keys().isdisjoint(("mpi4py", "cProfile", "profile", "trace")):
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # What finds no room has been told.
        with suppress(OSError):
            stream.flush()
    os._exit(status)
