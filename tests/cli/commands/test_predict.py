"""transduce predict: every output format, a new process, formulas."""

import gzip

import polars as pl
import pytest
import zstandard
from helpers.commands import QUICK, read, run_in_new_process
from helpers.documents import N_ROWS, documents
from polars.testing import assert_frame_equal

from transduce.cli.formats import write_table
from transduce.model_file import load_model


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [
        ("csv", b"id,text"), ("tsv", b"id\ttext"), ("jsonl", b'{"id":'), ("parquet", b"PAR1"), ("csv.gz", b"\x1f\x8b"),
        ("tsv.zst", b"\x28\xb5\x2f\xfd"), ("pq", b"PAR1"), ("ndjson.gz", b"\x1f\x8b"),
    ],
)  # fmt: skip
def test_every_output_holds_the_same(example, run_ok, tmp_path, suffix, magic):
    out = tmp_path / f"out.{suffix}"
    run_ok("predict", example.model, example.file, "-o", out)
    run_ok("predict", example.model, example.file, "-o", tmp_path / "plain.csv")
    assert out.read_bytes().startswith(magic)
    assert_frame_equal(*(read(path).with_columns(pl.all().cast(pl.String)) for path in (out, tmp_path / "plain.csv")))


def test_compressed_outputs_are_complete(example, run_ok, tmp_path):
    for suffix, undo in (("gz", gzip.decompress), ("zst", zstandard.decompress)):
        run_ok("predict", example.model, example.file, "-o", tmp_path / f"out.csv.{suffix}")
        content = (tmp_path / f"out.csv.{suffix}").read_bytes()
        text = undo(content) if suffix == "gz" else zstandard.ZstdDecompressor().decompressobj().decompress(content)
        assert text.count(b"\n") == N_ROWS + 1


def test_a_new_process_predicts_the_same(example, run_ok, tmp_path):
    fresh = documents(n_rows=300, n_labeled=0, seed=5)
    write_table(fresh, str(tmp_path / "fresh.csv"))
    result = run_in_new_process("predict", example.model, tmp_path / "fresh.csv", "-o", tmp_path / "there.csv")
    assert result.returncode == 0, result.stderr
    here = run_ok("predict", example.model, tmp_path / "fresh.csv", "-o", tmp_path / "here.csv")
    assert "has a column 'label', so the labels are in column 'label_2'." in here.err
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    model = load_model(str(example.model))
    scores = model.scores(model.vectorizer.transform(fresh["text"].to_list()))
    done = read(tmp_path / "there.csv")
    assert done["label_2"].to_list() == [model.classes[k] for k in scores.argmax(axis=1)]
    own = (scores - model.shift).argmax(axis=1) != scores.argmax(axis=1)
    assert done["overruled"].to_list() == [str(one).lower() for one in own]
    assert done.columns == [*fresh.columns, "label_2", "confidence", "runner_up", "overruled"]


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["what is my balance", "book a flight"], ""),
        (["what is my balance", "", "zzyzx qwrtp", "..."], "Note: 3 of 4 rows are empty or have no word that the model "
         "knows, so their labels are guesses (rows 2, 3 and 4; row 2 is line 3 of the file)."),
        (["what is\nmy balance", " "], "Note: 1 of 2 rows is empty or has no word that the model knows, so its label "
         "is a guess (row 2)."),
    ],
)  # fmt: skip
def test_rows_without_a_known_word_are_reported(example, run_ok, tmp_path, texts, note):
    write_table(pl.DataFrame({"text": texts}), str(tmp_path / "new.csv"))
    result = run_ok("predict", example.model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert [line for line in result.err.splitlines() if line.startswith("Note: ")] == [note] * bool(note)


@pytest.mark.parametrize(("option", "mark"), [((), "'"), (("--keep-formulas",), "")])
def test_formulas_are_guarded_unless_they_are_kept(example, run_ok, tmp_path, option, mark):
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "plain", "-3.5"]
    frame = example.frame.with_columns(pl.Series("note", (cells * 20)[:N_ROWS]))
    write_table(frame, str(tmp_path / "documents.csv"), keep_formulas=True)
    for out, more in (
        (tmp_path / "o.csv", ["label", tmp_path / "documents.csv"]),
        (tmp_path / "p.csv", ["predict", example.model, tmp_path / "documents.csv"]),
    ):
        run_ok(*more, "-o", out, *(QUICK if more[0] == "label" else ()), *option)
        assert read(out)["note"][:6].to_list() == [f"{mark}{cell}" for cell in cells[:4]] + cells[4:]
    run_ok("predict", example.model, tmp_path / "documents.csv", "-o", tmp_path / "p.jsonl")
    assert read(tmp_path / "p.jsonl")["note"][:6].to_list() == cells


@pytest.mark.parametrize("command", [("predict", "-o", "o.csv"), ("evaluate",), ("report", "-o", "r.html")])
def test_swapped_arguments_are_detected(example, run_command, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = run_command(command[0], example.file, example.model, *command[1:])
    assert result.code == 2
    assert result.err.endswith("The order is MODEL FILE.\n")


def test_predict_is_as_confident_as_label(example, run_ok, tmp_path):
    """The model is calibrated as the labels are; without that, confidence differs by more than a tenth."""
    model, out, predicted = (tmp_path / name for name in ("m.safetensors", "o.csv", "p.csv"))
    run_ok("label", example.file, "-o", out, "--model", model, *QUICK)
    run_ok("predict", model, example.file, "-o", predicted)
    label, predict = (read(path).with_columns(pl.col("confidence").cast(pl.Float64)) for path in (out, predicted))
    is_new = label["given"] == "false"
    both = label.filter(is_new)["confidence"], predict.filter(is_new)["confidence"]
    assert (both[0] - both[1]).abs().mean() < 0.02


@pytest.mark.parametrize(
    "command", [("predict", "-o", "o.csv"), ("evaluate", "--label", "truth"), ("report", "-o", "r.html")]
)
def test_a_file_without_the_text_column_of_the_model_is_refused(example, run_command, tmp_path, monkeypatch, command):
    """Any other column would be labelled too, and nonsense would come out."""
    monkeypatch.chdir(tmp_path)
    frame = example.frame.drop("label").rename({"text": "body"})
    write_table(frame, "other.csv")
    refused = run_command(command[0], example.model, "other.csv", *command[1:])
    assert refused.code == 2
    assert "the model was trained on column 'text', which other.csv does not have." in refused.err
    assert refused.err.endswith("Name the text with --text.\n")
    assert run_command(command[0], example.model, "other.csv", *command[1:], "--text", "body").code == 0


def test_of_several_text_columns_the_missing_one_is_named(run_command, run_ok, tmp_path):
    frame, model = documents().with_columns(pl.col("text").alias("title")), tmp_path / "m.safetensors"
    write_table(frame, str(tmp_path / "a.csv"))
    write_table(frame.drop("text"), str(tmp_path / "b.csv"))
    texts = ("--text", "title", "--text", "text")
    run_ok("label", tmp_path / "a.csv", "-o", tmp_path / "o.csv", "--model", model, *texts, *QUICK)
    refused = run_command("predict", model, tmp_path / "b.csv", "-o", tmp_path / "p.csv")
    assert f"trained on columns 'title' and 'text', but {tmp_path / 'b.csv'} has no 'text'." in refused.err


def test_a_folder_has_its_own_text_column(run_ok, tmp_path):
    write_table(documents().rename({"text": "body"}), str(tmp_path / "a.csv"))
    model = tmp_path / "m.safetensors"
    run_ok("label", tmp_path / "a.csv", "--text", "body", "-o", tmp_path / "o.csv", "--model", model, *QUICK)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("what is my balance")
    run_ok("predict", model, tmp_path / "folder", "-o", tmp_path / "p.csv")
