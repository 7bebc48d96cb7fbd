"""From sequencing reads to rearrangements: V, D and J calls, junctions, AIRR columns."""
