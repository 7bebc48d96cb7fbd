"""Results as text and figures for people."""
