"""Bit-parallel recurrences: places of a text or rows of a pair, one in each bit of a word."""
