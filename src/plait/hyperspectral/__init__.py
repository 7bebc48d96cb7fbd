"""Lossless compression of hyperspectral cubes: CCSDS 123.0-B-1, and the lossless part of 123.0-B-2."""
