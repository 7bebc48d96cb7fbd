"""Intervals of a sequence: the nearest-neighbour recurrence of RNA folding, its rows, and the ways back."""
