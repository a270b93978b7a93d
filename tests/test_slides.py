"""The slides: the evening in order, stages alive, minutes in notes, nothing from elsewhere."""

import functools
import re

import build_slides
import minutes
import pytest
from site_front import title_of


@functools.cache
def evening():
    return {name: some for name, (some, _) in minutes.both().items() if some}


@pytest.fixture(scope="module")
def html():
    return build_slides.slides()


def test_each_notebook_of_the_evening_is_a_column_with_its_minutes(html):
    assert re.findall("<h1[^>]*>(.+?)</h1>", html) == [
        title_of(build_slides.COURSE[name]) for name in evening()
    ]
    said = [(int(a), int(b)) for a, b in re.findall(r"Minutes (\d+) to (\d+)\.", html)]
    assert [end - start for start, end in said] == list(evening().values())
    assert said[0][0] == 0 and said[-1][1] == sum(evening().values())
    assert html.count('<aside class="notes">') >= len(evening())


def test_nothing_leads_away_or_is_loaded_from_elsewhere(html):
    markup = re.sub("<script type=.+?</script>", "", html, flags=re.DOTALL)
    loaded = re.findall(r'(?:src|href)="([^"]+)"', markup)
    assert all(each.startswith(("assets/", "data:", "#past-")) for each in loaded), loaded
    assert "# Solution" not in html
