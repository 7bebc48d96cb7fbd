"""Repertoires: which junctions are near each other."""
