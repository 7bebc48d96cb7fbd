"""Explain one path count: the matches behind it, and the limit that holds it down most."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import encode, reverse_complement
from plait.dp.chain.tables import D_BITS
from plait.errors import InvalidInput
from plait.vdj.calls import STATUSES, encode_junctions
from plait.vdj.counting import PathCounter
from plait.vdj.germline import Allele, GermlineSet, load_germline
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import ModelName, PathModel, model_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMatch:
    """The V or the J end laid along a junction; 0-based junction positions.

    `sequence` is the part of the allele inside the junction, upper case (`germline_length` symbols), with its
    palindromic extension, lower case, in the direction of the junction; `start`, its position, is negative
    where J is longer than the junction. `matched` symbols match without a break, counted from the anchor,
    `palindromic` of them in the extension. `mismatch`: position of the first that differs, None if everything
    inside the junction matches.
    """

    allele: str
    sequence: str
    start: int
    germline_length: int
    matched: int
    palindromic: int
    mismatch: int | None

    @property
    def complete(self) -> bool:
        """Whether all of the germline part that lies inside the junction matches."""
        return self.mismatch is None or self.matched >= self.germline_length

    def symbol_at(self, position: int) -> str:
        """The germline symbol over a junction position."""
        return self.sequence[position - self.start]


@dataclass(frozen=True, slots=True)
class DPlace:
    """One place of a longest D match: its first nucleotide in the junction, and in the D allele.

    `d_start` is negative inside the palindrome before the allele.
    """

    junction_start: int
    d_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestD:
    """The longest matches of one D allele.

    `sequence` is the allele, upper case, between its palindromic extensions, lower case, of length
    `extension` each. `length`: nucleotides of the longest match, extensions included; `places`: all of that
    length, from left to right.
    """

    allele: str
    sequence: str
    extension: int
    length: int
    places: tuple[DPlace, ...]

    def piece(self, place: DPlace) -> str:
        """The matching part of `sequence`."""
        first = place.d_start + self.extension
        return self.sequence[first : first + self.length]


def match_v(junction: str, allele: Allele, pi: int) -> EndMatch:
    """Lay a V end along a junction of IUPAC codes, from its first symbol on; `allele` has an anchor.

    `pi`: longest palindromic extension.
    """
    end = allele.cdr3_end or ""
    return _laid(junction, allele, end + _palindrome_after(end, pi), from_right=False)


def match_j(junction: str, allele: Allele, pi: int) -> EndMatch:
    """Lay a J end along a junction of IUPAC codes, from its last symbol back; as for `match_v`."""
    end = allele.cdr3_end or ""
    return _laid(junction, allele, _palindrome_before(end, pi) + end, from_right=True)


def _laid(junction: str, allele: Allele, sequence: str, *, from_right: bool) -> EndMatch:
    """An end with its extension, laid along a junction from one side."""
    step = -1 if from_right else 1
    matched = _matching(encode(junction)[::step], encode(sequence)[::step])
    germline = len(allele.cdr3_end or "")
    broken = matched < min(len(junction), len(sequence))
    return EndMatch(
        allele=allele.name,
        sequence=sequence,
        start=len(junction) - len(sequence) if from_right else 0,
        germline_length=germline,
        matched=matched,
        palindromic=max(0, matched - germline),
        mismatch=(len(junction) - 1 - matched if from_right else matched) if broken else None,
    )


def longest_d(junction: str, allele: Allele, pi: int) -> LongestD:
    """The longest matches of a D allele, extended by `pi` at both ends, anywhere in a junction."""
    before = _palindrome_before(allele.sequence, pi)
    sequence = before + allele.sequence + _palindrome_after(allele.sequence, pi)
    best = 0
    places: list[DPlace] = []
    text, gene = encode(junction), encode(sequence)
    for at in range(len(junction)):
        for d in range(len(sequence)):
            length = _matching(text[at:], gene[d:])
            if length > best:
                best, places = length, []
            if length == best > 0:
                places.append(DPlace(at, d - len(before)))
    return LongestD(
        allele=allele.name, sequence=sequence, extension=len(before), length=best, places=tuple(places)
    )


def _palindrome_after(end: str, pi: int) -> str:
    return reverse_complement(end)[:pi].lower()


def _palindrome_before(end: str, pi: int) -> str:
    return reverse_complement(end[:pi]).lower() if pi else ""


def _matching(text: NDArray[np.uint8], sequence: NDArray[np.uint8]) -> int:
    """Symbols from the start on that have a nucleotide in common."""
    size = min(text.size, sequence.size)
    common = (text[:size] & sequence[:size]) != 0
    return size if common.all() else int(common.argmin())


_WRONG_JUNCTION = {
    "missing_junction": "nothing",
    "invalid_symbol": "a symbol that is no IUPAC nucleotide code",
    "too_short": "a junction too short to hold both conserved codons",
    "too_long": "far more nucleotides than any junction has",
}
_CLOSEST = 5
#: Limits are lifted, and smallest values looked for, up to these; beyond lies no biology.
_LARGEST_PI = 10
_LARGEST_NU = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DPaths:
    """Paths through one D allele; `allowed`: the germline set lets it join this J.

    In `zero_d_paths` of the `paths` nothing of it is left. In a V-D-D-J chain, paths with it as the only D.
    """

    match: LongestD
    allowed: bool
    paths: int
    zero_d_paths: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """The count with one limit lifted and all others as they are.

    `limit`: ``"nu"``, ``"nu_vd"`` or ``"nu_dj"``, most N nucleotides at all junctions or at one of them;
    ``"v_mismatch"`` or ``"j_mismatch"``, the first germline symbol that differs from the junction. `before`
    and `after`: numbers of nucleotides, or the germline symbol and ``"N"``. `smallest`: smallest value of the
    limit with a count above 0, None if there is none; None for a mismatch.
    """

    limit: str
    before: int | str
    after: int | str
    path_count: int
    smallest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What lies behind one path count.

    Attributes
    ----------
    junction
        The junction, upper case.
    germline, germline_digest
        Name and digest of the germline set.
    chain
        ``"vj"``, ``"vdj"`` or ``"vddj"``.
    model
        The path-counting model.
    v, j
        How the V and the J end match.
    d
        Every D allele in the order of the germline set; none in a V-J chain.
    path_count
        Sum over the allowed D alleles (or pairs of them).
    no_d_paths
        Paths without a D gene.
    vj_gap
        Nucleotides between the V match and the J match; negative where they overlap.
    lifted
        The count with each limit lifted alone.
    smallest_nu, smallest_pi
        Where the count is 0: smallest nu (at all junctions) and smallest pi with a count above 0, None where
        there is none within what can be asked for. None too where the count is above 0.
    """

    junction: str
    germline: str
    germline_digest: str
    chain: Chain
    model: PathModel
    v: EndMatch
    j: EndMatch
    d: tuple[DPaths, ...]
    path_count: int
    no_d_paths: int
    vj_gap: int
    lifted: tuple[Lifted, ...]
    smallest_nu: int | None
    smallest_pi: int | None

    @property
    def most_constraining(self) -> Lifted | None:
        """The limit that raises the count most when it is lifted; None if none does."""
        best = max(self.lifted, key=lambda lifted: lifted.path_count, default=None)
        return best if best is not None and best.path_count > self.path_count else None

    @property
    def longest_d_match(self) -> int:
        """Nucleotides of the longest match of an allowed D allele."""
        return max((d.match.length for d in self.d if d.allowed), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        best = self.most_constraining
        return {
            **asdict(self),
            "model": self.model.as_dict(),
            "most_constraining": None if best is None else best.limit,
        }


def explain(
    junction: str,
    v_call: str,
    j_call: str,
    *,
    germline: GermlineSet | str,
    model: PathModel | ModelName = "dp2",
    chain: Chain | Literal["auto"] = "auto",
    **parameters: Any,
) -> Explanation:
    """Explain the path count of one junction.

    Parameters
    ----------
    junction
        Nucleotide sequence from the conserved Cys to the conserved Phe/Trp codon, IUPAC codes allowed.
    v_call, j_call
        A V and a J gene or allele.
    germline
        A germline set, or the name or path of one.
    model
        A dp2 model without a sweep: a `PathModel`, or its name, with `parameters`.
    chain
        ``"vj"``, ``"vdj"`` or ``"vddj"``; ``"auto"`` takes what the germline set implies.
    **parameters
        Fields of `PathModel` where `model` is a name: ``strands=2, pi=3`` and so on.

    Returns
    -------
    Explanation
        The matches, the counts, and what becomes of them when limits are lifted.

    Raises
    ------
    InvalidInput
        If the junction cannot be counted, a call is unknown or a list, or the model is another one.

    Examples
    --------
    >>> from plait.vdj import explain
    >>> told = explain("TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC", "TRBV13-1", "TRBJ2-7", germline="mouse_trb")
    >>> told.v.matched, told.j.matched, told.longest_d_match, told.path_count > 0
    (12, 15, 8, True)
    """
    base = model_of(model, parameters)
    if base.name != "dp2" or base.is_sweep:
        raise InvalidInput("model", found="a sweep or a model other than dp2", expected="a single dp2 model")
    alleles = load_germline(germline) if isinstance(germline, str) else germline
    text = _checked_junction(junction)
    v, j = _allele(alleles, "V", v_call), _allele(alleles, "J", j_call)
    return _Case(text, v, j, alleles, base, chain).explanation()


class _Case:
    """One junction with its alleles, counted in the interpreted reference: nothing has to be compiled."""

    def __init__(
        self,
        junction: str,
        v: Allele,
        j: Allele,
        germline: GermlineSet,
        model: PathModel,
        chain: Chain | Literal["auto"],
    ) -> None:
        self.junction, self.v, self.j = junction, v, j
        self.germline, self.model = germline, model
        self.counter = PathCounter(germline, model, chain=chain, overflow="wide", device="reference")
        self.chain = self.counter.chain
        # No insertion is longer than the junction.
        self.room = min(len(junction), _LARGEST_NU)

    def explanation(self) -> Explanation:
        pi = self.model.pi
        v, j = match_v(self.junction, self.v, pi), match_j(self.junction, self.j, pi)
        counts = self.counter.count(*self._columns())
        zero = not counts.path_count[0]
        genes = () if self.chain == "vj" else self.germline.d
        d = tuple(
            DPaths(
                match=longest_d(self.junction, allele, pi),
                allowed=bool(counts.allowed[0, k]),
                paths=int(counts.by_d[0, k]),
                zero_d_paths=int(counts.zero_d_by_d[0, k]),
            )
            for k, allele in enumerate(genes)
        )
        nus, pis = tuple(range(self.room + 1)), tuple(range(self._largest_pi() + 1))
        anywhere = replace(self.model, nu=self.room, nu_vd=None, nu_dj=None, sweep_nu=nus)
        return Explanation(
            junction=self.junction,
            germline=self.germline.name,
            germline_digest=self.germline.digest,
            chain=self.chain,
            model=self.model,
            v=v,
            j=j,
            d=d,
            path_count=int(counts.path_count[0]),
            no_d_paths=int(counts.no_d[0]),
            vj_gap=len(self.junction) - v.matched - j.matched,
            lifted=tuple(self._lifted(v, j)),
            smallest_nu=_first(self._count(anywhere)[1]) if zero else None,
            smallest_pi=_first(self._count(replace(self.model, sweep_pi=pis))[1]) if zero else None,
        )

    def _largest_pi(self) -> int:
        """As far as the D genes with their extensions can be counted."""
        longest = max((len(allele.sequence) for allele in self.germline.d), default=0)
        return max(0, min(_LARGEST_PI, (D_BITS - longest) // 2))

    def _columns(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        texts = (self.junction, self.v.name, self.j.name)
        first, second, third = (pa.array([text], pa.large_string()) for text in texts)
        return first, second, third

    def _count(self, model: PathModel, germline: GermlineSet | None = None) -> tuple[int, list[int]]:
        """The count, and the counts of the sweep in the order of its one axis."""
        counter = PathCounter(
            germline or self.germline, model, chain=self.chain, overflow="wide", device="reference"
        )
        counts = counter.count(*self._columns())
        sweeps = {"vj": counts.no_d_sweep, "vdj": counts.sweep_by_d, "vddj": counts.sweep_by_dd}
        grid = np.asarray(sweeps[self.chain][0])
        summed = grid if self.chain == "vj" else grid.sum(axis=0)
        return int(counts.path_count[0]), [int(value) for value in summed.ravel()]

    def _lifted(self, v: EndMatch, j: EndMatch) -> list[Lifted]:
        model, nus = self.model, tuple(range(self.room + 1))
        vd = model.nu if model.nu_vd is None else model.nu_vd
        dj = model.nu if model.nu_dj is None else model.nu_dj
        ways = {
            "nu_vd": (vd, replace(model, nu=self.room, nu_vd=None, nu_dj=dj, sweep_nu=nus)),
            "nu_dj": (dj, replace(model, nu=self.room, nu_vd=vd, nu_dj=None, sweep_nu=nus)),
        }
        if self.chain == "vj":
            # One insertion only, held by the larger of the two limits.
            alone = replace(model, nu=self.room, nu_vd=None, nu_dj=None, sweep_nu=nus)
            ways = {"nu": (max(vd, dj), alone)}
        found = []
        for limit, (before, lifted) in ways.items():
            if before < self.room:
                count, sweep = self._count(lifted)
                of_limit = Lifted(
                    limit=limit, before=before, after=self.room, path_count=count, smallest=_first(sweep)
                )
                found.append(of_limit)
        for limit, match, allele in (("v_mismatch", v, self.v), ("j_mismatch", j, self.j)):
            if match.mismatch is not None and not match.complete:
                symbol = match.symbol_at(match.mismatch)
                count, _ = self._count(model, self._forgiving(match, allele))
                found.append(Lifted(limit=limit, before=symbol, after="N", path_count=count))
        return found

    def _forgiving(self, match: EndMatch, allele: Allele) -> GermlineSet:
        """The germline set with an N for the first symbol of an allele that differs from the junction."""
        assert match.mismatch is not None
        anchor = allele.anchor or 0
        place = match.mismatch - match.start
        # The part inside the junction starts at the anchor in V, and with the sequence in J.
        at = (
            anchor + place if allele.segment == "V" else place - (len(match.sequence) - match.germline_length)
        )
        changed = replace(allele, sequence=f"{allele.sequence[:at]}N{allele.sequence[at + 1 :]}")
        if allele.segment == "V":
            return replace(self.germline, v=tuple(changed if a is allele else a for a in self.germline.v))
        return replace(self.germline, j=tuple(changed if a is allele else a for a in self.germline.j))


def _first(counts: list[int]) -> int | None:
    """Place of the first count above 0; the values of a sweep here are 0, 1, 2, ..."""
    return next((place for place, count in enumerate(counts) if count), None)


def _checked_junction(junction: str) -> str:
    text = "".join(junction.split())
    status = STATUSES[int(encode_junctions(pa.array([text], pa.large_string())).status[0])]
    if status != "ok":
        shown = text if len(text) <= 60 else f"{text[:60]}... ({len(text)} nt)"
        raise InvalidInput(
            "junction",
            found=f"{shown!r}: {_WRONG_JUNCTION[status]}",
            expected="the nucleotides from the conserved Cys to the conserved Phe or Trp codon",
        )
    return text.upper().replace("U", "T")


def _allele(germline: GermlineSet, segment: Literal["V", "J"], call: str) -> Allele:
    found = germline.resolve_all(call, segment)
    what = f"{segment.lower()}_call"
    if len(found) != 1:
        raise InvalidInput(what, found=repr(call), expected="the name of one gene or allele")
    if found[0] is None:
        names = dict.fromkeys(
            name for allele in germline.alleles(segment) for name in (allele.gene, allele.name)
        )
        import difflib

        close = difflib.get_close_matches(call.strip().upper(), names, n=_CLOSEST, cutoff=0.5)
        raise InvalidInput(
            what,
            found=repr(call),
            expected=f"a {segment} gene or allele of {germline.name}",
            hint=f"closest are {', '.join(close)}" if close else f"see plait germline show {germline.name}",
        )
    allele = germline.alleles(segment)[found[0]]
    if allele.anchor is None:
        raise InvalidInput(
            what,
            found=f"{call!r}, whose conserved codon is not known",
            expected=f"a {segment} allele with an anchor",
            hint="give one with --anchors",
        )
    return allele
