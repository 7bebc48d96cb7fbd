"""Devices: which there are, their memory and how they are asked."""
