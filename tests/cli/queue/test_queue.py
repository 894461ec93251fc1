"""The queue: rows by definition, no text twice, better than chance; answers reach the rows they were asked for."""

import json
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score

from transduce import TransductiveClassifier
from transduce.cli.errors import InputError
from transduce.cli.formats import Table, labels_of, read_table
from transduce.cli.queue import (
    choose_rows,
    label_studio_config,
    label_studio_tasks,
    merge_answers,
    queue_frame,
    write_queue,
)
from transduce.datasets import load_clinc150
from transduce.io.atomic_write import WriteError


def merged_frame(documents, column, answers, name):
    """The documents with the answers in their label column."""
    labels = labels_of(Table("the documents", documents, ""), column).to_list()
    filled = merge_answers(documents, column, labels, Table(name, answers, ""), lambda _: None)
    return documents.with_columns(pl.Series(column, filled, dtype=pl.String))


NASTY = ["=1+1", "-a\nb", 'say "hi", ok; no', "  spaced ", "É\u0301 ünï", "\ttab", "'quoted", "1.0", "x\r\ny", "@home"]
CLASSES = ["tea & <milk>", 'the "best"', "it's", "a/b", "=sum"]


def _random_rows(n, seed, n_classes=4):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, 30, 0.2, format="csr", random_state=seed, dtype=np.float64)
    return rng.dirichlet(np.full(n_classes, 0.5), n), X


def _brute_force(P, X, n):
    """The definition, with all cosines at hand."""
    rows = np.asarray(X.todense())
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    cosines = rows @ rows.T
    best = np.sort(P, axis=1)
    worth = (1 - best[:, -1] + best[:, -2]) * cosines.mean(axis=1)
    chosen = []
    for _ in range(n):
        novelty = 1 - cosines[:, chosen].max(axis=1, initial=0).clip(0, 1)
        value = worth * novelty**4
        value[chosen] = -1
        chosen.append(int(value.argmax()))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_the_definition(seed):
    P, X = _random_rows(200, seed)
    assert choose_rows(P, X, 12).tolist() == _brute_force(P, X, 12)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_and_scale_do_not_matter(seed):
    P, X = _random_rows(300, seed)
    order = np.random.default_rng(seed + 9).permutation(300)
    assert order[choose_rows(P[order], X[order], 20)].tolist() == choose_rows(P, X, 20).tolist()
    scaled = sparse.diags(np.random.default_rng(1).uniform(0.1, 9, 300)) @ X
    assert choose_rows(P, scaled, 20).tolist() == choose_rows(P, X, 20).tolist()


def test_float32_and_sparse_arrays_give_the_same_rows_and_nothing_is_changed():
    P, X = _random_rows(300, 0)
    before, P_before = X.copy(), P.copy()
    chosen = choose_rows(P, X, 20)
    assert np.array_equal(choose_rows(P.astype(np.float32), sparse.csr_array(X.astype(np.float32)), 20), chosen)
    assert (before != X).nnz == 0
    assert np.array_equal(X.indices, before.indices)
    assert np.array_equal(P, P_before)


def test_no_text_twice_even_when_copies_would_fill_the_pool():
    P, X = _random_rows(40, 3)
    copies = np.concatenate((np.repeat(np.arange(3), 2000), np.arange(3, 40)))
    P[:3] = 0.25  # the copied ones are the most uncertain
    chosen = choose_rows(P[copies], X[copies], 40)
    texts = copies[chosen]
    assert len(set(texts.tolist())) == len(chosen) == len({tuple(row) for row in X.toarray().tolist()})
    first_of_each = {text: int(np.flatnonzero(copies == text)[0]) for text in texts.tolist()}
    assert [first_of_each[text] for text in texts.tolist()] == chosen.tolist()


def test_near_copies_wait_while_there_is_something_new():
    X = sparse.csr_matrix(np.vstack((np.eye(5), np.eye(5) + 0.01 * np.roll(np.eye(5), 1, axis=1))))
    chosen = choose_rows(np.full((10, 2), 0.5), X, 5)
    assert sorted(chosen % 5) == [0, 1, 2, 3, 4]


def test_certain_rows_and_empty_rows_come_last_but_come():
    X = sparse.csr_matrix(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    P = np.array([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2], [0.5, 0.5]])
    assert choose_rows(P, X, 10).tolist() == [1, 2, 0, 3]
    assert sorted(choose_rows(np.ones((4, 1)), X, 4)) == [0, 1, 2, 3]


def test_the_seed_decides_between_equals_and_only_the_seed():
    X, P = sparse.eye(50, format="csr"), np.full((50, 2), 0.5)
    same = [choose_rows(P, X, 5, seed=1).tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert len({tuple(choose_rows(P, X, 5, seed=seed)) for seed in range(5)}) > 1


def test_invalid_arguments_are_refused():
    P, X = _random_rows(10, 0)
    with pytest.raises(InputError, match="1 or more, but is 0"):
        choose_rows(P, X, 0)
    with pytest.raises(ValueError, match="10 rows of X"):
        choose_rows(P[:5], X, 2)
    with pytest.raises(ValueError, match="finite"):
        choose_rows(np.full((10, 2), np.nan), X, 2)


def _fit(X, truth, labeled):
    names, sizes = np.unique(truth[~labeled], return_counts=True)
    prior = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    model = TransductiveClassifier(annealing="paper", class_prior=prior, random_state=0, n_jobs=1)
    return model.fit(X, np.where(labeled, truth, ""))


def _gains(seed, n_labeled=60, n=50, n_draws=3):
    """Macro F on documents nobody was asked about: before, after n queued answers, after n random ones (averaged)."""
    texts, intents, _ = load_clinc150()
    domains = np.array([intent.split("/")[0] for intent in intents])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    pile, new = order[:5000], order[5000:15000]
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X, X_new, truth = vectorizer.fit_transform(texts[pile]), vectorizer.transform(texts[new]), domains[pile]
    labeled = np.zeros(len(pile), bool)
    labeled[rng.choice(len(pile), n_labeled, replace=False)] = True
    unlabeled = np.flatnonzero(~labeled)

    def score(asked):
        known = labeled.copy()
        known[unlabeled[asked]] = True
        return f1_score(domains[new], _fit(X, truth, known).predict(X_new), average="macro")

    model = _fit(X, truth, labeled)
    queued = choose_rows(model.label_distributions_[unlabeled], X[unlabeled], n, seed=seed)
    drawn = [score(rng.choice(unlabeled.size, n, replace=False)) for _ in range(n_draws)]
    return score([]), score(queued), np.mean(drawn)


@pytest.mark.slow
def test_fifty_queued_answers_help_at_least_as_much_as_fifty_random_ones():
    before, queued, drawn = np.mean([_gains(seed) for seed in range(3)], axis=0)
    assert queued >= drawn > before


def _queue():
    table = pl.DataFrame(
        {"id": range(len(NASTY)), "the text": NASTY, "body": NASTY[::-1], "label": [None] * len(NASTY)}
    )
    rows = np.array([7, 0, 3, 5, 1, 9])
    suggestions = [CLASSES[row % len(CLASSES)] for row in rows]
    return table, queue_frame(table, rows, suggestions, rows / 10, ["the text", "body"])


def test_the_queue_has_rows_from_one_empty_labels_and_the_texts_of_the_rows():
    table, frame = _queue()
    assert frame.columns == ["row", "label", "suggested", "confidence", "the text", "body"]
    assert frame["row"].to_list() == [8, 1, 4, 6, 2, 10]
    assert set(frame["label"]) == {""}
    assert all(table["body"][row - 1] == text for row, text in frame.select("row", "body").iter_rows())
    assert queue_frame(table, [], [], [], ["body"]).height == 0
    assert queue_frame(table, [1], ["x"], [0.5], []).columns == frame.columns[:4]


def test_a_text_column_with_a_name_of_the_queue_is_refused():
    with pytest.raises(InputError, match="'row' has the name of a column of the queue"):
        queue_frame(pl.DataFrame({"row": ["a"]}), [0], ["x"], [0.5], ["row"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_answers_written_read_and_merged_land_in_their_rows(tmp_path, suffix):
    table, frame = _queue()
    target = str(tmp_path / f"queue{suffix}")
    write_queue(frame, target, CLASSES, ["the text", "body"])
    back = read_table(target)
    answers = [None if row == 6 else frame["suggested"][k] for k, row in enumerate(frame["row"])]
    filled = back.frame.with_columns(pl.Series("label", answers, dtype=pl.String))
    write_queue(filled, target, CLASSES, ["the text", "body"])  # as a spreadsheet would: the class "=sum" is marked now
    merged = merged_frame(table, "label", read_table(target).frame, target)
    expected = [None] * len(NASTY)
    for row, answer in zip(frame["row"], answers, strict=True):
        expected[row - 1] = answer
    assert merged["label"].to_list() == expected
    assert_frame_equal(merged.drop("label"), table.drop("label"))


def test_label_studio_shows_every_text_and_knows_every_choice(tmp_path):
    _, frame = _queue()
    write_queue(frame, str(tmp_path / "queue.json"), CLASSES, ["the text", "body"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.json", "queue.xml"]
    tasks = json.loads((tmp_path / "queue.json").read_text("utf-8"))
    assert tasks == label_studio_tasks(frame, ["the text", "body"], CLASSES)
    view = ElementTree.fromstring((tmp_path / "queue.xml").read_text("utf-8"))
    choices = [choice.get("value") for choice in view.iter("Choice")]
    assert choices == CLASSES
    variables = [text.get("value") for text in view.iter("Text")]
    for task, entry in zip(tasks, frame.iter_rows(named=True), strict=True):
        assert [task["data"][variable.removeprefix("$")] for variable in variables] == [
            entry["the text"],
            entry["body"],
        ]
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert result["value"]["choices"] == [entry["suggested"]]
        assert prediction["score"] == entry["confidence"]
        assert view.find(f".//Choices[@name='{result['from_name']}']").get("toName") == result["to_name"]
        assert view.find(f".//Text[@name='{result['to_name']}']") is not None
    assert all(variable.removeprefix("$").isidentifier() for variable in variables)


def test_an_export_of_label_studio_is_merged(tmp_path):
    table, frame = _queue()
    tasks = label_studio_tasks(frame, ["the text", "body"], CLASSES)
    for number, task in enumerate(tasks, 100):
        result = task.pop("predictions")[0]["result"]
        task.update(id=number, annotations=[{"result": result, "was_cancelled": number == 103}])
    (tmp_path / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    answers = read_table(str(tmp_path / "export.json"))
    merged = merged_frame(table, "label", answers.frame, answers.name)["label"].to_list()
    given = {row: label for row, label in frame.select("row", "suggested").iter_rows() if row != frame["row"][3]}
    assert merged == [given.get(row) for row in range(1, len(NASTY) + 1)]


def test_a_suggestion_that_is_no_choice_is_not_predicted():
    frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["milk"], [0.5], ["text"])
    assert "predictions" not in label_studio_tasks(frame, ["text"], ["tea"])[0]


def test_without_texts_label_studio_shows_the_row():
    assert 'value="$row"' in label_studio_config(["tea"], [])


def test_a_class_that_xml_cannot_hold_is_named_and_nothing_is_written(tmp_path):
    frame = queue_frame(pl.DataFrame({"text": ["a"]}), [0], ["a\x01"], [0.5], ["text"])
    with pytest.raises(InputError, match=r"class 'a\\x01'"):
        write_queue(frame, str(tmp_path / "queue.json"), ["a\x01"], ["text"])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_reported(tmp_path):
    _, frame = _queue()
    for name in ("queue.json", "queue.csv"):
        with pytest.raises((InputError, WriteError), match=r"missing.*queue"):
            write_queue(frame, str(tmp_path / "missing" / name), CLASSES, ["body"])


def _table():
    return pl.DataFrame({"text": ["a", "b", "c"], "topic": ["tea", None, " "]})


@pytest.mark.parametrize("row", [2, 2.0, "2", " 2 ", "2.0"])
@pytest.mark.parametrize("column", ["label", "topic"])
def test_row_numbers_are_read_as_tables_give_them(row, column):
    merged = merged_frame(_table(), "topic", pl.DataFrame({"row": [row], column: ["milk"]}), "a.csv")
    assert merged["topic"].to_list() == ["tea", "milk", None]


def test_numbers_as_labels_and_a_column_without_any_label():
    table = pl.DataFrame({"topic": [1.0, None, None]})
    merged = merged_frame(table, "topic", pl.DataFrame({"row": [1, 3], "label": ["1", "2"]}), "a.csv")
    assert merged["topic"].to_list() == ["1", None, "2"]
    empty = pl.DataFrame({"topic": [None, None]})
    assert merged_frame(empty, "topic", pl.DataFrame({"row": [2], "label": [7]}), "a")["topic"].to_list() == [
        None,
        "7",
    ]


def test_blank_lines_and_repeated_equal_answers_are_fine():
    answers = pl.DataFrame({"row": ["2", "", "2", "3"], "label": ["x", "", "x", None], "note": ["sure", "", "", "?"]})
    assert merged_frame(_table(), "topic", answers, "a.csv")["topic"].to_list() == ["tea", "x", None]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"row": [1], "label": ["milk"]}, r"row 1 has the label 'tea', but a\.csv says 'milk'"),
        ({"row": [2, 2], "label": ["x", "y"]}, r"a\.csv labels row 2 twice, 'x' and 'y'"),
        ({"row": [2, 4], "label": ["x", "y"]}, r"row 2 of a\.csv labels row 4, .*rows 1 to 3"),
        ({"row": ["0"], "label": ["x"]}, r"row 1 of a\.csv labels row 0"),
        ({"row": ["2.5"], "label": ["x"]}, r"row number in 'row', but has '2\.5'"),
        ({"row": [2.5], "label": ["x"]}, r"row number in 'row', but has '2\.5'"),
        ({"row": ["-1"], "label": ["x"]}, "row number"),
        ({"row": [None], "label": ["x"]}, "row number in 'row', but has ''"),
        ({"row": ["9" * 30], "label": ["x"]}, "row number"),
        ({"row": [2], "label": ["x"], "text": ["c"]}, r"row 2 of a\.csv has a different text in 'text'.*sorted\?"),
        ({"row": [2], "label": [""], "text": ["c"]}, "sorted"),
        ({"label": ["x"]}, "no 'row'"),
        ({"row": [2]}, "no 'topic'"),
    ],
)
def test_answers_that_do_not_fit_are_named(answers, message):
    with pytest.raises(InputError, match=message):
        merged_frame(_table(), "topic", pl.DataFrame(answers), "a.csv")


def test_a_label_column_that_is_not_there_is_named():
    with pytest.raises(InputError, match="topik"):
        merged_frame(_table(), "topik", pl.DataFrame({"row": [2], "label": ["x"]}), "a.csv")
