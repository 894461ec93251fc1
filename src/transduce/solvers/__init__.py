"""Solvers: the loops that alternate weight steps and label steps, and the direct methods of the paper's section 4."""
