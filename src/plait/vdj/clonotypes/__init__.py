"""Clonotypes of annotated reads, and molecules of UMIs."""
