"""``plait doctor``."""

from __future__ import annotations

import json
from typing import Annotated

from cyclopts import Parameter


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
    print(json.dumps(machine.as_dict(), indent=2) if json_ else doctor_text(machine), end="")
    if json_:
        print()
