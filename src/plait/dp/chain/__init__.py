"""The V(D)J chain: counts, probabilities, scenarios, draws."""
