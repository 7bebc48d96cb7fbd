"""Small value types shared by every subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

__all__ = ["Availability", "Closing", "Provenance", "WholeOrNot"]


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


class Closing(ABC):
    """What is closed in the end: a context manager."""

    @abstractmethod
    def close(self) -> None:
        """Close it; for the second time, nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WholeOrNot(Closing):
    """An output that appears when it is closed, or never.

    As a context manager it is closed on a clean exit, and discarded on any exception, `KeyboardInterrupt`
    included.
    """

    @abstractmethod
    def discard(self) -> None:
        """Remove what is unfinished; an older output of the same name stays as it was."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise
