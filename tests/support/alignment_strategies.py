"""Hypothesis strategies: small pairs on few letters, and ways to align them with many ties."""

from __future__ import annotations

from hypothesis import strategies as st
from support.alignment import AlignmentCase

__all__ = ["MODES", "alignment_cases", "bands", "free_end_sets"]

MODES = ("global", "local", "semiglobal", "overlap", "extension")
_ENDS = ("query_start", "query_end", "target_start", "target_end")


def free_end_sets() -> st.SearchStrategy[frozenset[str]]:
    """Any of the 16 sets of free ends."""
    return st.frozensets(st.sampled_from(_ENDS))


def bands(longest: int) -> st.SearchStrategy[tuple[int, int]]:
    """Bands that hold the first vertex or not, for sequences up to `longest`."""
    limits = st.integers(-longest - 1, longest + 1)
    return st.tuples(limits, limits).map(lambda pair: (min(pair), max(pair)))


@st.composite
def alignment_cases(
    draw: st.DrawFn,
    *,
    longest: int = 12,
    modes: tuple[str, ...] = MODES,
    banded: bool = False,
    dropped: bool = False,
) -> AlignmentCase:
    """Pairs of up to `longest` residues; small scores and costs, so that much is equally good.

    Parameters
    ----------
    draw
        Given by hypothesis.
    longest
        Residues of the longest sequence; either may be empty.
    modes
        Which modes.
    banded, dropped
        Whether there may be a band, and X-drop where the mode is ``"extension"``.
    """
    letters = draw(st.integers(1, 3))
    sequences = st.lists(st.integers(0, letters - 1), max_size=longest).map(tuple)
    query = draw(sequences)
    # Half of the targets are the query with a piece moved: random ones hardly ever need long gaps.
    a, b = sorted((draw(st.integers(0, len(query))), draw(st.integers(0, len(query)))))
    target = draw(sequences | st.just((query[b:] + query[:a] + query[a:b])[:longest]))
    row = st.tuples(*[st.integers(-4, 5)] * letters)
    extend = draw(st.integers(0, 3))
    mode = draw(st.sampled_from(modes))
    return AlignmentCase(
        query=query,
        target=target,
        scores=draw(st.tuples(*[row] * letters)),
        gap_open=extend + draw(st.integers(0, 4)),
        gap_extend=extend,
        mode=mode,
        free_ends=draw(free_end_sets()) if mode == "semiglobal" else frozenset(),
        band=draw(st.none() | bands(longest)) if banded else None,
        x_drop=draw(st.none() | st.integers(0, 15)) if dropped and mode == "extension" else None,
    )
