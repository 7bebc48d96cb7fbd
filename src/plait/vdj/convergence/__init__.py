"""The study of convergent recombination: from a sheet of samples to tables, figures and answers.

Modules, in the order of the work: `sample_sheet` (what is studied), `count_cache` (path counts of files),
`partition` (rows cut into parts by clonotype), `stages` (parts grouped to clonotypes), `regression` (what it
sees of a clonotype), `run` (all of it).
"""
