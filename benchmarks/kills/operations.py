"""What is killed: each operation prepares a folder, works in it, and knows what must be true of the folder afterwards.

An operation may be ended at any moment. `check` then finds every file as it was before or complete, and `repeat` runs
the same again, to the result of an undisturbed run: nothing is lost. Outputs that hold times are loaded, others are
compared byte by byte.
"""

import csv
import http.client
import io
import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from transduce import TransductiveClassifier
from transduce.cli.main import run as run_command
from transduce.io.memmap import HEADER, open_rows, pack_rows
from transduce.model_file import load_model
from transduce.reviewing.log import LOG_NAME, DecisionLog, read_events
from transduce.sequences import load_tagger

OLD = b"what was here before\n"
WORDS = ("tea leaf cup pot", "bean roast espresso crema", "milk oat foam cow")
NAMES = ("tea", "coffee", "milk")
N_ROWS = 60
COMMON = ("--quiet", "--jobs", "1", "--features", "tfidf")
SIZES = tuple(part for name in NAMES for part in ("--prior", f"{name}==20"))


def texts() -> list[str]:
    """Texts of three classes, one after another."""
    rng = np.random.default_rng(0)
    words = [group.split() for group in WORDS]
    return [" ".join([*rng.choice(words[row % 3], 3), f"w{rng.integers(9)}"]) for row in range(N_ROWS)]


def write_documents(folder: Path) -> None:
    """Write docs.csv, in which every fifth row has its label."""
    lines = io.StringIO()
    out = csv.writer(lines, lineterminator="\n")
    out.writerow(("text", "label"))
    out.writerows((text, NAMES[row % 3] if row % 5 == 0 else "") for row, text in enumerate(texts()))
    (folder / "docs.csv").write_text(lines.getvalue())


@dataclass(frozen=True)
class Operation:
    """A name, what makes a folder ready, what is disturbed (it returns an exit code), and the files that it writes."""

    prepare: Callable[[Path], None]
    work: Callable[[Path], int]
    outputs: dict[str, Callable[[bytes], bool]] = field(default_factory=dict)
    """For each file that is replaced: whether this content is complete."""
    check: Callable[[Path], str] = lambda folder: ""
    """What else is wrong with the folder, or nothing."""
    repeat: bool = True
    """Whether the same can be run again to the same end."""
    begins: bool = False
    """Whether it calls the last of `BEGIN` when a fault may come; else that is at once."""


def damaged(operation: Operation, folder: Path) -> str:
    """What is wrong with a folder after an operation was ended, or nothing."""
    for name, is_complete in operation.outputs.items():
        path = folder / name
        content = path.read_bytes() if path.exists() else b""
        if content != OLD and not is_complete(content):
            return f"{name} is neither old nor complete: {content[:80]!r}, {len(content)} bytes"
    return operation.check(folder)


def _old(*names: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        write_documents(folder)
        for name in names:
            (folder / name).write_bytes(OLD)

    return prepare


def _command(*arguments: str) -> Callable[[Path], int]:
    """Run a command; `{}` in its arguments is the folder."""
    return lambda folder: run_command([part.replace("{}", str(folder)) for part in arguments])


def _is_table(content: bytes) -> bool:
    """Whether it is a whole table with all texts in order, and every given label."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    given = all(row["label"] == NAMES[number % 3] for number, row in enumerate(rows) if number % 5 == 0)
    return [row["text"] for row in rows] == texts() and given and content.endswith(b"\n")


def _is_labeled(content: bytes) -> bool:
    return _is_table(content) and all(row["label"] in NAMES for row in csv.DictReader(io.StringIO(content.decode())))


def _is_queue(content: bytes) -> bool:
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    return len(rows) == 5 and all(texts()[int(row["row"]) - 1] == row["text"] for row in rows)


def _is_report(content: bytes) -> bool:
    return content.startswith(b"<!DOCTYPE html>") and content.rstrip().endswith(b"</html>")


def _is_tasks(content: bytes) -> bool:
    return len(json.loads(content)) == 5


def _check_model(folder: Path) -> str:
    path = folder / "m.safetensors"
    if path.read_bytes() != OLD:
        load_model(str(path))  # raises an error if it is not complete
    return ""


def _with_model(*names: str) -> Callable[[Path], None]:
    """Documents and a model of them, which is fitted once."""

    def prepare(folder: Path) -> None:
        _old(*names)(folder)
        model = folder.parent / "model.safetensors"
        if not model.exists():
            command = _command("label", "{}/docs.csv", "-o", "{}/x.csv", "--model", "{}/x.safetensors", *COMMON, *SIZES)
            assert command(folder) == 0
            (folder / "x.csv").unlink()
            (folder / "x.safetensors").replace(model)
        (folder / "model.safetensors").write_bytes(model.read_bytes())

    return prepare


def _sequences() -> list[list[tuple[str, str]]]:
    """Tokens of the texts with their labels."""
    parts = [text.split() for text in texts()]
    return [
        [(token, NAMES[row % 3] if t < 3 else "number") for t, token in enumerate(p)] for row, p in enumerate(parts)
    ]


def _prepare_tag(folder: Path) -> None:
    """Write refs.conll, in which every fifth sequence has its labels."""
    lines = [
        "".join(f"{token}\t{label if row % 5 == 0 else '_'}\n" for token, label in one)
        for row, one in enumerate(_sequences())
    ]
    (folder / "refs.conll").write_text("\n".join(lines))
    for name in ("out.conll", "m.safetensors", "r.html"):
        (folder / name).write_bytes(OLD)


def _is_tagged(content: bytes) -> bool:
    """Whether all tokens have a label, and given ones are kept."""
    found = [[line.split("\t") for line in one.split("\n") if line] for one in content.decode().split("\n\n")]
    if [[pair[0] for pair in one] for one in found] != [[token for token, _ in one] for one in _sequences()]:
        return False
    given = all(
        [tuple(pair) for pair in one] == found_one for one, found_one in zip(found[::5], _sequences()[::5], strict=True)
    )
    return given and all(pair[1] in (*NAMES, "number") for one in found for pair in one) and content.endswith(b"\n")


def _check_tagger(folder: Path) -> str:
    path = folder / "m.safetensors"
    if path.read_bytes() != OLD:
        load_tagger(str(path))  # raises an error if it is not complete
    return ""


def _rows() -> sparse.csr_matrix:
    return sparse.random(4000, 200, 0.05, format="csr", random_state=0, dtype=np.float32)


def _pack(folder: Path) -> int:
    X = _rows()
    pack_rows((X[begin : begin + 200] for begin in range(0, 4000, 200)), folder / "rows")
    return 0


def _check_packed(folder: Path) -> str:
    """A folder without its header is incomplete, and says so; with it, it is whole."""
    if not (folder / "rows" / HEADER).exists():
        return ""
    return "" if (open_rows(folder / "rows") != _rows()).nnz == 0 else "the packed rows are others"


def training_rows() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of three classes, of which one in ten has its label."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    X = np.eye(3, 12)[truth] + 0.5 * rng.normal(size=(300, 12))
    return sparse.csr_matrix(X), np.where(rng.random(300) < 0.1, truth, -1)


def _fit(folder: Path) -> int:
    X, y = training_rows()
    clf = TransductiveClassifier(checkpoint=folder / "fit", random_state=0, n_jobs=1, class_prior=_prior(y))
    return _save(clf.fit(X, y), folder)


def _fit_on_dask(folder: Path) -> int:
    from distributed import Client

    from transduce.dask import TransductiveClassifier as DaskClassifier

    X, y = training_rows()
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with Client(processes=False, n_workers=1, threads_per_worker=1, **quiet) as client:
        BEGIN.pop()()
        clf = DaskClassifier(client=client, checkpoint=folder / "fit", random_state=0, class_prior=_prior(y))
        clf.fit([X[:150], X[150:]], [y[:150], y[150:]])
        return _save(clf, folder)


BEGIN: list[Callable[[], None]] = []
"""What prepares the fault, for an operation that sets up the software of others first: Dask may hang by itself."""


def _prior(y: np.ndarray) -> np.ndarray:
    return np.bincount(y[y >= 0], minlength=3) / np.sum(y >= 0)


def _save(clf: TransductiveClassifier, folder: Path) -> int:
    """Write the labels; a fit that Ctrl-C ended has others, and is not complete."""
    if "interrupted" in str(clf.termination_condition_).lower():
        return 1
    (folder / "labels.json").write_text(json.dumps(np.asarray(clf.transduction_).tolist()))
    return 0


def _decide(folder: Path) -> int:
    """Append decisions, and note in another file those that were confirmed."""
    with DecisionLog(folder / "project", texts()) as log, (folder.parent / "confirmed").open("a") as confirmed:
        for number in range(40):
            log.append({"op": "decide", "rows": [number], "label": "tea", "id": f"{number}"})
            confirmed.write(f"{number}\n")
            confirmed.flush()
    return 0


def _check_decisions(folder: Path, project: str = "project") -> str:
    path = folder.parent / "confirmed"
    confirmed = set(path.read_text().split("\n")[:-1]) if path.exists() else set()
    saved = {event["id"] for event in read_events(folder / project, texts())}
    return "" if confirmed <= saved else f"lost: {sorted(confirmed - saved)}"


def _review(folder: Path) -> int:
    """Run the command itself, with a client that decides, notes what was confirmed, and then presses Ctrl-C."""
    readable, writable = os.pipe()
    os.dup2(writable, 1)
    threading.Thread(target=_client, args=(readable, folder), daemon=True).start()
    return _command("review", "{}/docs.csv", "--no-browser", *COMMON[:1], *COMMON[3:])(folder)


def _client(readable: int, folder: Path) -> None:
    """Decide until the server or the disk fails, or there is nothing more to decide; then end the review."""
    try:
        with os.fdopen(readable) as lines, (folder.parent / "confirmed").open("a") as confirmed:
            _decide_in_browser(lines.readline().strip(), confirmed)
    except (OSError, http.client.HTTPException):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def _decide_in_browser(url: str, confirmed: IO[str]) -> None:
    host, path = url.removeprefix("http://").split("/", 1)
    connection = http.client.HTTPConnection(host, timeout=600)
    connection.request("GET", f"/{path}")
    answer = connection.getresponse()
    answer.read()
    cookie = answer.getheader("set-cookie", "").split(";")[0]
    headers = {"cookie": cookie, "origin": f"http://{host}", "content-type": "application/json"}
    for number in range(25):
        event = {"op": "decide", "rows": [number], "label": NAMES[number % 3], "id": f"{number}"}
        connection.request("POST", "/api/events", json.dumps({"events": [event]}), headers)
        answer = connection.getresponse()
        if json.loads(answer.read()) and answer.status == 200:
            confirmed.write(f"{number}\n")
            confirmed.flush()


def _prepare_review(folder: Path) -> None:
    write_documents(folder)
    (folder.parent / "confirmed").unlink(missing_ok=True)


def _check_review(folder: Path) -> str:
    return _check_decisions(folder, "docs.csv.review")


def _prepare_export(folder: Path) -> None:
    _old("out.csv")(folder)
    with DecisionLog(folder / "docs.csv.review", texts()) as log:
        for number in range(1, 9):
            log.append({"op": "decide", "rows": [number], "label": NAMES[number % 3]})
    (folder / "log").write_bytes((folder / "docs.csv.review" / LOG_NAME).read_bytes())


def _check_export(folder: Path) -> str:
    same = (folder / "log").read_bytes() == (folder / "docs.csv.review" / LOG_NAME).read_bytes()
    return "" if same else "the log was changed"


LABEL = ("label", "{}/docs.csv", "-o", "{}/out.csv", "--model", "{}/m.safetensors", "--report", "{}/r.html")
QUEUE = ("queue", "{}/docs.csv", "--number", "5", "--model", "{}/model.safetensors", "--quiet")
TAG = ("tag", "{}/refs.conll", "-o", "{}/out.conll", "--model", "{}/m.safetensors", "--report", "{}/r.html")
OPERATIONS: dict[str, Operation] = {
    "label": Operation(
        _old("out.csv", "m.safetensors", "r.html"),
        _command(*LABEL, "--checkpoint", "{}/fit", *COMMON, *SIZES),
        {"out.csv": _is_labeled, "r.html": _is_report},
        _check_model,
    ),
    "tag": Operation(
        _prepare_tag,
        _command(*TAG, "--quiet", "--jobs", "1"),
        {"out.conll": _is_tagged, "r.html": _is_report},
        _check_tagger,
    ),
    "predict": Operation(
        _with_model("out.csv"),
        _command("predict", "{}/model.safetensors", "{}/docs.csv", "-o", "{}/out.csv", "--quiet"),
        {"out.csv": lambda content: content.count(b"\n") == N_ROWS + 1},
    ),
    "queue": Operation(_with_model("ask.csv"), _command(*QUEUE, "-o", "{}/ask.csv"), {"ask.csv": _is_queue}),
    "queue json": Operation(_with_model("ask.json"), _command(*QUEUE, "-o", "{}/ask.json"), {"ask.json": _is_tasks}),
    "export": Operation(
        _prepare_export,
        _command("export", "{}/docs.csv", "-o", "{}/out.csv", *COMMON),
        {"out.csv": _is_labeled},
        _check_export,
    ),
    "review": Operation(_prepare_review, _review, check=_check_review),
    "review log": Operation(_prepare_review, _decide, check=_check_decisions),
    "pack": Operation(lambda folder: None, _pack, check=_check_packed, repeat=False),
    "checkpoint": Operation(lambda folder: None, _fit),
    "dask": Operation(lambda folder: None, _fit_on_dask, begins=True),
}
