"""The tables inside a study: their columns, names and Arrow types.

The rows of one subject that show one clonotype are a pair. Tables of clonotypes and of pairs come in parts,
each with whole clonotypes only.
"""

from __future__ import annotations

import pyarrow as pa

from plait.vdj.clonotype_names import CLONOTYPE
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.regions import D_REGION_COLUMNS, REGION_COLUMNS

__all__ = ["CLONOTYPE", "clonotype_schema", "number_type", "pair_schema", "region_names"]


def number_type(settings: StudySettings) -> pa.DataType:
    """Arrow type of a path count.

    Parameters
    ----------
    settings
        What is counted.
    """
    return pa.float64() if settings.overflow == "float" else pa.int64()


def region_names(settings: StudySettings) -> list[str]:
    """Names of the region columns that there are.

    Parameters
    ----------
    settings
        What is counted.
    """
    if settings.with_d:
        return list(REGION_COLUMNS)
    left_out = {*D_REGION_COLUMNS, "d_match_length"}
    return [name for name in REGION_COLUMNS if name not in left_out]


def clonotype_schema(settings: StudySettings, *, duplicate_count: bool = True) -> pa.Schema:
    """Columns of the table of clonotypes.

    Parameters
    ----------
    settings
        What is counted.
    duplicate_count
        Whether the input has this column.

    Returns
    -------
    pyarrow.Schema
        junction, v_gene and j_gene (large_string, never null); subjects (int32); rows (int64);
        duplicate_count (int64); status (string); path_count (null unless status is ok); junction_length
        (int32); the region columns (int32; null unless status is ok, those of D also where no D nucleotide
        is found); path_count_sweep, a fixed-size list over `settings.sweep_models`, whose items are null
        unless status is ok.
    """
    number = number_type(settings)
    fields = [pa.field(name, pa.large_string()) for name in CLONOTYPE]
    fields += [pa.field("subjects", pa.int32()), pa.field("rows", pa.int64())]
    if duplicate_count:
        fields.append(pa.field("duplicate_count", pa.int64()))
    fields += [
        pa.field("status", pa.string()),
        pa.field("path_count", number),
        pa.field("junction_length", pa.int32()),
        *(pa.field(name, pa.int32()) for name in region_names(settings)),
    ]
    if settings.sweep_models:
        item = pa.field("item", number)
        fields.append(pa.field("path_count_sweep", pa.list_(item, len(settings.sweep_models))))
    return pa.schema(fields)


def pair_schema(settings: StudySettings, *, duplicate_count: bool = True) -> pa.Schema:
    """Columns of the table of clonotypes and subjects.

    Parameters
    ----------
    settings, duplicate_count
        As for `clonotype_schema`.

    Returns
    -------
    pyarrow.Schema
        subject (large_string); rows and duplicate_count of the clonotype in this subject; then, of the
        clonotype: v_gene, j_gene, subjects, status, path_count, junction_length and the region columns.
    """
    fields = [pa.field("subject", pa.large_string()), pa.field("rows", pa.int64())]
    if duplicate_count:
        fields.append(pa.field("duplicate_count", pa.int64()))
    of_clonotype = clonotype_schema(settings, duplicate_count=duplicate_count)
    taken = {"junction", "rows", "duplicate_count", "path_count_sweep"}
    return pa.schema([*fields, *(field for field in of_clonotype if field.name not in taken)])
