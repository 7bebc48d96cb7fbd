"""Who shares what, and which clonotypes are more public than generation explains: tables, and words.

Clonotypes are told apart as `SharingSettings.key` says, from the clonotypes in subjects of a study. Beside
`stages`, which puts these aside, and `study` and `answers`, which tell of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from plait.alphabets import translate
from plait.formats.atomic import AtomicFile, output_errors
from plait.run.executor import Executor, Progress
from plait.vdj.calls import ClonotypeKey
from plait.vdj.convergence.claims import answer, number, percent, whole
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.repertoires.expected import FALSE_DISCOVERIES, KNOWN, GenerationSettings
from plait.vdj.repertoires.sharing import SharingSummary, share_files

#: Rows of public_clonotypes.tsv, and sets in subject_sets.tsv.
_MOST_PUBLIC: Final = 2000
_MOST_SETS: Final = 200
_ENOUGH: Final = 10
_FIRST: Final = (("subjects", "descending"), ("q_sharing", "ascending"), ("p_sharing", "ascending"))
_TOLD: Final = ("subjects", "expected_subjects", "pgen", "p_sharing", "q_sharing", "duplicate_count")

_Table = tuple[Sequence[str], list[dict[str, Any]]]


def write_pairs(clonotypes: pa.Table, pairs: pa.Table, path: Path) -> None:
    """Put clonotypes in subjects aside, as rows of AIRR; `pairs` come in the order of the clonotypes.

    Where there are no numbers of reads, there are numbers of rows. FormatError if the disk is full.
    """
    of = np.repeat(np.arange(clonotypes.num_rows), np.asarray(clonotypes["subjects"]))
    counted = "duplicate_count" in pairs.column_names
    columns = {
        "junction": clonotypes["junction"].take(pa.array(of)),
        "v_call": pairs["v_gene"],
        "j_call": pairs["j_gene"],
        "subject_id": pairs["subject"],
        "duplicate_count": pc.coalesce(pairs["duplicate_count"], pairs["rows"]) if counted else pairs["rows"],
    }
    columns |= {
        name: clonotypes[name].take(pa.array(of)) for name in KNOWN if name in clonotypes.column_names
    }
    with AtomicFile(path, durable=False) as file, output_errors(path):
        arrow_parquet.write_table(pa.table(columns), file.stream, compression="lz4")


@dataclass(kw_only=True)
class PublicClonotypes:
    """What came of it: rows of tables by name, with their columns, and `facts` for study.json."""

    facts: dict[str, Any]
    tables: dict[str, _Table] = field(default_factory=dict)


def public_clonotypes(
    pairs: Sequence[Path],
    output: Path,
    settings: StudySettings,
    model: RecombinationModel | None,
    *,
    sources: Sequence[Path] | None = None,
    executor: Executor,
    progress: Callable[[Progress], None],
) -> PublicClonotypes:
    """Tell who shares what in pairs that were put aside, and write all clonotypes, in bounded memory.

    `output` is Parquet in a folder of the study's own; beside it rows are put aside meanwhile. `sources` are
    the files that the pairs were made from. Where clonotypes are the same here and there, their probabilities
    are.
    """
    chosen, key = settings.sharing, ClonotypeKey.named(settings.sharing.key)
    if model is not None and settings.model_calls == "ignore":
        key = key._replace(v=False, j=False)
    same = not key.acids and key.v == key.j == (settings.model_calls == "use")
    known = (
        KNOWN if same and model is not None and KNOWN[0] in arrow_parquet.read_schema(pairs[0]).names else ()
    )
    wanted = replace(chosen, key=str(key), list_subjects=True)
    generation = None if model is None else GenerationSettings(model=model, seed=settings.seed, device="cpu")
    told = share_files(
        pairs,
        output,
        settings=wanted,
        generation=generation,
        overlap=output.with_name("overlap.parquet"),
        executor=executor,
        progress=progress,
        sources=sources,
        known=known,
    )
    found = PublicClonotypes(facts=_facts(told, settings))
    assert told.overlaps is not None and told.sets is not None
    found.tables["overlaps"] = (told.overlaps.column_names, told.overlaps.to_pylist())
    rows = [
        {"set": k, "clonotypes": one["clonotypes"], "subject": subject}
        for k, one in enumerate(told.sets.slice(0, _MOST_SETS).to_pylist(), 1)
        for subject in one["subjects"]
    ]
    found.tables["subject_sets"] = (("set", "clonotypes", "subject"), rows)
    if told.expected is not None:
        _tell_expected(found, told, output)
    return found


def _facts(told: SharingSummary, settings: StudySettings) -> dict[str, Any]:
    levels = told.distribution.select(["subjects", "clonotypes"]).to_pylist()
    return {
        "key": told.key,
        "clonotypes": sum(row["clonotypes"] for row in levels),
        "public": sum(row["clonotypes"] for row in levels if row["subjects"] >= settings.shared_by),
        "left_out": dict(told.left_out),
    }


def _tell_expected(found: PublicClonotypes, told: SharingSummary, output: Path) -> None:
    assert told.expected is not None
    beyond, first = _beyond(output)
    levels = told.expected.table.to_pylist()
    for row in levels:
        row["beyond"] = beyond[row["subjects"]]
    found.tables["expected_sharing"] = (tuple(levels[0]) if levels else (), levels)
    names = ClonotypeKey.named(told.key).columns
    nucleotides = ("junction_aa",) if names[0] == "junction" else ()
    columns = (*names[:1], *nucleotides, *names[1:], *_TOLD, "subject_ids")
    rows = [
        row
        | {"subject_ids": json.dumps(row["subject_ids"], ensure_ascii=False)}
        | ({"junction_aa": translate(row["junction"])} if nucleotides else {})
        for row in first.to_pylist()
    ]
    found.tables["public_clonotypes"] = (columns, rows)
    expected = told.expected
    low, high = expected.selection_interval or (None, None)
    several = _several([row["expected"] for row in levels])
    compared = levels[several - 1 :]
    found.facts["expected"] = {
        "selection": expected.selection,
        "selection_low": low,
        "selection_high": high,
        "tested": sum(row["observed"] for row in levels),
        "shared": sum(row["observed"] for row in levels[1:]),
        "several": several,
        **{name: sum(row[name] for row in compared) for name in ("observed", "expected")},
        "beyond": sum(beyond.values()),
        "false_discovery_rate": FALSE_DISCOVERIES,
        "recombinations": expected.depths.tolist(),
        "first": None if not rows else {name: rows[0].get(name) for name in columns},
    }


def _several(expected: Sequence[float]) -> int:
    """From how many subjects on numbers are compared: most of them, as long as ten are expected there.

    At least three, because the factor is fitted to those of two or more.
    """
    enough = [k for k in range(3, len(expected) + 1) if sum(expected[k - 1 :]) >= _ENOUGH]
    return max(enough, default=3)


def _beyond(path: Path) -> tuple[Counter[int], pa.Table]:
    """Clonotypes that are more public than expected, by number of subjects, and the first ones of them."""
    found = Counter[int]()
    with arrow_parquet.ParquetFile(path) as file:
        first = file.schema_arrow.empty_table()
        names = [
            name for name in first.column_names if name in ("junction", "junction_aa", "v_gene", "j_gene")
        ]
        order = [*_FIRST, *((name, "ascending") for name in names)]
        for rows in file.iter_batches():
            chosen = rows.filter(pc.fill_null(pc.less_equal(rows["q_sharing"], FALSE_DISCOVERIES), False))
            found.update(chosen["subjects"].to_pylist())
            first = pa.concat_tables([first, pa.Table.from_batches([chosen])])
            first = first.take(pc.sort_indices(first, order)[:_MOST_PUBLIC])
    return found, first


_KINDS: Final = {"cdr3nt": "nucleotide junctions", "cdr3aa": "amino-acid junctions"}
_GENES: Final = {"": "", "v": " with V gene", "j": " with J gene", "v+j": " with V and J gene"}
_RANDOM: Final = (
    "Expected is what subjects share who draw independently what recombination makes, of which a share "
    "passes selection at random; what selection prefers in many of them is shared by more."
)
_NO_MODEL: Final = "Whether that is more than generation explains needs a model of recombination (--model)."


def public_answers(study: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many clonotypes are public, how many are expected to be, and which are beyond that.

    `study` is study.json as far as it is known: ``sharing``, ``subjects`` and ``shared_by``. None without
    ``sharing``; the first alone without a model.
    """
    told = study.get("sharing")
    subjects, shared_by = number(study.get("subjects")) or 0, number(study.get("shared_by")) or 2
    if not told or not told["clonotypes"] or subjects < 2:
        return []
    expected = told.get("expected")
    share = told["public"] / told["clonotypes"]
    junctions, _, genes = told["key"].lower().partition("+")
    found = answer(
        "public_clonotypes",
        f"{whole(told['public'])} of {whole(told['clonotypes'])} clonotypes ({percent(share)}) are found in "
        f"{whole(shared_by)} or more of {whole(subjects)} subjects",
        [f"Clonotypes are {_KINDS[junctions]}{_GENES[genes]}.", "" if expected else _NO_MODEL],
        {"public": told["public"], "clonotypes": told["clonotypes"]},
    )
    # From nothing that is shared, nothing can be fitted.
    if not expected or not expected["shared"]:
        return [found]
    return [found, _expected_answer(expected, subjects), _beyond_answer(expected)]


def _expected_answer(told: Mapping[str, Any], subjects: float) -> dict[str, Any]:
    observed, expected, several = told["observed"], told["expected"], told["several"]
    share = f"{percent(told['selection'])} of what is made passing selection"
    where = f"all {several} subjects" if several == subjects else f"{several} or more subjects"
    headline = f"Generation, with {share}, leads to expect {_count(expected)} of them in {where}; "
    headline += f"there {'is' if observed == 1 else 'are'} {whole(observed)}"
    if several > subjects:
        headline = f"Generation, with {share}, explains how many two subjects share: there is no third one"
    fitted = told["selection_low"] is not None
    how = "fitted so that as many are expected in two subjects or more as there are" if fitted else "as given"
    text = [
        f"The share that passes selection is {how}.",
        f"Compared are {whole(told['tested'])} clonotypes that are productive and that the model can make.",
        _RANDOM,
    ]
    names = ("selection", "selection_low", "selection_high", "observed", "expected")
    return answer("expected_sharing", headline, text, {name: told[name] for name in names})


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _beyond_answer(told: Mapping[str, Any]) -> dict[str, Any]:
    beyond, first = told["beyond"], told["first"]
    rate = percent(told["false_discovery_rate"])
    headline = f"No clonotype is surely more public than generation explains (false discovery rate {rate})"
    text = [
        f"None of {whole(told['tested'])} clonotypes has a q-value of {told['false_discovery_rate']} or less."
    ]
    if beyond:
        are = "clonotypes are" if beyond > 1 else "clonotype is"
        names = (first.get(name) for name in ("junction_aa", "v_gene", "j_gene"))
        name = " ".join(str(one) for one in names if one)
        headline = (
            f"{whole(beyond)} {are} more public than that (false discovery rate {rate}), first of all {name}"
        )
        found, expected = whole(first["subjects"]), f"{first['expected_subjects']:.2f}"
        text = [
            f"{name} is the most shared of them: {found} subjects have it, where {expected} are expected "
            "to, if anybody does.",
            f"All are in sharing.parquet, the first {_MOST_PUBLIC:,} in public_clonotypes.tsv.",
        ]
    figures = {"beyond": beyond, "tested": told["tested"]}
    return answer("beyond_expectation", headline, text, figures)
