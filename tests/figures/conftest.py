"""Every picture that a test of this folder draws must be readable, whatever else the test is about."""

import matplotlib.style
import pytest

from labkit.figures.picture import Picture
from tests.figures.reading import entries_told_by_colour_alone, low_contrasts


@pytest.fixture(autouse=True, params=["default", "dark_background"])
def drawn(request, monkeypatch):
    """The pictures that the test has drawn so far; checked at its end, under both of matplotlib's grounds."""
    pictures, original = [], Picture.__init__

    def record(self, *args, **kwargs):
        original(self, *args, **kwargs)
        pictures.append(self)

    monkeypatch.setattr(Picture, "__init__", record)
    with matplotlib.style.context(request.param):
        yield pictures
        for picture in pictures:
            assert low_contrasts(picture) == []
            assert entries_told_by_colour_alone(picture) == []
            assert picture.alt
