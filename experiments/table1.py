"""Properties of the data sets, ours beside the paper's.

Depth is that of the deepest leaf below the root; inner nodes and all nodes are counted with the root. Features are in
use where some row has them.
"""

from experiments.data import Source
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, markdown
from transduce import Taxonomy

KEYS = ("set",)
RESULTS = ("n_rows", "n_features", "n_used", "n_classes", "depth", "n_inner", "n_nodes")
PAPER = {
    "news20_train": ("20NG", 19928, 62061, 20, "3/8"),
    "20ng_raw": ("20NG", 19928, 62061, 20, ""),
    "la1": ("la1", 3204, 31472, 6, ""),
    "webkb7": ("webkb", 8277, 3000, 7, ""),
    "ohscal": ("ohscal", 11162, 11465, 10, ""),
    "r8": ("reut8", 8201, 10783, 8, ""),
    "sector_part": ("sector", 9619, 55197, 105, ""),
    "mnist": ("mnist", 70000, 779, 10, ""),
    "usps": ("usps", 9298, 256, 10, ""),
    "rcv_mcat": ("rcv-mcat", 154706, 11429, 7, "2/10"),
    "rcv1_topics": ("gcat", 23149, 47236, 2, ""),
}
"""The paper's name of each set, N, d, m, and D/I of its tree: Table 1; gcat from the section on maxent."""
NOT_HAD = ("aut-avn", 71175, 20707, 2)
IN_A_TREE = ("news20_train", "rcv_mcat")
REASONS = {
    "news20_train": "The training file of the same collection; its test file was not available.",
    "20ng_raw": "The texts, by date and without duplicates, headers left out; every word is a feature.",
    "webkb7": "Nearly the same pages; the paper keeps 3000 features and does not say which, ours are all stems.",
    "r8": "The usual split of Reuters into eight classes; the paper's choice of documents is not known.",
    "sector_part": "Two of the three files of the same collection; the largest was not available.",
    "mnist": "The same images, of 784 pixels; the paper does not say which five it leaves out.",
    "rcv_mcat": "Documents of the public subsets of rcv1 with exactly one of the seven leaves; "
    "features that none of them has are kept.",
    "rcv1_topics": "The public subsets of rcv1, equal rows merged, in the place of its training file.",
}


def grid(smoke: bool) -> list[Row]:
    return [{"set": name} for name in (("la1", "rcv_mcat") if smoke else PAPER)]


def run(source: Source, cell: Row) -> list[Row]:
    X, y = source.load(cell["set"])
    row = {
        "n_rows": X.shape[0],
        "n_features": X.shape[1],
        "n_used": int((X.getnnz(axis=0) > 0).sum()),
        "n_classes": int(y.max()) + 1,
    }
    tree = ("", "", "")
    if cell["set"] in IN_A_TREE:
        tree = _tree(source.tree(cell["set"]))
    return [row | dict(zip(("depth", "n_inner", "n_nodes"), tree, strict=True))]


def _tree(paths: list[str]) -> tuple[int, int, int]:
    """Depth, inner nodes and all nodes; the root is the one top node, or else above them all."""
    tree = Taxonomy.create(paths)
    is_above = len({path.split("/")[0] for path in paths}) > 1
    return (
        max(map(len, tree.leaf_paths)) - 1 + is_above,
        tree.n_nodes - tree.n_classes + is_above,
        tree.n_nodes + is_above,
    )


def table(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        name, *paper, tree = PAPER[row["set"]]
        ours = [str(row[key]) for key in ("n_rows", "n_features", "n_used", "n_classes")]
        shape = f"{row['depth']}/{row['n_inner']}, {row['n_nodes']} nodes" if row["n_inner"] else ""
        kind = "multi-class, and in a tree" if shape else "multi-class" if row["n_classes"] > 2 else "binary"
        lines.append([name, row["set"], kind, *map(str, paper), tree, *ours, shape])
    lines.append([NOT_HAD[0], "was not available", "binary", *map(str, NOT_HAD[1:]), *[""] * 6])
    head = ["paper's set", "ours", "type", "paper: N", "d", "m", "D/I", "ours: N", "d", "d in use", "m", "depth/inner"]
    return markdown(head, lines)


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for row in rows:
        name, *paper, tree = PAPER[row["set"]]
        ours = [row["n_rows"], row["n_features"], row["n_classes"]]
        text = f"{ours[0]} x {ours[1]}, {row['n_used']} of them in use; {ours[2]} classes"
        word = AGREES if ours == paper else PARTLY if ours[2] == paper[2] else DIFFERS
        reason = "" if word == AGREES else REASONS.get(row["set"], "")
        said = f"{paper[0]} x {paper[1]}; {paper[2]} classes"
        cause = "Our copy of the data set is similar to the paper's, not the same" if word == PARTLY else ""
        found.append(Verdict(f"{row['set']} is the paper's {name}", said, text, word, reason, cause))
        if row["n_inner"]:
            found.append(_tree_verdict(row, tree))
    said = f"{NOT_HAD[1]} x {NOT_HAD[2]}; {NOT_HAD[3]} classes"
    reason = (
        "It was not available; comp.* against the rest of 20 newsgroups stands in for it, and for its size halves of "
        "documents of gcat."
    )
    return [*found, Verdict(f"{NOT_HAD[0]} is the paper's", said, "was not available", DIFFERS, reason)]


def _tree_verdict(row: Row, tree: str) -> Verdict:
    ours = f"depth {row['depth']}, {row['n_inner']} inner nodes, {row['n_nodes']} nodes in all"
    depth, inner = map(int, tree.split("/"))
    word, reason = DIFFERS, "The tree is not the paper's."
    if (depth, inner) == (row["depth"], row["n_inner"]):
        word, reason = AGREES, ""
    elif (depth, inner) == (row["depth"], row["n_nodes"]):
        word, reason = AGREES, "The paper's number is that of all nodes of the same tree, leaves among them."
    return Verdict(f"The tree of {row['set']}", f"depth {depth}, {inner} internal nodes", ours, word, reason)
