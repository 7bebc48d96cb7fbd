"""Cubes in files."""
