"""Dynamic programming.

One room a family of recurrences, with its orders of visiting and its launch on every device.
"""
