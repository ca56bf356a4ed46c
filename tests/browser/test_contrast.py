"""The measurement of contrast itself, on pages with known answers."""

import pytest

from tests.browser.contrast import TEXT_RATIO, contrasts


# The ratios on white are W3C's and WebAIM's worked examples; half of black over white is #808080, 3.95.
@pytest.mark.parametrize(
    ("style", "ratio"),
    [
        ("color: black; background: white", 21.0),
        ("color: #767676; background: white", 4.54),
        ("color: #777777; background: white", 4.48),
        ("color: rgba(0, 0, 0, 0.5); background: white", 3.95),
        ("color: white; background: rgba(0, 0, 0, 0.5)", 3.95),
    ],
)
def test_ratio(browser, style, ratio):
    page = browser.new_page()
    page.set_content(f"<div style='background: white'><p style='{style}'>words</p></div>")
    ((measured, text),) = contrasts(page.locator("div"))
    page.close()
    assert text == "words" and measured == pytest.approx(ratio, abs=0.06)
    assert (measured < TEXT_RATIO) == (ratio < 4.5)


def test_hidden_text_does_not_count(browser):
    page = browser.new_page()
    page.set_content("<div>seen<p style='display: none'>hidden</p></div>")
    texts = [text for _, text in contrasts(page.locator("div"))]
    page.close()
    assert texts == ["seen"]
