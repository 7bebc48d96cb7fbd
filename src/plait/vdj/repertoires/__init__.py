"""Repertoires of subjects: who shares what, how diverse they are, and what is near what."""
