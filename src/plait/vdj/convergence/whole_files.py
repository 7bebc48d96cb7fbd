"""Path counts of many files on many workers: each file counted, and written, by one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.vdj.convergence.count_cache import CountedSample, PlannedSample, count_sample
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.count_blocks import CountPlan

__all__ = ["WholeFiles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFiles:
    """Counts whole files; one process that writes all counts would be slower than two that count.

    Attributes
    ----------
    settings, plan
        What is counted.
    folder
        Where counts are kept.
    """

    settings: StudySettings
    plan: CountPlan
    folder: Path

    def __call__(self, planned: PlannedSample) -> CountedSample:
        """Count one file here."""
        return count_sample(planned, self.settings, self.plan, self.folder, executor=LocalExecutor(1))

    def count(
        self, planned: Sequence[PlannedSample], executor: Executor, told: Callable[[int], None]
    ) -> list[CountedSample]:
        """Count all files.

        Parameters
        ----------
        planned
            The files.
        executor
            Where they are counted.
        told
            Told of the bytes of the files that are finished.
        """
        names = [(one.sample.path.name, one.size) for one in planned]
        # What may be the same content twice has one table of counts: one process after the other.
        alone = [names.index(name) == place for place, name in enumerate(names)]
        sent = [_absolute(one) for one, first in zip(planned, alone, strict=True) if first]
        found: dict[int, CountedSample] = {}
        done = 0
        told(done)
        places = [place for place, first in enumerate(alone) if first]
        with closing(executor.map(self, sent, named=lambda one: repr(str(one.sample.path)))) as results:
            for place, counted in zip(places, results, strict=True):
                found[place] = counted
                done += planned[place].size
                told(done)
        for place in sorted(set(range(len(planned))) - set(found)):
            found[place] = self(planned[place])
        return [replace(found[place], source=one.sample.path) for place, one in enumerate(planned)]


def _absolute(planned: PlannedSample) -> PlannedSample:
    """The same file, for processes in other folders."""
    return replace(planned, sample=replace(planned.sample, path=planned.sample.path.absolute()))
