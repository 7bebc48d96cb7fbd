"""Blocks of junctions drawn from a model as rows of a table, in this process or in others."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.vdj.annotation.ragged import edges_of
from plait.vdj.annotation.text_columns import text_array
from plait.vdj.model.junction_tables import ACID_OF_CODON
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.sampling import Draws, JunctionSampler

__all__ = ["BlockDraws"]

_LETTERS: Final = np.frombuffer(b"ACGT", np.uint8)
_ENDS: Final = (("v_3", "p3v", 3, 0), ("d_5", "p5d", 4, 1), ("d_3", "p3d", 5, 2), ("j_5", "p5j", 6, 3))


class BlockDraws:
    """Draws wherever it is called; picklable, its tables are made where they are needed.

    Parameters
    ----------
    model
        The model.
    seed
        What the draws depend on.
    productive
        Whether the others are left out.
    draws
        How many draws a block has.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns of the rows.
    """

    def __init__(self, model: RecombinationModel, seed: int, productive: bool, draws: int) -> None:
        self._made_of = model, seed, productive, draws
        self._model, self._seed, self._productive, self._count = self._made_of
        self.schema = _schema(model)

    @cached_property
    def _sampler(self) -> JunctionSampler:
        return JunctionSampler(self._model, seed=self._seed)

    def __call__(self, block: int) -> pa.RecordBatch:
        """The rows of a block of draws."""
        draws = self._sampler.block(block * self._count, self._count)
        if self._productive:
            draws = draws.take(np.flatnonzero(draws.productive))
        return self._table(draws)

    def _table(self, draws: Draws) -> pa.RecordBatch:
        symbols, length, fields = draws.symbols, draws.length, draws.fields
        model = self._model
        most = symbols.shape[1] // 3
        codons = symbols[:, : most * 3].reshape(length.size, most, 3)
        codes = codons[:, :, 0] << 4 | codons[:, :, 1] << 2 | codons[:, :, 2]
        columns: dict[str, Any] = {
            "sequence_id": pa.array(draws.number).cast(pa.string()),
            "junction": _texts(_LETTERS, symbols, length),
            "junction_aa": _texts(ACID_OF_CODON, codes, np.where(length % 3 == 0, length // 3, 0)),
            "productive": pa.array(draws.productive),
            "junction_length": pa.array(length.astype(np.int32)),
            "n1_length": pa.array(fields[:, 7]),
            "n2_length": pa.array(fields[:, 8]),
        }
        for name, genes, place in (("v_call", model.v, 0), ("d_call", model.d, 1), ("j_call", model.j, 2)):
            names = pa.array([gene.name for gene in genes], pa.string())
            columns[name] = names.take(pa.array(fields[:, place])) if genes else None
        for end, short, place, palindrome in _ENDS:
            cut = fields[:, place] - model.palindromes[palindrome]
            columns[f"{end}_deletion"] = pa.array(np.maximum(cut, 0).astype(np.int32))
            columns[f"{short}_length"] = pa.array(np.maximum(-cut, 0).astype(np.int32))
        return pa.record_batch([columns[name] for name in self.schema.names], schema=self.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockDraws, self._made_of


def _schema(model: RecombinationModel) -> pa.Schema:
    ends = [end for end in _ENDS if model.d or not end[0].startswith("d")]
    text = ["sequence_id", "junction", "junction_aa", "v_call", *(["d_call"] if model.d else []), "j_call"]
    numbers = ["junction_length", "n1_length", *(["n2_length"] if model.d else [])]
    numbers += [f"{end[1]}_length" for end in ends] + [f"{end[0]}_deletion" for end in ends]
    return pa.schema(
        [
            *((name, pa.string()) for name in text),
            ("productive", pa.bool_()),
            *((name, pa.int32()) for name in numbers),
        ]
    )


def _texts(letters: NDArray[np.uint8], codes: NDArray[Any], length: NDArray[np.int64]) -> pa.Array:
    """The first letters of each row as a column of texts."""
    flat = codes[np.arange(codes.shape[1]) < length[:, None]]
    return text_array(letters[flat], edges_of(length))
