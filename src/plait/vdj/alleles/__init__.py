"""Alleles that the germline set lacks, found in annotated reads."""
