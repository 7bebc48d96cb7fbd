"""Bands of a cube: prediction of samples from their neighbours."""
