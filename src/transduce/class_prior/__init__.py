"""Class sizes: what users state, how it becomes bounds on class counts, estimates and diagnostics."""
