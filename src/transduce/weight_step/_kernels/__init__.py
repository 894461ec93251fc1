"""Compiled loops of the weight steps; each file opens with the sub-problem it solves."""
