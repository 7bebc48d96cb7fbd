"""Every exception plait raises on purpose; this tree is the whole of it.

::

    PlaitError
    |- InvalidInput        (ValueError)           a value given to a function or option is wrong
    |- FormatError         (ValueError)           a file is not what it should be
    |- CountOverflow       (OverflowError)        an exact count does not fit the asked-for integer
    |- DeviceFailure       (RuntimeError)         a device stopped in the middle of the work
    |- DeviceMemoryError   (MemoryError)          a device has too little memory
    |- TargetUnavailable   (RuntimeError)         the asked-for device or cluster cannot be used here
    |- TaskFailed          (RuntimeError)         a part of the work failed on every worker that tried it
    `- Unsupported         (NotImplementedError)  a valid request that plait does not serve

Errors carry their facts as attributes, so that callers need not parse text.
"""

from __future__ import annotations

import copyreg
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = [
    "MOST_THREADS",
    "CountOverflow",
    "DeviceFailure",
    "DeviceMemoryError",
    "FormatError",
    "InvalidInput",
    "PlaitError",
    "TargetUnavailable",
    "TaskFailed",
    "Unsupported",
    "check_choice",
    "in_range",
    "one_of",
    "whole",
    "whole_fields",
]

#: More than machines have processors, so that memory made for each of the threads stays within bounds.
MOST_THREADS: Final = 4096


class PlaitError(Exception):
    """Base class of all errors raised by plait."""

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel between processes whole; by default they would be made anew of their text alone."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InvalidInput(PlaitError, ValueError):
    """A value given by the caller is wrong.

    Parameters
    ----------
    what
        Name of the argument or option.
    found
        What was given, worded for the message (quote values with ``repr``).
    expected
        What would have been accepted.
    hint
        What to do about it, if plait knows.
    """

    def __init__(self, what: str, *, found: object, expected: str, hint: str | None = None) -> None:
        self.what = what
        self.found = found
        self.expected = expected
        self.hint = hint
        text = f"{what}: found {found}, expected {expected}"
        super().__init__(f"{text}; {hint}" if hint else text)


def one_of(parameter: str, value: object, allowed: Iterable[object]) -> None:
    """Check that the value of a parameter is one of a few.

    Parameters
    ----------
    parameter
        Its name.
    value
        Its value.
    allowed
        What it may be.

    Raises
    ------
    InvalidInput
        If it is none of these.
    """
    if value not in (known := list(allowed)):
        raise InvalidInput(parameter, found=repr(value), expected=f"one of {', '.join(map(str, known))}")


def check_choice(parameter: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Check names that are chosen out of those that there are: at least one, and each once.

    Parameters
    ----------
    parameter
        What they are given as.
    names
        The names.
    known
        All that there are.

    Raises
    ------
    InvalidInput
        If there is none, or one is unknown or there twice.
    """
    there = list(known)
    expected = f"names out of {', '.join(there)}"
    for name in names:
        if name not in there:
            import difflib

            close = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {close[0]}?" if close else None
            raise InvalidInput(parameter, found=repr(name), expected=expected, hint=hint)
        if list(names).count(name) > 1:
            raise InvalidInput(parameter, found=f"{name!r} more than once", expected="every column once")
    if not names:
        raise InvalidInput(parameter, found="no name", expected=expected)


def in_range(parameter: str, value: float, least: int, most: float = math.inf) -> None:
    """Check that the value of a parameter is in a range.

    Parameters
    ----------
    parameter
        Its name.
    value
        Its value.
    least, most
        The range, ends included.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if not least <= value <= most:
        wanted = f"at least {least}" if most == math.inf else f"{least} to {most}"
        raise InvalidInput(parameter, found=value, expected=wanted)


def whole(
    parameter: str, value: Any, least: int = 0, most: float = math.inf, why: str = "", hint: str | None = None
) -> int:
    """Check that the value of a parameter is a whole number, of Python or NumPy, in a range.

    Parameters
    ----------
    parameter, value
        Its name and what was given.
    least, most
        The range, ends included.
    why
        For the message, after the range.
    hint
        For the message.

    Returns
    -------
    int
        The number.

    Raises
    ------
    InvalidInput
        If it is not; a number with a point is none, and neither is a truth value.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        found = repr(value) if number is None else number
        wanted = f" of at least {least}" if most == math.inf else f" from {least} to {most}"
        raise InvalidInput(parameter, found=found, expected=f"a whole number{wanted}{why}", hint=hint)
    return number


def whole_fields(settings: Any, *fields: str, least: int = 0, most: float = math.inf) -> None:
    """Make fields of frozen settings whole numbers; what is None by default may be None.

    Parameters
    ----------
    settings
        A dataclass.
    *fields
        Names of its fields.
    least, most
        Their range, ends included.

    Raises
    ------
    InvalidInput
        If one is no whole number or out of range.
    """
    for name in fields:
        value = getattr(settings, name)
        if value is not None or settings.__dataclass_fields__[name].default is not None:
            object.__setattr__(settings, name, whole(name, value, least, most))


class FormatError(PlaitError, ValueError):
    """A file is not what it should be.

    Parameters
    ----------
    path
        The file.
    expected
        What a correct file has at this place.
    found
        What this file has there, worded for the message.
    line
        1-based line number in the decompressed text, where known.
    record
        0-based record (data row) number, where known.
    column
        Column name, where known.
    hint
        What to do about it, if plait knows.
    """

    def __init__(
        self,
        path: object,
        *,
        expected: str,
        found: object,
        line: int | None = None,
        record: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.path = str(path)
        self.expected = expected
        self.found = found
        self.line = line
        self.record = record
        self.column = column
        self.hint = hint
        where = self.path
        if line is not None:
            where += f", line {line}"
        elif record is not None:
            where += f", record {record}"
        if column is not None:
            where += f", column {column!r}"
        text = f"{where}: found {found}, expected {expected}"
        super().__init__(f"{text}; {hint}" if hint else text)


class CountOverflow(PlaitError, OverflowError):
    """An exact count does not fit the integer type that was asked for.

    Parameters
    ----------
    record
        0-based number of the first item that overflowed.
    items
        How many items overflowed.
    """

    def __init__(self, *, record: int, items: int) -> None:
        self.record = record
        self.items = items
        super().__init__(
            f"{items} item(s), the first at record {record}, have counts of 2^63 or more; "
            "ask for overflow='float' or overflow='wide'"
        )


class DeviceFailure(PlaitError, RuntimeError):
    """A device stopped in the middle of the work; nothing of it was returned.

    Parameters
    ----------
    device
        Name of the device, such as ``cuda:0``.
    reason
        What happened, as the driver says it.
    fix
        What to do.
    """

    def __init__(self, device: str, *, reason: str, fix: str) -> None:
        self.device = device
        self.reason = reason
        self.fix = fix
        super().__init__(f"device {device!r} failed: {reason}; {fix}")


class DeviceMemoryError(PlaitError, MemoryError):
    """A device has too little memory, or the machine for it; nothing of the work was returned.

    Parameters
    ----------
    device
        Name of the device, such as ``cuda:0``.
    needed
        Bytes that were asked for, where known.
    free
        Bytes that were free, where known.
    fix
        What to do.
    of_host
        Whether it is memory of the machine that lacks, from which the device copies.
    """

    def __init__(
        self, device: str, *, needed: int | None, free: int | None, fix: str, of_host: bool = False
    ) -> None:
        self.device = device
        self.of_host = of_host
        self.needed = needed
        self.free = free
        self.fix = fix
        told = f"device {device!r} has too little memory"
        if of_host:
            told = f"this machine has too little memory from which device {device!r} can copy"
        facts = [
            f"{what} {number / 2**20:,.0f} MiB"
            for what, number in (("needed:", needed), ("free:", free))
            if number is not None
        ]
        super().__init__(f"{told} ({', '.join(facts)}); {fix}" if facts else f"{told}; {fix}")


class TargetUnavailable(PlaitError, RuntimeError):
    """The device that was asked for cannot be used on this machine.

    Parameters
    ----------
    target
        Name of the target.
    reason
        Why it is unavailable.
    fix
        How to make it available.
    """

    def __init__(self, target: str, *, reason: str, fix: str) -> None:
        self.target = target
        self.reason = reason
        self.fix = fix
        super().__init__(f"target {target!r} is unavailable: {reason}; {fix}")


class TaskFailed(PlaitError, RuntimeError):
    """A part of the work failed on every worker of a cluster that tried it.

    Parameters
    ----------
    task
        The part, for example rows of a file.
    reason
        What happened.
    fix
        What to do.
    unexpected
        Whether it is an error of plait itself, not of the cluster.
    """

    def __init__(self, task: str, *, reason: str, fix: str, unexpected: bool = False) -> None:
        self.task = task
        self.reason = reason
        self.fix = fix
        self.unexpected = unexpected
        super().__init__(f"{task} failed: {reason}; {fix}")


class Unsupported(PlaitError, NotImplementedError):
    """A valid request that plait does not serve.

    Parameters
    ----------
    what
        What was asked for.
    why
        Why it is not served, and what to use instead.
    """

    def __init__(self, what: str, *, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"{what} is not supported: {why}")
