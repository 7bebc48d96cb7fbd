"""Runs: how work is split over workers, kept and taken up again."""
