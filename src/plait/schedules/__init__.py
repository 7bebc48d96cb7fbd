"""Schedules: in what order cells are visited and where their values live. Plain arrays in and out."""
