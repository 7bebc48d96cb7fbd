"""The model files of IGoR and OLGA, read and written.

``model_params.txt``, ``model_marginals.txt`` and two tables of anchors.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import output_errors
from plait.formats.files import parse_json
from plait.vdj.germline.files import read_text, write_texts
from plait.vdj.germline.germline_set import LOCI
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

#: Names of the files in a model folder.
MODEL_FILES = (
    "model_params.txt",
    "model_marginals.txt",
    "V_gene_CDR3_anchors.csv",
    "J_gene_CDR3_anchors.csv",
)

#: Where IGoR itself has them: its spelling, and its folders.
_OF_IGOR = (
    ("model_parms.txt", "models/model_parms.txt"),
    ("models/model_marginals.txt",),
    ("ref_genome/V_gene_CDR3_anchors.csv",),
    ("ref_genome/J_gene_CDR3_anchors.csv",),
)
#: What righor calls them.
_RIGHOR_FILES = ("params", "marginals", "v_gene_cdr3_anchors", "j_gene_cdr3_anchors")
_INDEX = re.compile(r"[0-9]{1,9}")
#: Of a table: an event, and what it depends on.
_MOST_AXES = 8
#: Most nucleotides that are deleted or inserted.
_MOST = 10_000


@dataclass(slots=True)
class IgorEvent:
    """An event: a ``GeneChoice``, ``Deletion``, ``Insertion`` or ``DinucMarkov``.

    `nickname` is what its table is called, `line` where it begins. `found` has by index the name and value of
    each realisation, for a gene its sequence; `lines` where each stands.
    """

    kind: str
    nickname: str
    line: int
    found: dict[int, tuple[str, str]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class IgorTable:
    """A table of the marginals, and the line on which it begins."""

    line: int
    values: NDArray[np.float64]


def model_paths(folder: Path) -> list[Path]:
    """The four files of a model folder, as OLGA names them or, if they are not there, as IGoR does."""
    found = []
    for name, others in zip(MODEL_FILES, _OF_IGOR, strict=True):
        places = [folder / one for one in (name, *others)]
        found.append(next((place for place in places if place.exists()), places[0]))
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = read_text(path, f"a model folder with {', '.join(MODEL_FILES)}")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line.strip()


def read_parameters(path: Path) -> tuple[dict[str, IgorEvent], float]:
    """Events by nickname, and the error rate, of ``model_params.txt``.

    FormatError if a line is not what it should be, or indices have gaps.
    """
    events: dict[str, IgorEvent] = {}
    section, event, error_rate = "", None, 0.0
    for number, line in _lines(path):
        if line.startswith("@"):
            section = line
        elif section == "@Event_list" and line.startswith("#"):
            words = line[1:].split(";")
            if len(words) != 5 or words[4] in events:
                expected = "#type;genes;side;priority;nickname, every nickname once"
                raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
            event = events[words[4]] = IgorEvent(words[0], words[4], number)
        elif section == "@Event_list" and line.startswith("%") and event is not None:
            _add_realisation(path, number, line, event)
        elif section == "@ErrorRate" and not line.startswith("#"):
            error_rate = _numbers(path, number, line.split(",")[:1])[0]
    for event in events.values():
        if sorted(event.found) != list(range(len(event.found))) or not event.found:
            expected = f"0 to {len(event.found) - 1}" if event.found else "at least one realisation"
            found = f"indices of {event.nickname} with gaps" if event.found else f"no {event.nickname}"
            raise FormatError(path, line=event.line, found=found, expected=expected)
    return events, error_rate


def _add_realisation(path: Path, number: int, line: str, event: IgorEvent) -> None:
    words = line[1:].split(";")
    gene = event.kind == "GeneChoice"
    if len(words) != (3 if gene else 2) or not _INDEX.fullmatch(words[-1].strip()):
        expected = "%name;sequence;index" if gene else "%value;index"
        raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
    if event.kind in ("Deletion", "Insertion"):
        value = _whole(path, number, words[0])
        if abs(value) > _MOST or (value < 0 and event.kind == "Insertion"):
            expected = f"a number of nucleotides up to {_MOST:,}"
            raise FormatError(path, line=number, found=value, expected=expected)
    index = int(words[-1])
    if index in event.found:
        raise FormatError(path, line=number, found=f"index {index} twice", expected="every index once")
    name = words[0].strip()
    event.found[index] = (name, words[1].strip() if gene else name)
    event.lines[index] = number


def _whole(path: Path, number: int, word: str) -> int:
    try:
        value = int(word)
        if abs(value) < 10**18:
            return value
    except ValueError:
        pass
    raise FormatError(path, line=number, found=repr(word[:40]), expected="a whole number")


def _numbers(path: Path, line: int, words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise FormatError(path, line=line, found=str(error), expected="numbers") from None


def read_marginals(path: Path) -> dict[str, IgorTable]:
    """Tables of ``model_marginals.txt`` by nickname.

    FormatError if a line is not what it should be, or a table has more or fewer numbers than its shape says.
    """
    tables: dict[str, IgorTable] = {}
    name, start, shape, values = "", 0, _no_shape(), list[float]()
    for number, line in [*_lines(path), (0, "@")]:
        if line.startswith("@"):
            if line[1:] in (*tables, name) and name:
                raise FormatError(path, line=number, found=f"{line} twice", expected="every table once")
            if name:
                tables[name] = _table(path, name, start, shape, values)
            name, start, shape, values = line[1:], number, _no_shape(), []
        elif line.startswith("$Dim"):
            words = line[4:].strip("[]").split(",")
            shape = tuple(_whole(path, number, word) for word in words)
        elif line.startswith("%"):
            values += _numbers(path, number, line[1:].split(","))
    return tables


def _no_shape() -> tuple[int, ...]:
    return ()


def _table(path: Path, name: str, line: int, shape: tuple[int, ...], values: list[float]) -> IgorTable:
    sized = min(shape, default=-1) >= 0 and len(shape) <= _MOST_AXES
    if not sized or len(values) != math.prod(shape):
        expected = f"{math.prod(shape)}, as $Dim{list(shape)} says" if sized else "a line $Dim[...] of sizes"
        raise FormatError(path, line=line, found=f"{len(values)} numbers of {name}", expected=expected)
    return IgorTable(line, np.array(values).reshape(shape))


def read_anchors(path: Path) -> dict[str, tuple[int, str]]:
    """Anchor and functionality by gene; FormatError if a column is missing, or an anchor is no position."""
    anchors: dict[str, tuple[int, str]] = {}
    lines = list(_lines(path))
    header = lines[0][1] if lines else ""
    # OLGA separates columns by commas, IGoR by semicolons.
    mark = ";" if ";" in header and "," not in header else ","
    reader = csv.DictReader((line for _, line in lines), restval="", delimiter=mark)
    try:
        missing = {"gene", "anchor_index"} - set(reader.fieldnames or ())
    except csv.Error as error:
        raise FormatError(path, line=1, found=str(error), expected="a table of anchors") from error
    if missing:
        found = f"no column {' and no column '.join(sorted(missing))}"
        expected = "columns gene, anchor_index and function"
        raise FormatError(path, line=1, found=found, expected=expected)
    for (number, _), row in zip(lines[1:], _rows(path, lines, reader), strict=False):
        index = row["anchor_index"].strip()
        if not _INDEX.fullmatch(index):
            expected = "a position from 0 on"
            raise FormatError(
                path, line=number, column="anchor_index", found=repr(index[:40]), expected=expected
            )
        found_here = (int(index), (row.get("function") or "").strip())
        if anchors.setdefault(row["gene"].strip(), found_here) != found_here:
            found = f"another row for {row['gene'][:40]!r}"
            raise FormatError(path, line=number, found=found, expected="one row for each gene")
    return anchors


def _rows(path: Path, lines: list[tuple[int, str]], reader: csv.DictReader[str]) -> Iterator[dict[str, str]]:
    try:
        yield from reader
    except csv.Error as error:
        number = lines[min(reader.line_num, len(lines)) - 1][0]
        raise FormatError(path, line=number, found=str(error), expected="a table of anchors") from error


#: Tables of a model, and the nicknames of theirs.
_NICKNAMES = {
    "p_v": ("v_choice",),
    "p_dj": ("d_gene", "j_choice"),
    "p_v_deletions": ("v_3_del",),
    "p_d_deletions": ("d_3_del",),
    "p_j_deletions": ("j_5_del",),
    "p_vd_length": ("vd_ins", "vj_ins"),
    "p_dj_length": ("dj_ins",),
    "vd_steps": ("vd_dinucl", "vj_dinucl"),
    "dj_steps": ("dj_dinucl",),
}


def read_igor_model(folder: str | os.PathLike[str], *, name: str | None = None) -> RecombinationModel:
    """Read a model folder, with names of files as in OLGA, or IGoR's with ``models`` and ``ref_genome``.

    The model is called `name`, by default as the folder. Errors as `read_igor_files`.
    """
    place = Path(folder)
    provenance = {"format": "IGoR model folder", "folder": os.fspath(place)}
    return read_igor_files(model_paths(place), name or place.resolve().name, provenance)


def installed_models() -> dict[str, tuple[list[Path], dict[str, Any]]]:
    """Models of the Python package righor, if it is installed: files as in `MODEL_FILES`, and provenance.

    Names are ``righor_human_TRB`` and so on.
    """
    try:
        package = metadata.distribution("righor")
    except metadata.PackageNotFoundError:
        return {}
    # Its data lie under the prefix of the environment, or beside the package (pip install --target).
    places = [Path(str(one.locate())) for one in package.files or () if one.name == "models.json"]
    places += [Path(str(package.locate_file("righor_models/models.json")))]
    found = {}
    for path in [place for place in places if place.is_file()][:1]:
        expected = "a list of models as righor 0.2.97 has it"
        listed = parse_json(read_text(path, expected), path, expected=expected)
        try:
            for told in listed:
                locus = next(name.upper() for name in told["chain"] if name.upper() in LOCI)
                files = [told[f"filename_{part}"] for part in _RIGHOR_FILES]
                provenance: dict[str, Any] = {
                    "format": "IGoR model",
                    "package": f"righor {package.version} (MIT)",
                }
                provenance |= {"files": files, "description": told["description"]}
                name = f"righor_{told['species'][-1]}_{locus}"
                found[name] = [path.parent / file for file in files], provenance
        except (TypeError, KeyError, IndexError, AttributeError, StopIteration) as error:
            raise FormatError(path, found=f"another one ({error!r})", expected=expected) from error
    return found


def read_igor_files(paths: Sequence[Path], name: str, provenance: dict[str, Any]) -> RecombinationModel:
    """Read a model of four files as in `MODEL_FILES`.

    FormatError if a file is missing or not as it should be, or probabilities do not add up to 1.
    """
    params, marginals, v_anchors, j_anchors = paths
    events, error_rate = read_parameters(params)
    tables = read_marginals(marginals)
    reader = _Assembly(params, marginals, events, tables)
    v = reader.genes("v_choice", read_anchors(v_anchors))
    j = reader.genes("j_choice", read_anchors(j_anchors))
    has_d = "d_gene" in events
    d = reader.genes("d_gene", {}) if has_d else ()
    p_v = reader.table("v_choice", (len(v),))
    p_j = reader.table("j_choice", (len(j),), (len(v), len(j)))
    left = "vd" if has_d else "vj"
    nothing = np.zeros((0, 0, 0))
    try:
        return RecombinationModel(
            name=name,
            v=v,
            d=d,
            j=j,
            p_v=p_v,
            p_dj=reader.joint(p_v, p_j, len(d)),
            p_v_deletions=reader.deletions("v_3_del", len(v)),
            p_j_deletions=reader.deletions("j_5_del", len(j)),
            p_d_deletions=reader.d_deletions(len(d)) if has_d else nothing,
            palindromes=tuple(  # type: ignore[arg-type]  # there are four
                reader.palindrome(nickname) if nickname in events else 0
                for nickname in ("v_3_del", "d_5_del", "d_3_del", "j_5_del")
            ),
            p_vd_length=reader.lengths(f"{left}_ins"),
            vd_steps=reader.steps(f"{left}_dinucl"),
            p_dj_length=reader.lengths("dj_ins") if has_d else np.ones(1),
            dj_steps=reader.steps("dj_dinucl") if has_d else np.full((4, 4), 0.25),
            error_rate=error_rate,
            provenance=provenance,
        )
    except InvalidInput as error:
        known = [nickname for nickname in _NICKNAMES.get(error.what, ()) if nickname in tables]
        if not known:
            found = f"{error.found} in {error.what}"
            raise FormatError(params, found=found, expected=error.expected) from error
        raise FormatError(
            marginals,
            line=tables[known[0]].line,
            found=f"{error.what} ({' and '.join(known)}) with {error.found}",
            expected=error.expected,
        ) from error


def _imgt_header(name: str) -> tuple[str, str]:
    """Allele and functionality; in models of IGoR, names are the headers of IMGT's FASTA files."""
    words = name.split("|")
    return (words[1].strip(), words[3].strip()) if len(words) > 3 else (name, "")


class _Assembly:
    """Puts events and tables together."""

    def __init__(
        self, params: Path, marginals: Path, events: dict[str, IgorEvent], tables: dict[str, IgorTable]
    ) -> None:
        self._params = params
        self._marginals = marginals
        self._events = events
        self._tables = tables

    def _event(self, nickname: str) -> IgorEvent:
        if nickname not in self._events:
            found = ", ".join(self._events) or "no events"
            raise FormatError(self._params, found=found[:200], expected=f"an event {nickname}")
        event = self._events[nickname]
        # Numbers are checked where they are read, by the kind.
        kind = {"del": "Deletion", "ins": "Insertion", "choice": "GeneChoice"}.get(
            nickname.rpartition("_")[2]
        )
        if kind not in (None, event.kind):
            found = f"{event.kind[:40]!r} as the kind of {nickname}"
            raise FormatError(self._params, line=event.line, found=found, expected=kind)
        return event

    def genes(self, nickname: str, anchors: dict[str, tuple[int, str]]) -> tuple[ModelGene, ...]:
        event = self._event(nickname)
        genes = []
        for index in range(len(event.found)):
            header, sequence = event.found[index]
            name, told = _imgt_header(header)
            anchor, function = anchors.get(header, (None, ""))
            function = function or told
            sequence = sequence.upper()
            if nickname == "v_choice" and anchor is not None:
                # What lies before the anchor is not used: unknown bases there do no harm.
                kept = re.sub("^[ACGTN]*N", "", sequence[:anchor])
                sequence, anchor = kept + sequence[anchor:], len(kept)
            if set(sequence) - set("ACGT"):
                found, expected = f"{sequence[:40]!r} as sequence of {name}", "A, C, G and T"
                raise FormatError(self._params, line=event.lines[index], found=found, expected=expected)
            if anchor is not None and anchor + 3 > len(sequence):
                # Of some alleles only the beginning is known: they make no junction.
                anchor = None
            genes.append(ModelGene(name, sequence, anchor, function))
        return tuple(genes)

    def table(self, nickname: str, *shapes: tuple[int, ...]) -> NDArray[np.float64]:
        table = self._tables.get(nickname)
        if table is None:
            found = ", ".join(self._tables)[:200] or "no table"
            raise FormatError(self._marginals, found=found, expected=f"a table {nickname}")
        if table.values.shape not in shapes:
            raise FormatError(
                self._marginals,
                line=table.line,
                found=f"{nickname} of shape {table.values.shape}",
                expected=" or ".join(map(str, shapes)),
            )
        return table.values

    def joint(self, p_v: NDArray[np.float64], p_j: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """P(D, J) of shape (1, D, J), averaged over V where it depends on V; (V, 1, J) without D."""
        j = p_j.shape[-1]
        p_j = p_j.reshape(-1, 1, j)
        if d == 0:
            return p_j
        given = self.table("d_gene", (d,), (j, d), (p_v.size, j, d))
        joint: NDArray[np.float64] = p_j * np.swapaxes(given.reshape(-1, *given.shape[-2:]), -1, -2)
        if len(joint) > 1:
            joint = np.tensordot(p_v, joint, 1)[None]
        return np.ascontiguousarray(joint)

    def _deletion_order(self, nickname: str) -> list[int]:
        """Deletions by index; they must go up by one."""
        event = self._event(nickname)
        words = [event.found[index][0] for index in range(len(event.found))]
        values = [_whole(self._params, event.line, word) for word in words]
        if values != list(range(values[0], values[0] + len(values))) or values[0] > 0:
            raise FormatError(
                self._params,
                line=event.line,
                found=f"{nickname}: {values[:8]}...",
                expected="deletions that go up by one, from the longest palindrome on",
            )
        return values

    def palindrome(self, nickname: str) -> int:
        return -self._deletion_order(nickname)[0]

    def deletions(self, nickname: str, genes: int) -> NDArray[np.float64]:
        return self.table(nickname, (genes, len(self._deletion_order(nickname))))

    def d_deletions(self, genes: int) -> NDArray[np.float64]:
        """P(5' deletion, 3' deletion | D)."""
        n5, n3 = len(self._deletion_order("d_5_del")), len(self._deletion_order("d_3_del"))
        five = self.table("d_5_del", (genes, n5))
        three = self.table("d_3_del", (genes, n5, n3), (genes, n3))
        return five[:, :, None] * (three if three.ndim == 3 else three[:, None, :])

    def lengths(self, nickname: str) -> NDArray[np.float64]:
        event = self._event(nickname)
        table = self.table(nickname, (len(event.found),))
        numbers = Counter(int(value) for value, _ in event.found.values())
        if max(numbers.values()) > 1:
            what, expected = f"{nickname} with a number twice", "every number of insertions once"
            raise FormatError(self._params, line=event.line, found=what, expected=expected)
        found = np.zeros(1 + max(numbers))
        for index, (value, _) in event.found.items():
            found[int(value)] = table[index]
        return found

    def steps(self, nickname: str) -> NDArray[np.float64]:
        event = self._event(nickname)
        places = {base.upper(): index for index, (base, _) in event.found.items()}
        if sorted(places) != list("ACGT") or len(event.found) != 4:
            found = f"{nickname} with {', '.join(base for base, _ in event.found.values())}"
            raise FormatError(self._params, line=event.line, found=found, expected="A, C, G and T")
        order = [places[letter] for letter in "ACGT"]
        table = self.table(nickname, (16,)).reshape(4, 4)[np.ix_(order, order)]
        sums = table.sum(axis=1, keepdims=True)
        if not (np.isfinite(sums) & (sums > 0)).all():
            # Also NaN, and numbers that are infinite.
            odd = "a row of zeros" if np.isfinite(sums).all() else "a number that is none or infinite"
            found, line = f"{odd} in {nickname}", self._tables[nickname].line
            raise FormatError(self._marginals, line=line, found=found, expected="four distributions")
        # The published values of the field's programs come from rows that are scaled to 1.
        return np.ascontiguousarray(table / sums)


_Floats = NDArray[np.float64]
#: What no name in these files may have.
_SEPARATORS = frozenset(',;|"\n\r')


def check_igor_names(model: RecombinationModel) -> None:
    """Refuse a model with a name that the files cannot hold.

    InvalidInput if a name of a gene, or its functionality, has a letter that separates columns.
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

    Numbers are written with all their digits. P(D, J) is written as P(J) and P(D | J), and the deletions of D
    as P(5' deletion) and P(3' deletion | 5' deletion). InvalidInput as of `check_igor_names`, FormatError if
    the folder cannot be written.
    """
    check_igor_names(model)
    place = Path(folder)
    texts = ("".join(_parameters(model)), "".join(_marginals(model)), _anchors(model.v), _anchors(model.j))
    with output_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    write_texts({place / name: text for name, text in zip(MODEL_FILES, texts, strict=True)})


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
    yield from _written_table("v_choice", model.p_v)
    if model.d:
        joint = model.p_dj[0]
        p_j = joint.sum(axis=0)
        yield from _written_table("j_choice", p_j)
        yield from _written_table("d_gene", _ratio(joint.T, p_j[:, None]), "j_choice")
    elif len(model.p_dj) > 1:
        yield from _written_table("j_choice", model.p_dj[:, 0], "v_choice")
    else:
        yield from _written_table("j_choice", model.p_dj[0, 0])
    yield from _written_table("v_3_del", model.p_v_deletions, "v_choice")
    if model.d:
        five = model.p_d_deletions.sum(axis=2)
        yield from _written_table("d_5_del", five, "d_gene")
        yield from _written_table(
            "d_3_del", _ratio(model.p_d_deletions, five[:, :, None]), "d_gene", "d_5_del"
        )
    yield from _written_table("j_5_del", model.p_j_deletions, "j_choice")
    short = "vd" if model.d else "vj"
    yield from _written_table(f"{short}_ins", model.p_vd_length)
    yield from _written_table(f"{short}_dinucl", model.vd_steps.ravel())
    if model.d:
        yield from _written_table("dj_ins", model.p_dj_length)
        yield from _written_table("dj_dinucl", model.dj_steps.ravel())


def _ratio(table: _Floats, sums: _Floats) -> _Floats:
    """Shares of sums; zeros where the sum is."""
    return np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)


def _written_table(nickname: str, table: _Floats, *parents: str) -> Iterator[str]:
    yield f"@{nickname}\n$Dim[{','.join(map(str, table.shape))}]\n"
    rows = table.reshape(-1, table.shape[-1])
    for place, row in zip(np.ndindex(table.shape[:-1]), rows, strict=True):
        slices = ",".join(f"[{parent},{k}]" for parent, k in zip(parents, place, strict=True))
        yield f"#{slices}\n%{','.join(map(repr, row.tolist()))}\n"
