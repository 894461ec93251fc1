"""transduce report: of results, and of other files."""

import re

import polars as pl
from helpers.commands import QUICK, read
from helpers.documents import DOMAINS, documents

from transduce.cli.formats import write_table


def test_a_report_of_the_output_is_that_of_the_fit_but_for_what_needs_features(example, run_ok, tmp_path):
    result = run_ok("report", example.model, example.out, "-o", tmp_path / "r.html", "--truth", "truth")
    assert "labelled by the model" not in result.err
    of_the_fit, of_the_output = example.report.read_text(), (tmp_path / "r.html").read_text()
    link, of_map = '<li><a href="#document_map">Map</a></li>\n', section(of_the_fit, "document_map")
    assert of_map.count("<svg") == 2
    without_map = of_the_fit.replace(of_map, "").replace(link, "")
    queue, least_confident = section(of_the_fit, "uncertain"), section(of_the_output, "uncertain")
    assert "most useful first" in queue
    assert "lowest confidence" in least_confident
    assert of_the_output.replace(least_confident, "") == without_map.replace(queue, "")


def section(page, name):
    return re.search(f'<section id="{name}">.*?</section>\n', page, re.S).group()


def test_a_report_shows_texts_of_any_kind(example, run_ok, tmp_path):
    frame = example.frame.with_columns(pl.col("text").str.split(" "))
    frame.write_parquet(tmp_path / "lists.parquet")
    named = ("--text", "text", "--report", tmp_path / "r.html")
    run_ok("label", tmp_path / "lists.parquet", "-o", tmp_path / "a.csv", *named, *QUICK)
    assert "&#34;" in (tmp_path / "r.html").read_text()  # a list is shown as JSON


def test_a_new_file_is_labelled_before_its_report(example, run_ok, tmp_path):
    write_table(documents(n_rows=50, n_labeled=0, seed=3), str(tmp_path / "fresh.csv"))
    result = run_ok("report", example.model, tmp_path / "fresh.csv", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "so its rows are labelled by the model" in result.err
    assert "<script" not in page
    assert all(name in page.replace("<wbr>", "") for name in DOMAINS)


def test_the_queue_and_the_report_are_reproducible(example, run_ok, tmp_path):
    for name in ("a", "b"):
        run_ok("queue", example.file, "-o", tmp_path / f"{name}.csv", "-n", 20, *QUICK)
        run_ok("report", example.model, example.file, "-o", tmp_path / f"{name}.html")
    for suffix in ("csv", "html"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_the_report_of_another_file_is_about_that_file(example, run_command, tmp_path):
    write_table(documents(n_rows=50, n_labeled=0, seed=3), str(tmp_path / "next <week>.csv"))
    run_command("report", example.model, tmp_path / "next <week>.csv", "-o", tmp_path / "r.html")
    run_command("predict", example.model, tmp_path / "next <week>.csv", "-o", tmp_path / "p.csv")
    page = re.sub(r"<wbr>|</?bdi>", "", (tmp_path / "r.html").read_text())
    name = "next &lt;week&gt;.csv"
    assert f"<title>Results for {name} - transduce</title>" in page
    assert f"<h1>Results for {name}</h1>" in page
    trained = "labelled by a model trained on documents.csv (24 labelled and 96 unlabelled documents)."
    assert f"50 documents in 3 classes, {trained}" in page
    assert "<h2>Progress (training on documents.csv)</h2>" in page
    assert "<h2>Your class sizes (training on documents.csv)</h2>" in page
    counts = dict(read(tmp_path / "p.csv")["label_2"].value_counts().rows())
    for each in DOMAINS:
        assert f'{each}</th><td class="number">{counts.get(each, 0)}</td>' in page
