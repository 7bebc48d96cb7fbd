"""Recurrences: which neighbours feed a cell. Arithmetic, comparison, tuples and algebra calls only."""
