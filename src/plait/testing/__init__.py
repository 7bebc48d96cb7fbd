"""What tests are made of: problem descriptors, hypothesis strategies, and oracles in plain Python.

`plait.testing.oracles`, `plait.testing.simulation` and `plait.testing.scenarios` know nothing of the package but
its name. `plait.testing.strategies` and `plait.testing.problems` need hypothesis (the extra ``test``).
"""
