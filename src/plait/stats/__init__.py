"""Statistics over more rows than fit in memory: rank correlations, and regressions that choose."""
