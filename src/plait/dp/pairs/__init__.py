"""Pairs of sequences: alignment and search."""
