"""``plait vdj sharing``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import (
    DeviceOption,
    ExecutorParameters,
    Flag,
    FurtherTable,
    RowProgress,
    SheetSource,
    Signed,
    TableOutput,
    WholeNumber,
    model_named,
    tables_of,
)
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.vdj.repertoires.expected import GenerationSettings


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExpectedParameters:
    """Options of what generation leads to expect.

    Attributes
    ----------
    model
        A recombination model, by name or path (see plait vdj pgen): every clonotype is compared with how
        often it is expected to be shared, given how often it is generated and how many clonotypes each
        individual has. Without it nothing is.
    repair_anchors
        Mend genes of the model whose conserved codon is not where the model says, where there is one way to
        do so.
    selection
        Share of the generated sequences that pass selection, above 0 and up to 1; fit finds the one with
        which as many clonotypes are expected in two individuals or more as there are.
    draws
        Productive junctions drawn from the model to compute expected numbers from.
    seed
        What the draws depend on.
    device
        Where probabilities are computed: auto, cpu, cuda, cuda:N, cuda:all or reference.
    """

    model: str | None = None
    repair_anchors: Flag = False
    selection: str = "fit"
    draws: WholeNumber = 200_000
    seed: Annotated[WholeNumber, Signed] = 0
    device: DeviceOption = "auto"

    def settings(self) -> GenerationSettings | None:
        """What they ask for."""
        from plait.vdj.repertoires.expected import GenerationSettings

        if self.model is None:
            return None
        try:
            share: float | Literal["fit"] = "fit" if self.selection == "fit" else float(self.selection)
        except ValueError as error:
            expected = "fit, or a share above 0 and up to 1"
            raise InvalidInput("--selection", found=repr(self.selection), expected=expected) from error
        return GenerationSettings(
            model=model_named(self.model, repair_anchors=self.repair_anchors),
            selection=share,
            draws=self.draws,
            seed=self.seed,
            device=self.device,
        )


_EXPECTED = ExpectedParameters()


def sharing(
    *inputs: Path,
    output: TableOutput,
    key: str = "cdr3nt+v+j",
    subject: str | None = None,
    list_subjects: Flag = False,
    by_subject: FurtherTable = None,
    overlap: FurtherTable = None,
    overlap_depth: WholeNumber = 0,
    condition: str | None = None,
    mismatches: WholeNumber | None = None,
    edits: WholeNumber | None = None,
    clusters: Literal["linkage", "neighbours"] = "linkage",
    expected: ExpectedParameters = _EXPECTED,
    source: SheetSource = SheetSource(),
    place: ExecutorParameters = ExecutorParameters(),
) -> None:
    """Tell which clonotypes individuals share, and which more than generation explains.

    Parameters
    ----------
    inputs
        Tables as for plait vdj count, or its outputs, whose path counts are carried over.
    output
        The table to write, one row per clonotype: .parquet, .tsv, .tsv.gz or .tsv.zst; or a folder of Parquet
        parts: NAME/.
    key
        What makes a clonotype: cdr3nt or cdr3aa, the junction as nucleotides or amino acids, and behind it
        +v and +j where the gene is part of it, as cdr3aa+v.
    subject
        Column that tells individuals apart; by default subject_id, or what the layout has for it. Where a
        file has none, its name is its subject.
    list_subjects
        Name the individuals beside each clonotype.
    by_subject
        A second table to write, one row per clonotype and individual, or a folder of its parts; or the matrix
        of both, as AnnData: .h5ad or .zarr.
    overlap
        A third table to write, one row for every two individuals: clonotypes in common, and Jaccard's,
        Morisita and Horn's and F2 indices.
    overlap_depth
        Number of reads to which each individual is thinned out for the overlap at equal depth; otherwise as
        many as the individual with fewest has.
    condition
        Column of the inputs or of the sheet with the condition of each individual, one of two, or empty:
        shared clonotypes are tested for being more common under one of them.
    mismatches
        Tell of each clonotype those within so many mismatches, with the same genes as far as they are in the
        key.
    edits
        The same within so many edits.
    clusters
        linkage clusters those that are near each other; neighbours takes each with those near it alone.
    expected
        What generation leads to expect.
    source
        What the inputs are.
    place
        Where rows are grouped.
    """
    from plait.reports.repertoire_text import sharing_text
    from plait.vdj.repertoires.sharing import SharingSettings, share_files

    settings = SharingSettings(
        key=key,
        subject=subject,
        layout=source.choice,
        list_subjects=list_subjects,
        condition=condition,
        mismatches=mismatches,
        edits=edits,
        clusters=clusters,
    )
    generation = expected.settings()
    with (
        tables_of(source.files(inputs)) as files,
        place.open() as executor,
        RowProgress("grouping") as progress,
    ):
        found = share_files(
            files,
            output,
            settings=settings,
            generation=generation,
            by_subject=by_subject,
            overlap=overlap,
            overlap_depth=overlap_depth,
            executor=executor,
            progress=progress,
        )
    print(sharing_text(found, output), end="")
