"""Find patterns into a folder of parts, which are written where texts are searched.

A module of its own: other outputs do without Arrow.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.checkpoints import digest_of
from plait.formats.datasets import Folder, PartFile, Parts, PartWriter
from plait.formats.files import Identity, identify
from plait.formats.tables import ONE_FILE, PartSettings
from plait.formats.twobit import is_two_bit, two_bit_lengths
from plait.mapping.hits import hit_table, no_hits
from plait.mapping.patterns import PatternFile
from plait.mapping.search import Finder, FindSettings, found_in
from plait.mapping.texts import BLOCK_LETTERS, Sequences
from plait.run.datasets import WorkedPart, check_size, open_dataset
from plait.run.executor import Executor
from plait.run.rows import Remade, RunningSums, asked_where_done
from plait.settings import package_digest
from plait.types import Provenance

_Path = str | os.PathLike[str]
#: Hits that are written together.
_ROWS_AT_A_TIME: Final = 1 << 15


@dataclass
class FindTotals(RunningSums):
    """Sums of searches: hits by pattern and errors, sequences, letters, sites, rows, and strange letters."""

    hits: NDArray[np.int64]
    sequences: int = 0
    letters: int = 0
    sites: int = 0
    rows: int = 0
    strange: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text, or some sequences of it, whose hits become part `number`; the file has `size` bytes."""

    number: int
    text: _Path | Sequences
    path: _Path
    size: int

    @property
    def name(self) -> str:
        """What it is called in errors."""
        own = self.text
        rows = f"sequences {own.first + 1:,} to {own.end:,} of " if isinstance(own, Sequences) else ""
        return f"{rows}{os.fspath(self.path)!r}"


@dataclass(frozen=True)
class PartOfHits(Remade):
    """Searches the text of a part and writes its hits, wherever it is called."""

    patterns: PatternFile
    settings: FindSettings
    parts: Parts
    folder: Folder

    def __call__(self, part: TextPart) -> WorkedPart:
        """Write a part."""
        check_size(part.path, part.size)
        finder, writer = Finder(self.patterns, self.settings), PartWriter(part.number, self.parts)
        rows, names = 0, list[str]()
        for blocks, own in found_in(finder, [part.text]):
            names = blocks.names
            for first in range(0, len(own), _ROWS_AT_A_TIME):
                some = own.taken(slice(first, first + _ROWS_AT_A_TIME))
                writer.write(hit_table(some, finder.patterns, names))
            rows += len(own)
        looked = len(names), finder.letters, finder.sites, rows
        return WorkedPart(
            writer.finish(self.folder), rows, FindTotals(finder.totals, *looked, Counter(finder.strange))
        )


def write_parts(
    finder: Finder,
    patterns: PatternFile,
    texts: Sequence[_Path],
    output: str,
    executor: Executor,
    provenance: Provenance,
    *,
    inputs: Sequence[_Path],
    resume: bool,
    settings: PartSettings | None,
) -> FindTotals:
    """Search all texts into a folder of parts; `finder` is made of the patterns, and has the settings."""
    asked = settings or ONE_FILE
    if asked.part_rows is not None:
        expected = "none: a part has the hits of a text, or of some sequences of a 2bit file"
        raise InvalidInput("part_rows", found=asked.part_rows, expected=expected)
    how = replace(finder.settings, threads=1) if executor.elsewhere else finder.settings
    device = asked_where_done(executor, _device, how)
    told = json.dumps(replace(provenance, device=device).as_dict(), sort_keys=True)
    schema = hit_table(no_hits(), finder.patterns, []).schema
    parts = Parts(schema, {"plait.provenance": told}, asked.partition).check()
    identities = identify(texts)[1]
    key = {
        "provenance": told,
        "sources": package_digest(),
        "inputs": [list(one) for one in identities],
        "patterns": [[pattern.name, pattern.sequence, pattern.pam] for pattern in finder.patterns],
    }
    totals = FindTotals(np.zeros_like(finder.totals))
    with open_dataset(output, parts, key=key, inputs=inputs, resume=resume) as made:
        files = list[PartFile]()
        results = made.results(
            executor,
            PartOfHits(patterns, how, parts, made.output.folder),
            _parts_of(identities),
            digest=lambda part: digest_of(repr(part).encode()),
            named=lambda _, part: part.name,
            totals=FindTotals(np.zeros_like(finder.totals)),
            # Its threads share the text of a part.
            most=1,
        )
        with closing(results):
            for found in results:
                files += found.files
                totals.merge(found.totals)
        made.finish(files, None)
    return totals


def _device(settings: FindSettings) -> str:
    from plait.devices.target import resolve

    return resolve(settings.device, settings.threads).description


def _parts_of(identities: Sequence[Identity]) -> Iterator[TextPart]:
    """Texts, and of 2bit files, which are read from any sequence on, some sequences each."""
    number = 0
    for path, size, _ in identities:
        texts: list[Any] = [path]
        if is_two_bit(path):
            lengths = two_bit_lengths(path)
            blocks = np.array(list(accumulate(lengths, initial=0))[:-1], np.int64) // BLOCK_LETTERS
            edges = [*np.flatnonzero(np.diff(blocks, prepend=-1)).tolist(), len(lengths)]
            texts = [Sequences(path, *ends) for ends in pairwise(edges)] or [path]
        for text in texts:
            yield TextPart(number, text, path, size)
            number += 1
