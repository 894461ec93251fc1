"""The commands, one module each: the click command and its job. Heavy imports are inside functions."""
