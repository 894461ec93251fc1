"""The queue: which rows to ask a person about, and the answers read back."""

from transduce.cli.queue.answers import merge_answers
from transduce.cli.queue.selection import (
    choose_rows,
    interface_of,
    label_studio_config,
    label_studio_tasks,
    queue_frame,
    write_queue,
)
from transduce.cli.queue.table import answered, queue_table

__all__ = [
    "answered",
    "choose_rows",
    "interface_of",
    "label_studio_config",
    "label_studio_tasks",
    "merge_answers",
    "queue_frame",
    "queue_table",
    "write_queue",
]
