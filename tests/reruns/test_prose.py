"""Ours beside each figure of the post's prose (reruns/prose.py): one for each row, held to the post's own results."""

import copy

import pytest
from claim_cases import PUBLISHED

from lab import results
from lab.errors import SAVED
from reruns import comparing, prose
from reruns.comparing import DIFFERS, NOT_COMPARED, OTHER_TEXT, OUTSIDE, SAME
from reruns.prose import OVERLAP, Figure

POSTS = {name: entry for name, entry in PUBLISHED.items() if entry.get("source") == "post"}
ROWS = [(name, row) for name, entry in POSTS.items() for row in entry.get("in_prose", [])]
# The post's figures that its scripts didn't print.
FROM_ELSEWHERE = ("LSTM's best step, near", "sequential steps from token 1 to token 1,000")
PRINTED = [(name, row) for name, row in ROWS if row["what"] not in FROM_ELSEWHERE]
# What was asked for, by which a figure is found.
ASKED = ("radius", "length", "steps", "seed")


def named(rows):
    return {"argvalues": rows, "ids": [f"{name}: {row['what']}" for name, row in rows]}


def parts(name, row, found) -> tuple[Figure, list, list]:
    """The figure, ours of these results, and the post's."""
    figure = prose.FIGURES[name][row["what"]]
    return figure, prose.listed(figure.ours(*found)), prose.listed(row["figure"])


def saved(name, row) -> list[dict]:
    return [results.load(each)["results"] for each in prose.needs(name, row["what"])]


def changed(value):
    """All that came out is another number, thirty times as large, and there are three times as many trainings."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key in ASKED and not isinstance(item, dict)}
        made = {key: changed(item) for key, item in value.items()} | kept
        return made | {"runs": made["runs"] * 3} if "runs" in made else made
    if isinstance(value, list):
        return [changed(item) for item in value]
    return value if value is None or isinstance(value, bool | str) else 30 * value + 1


def test_every_row_has_its_figure_and_every_figure_its_row():
    ours = [(name, what) for name, figures in prose.FIGURES.items() for what in figures]
    assert ours == [(name, row["what"]) for name, row in ROWS]


@pytest.mark.parametrize("name, row", **named(ROWS))
def test_ours_is_there_and_nothing_is_rounded_away_of_the_post_s(name, row):
    found = prose.compared(name, row, SAVED)
    assert any(sign.isdigit() for sign in found.ours)
    assert found.verdict != NOT_COMPARED or found.why in (OTHER_TEXT, "a timing")
    if isinstance(row["figure"], str):
        assert found.theirs == row["figure"]
    else:
        told = found.theirs.replace(" to ", ", ").split(", ")
        assert sorted(float(part.replace(",", "")) for part in told) == sorted(prose.listed(row["figure"]))


@pytest.mark.parametrize("name, row", **named(ROWS))
def test_another_result_has_another_verdict(name, row):
    """Also where text or machine are others, so that the page gives none."""
    found = saved(name, row)
    figure, ours, theirs = parts(name, row, found)
    _, others, _ = parts(name, row, [changed(each) for each in found])
    assert prose.told(figure, ours) != prose.told(figure, others)
    assert prose.judged(figure, others, theirs) in (DIFFERS, OUTSIDE)
    assert prose.judged(figure, list(figure.allowed or theirs), theirs) == SAME


@pytest.mark.parametrize("name, row", **named(PRINTED))
def test_the_post_s_own_results_give_the_post_s_figure(name, row):
    """So what is computed here is what the post names. Where it tells the span of two machines, each has a part."""
    found = copy.deepcopy([PUBLISHED[each] for each in prose.needs(name, row["what"])])
    if name == "reverse" and "both machines" not in row["what"]:
        if "second machine" in row["what"] or row["what"] == "whole sequences there":
            found[0]["runs"] = []
        else:
            del found[0][comparing.RERUN]
    figure, ours, theirs = parts(name, row, found)
    right = (SAME, OVERLAP) if figure.printed.startswith("trained") else (SAME,)
    # It says thirty and lists 38.
    assert prose.judged(figure, ours, theirs) in ((DIFFERS,) if name == "whole_post" else right)


@pytest.mark.parametrize(
    "printed, ours, theirs, allowed, verdict",
    [
        ("exact .2f", [0.8149], [0.81], None, SAME),
        ("exact .2f", [0.8151], [0.81], None, DIFFERS),
        ("exact .0f", [-1.0, 1.0], [1, -1], None, DIFFERS),  # each is a figure of its own
        ("exact .2f", [0.4949], ["almost half"], (0.4, 0.49), SAME),
        ("exact .2f", [0.4951], ["almost half"], (0.4, 0.49), DIFFERS),
        ("corpus ,", [377_236], [377_236], None, SAME),
        ("trained .2f", [0.8349, 0.8251], [0.83], None, SAME),
        ("trained .2f", [0.831, 0.849], [0.83, 0.85], None, SAME),
        ("trained .2f", [0.83, 0.84], [0.83, 0.85], None, OVERLAP),  # inside of it
        ("trained .2f", [0.79, 0.8251], [0.83, 0.85], None, OVERLAP),
        ("trained .2f", [0.79, 0.8249], [0.83, 0.85], None, OUTSIDE),
        ("trained .2f", [0.8549, 0.9], [0.83, 0.85], None, OVERLAP),
        ("trained .2f", [0.8551, 0.9], [0.83, 0.85], None, OUTSIDE),
        ("trained .2f", [0.7, 0.9], [0.83, 0.85], None, OVERLAP),
        ("trained .2f", [0.35, 0.74], [0.74, 0.35], None, SAME),  # seed by seed
        ("trained .2f", [0.009, 0.0249], [0.02], (0, 0.02), SAME),
        ("trained .2f", [0.009, 0.0251], [0.02], (0, 0.02), OVERLAP),
        ("trained .2f", [0.0251, 0.03], [0.02], (0, 0.02), OUTSIDE),
    ],
)
def test_the_verdict_is_on_what_the_post_prints(printed, ours, theirs, allowed, verdict):
    assert prose.judged(Figure(printed, list, allowed=allowed), ours, theirs) == verdict


def test_what_belongs_to_text_or_machine_is_not_compared():
    text = {"exact": "", "trained": OTHER_TEXT, "corpus": OTHER_TEXT, "timing": "a timing"}
    none = text | {"trained": ""}
    for reads_the_text, why in (True, text), (False, none):
        assert {kind: prose.hindrance(Figure(f"{kind} d", list), reads_the_text) for kind in why} == why


def test_what_has_not_been_run_is_named(tmp_path):
    (row,) = POSTS["whole_post"]["in_prose"]
    found = prose.compared("whole_post", row, tmp_path)
    assert (found.ours, found.theirs, found.verdict) == ("–", "30", NOT_COMPARED)
    assert found.why == f"not run yet: {', '.join(prose.SWEEPS)}"


def test_seeds_that_all_diverged_leave_no_figure(tmp_path):
    record = results.load("reverse_40_lr")
    for run in record["results"]["runs"]:
        run["diverged_at_step"] = 7
    (tmp_path / "reverse_40_lr.json").write_text(results.to_json(record), encoding="utf-8")
    found = prose.compared("reverse_40_lr", POSTS["reverse_40_lr"]["in_prose"][0], tmp_path)
    assert (found.ours, found.verdict, found.why) == ("no figures", NOT_COMPARED, "no figures")
