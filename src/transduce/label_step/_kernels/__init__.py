"""Compiled loops of the label steps; each file opens with the sub-problem it solves."""
