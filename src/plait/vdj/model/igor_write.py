"""Write a model as a folder of IGoR and OLGA."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.vdj.model.igor_text import MODEL_FILES
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["check_igor_names", "write_igor_model"]

_Floats = NDArray[np.float64]
#: What no name in these files may have.
_SEPARATORS = frozenset(',;|"\n\r')


def check_igor_names(model: RecombinationModel) -> None:
    """Refuse a model with a name that the files cannot hold.

    Raises
    ------
    InvalidInput
        If a name of a gene, or its functionality, has a letter that separates columns.
    """
    for gene in (*model.v, *model.d, *model.j):
        for text in (gene.name, gene.function):
            if set(text) & _SEPARATORS or text != text.strip():
                raise InvalidInput(
                    "model",
                    found=f"{text!r} of gene {gene.name!r}",
                    expected="names without commas, semicolons, quotes, bars and line breaks",
                    hint="write a .json file instead",
                )


def write_igor_model(model: RecombinationModel, folder: str | os.PathLike[str]) -> None:
    """Write a model folder; it is made if it is not there.

    Numbers are written with all their digits. P(D, J) is written as P(J) and P(D | J), and the deletions
    of D as P(5' deletion) and P(3' deletion | 5' deletion).

    Parameters
    ----------
    model
        The model.
    folder
        Where to.

    Raises
    ------
    InvalidInput
        If a name of a gene, or its functionality, has a letter that separates columns.
    FormatError
        If the folder cannot be written.
    """
    check_igor_names(model)
    place = Path(folder)
    texts = ("".join(_parameters(model)), "".join(_marginals(model)), _anchors(model.v), _anchors(model.j))
    with output_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for name, text in zip(MODEL_FILES, texts, strict=True):
            path = place / name
            file = stack.enter_context(AtomicFile(path))
            with output_errors(path):
                file.stream.write(text.encode("utf-8"))


def _anchors(genes: Sequence[ModelGene]) -> str:
    rows = [f"{g.name},{g.anchor},{g.function}" for g in genes if g.anchor is not None]
    return "\n".join(["gene,anchor_index,function", *rows]) + "\n"


def _parameters(model: RecombinationModel) -> Iterator[str]:
    v5, d5, d3, j5 = model.palindromes
    has_d = bool(model.d)
    left = "VD_genes" if has_d else "VJ_gene"
    short = "vd" if has_d else "vj"
    yield "@Event_list\n"
    yield from _genes("V_gene;Undefined_side;7;v_choice", model.v)
    if has_d:
        yield from _genes("D_gene;Undefined_side;6;d_gene", model.d)
    yield from _genes("J_gene;Undefined_side;7;j_choice", model.j)
    yield from _values("Deletion;V_gene;Three_prime;5;v_3_del", model.p_v_deletions.shape[1], v5)
    if has_d:
        yield from _values("Deletion;D_gene;Three_prime;5;d_3_del", model.p_d_deletions.shape[2], d3)
        yield from _values("Deletion;D_gene;Five_prime;5;d_5_del", model.p_d_deletions.shape[1], d5)
    yield from _values("Deletion;J_gene;Five_prime;5;j_5_del", model.p_j_deletions.shape[1], j5)
    yield from _values(f"Insertion;{left};Undefined_side;4;{short}_ins", model.p_vd_length.size, 0)
    if has_d:
        yield from _values("Insertion;DJ_gene;Undefined_side;2;dj_ins", model.p_dj_length.size, 0)
    for words in (f"{left};Undefined_side;3;{short}", "DJ_gene;Undefined_side;1;dj")[: 2 if has_d else 1]:
        yield f"#DinucMarkov;{words}_dinucl\n"
        yield from (f"%{base};{k}\n" for k, base in enumerate("ACGT"))
    yield "@Edges\n"
    yield from _edges(model)
    yield f"@ErrorRate\n#SingleErrorRate\n{model.error_rate!r}\n"


def _edges(model: RecombinationModel) -> Iterator[str]:
    sizes = [len(model.v), len(model.d), len(model.j)]
    v, d, j = (
        f"GeneChoice_{s}_gene_Undefined_side_prio{7 if s != 'D' else 6}_size{n}"
        for s, n in zip("VDJ", sizes, strict=True)
    )
    yield f"%{v};Deletion_V_gene_Three_prime_prio5_size{model.p_v_deletions.shape[1]}\n"
    yield f"%{j};Deletion_J_gene_Five_prime_prio5_size{model.p_j_deletions.shape[1]}\n"
    if not model.d:
        if len(model.p_dj) > 1:
            yield f"%{v};{j}\n"
        return
    five, three = (
        f"Deletion_D_gene_{side}_prime_prio5_size{size}"
        for side, size in zip(("Five", "Three"), model.p_d_deletions.shape[1:], strict=True)
    )
    yield f"%{j};{d}\n%{d};{five}\n%{d};{three}\n%{five};{three}\n"


def _genes(event: str, genes: Sequence[ModelGene]) -> Iterator[str]:
    yield f"#GeneChoice;{event}\n"
    yield from (f"%{gene.name};{gene.sequence};{k}\n" for k, gene in enumerate(genes))


def _values(event: str, count: int, palindrome: int) -> Iterator[str]:
    yield f"#{event}\n"
    yield from (f"%{k - palindrome};{k}\n" for k in range(count))


def _marginals(model: RecombinationModel) -> Iterator[str]:
    yield from _table("v_choice", model.p_v)
    if model.d:
        joint = model.p_dj[0]
        p_j = joint.sum(axis=0)
        yield from _table("j_choice", p_j)
        yield from _table("d_gene", _ratio(joint.T, p_j[:, None]), "j_choice")
    elif len(model.p_dj) > 1:
        yield from _table("j_choice", model.p_dj[:, 0], "v_choice")
    else:
        yield from _table("j_choice", model.p_dj[0, 0])
    yield from _table("v_3_del", model.p_v_deletions, "v_choice")
    if model.d:
        five = model.p_d_deletions.sum(axis=2)
        yield from _table("d_5_del", five, "d_gene")
        yield from _table("d_3_del", _ratio(model.p_d_deletions, five[:, :, None]), "d_gene", "d_5_del")
    yield from _table("j_5_del", model.p_j_deletions, "j_choice")
    short = "vd" if model.d else "vj"
    yield from _table(f"{short}_ins", model.p_vd_length)
    yield from _table(f"{short}_dinucl", model.vd_steps.ravel())
    if model.d:
        yield from _table("dj_ins", model.p_dj_length)
        yield from _table("dj_dinucl", model.dj_steps.ravel())


def _ratio(table: _Floats, sums: _Floats) -> _Floats:
    """Shares of sums; zeros where the sum is."""
    return np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)


def _table(nickname: str, table: _Floats, *parents: str) -> Iterator[str]:
    yield f"@{nickname}\n$Dim[{','.join(map(str, table.shape))}]\n"
    rows = table.reshape(-1, table.shape[-1])
    for place, row in zip(np.ndindex(table.shape[:-1]), rows, strict=True):
        slices = ",".join(f"[{parent},{k}]" for parent, k in zip(parents, place, strict=True))
        yield f"#{slices}\n%{','.join(map(repr, row.tolist()))}\n"
