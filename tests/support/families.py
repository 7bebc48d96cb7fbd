"""Which tests go to one worker: those of a file, and of files whose kernels are made of the same bodies.

Numba compiles a body once in a process, and kernels of a family differ in little else: one of folding takes
8 s, and another after it 1 s.
"""

from __future__ import annotations

import re
from typing import Any

from xdist.scheduler import LoadFileScheduling

__all__ = ["FamilyScheduling"]

#: Beginnings of names of files.
_FAMILIES = {
    "chain": "matrix|overflow|generation|model_|expectations|scenarios|worked|golden_counts|count|pgen|infer|"
    "hostile|changed|row_counts|totals|zero_|anchor_|long|explain|sharing|study",
    "cubes": "hsi|ccsds",
    "intervals": "fold|intervals|tables_of_results",
    "mapping": "find|fuzz|lookups|map|verification",
    "pairs": "algebra_schedules|align|annotat|cuda_long|gaps|row_sweep|search",
}
_OF_FAMILY = re.compile(
    "|".join(rf"(?P<{name}>test_(?:{beginnings}))" for name, beginnings in _FAMILIES.items())
)


class FamilyScheduling(LoadFileScheduling):
    """Scheduling by files, those of a family together."""

    def _split_scope(self, nodeid: str) -> str:
        file: Any = super()._split_scope(nodeid)
        found = _OF_FAMILY.match(file.rpartition("/")[2])
        return found.lastgroup if found and found.lastgroup else file
