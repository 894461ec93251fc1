"""How long the page of a review waits: each request over HTTP with 100 000 documents, while a fit runs and without one.

Documents are requests of the built-in corpus with words of other requests mixed in, so that each is different.

    python -m benchmarks.review [--rows 100000]
"""

import argparse
import http.client
import json
import socket
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from transduce.datasets import load_clinc150
from transduce.features.embeddings import Encoding
from transduce.features.text_rows import fit_texts
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import DecisionLog
from transduce.reviewing.server import ReviewServer
from transduce.reviewing.session import Session

REPEATS = 15


def documents_of(n_rows: int) -> tuple[list[str], list[str]]:
    texts, labels, _ = load_clinc150()
    rng = np.random.default_rng(0)
    rows, others = rng.integers(len(texts), size=(2, n_rows))
    mixed = [
        f"{texts[a]} {' '.join(texts[b].split()[:3])} {k}" for k, (a, b) in enumerate(zip(rows, others, strict=True))
    ]
    return mixed, [labels[row].split("/")[0] for row in rows]


class Client:
    def __init__(self, server: ReviewServer) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        self.connection.connect()  # headers and body are two packets, which must not wait for each other
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.request("GET", server.url.split(str(server.port))[1])
        answer = self.connection.getresponse()
        answer.read()
        self.headers = {
            "cookie": answer.getheader("set-cookie", "").split(";")[0],
            "origin": f"http://127.0.0.1:{server.port}",
            "content-type": "application/json",
        }

    def post(self, name: str, body: dict) -> object:
        self.connection.request("POST", f"/api/{name}", json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        assert answer.status == 200, content
        return content


def actions(client: Client, truth: list[str]) -> dict[str, object]:
    """Each action of the page as a function without arguments."""
    rows = iter(range(1000, len(truth)))

    def decide() -> None:
        row = next(rows)
        client.post("events", {"events": [{"op": "decide", "rows": [row], "label": truth[row], "how": "queue"}]})

    def bulk() -> None:
        found = client.post("documents", {"filter": {"query": "weather"}})
        client.post("bulk", {"selection": found["selection"], "label": truth[0], "how": "keyword"})
        client.post("events", {"events": [{"op": "undo"}]})

    return {
        "decide": decide,
        "undo and redo": lambda: client.post("events", {"events": [{"op": "undo"}, {"op": "redo"}]}),
        "state": lambda: client.post("state", {}),
        "next document": lambda: client.post("queue", {"n": 1}),
        "eight documents": lambda: client.post("queue", {"n": 8}),
        "search": lambda: client.post("documents", {"filter": {"query": "credit card"}}),
        "filter": lambda: client.post("documents", {"filter": {"label": truth[0], "low": 0.2, "high": 0.6}}),
        "similar": lambda: client.post("documents", {"filter": {"near": 17, "k": 50}}),
        "map": lambda: client.post("map", {}),
        "lasso": lambda: client.post("documents", {"filter": {"polygon": [[-1, -1], [1, -1], [0.5, 1], [-1, 0.2]]}}),
        "search, decide all, undo": bulk,
    }


def measure(client: Client, truth: list[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, act in actions(client, truth).items():
        for _ in range(REPEATS):
            start = time.perf_counter()
            act()
            found.setdefault(name, []).append(1000 * (time.perf_counter() - start))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    n_rows = parser.parse_args().rows
    texts, truth = documents_of(n_rows)
    begin = time.perf_counter()
    rows = fit_texts(texts, "tfidf", Encoding())
    documents = Documents(texts, rows.X, rows.vectorizer.vocabulary)
    given = [label if row < 300 else None for row, label in enumerate(truth)]
    with tempfile.TemporaryDirectory() as folder:
        session = Session(documents, DecisionLog(Path(folder), texts), given, fits=False)
        print(f"{n_rows} documents: features {time.perf_counter() - begin:.1f} s", flush=True)
        for name in ("first fit and queue", "fit that continues, and queue"):
            begin = time.perf_counter()
            session.fit_now()
            print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)
        _ = documents.cluster
        server = ReviewServer(session)
        thread = server.start()
        client = Client(server)
        measure(client, truth)
        still = measure(client, truth)
        stop = threading.Event()

        def fit() -> None:
            while not stop.is_set():
                session.fit_now()

        fits = threading.Thread(target=fit)
        fits.start()
        busy = measure(client, truth)
        stop.set()
        fits.join()
        server.stop()
        thread.join()
        session.close()
    print(f"{'milliseconds':28}{'median':>9}{'worst':>9}{'median while fitting':>24}{'worst':>9}")
    for name, values in still.items():
        print(f"{name:28}{np.median(values):9.1f}{max(values):9.1f}{np.median(busy[name]):24.1f}{max(busy[name]):9.1f}")


if __name__ == "__main__":
    main()
