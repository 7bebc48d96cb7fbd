"""Whether expectation maximisation finds the model that junctions were drawn from, beside the sampling error.

    python benchmarks/vdj_inference_recovery.py [--rows 100000] [--seed 1] [--iterations 400]
        [--tolerance 1e-8] [--threads 1] [--model FOLDER_OR_FILE] [--from-truth] [--misread 0.005] [--called]
        [--loaded] [--output OUT.txt]

The truth is a model with the genes of a bundled germline set and probabilities drawn from the seed (or the
model given). Junctions are drawn from it, productive or not, and a model is inferred from uniform tables,
once with V and J called and once without calls. For every factor the table has: free parameters k; the
divergence KL(found || truth) in nats, averaged over the genes that it depends on; what the sampling error of
n = rows observed choices is expected to be, k / (2 n); their ratio; and the same ratio for shares counted
from the choices themselves, which inference does not see. With --from-truth the same inference
begins with the truth once more: what it moves away is sampling error alone, with what is hidden in a
junction. What no junction can tell apart is compared
together: V and J genes that end alike (without calls), and deletions of D that leave the same word. The
last line of a table compares the likelihood with that of the truth: twice the gain of a fit of k parameters
is k on average. With --misread, so many nucleotides of the junctions are replaced by others, and the rate is
found together with the model.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait import __version__
from plait.dp.chain.sample import FIELDS
from plait.vdj.germline import load_germline
from plait.vdj.model import JunctionSampler, RecombinationModel, infer_model, load_model, uniform_model
from plait.vdj.model.expectations import Expectation
from plait.vdj.model.inference import Iteration, observable_model
from plait.vdj.model.junctions import JunctionEncoder
from plait.vdj.model.recombination_model import model_from_germline

Floats = NDArray[np.float64]


class Factor(NamedTuple):
    """A conditional distribution: rows (given, choices) and how probable each given is."""

    name: str
    rows: Floats
    given: Floats


def synthetic(name: str, seed: int) -> RecombinationModel:
    """The genes of a germline set with probabilities such as are found in repertoires."""
    start = uniform_model(model_from_germline(load_germline(name)))
    allowed = model_from_germline(load_germline(name)).p_dj
    rng = np.random.default_rng(seed)

    def drawn(table: Floats, *axes: int) -> Floats:
        total = table.sum(axis=axes, keepdims=True)
        return np.divide(table, total, out=np.zeros_like(table), where=total > 0)

    def near(table: Floats, *axes: int) -> Floats:
        """Deletions: most probable at some number for each gene, with P nucleotides now and then."""
        places = np.arange(table.shape[1], dtype=float)
        center = rng.uniform(5, 9, (len(table), 1))
        shape = np.exp(-0.5 * ((places - center) / 3.5) ** 2) * rng.gamma(4.0, size=(len(table), places.size))
        shape = shape if table.ndim == 2 else shape[:, :, None] * shape[:, None, :]
        return drawn(shape * (table > 0), *axes)

    def lengths(size: int) -> Floats:
        number = np.arange(size)
        shape = (number + 1.0) * 0.75**number * rng.gamma(20.0, size=size)
        return np.asarray(shape / shape.sum())

    return replace(
        start,
        name=f"{name}, drawn from seed {seed}",
        p_v=drawn(start.p_v * rng.gamma(1.0, size=start.p_v.shape), 0),
        p_dj=drawn((allowed > 0) * (start.p_dj > 0) * rng.gamma(1.5, size=start.p_dj.shape), 1, 2),
        p_v_deletions=near(start.p_v_deletions, 1),
        p_j_deletions=near(start.p_j_deletions, 1),
        p_d_deletions=near(start.p_d_deletions, 1, 2) if start.d else start.p_d_deletions,
        p_vd_length=lengths(start.p_vd_length.size),
        p_dj_length=lengths(start.p_dj_length.size) if start.d else np.ones(1),
        vd_steps=rng.dirichlet(np.full(4, 12.0), 4),
        dj_steps=rng.dirichlet(np.full(4, 12.0), 4) if start.d else start.dj_steps,
    )


def merged(table: Floats, axis: int, groups: NDArray[np.int64]) -> Floats:
    """Sums over groups along an axis."""
    found = np.zeros((*table.shape[:axis], int(groups.max()) + 1, *table.shape[axis + 1 :]))
    np.add.at(found, (slice(None),) * axis + (groups,), table)
    return found


def alike(texts: list[str], apart: bool) -> NDArray[np.int64]:
    """A number for every different text; for every text, if they are told apart."""
    return np.arange(len(texts)) if apart else np.unique(texts, return_inverse=True)[1]


def scaled(table: Floats) -> Floats:
    """With sums of 1 along the last axis."""
    total = table.sum(axis=-1, keepdims=True)
    return np.divide(table, total, out=np.zeros_like(table), where=total > 0)


def factors(model: RecombinationModel, calls: bool) -> list[Factor]:
    """All factors of a model, with what cannot be told apart together."""
    of_v = alike([model.extended("V", k) for k in range(len(model.v))], calls)
    of_j = alike([model.extended("J", k) for k in range(len(model.j))], calls)
    one = np.ones(1)
    p_dj = model.p_dj if len(model.p_dj) > 1 else np.repeat(model.p_dj, len(model.v), axis=0)
    whole = merged(model.p_v[:, None, None] * p_dj, 2, of_j)
    p_v = merged(model.p_v, 0, of_v)
    p_j = whole.sum(axis=(0, 1))
    v_cuts = scaled(merged(model.p_v[:, None] * model.p_v_deletions, 0, of_v))
    own_j = (model.p_v[:, None] * p_dj.sum(axis=1)).sum(axis=0)
    j_cuts = scaled(merged(own_j[:, None] * model.p_j_deletions, 0, of_j))
    found = [Factor("P(V)", p_v[None], one)]
    if model.d:
        found.append(Factor("P(D, J)", whole.sum(axis=0).reshape(1, -1), one))
    else:
        found.append(Factor("P(J | V)", scaled(merged(whole, 0, of_v)[:, 0]), p_v))
    found += [Factor("V deletions", v_cuts, p_v), Factor("J deletions", j_cuts, p_j)]
    if model.d:
        found.append(Factor("D words", words(model), whole.sum(axis=(0, 2))))
    found.append(Factor("VD length" if model.d else "VJ length", model.p_vd_length[None], one))
    found.append(Factor("VD steps" if model.d else "VJ steps", model.vd_steps, model.vd_first))
    if model.d:
        found.append(Factor("DJ length", model.p_dj_length[None], one))
        found.append(Factor("DJ steps", model.dj_steps, model.dj_first))
    return found


def words(model: RecombinationModel) -> Floats:
    """Probability of the words that deletions leave of each D."""
    left, right = np.indices(model.p_d_deletions.shape[1:])
    rows = []
    for k, table in enumerate(model.p_d_deletions):
        text = model.extended("D", k)
        names = [text[a : len(text) - b] for a, b in zip(left.ravel(), right.ravel(), strict=True)]
        possible = (left + right).ravel() <= len(text)
        kept = np.unique(np.array(names)[possible], return_inverse=True)[1]
        rows.append(np.bincount(kept, table.ravel()[possible]))
    size = max(row.size for row in rows)
    return np.array([np.pad(row, (0, size - row.size)) for row in rows])


def divergence(found: Factor, truth: Factor) -> tuple[float, int]:
    """KL(found || truth), averaged over what is given, and free parameters of the truth."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where(found.rows > 0, found.rows * np.log(found.rows / truth.rows), 0.0).sum(axis=1)
    free = int(np.maximum((truth.rows > 0).sum(axis=1) - 1, 0)[truth.given > 0].sum())
    return float((rows * found.given).sum()), free


def counted(truth: RecombinationModel, fields: NDArray[np.int32]) -> RecombinationModel:
    """Shares of the choices that were made; inserted symbols are not among them."""
    column = {name: fields[:, k] for k, name in enumerate(FIELDS)}

    def share(table: Floats, axes: tuple[int, ...], *names: str) -> Floats:
        counts = np.zeros(table.shape)
        np.add.at(counts, tuple(column[name] for name in names), 1.0)
        total = counts.sum(axis=axes, keepdims=True)
        return np.where(total > 0, counts / np.maximum(total, 1), table)

    column["zero"] = np.zeros(len(fields), np.int32)
    given = "v" if len(truth.p_dj) > 1 else "zero"
    p_dj = share(truth.p_dj, (1, 2), given, "d" if truth.d else "zero", "j")
    found = replace(
        truth,
        p_v=share(truth.p_v, (0,), "v"),
        p_dj=p_dj,
        p_v_deletions=share(truth.p_v_deletions, (1,), "v", "v_deletion"),
        p_j_deletions=share(truth.p_j_deletions, (1,), "j", "j_deletion"),
        p_vd_length=share(truth.p_vd_length, (0,), "left_length"),
    )
    if not truth.d:
        return found
    cuts = ("d", "d5_deletion", "d3_deletion")
    return replace(
        found,
        p_d_deletions=share(truth.p_d_deletions, (1, 2), *cuts),
        p_dj_length=share(truth.p_dj_length, (0,), "right_length"),
    )


def drawn(truth: RecombinationModel, rows: int, seed: int) -> tuple[list[str], NDArray[np.int32]]:
    """Junctions of at least 6 nucleotides, and how they were made."""
    texts: list[str] = []
    fields = []
    for block in JunctionSampler(truth, seed=seed).blocks(threads=1):
        kept = block.length >= 6
        texts += [text for text, long in zip(block.texts(), kept, strict=True) if long]
        fields.append(block.fields[kept])
        if len(texts) >= rows:
            break
    return texts[:rows], np.concatenate(fields)[:rows]


def recover(truth: RecombinationModel, options: Any, calls: bool, say: Callable[[str], object]) -> None:
    """Draw, infer, compare."""
    texts, fields = drawn(truth, options.rows, options.seed)
    n = len(texts)
    named = [None, None]
    if calls:
        named = [[truth.v[k].name for k in fields[:, 0]], [truth.j[k].name for k in fields[:, 2]]]
    errors: float | None = options.misread
    told = ""
    if errors is not None:
        texts, told = misread(texts, errors, options.seed)
    batch = JunctionEncoder(truth).encode(texts, *named)
    uniform = uniform_model(truth)
    start = replace(uniform, p_dj=scaled_over(uniform.p_dj * (truth.p_dj > 0)))
    seen: list[Iteration] = []
    began = time.process_time()

    def infer(first: RecombinationModel, progress: Callable[[Iteration], object]) -> RecombinationModel:
        return infer_model(
            first,
            lambda: [(batch.parts, batch.texts)],
            iterations=options.iterations,
            tolerance=options.tolerance,
            error_rate=None if errors is None else "fit",
            threads=options.threads,
            progress=progress,
        )

    found = infer(start, seen.append)
    seconds = (time.process_time() - began) / len(seen)
    # Junctions keep a nucleotide of V and of J; that is all that can be found.
    target = observable_model(truth)
    beside = factors(infer(target, lambda _: None), calls) if options.from_truth else None
    logs = []
    for model in (target, found):
        rate = None if errors is None else found.error_rate if model is found else errors
        sums = Expectation(model, options.threads, error_rate=rate)
        sums.add(batch.parts, batch.texts)
        logs.append(sums.log_likelihood())
    say(f"\n{truth.name}: {n:,} junctions, {'V and J called' if calls else 'no calls'}")
    say(f"{len(seen)} iterations of {n / seconds:,.0f} junctions/s of processor time, last gain "
        f"{seen[-1].log_likelihood - seen[-2].log_likelihood:.1e} per junction")  # fmt: skip
    if errors is not None:
        say(f"{told}; found {found.error_rate:.6f}")
    compare(truth, target, found, beside, fields, calls, say)
    k = sum(divergence(*pair)[1] for pair in zip(factors(found, calls), factors(target, calls), strict=True))
    say(f"twice the gain of log-likelihood over the truth: {2 * n * (logs[1] - logs[0]):,.0f}, k = {k:,}")


def compare(
    truth: RecombinationModel,
    target: RecombinationModel,
    found: RecombinationModel,
    beside: list[Factor] | None,
    fields: NDArray[np.int32],
    calls: bool,
    say: Callable[[str], object],
) -> None:
    """A line for every factor."""
    n = len(fields)
    say(f"{'factor':<14}{'k':>7}{'KL':>12}{'k / (2 n)':>12}{'ratio':>8}{'counted':>9}{'from truth':>12}")
    pairs = zip(factors(found, calls), factors(target, calls), strict=True)
    shares = factors(counted(truth, fields), calls)
    for place, ((one, true), share) in enumerate(zip(pairs, shares, strict=True)):
        value, k = divergence(one, true)
        symbols = one.name.endswith("steps")
        observed = n * mean_symbols(target, one.name) if symbols else n
        limit = k / (2 * observed)
        own = "-" if symbols else f"{divergence(share, true)[0] / limit:.2f}"
        again = "-" if beside is None else f"{divergence(beside[place], true)[0] / limit:.2f}"
        numbers = f"{value:>12.2e}{limit:>12.2e}{value / limit:>8.2f}{own:>9}{again:>12}"
        say(f"{one.name:<14}{k:>7}{numbers}")


def misread(texts: list[str], rate: float, seed: int) -> tuple[list[str], str]:
    """Texts with some nucleotides replaced by others, and how many in words."""
    rng = np.random.default_rng([seed, 1])
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    codes = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), letters)
    wrong = rng.random(codes.size) < rate
    codes = np.where(wrong, (codes + rng.integers(1, 4, codes.size)) % 4, codes)
    whole = "".join("ACGT"[code] for code in codes.tolist())
    ends = np.cumsum([len(text) for text in texts]).tolist()
    found = [whole[end - len(text) : end] for text, end in zip(texts, ends, strict=True)]
    told = f"misread: rate {rate}, {wrong.sum():,} of {wrong.size:,} nucleotides, {wrong.mean():.6f}"
    return found, f"{told}; the sampling error of such a share {(rate / wrong.size) ** 0.5:.6f}"


def scaled_over(table: Floats) -> Floats:
    """With sums of 1 for every V."""
    total = table.sum(axis=(1, 2), keepdims=True)
    return np.divide(table, total, out=np.zeros_like(table), where=total > 0)


def mean_symbols(model: RecombinationModel, name: str) -> float:
    """Inserted symbols of a junction."""
    p = model.p_dj_length if name.startswith("DJ") else model.p_vd_length
    return float(p @ np.arange(p.size))


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--tolerance", type=float, default=1e-8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", help="the truth, instead of drawn ones")
    parser.add_argument("--germline", nargs="+", default=("mouse_trb", "human_tra"), help="sets of genes")
    parser.add_argument("--from-truth", action="store_true", help="infer from the truth as well")
    parser.add_argument("--misread", type=float, help="share of nucleotides that are replaced by others")
    parser.add_argument("--called", action="store_true", help="only with V and J called")
    parser.add_argument("--loaded", action="store_true", help="say that other work ran on the machine")
    parser.add_argument("--output", help="a file for the text that is printed")
    options = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    say(f"plait {__version__}, Python {platform.python_version()}, {platform.machine()}")
    say(f"rows {options.rows}, seed {options.seed}, tolerance {options.tolerance}")
    if options.loaded:
        say("other work ran on the machine: speeds are not what an idle one gives")
    truths = [load_model(options.model)] if options.model else []
    for truth in truths or [synthetic(name, options.seed) for name in options.germline]:
        for calls in (True,) if options.called else (True, False):
            recover(truth, options, calls, say)
    if options.output:
        with open(options.output, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
