"""Small value types shared by every subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Availability", "Provenance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How a result was made.

    Attributes
    ----------
    version
        Version of plait.
    device
        Target that ran, for example ``"cpu"``.
    schedule
        Name of the schedule.
    algebra
        Name of the algebra.
    parameters
        Everything else that determines the values.
    """

    version: str
    device: str
    schedule: str
    algebra: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionary, ready for JSON."""
        return {
            "version": self.version,
            "device": self.device,
            "schedule": self.schedule,
            "algebra": self.algebra,
            "parameters": dict(self.parameters),
        }


class Availability(NamedTuple):
    """Whether a device can be used here.

    Attributes
    ----------
    ok
        Whether it can.
    reason, fix
        If not: why, and what to do.
    """

    ok: bool
    reason: str = ""
    fix: str = ""
