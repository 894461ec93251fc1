"""The server is killed at random moments under load: no decision that it confirmed is lost, and the log is readable."""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from transduce.reviewing.log import read_events

TEXTS = [f"document number {k}" for k in range(200)]
SERVE = """
import sys
from pathlib import Path
import numpy as np
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import DecisionLog
from transduce.reviewing.server import ReviewServer
from transduce.reviewing.session import Session
texts = [f"document number {k}" for k in range(200)]
documents = Documents(texts, np.eye(200, 8))
for _ in range(int(sys.argv[2])):
    import os
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        session = Session(documents, DecisionLog(Path(sys.argv[1]), texts), ["a", "b"] + [None] * 198, fits=False)
        server = ReviewServer(session)
        print(os.getpid(), server.url, flush=True)
        server.run()
    os.waitpid(child, 0)
"""


def load(port, cookie, stop, confirmed, tag):
    """Send decisions until the server is gone, and note those that it confirmed."""
    headers = {"cookie": cookie, "origin": f"http://127.0.0.1:{port}", "content-type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = 0
    while not stop.is_set():
        name = f"{tag}-{number}"
        rows = list(range(number % 150, number % 150 + 1 + 40 * (number % 3)))
        event = {"op": "decide", "rows": rows, "label": "ab"[number % 2], "how": "list", "id": name}
        try:
            connection.request("POST", "/api/events", json.dumps({"events": [event]}), headers)
            answer = connection.getresponse()
            if answer.status == 200 and json.loads(answer.read()):
                confirmed.append(name)
        except (OSError, http.client.HTTPException, ValueError):
            break
        number += 1
    connection.close()


@pytest.mark.slow
def test_no_confirmed_decision_is_lost_in_many_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, int(os.environ.get("TRANSDUCE_KILLS", "100")))


def test_no_confirmed_decision_is_lost_in_a_few_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, 8)


def check_kills(folder: Path, n_kills: int) -> None:
    rng, confirmed = random.Random(0), []
    command = [sys.executable, "-c", SERVE, str(folder), str(n_kills)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for kill in range(n_kills):
            pid, url = process.stdout.readline().split()
            port = int(url.split(":")[2].split("/")[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("GET", url.split(str(port))[1])
            answer = connection.getresponse()
            answer.read()
            connection.close()
            cookie, stop = answer.getheader("set-cookie").split(";")[0], threading.Event()
            clients = [
                threading.Thread(target=load, args=(port, cookie, stop, confirmed, f"{kill}-{k}")) for k in range(2)
            ]
            for client in clients:
                client.start()
            until = len(confirmed) + rng.randrange(6)
            while len(confirmed) < until and any(client.is_alive() for client in clients):
                time.sleep(0.0005)
            time.sleep(rng.random() * 0.01)
            subprocess.run(["kill", "-9", pid], check=True)
            stop.set()
            for client in clients:
                client.join()
            if kill % 50 == 0 or kill == n_kills - 1:
                saved = {event["id"] for event in read_events(folder, TEXTS)}
                assert set(confirmed) <= saved
        process.wait()
    assert len(confirmed) > n_kills
