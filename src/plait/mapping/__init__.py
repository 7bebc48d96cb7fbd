"""Where short patterns occur in texts of any size: every place within limits of errors, guaranteed."""

from plait.mapping.hits import Hits
from plait.mapping.patterns import Pattern
from plait.mapping.search import FindSettings, find, off_targets

__all__ = ["FindSettings", "Hits", "Pattern", "find", "off_targets"]
