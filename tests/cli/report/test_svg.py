"""SVG elements: escaping, shortened names and axis ticks."""

import numpy as np
import pytest
from markupsafe import escape

from transduce.cli.report.svg import element, shorten, text_width, ticks, truncate


@pytest.mark.parametrize("text", ["</svg><script>", '" onload="x', "a & b", "東京", "$x_1$", ""])
def test_texts_and_attributes_are_escaped(text):
    assert element("text", text, id=text) == f'<text id="{escape(text)}">{escape(text)}</text>'


@pytest.mark.parametrize("name", ["rec/sport/hockey", "mathematics", "東京都/新宿区", "a" * 500, "/" * 500, "short"])
def test_shortened_names_fit_and_keep_the_full_name_as_a_tooltip(name):
    markup, width = shorten(name, 8)
    shown, _, tooltip = markup.partition("<title>")
    assert text_width(shown) == width <= 8
    assert tooltip == ("" if shown == name else f"{name[:200]}</title>")


def test_texts_are_cut_to_one_line_of_a_width():
    assert [truncate("one  two\nthree", 8), truncate("東京都", 5)] == ["one two…", "東京…"]
    shown = [shorten(name, width)[0].partition("<")[0] for name, width in (("rec/sport/hockey", 14), ("rec/chess", 4))]
    assert shown == ["…/sport/hockey", "…ess"]


def test_ticks_are_few_round_multiples_inside_the_range():
    rng = np.random.default_rng(0)
    for low, width, at_most in zip(
        rng.normal(size=200), rng.exponential(size=200), rng.integers(3, 8, 200), strict=True
    ):
        found = np.array(ticks(low, low + width, int(at_most)))
        assert low <= found.min() + 1e-9
        assert found.max() <= low + width + 1e-9
        assert at_most / 3 <= len(found) <= at_most + 1
        steps = np.diff(found) / 10.0 ** np.floor(np.log10(np.diff(found)) + 1e-9)
        assert set(steps.round(6)) <= {1, 2, 5}
