"""The study of convergent recombination: from a sheet of samples to tables, figures and answers.

In the order of the work: `settings` (what is studied), `count_cache` (path counts of files), `partition`
(rows cut into parts by clonotype), `stages` (parts grouped to clonotypes), `figure_tables`, `correlations`
and `pgen_tables` (what is told of these), `regression`, `answers` (in words), `study` (all of it).
"""
