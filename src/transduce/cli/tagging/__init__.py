"""Tagging sequences on the command line: files of tokens and labels, fits, models and the report."""
