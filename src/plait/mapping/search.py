"""Find patterns in texts, block by block: every place within the limits, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, IUPAC_MASK, encode
from plait.devices.target import Target, interpreted, over_threads, resolve, spelled
from plait.dp.bitparallel.launches import (
    EDIT_ENDS,
    MARGIN,
    MISMATCH_STARTS,
    SITE_MATCHES,
    PamSites,
    SiteBatch,
    TextBatch,
)
from plait.dp.bitparallel.paths import (
    EXTRA,
    MATCH,
    MISMATCH,
    MISSING,
    SiteHits,
    SitePaths,
    distances_kernel,
    paths_kernel,
)
from plait.dp.bitparallel.striped import ErrorLimits
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import FreeEnds, ListBatch, PairList, make_setup
from plait.errors import InvalidInput, Unsupported, one_of, whole_fields
from plait.mapping.hits import NOTHING, UNKNOWN, HitRows, Hits, joined, no_hits, ranks
from plait.mapping.patterns import (
    LONGEST,
    Pattern,
    PatternFile,
    Patterns,
    pattern_sets,
    read_patterns,
    status_of,
)
from plait.mapping.texts import BLOCK_LETTERS, BLOCKS_AHEAD, TextBlock, TextBlocks, Texts, ahead

Strands = Literal["both", "+", "-"]
Report = Literal["loci", "ends", "best"]
#: Most letters of the text that are left out of an alignment, or added to it.
_MOST_BULGES: Final = 8
#: Hits that are aligned together, by a thread of several at least, and those of a block above which the next
#: ones are smaller.
_HITS_AT_A_TIME: Final = 1 << 17
_FEWEST_HITS: Final = 1 << 12
_MANY_HITS: Final = 1 << 20
#: Letters of a block that are looked at for what is no nucleotide.
_LOOKED_AT: Final = 1 << 16
#: Letters of the smallest block and, as long as nothing is known of the hits, of the first one.
_FEWEST_LETTERS: Final = 1 << 16
_FIRST_LETTERS: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class FindSettings:
    """How patterns are looked for.

    Attributes
    ----------
    errors
        Most errors of all kinds; otherwise what the other limits allow together.
    mismatches
        Most substitutions; otherwise `errors`.
    edits
        Whether insertions and deletions are errors, too: everywhere, or at sites up to `errors`.
    pam
        Letters (IUPAC codes) that have to stand beside a pattern; of patterns without one of their own.
    pam_side
        3: behind the pattern; 5: before it.
    pam_mismatches
        Letters of the PAM that may be others.
    dna_bulges, rna_bulges
        With a PAM, or anchored: most letters that the text has in addition, and that it lacks.
    strands
        ``"both"``, or the only one looked at.
    report
        ``"loci"``; ``"ends"``: all ends, for edits; ``"best"``: of each pattern those with fewest errors.
    strata
        With best: errors more than the fewest.
    max_hits
        Hits of a pattern after which no more are kept, only counted, with the status ``too_many_hits``.
    count_only
        Only count.
    text_iupac
        Whether ambiguity codes in the text match; otherwise they match nothing.
    overhang
        Whether patterns may stick out at the ends of sequences, an error a letter; for substitutions.
    anchored
        Whether patterns have to begin where a sequence begins (on the other strand: end where it ends).
    threads, device
        Where to run.
    """

    errors: int | None = None
    mismatches: int | None = None
    edits: bool = False
    pam: str = ""
    pam_side: int = 3
    pam_mismatches: int = 0
    dna_bulges: int = 0
    rna_bulges: int = 0
    strands: Strands = "both"
    report: Report = "loci"
    strata: int = 0
    max_hits: int | None = None
    count_only: bool = False
    text_iupac: bool = False
    overhang: bool = False
    anchored: bool = False
    threads: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        whole_fields(self, "errors", "mismatches", "pam_mismatches", "strata", "max_hits")
        whole_fields(self, "dna_bulges", "rna_bulges", most=_MOST_BULGES)
        for name, known in (
            ("strands", ("both", "+", "-")),
            ("report", ("loci", "ends", "best")),
            ("pam_side", (3, 5)),
        ):
            one_of(name, getattr(self, name), known)

    def limits_of(self, pattern: Pattern) -> tuple[int, int]:
        """Mismatches and errors that a pattern may have."""
        bulges = self.dna_bulges + self.rna_bulges
        own = pattern.errors if self.mismatches is None and self.errors is None else None
        mismatches = own if self.mismatches is None else self.mismatches
        if mismatches is None:
            mismatches = self.errors or 0
        errors = mismatches + bulges if self.errors is None else self.errors
        return min(mismatches, errors), errors


class _Side(NamedTuple):
    """Patterns as they are looked for on one strand; `sites`: from their sites on, in direction `onward`."""

    strand: int
    sets: NDArray[np.uint8]
    onward: int
    pam: NDArray[np.uint8]
    right: bool


class _Group(NamedTuple):
    """Patterns with one PAM: their numbers, letters, and limits; int64."""

    numbers: NDArray[np.int64]
    lengths: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    errors: NDArray[np.int64]
    sides: tuple[_Side, ...]


class _Part(NamedTuple):
    """A locus that may go on in the next block: its last end, and its hit."""

    last: int
    row: HitRows


class Finder:
    """Patterns made ready to be looked for with some settings; a status for each of them.

    `letters` and `sites` are what has been looked at; `at_sites`: patterns stand beside PAMs or are anchored;
    `totals` (patterns, distances) numbers of hits; `strange` what is no nucleotide where a block begins.
    """

    def __init__(self, patterns: PatternFile, settings: FindSettings) -> None:
        self.settings = settings
        self.patterns = patterns.patterns
        self.target: Target = resolve(settings.device, settings.threads)
        self.letters = self.sites = 0
        self.strange: set[str] = set()
        # Sequences whose blocks have been looked at; those that are read may be further.
        self.begun = 0
        limits = [settings.limits_of(pattern) for pattern in self.patterns]
        self.statuses = [
            status_of(pattern, errors) for pattern, (_, errors) in zip(self.patterns, limits, strict=True)
        ]
        self.at_sites = settings.anchored or bool(settings.pam or any(p.pam for p in self.patterns))
        self._check(limits)
        most = max((errors for _, errors in limits), default=0)
        self.totals = np.zeros((len(self.patterns), most + 1), np.int64)
        self._groups = self._grouped(limits)
        longest = max((int(group.lengths.max()) for group in self._groups), default=1)
        pams = max((side.pam.size for group in self._groups for side in group.sides), default=0)
        self.context = longest + most + settings.dna_bulges + pams
        self.gap = most + 1
        self._written = np.zeros(len(self.patterns), np.int64)
        self._open: dict[tuple[int, int], _Part] = {}

    def _check(self, limits: Sequence[tuple[int, int]]) -> None:
        s = self.settings
        bulges = s.dna_bulges or s.rna_bulges
        if bulges and not self.at_sites:
            expected = "a PAM or anchored patterns; edits elsewhere"
            raise InvalidInput("bulges", found="limits of bulges alone", expected=expected)
        for name in ("pam_side", "pam_mismatches"):
            if getattr(s, name) != getattr(FindSettings, name) and not self.at_sites:
                raise InvalidInput(name, found=f"{getattr(s, name)} alone", expected="a PAM, too")
        if s.strata and s.report != "best":
            raise InvalidInput("strata", found=f"{s.strata} with {s.report}", expected="the report best")
        if s.overhang and (s.edits or self.at_sites):
            raise Unsupported("overhang with edits or at sites", why="it is there for substitutions alone")
        if s.report == "ends" and (not s.edits or self.at_sites):
            raise InvalidInput("report", found="ends without edits", expected="edits, or loci")
        for letters in {s.pam, *(pattern.pam for pattern in self.patterns)} - {""}:
            if not encode(letters).all():
                raise InvalidInput("pam", found=repr(letters), expected="IUPAC letters")
            if set(letters.upper()) <= {"N"}:
                raise InvalidInput("pam", found=repr(letters), expected="a PAM with a letter other than N")
        if s.anchored and s.pam:
            raise InvalidInput("anchored", found="a PAM besides", expected="either")
        if "ok" not in self.statuses:
            shown = ", ".join(sorted(set(self.statuses)))
            raise InvalidInput(
                "patterns",
                found=f"{len(self.statuses)} that cannot be looked for ({shown})",
                expected=f"patterns of 8 to {LONGEST} letters, and errors in less than half of them",
            )

    def _grouped(self, limits: Sequence[tuple[int, int]]) -> list[_Group]:
        fit = [k for k, status in enumerate(self.statuses) if status == "ok"]
        pams = [self.patterns[k].pam or self.settings.pam for k in fit]
        if self.at_sites and not self.settings.anchored and "" in pams:
            name = self.patterns[fit[pams.index("")]].name
            raise InvalidInput("pam", found=f"none for pattern {name!r}", expected="one for every pattern")
        groups = []
        for pam in dict.fromkeys(p.upper() for p in pams):
            numbers = [k for k, own in zip(fit, pams, strict=True) if own.upper() == pam]
            sequences = [self.patterns[k].sequence for k in numbers]
            mismatches, errors = np.array([limits[k] for k in numbers], np.int64).reshape(-1, 2).T.copy()
            groups.append(
                _Group(
                    np.array(numbers, np.int64),
                    np.array([len(sequence) for sequence in sequences], np.int64),
                    mismatches,
                    errors,
                    tuple(self._side(strand, sequences, pam) for strand in self._strands()),
                )
            )
        return groups

    def _strands(self) -> tuple[int, ...]:
        return {"both": (0, 1), "+": (0,), "-": (1,)}[self.settings.strands]

    def _side(self, strand: int, sequences: Sequence[str], pam: str) -> _Side:
        """Sets of letters of patterns: as in the text, or from their sites on."""
        other = strand == 1
        if not self.at_sites:
            sets = pattern_sets(sequences, backwards=other, complement=other)
            return _Side(strand, sets, 1, np.zeros(0, np.uint8), False)
        behind = self.settings.pam_side == 3 and not self.settings.anchored
        sets = pattern_sets(sequences, backwards=behind, complement=other)
        letters = encode(pam)
        letters = COMPLEMENT_MASK[letters[::-1]] if other else letters
        return _Side(strand, sets, -1 if behind != other else 1, letters, behind != other)

    # --- a block ------------------------------------------------------------------------------------

    def block(self, block: TextBlock) -> HitRows:
        """Hits that the block completes, in no order."""
        self.letters += int((block.ends - block.begins - block.seen).sum())
        start = block.letters[:_LOOKED_AT]
        self.strange |= set(start[(IUPAC_MASK[start] == 0) & (start > 0)].tobytes().decode("latin-1"))
        parts = []
        for group in self._groups:
            for side in group.sides:
                if self.at_sites:
                    parts.append(self._site_hits(block, group, side))
                elif self.settings.edits:
                    parts.append(self._edit_hits(block, group, side))
                else:
                    parts.append(self._mismatch_hits(block, group, side))
        return joined(parts)

    def _owned(self, block: TextBlock, record: Any, last: Any) -> Any:
        """Which windows are complete here and were not before; `last` is behind their last letter."""
        known = last > block.begins[record] + block.seen[record]
        if block.complete:
            return known
        return known & ((record < block.begins.size - 1) | (last <= block.ends[record]))

    def _batch(self, block: TextBlock, group: _Group, side: _Side, limits: NDArray[np.int64]) -> TextBatch:
        return TextBatch(block.codes, block.letters.size, side.sets, group.lengths, limits)

    def _mismatch_hits(self, block: TextBlock, group: _Group, side: _Side) -> HitRows:
        batch = self._batch(block, group, side, group.mismatches)
        found, places = self.target.launch(MISMATCH_STARTS, batch)
        return joined(
            [self._mismatch_rows(block, group, side, found[own], places[own]) for own in _parts(found.size)]
        )

    def _mismatch_rows(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        found: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> HitRows:
        lengths = group.lengths[found]
        record = block.records_of(places + lengths // 2)
        inside = self._owned(block, record, places + lengths)
        if not self.settings.overhang:
            inside &= (places >= block.begins[record]) & (places + lengths <= block.ends[record])
        else:
            middle = places + lengths // 2
            inside &= (middle >= block.begins[record]) & (middle < block.ends[record])
        found, places, lengths, record = (values[inside] for values in (found, places, lengths, record))
        columns = np.arange(side.sets.shape[1])
        behind = columns >= lengths[:, None]
        window = places[:, None] + columns
        codes = block.codes[MARGIN + np.clip(window, -MARGIN, block.letters.size)] & 15
        steps = ((codes & side.sets[found]) == 0).astype(np.uint8)
        steps[behind] = 0
        mismatches = steps.sum(axis=1, dtype=np.int64)
        steps[behind] = NOTHING
        letters = block.letters[np.clip(window, 0, block.letters.size - 1)]
        outside = (window < block.begins[record][:, None]) | (window >= block.ends[record][:, None])
        letters[outside] = ord("N")
        letters[behind] = 0
        start = places - block.begins[record] + block.offsets[record]
        none = np.zeros(found.size, np.int64)
        return HitRows(
            group.numbers[found],
            block.sequences[record],
            start,
            start + lengths,
            none + side.strand,
            mismatches,
            none,
            none,
            letters,
            steps,
            np.zeros((found.size, 0), np.uint8),
        )

    # --- edits --------------------------------------------------------------------------------------

    def _edit_hits(self, block: TextBlock, group: _Group, side: _Side) -> HitRows:
        batch = self._batch(block, group, side, group.errors)
        found, places = self.target.launch(EDIT_ENDS, batch)
        record = block.records_of(places)
        inside = self._owned(block, record, places + 1) & (places >= block.begins[record])
        inside &= places < block.ends[record]
        found, places, record = found[inside], places[inside], record[inside]
        distances = self._distances(block, group, side, found, places)
        if self.settings.report == "ends":
            return self._ends(block, group, side, found, places, record, distances)
        # A locus ends where the next end is too far away, or of another pattern or sequence.
        new = np.ones(found.size, bool)
        near = np.diff(places) <= group.errors[found[1:]] + 1
        new[1:] = ~(near & (np.diff(found) == 0) & (np.diff(record) == 0))
        firsts, locus = np.flatnonzero(new), np.cumsum(new) - 1
        lasts = np.append(firsts[1:], found.size)[: firsts.size] - 1
        fewest = np.minimum.reduceat(distances, firsts) if found.size else distances
        best = np.flatnonzero(distances == fewest[locus])
        chosen = best[np.unique(locus[best], return_index=True)[1]]
        parts = (chosen[own] for own in _parts(chosen.size))
        rows = joined([self._aligned(block, group, side, found[k], places[k], record[k]) for k in parts])
        ends = places - block.begins[record] + block.offsets[record]
        if not self._open and block.complete:
            return rows
        return self._continued(block, group, side, rows, (record[firsts], ends[firsts], ends[lasts]))

    def _continued(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        rows: HitRows,
        loci: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    ) -> HitRows:
        """Loci that are complete, with those of the block before that end here; the others are kept.

        `loci` are record, first and last end of each of `rows`, places in the sequence.
        """
        record, first, last = loci
        tail = block.begins.size - 1
        end = int(block.ends[tail] - block.begins[tail] + block.offsets[tail])
        firsts = {int(rows.pattern[k]): k for k in np.flatnonzero(record == 0)[::-1].tolist()}
        keep, done, merged = np.ones(len(rows), bool), [], {}
        for number, errors in zip(group.numbers.tolist(), group.errors.tolist(), strict=True):
            key = (number, side.strand)
            part = self._open.pop(key, None)
            k = firsts.get(number)
            if part is None:
                continue
            if k is not None and first[k] - part.last <= errors + 1:
                if part.row.distance[0] <= rows.distance[k]:
                    merged[k] = part.row
            elif not block.complete and tail == 0 and part.last >= end - errors - 2:
                self._open[key] = part
            else:
                done.append(part.row)
        if not block.complete:
            near = group.errors[np.searchsorted(group.numbers, rows.pattern)] + 2
            for k in np.flatnonzero((record == tail) & (last >= end - near)).tolist():
                part = _Part(int(last[k]), merged.pop(k) if k in merged else rows.taken([k]))
                self._open[int(rows.pattern[k]), side.strand] = part
                keep[k] = False
        keep[list(merged)] = False
        return joined([rows.taken(keep), *merged.values(), *done])

    def _distances(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        found: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        out = np.zeros(found.size, np.int64)
        column = np.zeros(LONGEST + 1, np.int64)
        reach = group.lengths + group.errors
        call = interpreted(distances_kernel) if self.target.name == "reference" else distances_kernel
        call(block.codes, side.sets, group.lengths, reach, found, places + MARGIN, column, out)
        return out

    def _ends(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        found: NDArray[np.int64],
        places: NDArray[np.int64],
        record: NDArray[np.int64],
        distances: NDArray[np.int64],
    ) -> HitRows:
        """Ends as hits without a start."""
        none, table = np.zeros(found.size, np.int64), np.zeros((found.size, 0), np.uint8)
        end = places - block.begins[record] + block.offsets[record] + 1
        numbers = group.numbers[found], block.sequences[record]
        return HitRows(
            *numbers, none + UNKNOWN, end, none + side.strand, distances, none, none, table, table, table
        )

    def _aligned(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        found: NDArray[np.int64],
        places: NDArray[np.int64],
        record: NDArray[np.int64],
    ) -> HitRows:
        """Hits that end at places, aligned as `plait.align` does."""
        if not found.size:
            return no_hits()
        lengths = group.lengths[found]
        begins = np.maximum(places + 1 - lengths - group.errors[found], block.begins[record])
        width = places + 1 - begins
        columns = np.arange(int(width.max()))
        window = begins[:, None] + columns
        letters = block.letters[np.clip(window, 0, block.letters.size - 1)]
        codes = block.codes[MARGIN + np.clip(window, 0, block.letters.size - 1)] & 15
        sets = np.arange(side.sets.shape[1]) < lengths[:, None]
        matrix = np.where(np.arange(16)[:, None] & np.arange(16), 0, -1).astype(np.int32)
        free = FreeEnds(False, False, True, False, False, False)
        pairs = PairList(
            side.sets[found][sets],
            np.concatenate([[0], np.cumsum(lengths)]),
            codes[columns < width[:, None]],
            np.concatenate([[0], np.cumsum(width)]),
            matrix,
            1,
            1,
            free,
        )
        aligned = self.target.launch(PAIR_LIST, ListBatch(make_setup(pairs, keep=True), pairs))
        starts = aligned.ends[:, 2]
        steps = _steps_of_runs(aligned.runs, aligned.run_counts)
        # From the start on, along the steps.
        along = np.minimum(starts[:, None] + columns, width[:, None] - 1)
        letters, codes = (np.take_along_axis(table, along, axis=1) for table in (letters, codes))
        letters[columns >= (width - starts)[:, None]] = 0
        steps = _with_mismatches(steps, side.sets[found], codes)
        start = begins + starts - block.begins[record] + block.offsets[record]
        mismatches, extra, missing = (
            (steps == kind).sum(axis=1, dtype=np.int64) for kind in (MISMATCH, EXTRA, MISSING)
        )
        return HitRows(
            group.numbers[found],
            block.sequences[record],
            start,
            places + 1 - block.begins[record] + block.offsets[record],
            np.full(found.size, side.strand, np.int64),
            mismatches,
            extra,
            missing,
            letters,
            steps,
            np.zeros((found.size, 0), np.uint8),
        )

    # --- sites --------------------------------------------------------------------------------------

    def _site_hits(self, block: TextBlock, group: _Group, side: _Side) -> HitRows:
        """Hits beside PAMs, or at the ends of sequences."""
        s = self.settings
        extra = min(s.dna_bulges, int(group.errors.max()))
        missing = min(s.rna_bulges, int(group.errors.max()))
        if s.edits and s.errors is not None:
            extra = missing = min(int(group.errors.max()), _MOST_BULGES)
        reach = int(group.lengths.max()) + extra
        sites = self._sites(block, side, reach)
        parts = []
        for errors in np.unique(group.errors).tolist():
            among = np.flatnonzero(group.errors == errors)
            found, count = self._at(block, group, side, among, sites, ErrorLimits(extra, missing, errors))
            parts.append(found)
        self.sites += count
        return joined([part for part in parts if len(part)] or parts[:1])

    def _sites(self, block: TextBlock, side: _Side, reach: int) -> NDArray[np.int64] | PamSites:
        """Sites that are a block's own: beside its PAMs, or the ends of its sequences."""
        if self.settings.anchored:
            first = (
                block.offsets == 0 if side.onward == 1 else np.arange(block.begins.size) < block.begins.size
            )
            record = np.flatnonzero(first & (block.ends > block.begins))
            place = block.begins[record] if side.onward == 1 else block.ends[record] - 1
            last = np.minimum(place + reach, block.ends[record]) if side.onward == 1 else place + 1
            own = self._owned(block, record, last)
            if side.onward == -1 and not block.complete:
                own &= record < block.begins.size - 1
            return np.asarray(place[own] + MARGIN)
        size = side.pam.size
        after = size + (reach if side.onward == 1 else 0)
        begins = block.begins + np.maximum(block.seen - after + 1, 0)
        lasts = block.ends - size
        if not block.complete:
            lasts[-1:] = block.ends[-1:] - after
        ranges = np.stack([begins, lasts], axis=1)
        return PamSites(side.pam, self.settings.pam_mismatches, ranges[begins <= lasts])

    def _at(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        among: NDArray[np.int64],
        sites: NDArray[np.int64] | PamSites,
        limits: ErrorLimits,
    ) -> tuple[HitRows, int]:
        """Hits of some patterns at sites, with their best alignments, and how many sites there are."""
        sets = np.ascontiguousarray(side.sets[among])
        text = TextBatch(block.codes, block.letters.size, sets, group.lengths[among], group.mismatches[among])
        batch = SiteBatch(text, sites, side.onward, limits)
        found, place, count = self.target.launch(SITE_MATCHES, batch)
        place = place - MARGIN
        whose = block.records_of(place)

        def paths(own: slice) -> HitRows:
            return self._best_paths(block, group, side, among, (found[own], place[own], whose[own]), batch)

        threads = self.target.threads
        return joined(over_threads(threads, list(_parts(found.size, threads)), paths)), count

    def _best_paths(
        self,
        block: TextBlock,
        group: _Group,
        side: _Side,
        among: NDArray[np.int64],
        hits: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        batch: SiteBatch,
    ) -> HitRows:
        """Rows of hits, which are patterns, places and records; without those that stick out of a record."""
        found, place, whose = hits
        text, limits = batch.text, batch.limits
        sets = text.patterns
        room = np.where(side.onward == 1, block.ends[whose] - place, place + 1 - block.begins[whose])
        out = SitePaths(
            np.zeros((found.size, 3), np.int64),
            np.full((found.size, sets.shape[1] + limits.extra), NOTHING, np.uint8),
            np.zeros(found.size, np.int64),
        )
        best = np.zeros((LONGEST + 1, limits.extra + 1, limits.missing + 1), np.int64)
        call = interpreted(paths_kernel) if self.target.name == "reference" else paths_kernel
        # The left of the pattern is the far end of a site behind it.
        late = bool(self.settings.pam_side == 3 and not self.settings.anchored)
        at = SiteHits(place + MARGIN, side.onward, room, found)
        call(block.codes, at, sets, text.lengths, text.limits, limits, late, best, out)
        good = out.errors[:, 0] >= 0
        kept = SitePaths(*(column[good] for column in out))
        numbers = group.numbers[among[found[good]]]
        return self._site_rows(block, numbers, side, (place[good], whose[good]), kept)

    def _site_rows(
        self,
        block: TextBlock,
        numbers: NDArray[np.int64],
        side: _Side,
        sites: tuple[NDArray[np.int64], NDArray[np.int64]],
        paths: SitePaths,
    ) -> HitRows:
        place, record = sites
        steps, counts = paths.steps, paths.counts
        if side.onward == 1:
            # They come from the far end.
            columns = np.arange(steps.shape[1])
            turned = np.take_along_axis(steps, np.clip(counts[:, None] - 1 - columns, 0, None), axis=1)
            steps = np.where(columns < counts[:, None], turned, np.uint8(NOTHING))
        used = ((steps != NOTHING) & (steps != MISSING)).sum(axis=1, dtype=np.int64)
        begin = place if side.onward == 1 else place - used + 1
        size = side.pam.size
        width = np.arange(int(used.max(initial=0)))
        letters = block.letters[np.clip(begin[:, None] + width, 0, block.letters.size - 1)]
        letters[width >= used[:, None]] = 0
        pam_begin = begin - size if side.onward == 1 else begin + used
        pams = block.letters[np.clip(pam_begin[:, None] + np.arange(size), 0, block.letters.size - 1)]
        shift = block.offsets[record] - block.begins[record]
        start = (begin - size if side.onward == 1 else begin) + shift
        return HitRows(
            numbers,
            block.sequences[record],
            start,
            start + used + size,
            np.full(numbers.size, side.strand, np.int64),
            paths.errors[:, 0],
            paths.errors[:, 1],
            paths.errors[:, 2],
            letters,
            steps,
            pams,
        )

    # --- all blocks ---------------------------------------------------------------------------------

    def sequences(
        self, texts: Texts, *, most: int = BLOCK_LETTERS, whole: bool = False
    ) -> Iterator[tuple[TextBlocks, HitRows]]:
        """Hits in order, as soon as none before them can come; those of a sequence together if `whole`.

        They are counted in `totals` before. No hits come last.
        """
        iupac, first, threads = self.settings.text_iupac, min(most, _FIRST_LETTERS), self.target.threads
        how = {"context": self.context, "gap": self.gap, "most": first, "threads": threads}
        blocks = TextBlocks(texts, iupac=iupac, **how)
        held: list[HitRows] = []
        for block in ahead(blocks, BLOCKS_AHEAD, threads):
            rows = self.block(block)
            self.begun = int(block.sequences[-1]) + 1
            np.add.at(self.totals, (rows.pattern, rows.distance), 1)
            fit = block.letters.size * _MANY_HITS // max(len(rows), 1)
            blocks.most = min(max(fit, _FEWEST_LETTERS), 8 * blocks.most, most)
            if self.settings.count_only:
                continue
            held.append(rows)
            if whole and not block.complete:
                continue
            rows = joined(held).in_order()
            done = len(rows) if block.complete else self._settled(rows, block)
            held = [rows.taken(slice(done, None))]
            yield blocks, rows.taken(slice(done))
        yield blocks, no_hits()

    def _settled(self, rows: HitRows, block: TextBlock) -> int:
        """How many rows, in order, come before any that later blocks can give."""
        if self.settings.report == "ends":
            return len(rows)
        tail = block.begins.size - 1
        end = int(block.ends[tail] - block.begins[tail] + block.offsets[tail])
        starts = [int(part.row.start[0]) for part in self._open.values()]
        first = int(np.searchsorted(rows.sequence, block.sequences[tail]))
        return first + int(np.searchsorted(rows.start[first:], min([end - self.context, *starts])))

    def kept(self, rows: HitRows) -> HitRows:
        """What is left within the most hits of each pattern; `rows` follow those of the call before."""
        most = self.settings.max_hits
        if most is None or not len(rows):
            return rows
        return rows.taken(ranks(rows.pattern, self._written) < most)

    def most_told(self) -> NDArray[np.int64]:
        """Most errors of the hits of each pattern that are told of, as far as they are known; int64."""
        width = self.totals.shape[1]
        if self.settings.report != "best":
            return np.full(len(self.patterns), width, np.int64)
        found = self.totals > 0
        fewest: NDArray[np.int64] = np.where(found.any(axis=1), found.argmax(axis=1), width)
        fewest += self.settings.strata
        return fewest

    def told(self) -> NDArray[np.int64]:
        """Numbers of hits of each pattern that are asked for, also of those above the most, int64."""
        used = np.arange(self.totals.shape[1]) <= self.most_told()[:, None]
        told: NDArray[np.int64] = (self.totals * used).sum(axis=1)
        return told

    def final_statuses(self) -> tuple[str, ...]:
        """Statuses once all has been looked at."""
        most = self.settings.max_hits
        return tuple(
            "too_many_hits" if status == "ok" and most is not None and count > most else status
            for status, count in zip(self.statuses, self.told().tolist(), strict=True)
        )


def _parts(hits: int, threads: int = 1) -> Iterator[slice]:
    """Stretches of so many hits, one at least."""
    step = min(_HITS_AT_A_TIME, max(hits // threads + 1, _FEWEST_HITS))
    for first in range(0, max(hits, 1), step):
        yield slice(first, first + step)


def _steps_of_runs(runs: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Operations of alignments one by one, a row each."""
    kinds = np.array([MATCH, EXTRA, MISSING], np.uint8)
    flat = np.repeat(kinds[runs[:, 0]], runs[:, 1])
    owner = np.repeat(np.arange(counts.size), counts)
    sizes = np.bincount(owner, weights=runs[:, 1], minlength=counts.size).astype(np.int64)
    steps = np.full((counts.size, int(sizes.max(initial=0))), NOTHING, np.uint8)
    steps[np.arange(steps.shape[1]) < sizes[:, None]] = flat
    return steps


def _with_mismatches(
    steps: NDArray[np.uint8], sets: NDArray[np.uint8], codes: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Operations with mismatches among the matches; `codes` are those of the text along the operations."""
    from_text, from_pattern = (steps == MATCH) | (steps == EXTRA), (steps == MATCH) | (steps == MISSING)
    at = np.clip(np.cumsum(from_text, axis=1) - 1, 0, codes.shape[1] - 1)
    own = np.clip(np.cumsum(from_pattern, axis=1) - 1, 0, sets.shape[1] - 1)
    same = np.take_along_axis(codes, at, axis=1) & np.take_along_axis(sets, own, axis=1)
    return np.where((steps == MATCH) & (same == 0), np.uint8(MISMATCH), steps)


def found_in(finder: Finder, texts: Texts, *, whole: bool = False) -> Iterator[tuple[TextBlocks, HitRows]]:
    """Hits as they are to be told: in the order of the texts, or all at the end where only the best count.

    `whole`: those of a sequence together.
    """
    if finder.settings.report != "best" or finder.settings.count_only:
        for blocks, rows in finder.sequences(texts, whole=whole):
            yield blocks, finder.kept(rows)
        return
    best, parts = finder.most_told(), [no_hits()]
    for blocks, rows in finder.sequences(texts):
        before, best, last = best, finder.most_told(), blocks
        parts.append(rows)
        if (best < before).any():
            parts = [joined(parts)]
        parts[-1] = parts[-1].taken(parts[-1].distance <= best[parts[-1].pattern])
    yield last, finder.kept(joined(parts))


def with_file_settings(read: PatternFile, settings: FindSettings) -> FindSettings:
    """Settings with what the file of patterns says, where they say nothing."""
    if read.side is not None:
        settings = replace(settings, pam_side=read.side)
    if read.bulges is not None and not settings.dna_bulges and not settings.rna_bulges:
        settings = replace(settings, dna_bulges=read.bulges[0], rna_bulges=read.bulges[1])
    return settings


def find(patterns: Patterns, text: Texts, **settings: Any) -> Hits:
    """Find every place where a pattern occurs with at most so many errors.

    Parameters
    ----------
    patterns
        A file of patterns, a sequence, sequences by name, or a list of sequences or patterns: IUPAC codes.
    text
        A file or files (FASTA, FASTQ or 2bit, compressed or not), or sequences by name; bytes are one
        sequence.
    **settings
        See `FindSettings`.

    Returns
    -------
    Hits
        All hits, in the order of the texts.

    Raises
    ------
    InvalidInput
        If a setting or a pattern is wrong.
    FormatError
        If a file is not what it should be.

    Examples
    --------
    >>> found = find("ACGTACGT", {"chr1": "TTACGTACCTAA"}, mismatches=1, strands="+")
    >>> found.start.tolist(), found.distance.tolist(), found.target
    ([2], [1], ['ACGTACcT'])
    """
    read = read_patterns(patterns)
    finder = Finder(read, with_file_settings(read, FindSettings(**settings)))
    found = list(found_in(finder, text))
    blocks, last = found[-1]
    return Hits(
        finder.patterns,
        finder.final_statuses(),
        tuple(blocks.names),
        tuple(blocks.lengths),
        joined([rows for _, rows in found if len(rows)] or [last]),
        finder.totals,
    )


spelled(find, FindSettings)


def off_targets(
    guides: Patterns,
    genome: Texts,
    *,
    pam: str = "NGG",
    mismatches: int = 4,
    dna_bulges: int = 0,
    rna_bulges: int = 0,
    **settings: Any,
) -> Hits:
    """Find every place beside a PAM that a guide may cut.

    Parameters
    ----------
    guides
        As the patterns of `find`, without their PAM.
    genome
        As the text of `find`.
    pam
        Letters (IUPAC codes) behind the guide; before it with ``pam_side=5``.
    mismatches
        Most substitutions.
    dna_bulges, rna_bulges
        Most letters that the genome has in addition, and that it lacks.
    **settings
        See `FindSettings`.

    Returns
    -------
    Hits
        All hits; start and end are those of guide and PAM together.

    Examples
    --------
    >>> found = off_targets("GACGCATAAAGATGAGACGC", {"chr1": "AAGACGCATATAGATGAGACGCTGGA"})
    >>> found.start.tolist(), found.strand, found.target, found.pam
    ([2], ['+'], ['GACGCATAtAGATGAGACGC'], ['TGG'])
    """
    limits = {"mismatches": mismatches, "dna_bulges": dna_bulges, "rna_bulges": rna_bulges}
    return find(guides, genome, pam=pam, **limits, **settings)
