"""How right the annotation of reads is: on simulated reads with their truth, and beside IgBLAST.

Used by `vdj_annotate.py`. Every function returns lines of text, which say what was counted.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from support.read_library import Library, block_of, simulate_reads
from support.read_simulation import SimulatedRead

from plait.formats.reads import open_reads
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.reads.annotator import ReadAnnotator
from plait.vdj.reads.rearrangements import AnnotationSettings

BLOCK = 8192
#: Simulated errors lie at bases of score 12, which the default limit would leave out.
SCORED = AnnotationSettings(min_junction_quality=10)
_PARTNERS = str.maketrans("ACGTN", "TGCAN")
Row = Mapping[str, Any]


class Share(NamedTuple):
    """So many of so many."""

    found: int
    total: int

    def __str__(self) -> str:
        share = self.found / self.total if self.total else 0.0
        return f"{self.found:,} of {self.total:,} ({share:.2%})"


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """The columns that are compared, row by row."""
    wanted = (
        "sequence_id", "annotation_status", "rev_comp", "v_call", "d_call", "j_call", "junction",
        "productive", "j_cigar", "v_sequence_end", "j_sequence_start", "locus",
    )  # fmt: skip
    return batch.select(list(wanted)).to_pylist()


def annotated(
    annotator: ReadAnnotator,
    names: Sequence[str],
    sequences: Sequence[str],
    qualities: Sequence[str] | None = None,
) -> list[Row]:
    """Rows of reads that are in memory."""
    rows: list[Row] = []
    for first in range(0, len(names), BLOCK):
        part = slice(first, first + BLOCK)
        scores = None if qualities is None else qualities[part]
        rows += rows_of(annotator.annotate(block_of(sequences[part], names=names[part], qualities=scores))[0])
    return rows


def genes(call: str | None) -> list[str]:
    """Genes of a call, each once, in order."""
    return list(dict.fromkeys(name.partition("*")[0] for name in (call or "").split(",") if name))


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a tab-separated table."""
    with gzip.open(path, "rt") as file:
        header, *rows = (line.rstrip("\n").split("\t") for line in file)
    return [dict(zip(header, row, strict=True)) for row in rows]


def other_strand(sequence: str) -> str:
    """The reverse complement."""
    return sequence[::-1].translate(_PARTNERS)


def held(sequence: str, junction: str) -> tuple[str, int]:
    """The stretch of a read that differs least from a junction of its length, and by how many bases."""
    letters, wanted = (np.frombuffer(text.encode(), np.uint8) for text in (sequence, junction))
    if letters.size < wanted.size:
        return "", wanted.size
    windows = np.lib.stride_tricks.sliding_window_view(letters, wanted.size)
    differences = (windows != wanted).sum(axis=1)
    at = int(differences.argmin())
    return sequence[at : at + wanted.size], int(differences[at])


def shared_reads(data: Path, annotator: ReadAnnotator) -> tuple[list[str], list[str]]:
    """The shared simulated reads; text, and a line for every read that is not as in the truth."""
    truth = {row["sequence_id"]: row for row in table(data / "sim_mouse_TRB_10k_truth.tsv.gz")}
    rows: list[Row] = []
    sequences: dict[str, str] = {}
    with open_reads([data / "sim_mouse_TRB_10k_150nt.fastq.gz"]) as reader:
        for item in reader:
            rows += rows_of(annotator.annotate(item.reads)[0])
            sequences.update((name, item.reads.sequence(i)) for i, name in enumerate(item.reads.names))
    counts: Counter[str] = Counter()
    odd = []
    known = {a.gene for germline in annotator.germlines for a in germline.alleles()}
    for row in rows:
        wanted = truth[row["sequence_id"]]
        forward = sequences[row["sequence_id"]]
        forward = other_strand(forward) if wanted["rev_comp"] == "T" else forward
        at_place, wrong = held(forward, wanted["junction"])
        facts = _of_shared_read(row, wanted, at_place, wrong, known)
        counts.update(name for name, holds in facts.items() if holds)
        if not all(facts[name] for name in ("v", "j", "strand")) or not facts["held"]:
            odd.append(
                f"{row['sequence_id']} {row['annotation_status']} errors in junction {wrong}: truth "
                f"{wanted['v_call']} {wanted['j_call']} {wanted['junction']}, read has {at_place}, called "
                f"{row['v_call']} {row['j_call']} {row['junction']}"
            )
    return _shared_text(rows, counts), odd


def _of_shared_read(
    row: Row, wanted: Mapping[str, str], at_place: str, wrong: int, known: set[str]
) -> dict[str, bool]:
    called_v, called_j = genes(row["v_call"]), genes(row["j_call"])
    return {
        "v": called_v[:1] == [wanted["v_call"]],
        "v_listed": wanted["v_call"] in called_v,
        "v_known": wanted["v_call"] in known,
        "j": called_j[:1] == [wanted["j_call"]],
        "j_listed": wanted["j_call"] in called_j,
        "j_known": wanted["j_call"] in known,
        "strand": bool(row["rev_comp"]) == (wanted["rev_comp"] == "T"),
        "unchanged": wrong == 0,
        "exact": wrong == 0 and row["junction"] == wanted["junction"],
        "held": row["junction"] == at_place,
        "held_changed": wrong > 0 and row["junction"] == at_place,
        "ok": row["annotation_status"] == "ok",
    }


def _shared_text(rows: Sequence[Row], counts: Counter[str]) -> list[str]:
    n = len(rows)
    changed = n - counts["unchanged"]
    return [
        f"V gene right {Share(counts['v'], n)}, listed {Share(counts['v_listed'], n)}; asked 99.5 %",
        f"J gene right {Share(counts['j'], n)}, listed {Share(counts['j_listed'], n)}; asked 99.9 %",
        f"reads whose V and J genes the set has: V {counts['v_known']:,}, J {counts['j_known']:,}",
        f"strand right {Share(counts['strand'], n)}",
        f"junction exact, of reads that hold it unchanged: {Share(counts['exact'], counts['unchanged'])}; "
        "asked 97 %",
        "junction as the read holds it, of those with an error in it: "
        f"{Share(counts['held_changed'], changed)}",
        f"junction as the read holds it, of all: {Share(counts['held'], n)}; TRUST4 84 % (measured earlier)",
        _statuses(rows),
    ]


def _statuses(rows: Sequence[Row]) -> str:
    found = Counter(row["annotation_status"] for row in rows).most_common()
    return "statuses: " + ", ".join(f"{status} {number:,}" for status, number in found)


def own_reads(germlines: Sequence[GermlineSet], library: Library, seed: int) -> tuple[list[str], list[str]]:
    """Reads simulated by plait; text, and a line for every read whose call or junction is not right."""
    reads = list(simulate_reads(germlines, library, seed=seed))
    rows = annotated(
        ReadAnnotator(germlines, settings=SCORED),
        [r.name for r in reads],
        [r.read.sequence for r in reads],
        [r.read.quality for r in reads],
    )
    counts: Counter[str] = Counter()
    odd = []
    for read, row in zip(reads, rows, strict=True):
        facts = _of_own_read(read, row)
        counts.update(name for name, holds in facts.items() if holds)
        wanted = (("v_due", "v_listed"), ("j_due", "j_listed"), ("due", "junction"))
        if facts["other"] or any(facts[due] and not facts[right] for due, right in wanted):
            odd.append(
                f"{read.name} {row['annotation_status']} changes {read.read.changes}: truth "
                f"{read.molecule.v_call} {read.molecule.j_call} {read.read.junction} V {read.read.v_bases} J "
                f"{read.read.j_bases}, called {row['v_call']} {row['j_call']} {row['junction']}"
            )
    text = [
        f"V gene right, of reads with 30 bases of it: {Share(counts['v'], counts['v_due'])}, listed "
        f"{Share(counts['v_listed'], counts['v_due'])}",
        f"V allele listed: {Share(counts['v_allele'], counts['v_due'])}",
        f"J gene right, of reads with 20 bases of it: {Share(counts['j'], counts['j_due'])}, listed "
        f"{Share(counts['j_listed'], counts['j_due'])}",
        "junction as the read holds it, of those that hold a whole one: "
        f"{Share(counts['junction'], counts['due'])}",
        f"another junction than the read's, or one it does not hold: {Share(counts['other'], counts['ok'])}",
        f"strand right: {Share(counts['strand'], counts['ok'])}",
        _statuses(rows),
    ]
    return text, odd


def _of_own_read(read: SimulatedRead, row: Row) -> dict[str, bool]:
    part, molecule = read.read, read.molecule
    v_due, j_due = part.v_bases >= 30, part.j_bases >= 20
    v_gene, j_gene = genes(molecule.v_call), genes(molecule.j_call)
    return {
        "v_due": v_due,
        "v": v_due and genes(row["v_call"])[:1] == v_gene,
        "v_listed": v_due and set(v_gene) <= set(genes(row["v_call"])),
        "v_allele": v_due and molecule.v_call in (row["v_call"] or "").split(","),
        "j_due": j_due,
        "j": j_due and genes(row["j_call"])[:1] == j_gene,
        "j_listed": j_due and set(j_gene) <= set(genes(row["j_call"])),
        "due": part.junction != "",
        "junction": part.junction != "" and row["junction"] == part.junction,
        "ok": row["annotation_status"] == "ok",
        "other": row["annotation_status"] == "ok" and row["junction"] != part.junction,
        "strand": row["annotation_status"] == "ok" and bool(row["rev_comp"]) == part.rev_comp,
    }


def genbank(data: Path) -> tuple[list[str], list[str]]:
    """GenBank rows beside IgBLAST; text, and a line for every disagreement."""
    every = table(data / "genbank_mouse.igblast.airr.tsv.gz")
    wanted = [row for row in every if row["locus"] in ("TRA", "TRB")]
    germlines = [load_germline("mouse_tra"), load_germline("mouse_trb")]
    annotator = ReadAnnotator(germlines)
    found = annotated(annotator, [r["sequence_id"] for r in wanted], [r["sequence"] for r in wanted])
    known = {a.gene for germline in germlines for a in germline.alleles()}
    counts: Counter[str] = Counter()
    odd = []
    for peer, row in zip(wanted, found, strict=True):
        productive = "productive " if peer["productive"] == "T" else "other "
        counts[productive + "rows"] += 1
        counts[productive + "ok"] += row["annotation_status"] == "ok"
        faults = []
        if peer["junction"]:
            counts[productive + "junctions"] += 1
            same = (row["junction"] or "") == peer["junction"]
            counts[productive + "junction"] += same
            faults += [] if same else ["junction"]
        for segment in ("v", "j"):
            faults += _call_faults(productive, segment, peer, row, known, counts)
        if faults:
            odd.append(
                f"{peer['sequence_id']} {productive}{len(peer['sequence'])} nt, {'+'.join(faults)}: IgBLAST "
                f"{peer['v_call']} {peer['j_call']} {peer['junction']}; plait {row['annotation_status']} "
                f"{row['v_call']} {row['j_call']} {row['junction']}"
            )
    others = [row for row in every if row["locus"] not in ("TRA", "TRB")]
    strangers = annotated(annotator, [r["sequence_id"] for r in others], [r["sequence"] for r in others])
    stranger = f"{len(others):,} other receptors (IG, TRG, TRD): {_statuses(strangers)}"
    return [*_genbank_text(counts), stranger], odd


def productive(path: Path, germlines: Sequence[GermlineSet], loci: Sequence[str]) -> Iterator[str]:
    """Rows of a table of IgBLAST's that plait does not judge alike, and how many it does."""
    peers = [row for row in table(path) if row["locus"] in loci]
    rows = annotated(
        ReadAnnotator(germlines), [r["sequence_id"] for r in peers], [r["sequence"] for r in peers]
    )
    judged = [
        (p, r) for p, r in zip(peers, rows, strict=True) if p["productive"] and r["productive"] is not None
    ]
    for peer, row in judged:
        if (peer["productive"] == "T") != row["productive"]:
            theirs = f"{peer['productive']} {peer['j_cigar']} {peer['junction'] or 'no junction'}"
            ours = f"{str(row['productive'])[0]} {row['j_cigar']} {row['junction']}"
            yield f"  {peer['sequence_id']} {row['annotation_status']}: IgBLAST {theirs}, plait {ours}"
    same = sum((peer["productive"] == "T") == row["productive"] for peer, row in judged)
    missed = sum(
        peer["productive"] == "T" and row["productive"] is None for peer, row in zip(peers, rows, strict=True)
    )
    yield f"productive as IgBLAST has it: {Share(same, len(judged))} that both judge; asked 99.5 %"
    yield f"productive for IgBLAST, without a junction for plait: {missed:,}"


def _call_faults(
    kind: str, segment: str, peer: Mapping[str, str], row: Row, known: set[str], counts: Counter[str]
) -> list[str]:
    theirs, ours = genes(peer[f"{segment}_call"]), genes(row[f"{segment}_call"])
    if not theirs:
        return []
    counts[f"{kind}{segment} called"] += 1
    counts[f"{kind}{segment} known"] += not known.isdisjoint(theirs)
    counts[f"{kind}{segment} first"] += theirs[:1] == ours[:1]
    listed = not set(theirs).isdisjoint(ours)
    counts[f"{kind}{segment} listed"] += listed
    return [] if listed else [f"{segment} gene"]


def _genbank_text(counts: Counter[str]) -> list[str]:
    text = []
    for kind, asked in (("productive ", True), ("other ", False)):
        junctions = Share(counts[kind + "junction"], counts[kind + "junctions"])
        text.append(
            f"{kind}rows {counts[kind + 'rows']:,}, annotated {counts[kind + 'ok']:,}; junction identical "
            f"{junctions}" + ("; asked 98 %" if asked else "")
        )
        for segment in ("v", "j"):
            name = f"{kind}{segment} "
            called = counts[name + "called"]
            text.append(
                f"{kind}rows: {segment.upper()} gene first {Share(counts[name + 'first'], called)}, in "
                f"both lists {Share(counts[name + 'listed'], called)}"
                + (" (asked 97 %)" if asked else "")
                + f"; the sets have {Share(counts[name + 'known'], called)} of the genes"
            )
    return text
