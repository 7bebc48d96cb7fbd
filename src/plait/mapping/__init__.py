"""Where short sequences occur in texts of any size: every place within limits of errors, guaranteed."""

from plait.mapping.index import Index
from plait.mapping.mapper import Hits as ReadHits
from plait.mapping.mapper import MapSettings
from plait.mapping.mapper import map_reads as map

__all__ = ["Index", "MapSettings", "ReadHits", "map"]
