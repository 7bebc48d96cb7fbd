"""Drawings of a folded sequence as SVG, and a page of them that needs neither network nor scripts.

A module of its own: it knows structures and probabilities, no files.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.folding.structures import PairTable, loops_within, partners_of

_DATA: Final = Path(__file__).with_name("data")
#: From improbable to probable: the colours of viridis, the darkest last.
COLOURS: Final = (
    *("#fde725", "#bddf26", "#7ad151", "#44bf70", "#22a884", "#21918c"),
    *("#2a788e", "#355f8d", "#414487", "#482475", "#440154"),
)
_STYLE: Final = (_DATA / "drawing.css").read_text("utf-8").replace("\n", "")
#: Bases with letters and words of their own in a drawing, and bases with letters beside a dot plot.
_MOST_LETTERS: Final = 1_500
_MOST_BESIDE: Final = 120
#: Pairs that are less probable are not seen in a dot plot.
_LEAST: Final = 1e-3
_UNIT: Final = 12.0


class Drawn(NamedTuple):
    """A sequence to be drawn, with its structure in brackets and the probabilities of its pairs."""

    name: str
    sequence: str
    structure: str
    table: PairTable


def layout(partners: NDArray[np.int32]) -> NDArray[np.float64]:
    """Places of bases: loops are regular polygons, what is in none is a line. Shape (n, 2), y upwards."""
    n = partners.size
    # Of every base, the angles within the loops that it is part of; in none is a half turn.
    angles = np.zeros(n)
    for i, within in loops_within(partners).items():
        members = within if i < 0 else [i, int(partners[i]), *within]
        angles[members] += np.pi * (1 if i < 0 else (len(members) - 2) / len(members))
    steps = np.exp(1j * np.cumsum(angles - np.pi))
    places = np.concatenate([[0], np.cumsum(steps[:-1])])[:n]
    return np.stack([places.real, places.imag], axis=1)


def overlaps(places: NDArray[np.float64]) -> bool:
    """Whether bases of a layout come so near each other that parts of it lie upon others."""
    # No two bases share a square of which the diagonal is shorter than their distance along the sequence.
    squares = (np.floor((places + shift) / 0.7) for shift in ((0, 0), (0.35, 0), (0, 0.35), (0.35, 0.35)))
    return any(len(np.unique(one, axis=0)) < len(places) for one in squares)


def circle(bases: int) -> NDArray[np.float64]:
    """Places of bases on a circle, clockwise from the top. Shape (n, 2)."""
    around = 2 * np.pi * (np.arange(bases) + 0.5) / max(bases, 1)
    return np.stack([np.sin(around), np.cos(around)], axis=1) * max(bases, 1) / (2 * np.pi)


def structure_svg(drawn: Drawn) -> str:
    """A structure, each base in the colour of how probable it is that it does what it does there.

    Loops are polygons; where these would lie upon each other, bases are on a circle instead.
    """
    partners, n = partners_of(drawn.structure), len(drawn.sequence)
    places = layout(partners)
    round_about = overlaps(places)
    places = (circle(n) if round_about else places) * (_UNIT, -_UNIT)
    likely = _probabilities(drawn.table, partners)
    parts = []
    if n:
        parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    for i in np.flatnonzero(partners > np.arange(n)).tolist():
        (a, b), (c, d) = places[i], places[partners[i]]
        colour = COLOURS[_step(likely[i])]
        line = f"M{a:.1f} {b:.1f}" + (f"Q0 0 {c:.1f} {d:.1f}" if round_about else f"L{c:.1f} {d:.1f}")
        parts.append(f'<path d="{line}" stroke="{colour}" stroke-width="2" fill="none"/>')
    for k, (x, y) in enumerate(places):
        parts.append(_base(drawn.sequence, partners, k, (x, y), likely[k]))
    low, high = (places.min(axis=0), places.max(axis=0)) if n else (np.zeros(2), np.zeros(2))
    # Words of a large drawing are larger, so that they can be read where it is shown as a whole.
    size = max(1.0, float(np.max(high - low)) / (26 * _UNIT))
    for k in (tick - 1 for tick in (range(10, n + 1, 10) if size < 3 else _ticks(n))):
        # To the left of the way along a loop or a stem there is nothing of it.
        way = places[min(k + 1, n - 1)] - places[k - 1]
        away = np.array([way[1], -way[0]]) / max(float(np.hypot(*way)), 1e-9) * _UNIT * (0.3 + size)
        x, y = places[k] + away
        parts.append(_word(x, y + 2 * size, 6 * size, k + 1))
    left, top = low - 2 * _UNIT * size
    width, height = np.maximum(high - low, (14 * _UNIT, 0)) + np.array([4, 7]) * _UNIT * size
    parts.append(_scale(left + 2 * _UNIT * size, top + height - 2.5 * _UNIT * size, size))
    return _svg((left, top, width, height), f"Structure of {drawn.name}", parts)


def _base(
    sequence: str, partners: NDArray[np.int32], k: int, place: tuple[float, float], likely: float
) -> str:
    x, y = place
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.6" fill="{COLOURS[_step(likely)]}"/>'
    if len(sequence) > _MOST_LETTERS:
        return circle
    other = partners[k]
    told = f"with {sequence[other]}{other + 1}" if other >= 0 else "unpaired"
    ink = "#fff" if likely >= 0.45 else "#111"
    letter = (
        f'<text x="{x:.1f}" y="{y + 2.3:.1f}" font-size="6.5" text-anchor="middle" style="fill:{ink}">'
        f"{sequence[k]}</text>"
    )
    return f"<g><title>{sequence[k]}{k + 1} {told}: {likely:.3f}</title>{circle}{letter}</g>"


def _word(x: float, y: float, size: float, word: object, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" text-anchor="{anchor}">{word}</text>'


def _step(likely: float) -> int:
    return round(float(likely) * (len(COLOURS) - 1))


def _scale(x: float, y: float, size: float) -> str:
    """What colours mean."""
    boxes = [
        f'<rect x="{10 * k}" width="10" height="8" fill="{colour}"/>' for k, colour in enumerate(COLOURS)
    ]
    words = _word(0, 17, 8, 0, "start") + _word(55, 17, 8, "probability") + _word(110, 17, 8, 1, "end")
    return f'<g transform="translate({x:.1f} {y:.1f}) scale({size:.2f})">{"".join(boxes)}{words}</g>'


def _probabilities(table: PairTable, partners: NDArray[np.int32]) -> NDArray[np.float64]:
    """How probable it is that each base does what it does in a structure."""
    found: NDArray[np.float64] = np.where(partners < 0, 1 - table.paired().sum(axis=0), 0.0)
    there = partners[table.pairs[:, 0]] == table.pairs[:, 1]
    for side in table.pairs[there].T:
        found[side] = table.probabilities[there]
    return found.clip(0, 1)


def dots_svg(drawn: Drawn) -> str:
    """Pairs by their bases: above the diagonal as large as probable, below it those of the structure."""
    n, side = len(drawn.sequence), 600.0
    cell = side / max(n, 1)
    parts = [
        f'<rect class="axis" width="{side:g}" height="{side:g}"/>',
        f'<path class="axis" d="M0 0L{side:g} {side:g}"/>',
    ]
    seen = drawn.table.probabilities >= _LEAST
    pairs, likely = drawn.table.pairs[seen], drawn.table.probabilities[seen]
    for (i, j), p in zip(pairs.tolist(), likely.tolist(), strict=True):
        parts.append(_dot("dot", i, j, p, cell))
    partners = partners_of(drawn.structure)
    for i in np.flatnonzero(partners > np.arange(n)).tolist():
        parts.append(_dot("chosen", int(partners[i]), i, 1.0, cell))
    for k in _ticks(n):
        at = (k - 0.5) * cell
        parts.append(f'<path class="axis" d="M{at:.1f} 0v-6M0 {at:.1f}h-6"/>')
        parts += [_word(at, -20, 20, k), _word(-20, at + 6, 20, k, "end")]
    if n <= _MOST_BESIDE:
        size = min(cell, 12)
        for k, letter in enumerate(drawn.sequence):
            at = (k + 0.5) * cell
            parts += [_word(at, -8, size, letter), _word(-12, at + size / 3, size, letter)]
    return _svg((-66, -44, side + 92, side + 54), f"Pairs of {drawn.name}", parts)


def _dot(kind: str, i: int, j: int, likely: float, cell: float) -> str:
    """A pair at the column of one base and the row of the other, its area as large as it is probable."""
    size = cell * likely**0.5
    x, y = (j + 0.5) * cell - size / 2, (i + 0.5) * cell - size / 2
    told = f"<title>{i + 1} and {j + 1}: {likely:.3f}</title>"
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{size:.2f}" height="{size:.2f}">{told}</rect>'
    )


def _ticks(n: int) -> list[int]:
    """Some five round numbers up to n."""
    step = next((k * 10**e for e in range(6) for k in (1, 2, 5) if n / (k * 10**e) <= 7), n)
    return list(range(step, n + 1, step)) if n else []


def mountain_svg(drawn: Drawn) -> str:
    """Over the bases, pairs around each, of the structure and on average, and the entropy of what it does."""
    n, width, height, low = len(drawn.sequence), 480.0, 170.0, 240.0
    partners = partners_of(drawn.structure)
    best = np.cumsum(np.where(partners > np.arange(n), 1, np.where(partners >= 0, -1, 0)))
    behind, before = drawn.table.paired()
    mean, entropy = np.cumsum(behind - before), _entropy(drawn.table)
    top = max(1.0, float(best.max(initial=0)), float(mean.max(initial=0)))
    most = max(1.0, float(entropy.max(initial=0)))
    x = (np.arange(n) + 0.5) * width / max(n, 1)
    parts = [
        f'<path class="axis" d="M0 0V{height:g}H{width:g}M0 {height + 20:g}V{low:g}H{width:g}"/>',
        _curve("best", x, height - best / top * height),
        _curve("mean", x, height - mean / top * height),
        _curve("line", x, low - entropy / most * (low - height - 20)),
        _word(-6, 10, 12, f"{top:.0f}", "end"),
        _word(-6, height + 28, 12, f"{most:.1f}", "end"),
        '<text x="8" y="-8" font-size="12">pairs around: <tspan style="fill:var(--best,#b3401f)">structure'
        '</tspan>, <tspan style="fill:var(--mean,#1f6fb3)">average</tspan></text>',
        _word(8, height + 14, 12, "entropy, bits", "start"),
    ]
    for k in _ticks(n):
        at = (k - 0.5) * width / n
        parts.append(f'<path class="axis" d="M{at:.1f} {low:g}v6"/>')
        parts.append(_word(at, low + 20, 12, k))
    return _svg((-40, -25, width + 55, low + 55), f"Mountain plot of {drawn.name}", parts)


def _curve(kind: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="{kind}" stroke-width="1.6" points="{points}"/>'


def _entropy(table: PairTable) -> NDArray[np.float64]:
    """Of what every base does, in bits."""
    found = np.zeros(table.bases)
    p = table.probabilities
    terms = -p * np.log2(p, out=np.zeros_like(p), where=p > 0)
    for side in table.pairs.T:
        found += np.bincount(side, terms, table.bases)
    alone = (1 - table.paired().sum(axis=0)).clip(0, 1)
    found -= alone * np.log2(alone, out=np.zeros_like(alone), where=alone > 0)
    return found


def _svg(box: Iterable[float], title: str, parts: Iterable[str]) -> str:
    told = html.escape(title)
    view = " ".join(f"{number:.1f}" for number in box)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" aria-label="{told}">'
        f"<title>{told}</title><style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def page(drawn: Drawn, facts: Mapping[str, str], lines: Iterable[str], made: str) -> str:
    """A page of one sequence: `facts` by name, `lines` of letters and brackets, and all drawings."""
    listed = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(fact)}</dd></div>" for name, fact in facts.items()
    )
    template = Template((_DATA / "page.html").read_text("utf-8"))
    return template.substitute(
        name=html.escape(drawn.name),
        facts=listed,
        lines=html.escape("\n".join(lines)),
        structure=structure_svg(drawn),
        dots=dots_svg(drawn),
        mountain=mountain_svg(drawn),
        made=html.escape(made),
    )
