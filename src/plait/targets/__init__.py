"""Targets: how a schedule is launched. A target knows schedules and device memory, nothing else."""
