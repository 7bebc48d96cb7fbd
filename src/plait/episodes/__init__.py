"""Frequent serial episodes in a stream of events, with an interval of time for each step."""

from plait.episodes.mining import Episodes, Level, count, mine, read_episodes, read_events

__all__ = ["Episodes", "Level", "count", "mine", "read_episodes", "read_events"]
