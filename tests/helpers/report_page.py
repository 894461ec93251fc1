"""A report of an example, parsed: its tags, the text of each section, and the cells of its tables."""

import re
from html.parser import HTMLParser

from helpers.report_example import example_model, example_names, example_results
from transduce.cli.report import build_report

CLASSES = ("coffee", "tea", "water")
TEXTS = [f"document number {i}" for i in range(40)]
ALL_TEA = ["tea"] * len(TEXTS)
VOID = {"meta", "wbr", "link", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, the text inside each section, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.open: list[str] = []
        self.section = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.section = dict(attrs)["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.section] = self.text.get(self.section, "") + data

    def numbers(self, section):
        return re.findall(r"\d+", self.text[section].replace("\u202f", ""))


def report(classes=CLASSES, texts=TEXTS, tree=False, truth=None, **about):
    model = example_model(classes, tree, **about)
    html = build_report(model, example_results(classes, texts), example_names(), truth=truth)
    return html, Page(html)


def cells(html, section):
    """Rows of the tables of a section, as lists of their texts."""
    inside = html.split(f'<section id="{section}">')[1].split("</section>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", inside, re.S)
    plain = [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows]
    return [[cell.replace("\u202f", "").replace("\u00a0", " ") for cell in row] for row in plain]
