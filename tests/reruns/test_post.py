"""outputs/POST.md holds every figure, setting and conclusion of the post, and a change of any is noticed."""

import copy
import json

import pytest
from claim_cases import BY_NAME, PUBLISHED

from lab import results
from lab.errors import SAVED
from reruns import catalogue, claims, comparing, post, prose
from reruns.claims import outline

ENTRIES = list(catalogue.entries().values())
POSTS = {name: entry for name, entry in PUBLISHED.items() if entry.get("source") == "post"}


@pytest.fixture(scope="module")
def page():
    return post.page(ENTRIES, PUBLISHED, claims.CLAIMS, SAVED)


def test_every_published_entry_says_where_it_is_from():
    for name, entry in PUBLISHED.items():
        if name != "_about":
            assert entry["source"] in ("post", "course"), name
    assert PUBLISHED["reverse"][comparing.RERUN]["source"] == "post, second machine"


def leaves(value):
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("name", [name for name in POSTS if name != "whole_post"])
def test_no_figure_of_a_script_is_missing(name, page):
    """As many numbers stand in the script's table as are published of it, and none without ours beside it."""
    entry = next(entry for entry in ENTRIES if entry.name == name)
    published = {key: POSTS[name][key] for key in POSTS[name] if key not in comparing.NO_FIGURES}
    record = results.load(name)
    compared = comparing.with_published(record, PUBLISHED, posts_own_text=False)
    assert len(compared) == len(list(leaves(published)))
    assert all(one.ours is not None for one in compared), [one.path for one in compared if one.ours is None]
    (_, table) = post.printed(entry, PUBLISHED, SAVED)
    assert table in page
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    shown = sum(cells[1].count(" / ") + 1 for cells in rows)
    asked = sum(post.is_asked(record, one.path) for one in compared)
    named_only = sum(all(post.is_asked(record, one.path) for one in own) for own in grouped(compared).values())
    assert shown == len(compared) - asked + named_only


def grouped(compared):
    rows = {}
    for one in compared:
        rows.setdefault(post.row_of(one.path), []).append(one)
    return rows


def test_a_changed_figure_changes_the_page(page):
    for name, key in (("gates", "gradient_size"), ("ngram", "bits_per_char"), ("reverse", "runs")):
        changed = copy.deepcopy(PUBLISHED)
        first = changed[name][key]
        while isinstance(first, dict | list):
            of, at = first, next(iter(first)) if isinstance(first, dict) else 0
            at = "digits_right" if "digits_right" in of else at
            first = first[at]
        of[at] = 0.123456
        assert post.page(ENTRIES, changed, claims.CLAIMS, SAVED) != page


def test_every_figure_of_its_prose_has_a_claim_of_the_post(page):
    for name, entry in POSTS.items():
        for row in entry.get("in_prose", []):
            assert BY_NAME[row["claim"]].source == "the post", row
            found = prose.compared(name, row, SAVED)
            cells = page.split(f"\n| {row['what']} | {found.theirs} | {found.ours} | ")[1].split("\n")[0].split(" | ")
            assert cells[0] == (found.why or f"**{found.verdict}**") and cells[1] == row["claim"]
            assert cells[2].startswith("[`") and cells[2].count("](") == len(prose.needs(name, row["what"]))
    # What the post tells of its second machine stands there whole.
    told = [float(f) for row in POSTS["reverse"]["in_prose"] for f in leaves(row["figure"])]
    second = PUBLISHED["reverse"][comparing.RERUN]
    assert {float(f) for f in leaves(second) if not isinstance(f, str)} <= set(told)


def test_every_setting_is_the_post_s():
    """A constant of ours with another value would be another experiment."""
    compared = list(post.compared_settings(POSTS))
    assert len(compared) == 45
    assert [name for name, value, ours in compared if json.loads(json.dumps(ours)) != value] == []


def test_another_setting_is_told(monkeypatch):
    monkeypatch.setattr("seq2seq.BATCH", 32)
    (table,) = post.settings(POSTS)
    assert "| `seq2seq.BATCH` | 64 | 32 | **another** |" in table and table.count("**another**") == 1


def test_every_place_of_the_post_says_in_which_scripts_it_is(page):
    """Those of all of its claims, each with a link: on the page of its chapter stand what it is and what it printed."""
    rows = {cells[1].strip(): cells[-2] for line in page.splitlines() if len(cells := line.split("|")) == 6}
    for place in outline.CONCLUSIONS:
        own = [claim for claim in claims.CLAIMS if claim.source == "the post" and place in claim.where]
        names = {name for claim in own for name in claim.experiments}
        assert names and rows[place].count("](") == len(names)
        assert all(f"#{name})" in rows[place] for name in names)


def test_every_place_and_every_claim_of_the_post_is_on_the_page(page):
    for place, what in outline.CONCLUSIONS.items():
        assert f"| {place} | {what} |" in page
    for place, (what, why) in outline.NOT_JUDGED.items():
        assert f"| {place} | {what} | {why} |" in page
    for claim in claims.CLAIMS:
        assert (f"| {claim.name} | {claim.sentence} |" in page) == (claim.source == "the post")


def test_ours_is_told_as_the_post_prints_its_own():
    record = {"experiment": "gates", "corpus": None, "kinds": {"*": "exact .1e", "runs.*.steps": "setting"}}
    found = comparing.with_published(
        record | {"results": {"size": [0.123, 2.0], "many": 12345}},
        {"gates": {"size": [0.12, 3.0], "many": 12345, "gone": 1}},
        posts_own_text=False,
    )
    assert [post.named(one, True) for one in found] == ["1.2e-01", "2.0e+00", "12,345", "–"]
    assert [post.named(one, False) for one in found] == ["0.12", "3", "12,345", "1"]
    assert post.row_of("size.0") == "size" and post.row_of("many") == "many"
    assert post.row_of("runs.3.digits_right") == "runs.3" and post.row_of("h.0.1") == "h.0"
