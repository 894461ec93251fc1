"""The paper, reproduced: one short module for each figure, table or claim, and studies that go beyond it.

A module defines KEYS and RESULTS, the columns of its CSV file, and

    grid(smoke)         the cells, each a mapping of KEYS; only a few if smoke is true
    run(source, cell)   rows of RESULTS for one cell
    plot(rows)          a figure, or
    table(rows)         a table in Markdown, or both
    verdicts(rows)      what the paper claims, what we find, and why they differ
    unready(source, cells)  why cells cannot be run, None if they can; optional

and, if it draws a figure of the paper, PAPER_SHOWS: what that figure shows, and what the text says of it.

`python -m experiments NAME` runs the cells that are missing, writes results/NAME.csv and results/NAME.svg, and prints
its section of the page; `--only KEY=VALUE,...` limits it to some cells. `all` runs every study and writes
docs/reproduction.md. `page` writes it from existing results.
"""

STUDIES = (
    "table1",
    "figure1",
    "annealing",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "claims",
    "leaderboard",
    "priors",
    "partial_labels",
    "class_sizes",
    "quantification",
    "more_answers",
    "review",
    "none_of_these",
    "vectors",
    "text_features",
    "zero_labels",
    "noisy_guesses",
    "sequences",
)
"""Names of the modules, in the order of the page."""
OF_VECTORS = ("vectors", "text_features", "zero_labels", "noisy_guesses")
"""Those that also need --vectors DIR."""
