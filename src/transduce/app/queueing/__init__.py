"""The queue: which rows to ask a person about, and the answers read back."""

from transduce.app.queueing.answers import merge_answers
from transduce.app.queueing.asking import answered, queue_table
from transduce.app.queueing.choosing import (
    choose_rows,
    interface_of,
    label_studio_config,
    label_studio_tasks,
    queue_frame,
    write_queue,
)

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
