"""The report: one self-contained page for a person who would rather look than read."""

from transduce.cli.report.page import build_report, price_sentence, strongest_words, write_report

__all__ = ["build_report", "price_sentence", "strongest_words", "write_report"]
