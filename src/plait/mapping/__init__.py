"""Where short sequences occur in texts of any size: every place within limits of errors, guaranteed."""

from plait.mapping.hits import Hits
from plait.mapping.index import Index
from plait.mapping.mapper import Hits as ReadHits
from plait.mapping.mapper import MapSettings
from plait.mapping.mapper import map_reads as map
from plait.mapping.patterns import Pattern
from plait.mapping.search import FindSettings, find, off_targets

__all__ = [
    "FindSettings",
    "Hits",
    "Index",
    "MapSettings",
    "Pattern",
    "ReadHits",
    "find",
    "map",
    "off_targets",
]
