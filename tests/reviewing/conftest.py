"""A browser, and the page of a review in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.browser import open_browser
from helpers.review_page import GIVEN, TEXTS, opened
from helpers.reviews import open_session, running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser: Any, tmp_path: Any) -> Iterator[Any]:
    """The page of a review with proposals, whose fits the tests call."""
    with open_session(tmp_path, TEXTS, GIVEN) as session:
        session.fit_now()
        with running(session, lambda format: {"path": f"out.{format}", "next": "transduce label"}) as server:
            yield opened(browser, session, server)
