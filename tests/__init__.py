"""Tests, with what they share in support/; a package, so that no other one of this name hides it."""
