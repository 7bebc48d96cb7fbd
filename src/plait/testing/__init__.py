"""What tests are made of: problem descriptors, hypothesis strategies, and oracles in plain Python.

`plait.testing.oracles` and `plait.testing.simulation` use nothing of the package that they are compared
with. `plait.testing.strategies` and `plait.testing.problems` need hypothesis (the extra ``test``).
"""
