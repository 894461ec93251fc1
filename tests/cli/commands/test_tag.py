"""transduce tag: files of sequences are filled in, counts and constraints are met, and models tag other files."""

import json
import re
from typing import NamedTuple

import pytest
from helpers.commands import digests
from helpers.references import WRITERS, labels_of, references, tokens_of, write_references

from transduce.cli import progress
from transduce.cli.main import run
from transduce.cli.tagging import fit
from transduce.cli.tagging.corpus import read_corpus
from transduce.sequences import blocks
from transduce.sequences.tagger_file import load_tagger, save_tagger

N, N_TAGGED = 60, 8
REFS = references(N)
LABELS = {"author", "date", "journal", "title", "volume"}
CONSTRAINTS = ["title: once", "author before title", "volume needs journal"]


class Tagged(NamedTuple):
    """A folder with a file of references, and what `tag` made of it."""

    folder: object
    file: object
    out: object
    model: object
    report: object


@pytest.fixture(scope="module")
def tagged(tmp_path_factory) -> Tagged:
    folder = tmp_path_factory.mktemp("tagged")
    file = write_references(folder, "conll", REFS, N_TAGGED)
    found = Tagged(folder, file, *(folder / name for name in ("out.conll", "m.safetensors", "r.html")))
    stated = [word for one in CONSTRAINTS for word in ("--constraint", one)]
    outputs = ["-o", found.out, "--model", found.model, "--report", found.report]
    assert run([str(one) for one in ("tag", file, *outputs, *stated, "--quiet")]) == 0
    return found


def accuracy(path) -> float:
    pairs = [
        pair for given, truth in zip(read_corpus(str(path)).given, labels_of(REFS), strict=True)
        for pair in zip(given, truth, strict=True)
    ]  # fmt: skip
    return sum(a == b for a, b in pairs) / len(pairs)


def test_every_token_has_a_label_and_given_ones_are_kept(tagged):
    done = read_corpus(str(tagged.out))
    assert done.tokens == tokens_of(REFS)
    assert done.given[:N_TAGGED] == labels_of(REFS)[:N_TAGGED]
    assert {label for labels in done.given for label in labels} == LABELS
    assert accuracy(tagged.out) > 0.9
    assert [line.split("\t")[:2] for line in tagged.out.read_text().splitlines()] == [
        line.split("\t")[:2] for line in tagged.file.read_text().splitlines()
    ]


def test_constraints_hold(tagged):
    for labels in read_corpus(str(tagged.out)).given[N_TAGGED:]:
        names = [block.label for block in blocks(labels)]
        assert names.count("title") <= 1
        assert "title" not in names or "author" not in names[names.index("title") :]
        assert "volume" not in names or "journal" in names


@pytest.mark.parametrize("format", WRITERS)
def test_all_formats_give_the_same_labels(format, tagged, run_ok, tmp_path):
    file = write_references(tmp_path, format, REFS, N_TAGGED)
    out = tmp_path / f"out.{format}"
    stated = [word for one in CONSTRAINTS for word in ("--constraint", one)]
    run_ok("tag", file, "-o", out, *stated)
    assert read_corpus(str(out)).given == read_corpus(str(tagged.out)).given


def test_stated_counts_are_met(tagged, run_ok, tmp_path):
    n_tokens = sum(map(len, tokens_of(REFS)[N_TAGGED:]))
    result = run_ok("tag", tagged.file, "-o", tmp_path / "out.conll", "--count", "title=5%:10%", "--json")
    found = json.loads(result.out)
    counts = {row["label"]: row for row in found["counts"]}
    assert counts["title"]["asked_low"] == pytest.approx(0.05 * n_tokens, abs=1)
    assert counts["title"]["asked_high"] == pytest.approx(0.10 * n_tokens, abs=1)
    assert 0.05 * n_tokens <= counts["title"]["assigned"] <= 0.10 * n_tokens
    assert sum(row["assigned"] for row in counts.values()) == n_tokens
    assert found["written"] == [str(tmp_path / "out.conll")]


def test_equal_commands_write_equal_files(tagged, run_ok, tmp_path):
    for name in ("a", "b"):
        run_ok("tag", tagged.file, "-o", tmp_path / f"{name}.conll", "--jobs", 1 if name == "a" else 2)
    assert (tmp_path / "a.conll").read_bytes() == (tmp_path / "b.conll").read_bytes()


def test_the_summary_says_what_was_done(tagged, run_ok, tmp_path):
    result = run_ok("tag", tagged.file, "-o", tmp_path / "out.conll")
    assert f"{N_TAGGED} labelled sequences and {N - N_TAGGED} others" in result.err
    assert re.search(r"Labelled \d+ tokens in [\d.]+ s\. .*Wrote ", result.err)
    assert result.out == ""
    assert run_ok("tag", tagged.file, "-o", tmp_path / "out.conll", "--quiet").err == ""


def test_a_stored_model_tags_other_files(tagged, run_ok, tmp_path):
    other = references(20, seed=1)
    for format in WRITERS:
        new = write_references(tmp_path, format, other, 1, "new")
        out = tmp_path / f"new-tagged.{format}"
        found = json.loads(run_ok("predict", tagged.model, new, "-o", out, "--json").out)
        done = read_corpus(str(out))
        expected = load_tagger(str(tagged.model))[0].predict(tokens_of(other))
        assert done.given == [labels_of(other)[0], *expected[1:]]
        assert found["sequences"] == 20
        assert sum(found["labels"].values()) == sum(map(len, expected[1:]))


def test_a_file_with_tokens_only_can_be_tagged(tagged, run_ok, tmp_path):
    (tmp_path / "new.conll").write_text("A.\nOrwil.\nFast\nmaps.\n")
    run_ok("predict", tagged.model, tmp_path / "new.conll", "-o", tmp_path / "out.conll", "--quiet")
    assert (tmp_path / "out.conll").read_text() == "A.\tauthor\nOrwil.\tauthor\nFast\ttitle\nmaps.\ttitle\n".replace(
        "\t", " "
    )


def test_a_stored_model_follows_labels_that_are_known_in_part(tagged, run_ok, tmp_path):
    (tmp_path / "new.conll").write_text(
        "A.\t!author\nOrwil.\t_\n\nA.\tdate|volume\nOrwil.\t_\n\nA.\ttitle\nOrwil.\tauthor\n"
    )
    run_ok("predict", tagged.model, tmp_path / "new.conll", "-o", tmp_path / "out.conll")
    (first, _), (second, _), last = read_corpus(str(tmp_path / "out.conll")).given
    assert first != "author"
    assert second in ("date", "volume")
    assert last == ["title", "author"]


def test_given_labels_start_the_blocks_that_a_scheme_continues(run_ok, tmp_path):
    sentence = "Ann\tB-PER\nLee\tI-PER\nsaw\tO\nNew\tB-LOC\nYork\tI-LOC\n\n"
    (tmp_path / "a.conll").write_text(sentence * 3 + "Bo\t_\n")
    run_ok("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll", "--model", tmp_path / "m.safetensors")
    (tmp_path / "new.conll").write_text("Ann\tB-LOC\nLee\t_\n")
    run_ok("predict", tmp_path / "m.safetensors", tmp_path / "new.conll", "-o", tmp_path / "out.conll")
    assert read_corpus(str(tmp_path / "out.conll")).given[0] in (["B-LOC", "I-LOC"], ["B-LOC", "O"], ["B-LOC", "B-PER"])


def test_evaluation_by_token_and_by_block(tagged, run_ok, tmp_path):
    truth = write_references(tmp_path, "conll", REFS, N, "truth")
    found = json.loads(run_ok("evaluate", tagged.model, truth, "--json").out)
    n_trained = sum(map(len, tokens_of(REFS)[:N_TAGGED]))
    assert found["tokens"]["trained"] == n_trained
    assert found["tokens"]["rows"] == sum(map(len, tokens_of(REFS))) - n_trained
    guesses = load_tagger(str(tagged.model))[0].predict(tokens_of(REFS)[N_TAGGED:])
    pairs = list(zip(guesses, labels_of(REFS)[N_TAGGED:], strict=True))
    right = sum(a == b for guess, labels in pairs for a, b in zip(guess, labels, strict=True))
    assert found["tokens"]["micro_f"] == pytest.approx(right / found["tokens"]["rows"])
    n_right = sum(len({*blocks(guess)} & {*blocks(labels)}) for guess, labels in pairs)
    n_true = sum(len(blocks(labels)) for _, labels in pairs)
    assert found["blocks"]["sequences"] == N - N_TAGGED
    assert found["blocks"]["micro"]["recall"] == pytest.approx(n_right / n_true)
    text = run_ok("evaluate", tagged.model, truth).out
    assert "tokens with a known label" in text
    assert "blocks of 52 sequences" in text
    assert set(re.findall(r"^(\w+) ", text.split("blocks of")[1], re.M)) == {"label", *LABELS}


def test_evaluation_on_the_training_sequences_is_refused(tagged, run_command, tmp_path):
    truth = write_references(tmp_path, "conll", REFS[:N_TAGGED], N_TAGGED, "trained")
    result = run_command("evaluate", tagged.model, truth)
    assert result.code == 2
    assert "trained with every sequence" in result.err


def test_a_config_file_has_options_for_tag(tagged, run_ok, tmp_path):
    (tmp_path / "c.toml").write_text(
        '[tag]\nconstraint = ["title: once"]\ncount = ["title=5%:10%"]\nannealing = "none"\n'
    )
    result = run_ok("tag", tagged.file, "-o", tmp_path / "o.conll", "--config", tmp_path / "c.toml", "--json")
    assert json.loads(result.out)["settings"]["annealing"] == "none"


def test_blocks_of_a_scheme(run_ok, tmp_path):
    some = [
        [(token, f"{'I' if i and one[i - 1][1] == label else 'B'}-{label}") for i, (token, label) in enumerate(one)]
        for one in REFS
    ]
    file, out = write_references(tmp_path, "conll", some, N_TAGGED), tmp_path / "out.conll"
    result = run_ok(
        "tag", file, "-o", out, "--constraint", "title: exactly once", "--model", tmp_path / "m.safetensors"
    )
    assert "9 labels in the BIO scheme" in result.err
    for labels in read_corpus(str(out)).given[N_TAGGED:]:
        assert [block.label for block in blocks(labels, "BIO")].count("title") == 1
        pairs = zip(["O", *labels], labels, strict=False)
        assert all(after[0] == "B" or before[2:] == after[2:] for before, after in pairs)
    truth = write_references(tmp_path, "conll", some, N, "truth")
    found = json.loads(run_ok("evaluate", tmp_path / "m.safetensors", truth, "--json").out)
    assert set(found["blocks"]["labels"]) == LABELS


def test_labels_that_are_not_valid_in_a_scheme_are_used_without_one(run_command, run_ok, tmp_path):
    (tmp_path / "a.conll").write_text("Ann\tI-PER\nsaw\tO\nBo\tI-PER\nLee\tB-PER\n\nAnn\t_\n")
    result = run_ok("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll")
    assert "3 labels." in result.err
    assert "line 1: 'I-PER' starts a block, which BIO does not allow, so labels are used as they are" in result.err
    result = run_command("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll", "--scheme", "BIO")
    assert result.code == 2
    expected = (
        "a.conll, line 1: 'I-PER' starts a block, which BIO does not allow. Convert the labels, or pass --scheme none."
    )
    assert expected in result.err


def test_labels_that_the_format_cannot_hold_are_refused_before_the_work(run_command, run_ok, tmp_path, monkeypatch):
    rows = [{"tokens": ["Ann", "Lee"], "labels": ["first name", "name"]}] * 2 + [{"tokens": ["Bo"]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run_ok("tag", tmp_path / "a.jsonl", "-o", tmp_path / "b.jsonl", "--model", tmp_path / "m.safetensors")
    (tmp_path / "a.xml").write_text("<all><one>Ann</one></all>")
    monkeypatch.setattr("transduce.sequences.TransductiveTagger.predict", None)
    result = run_command("predict", tmp_path / "m.safetensors", tmp_path / "a.xml", "-o", tmp_path / "b.xml")
    assert result.code == 2
    assert "the label 'first name' cannot be the name of an XML element" in result.err


def test_one_of_a_kind_is_written_in_the_singular(run_ok, tmp_path):
    (tmp_path / "a.conll").write_text("a\tx\nb\ty\na\tx\n\na\t_\n")
    stated = ["--constraint", "x: once"]
    result = run_ok("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll", *stated)
    assert "1 labelled sequence and 1 other, 4 tokens, 2 labels." in result.err
    assert "Labelled 1 token in" in result.err
    assert "Note: 1 sequence breaks a constraint (--report shows them)." in result.err
    result = run_ok("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll", *stated, "--report", tmp_path / "r.html")
    assert "Note: 1 sequence breaks a constraint (see the report)." in result.err


def test_errors_in_the_program_are_not_taken_for_bad_statements(run_command, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("operands could not be broadcast")

    (tmp_path / "a.conll").write_text("a\tx\nb\ty\n\na\t_\n")
    monkeypatch.setattr("transduce.sequences.tagger.ChainTraining", fail)
    with pytest.raises(ValueError, match="broadcast"):
        run_command("tag", tmp_path / "a.conll", "-o", tmp_path / "b.conll")


def test_a_count_that_is_not_known_says_nothing(tagged, run_ok, tmp_path):
    for stated in ([], ["--count", "date=? blocks"]):
        run_ok("tag", tagged.file, "-o", tmp_path / f"{len(stated)}.conll", *stated)
    assert (tmp_path / "0.conll").read_bytes() == (tmp_path / "2.conll").read_bytes()


def test_counts_of_blocks(tagged, run_ok, tmp_path):
    n_other = N - N_TAGGED
    run_ok("tag", tagged.file, "-o", tmp_path / "out.conll", "--count", f"date=={n_other} blocks")
    done = read_corpus(str(tmp_path / "out.conll")).given[N_TAGGED:]
    n_blocks = sum(block.label == "date" for labels in done for block in blocks(labels))
    assert abs(n_blocks - n_other) <= 2


def test_partial_labels_are_respected(run_ok, tmp_path):
    text = write_references(tmp_path, "conll", REFS, N_TAGGED).read_text()
    begin, end = text.split("\n\n", N_TAGGED)[:N_TAGGED], text.split("\n\n", N_TAGGED)[N_TAGGED]
    (tmp_path / "a.conll").write_text(
        "\n\n".join([*begin, end.replace("\t_", "\tdate|volume", 1).replace("\t_", "\t!title")])
    )
    run_ok("tag", tmp_path / "a.conll", "-o", tmp_path / "out.conll")
    labels = [label for one in read_corpus(str(tmp_path / "out.conll")).given[N_TAGGED:] for label in one]
    assert labels[0] in ("date", "volume")
    assert "title" not in labels


@pytest.mark.parametrize("annealing", ["soft", "paper"])
def test_ctrl_c_writes_the_labels_found_so_far(annealing, tagged, run_command, tmp_path, monkeypatch):
    rounds = iter(range(10**9))

    def stop(self, row):
        if next(rounds) >= 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "show_round", stop)
    out, model, page = (tmp_path / name for name in ("o.conll", "m.safetensors", "r.html"))
    result = run_command("tag", tagged.file, "-o", out, "--model", model, "--report", page, "--annealing", annealing)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("transduce: interrupted. The labels found so far are in")
    assert all(read_corpus(str(out)).is_labeled)
    assert load_tagger(str(model))[1]["interrupted"] is True
    assert "Interrupted." in page.read_text()
    assert len(list(tmp_path.iterdir())) == 3


def test_ctrl_c_before_the_first_round_writes_nothing(tagged, run_command, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "choose_scheme", stop)
    result = run_command("tag", tagged.file, "-o", tmp_path / "o.conll")
    assert result.code == 1
    assert "interrupted before anything was written" in result.err
    assert list(tmp_path.iterdir()) == []


def test_inspect_shows_what_is_in_a_tagger(tagged, run_ok, tmp_path):
    text = run_ok("inspect", tagged.model).out
    for shown in ("tagger of sequences", "loss: maxent", "text: none", tagged.file.name, *LABELS, *CONSTRAINTS):
        assert shown in text
    found = json.loads(run_ok("inspect", tagged.model, "--json").out)
    assert (found["format"], set(found["labels"])) == ("transduce-tagger", LABELS)
    assert "labelled_rows" not in found
    bare = str(tmp_path / "bare.safetensors")
    save_tagger(load_tagger(str(tagged.model))[0], bare)
    assert "tagger of sequences" in run_ok("inspect", bare).out


BAD = {
    "no file": ("tag none.conll -o out.conll", "there is no such file"),
    "no output": ("tag refs.conll", "Missing option '-o'"),
    "other format": ("tag refs.conll -o out.xml", "cannot be written as another format"),
    "input as output": ("tag refs.conll -o refs.conll", "is also an input"),
    "unknown suffix": ("tag refs.pdf -o out.conll", "cannot tell the format"),
    "a table": ("tag refs.csv -o out.csv", "refs.csv: cannot tell the format.*use transduce label"),
    "unknown output suffix": ("tag refs.conll -o out.pdf", "must end in"),
    "count without a size": ("tag refs.conll -o out.conll --count author", "--count must be NAME=SIZE"),
    "count twice": ("tag refs.conll -o out.conll --count author=1% --count author=2%", "states 'author' twice"),
    "count without a number": ("tag refs.conll -o out.conll --count author=many", "--count author=many"),
    "count of blocks without a number": (
        "tag refs.conll -o out.conll --count 'author=many blocks'",
        "--count author=many blocks must be a fraction .*, a number of blocks",
    ),
    "constraint on O": ("tag outside.conll -o out.conll --constraint 'O: once'", "O is outside of all blocks"),
    "count of an unknown label": ("tag refs.conll -o out.conll --count auhtor=10%", "auhtor"),
    "counts above all tokens": (
        "tag refs.conll -o out.conll --count author=80%:90% --count title=70%:90%",
        r"--count asks for at least \d+ tokens, but there are \d+ to label",
    ),
    "constraint without a meaning": ("tag refs.conll -o out.conll --constraint 'title maybe'", "title maybe"),
    "constraint on an unknown label": ("tag refs.conll -o out.conll --constraint 'tilte: once'", "tilte"),
    "a cycle": (
        "tag refs.conll -o out.conll --constraint 'author before title' --constraint 'title before author'",
        "before",
    ),
    "no labels": ("tag plain.conll -o out.conll", "must have at least two labels, but has 0"),
    "one label": ("tag one.conll -o out.conll", "must have at least two labels, but has 1"),
    "no scheme": ("tag refs.conll -o out.conll --scheme BIO", "needs labels such as B-title"),
    "blocks of an unknown label": ("tag refs.conll -o out.conll --count 'tilte=9 blocks'", "Did you mean 'title'"),
    "a pattern that cannot be read": ("tag refs.conll -o out.conll --constraint 'date: /[/'", "cannot be read"),
    "constraints that leave nothing": (
        "tag refs.conll -o out.conll --constraint 'title: exactly once' --constraint 'title: not /./'",
        "allow no labels",
    ),
    "a nul": ("tag nul.conll -o out.conll", "line 1: .*NUL"),
    "a bomb": ("tag bomb.xml -o out.xml", "line 1: document types"),
    "unequal columns": ("tag unequal.conll -o out.conll", "line 2: expected 2 columns"),
    "wrong label column": ("tag refs.conll -o out.conll --label 7", "3 columns"),
    "label of another model": ("predict m.safetensors other.conll -o out.conll", "line 1: 'verb' is not a label"),
    "predict to another format": (
        "predict m.safetensors refs.conll -o out.jsonl",
        "cannot be written as another format",
    ),
    "predict a table": ("predict m.safetensors table.csv -o out.csv", "must end in"),
    "label columns": (
        "label refs.conll -o out.csv",
        r"refs\.conll has sequences of tokens\. Label them with transduce tag",
    ),
    "check XML": ("check bomb.xml", "Label tokens in tagged XML with transduce tag"),
    "label a format of sequences": ("label refs.conll -o out.csv --format conll", "'conll' is not one of"),
    "report of a tagger": (
        "report m.safetensors refs.conll -o r.html",
        r"m\.safetensors is a tagger of sequences\. `transduce predict` and",
    ),
    "queue by a tagger": ("queue table.csv --model m.safetensors -o q.csv --label text", "is a tagger of sequences"),
    "no truth": ("evaluate m.safetensors plain.conll", "no label to compare with"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_leaves_no_file(name, tagged, run_command, tmp_path, monkeypatch):
    import shlex
    import shutil

    monkeypatch.chdir(tmp_path)
    for path in (tagged.file, tagged.model):
        shutil.copy(path, tmp_path)
    contents = {
        "refs.pdf": "x", "plain.conll": "a\nb\n", "one.conll": "a x\nb x\n", "outside.conll": "a O\nb B-x\n\nc _\n",
        "nul.conll": "a\0 x\n",
        "bomb.xml": '<!DOCTYPE a [<!ENTITY x "y">]><a><s>&x;</s></a>', "unequal.conll": "a x\nb\n",
        "other.conll": "run verb\nfast _\n", "table.csv": "text\na\n",
    }  # fmt: skip
    for file, content in contents.items():
        (tmp_path / file).write_text(content)
    before = digests(tmp_path)
    typed, expected = BAD[name]
    result = run_command(*shlex.split(typed))
    assert result.code == 2, result.err
    *_, last = result.err.splitlines()
    assert last.startswith("transduce: ")
    assert re.search(expected, last), last
    assert "Traceback" not in result.err
    assert digests(tmp_path) == before


def test_a_file_with_a_label_for_every_token_trains_a_tagger(tmp_path):
    file = write_references(tmp_path, "conll", REFS[:20], 20)
    out, model = tmp_path / "out.conll", tmp_path / "m.safetensors"
    assert run(["tag", str(file), "-o", str(out), "--model", str(model)]) == 0
    assert out.read_bytes() == file.read_bytes()
    assert load_tagger(str(model))[0].classes_.tolist() == sorted(LABELS)


def test_counts_that_constraints_forbid_are_a_note_and_the_model_can_be_read(tmp_path, capsys):
    file = write_references(tmp_path, "conll", REFS, N_TAGGED)
    out, model = tmp_path / "out.conll", tmp_path / "m.safetensors"
    stated = ["--count", "date==0", "--constraint", "date: exactly once"]
    assert run(["tag", str(file), "-o", str(out), "--model", str(model), *stated, "--json"]) == 0
    printed = capsys.readouterr()
    assert "'date' has 52 tokens, but at most 0 are stated." in printed.err
    assert json.loads(printed.out, parse_constant=pytest.fail)
    assert load_tagger(str(model))[1]["gap"] is None
