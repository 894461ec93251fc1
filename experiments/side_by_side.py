"""A figure of the paper: our picture in one column, and in the other what the paper shows and says, with our verdict.

Markdown has no columns, so this is a table in HTML with Markdown in its cells. The site and code forges show both
columns, and as plain text one follows the other.
"""

from collections.abc import Sequence
from textwrap import fill

from experiments.cells import module
from experiments.study import Verdict

BLOCK = """### {title}

<table class="side-by-side"><tr><td width="58%">

![{title} by our code: {subject}]({picture})

</td><td width="42%">

{shows}

{claims}

Numbers: {details}.

</td></tr></table>
"""


def is_figure(name: str) -> bool:
    """Whether a study draws a figure of the paper."""
    return hasattr(module(name), "PAPER_SHOWS")


def title(name: str) -> str:
    """The name of a figure: figure1 is Figure 1."""
    return f"Figure {name.removeprefix('figure')}"


def block(name: str, subject: str, verdicts: Sequence[Verdict], picture: str, details: str) -> str:
    """The picture of a study beside the paper's claims about it, without our own, and a link to the details."""
    theirs = [verdict for verdict in verdicts if not verdict.is_own]
    shows = fill(f"**The paper:** {module(name).PAPER_SHOWS}", 116)
    words = {"title": title(name), "subject": subject, "picture": picture, "details": details}
    return BLOCK.format(shows=shows, claims=_claims(theirs), **words)


def _claims(verdicts: Sequence[Verdict]) -> str:
    """Every claim once, with the paper's words for each data set and our verdict; equal ones are merged."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for verdict in verdicts:
        where, is_split, claim = verdict.claim.partition(": ")
        what = f"{claim[0].upper()}{claim[1:]}" if is_split else verdict.claim
        places = found.setdefault(what, {}).setdefault((verdict.paper, verdict.word), [])
        places += [where] if is_split else []
    return "\n\n".join(
        "\n".join([f"{what}:\n", *(_line(*key, places) for key, places in each.items())])
        for what, each in found.items()
    )


def _line(paper: str, word: str, places: Sequence[str]) -> str:
    where = f" ({'; '.join(places)})" if places else ""
    return f"- *{paper}*{where}: **{word}**"
