"""The HTML report of a fit: one self-contained page."""

from transduce.cli.report.page import build_report, strongest_words, write_report

__all__ = ["build_report", "strongest_words", "write_report"]
