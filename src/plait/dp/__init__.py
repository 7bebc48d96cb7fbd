"""Dynamic programming: one room a family of recurrences, with its orders of visiting and its launches."""
