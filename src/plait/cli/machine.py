"""``plait doctor``, ``compile`` and ``completion``: this machine and plait."""

from __future__ import annotations

import json
import time
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import WholeNumber, say


def doctor(
    *,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quick: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Tell what plait can use on this machine, and what to do about the rest.

    Parameters
    ----------
    json_
        Print JSON.
    quick
        Do not run a small kernel on every GPU.
    """
    from plait.reports.doctor import doctor_text, examine

    machine = examine(try_devices=not quick)
    print(json.dumps(machine.as_dict(), indent=2) + "\n" if json_ else doctor_text(machine), end="")


def compile_ahead(*, processes: WholeNumber | None = None) -> None:
    """Compile ahead what commands usually need on the CPU.

    What an installation has brought, or earlier commands have left, is not compiled again.

    Parameters
    ----------
    processes
        Processes that compile; otherwise the processors that this one may use.
    """
    from plait.lang.ahead import listed, missing, start
    from plait.lang.compile import compiled_cache
    from plait.settings import thread_count

    count, begun = thread_count() if processes is None else processes, time.perf_counter()
    folder, wanted = compiled_cache(), missing(listed())
    many = f"{len(wanted)} kernel{'' if len(wanted) == 1 else 's'}"
    if wanted:
        say(f"compiling {many} in {count} process{'' if count == 1 else 'es'}")
    for process in start(wanted, count):
        told = process.communicate()[1]
        if process.returncode:
            raise RuntimeError(told.strip())
    say(f"compiled {many} in {time.perf_counter() - begun:.1f} s, kept in {folder}")


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what lets a shell complete commands and options; for zsh, a file _plait in a folder of fpath.

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    from plait.cli.entry import app

    print(app.generate_completion(prog_name="plait", shell=shell))
