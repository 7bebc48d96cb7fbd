"""All parsers under test, by name; each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import cube_headers, cubes, folding, genes, kept, patterns, signals, tables, words
from tests.fuzz.trial import Parser

PARSERS: dict[str, Callable[[], Parser]] = {
    **tables.PARSERS,
    **cubes.PARSERS,
    **cube_headers.PARSERS,
    **genes.PARSERS,
    **kept.PARSERS,
    **patterns.PARSERS,
    **folding.PARSERS,
    **signals.PARSERS,
    **words.PARSERS,
}
