"""The server: requests of the page are answered, all others refused, and what it says is saved is on the disk."""

import errno

import pytest
from helpers.reviews import CLASSES, Client, corpus, open_session, running

from transduce.errors import InputError
from transduce.reviewing.log import SaveError, read_events
from transduce.reviewing.security import POLICY
from transduce.reviewing.server import Api

TEXTS, TRUTH = corpus(40)
GIVEN = [label if row < 12 else None for row, label in enumerate(TRUTH)]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    with open_session(folder, TEXTS, GIVEN) as session:
        session.fit_now()
        with running(session, lambda format: {"path": f"out.{format}"}) as server:
            found = Client(server)
            found.session, found.folder, found.server = session, folder, server
            yield found


def test_the_first_url_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(client):
    assert client.welcome.status == 200
    assert b'http-equiv="refresh" content="0;url=/"' in client.welcome.content
    cookie = client.welcome.getheader("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = client.request("GET", "/", cookie=client.cookie)
    assert page.status == 200
    assert page.getheader("content-security-policy") == POLICY
    assert b"<!doctype html>" in page.content.lower()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"cookie": None}, 403),
        ({"cookie": "transduce_review=x"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": None}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_type": None}, 415),
    ],
)
def test_requests_of_others_are_refused_and_change_nothing(client, headers, status):
    before = client.session.state.n_events
    client.post("events", {"events": [{"op": "skip", "rows": [20]}]}, status, **headers)
    assert client.session.state.n_events == before


def test_odd_cookies_of_other_servers_do_no_harm(client):
    assert client.request("GET", "/", cookie=f'a[b]="x; {client.cookie}; c={{"d": 1}}').status == 200


@pytest.mark.parametrize("path", ["/?token=x", "/?token=", "/", "/app.js", "/../log.py", "/%2e%2e/log.py"])
def test_nothing_is_shown_without_the_secret(client, path):
    assert client.request("GET", path).status == 403


@pytest.mark.parametrize("path", ["/../log.py", "/%2e%2e%2flog.py", "/server.py", "/api/state", "/etc/passwd"])
def test_only_assets_are_served(client, path):
    assert client.request("GET", path, cookie=client.cookie).status in (404, 405)


def test_other_methods_are_refused(client):
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/state", cookie=client.cookie).status == 405


def test_a_decision_that_was_answered_is_in_the_log(client):
    body = {"events": [{"op": "decide", "rows": [30], "label": CLASSES[0], "how": "queue", "id": "a1"}]}
    answer = client.post("events", body)
    assert answer["done"] == [f"1 document as {CLASSES[0]}"]
    assert read_events(client.folder, TEXTS)[-1]["rows"] == [30]
    before = client.session.state.n_events
    assert client.post("events", body)["done"] == [""]  # sent again after a lost answer
    assert client.session.state.n_events == before


def test_what_could_not_be_saved_is_not_shown_as_saved(client, monkeypatch):
    def fail(event):
        raise SaveError(errno.ENOSPC, "Not saved: no space.")

    monkeypatch.setattr(client.session.log, "append", fail)
    answer = client.post("events", {"events": [{"op": "decide", "rows": [31], "label": CLASSES[0]}]}, 507)
    assert answer == {"error": "Not saved: no space.", "saved": False}
    assert client.session.state.labels()[31] is None


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("events", {"events": 3}),
        ("events", {"events": [3]}),
        ("events", {"events": [{"op": "decide", "rows": ["a"], "label": "x"}]}),
        ("queue", {"n": "many"}),
        ("document", {"row": -1}),
        ("document", {"row": 10**9}),
        ("documents", {"filter": 3}),
        ("documents", {"filter": {"polygon": [[0, 0]]}}),
        ("documents", {"filter": {"low": "x"}}),
        ("documents", {"filter": {"status": "x"}}),
        ("documents", {"filter": {"selection": "s999"}}),
        ("bulk", {"selection": "s999", "label": CLASSES[0]}),
        ("sizes", {"sizes": {CLASSES[0]: "many"}}),
        ("export", {"format": "../x"}),
        ("export", {}),
        ("events", {"events": [{"op": "undo", "event": "another"}]}),
    ],
)
def test_impossible_requests_are_errors_in_a_sentence(client, name, body):
    assert client.post(name, body, 400)["error"]


def test_cards_have_a_proposal_and_reasons(client):
    cards = client.post("queue", {"n": 10})
    assert len(cards) == len({card["row"] for card in cards}) == 10
    assert [card["random"] for card in cards].count(True) == 2
    for card in cards:
        assert card["text"] == TEXTS[card["row"]]
        assert card["proposed"]["label"] in CLASSES
        assert all(word in card["text"].lower() for word in card["words"])
        assert all(one["label"] in CLASSES for one in card["near"])
    more = client.post("queue", {"n": 5, "without": [card["row"] for card in cards]})
    assert {card["row"] for card in more}.isdisjoint(card["row"] for card in cards)


def test_the_state_has_numbers_and_classes(client):
    state = client.post("state", {})
    assert state["n"] == 40
    assert [one["name"] for one in state["classes"]] == sorted(CLASSES)
    assert sum(one["proposed"] for one in state["classes"]) == state["n_undecided"]
    assert client.post("export", {"format": "csv"})["path"] == "out.csv"


def test_an_export_that_fails_says_why(client, monkeypatch):
    def fail(format):
        raise PermissionError(errno.EACCES, "Permission denied")

    api = Api(client.session, fail)
    with pytest.raises(InputError, match=r"not written.*Permission denied"):
        api.export({"format": "csv"})
