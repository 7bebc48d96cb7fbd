"""Whether annotated reads agree with themselves and with the germline, column by column.

Everything is worked out again from the text of the columns, one row at a time, without the compiled code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from plait.alphabets import reverse_complement, translate
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.rearrangements import STATUSES, AnnotationSettings, schema_of

__all__ = ["check_rows"]

_RUN = re.compile("([0-9]+)([SN=XID])")
_CIGAR = re.compile(
    "(?:[1-9][0-9]*S)?(?:[1-9][0-9]*N)?((?:[1-9][0-9]*[=XID])+)(?:[1-9][0-9]*S)?(?:[1-9][0-9]*N)?"
)

_Row = dict[str, Any]


class _Match(NamedTuple):
    """The match of a read with an allele; 0-based.

    Attributes
    ----------
    allele
        The allele.
    text, germline
        What is aligned of the read and of the allele.
    read_columns, germline_columns
        The columns of the alignment.
    pairs
        Read place to germline place.
    """

    allele: Allele
    text: tuple[int, int]
    germline: tuple[int, int]
    read_columns: str
    germline_columns: str
    pairs: dict[int, int]


def check_rows(
    batch: pa.RecordBatch | pa.Table,
    germlines: Sequence[GermlineSet],
    settings: AnnotationSettings | None = None,
) -> None:
    """Check annotated reads.

    Parameters
    ----------
    batch
        Rows as `plait.vdj.reads.rearrangements.RearrangementBuilder` makes them.
    germlines, settings
        What they were made with.

    Raises
    ------
    AssertionError
        With name and number of the first row that is wrong, and what is wrong with it.
    """
    settings = settings or AnnotationSettings()
    if batch.schema != schema_of(settings):
        raise AssertionError(f"schema differs: {batch.schema}")
    for number, row in enumerate(batch.to_pylist()):
        try:
            _check_row(row, germlines, settings)
            if settings.alignment_parts:
                _check_parts(row, germlines)
        except AssertionError as error:
            raise AssertionError(f"row {number}, {row['sequence_id']}: {error}") from error


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def _check_row(row: _Row, germlines: Sequence[GermlineSet], settings: AnnotationSettings) -> None:
    _same("status known", row["annotation_status"] in STATUSES, True)
    matched = row["v_call"] is not None or row["j_call"] is not None
    sets = [g for g in germlines if g.locus == row["locus"]]
    _same("locus known", bool(sets), matched)
    _same("rev_comp known", row["rev_comp"] is not None, matched)
    if row["quality"] is not None:
        _same("length of quality", len(row["quality"]), len(row["sequence"]))
    v, d, j = (_match(row, letter, sets) for letter in "vdj")
    _check_shifts(row, v, j)
    ordered = bool(v and j) and row["np1"] is not None
    _check_alignment(row, v, d, j, ordered)
    if v and j and ordered:
        germline = next(g for g in sets if j.allele in g.j)
        _check_middle(row, v, d, j)
        _check_d(row, v, d, j, germline, settings)
        _check_palindromes(row, v, d, j, settings)
        _check_junction(row, v, j, settings)
    else:
        for name in ("d_call", "np2", "n1_length", "junction", "productive", "complete_vdj", "fwr4"):
            _same(f"{name} without V before J", row[name], None)
    _check_status(row, v, j, ordered, settings)


def _match(row: _Row, letter: str, sets: Sequence[GermlineSet]) -> _Match | None:
    """The match that the columns of a segment tell of; they must agree."""
    names = [f"{letter}_{part}" for part in ("call", "cigar", "score", "identity")]
    names += [f"{letter}_{part}_{end}" for part in ("sequence", "germline") for end in ("start", "end")]
    there = {row[name] is not None for name in names}
    _same(f"{letter} columns all there or all null", len(there), 1)
    if row[names[0]] is None:
        return None
    called = row[f"{letter}_call"].split(",")
    _same(f"{letter} alleles once each", len(set(called)), len(called))
    alleles = {a.name: a for g in sets for a in g.alleles(letter.upper())}  # type: ignore[arg-type]
    _same(f"{letter} alleles known", set(called) <= set(alleles), True)
    allele = alleles[called[0]]
    start, end = row[f"{letter}_sequence_start"] - 1, row[f"{letter}_sequence_end"]
    low, high = row[f"{letter}_germline_start"] - 1, row[f"{letter}_germline_end"]
    found = _CIGAR.fullmatch(row[f"{letter}_cigar"])
    if found is None:
        raise AssertionError(f"{letter}_cigar: found {row[f'{letter}_cigar']!r}, expected S N runs S N")
    before = f"{start}S" * (start > 0) + f"{low}N" * (low > 0)
    after = len(row["sequence"]) - end, len(allele.sequence) - high
    ends = f"{after[0]}S" * (after[0] > 0) + f"{after[1]}N" * (after[1] > 0)
    _same(f"{letter}_cigar", row[f"{letter}_cigar"], before + found[1] + ends)
    return _walk(row, letter, allele, (start, end), (low, high), found[1])


def _walk(
    row: _Row, letter: str, allele: Allele, text: tuple[int, int], germline: tuple[int, int], runs: str
) -> _Match:
    p, q = text[0], germline[0]
    above, below = "", ""
    pairs = {}
    for number, kind in _RUN.findall(runs):
        length = int(number)
        read = "-" * length if kind == "D" else row["sequence"][p : p + length]
        reference = "-" * length if kind == "I" else allele.sequence[q : q + length]
        if kind in "=X":
            agree = {a == b for a, b in zip(read, reference, strict=True)}
            _same(f"{letter}_cigar pairs of {number}{kind}", agree, {kind == "="})
            pairs.update({p + k: q + k for k in range(length)})
        p += 0 if kind == "D" else length
        q += 0 if kind == "I" else length
        above += read
        below += reference
    _same(f"{letter} end of the runs", (p, q), (text[1], germline[1]))
    equal = sum(a == b for a, b in zip(above, below, strict=True))
    # Rounded to four places, one way or the other where it lies between two.
    near = abs(row[f"{letter}_identity"] - equal / len(above)) < 5.001e-5
    _same(f"{letter}_identity near {equal} / {len(above)}", near, True)
    return _Match(allele, text, germline, above, below, pairs)


def _check_shifts(row: _Row, v: _Match | None, j: _Match | None) -> None:
    """Frames of V up to the junction and of J behind it; without one, of the whole alignments."""
    for letter, match in (("v", v), ("j", j)):
        if match is None:
            _same(f"{letter}_frameshift", row[f"{letter}_frameshift"], None)
            continue
        (start, end), (low, high), anchor = match.text, match.germline, match.allele.anchor or 0
        if row["junction"] is not None:
            if row["cdr3_start"] is None:  # Cys and Phe side by side
                continue
            if letter == "v":
                end, high = row["cdr3_start"] - 4, anchor
            else:
                start, low = row["cdr3_end"] + 3, anchor + 3
        _same(f"{letter}_frameshift", row[f"{letter}_frameshift"], (end - start - high + low) % 3 != 0)


def _check_alignment(row: _Row, v: _Match | None, d: _Match | None, j: _Match | None, ordered: bool) -> None:
    """The two alignment texts, put together again."""
    read, germline = "", ""
    places: dict[str, tuple[int | None, int | None]] = dict.fromkeys("vdj", (None, None))
    if ordered or v is None or j is None:
        parts: list[tuple[str, str, str]] = []
        if v:
            parts.append(("v", v.read_columns, v.germline_columns))
        if v and j:
            first = row["np1"] or ""
            parts.append(("", first, "N" * len(first)))
            if d:
                parts.append(("d", d.read_columns, d.germline_columns))
                parts.append(("", row["np2"], "N" * len(row["np2"])))
        if j:
            parts.append(("j", j.read_columns, j.germline_columns))
        for letter, above, below in parts:
            if letter:
                places[letter] = (len(read) + 1, len(read) + len(above))
            read += above
            germline += below
    _same("sequence_alignment", row["sequence_alignment"], read or None)
    _same("germline_alignment", row["germline_alignment"], germline or None)
    for letter, place in places.items():
        found = (row[f"{letter}_alignment_start"], row[f"{letter}_alignment_end"])
        _same(f"{letter}_alignment_start and _end", found, place)


def _check_middle(row: _Row, v: _Match, d: _Match | None, j: _Match) -> None:
    """What lies between the genes."""
    sequence = row["sequence"]
    bounds = [v.text[1], *(d.text if d else ()), j.text[0]]
    _same("order of V, D and J", bounds, sorted(bounds))
    _same("np1", row["np1"], sequence[bounds[0] : bounds[1]])
    _same("np1_length", row["np1_length"], len(row["np1"]))
    p3v, p5d, p3d, p5j = (row[f"{name}_length"] for name in ("p3v", "p5d", "p3d", "p5j"))
    if d is None:
        _same("np2, p5d and p3d", (row["np2"], row["np2_length"], row["n2_length"], p5d, p3d), (None,) * 5)
        _same("np1_length", row["np1_length"], row["n1_length"] + p3v + p5j)
        return
    _same("np2", row["np2"], sequence[bounds[2] : bounds[3]])
    _same("np2_length", row["np2_length"], len(row["np2"]))
    _same("np1_length", row["np1_length"], row["n1_length"] + p3v + p5d)
    _same("np2_length", row["np2_length"], row["n2_length"] + p3d + p5j)
    _same("no negative length", min(row["n1_length"], row["n2_length"], p3v, p5d, p3d, p5j) >= 0, True)


def _longest(text: str, pattern: str) -> int:
    """Length of the longest part of the text that occurs in a pattern; only A, C, G and T match."""
    for size in range(min(len(text), len(pattern)), 0, -1):
        parts = {text[a : a + size] for a in range(len(text) - size + 1)}
        if any(part in pattern and not set(part) - set("ACGT") for part in parts):
            return size
    return 0


def _check_d(
    row: _Row, v: _Match, d: _Match | None, j: _Match, germline: GermlineSet, settings: AnnotationSettings
) -> None:
    gap = row["sequence"][v.text[1] : j.text[0]]
    allowed = () if germline.chain == "vj" else germline.allowed_d(j.allele)
    lengths = {
        a.name: _longest(gap, a.sequence) for a, fits in zip(germline.d, allowed, strict=False) if fits
    }
    most = max(lengths.values(), default=0)
    if most < settings.min_d_length:
        _same("d_call", row["d_call"], None)
        return
    best = {name for name, length in lengths.items() if length == most}
    called = (row["d_call"] or "").split(",")
    _same("d_call", set(called), best)
    if d is None:
        raise AssertionError("d_call is null")
    _same("d_score", row["d_score"], most)
    _same("d_cigar is exact", d.read_columns == d.germline_columns and len(d.read_columns) == most, True)
    part = gap[: d.text[1] - v.text[1] - 1]
    longest = max(_longest(part, a.sequence) for a in germline.d if a.name in best)
    _same("D is the leftmost of the longest matches", longest < most, True)
    alleles = [a for a, fits in zip(germline.d, allowed, strict=True) if fits]
    places = sum(max(len(a.sequence) - most + 1, 0) for a in alleles)
    support = (len(gap) - most + 1) * places / 4**most
    _same("d_support", abs(row["d_support"] / support - 1) < 1e-9, True)
    if row["cdr3_start"] is None:
        return
    codon = (row["cdr3_start"] - 4 - (d.text[0] - d.germline[0])) % 3
    _same("d_frame", row["d_frame"], codon + 1)


def _mirror(end: str, room: str, most: int) -> int:
    """Bases of `room`, read away from an end, that mirror it."""
    mirrored = reverse_complement(end[-most:]) if most else ""
    n = 0
    while n < min(len(mirrored), len(room)) and mirrored[n] == room[n] and room[n] in "ACGT":
        n += 1
    return n


def _check_palindromes(
    row: _Row, v: _Match, d: _Match | None, j: _Match, settings: AnnotationSettings
) -> None:
    most = settings.max_p_length
    sequence = row["sequence"]
    begin, end = v.text[1], j.text[0]
    p3v = p5j = 0
    if v.germline[1] == len(v.allele.sequence):
        p3v = _mirror(v.allele.sequence, sequence[begin : d.text[0] if d else end], most)
    _same("p3v_length", row["p3v_length"], p3v)
    begin += p3v
    if j.germline[0] == 0:
        room = reverse_complement(sequence[d.text[1] if d else begin : end])
        p5j = _mirror(reverse_complement(j.allele.sequence), room, most)
    _same("p5j_length", row["p5j_length"], p5j)
    end -= p5j
    if d:
        p5d = p3d = 0
        if d.germline[0] == 0:
            room = reverse_complement(sequence[begin : d.text[0]])
            p5d = _mirror(reverse_complement(d.allele.sequence), room, most)
        if d.germline[1] == len(d.allele.sequence):
            p3d = _mirror(d.allele.sequence, sequence[d.text[1] : end], most)
        _same("p5d_length and p3d_length", (row["p5d_length"], row["p3d_length"]), (p5d, p3d))


def _anchor(match: _Match, anchor: int) -> int | None:
    """Read place of a germline place that is paired; None where it is not."""
    return next((p for p, q in match.pairs.items() if q == anchor), None)


def _check_junction(row: _Row, v: _Match, j: _Match, settings: AnnotationSettings) -> None:
    junction, sequence = row["junction"], row["sequence"]
    if junction is None:
        for name in ("junction_aa", "junction_length", "cdr3", "cdr3_aa", "fwr4", "productive", "stop_codon"):
            _same(f"{name} without junction", row[name], None)
        return
    if v.allele.anchor is None or j.allele.anchor is None:
        raise AssertionError("a junction without anchors")
    if len(junction) > 6:
        start, end = row["cdr3_start"] - 4, row["cdr3_end"] + 3
        _same("junction", junction, sequence[start:end])
        first, last = _anchor(v, v.allele.anchor), _anchor(j, j.allele.anchor + 2)
        _same("junction begins at the anchor of V", start, start if first is None else first)
        _same("junction ends at the anchor of J", end, end if last is None else last + 1)
        _check_frame(row, v, j, start, end)
    _same("junction_length", row["junction_length"], len(junction))
    _same("junction_aa", row["junction_aa"], translate(junction))
    _same("junction_aa_length", row["junction_aa_length"], len(junction) // 3)
    _same("cdr3", row["cdr3"], junction[3:-3])
    _same("cdr3_aa", row["cdr3_aa"], translate(junction[3:-3]))
    _same("vj_in_frame", row["vj_in_frame"], len(junction) % 3 == 0)
    productive = row["vj_in_frame"] and not row["stop_codon"] and not row["v_frameshift"]
    _same("productive", row["productive"], productive)


def _check_frame(row: _Row, v: _Match, j: _Match, start: int, end: int) -> None:
    """Stop codons and framework 4."""
    sequence = row["sequence"]
    first = start if row["v_frameshift"] else v.text[0] + (start - v.text[0]) % 3
    _same("stop_codon", row["stop_codon"], "*" in translate(sequence[first : j.text[1]]))
    if row["fwr4"] is not None:
        place = row["fwr4_start"] - 1, row["fwr4_end"]
        _same("fwr4", row["fwr4"], sequence[place[0] : place[1]])
        _same("fwr4_start", place[0], end - 3)
        _same("fwr4 ends with J or before", place[1] <= j.text[1], True)
        _same("fwr4_aa", row["fwr4_aa"], translate(row["fwr4"]))


def _check_status(
    row: _Row, v: _Match | None, j: _Match | None, ordered: bool, settings: AnnotationSettings
) -> None:
    """The first reason that holds, but for that of the errors, which another row would need."""
    length = len(row["sequence"])
    reasons = {
        "too_short": length < settings.min_length,
        "too_long": length > settings.max_length,
        "no_v": v is None,
        "no_j": j is None,
        "wrong_order": bool(v and j) and not ordered,
        "too_many_errors": row["annotation_status"] == "too_many_errors",
        "no_anchor": row["junction"] is None,
        "low_quality": _low_quality(row, settings),
    }
    if settings.productive_only:
        reasons["out_of_frame"] = not row["vj_in_frame"] or bool(row["v_frameshift"])
        reasons["stop_codon"] = bool(row["stop_codon"])
    expected = next((reason for reason, holds in reasons.items() if holds), "ok")
    _same("annotation_status", row["annotation_status"], expected)


def _low_quality(row: _Row, settings: AnnotationSettings) -> bool:
    if row["quality"] is None or row["cdr3_start"] is None:
        return False
    junction = row["quality"][row["cdr3_start"] - 4 : row["cdr3_end"] + 3]
    return min(map(ord, junction)) - 33 < settings.min_junction_quality


def _check_parts(row: _Row, germlines: Sequence[GermlineSet]) -> None:
    """Columns that repeat parts of the alignments."""
    for letter in "vdj":
        first, last = row[f"{letter}_alignment_start"], row[f"{letter}_alignment_end"]
        for kind in ("sequence", "germline"):
            whole = row[f"{kind}_alignment"]
            part = None if first is None else whole[first - 1 : last]
            _same(f"{letter}_{kind}_alignment", row[f"{letter}_{kind}_alignment"], part)
    called = (row["v_call"] or "").split(",")[0]
    anchors = [a.anchor for g in germlines for a in g.v if a.name == called and g.locus == row["locus"]]
    framed = row["v_alignment_start"] is not None and anchors[0] is not None
    for kind in ("sequence", "germline"):
        protein = None
        if framed:
            bare = row[f"{kind}_alignment"].replace("-", "")
            protein = translate(bare[(anchors[0] - row["v_germline_start"] + 1) % 3 :])
        _same(f"{kind}_alignment_aa", row[f"{kind}_alignment_aa"], protein)
