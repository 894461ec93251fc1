"""The paper, regenerated: one short module a figure, table or claim, and the studies that go past it.

A module has KEYS and RESULTS, the columns of its CSV, and

    grid(smoke)         the cells, each a mapping of KEYS; few of them where smoke is true
    run(source, cell)   rows of RESULTS for one cell
    plot(rows)          a figure, or
    table(rows)         a table in Markdown, or both
    verdicts(rows)      what the paper claims, what we see, and why they differ

`python -m experiments NAME` runs the cells that are missing, writes results/NAME.csv and results/NAME.svg, and prints
its section of the page; `all` does so for every study and writes docs/reproduction.md, and so does `page`, which runs
nothing.
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
)
"""Names of the modules, in the order of the page."""
