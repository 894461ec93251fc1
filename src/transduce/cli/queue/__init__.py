"""Active learning: which rows to ask a person about, and merging the answers."""

from transduce.cli.queue.answers import merge_answers
from transduce.cli.queue.selection import choose_rows, suspicious_first
from transduce.cli.queue.write import check_names, check_unanswered, interface_of, queue_frame, write_queue

__all__ = [
    "check_names",
    "check_unanswered",
    "choose_rows",
    "interface_of",
    "merge_answers",
    "queue_frame",
    "suspicious_first",
    "write_queue",
]
