"""Infer the recombination models that come with plait.

The rearrangements are those of a data file of the PyPI package pyimmunarch (Apache-2.0), which is located and
not imported; the genes are those of the bundled germline set. Nothing else goes in, so that the result is the
same everywhere but for rounding::

    python tools/infer_bundled_models.py               # write src/plait/vdj/model/data
    python tools/infer_bundled_models.py --check       # say whether the file is up to date
    python tools/infer_bundled_models.py --validate    # donors left out; pseudo-counts compared

Productive rearrangements have been selected, and there are 70 times as many of them as of others. So a model
is inferred from them first; then one from the others, which begins with it and takes it for as many
rearrangements as `WORTH` says (a Dirichlet prior). Nonproductive rearrangements decide wherever there are
enough of them: on insertions, on the D genes, on the J genes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from plait.vdj.germline import load_germline
from plait.vdj.germline.germline_set import Allele
from plait.vdj.model import RecombinationModel, read_model, write_model
from plait.vdj.model.expectations import Evidence, Expectation, most_probable_model
from plait.vdj.model.junctions import EncodedJunctions, JunctionEncoder
from plait.vdj.model.recombination_model import model_from_germline

PACKAGE = "pyimmunarch"
PACKAGE_VERSION = "0.1.1"
TABLE = Path("_data", "immdata.parquet")
TABLE_SHA256 = "acff3558c593379990f1341039e8d728cc40237b0334a6464c8e7faf609059d0"
GERMLINE = "human_trb"
NAME = "human_TRB"

#: Calls that stand for more genes than they name: the data never name the other gene, whose junction part is
#: the same.
MEANT: Mapping[str, str] = {"TRBV12-4": "TRBV12-3,TRBV12-4", "TRBV6-3": "TRBV6-2,TRBV6-3"}
#: Times that all rearrangements are gone through.
ROUNDS = {"productive": 40, "nonproductive": 200}
#: The same where donors are left out.
FEWER_ROUNDS = {"productive": 12, "nonproductive": 60}
#: Rearrangements that the model of productive ones counts for, in each distribution; see `--validate`.
WORTH = {
    "p_v": 300.0,
    "p_dj": 300.0,
    "p_v_deletions": 100.0,
    "p_j_deletions": 300.0,
    "p_d_deletions": 300.0,
    "p_vd_length": 300.0,
    "p_dj_length": 300.0,
    "vd_steps": 300.0,
    "dj_steps": 300.0,
}
#: Rearrangements with the deletions of all genes that each V and J has besides its own.
POOLED = 50.0
#: Probabilities are written in these units, so that rounding errors of a machine do not show.
UNIT = 1e-10
STOPS = ("TAA", "TAG", "TGA")


@dataclass(frozen=True)
class Rows:
    """Rearrangements."""

    junction: list[str]
    v_call: list[str]
    j_call: list[str]
    donor: list[str]

    def take(self, wanted: Sequence[bool]) -> Rows:
        """Some of them."""
        return Rows(*([x for x, keep in zip(column, wanted, strict=True) if keep] for column in self.columns))

    @property
    def columns(self) -> tuple[list[str], ...]:
        """All columns."""
        return self.junction, self.v_call, self.j_call, self.donor

    def without(self, donors: Sequence[str]) -> tuple[Rows, Rows]:
        """Those of other donors, and those of the donors."""
        out = [donor in donors for donor in self.donor]
        return self.take([not one for one in out]), self.take(out)


def find_table() -> Path:
    """The table inside the installed package, which is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}")
    return Path(spec.submodule_search_locations[0]) / TABLE


def read_rows(path: Path) -> Rows:
    """The rearrangements of all donors, each once."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != TABLE_SHA256:
        raise SystemExit(f"{path}: SHA-256 {digest}, expected {TABLE_SHA256} ({PACKAGE} {PACKAGE_VERSION})")
    table = pq.read_table(path, columns=["CDR3.nt", "V.name", "J.name", "Sample"])
    rows = sorted({tuple(row.values()) for row in table.to_pylist()})
    found = Rows(*(list(column) for column in zip(*rows, strict=True)))
    return replace(found, v_call=[MEANT.get(call, call) for call in found.v_call])


def productive(junction: str) -> bool:
    """Whether it is in frame and has no stop codon."""
    codons = (junction[k : k + 3] for k in range(0, len(junction), 3))
    return len(junction) % 3 == 0 and not any(codon in STOPS for codon in codons)


def beginning() -> RecombinationModel:
    """All choices equally probable, with the first allele of each V and J and all alleles of D."""

    def first(alleles: Sequence[Allele]) -> tuple[Allele, ...]:
        found: dict[str, Allele] = {}
        for allele in alleles:
            found.setdefault(allele.gene, allele)
        return tuple(found.values())

    germline = load_germline(GERMLINE)
    return model_from_germline(replace(germline, v=first(germline.v), j=first(germline.j)))


def known(model: RecombinationModel, rows: Rows) -> Rows:
    """Rows whose V and J the model has."""
    status = JunctionEncoder(model).encode(*rows.columns[:3]).status
    return rows.take((status == 0).tolist())


def maximise(
    model: RecombinationModel, encoded: EncodedJunctions, rounds: int, prior: Any
) -> tuple[RecombinationModel, Expectation]:
    """Expectation maximisation; `prior` gives numbers to be added, from the numbers expected."""
    for _ in range(rounds):
        expected = Expectation(model)
        expected.add(encoded.parts, encoded.texts)
        seen = expected.evidence()
        more = prior(seen)
        model = most_probable_model(
            model, Evidence(**{name: table + more.get(name, 0.0) for name, table in seen._asdict().items()})
        )
    return model, expected


def of_productive(start: RecombinationModel, rows: Rows) -> tuple[RecombinationModel, Expectation]:
    """A model of productive rearrangements.

    Half a rearrangement is added to each V, to each pair of D and J and to each number of insertions, one
    step to each pair of N nucleotides, and five to the deletions of each D, so that what is possible stays
    possible. Rare genes have the deletions of all genes together, as `POOLED` rearrangements.
    """
    one = {name: getattr(start, name) > 0 for name in WORTH}

    def prior(seen: Evidence) -> dict[str, NDArray[np.float64]]:
        more = {name: 0.5 * one[name] for name in ("p_v", "p_dj", "p_vd_length", "p_dj_length")}
        for name in ("p_v_deletions", "p_j_deletions"):
            pooled = one[name] * (getattr(seen, name).sum(0) + 1.0)
            more[name] = POOLED * pooled / pooled.sum(1, keepdims=True)
        more["p_d_deletions"] = 5.0 * one["p_d_deletions"] / one["p_d_deletions"].sum((1, 2), keepdims=True)
        more["vd_steps"] = more["dj_steps"] = np.ones((4, 4))
        return more

    encoded = JunctionEncoder(start).encode(*rows.columns[:3])
    return maximise(start, encoded, ROUNDS["productive"], prior)


def of_nonproductive(
    start: RecombinationModel, rows: Rows, worth: Mapping[str, float] = WORTH
) -> tuple[RecombinationModel, Expectation]:
    """A model of rearrangements that were not selected, which begins with `start` and is worth it."""
    more = {name: worth[name] * getattr(start, name) for name in worth}
    encoded = JunctionEncoder(start).encode(*rows.columns[:3])
    return maximise(start, encoded, ROUNDS["nonproductive"], lambda _: more)


def rounded(table: NDArray[np.float64], axes: int) -> NDArray[np.float64]:
    """Probabilities in units; the greatest of each distribution makes up what is missing."""
    units = np.rint(table.reshape(-1, int(np.prod(table.shape[table.ndim - axes :]))) / UNIT).astype(np.int64)
    for row in units:
        row[row.argmax()] += round(1 / UNIT) - row.sum()
    digits = round(-np.log10(UNIT))
    found = np.array([float(f"{unit * UNIT:.{digits}f}") for unit in units.ravel().tolist()])
    return found.reshape(table.shape)


def finished(model: RecombinationModel, provenance: dict[str, Any]) -> RecombinationModel:
    """The model as it is written."""
    axes = {"p_dj": 2, "p_d_deletions": 2}
    tables = {name: rounded(getattr(model, name), axes.get(name, 1)) for name in WORTH}
    return replace(model, name=NAME, provenance=provenance, **tables)


def infer(path: Path) -> RecombinationModel:
    """The bundled model."""
    start, every = beginning(), read_rows(path)
    rows = known(start, every)
    flags = [productive(junction) for junction in rows.junction]
    good, bad = rows.take(flags), rows.take([not flag for flag in flags])
    print(f"{len(rows.junction)} of {len(every.junction)} rearrangements have genes of {GERMLINE}")
    first, made = of_productive(start, good)
    told(f"{len(good.junction)} productive", made)
    second, of_bad = of_nonproductive(first, bad)
    told(f"{len(bad.junction)} nonproductive", of_bad)
    return finished(
        second,
        {
            "made_by": "tools/infer_bundled_models.py",
            "data": f"{PACKAGE} {PACKAGE_VERSION} (PyPI, Apache-2.0), {TABLE.as_posix()}",
            "data_sha256": TABLE_SHA256,
            "donors": len(set(every.donor)),
            "rearrangements": len(every.junction),
            "of_unknown_genes": len(every.junction) - len(rows.junction),
            "productive": {"used": made.junctions, "impossible": made.impossible},
            "nonproductive": {"used": of_bad.junctions, "impossible": of_bad.impossible},
            "out_of_frame": sum(len(junction) % 3 > 0 for junction in bad.junction),
            "prior_rearrangements": dict(WORTH),
            "rounds": dict(ROUNDS),
            **{name: start.provenance[name] for name in ("germline_set", "germline_version")},
            "alleles": "the first allele of each V and J gene of the set; all alleles of D",
            "limits": (
                "Inferred from few nonproductive rearrangements, with productive (selected) ones as prior. V "
                "usage is that of 12 donors, six of them with multiple sclerosis, and of an unstated "
                "protocol."
            ),
        },
    )


def told(what: str, expected: Expectation) -> None:
    """Print what an inference found."""
    print(
        f"{what}: mean ln P {expected.log_likelihood():.4f} of {expected.junctions}, "
        f"{expected.impossible} cannot be made",
        flush=True,
    )


def validate(path: Path, folds: int = 3) -> None:
    """Leave donors out, and compare how well nonproductive rearrangements of theirs are explained."""
    ROUNDS.update(FEWER_ROUNDS)
    start = beginning()
    rows = known(start, read_rows(path))
    flags = [productive(junction) for junction in rows.junction]
    good, bad = rows.take(flags), rows.take([not flag for flag in flags])
    donors = sorted(set(rows.donor))
    results: dict[str, list[NDArray[np.float64]]] = {}
    for k in range(folds):
        out = donors[k::folds]
        (train, test), (few, others) = good.without(out), bad.without(out)
        first, _ = of_productive(start, train)
        results.setdefault("productive left out | productive alone", []).append(logs(first, test))
        results.setdefault("nonproductive alone", []).append(
            logs(of_nonproductive(first, few, dict.fromkeys(WORTH, 1.0))[0], others)
        )
        results.setdefault("productive alone", []).append(logs(first, others))
        chosen, _ = of_nonproductive(first, few)
        results.setdefault("as chosen", []).append(logs(chosen, others))
        results.setdefault("productive left out | as chosen", []).append(logs(chosen, test))
        for name in ("all", *WORTH):
            for worth in (30.0, 300.0, 3000.0):
                trial = {key: worth if name in ("all", key) else WORTH[key] for key in WORTH}
                found = logs(of_nonproductive(first, few, trial)[0], others)
                results.setdefault(f"{name} worth {worth:g}", []).append(found)
        print(f"left out {', '.join(out)}: {len(test.junction)} and {len(others.junction)}", flush=True)
    best = np.concatenate(results["as chosen"])
    for name, parts in results.items():
        values = np.concatenate(parts)
        line = f"{name:42}mean ln P {np.mean(values[np.isfinite(values)]):9.4f}"
        if values.size == best.size:
            both = np.isfinite(values) & np.isfinite(best)
            more = values[both] - best[both]
            line += f"  {more.mean():+.4f} +- {more.std() / np.sqrt(more.size):.4f} beside the chosen ones"
        print(line + f"; {np.sum(~np.isfinite(values))} of {values.size} cannot be made")


def logs(model: RecombinationModel, rows: Rows) -> NDArray[np.float64]:
    """Natural logarithms of the probabilities of junctions with the genes that are called."""
    from plait.vdj.model import GenerationProbability

    found = GenerationProbability(model).compute(rows.junction, rows.v_call, rows.j_call).pgen
    with np.errstate(divide="ignore"):
        return np.log(found)


def apart(path: Path, model: RecombinationModel) -> str:
    """How a file differs from a model; empty if it does not."""
    if not path.is_file():
        return "there is no such file"
    old = read_model(path)
    if (old.v, old.d, old.j, old.provenance) != (model.v, model.d, model.j, model.provenance):
        return "other genes or another provenance"
    most = max(float(np.abs(getattr(old, name) - getattr(model, name)).max()) for name in WORTH)
    return f"probabilities differ by {most:.1e}" if most > 1e-8 else ""


def main() -> int:
    """Write the file, check it, or say how good its model is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).resolve().parent.parent
    default = here / "src" / "plait" / "vdj" / "model" / "data"
    parser.add_argument("--parquet", type=Path, help="the table; by default that of the installed package")
    parser.add_argument("--output", type=Path, default=default, help="folder of the file")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the file differs")
    parser.add_argument("--validate", action="store_true", help="write nothing; leave donors out")
    options = parser.parse_args()
    begin = time.perf_counter()
    table = options.parquet or find_table()
    if options.validate:
        validate(table)
        return 0
    model = infer(table)
    path = options.output / f"{NAME}_model.json"
    print(f"{time.perf_counter() - begin:.0f} s; digest {model.digest}")
    if options.check:
        told_apart = apart(path, model)
        print(told_apart or "up to date")
        return 1 if told_apart else 0
    options.output.mkdir(parents=True, exist_ok=True)
    write_model(model, path)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
