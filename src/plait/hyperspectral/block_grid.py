"""How a cube is cut into blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from plait.errors import InvalidInput
from plait.hyperspectral.image_layout import ImageLayout
from plait.hyperspectral.parameters import StreamParameters

__all__ = ["BlockGrid", "Window", "block_parameters"]


class Window(NamedTuple):
    """A part of a cube, of all bands; the ends are not in it.

    Attributes
    ----------
    first_row, last_row, first_column, last_column
        Its rows and columns.
    """

    first_row: int
    last_row: int
    first_column: int
    last_column: int

    @property
    def pixels(self) -> int:
        """Pixels in it."""
        return (self.last_row - self.first_row) * (self.last_column - self.first_column)

    def meets(self, other: Window) -> Window | None:
        """What is in both; None if nothing is."""
        found = Window(
            max(self.first_row, other.first_row),
            min(self.last_row, other.last_row),
            max(self.first_column, other.first_column),
            min(self.last_column, other.last_column),
        )
        empty = found.first_row >= found.last_row or found.first_column >= found.last_column
        return None if empty else found

    def __str__(self) -> str:
        rows = f"rows {self.first_row} to {self.last_row - 1}"
        return f"{rows}, columns {self.first_column} to {self.last_column - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGrid:
    """Blocks of equal size, but for the last ones of a row or column of blocks.

    Attributes
    ----------
    rows, columns
        Size of the cube.
    block_rows, block_columns
        Size of a block.
    """

    rows: int
    columns: int
    block_rows: int
    block_columns: int

    @classmethod
    def parse(cls, text: str, image: ImageLayout) -> BlockGrid:
        """Make one of its name.

        Parameters
        ----------
        text
            ``"rows:N"``, or ``"tiles:YxX"`` for blocks of Y rows and X columns.
        image
            Size of the cube.

        Raises
        ------
        InvalidInput
            If it is neither.
        """
        found = re.fullmatch(r"rows:([1-9][0-9]{0,5})|tiles:([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
        if found is None:
            raise InvalidInput(
                "blocks", found=repr(text), expected="rows:N or tiles:YxX, such as tiles:64x64"
            )
        rows, tile_rows, tile_columns = found.groups()
        return cls(
            rows=image.rows,
            columns=image.columns,
            block_rows=min(int(rows or tile_rows), image.rows),
            block_columns=min(int(tile_columns or image.columns), image.columns),
        )

    @property
    def block_pixels(self) -> int:
        """Pixels of a block, the last ones apart."""
        return self.block_rows * self.block_columns

    def __len__(self) -> int:
        return -(-self.rows // self.block_rows) * -(-self.columns // self.block_columns)

    def __iter__(self) -> Iterator[Window]:
        """The blocks, row by row of them."""
        for row in range(0, self.rows, self.block_rows):
            for column in range(0, self.columns, self.block_columns):
                last_row = min(row + self.block_rows, self.rows)
                yield Window(row, last_row, column, min(column + self.block_columns, self.columns))


def block_parameters(parameters: StreamParameters, window: Window) -> StreamParameters:
    """Parameters of the stream of a block.

    Parameters
    ----------
    parameters
        Of the whole cube.
    window
        The block.

    Raises
    ------
    InvalidInput
        If a supplementary table has values for each column or row, which blocks do not have all of.
    """
    if any(table.structure > 1 for table in parameters.supplementary):
        expected = "values for the image or for each band, where there are blocks"
        raise InvalidInput("supplementary tables", found="values for each column", expected=expected)
    image = replace(
        parameters.image,
        rows=window.last_row - window.first_row,
        columns=window.last_column - window.first_column,
    )
    predictor = parameters.predictor
    if image.columns == 1 and parameters.image.columns > 1:
        # The standard allows nothing else for a single column.
        sums = "narrow-column" if predictor.local_sum.startswith("narrow") else "wide-column"
        changes: dict[str, object] = {"mode": "reduced", "local_sum": sums}
        if predictor.weight_table is not None and predictor.mode == "full":
            changes["weight_table"] = tuple(row[3:] for row in predictor.weight_table)
        predictor = replace(predictor, **changes)  # type: ignore[arg-type]
    return replace(parameters, image=image, predictor=predictor)
