"""Check that every link within the built site leads to a page, and every fragment to an element of it.

Usage: python docs/tools/links.py build/docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Targets of the links of a page, and the names that links may point to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collect what a tag links to and what it is called."""
        found = dict(attributes)
        self.links |= {found[key] for key in ("href", "src") if found.get(key)}
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}


def broken_links(site):
    """Return "PAGE: LINK" for every internal link that leads nowhere."""
    site = Path(site).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}  # templates of the theme
    found = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc and not _leads_somewhere(path, parts, pages):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def _leads_somewhere(path, parts, pages):
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    is_named = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].names
    return target.exists() and is_named


def main(arguments):
    """Print the broken links; return how the process ends."""
    found = broken_links(arguments[0])
    print("\n".join([*found, f"{len(found)} broken links in {arguments[0]}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
