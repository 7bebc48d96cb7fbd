"""What is done with one part: clonotypes written, figure tables filled, predictors written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.statistics.design_file import DesignWriter
from plait.vdj.convergence.clonotype_parts import group_rows, write_clonotypes
from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.convergence.figure_tables import FigureTables
from plait.vdj.convergence.partition import part_rows, row_schema
from plait.vdj.convergence.pgen_columns import PgenColumns
from plait.vdj.convergence.predictors import PredictorSet
from plait.vdj.convergence.settings import StudySettings

__all__ = ["PartDone", "PartWork", "figure_settings"]

_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDone:
    """What came of a part.

    Attributes
    ----------
    clonotypes, shared
        Clonotypes, and those that are shared.
    counted
        Clonotypes that have a path count.
    design
        File of predictors, if there is a clonotype with a path count and, where the study has it, Pgen.
    figures
        Its share of the figure tables.
    """

    clonotypes: int
    shared: int
    counted: int
    design: Path | None
    figures: FigureTables


@dataclass(frozen=True, slots=True, kw_only=True)
class PartWork:
    """Does one part; called with its number, in any process.

    Attributes
    ----------
    settings
        What is studied.
    predictors
        Those of the regression; None: no regression.
    rows
        Folder with the pieces.
    pieces
        Their names, in order.
    clonotypes, design
        Where the clonotypes and the predictors go.
    duplicate_count
        Whether any input has this column.
    pgen
        What computes generation probabilities, if there are any.
    """

    settings: StudySettings
    predictors: PredictorSet | None
    rows: Path
    pieces: Sequence[str]
    clonotypes: Path
    design: Path
    duplicate_count: bool
    pgen: PgenColumns | None = None

    def __call__(self, part: int) -> PartDone:
        """Do a part.

        Parameters
        ----------
        part
            Its number.
        """
        pieces = [self.rows / name for name in self.pieces]
        rows = part_rows(pieces, part, row_schema(self.settings))
        clonotypes, pairs = group_rows(
            rows, self.settings, duplicate_count=self.duplicate_count, pgen=self.pgen
        )
        del rows
        write_clonotypes(clonotypes, self.clonotypes / f"part-{part:05d}.parquet")
        figures = FigureTables(figure_settings(self.settings))
        figures.add_clonotypes(clonotypes)
        figures.add_pairs(pairs)
        del pairs
        shared = np.asarray(clonotypes["subjects"]) >= self.settings.shared_by
        counted = clonotypes.filter(pc.is_valid(clonotypes["path_count"]))
        design = None
        known = counted if self.pgen is None else counted.filter(pc.is_valid(counted["pgen_nt"]))
        if self.predictors is not None and known.num_rows:
            design = self.design / f"part-{part:05d}.design"
            self._write_design(design, known, self.predictors)
        return PartDone(
            clonotypes=clonotypes.num_rows,
            shared=int(shared.sum()),
            counted=counted.num_rows,
            design=design,
            figures=figures,
        )

    def _write_design(self, path: Path, counted: pa.Table, predictors: PredictorSet) -> None:
        outcome = np.asarray(counted["subjects"]) >= self.settings.shared_by
        rows = min(_CHUNK_ROWS, counted.num_rows)
        with DesignWriter(path, predictors.names, chunk_rows=rows) as writer:
            for start in range(0, counted.num_rows, rows):
                writer.write(predictors.values(counted.slice(start, rows)), outcome[start : start + rows])


def figure_settings(settings: StudySettings) -> FigureSettings:
    """Settings of the figure tables of a study.

    Parameters
    ----------
    settings
        Of the study.
    """
    pi, nu = settings.model.axes if settings.model.is_sweep else ((), ())
    return FigureSettings(shared_by=settings.shared_by, pi=pi, nu=nu, pgen=settings.with_pgen)
