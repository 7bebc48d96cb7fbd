"""The study of convergent recombination: from a sheet of samples to tables, figures and answers.

In the order of the work: `settings` (what is studied, and path counts of files), `stages` (rows cut into
parts by clonotype, and grouped to clonotypes), `figure_tables` and `pgen_tables` (what is told of these),
`regression`, `answers` (in words), `study` (all of it).
"""
