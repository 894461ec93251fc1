"""`--device`: the fit runs on a device of PyTorch, here the processor, and the files are as without it."""

import sys

import polars as pl
import pytest

QUICK = ("--annealing", "paper", "--alpha", "0.01", "--quiet")


@pytest.fixture
def documents(tmp_path):
    """Texts of two classes, half of them labelled."""
    words = {"tea": "leaf cup green kettle", "coffee": "bean roast espresso mill"}
    names = [("tea", "coffee")[number % 2] for number in range(60)]
    texts = [" ".join(words[name].split()[(row + k) % 4] for k in range(2)) for row, name in enumerate(names)]
    path = tmp_path / "documents.csv"
    pl.DataFrame({"text": texts, "label": [name if row % 8 < 4 else None for row, name in enumerate(names)]}).write_csv(
        path
    )
    return path


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_labels_are_those_without_a_device(documents, run_command, tmp_path, torch):
    pytest.importorskip("array_api_compat")
    here, there, model = tmp_path / "here.csv", tmp_path / "there.csv", tmp_path / "m.safetensors"
    assert run_command("label", documents, "-o", here, *QUICK).code == 0
    result = run_command("label", documents, "-o", there, "--model", model, *QUICK, "--device", "cpu")
    assert result.code == 0, result.err
    labels = [pl.read_csv(path)["label"] for path in (here, there)]
    assert (labels[0] == labels[1]).mean() >= 0.97
    assert run_command("predict", model, documents, "-o", tmp_path / "new.csv").code == 0


def test_a_device_that_is_not_there(documents, run_command, tmp_path, torch):
    pytest.importorskip("array_api_compat")
    result = run_command("label", documents, "-o", tmp_path / "out.csv", *QUICK, "--device", "cuda:99")
    assert result.code != 0
    assert "--device cuda:99 is not a device that PyTorch can use here. Leave it out." in result.err


class NoTorch:
    """Finds that PyTorch is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


def test_without_torch(documents, run_command, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoTorch(), *sys.meta_path])
    monkeypatch.setitem(sys.modules, "array_api_compat", type(sys)("array_api_compat"))
    result = run_command("label", documents, "-o", tmp_path / "out.csv", *QUICK, "--device", "cuda")
    assert result.code != 0
    assert "--device needs torch. In the checkout of transduce, run: pip install '.[gpu]'" in result.err


@pytest.mark.parametrize("other", [("--workers", "2"), ("--none", "5%")])
def test_options_that_do_not_go_with_a_device(documents, run_command, tmp_path, other):
    result = run_command("label", documents, "-o", tmp_path / "out.csv", *QUICK, "--device", "cuda", *other)
    assert result.code != 0
    assert f"--device cannot be combined with {other[0]}" in result.err
