"""From sequencing reads to rearrangements: V, D and J calls, junctions, clonotypes, new alleles."""
