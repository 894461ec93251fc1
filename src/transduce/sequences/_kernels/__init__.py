"""Compiled kernels of chains."""
