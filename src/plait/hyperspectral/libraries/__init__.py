"""Compressed cubes in the words of other libraries: numcodecs, zarr, xarray, Spectral Python, HDF5."""
