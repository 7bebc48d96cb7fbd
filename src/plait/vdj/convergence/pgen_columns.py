"""Generation probabilities of the clonotypes of a part, found again by content and parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.ipc as arrow_ipc

from plait.formats.atomic import AtomicFile, output_errors
from plait.vdj.clonotype_names import CLONOTYPE
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.zero_reasons import PGEN_STATUSES

__all__ = ["PGEN_FIELDS", "ModelCalls", "PgenColumns"]

#: ``"use"``: probability that the junction is made with the V and J gene of the clonotype; ``"ignore"``: with
#: any genes of the model.
ModelCalls: TypeAlias = Literal["use", "ignore"]

#: What is added to the table of clonotypes.
PGEN_FIELDS: Final = (pa.field("pgen_nt", pa.float64()), pa.field("pgen_status", pa.string()))

#: Facts of the provenance that the numbers do not depend on.
_WITHOUT_EFFECT: Final = ("device", "schedule", "algebra")


@dataclass(frozen=True, slots=True, kw_only=True)
class PgenColumns:
    """Computes what `PGEN_FIELDS` names; picklable, so that any process can.

    Attributes
    ----------
    model
        The model.
    calls
        Whether the genes of a clonotype are taken for what it was made of.
    folder
        Where results are kept, one file for all clonotypes of a part.
    """

    model: RecombinationModel
    calls: ModelCalls
    folder: Path

    def added(self, clonotypes: pa.Table) -> pa.Table:
        """Clonotypes with their generation probabilities.

        Parameters
        ----------
        clonotypes
            With the columns junction, v_gene and j_gene, ordered by junction.

        Returns
        -------
        pyarrow.Table
            The same rows with the columns ``pgen_nt``, null where there is no number, and ``pgen_status``.

        Raises
        ------
        FormatError
            If the disk is full.
        """
        engine = GenerationProbability(self.model, threads=1)
        path = self.folder / f"pgen-{self._key(clonotypes, engine)}.arrow"
        found = _stored(path, clonotypes.num_rows)
        if found is None:
            found = self._computed(clonotypes, engine)
            with (
                AtomicFile(path, durable=False) as file,
                output_errors(path),
                arrow_ipc.new_file(file.stream, found.schema) as writer,
            ):
                writer.write_table(found)
        for place, field in enumerate(PGEN_FIELDS):
            clonotypes = clonotypes.append_column(field, found.column(place))
        return clonotypes

    def _computed(self, clonotypes: pa.Table, engine: GenerationProbability) -> pa.Table:
        junctions, v, j = (clonotypes[name].combine_chunks() for name in CLONOTYPE)
        if self.calls == "use":
            pgen = engine.compute(junctions, v, j)
            values, codes = pgen.pgen, pgen.status
        else:
            # One junction with several pairs of genes is one text.
            encoded = junctions.dictionary_encode()
            place = np.asarray(encoded.indices)
            pgen = engine.compute(encoded.dictionary)
            values, codes = pgen.pgen[place], pgen.status[place]
        statuses = pa.array(PGEN_STATUSES, pa.string()).take(pa.array(codes.astype(np.int32)))
        return pa.table([pa.array(values, mask=np.isnan(values)), statuses], schema=pa.schema(PGEN_FIELDS))

    def _key(self, clonotypes: pa.Table, engine: GenerationProbability) -> str:
        used = self.calls == "use"
        facts = engine.provenance("nt", used, used).as_dict()
        facts = {name: value for name, value in facts.items() if name not in _WITHOUT_EFFECT}
        facts["parameters"] = {k: v for k, v in facts["parameters"].items() if k != "model"}
        found = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
        for name in CLONOTYPE:
            for data in _content(clonotypes[name].combine_chunks()):
                found.update(data)
        return found.hexdigest()


def _content(column: Any) -> Iterator[bytes | memoryview]:
    """Lengths and letters of texts, none of which is null."""
    _, offsets, letters = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    yield np.diff(ends).tobytes()
    if letters is not None and len(ends):
        yield memoryview(letters)[int(ends[0]) : int(ends[-1])]


def _stored(path: Path, rows: int) -> pa.Table | None:
    """What is kept under this name, if it is whole."""
    try:
        with pa.OSFile(str(path)) as source, arrow_ipc.open_file(source) as reader:
            found = reader.read_all()
    except (pa.ArrowException, OSError):
        return None
    return found if found.num_rows == rows and found.schema.equals(pa.schema(PGEN_FIELDS)) else None
