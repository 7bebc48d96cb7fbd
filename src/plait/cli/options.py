"""Kinds of options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, Token

from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.executors.protocol import Executor
    from plait.vdj.models import PathModel

__all__ = [
    "AmbiguousOption",
    "ChainOption",
    "DeviceOption",
    "EmptyDOption",
    "ExecutorOption",
    "ExecutorParameters",
    "LayoutOption",
    "ModelOption",
    "ModelParameters",
    "OutputOption",
    "OverflowOption",
    "StrandsOption",
    "WholeNumber",
    "values_of",
]

# Written out here, so that help and checks of options need not load what the words mean.
AmbiguousOption = Literal["first", "all", "fail"]
ChainOption = Literal["auto", "vj", "vdj", "vddj"]
EmptyDOption = Literal["positions", "once", "none"]
ExecutorOption = Literal["local", "dask"]
LayoutOption = Literal["airr", "immunarch", "vdjtools", "mixcr"]
ModelOption = Literal["dp2", "dp1", "exhaustive"]
OverflowOption = Literal["null", "float", "wide"]
StrandsOption = Literal[1, 2]


def _whole_number(kind: object, tokens: Sequence[Token]) -> int:
    """Exactly what is written: the default turns 4.5 into 4 without a word."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {text!r}, expected a whole number") from None


def _device(kind: object, tokens: Sequence[Token]) -> str:
    from plait.targets.devices import check_device

    name = tokens[0].value
    try:
        check_device(name)
    except InvalidInput as wrong:
        raise ValueError(f"found {name!r}, expected {wrong.expected}") from None
    return name


DeviceOption = Annotated[str, Parameter(converter=_device)]
WholeNumber = Annotated[int, Parameter(converter=_whole_number)]
OutputOption = Annotated[Path, Parameter(name=["--output", "-o"])]

_MOST_VALUES = 1000


def values_of(option: str, text: str | None) -> tuple[int, ...]:
    """The values of a sweep, from ``A:B`` (both ends included) or a list with commas between.

    >>> values_of("--sweep-pi", "0:4"), values_of("--sweep-nu", "0,5,10"), values_of("--sweep-nu", None)
    ((0, 1, 2, 3, 4), (0, 5, 10), ())
    """
    if text is None:
        return ()
    first, colon, last = text.partition(":")
    parts = [part.strip() for part in ((first, last) if colon else text.split(","))]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise _bad_values(option, text)
    numbers = [int(part) for part in parts]
    if not colon:
        return tuple(numbers)
    if not 0 <= numbers[1] - numbers[0] < _MOST_VALUES:
        raise _bad_values(option, text)
    return tuple(range(numbers[0], numbers[1] + 1))


def _bad_values(option: str, text: str) -> InvalidInput:
    return InvalidInput(
        option, found=repr(text), expected="a range such as 0:4, both ends included, or a list such as 0,2,4"
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelParameters:
    """Options of a path-counting model.

    Attributes
    ----------
    model
        dp2: extension and erosion at every end; dp1: counts by the total number of N nucleotides;
        exhaustive: the same by enumeration.
    strands
        dp2: hairpins opened on one strand, or on either one of two.
    pi
        Longest palindromic (P) extension of a gene end.
    nu
        dp2: most random (N) nucleotides at a junction.
    nu_vd
        dp2: another limit between V and D.
    nu_dj
        dp2: another limit between D and J.
    sweep_pi
        dp2: values of pi to count with besides, as 0:4 (both ends included) or 0,2,4.
    sweep_nu
        dp2: values of nu to count with besides; every combination is counted.
    max_n
        dp1, exhaustive: largest total number of N nucleotides; otherwise 10, and 4 for exhaustive.
    empty_d
        dp1, exhaustive: ways in which D can vanish: once for every position in it, once, or none.
    """

    model: ModelOption = "dp2"
    strands: StrandsOption = 1
    pi: WholeNumber = 4
    nu: WholeNumber = 10
    nu_vd: WholeNumber | None = None
    nu_dj: WholeNumber | None = None
    sweep_pi: str | None = None
    sweep_nu: str | None = None
    max_n: WholeNumber | None = None
    empty_d: EmptyDOption = "positions"

    def model_of(self) -> PathModel:
        """The model they ask for."""
        from plait.vdj.models import PathModel

        return PathModel(
            name=self.model,
            strands=self.strands,
            pi=self.pi,
            nu=self.nu,
            nu_vd=self.nu_vd,
            nu_dj=self.nu_dj,
            sweep_pi=values_of("--sweep-pi", self.sweep_pi),
            sweep_nu=values_of("--sweep-nu", self.sweep_nu),
            empty_d=self.empty_d,
            **({} if self.max_n is None else {"max_n": self.max_n}),
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExecutorParameters:
    """Options that say where the work is done.

    Attributes
    ----------
    executor
        local: threads of this process; dask: a Dask cluster.
    scheduler
        dask: address of a scheduler that runs, as tcp://host:8786; otherwise workers are started on this
        machine.
    scheduler_file
        dask: file in which a scheduler that runs has written its address.
    workers
        dask: worker processes to start on this machine; otherwise as many as its processors allow.
    worker_memory
        dask: memory of each worker that is started, as 4GiB; otherwise its share of this machine's.
    """

    executor: ExecutorOption = "local"
    scheduler: str | None = None
    scheduler_file: Path | None = None
    workers: WholeNumber | None = None
    worker_memory: str | None = None

    def open(self, threads: int | None) -> AbstractContextManager[Executor]:
        """The executor they ask for; closed on exit.

        Parameters
        ----------
        threads
            The option ``--threads``: threads of this process, or of each worker that is started.
        """
        from plait.executors.choice import open_executor

        return open_executor(
            self.executor,
            threads=threads,
            scheduler=self.scheduler,
            scheduler_file=self.scheduler_file,
            workers=self.workers,
            worker_memory=self.worker_memory,
        )
