"""Why junctions cannot be made under a model."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.vdj.model.gene_ends import GivenGenes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import EncodedTexts
from plait.vdj.results import STATUSES

#: Reasons for a generation probability of zero, in the order in which they are looked for.
ZERO_REASONS: Final = (
    "v_never_chosen",
    "j_never_chosen",
    "genes_never_together",
    "v_not_matching",
    "j_not_matching",
    "too_many_insertions",
    "no_scenario",
)
#: Every value of the status column: ``"ok"``, reasons for having no number, and reasons for zero.
PGEN_STATUSES: Final = (*STATUSES, *ZERO_REASONS)

_CODE: Final = {reason: PGEN_STATUSES.index(reason) for reason in ZERO_REASONS}
#: A step that nobody has taken yet, and one that leads nowhere.
_UNKNOWN: Final = -2
_NOWHERE: Final = -1
#: Matchers that are kept: of nucleotides, of amino acids, and of the last motifs, at both ends.
_MOST_MATCHERS: Final = 8

_Words = tuple[tuple[str, ...], ...]
_Ints = NDArray[np.int64]


class ZeroReasons:
    """Finds reasons for zeros."""

    def __init__(self, model: RecombinationModel) -> None:
        self._model = model
        self._p_dj = model.p_dj.sum(axis=1)
        self._insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
        self._matchers: dict[tuple[str, _Words], _EndMatcher] = {}
        self._lock = Lock()

    def reasons(self, texts: EncodedTexts, rows: _Ints, v: GivenGenes, j: GivenGenes) -> NDArray[np.uint8]:
        """Why the texts `rows` of a column cannot be made of their genes: indices into `PGEN_STATUSES`.

        `v` and `j` are the genes that each row of the column may be made of.
        """
        v_sets, j_sets = [self._chosen_v(g) for g in v.genes], [self._chosen_j(g) for g in j.genes]
        pairs, of_pair = np.unique(np.stack([v.codes[rows], j.codes[rows]]), axis=1, return_inverse=True)
        known = [self._of_genes(v_sets[a], j_sets[b]) for a, b in pairs.T.tolist()]
        found = np.array(known, np.uint8)[of_pair.ravel()]
        rest = np.flatnonzero(found == 0)
        at = rows[rest]
        # One at a time: matchers learn while they are used.
        with self._lock:
            kept_v = self._matcher("V", texts.words).longest(texts, at, v_sets, v.codes[at])
            kept_j = self._matcher("J", texts.words).longest(texts, at, j_sets, j.codes[at])
        size = len(texts.words[0][0])
        gap = texts.length[at] * size - kept_v - kept_j
        unknown = np.where(gap > self._insertions, _CODE["too_many_insertions"], _CODE["no_scenario"])
        unknown[kept_j == 0] = _CODE["j_not_matching"]
        unknown[kept_v == 0] = _CODE["v_not_matching"]
        found[rest] = unknown
        return found

    def _chosen_v(self, genes: Sequence[int]) -> tuple[int, ...]:
        return tuple(k for k in genes if self._model.p_v[k] > 0)

    def _chosen_j(self, genes: Sequence[int]) -> tuple[int, ...]:
        return tuple(k for k in genes if self._p_dj[:, k].max() > 0)

    def _of_genes(self, v: tuple[int, ...], j: tuple[int, ...]) -> int:
        """What the genes alone say; 0 where they do not."""
        if not v or not j:
            return _CODE["j_never_chosen" if v else "v_never_chosen"]
        if len(self._p_dj) > 1 and not self._p_dj[np.ix_(v, j)].any():
            return _CODE["genes_never_together"]
        return 0

    def _matcher(self, segment: Literal["V", "J"], words: _Words) -> _EndMatcher:
        key = segment, words
        if key not in self._matchers:
            if len(self._matchers) >= _MOST_MATCHERS:
                # Those of motifs, which are others in every block, come after those of alphabets.
                del self._matchers[list(self._matchers)[-1]]
            self._matchers[key] = _EndMatcher(self._model, segment, words)
        return self._matchers[key]


class _EndMatcher:
    """Finds how much of the end of a gene texts can begin with: an automaton that grows as it is needed.

    Its states are sets of nodes of trees of genes; where a set leads by a code, and how long the longest part
    is that a gene can be cut to on the way, is looked up after the first time.
    """

    def __init__(self, model: RecombinationModel, segment: Literal["V", "J"], words: _Words) -> None:
        self._model = model
        self._segment: Literal["V", "J"] = segment
        self._words = words if segment == "V" else tuple(tuple(w[::-1] for w in found) for found in words)
        self._child: list[dict[str, int]] = []
        #: Length of the part that ends at a node; 0 where no gene can be cut to it.
        self._length: list[int] = []
        self._starts: dict[tuple[int, ...], int] = {}
        self._states: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._step = np.full((64, len(words)), _UNKNOWN, np.int32)
        self._best = np.zeros((64, len(words)), np.int32)

    def longest(
        self, texts: EncodedTexts, rows: _Ints, sets: Sequence[tuple[int, ...]], which: _Ints
    ) -> _Ints:
        """Length of the longest possible part of each text, 0 if there is none.

        Text ``rows[i]`` may use the genes ``sets[which[i]]``.
        """
        used = np.unique(which)
        starts = np.zeros(len(sets), np.int64)
        starts[used] = [self._start(sets[k]) for k in used.tolist()]
        state, kept = starts[which], np.zeros(rows.size, np.int64)
        backwards = self._segment == "J"
        first = texts.start[rows] + (texts.length[rows] - 1 if backwards else 0)
        active, t = np.arange(rows.size), 0
        while active.size:
            code = texts.codes[first[active] + (-t if backwards else t)]
            here = state[active]
            following = self._step[here, code]
            if (following == _UNKNOWN).any():
                self._learn(here, code)
                following = self._step[here, code]
            kept[active] = np.maximum(kept[active], self._best[here, code])
            t += 1
            on = (following != _NOWHERE) & (t < texts.length[rows[active]])
            active = active[on]
            state[active] = following[on]
        return kept

    def _start(self, genes: tuple[int, ...]) -> int:
        if genes not in self._starts:
            root = self._node()
            model = self._model
            deletions = model.p_v_deletions if self._segment == "V" else model.p_j_deletions
            for k in genes:
                text = model.extended(self._segment, k)
                node = root
                for kept, letter in enumerate(text if self._segment == "V" else text[::-1], 1):
                    if letter not in self._child[node]:
                        self._child[node][letter] = self._node()
                    node = self._child[node][letter]
                    cut = len(text) - kept
                    if cut < deletions.shape[1] and deletions[k, cut] > 0:
                        self._length[node] = kept
            self._starts[genes] = self._state(frozenset([root]))
        return self._starts[genes]

    def _node(self) -> int:
        self._child.append({})
        self._length.append(0)
        return len(self._child) - 1

    def _state(self, nodes: frozenset[int]) -> int:
        if nodes not in self._states:
            self._states[nodes] = len(self._sets)
            self._sets.append(nodes)
            if len(self._sets) > len(self._step):
                self._step = np.concatenate([self._step, np.full_like(self._step, _UNKNOWN)])
                self._best = np.concatenate([self._best, np.zeros_like(self._best)])
        return self._states[nodes]

    def _learn(self, states: _Ints, codes: NDArray[np.uint8]) -> None:
        """Find where states lead by codes."""
        width = self._step.shape[1]
        for key in np.unique(states * width + codes).tolist():
            state, code = divmod(key, width)
            if self._step[state, code] != _UNKNOWN:
                continue
            reached, best = set(), 0
            for node in self._sets[state]:
                for word in self._words[code]:
                    at = node
                    for letter in word:
                        at = self._child[at].get(letter, _NOWHERE)
                        if at == _NOWHERE:
                            break
                        best = max(best, self._length[at])
                    else:
                        reached.add(at)
            following = self._state(frozenset(reached)) if reached else _NOWHERE
            self._step[state, code], self._best[state, code] = following, best
