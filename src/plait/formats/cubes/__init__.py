"""Hyperspectral cubes in files: ENVI, .npy, GeoTIFF, NetCDF and raw samples."""
