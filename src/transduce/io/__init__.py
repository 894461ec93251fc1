"""Files: checkpoints, memory-mapped rows, atomic writes, strict JSON and locks."""
