"""transduce check: check a file for common problems."""

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from transduce.cli import messages
from transduce.cli.options import INPUT_OPTIONS, MESSAGE_OPTIONS

if TYPE_CHECKING:
    from transduce.cli.validation import Finding


@click.command(short_help="Check a file for common problems.")
@click.argument("file")
@click.option("--label", metavar="COL", help="Column of the labels.")
@click.option("--prior", multiple=True, metavar="NAME=SIZE|FILE", help="Class sizes to compare with the labels.")
@click.option("--none", metavar="SIZE", help="Rows that fit no class: 5%; at most 5%: 0%:5%; 120.")
@click.option("--flat", is_flag=True, help="Treat 'a/b' labels as plain names.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a problem or a warning.")
@INPUT_OPTIONS
@MESSAGE_OPTIONS
def check(file: str, **options: Any) -> int:
    """Check FILE for common problems."""
    from transduce.class_prior.spec import read_sizes
    from transduce.cli.classes import read_class_names
    from transduce.cli.columns import choose_text
    from transduce.cli.formats import texts_of
    from transduce.cli.labeled_table import read_labeled_table
    from transduce.cli.none_option import divide_sizes, none_rows, read_none
    from transduce.cli.prior_options import plain_rows, prior_errors, read_prior
    from transduce.cli.progress import Progress
    from transduce.cli.validation import check_documents, has_warnings
    from transduce.errors import PriorError

    with Progress.from_options(options) as progress:
        stated, size, flat = read_prior(options["prior"]), read_none(options["none"]), options["flat"]
        source = read_labeled_table(file, options, progress.say, notes=False)
        table, labels = source.table, source.labels
        text = choose_text(table, options["text"], source.column, progress.say, required=options["vectors"] is None)
        texts = texts_of(table, text).to_list() if text else [f"row {i}" for i in range(len(labels))]
        names = read_class_names(Counter(name for name in labels if name is not None), flat=flat)
        n_unlabeled = sum(name is None or len(names.candidates.get(name, ())) > 1 for name in labels)
        if isinstance(stated, str):
            stated = read_sizes(stated, names.classes) if stated == "equal" else {}
        none = none_rows(size, n_unlabeled)
        if none is not None:
            counts = Counter(name for name in labels if name in names.classes)
            with prior_errors():
                stated = divide_sizes(stated, names.classes, counts, none, n_unlabeled, tree=names.tree)
        plain: dict[str, float] = {}
        with suppress(PriorError):  # which is a finding
            plain = plain_rows(stated, names.classes, n_unlabeled, len(labels) - n_unlabeled, tree=names.tree)
        style = {"tree": names.tree, "flat": flat, "row_is_line": table.row_is_line}
        findings = check_documents(texts, labels, stated, none=none, plain_rows=plain, **style)
    n_rows, n_classes = len(labels), len(names.classes)
    _print_findings(file, findings, (n_rows, n_rows - n_unlabeled, n_classes), as_json=options["as_json"])
    return int(options["strict"] and has_warnings(findings))


def _print_findings(file: str, findings: "list[Finding]", sizes: tuple[int, int, int], *, as_json: bool) -> None:
    """Print findings and how many there are; `sizes` are the numbers of rows, labelled rows and classes."""
    from transduce.cli import validation

    if as_json:
        counts = dict(zip(("rows", "labelled", "classes"), sizes, strict=True)) | validation.count_findings(findings)
        messages.print_json({"file": file, **counts, "findings": validation.as_json(findings)})
        return
    shown = validation.render_findings(findings)
    messages.print_text("\n".join([*([shown] if shown else []), validation.verdict(*sizes, findings)]))
