"""V and J calls of junctions, as trees of gene ends that each junction may be made with."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.vdj.germline.names import NameIndex, canonical, split_call
from plait.vdj.germline.records import Allele
from plait.vdj.model.end_shapes import EndShape
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.results import STATUSES

__all__ = ["GeneCalls", "GivenGenes", "as_column"]


class GivenGenes(NamedTuple):
    """What the rows of a column mean; many rows mean the same.

    Attributes
    ----------
    codes
        int64 (n,): which distinct call each row has.
    first, root
        int64 (calls + 1,) and int32: roots of the trees of call c are ``root[first[c]:first[c + 1]]``.
    status
        uint8 (calls,): index into `plait.vdj.results.STATUSES`.
    genes
        Genes of the model that each call means.
    """

    codes: NDArray[np.int64]
    first: NDArray[np.int64]
    root: NDArray[np.int32]
    status: NDArray[np.uint8]
    genes: list[tuple[int, ...]]

    def spread(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Roots of the given rows, one list after the other: where each begins, and the roots.

        Parameters
        ----------
        rows
            Which rows.
        """
        codes = self.codes[rows]
        sizes = np.diff(self.first)[codes]
        first = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(first[-1]) - np.repeat(first[:-1], sizes) + np.repeat(self.first[codes], sizes)
        return first, self.root[at]


class GeneCalls:
    """Reads calls of one kind of gene.

    Parameters
    ----------
    model
        The model.
    segment
        ``"v"`` or ``"j"``.
    shape
        The trees of these genes.
    missing
        What a row without a call is: one that cannot be used (``"refused"``), or one that may be made with
        any functional gene (``"any"``).
    """

    def __init__(
        self,
        model: RecombinationModel,
        segment: Literal["v", "j"],
        shape: EndShape,
        missing: Literal["refused", "any"] = "refused",
    ) -> None:
        self._segment = segment
        self._shape = shape
        self._missing = missing
        self.genes = model.v if segment == "v" else model.j
        self._index = NameIndex([_named(gene.name) for gene in self.genes])
        self._of_gene: dict[str, list[int]] = {}
        for k, gene in enumerate(self.genes):
            self._of_gene.setdefault(canonical(gene.gene), []).append(k)
        self._functional = tuple(k for k, gene in enumerate(self.genes) if gene.functional)

    def read(self, calls: Any, n: int) -> GivenGenes:
        """What a column means.

        Parameters
        ----------
        calls
            The calls; None for none at all: all functional genes.
        n
            How many there should be.

        Raises
        ------
        InvalidInput
            If there are more or fewer, or they are no texts.
        """
        together = np.array([self._shape.together], np.int32)
        if calls is None:
            return GivenGenes(
                np.zeros(n, np.int64), np.array([0, 1]), together, np.zeros(1, np.uint8), [self._functional]
            )
        column = as_column(calls, f"{self._segment}_call")
        if len(column) != n:
            raise InvalidInput(
                f"{self._segment}_call", found=f"{len(column)} calls", expected=f"{n}, one for each junction"
            )
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        texts = encoded.dictionary.to_pylist()
        found = [self.resolve(text) for text in texts]
        roots = [
            together if self._any(text) else self._shape.root[list(genes)]
            for text, (_, genes) in zip(texts, found, strict=True)
        ]
        return GivenGenes(
            codes,
            np.concatenate([[0], np.cumsum([part.size for part in roots], dtype=np.int64)]),
            np.concatenate([np.zeros(0, np.int32), *roots]),
            np.array([STATUSES.index(reason) for reason, _ in found], np.uint8),
            [genes for _, genes in found],
        )

    def _any(self, call: str | None) -> bool:
        return self._missing == "any" and (call is None or not call.strip())

    def resolve(self, call: str | None) -> tuple[str, tuple[int, ...]]:
        """A status, and the genes that a call means.

        Parameters
        ----------
        call
            A name or a list of names; a gene means all its alleles.
        """
        if self._any(call):
            return "ok", self._functional
        if call is None or not call.strip():
            return f"missing_{self._segment}_call", ()
        found: list[int] = []
        for name in split_call(call) or (call,):
            one = self._index.resolve_all(name)
            known = [gene for gene in one if gene is not None]
            if not one or len(known) < len(one):
                return f"unknown_{self._segment}_call", ()
            for gene in known:
                whole = "*" not in name or name.endswith("*00")
                found += self._of_gene[canonical(self.genes[gene].gene)] if whole else [gene]
        genes = tuple(dict.fromkeys(found))
        if all(self.genes[gene].anchor is None for gene in genes):
            return f"no_{self._segment}_anchor", ()
        return "ok", genes


def as_column(values: Any, name: str = "junctions") -> pa.Array:
    """Texts, or an Arrow array of them, as one array of texts; those of pandas that are missing are null.

    Parameters
    ----------
    values
        What is given.
    name
        What errors call it.

    Raises
    ------
    InvalidInput
        If it is one text alone, or something else.
    """
    if isinstance(values, str | bytes):
        raise InvalidInput(name, found="one text", expected="a sequence of texts")
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            return pa.array(list(values), pa.large_string(), from_pandas=True)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            raise InvalidInput(name, found=f"values of type {values.type}", expected="texts")
        return values.cast(pa.large_string())
    except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(name, found=f"{type(values).__name__}: {error}", expected="texts") from error


def _named(name: str) -> Allele:
    return Allele(name=name, gene=name.partition("*")[0], segment="V", sequence="")
