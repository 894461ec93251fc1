"""From a file to the table that is labelled: old results taken off, answers filled in, odd labels pointed out."""

from collections.abc import Sequence

from transduce.cli.columns import choose_columns
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.formats.errors import shown
from transduce.cli.previous_results import without_results
from transduce.cli.progress import Listener
from transduce.cli.queue import answered
from transduce.cli.validation import label_notes


def prepared(
    table: Table,
    text: Sequence[str],
    label: str | None,
    answers: str | None,
    listener: Listener,
    *,
    notes: bool = True,
    flat: bool = False,
) -> Table:
    """The table with all labels that people gave and no others; what was done, and what is odd about them, is said."""
    column = choose_columns(table, text, label, texts=False).label
    assert column is not None
    table, said = without_results(table, column)
    if answers is not None:
        table, more = answered(table, column, read_table(answers))
        said = [*said, *more]
    for sentence in said:
        listener.say(shown(sentence))
    for sentence in label_notes(labels_of(table, column).to_list(), flat=flat) if notes else ():
        listener.say(f"Note: {shown(sentence)}")
    return table
