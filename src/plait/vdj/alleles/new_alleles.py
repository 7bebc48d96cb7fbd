"""Find new alleles in annotated reads, and write them and the germline sets extended by them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.alphabets import translate
from plait.errors import InvalidInput
from plait.formats.atomic import check_not_input
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import open_table
from plait.run.rows import Progress
from plait.vdj.alleles.candidates import Candidate, Judged, enough, group_candidates, judge, merge_equal
from plait.vdj.alleles.evidence import MOST_CLONOTYPES, AlleleEvidence
from plait.vdj.alleles.sites import AlleleLimits, clonotype_bases, count_bases, find_sites
from plait.vdj.germline import Allele, GermlineSet, write_fasta_trio
from plait.vdj.germline.airr_json import airr_text
from plait.vdj.germline.files import write_texts

_Path = str | os.PathLike[str]
_Source: TypeAlias = pa.Table | pa.RecordBatch | _Path | Sequence[_Path]

_BLOCK_ROWS = 16384
#: Columns of a table of candidates.
CANDIDATE_SCHEMA = pa.schema(
    [
        *(
            (name, pa.string())
            for name in ("allele", "gene", "segment", "parent", "changes", "status", "reasons")
        ),
        *((name, pa.int64()) for name in ("clonotypes", "exact_clonotypes", "gene_clonotypes")),
        ("share", pa.float64()),
        ("sampled", pa.bool_()),
        *((name, pa.int64()) for name in ("partner_genes", "reads", "forward_reads", "reverse_reads")),
        *((name, pa.string()) for name in ("covered", "also_parents")),
        *((name, pa.float64()) for name in ("p_value", "q_value")),
        ("sequence", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAlleles:
    """What was found.

    Attributes
    ----------
    candidates
        One row per candidate, the V alleles first, then by gene, those that are new alleles (``status``
        ``candidate``) before those that look like artefacts (``likely_artefact``), the most frequent first.
        The columns are explained in the page on new alleles of the documentation.
    germline
        The set that the reads were called with.
    rows
        Rows read.
    left_out
        Rows that are no evidence, by reason; ``v_`` and ``j_`` reasons are those of one segment alone.
    clonotypes
        Independent clonotypes looked at, by segment.
    satellites
        Clonotypes left out since their junctions are nearly those of others with more reads, by segment.
    error_rate
        Share of the clonotypes that show one given wrong base at a place, by segment.
    """

    candidates: pa.Table
    germline: GermlineSet
    rows: int
    left_out: Mapping[str, int]
    clonotypes: Mapping[str, int]
    satellites: Mapping[str, int]
    error_rate: Mapping[str, float]

    @property
    def extended(self) -> GermlineSet:
        """The germline set with the new alleles, those of status ``candidate``, beside their parents."""
        return extended_germline(self.germline, self.candidates)


def find_new_alleles(
    source: _Source,
    germline: GermlineSet,
    *,
    limits: AlleleLimits | None = None,
    most_clonotypes: int = MOST_CLONOTYPES,
    progress: Callable[[Progress], None] | None = None,
) -> NewAlleles:
    """Find V and J alleles that a germline set lacks, in annotated reads of one individual.

    Parameters
    ----------
    source
        Arrow rows, or one or more AIRR Rearrangement files with the sequences of the reads, as
        ``plait vdj annotate`` writes them.
    germline
        The set that the reads were called with.
    limits
        What a new allele needs.
    most_clonotypes
        Most clonotypes of a gene that are looked at.
    progress
        Called with how far the files are read.

    Returns
    -------
    NewAlleles
        The candidates, whatever the order of the rows.

    Raises
    ------
    FormatError
        If a file is not what it should be.
    InvalidInput
        If `most_clonotypes` is less than 1.
    """
    evidence = AlleleEvidence(germline, most_clonotypes=most_clonotypes)
    if isinstance(source, pa.Table | pa.RecordBatch):
        for batch in source.to_batches(_BLOCK_ROWS) if isinstance(source, pa.Table) else [source]:
            evidence.add(batch)
    else:
        with open_rearrangements(source, block_rows=_BLOCK_ROWS) as reader:
            name = ", ".join(path for path, _, _ in reader.identities)
            for batch in reader:
                evidence.add(batch, source=name)
                if progress is not None:
                    progress(Progress(evidence.rows, reader.bytes_read(), reader.total_bytes))
    return new_alleles_of(evidence, limits=limits)


def new_alleles_of(evidence: AlleleEvidence, *, limits: AlleleLimits | None = None) -> NewAlleles:
    """Candidates for new alleles from collected evidence."""
    asked = limits or AlleleLimits()
    judged, facts = [], {}
    for name in ("V", "J"):
        found, facts[name] = _of_segment(evidence, name, asked)
        judged += found
    return NewAlleles(
        candidates=_table(judged),
        germline=evidence.germline,
        rows=evidence.rows,
        left_out=evidence.left_out,
        clonotypes={name: clonotypes for name, (clonotypes, _, _) in facts.items()},
        satellites={name: satellites for name, (_, satellites, _) in facts.items()},
        error_rate={name: error_rate for name, (_, _, error_rate) in facts.items()},
    )


def _of_segment(
    evidence: AlleleEvidence, name: str, limits: AlleleLimits
) -> tuple[list[Judged], tuple[int, int, float]]:
    """Candidates; and clonotypes, satellites and the rate of errors."""
    segment, sample = evidence.segments[name], evidence.samples[name]
    sample.merge()
    counts, partners, satellites = [], set[int](), 0
    for number, group in enumerate(segment.groups):
        clonotypes = clonotype_bases(group, sample.group(number))
        counts.append(count_bases(clonotypes))
        partners |= set(clonotypes.partner.tolist())
        satellites += clonotypes.satellites
    sites = find_sites(counts, limits)
    found: list[Candidate] = []
    for number in np.unique(sites.group).tolist():
        clonotypes = clonotype_bases(segment.groups[number], sample.group(number))
        found += group_candidates(segment, clonotypes, sites, number, limits.min_clonotypes)
    known = np.zeros(len(segment.alleles), np.int64)
    for group, told in zip(segment.groups, counts, strict=True):
        known[group.alleles] = told.exact
    candidates = [c for c in merge_equal(found) if enough(c, limits)]
    exact = int(known.sum()) + sum(int(c.carriers.exact.sum()) for c in candidates)
    total = sum(int(told.clonotypes.sum()) for told in counts)
    judged = judge(
        candidates, known, exact_share=exact / max(total, 1), partners=len(partners), limits=limits
    )
    return judged, (total, satellites, sites.error_rate)


def _table(judged: Sequence[Judged]) -> pa.Table:
    rows = sorted(
        judged,
        key=lambda j: (
            j.candidate.segment.segment == "J",
            j.candidate.segment.group_of[j.candidate.parent],
            bool(j.reasons),
            -j.candidate.clonotypes,
            j.candidate.changes,
        ),
    )
    return pa.Table.from_pylist([_row(j) for j in rows], schema=CANDIDATE_SCHEMA)


def _row(judged: Judged) -> dict[str, object]:
    candidate, carriers = judged.candidate, judged.candidate.carriers
    parent = candidate.segment.alleles[candidate.parent]
    forward, reverse = int(carriers.forward.sum()), int(carriers.reverse.sum())
    also = [candidate.segment.alleles[k].name for k in _also_parents(candidate)]
    return {
        "allele": "_".join([parent.name, *candidate.changes]),
        "gene": parent.gene,
        "segment": parent.segment,
        "parent": parent.name,
        "changes": ",".join(candidate.changes),
        "status": "likely_artefact" if judged.reasons else "candidate",
        "reasons": ",".join(judged.reasons),
        "clonotypes": candidate.clonotypes,
        "exact_clonotypes": int(carriers.exact.sum()),
        "gene_clonotypes": carriers.gene,
        "share": candidate.share,
        "sampled": carriers.sampled,
        "partner_genes": int(np.unique(carriers.partner).size),
        "reads": forward + reverse,
        "forward_reads": forward,
        "reverse_reads": reverse,
        "covered": ",".join(f"{a + 1}-{b}" for a, b in candidate.covered_ranges),
        "also_parents": ",".join(also),
        "p_value": candidate.p_value,
        "q_value": candidate.q_value,
        "sequence": candidate.sequence,
    }


def _also_parents(candidate: Candidate) -> NDArray[np.int64]:
    """Other alleles that it comes as near to, where it is covered."""
    codes = candidate.segment.axis[0]
    far = (codes[:, candidate.covered] != candidate.codes[candidate.covered]).sum(axis=1)
    near = np.flatnonzero(far == far[candidate.parent])
    return np.asarray(near[near != candidate.parent])


def extended_germline(germline: GermlineSet, candidates: pa.Table) -> GermlineSet:
    """A germline set with the candidates of status ``candidate`` in it, each behind the alleles of its gene.

    Every new allele gets a note. Its anchor is that of its parent, as only bases were exchanged. A V with a
    stop codon in its frame is a pseudogene (P), whatever its parent is.
    """
    rows = [row for row in candidates.to_pylist() if row["status"] == "candidate"]
    if not rows:
        return germline
    notes = [
        f"{row['allele']} is inferred from {row['clonotypes']} clonotypes, known at {row['covered']}"
        f" and elsewhere taken to be {row['parent']}"
        for row in rows
    ]
    return replace(
        germline,
        name=f"{germline.name}_extended",
        source=f"{germline.source}; {len(rows)} inferred by plait vdj alleles",
        v=_with_new(germline.v, [row for row in rows if row["segment"] == "V"]),
        j=_with_new(germline.j, [row for row in rows if row["segment"] == "J"]),
        notes=(*germline.notes, *notes),
    )


def _with_new(alleles: tuple[Allele, ...], rows: Iterable[Mapping[str, str]]) -> tuple[Allele, ...]:
    found = list(alleles)
    for row in rows:
        parent = next(a for a in alleles if a.name == row["parent"])
        stops = parent.segment == "V" and "*" in translate(row["sequence"], (parent.anchor or 0) % 3)
        last = max(k for k, a in enumerate(found) if a.gene == parent.gene)
        new = replace(
            parent,
            name=row["allele"],
            sequence=row["sequence"],
            functionality="P" if stops else parent.functionality,
            aliases=(),
        )
        found.insert(last + 1, new)
    return tuple(found)


def find_in_files(
    inputs: Sequence[_Path],
    output: _Path,
    germline: GermlineSet,
    *,
    extended: _Path | None = None,
    limits: AlleleLimits | None = None,
    most_clonotypes: int = MOST_CLONOTYPES,
    progress: Callable[[Progress], None] | None = None,
) -> NewAlleles:
    """Find new alleles in annotated reads and write them, as `find_new_alleles`.

    `output` is ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; for `extended` see `write_extended`.
    InvalidInput if an output cannot be written, or is an input; FormatError if a file is not what it should
    be.
    """
    asked = limits or AlleleLimits()
    if extended is not None:
        check_not_input(extended, [*inputs, output])
        if os.path.realpath(extended) == os.path.realpath(output):
            raise InvalidInput(
                "extended", found=f"{os.fspath(output)!r}", expected="another file than output"
            )
        _extended_texts(germline, extended)
    facts = {
        "version": __version__,
        "inputs": [os.path.realpath(path) for path in inputs],
        "germline": {"name": germline.name, "digest": germline.digest},
        "limits": asdict(asked) | {"most_clonotypes": most_clonotypes},
    }
    metadata = {"plait.new_alleles": json.dumps(facts, sort_keys=True)}
    with open_table(output, CANDIDATE_SCHEMA, metadata=metadata, inputs=inputs) as writer:
        found = find_new_alleles(
            list(inputs), germline, limits=asked, most_clonotypes=most_clonotypes, progress=progress
        )
        for batch in found.candidates.to_batches():
            writer.write(batch)
        if extended is not None:
            write_extended(found.extended, extended)
    return found


def write_extended(germline: GermlineSet, path: _Path) -> None:
    """Write an extended germline set so that it can be used as one.

    FILE.json is an AIRR Germline Set, in which ``curation`` says where the new alleles come from; a folder
    gets FASTA files; anything else is the common start of the names of FASTA files.
    """
    texts = _extended_texts(germline, path)
    if texts:
        write_texts(texts)
    else:
        write_fasta_trio(germline, path)


def _extended_texts(germline: GermlineSet, path: _Path) -> dict[Path, str]:
    """The JSON file, or nothing; raises what writing would raise, but for the file itself."""
    if Path(path).suffix.lower() != ".json":
        return {}
    return {Path(path): airr_text(germline, curation=". ".join(germline.notes) or None)}
