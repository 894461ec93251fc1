"""`transduce label` on workers: the same file comes out, and an unusable cluster is reported in one sentence."""

import sys

import dask
import polars as pl
import pytest
from distributed import LocalCluster
from helpers.dask_cluster import PATIENT

QUICK = ("--annealing", "paper", "--alpha", "0.01", "--quiet")

pytestmark = pytest.mark.filterwarnings("ignore")  # distributed warns about processes that end


@pytest.fixture
def documents(tmp_path):
    """Texts of two classes, half of them labelled, with all of their words."""
    words = {"tea": "leaf cup green kettle", "coffee": "bean roast espresso mill"}
    rows = []
    for number in range(80):
        name = ("tea", "coffee")[number % 2]
        text = " ".join(words[name].split()[(number + k) % 4] for k in range(2)) + f" w{number % 5}"
        rows.append({"text": text, "label": name if number % 8 < 4 else None})
    path = tmp_path / "documents.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.fixture
def patient(monkeypatch):
    """Timeouts that a busy machine does not meet, for connections that are expected to succeed."""
    monkeypatch.setattr("transduce.cli.dask_cluster.CONNECT_TIMEOUT", 3600)
    with dask.config.set({**PATIENT, "distributed.comm.timeouts.connect": "1 hour"}):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
def test_workers_of_this_machine_give_the_same_labels(documents, run_command, tmp_path):
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    assert run_command("label", documents, "-o", one, *QUICK).code == 0
    result = run_command("label", documents, "-o", many, *QUICK, "--workers", 2, "--checkpoint", tmp_path / "stages")
    assert result.code == 0, result.err
    assert pl.read_csv(many)["label"].to_list() == pl.read_csv(one)["label"].to_list()
    assert list((tmp_path / "stages").glob("*.stage"))


@pytest.mark.usefixtures("patient")
def test_a_running_cluster_gives_the_same_labels(documents, run_command, tmp_path):
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    assert run_command("label", documents, "-o", one, *QUICK).code == 0
    with LocalCluster(2, processes=False, threads_per_worker=1, protocol="tcp", dashboard_address=None) as cluster:
        result = run_command("label", documents, "-o", many, *QUICK, "--dask", cluster.scheduler_address)
    assert result.code == 0, result.err
    assert pl.read_csv(many)["label"].to_list() == pl.read_csv(one)["label"].to_list()


def test_a_missing_scheduler_is_reported_in_one_sentence(documents, run_command, tmp_path, monkeypatch):
    monkeypatch.setattr("transduce.cli.dask_cluster.CONNECT_TIMEOUT", 1)
    result = run_command("label", documents, "-o", tmp_path / "out.csv", *QUICK, "--dask", "tcp://127.0.0.1:9")
    assert result.code == 2
    assert "--dask must be the address" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("address", ["foo", "", "tcp://", "http://localhost:8786", "tcp://host"])
def test_an_address_that_is_invalid_is_reported_before_anything_is_read(run_command, tmp_path, address):
    result = run_command("label", tmp_path / "nothing.csv", "-o", tmp_path / "out.csv", *QUICK, "--dask", address)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert f"but is {address!r}" in result.err


def test_a_missing_extra_is_reported_before_anything_is_read(run_command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "transduce.dask", raising=False)
    result = run_command("label", tmp_path / "nothing.csv", "-o", tmp_path / "out.csv", *QUICK, "--workers", 2)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "pip install '.[dask]'" in result.err


def test_an_address_and_a_number_of_workers_are_refused(documents, run_command, tmp_path):
    result = run_command(
        "label", documents, "-o", tmp_path / "out.csv", *QUICK, "--dask", "tcp://127.0.0.1:9", "--workers", 2
    )
    assert result.code == 2
    assert "Leave one of them out" in result.err
