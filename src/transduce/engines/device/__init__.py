"""Rows on a device: the engine over arrays of PyTorch, CuPy or any library of the array API standard."""
