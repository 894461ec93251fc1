"""The report in a browser: hostile texts are shown literally and never run, and the page fits a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import needs_browser, open_browser, set_screen
from helpers.hostile import PAYLOADS
from helpers.report_example import example_model, example_names, example_results

from transduce.cli.report import build_report, write_report

pytestmark = needs_browser

SECTIONS = ["summary", "sizes", "confidence", "overruled", "stated", "words", "uncertain", "confusion", "progress"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def hostile_html(classes: list[str], tree: bool = False) -> str:
    column = '"><script>window.__pwned="column"</script>'
    model = example_model(classes, tree, PAYLOADS, source=PAYLOADS[0], prior=PAYLOADS[3], ending=PAYLOADS[5])
    words = [[(payload, 1.0)] for payload in classes]
    results = example_results(classes, PAYLOADS, column)
    return build_report(model, results, example_names((column,)), truth=list(reversed(classes)), words=words)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose texts, labels, words, column and file name all try to break out."""
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    write_report(hostile_html(PAYLOADS), str(path))
    return path


def open_page(browser: Any, path: Path, width: int = 1200, scheme: str = "light") -> None:
    set_screen(browser, width, scheme=scheme)
    browser.get_log("browser")
    browser.get(path.as_uri())


def assert_nothing_ran(browser: Any) -> None:
    assert browser.execute_script("return window.__pwned") is None
    assert browser.title.startswith("Results for ")
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    forbidden = "script, iframe, object, embed, img, image, link, form, base, input, video, audio, [style]"
    assert browser.execute_script("return document.querySelectorAll(arguments[0]).length", forbidden) == 0
    every = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).map(a => [a.name, a.value])"
    attributes = browser.execute_script(f"return {every}")
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert not [value for _, value in attributes if "://" in value or "javascript:" in value.lower()]
    assert {value[0] for name, value in attributes if name.endswith("href")} == {"#"}
    assert browser.get_log("browser") == []


def test_hostile_texts_labels_and_names_do_nothing(browser: Any, hostile: Path) -> None:
    open_page(browser, hostile)
    for section in SECTIONS:
        assert browser.find_element("css selector", f"section#{section} > h2").is_displayed()
    assert_nothing_ran(browser)
    assert browser.execute_script("return document.querySelectorAll('h1').length") == 1


@pytest.mark.slow
def test_hostile_texts_labels_and_names_are_shown_literally(browser: Any, hostile: Path) -> None:
    open_page(browser, hostile)
    shown = "[...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    labels = browser.execute_script(f"return {shown}", "#sizes tbody th")
    assert sorted(labels) == sorted(PAYLOADS)
    words = browser.execute_script(f"return {shown}", "#words dd bdi")
    assert words == PAYLOADS
    texts = browser.execute_script(f"return {shown}", "#uncertain td.text")
    not_given = [payload for i, payload in enumerate(PAYLOADS) if i % 5 != 4]
    assert texts == not_given[:30]
    assert '"><script>window.__pwned="column"</script>' in browser.execute_script(
        f"return {shown}", "#uncertain th bdi"
    )


@pytest.mark.slow
def test_hostile_tree_does_nothing_when_it_is_opened(browser: Any, tmp_path: Path) -> None:
    write_report(hostile_html(PAYLOADS, tree=True), str(tmp_path / "tree.html"))
    open_page(browser, tmp_path / "tree.html")
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    leaves = browser.execute_script("return [...document.querySelectorAll('#tree .leaf')].map(e => e.innerText)")
    assert len(leaves) == len(PAYLOADS)
    assert_nothing_ran(browser)


@pytest.mark.slow
def test_policy_stops_an_injected_script(browser: Any, hostile: Path, tmp_path: Path) -> None:
    html = hostile.read_text(encoding="utf-8")
    script = "<script>window.__pwned=1</script>"
    (tmp_path / "open.html").write_text("<!DOCTYPE html><title>x</title>" + script, encoding="utf-8")
    open_page(browser, tmp_path / "open.html")
    assert browser.execute_script("return window.__pwned") == 1  # so the tests above can fail
    (tmp_path / "closed.html").write_text(html.replace("<main>", f"<main>{script}"), encoding="utf-8")
    open_page(browser, tmp_path / "closed.html")
    assert browser.execute_script("return window.__pwned") is None
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [420, 500, 600])
def test_charts_fill_the_width_of_tablets(browser: Any, hostile: Path, width: int) -> None:
    open_page(browser, hostile, width)
    script = (
        "return [...document.querySelectorAll('figure')].map(f => [f.clientWidth, "
        "Math.max(...[...f.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width))])"
    )
    found = browser.execute_script(script)
    assert found
    assert all(chart >= 0.99 * figure > 0 for figure, chart in found)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_page_fits_the_screen_in_light_and_dark(browser: Any, hostile: Path, width: int, scheme: str) -> None:
    open_page(browser, hostile, width, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    wide, screen = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen == width
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 27)"}[scheme]
    charts = browser.execute_script("return [...document.querySelectorAll('figure svg')].map(e => e.clientWidth)")
    seen = [chart for chart in charts if chart]
    assert len(seen) == len(charts) / 2 == 5
    assert max(seen) <= width


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: Any, hostile: Path, scheme: str) -> None:
    open_page(browser, hostile, scheme=scheme)
    read = "const s = getComputedStyle(document.documentElement); return arguments[0].map(n => s.getPropertyValue(n))"
    names = ["--ink", "--muted", "--accent", "--warn", "--paper", "--panel", "--warn-tint"]
    color = dict(zip(names, browser.execute_script(read, names), strict=True))
    for text, ground in [
        ("ink", "paper"),
        ("muted", "paper"),
        ("accent", "paper"),
        ("muted", "panel"),
        ("warn", "warn-tint"),
    ]:
        assert contrast(color[f"--{text}"].strip(), color[f"--{ground}"].strip()) >= 4.5


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, as WCAG defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.slow
def test_print_is_light_and_opens_what_is_folded(browser: Any, hostile: Path) -> None:
    open_page(browser, hostile, scheme="dark")
    dark = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        last = "return [...document.querySelectorAll('#sizes tbody tr')].at(-1).checkVisibility()"
        assert browser.execute_script(last)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
