"""Files in and out: named column layouts, streamed input tables, atomic output tables, checkpoints.

The modules are imported one by one, so that a caller pays only for what it uses.
"""
