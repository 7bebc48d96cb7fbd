"""Bit-parallel recurrences: many places of a text at once, one in each bit of a word."""
