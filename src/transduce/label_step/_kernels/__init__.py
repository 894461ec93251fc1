"""Compiled loops of the label steps; each file opens with the problem it solves."""
