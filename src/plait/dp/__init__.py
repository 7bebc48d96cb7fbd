"""Dynamic programming: a package for each family of recurrences, with its orders and its launches."""
