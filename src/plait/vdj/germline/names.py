"""What a V, D or J call means: names of alleles and genes in the styles that programs write.

Understood besides IMGT names (``TRBV12-3*01``, ``TRBV12-3``, ``TRAV14/DV4*01``):

- any case, spaces, and no slash (``TRAV14DV4``) or a hyphen for it (``TRAV14-DV4``);
- MiXCR: ``TRBV12-3*00(346.1)`` means the gene TRBV12-3;
- Adaptive: ``TCRBV05-01*01`` is TRBV5-1*01, ``TCRBV15-01`` and ``TRBV15-01`` are TRBV15;
- IMGT/HighV-QUEST: ``Homsap TRBV12-3*01 F``;
- either half of a TRAV/DV gene alone (``TRAV14``, ``TRDV4``), where only one gene has it;
- lists: names with ``,``, ``;``, ``|``, ``or`` or ``and`` between, several names in one text in any other way
  (``TRBV13-1/TRBV13-2``), and numbers behind slashes (``TCRBV06-02/06-03``, ``TRBV6-2/6-3``).

A gene name means the gene's allele with the lowest number. An allele that the set does not have is not
replaced by another of its gene.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from plait.vdj.germline.records import Allele, gene_of

__all__ = ["NameIndex", "canonical", "split_call"]

_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
# A slash belongs to a name in TRAV14/DV4 and in an orphon such as TRBV20/OR9-2.
_JOINT = re.compile(r"/(?=DV|OR)|-(?=DV)")
_SCORE = re.compile(r"\([^)]*\)\s*$")
_SEPARATOR = re.compile(r"[,;|]|(?<=\s)(?:or|and)(?=\s)", re.IGNORECASE)
_START = re.compile(r"(?:TC?R|IG)[ABGDHKL][VDJ]", re.IGNORECASE)
_GENE = re.compile(_START.pattern + r"[^\s,;|()]*", re.IGNORECASE)
_NUMBERS = re.compile(r"(TC?R[ABGD][VDJ])([^/*\s]+)((?:/\d[^/*\s]*)+)(\*\S*)?", re.IGNORECASE)
_SHARED_GENE = re.compile(r"(TRA)(V[^/]*)/D(V[^/]*)", re.IGNORECASE)


def canonical(name: str) -> str:
    """The form in which names are compared.

    >>> canonical(" trav14/DV4*01 "), canonical("TRBV05-01")
    ('TRAV14DV4*1', 'TRBV5-1')
    """
    return _LEADING_ZEROS.sub("", _JOINT.sub("", "".join(name.upper().split())))


def split_call(call: str) -> tuple[str, ...]:
    """The single names in a call, one or several.

    >>> split_call("TRBV12-3*00(346), TRBV12-4"), split_call("TCRBV06-02/06-03*01")
    (('TRBV12-3*00', 'TRBV12-4'), ('TCRBV06-02*01', 'TCRBV06-03*01'))
    >>> split_call("TRBV13-1 or TRBV13-2/TRBV13-3"), split_call("TRAV14/DV4")
    (('TRBV13-1', 'TRBV13-2', 'TRBV13-3'), ('TRAV14/DV4',))
    """
    parts: list[str] = []
    for name in (name for element in _SEPARATOR.split(call) for name in _embedded(element)):
        several = _NUMBERS.fullmatch(name)
        if several:
            gene, first, others, allele = several.groups()
            parts += [f"{gene}{number}{allele or ''}" for number in (first, *others.strip("/").split("/"))]
        elif name:
            parts.append(name)
    return tuple(parts)


def _embedded(text: str) -> list[str]:
    """The gene names in a text if there are several; else the text, without a score."""
    starts = [found.start() for found in _START.finditer(text)]
    if len(starts) < 2:
        return [_SCORE.sub("", text).strip()]
    pieces = (text[start:end] for start, end in pairwise([*starts, len(text)]))
    return [re.split(r"[\s()]", piece, maxsplit=1)[0].rstrip("/-_+&:~.") for piece in pieces]


def _readings(name: str) -> Iterator[str]:
    """Canonical names that a single name may stand for, the most literal first."""
    key = canonical(name)
    yield key
    if key.endswith("*0"):
        yield key[:-2]
    if key.startswith("TCR") or _LEADING_ZEROS.search(gene_of(name)):
        imgt = re.sub("^TCR", "TR", key).removesuffix("*0")
        yield imgt
        gene, star, allele = imgt.partition("*")
        if gene.endswith("-1"):
            yield gene[:-2] + star + allele
    embedded = _GENE.search(name)
    if embedded and embedded.group() != name:
        yield from _readings(embedded.group())


def _allele_number(allele: Allele) -> tuple[int, str]:
    number = re.match(r"\d+", allele.name.partition("*")[2])
    return (int(number.group()) if number else 1 << 30, allele.name.partition("*")[2])


class NameIndex:
    """Names of the alleles of one segment.

    Parameters
    ----------
    alleles
        The alleles; an index that is returned is a position in this sequence.
    """

    def __init__(self, alleles: Sequence[Allele]) -> None:
        self._index: dict[str, int] = {}
        # Earlier steps win: a name that is somebody's own is never taken for an alias or a shorthand.
        for i, allele in enumerate(alleles):
            self._index.setdefault(canonical(allele.name), i)
        for i, allele in enumerate(alleles):
            for alias in allele.aliases:
                self._index.setdefault(canonical(alias), i)
        by_number = sorted(range(len(alleles)), key=lambda i: (*_allele_number(alleles[i]), i))
        for i in by_number:
            self._index.setdefault(canonical(alleles[i].gene), i)
        self._add_halves(alleles, by_number)

    def _add_halves(self, alleles: Sequence[Allele], by_number: Sequence[int]) -> None:
        genes: dict[str, set[str]] = {}
        entries: list[tuple[str, str, int]] = []
        for i in by_number:
            shared = _SHARED_GENE.fullmatch(alleles[i].gene)
            if shared:
                number = alleles[i].name[len(gene_of(alleles[i].name)) :]
                for half in (shared[1] + shared[2], "TRD" + shared[3]):
                    genes.setdefault(half, set()).add(alleles[i].gene)
                    entries += [(half, half + number, i), (half, half, i)]
        for half, name, i in entries:
            if len(genes[half]) == 1:
                self._index.setdefault(canonical(name), i)

    def resolve_all(self, call: str) -> tuple[int | None, ...]:
        """Index of the allele of every name in a call, None for an unknown name."""
        own = self._index.get(canonical(call))
        return (own,) if own is not None else tuple(self._resolve(name) for name in split_call(call))

    def _resolve(self, name: str) -> int | None:
        return next((self._index[key] for key in _readings(name) if key in self._index), None)
