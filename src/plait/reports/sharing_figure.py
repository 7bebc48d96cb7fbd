"""A figure of path counts against the number of individuals that share a clonotype."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import TargetUnavailable
from plait.formats.atomic import AtomicFile, output_errors
from plait.vdj.sharing_table import SharingTable

__all__ = ["check_drawing", "draw_sharing"]

# Okabe and Ito's colours, which are told apart with any kind of colour vision.
_ONE, _SEVERAL, _INK = "#0072B2", "#D55E00", "#333333"
#: Clonotypes found in this many individuals or more are one group; there are few of them.
_TOGETHER = 4
_FEWEST_FOR_SHAPE = 200
_TENTHS = 10


class _Points(NamedTuple):
    """Counted clonotypes."""

    counts: NDArray[np.float64]
    subjects: NDArray[np.int64]
    lengths: NDArray[np.int64]


def check_drawing() -> None:
    """Make sure, before any work, that a figure can be drawn.

    Raises
    ------
    TargetUnavailable
        If matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise TargetUnavailable(
            "figure",
            reason=f"matplotlib cannot be imported ({error})",
            fix="install it: pip install 'plait[demo]', or pip install '.[demo]' in a checkout",
        ) from error


def draw_sharing(
    found: SharingTable, path: str | os.PathLike[str], *, subject: str, source: str, limits: str
) -> None:
    """Draw path counts by number of individuals, and the share of shared clonotypes by path count.

    Parameters
    ----------
    found
        What to draw; it has path counts.
    path
        The PNG file to write.
    subject
        What individuals are called, in the plural.
    source
        What was counted, for the line below the title.
    limits
        Under which model.
    """
    check_drawing()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    points = _points(found)
    # Room for the title above and the remark below.
    layout = ConstrainedLayoutEngine(rect=(0.005, 0.085, 0.985, 0.795), wspace=0.08)
    figure = Figure(figsize=(10, 5.6), dpi=110, layout=layout)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _distributions(left, points, subject)
    rank = found.correlation()
    if not np.isnan(rank.rho):
        text = f"Spearman's rank correlation: {rank.rho:.2f}\n(n = {rank.n:,} clonotypes)"
        left.text(0.99, 0.13, text, transform=left.transAxes, ha="right", fontsize=9.5, color=_INK)
    _shares(right, points, subject)
    figure.text(0.012, 0.975, _title(points, subject), va="top", fontsize=14, weight="bold", color=_INK)
    figure.text(0.012, 0.915, f"{source}. {limits}.", va="top", fontsize=9.5, color=_INK)
    figure.text(0.012, 0.015, _caveat(points, subject), va="bottom", fontsize=9, color=_INK)
    with AtomicFile(path) as file, output_errors(path):
        figure.savefig(file.stream, format="png", metadata={"Software": None})


def _points(found: SharingTable) -> _Points:
    table = found.clonotypes.filter(found.clonotypes["path_count"].is_valid())
    return _Points(
        counts=table["path_count"].cast("float64", safe=False).to_numpy(),
        subjects=table["subjects"].to_numpy(),
        lengths=np.array([len(text) for text in table["junction"].to_pylist()], np.int64),
    )


def _title(points: _Points, subject: str) -> str:
    shared = points.subjects > 1
    if not shared.any() or shared.all():
        return f"Path count and number of {subject}"
    ratio = np.median(points.counts[shared]) / max(np.median(points.counts[~shared]), 1.0)
    if ratio < 1.5:
        return f"Path count and number of {subject} that share a clonotype"
    return f"Clonotypes found in several {subject} tend to have higher path counts"


def _caveat(points: _Points, subject: str) -> str:
    shared = points.subjects > 1
    if not shared.any() or shared.all():
        return "A clonotype is a junction with its V and J gene."
    several, one = (int(np.median(points.lengths[group])) for group in (shared, ~shared))
    return (
        f"A clonotype is a junction with its V and J gene. Median junction length: {several} nt where "
        f"shared, {one} nt where not;\nthe figure does not separate path count from length, and how much "
        "sharing is seen depends on sampling depth."
    )


def _distributions(axes: Any, points: _Points, subject: str) -> None:
    """One column of clonotypes for every number of individuals; count 0 in a strip below the logarithm."""
    groups = [(str(k), points.subjects == k) for k in range(1, _TOGETHER)]
    groups.append((f"{_TOGETHER} or more", points.subjects >= _TOGETHER))
    positive = points.counts[points.counts > 0]
    bottom = 10 ** np.floor(np.log10(positive.min())) if positive.size else 1.0
    labels = []
    for at, (label, members) in enumerate(groups):
        counts = points.counts[members]
        labels.append(f"{label}\nn = {counts.size:,}")
        if counts.size:
            labels[-1] += f"\nmedian {_short(float(np.median(counts)))}"
            _column(axes, at, counts, _ONE if at == 0 else _SEVERAL, bottom)
    axes.set_yscale("log")
    axes.set_ylim(bottom / 8, (positive.max() if positive.size else 10.0) * 3)
    axes.axhline(bottom / 1.6, color="#bbbbbb", lw=0.8)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_xticks(range(len(groups)), labels)
    ticks = [t for t in 10.0 ** np.arange(np.log10(bottom), 19) if t <= axes.get_ylim()[1]]
    axes.set_yticks([bottom / 3.5, *ticks], ["0", *(f"$10^{{{round(np.log10(t))}}}$" for t in ticks)])
    axes.minorticks_off()
    axes.set_xlabel(f"number of {subject} in which the clonotype is found")
    axes.set_ylabel("path count (recombination paths per clonotype)")
    axes.set_title("Path counts; bars: median and middle half", fontsize=10.5, loc="left", color=_INK)
    _plain(axes)


def _column(axes: Any, at: int, counts: NDArray[np.float64], colour: str, bottom: float) -> None:
    positive = np.log10(counts[counts > 0])
    zeros = counts.size - positive.size
    if positive.size >= _FEWEST_FOR_SHAPE:
        height, edges = np.histogram(positive, bins=60)
        middle, width = (edges[1:] + edges[:-1]) / 2, 0.42 * height / height.max()
        axes.fill_betweenx(10**middle, at - width, at + width, color=colour, alpha=0.3, lw=0)
    else:
        # The seed is fixed, so that the same data give the same figure.
        spread = np.random.default_rng(at).uniform(-0.3, 0.3, positive.size)
        axes.plot(at + spread, 10**positive, "o", ms=4.5, mec="white", mew=0.4, color=colour, alpha=0.75)
    if zeros:
        text = f"{zeros:,} ({100 * zeros / counts.size:.1f} %)"
        axes.text(at, bottom / 3.5, text, ha="center", va="center", fontsize=9, color=colour)
    low, median, high = (max(q, bottom) for q in np.quantile(counts, (0.25, 0.5, 0.75)))
    axes.plot([at, at], [low, high], color=_INK, lw=5, alpha=0.85, solid_capstyle="butt")
    axes.plot([at - 0.16, at + 0.16], [median, median], color=_INK, lw=2.5)


def _shares(axes: Any, points: _Points, subject: str) -> None:
    """The share of shared clonotypes in every tenth of the clonotypes, ranked by path count."""
    order = np.argsort(points.counts, kind="stable")
    shared = points.subjects[order] > 1
    parts = [part for part in np.array_split(shared, _TENTHS) if part.size]
    for at, part in enumerate(parts):
        k, n = int(part.sum()), part.size
        low, high = _wilson(k, n)
        axes.plot([at, at], [100 * low, 100 * high], color=_SEVERAL, lw=1.6, alpha=0.7)
        axes.plot([at], [100 * k / n], "o", ms=6, color=_SEVERAL)
    edges = [part[-1] for part in np.array_split(points.counts[order], _TENTHS) if part.size]
    axes.set_xticks(range(len(parts)), [_short(edge) for edge in edges], rotation=45, fontsize=8.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tenths of clonotypes by path count (upper end)")
    axes.set_ylabel(f"found in 2 or more {subject} (%)")
    axes.set_title("Shared clonotypes; bars: 95 % intervals", fontsize=10.5, loc="left", color=_INK)
    _plain(axes)


def _wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.959964
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * float(np.sqrt(k * (n - k) / n + z * z / 4))
    return max(0.0, centre - half), min(1.0, centre + half)


def _short(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", lw=0.7)
    axes.set_axisbelow(True)
