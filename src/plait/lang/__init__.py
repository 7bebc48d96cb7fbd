"""The language that bodies are written in: compilation, lanes, warps, algebras."""
