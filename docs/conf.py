"""Configuration of the documentation site: `make docs` builds it to build/docs, without a network."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "tools"))

import api_pages  # noqa: E402 -- it is in docs/tools
import command_pages  # noqa: E402
import inventories  # noqa: E402

import transduce  # noqa: E402
from transduce.cli.main import cli  # noqa: E402

MODULES = ["transduce", *re.findall(r"^    (transduce\.\S+)", str(transduce.__doc__), re.MULTILINE)]
"""Modules of the API reference: the package, and those that its docstring lists."""

project = "transduce"
copyright = "the transduce contributors"
version = release = transduce.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["tools"]
highlight_language = "none"
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = api_pages.aliases(MODULES) | inventories.ALIASES

intersphinx_mapping = inventories.write(DOCS.parent / "build" / "inventories")
intersphinx_disabled_reftypes = ["std:doc"]

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "transduce"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "reproduction": []}  # the latter has wide tables
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app):
    """Write the pages of the reference before Sphinx looks for pages, and link names by their last parts."""
    generated = DOCS / "reference" / "generated"
    app.connect("config-inited", lambda app, config: api_pages.write(MODULES, generated))
    app.connect("config-inited", lambda app, config: command_pages.write(cli, "transduce", generated / "commands"))
    app.connect("missing-reference", api_pages.resolve)
    app.connect("doctree-resolved", api_pages.link_literals)
