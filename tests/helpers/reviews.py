"""A review of a few documents, and a client of its server."""

import http.client
import json
from contextlib import contextmanager

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from transduce.datasets import load_clinc150
from transduce.reviewing.documents import Documents
from transduce.reviewing.hints import NO_HINTS
from transduce.reviewing.log import DecisionLog
from transduce.reviewing.server import ReviewServer
from transduce.reviewing.session import Session

CLASSES = ("banking/balance", "banking/transfer", "travel/book_flight", "travel/translate")


def corpus(n=60):
    """Texts and classes of a few intents, in a fixed random order."""
    texts, labels, _ = load_clinc150()
    rows = np.concatenate([np.flatnonzero(labels == name)[: n // 4] for name in CLASSES])
    rows = np.random.default_rng(0).permutation(rows)
    return texts[rows].tolist(), labels[rows].tolist()


TEXTS, TRUTH = corpus(40)


def decide(file, *events):
    """Decide in the review of a file of these texts."""
    with DecisionLog(file.with_name(f"{file.name}.review"), TEXTS) as log:
        for event in events:
            log.append(event)


def documents_of(texts, hints=NO_HINTS):
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform(texts)
    return Documents(list(texts), X, vectorizer.get_feature_names_out().tolist(), "tickets.csv", hints)


@contextmanager
def open_session(folder, texts, given=None, fits=False, hints=NO_HINTS):
    session = Session(documents_of(texts, hints), DecisionLog(folder, texts), given, fits=fits)
    try:
        yield session
    finally:
        session.close()


class Client:
    """Requests to a server on this machine, with its cookie."""

    def __init__(self, server):
        self.port, self.host = server.port, f"127.0.0.1:{server.port}"
        answer = self.request("GET", server.url.split(self.host)[1])
        self.cookie = answer.getheader("set-cookie").split(";")[0]
        self.welcome = answer

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def post(self, name, body, status=200, **headers):
        sent = {"cookie": self.cookie, "origin": f"http://{self.host}", "content_type": "application/json"} | headers
        answer = self.request("POST", f"/api/{name}", json.dumps(body), **sent)
        assert answer.status == status, answer.content
        return json.loads(answer.content) if answer.content[:1] in b"{[" else answer.content.decode()


@contextmanager
def running(session, export=None):
    server = ReviewServer(session, export)
    thread = server.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=30)
