"""Comparing with saved and published figures, the comparisons themselves tested by perturbation."""

import copy

import pytest

from reruns import comparing


def record(name, results, corpus=None):
    return {"experiment": name, "corpus": corpus, "results": results, "kinds": KINDS[name]}


# As the scripts declare them.
KINDS = {
    "bptt": {"*": "exact .4f", "largest_gap_to_finite_differences": "rounding .1e"},
    "vanishing": {"*": "exact .1e", "*.radius": "exact .1f"},
    "gates": {"*": "exact .1e", "steps_back.*": "exact"},
    "ngram": {"*": "corpus .3f"},
    "parallel": {"*": "exact .2f", "*.ms": "timing .1f"},
    "hmm": {"*": "trained", "runs.*.states": "setting"},
    "reverse": {
        "*": "trained",
        "runs.*_right": "trained .3f",
        **{f"runs.*.{name}": "setting" for name in ("length", "attention", "steps")},
    },
}


def verdicts(comparisons):
    return {comparison.path: comparison.verdict for comparison in comparisons}


BPTT = record("bptt", {"h": [[0.537049566998, -0.2913]], "y": -0.275, "largest_gap_to_finite_differences": 4.6e-11})


def test_exact_numbers_agree_to_a_billionth_and_no_worse():
    saved = copy.deepcopy(BPTT)
    assert set(verdicts(comparing.with_saved(BPTT, saved)).values()) == {comparing.SAME}
    saved["results"]["h"][0][0] *= 1 + 0.9e-9
    assert verdicts(comparing.with_saved(BPTT, saved))["h.0.0"] == comparing.SAME
    saved["results"]["h"][0][0] = BPTT["results"]["h"][0][0] * (1 + 1.1e-9)
    assert verdicts(comparing.with_saved(BPTT, saved))["h.0.0"] == comparing.DIFFERS


@pytest.mark.parametrize("change", [{"y": None}, {"y": "-0.275"}, {"y": -0.274}, {"extra": 1}])
def test_a_changed_missing_or_added_number_differs(change):
    ours = copy.deepcopy(BPTT)
    ours["results"] |= change
    assert comparing.DIFFERS in verdicts(comparing.with_saved(ours, BPTT)).values()
    assert comparing.DIFFERS in verdicts(comparing.with_saved(BPTT, ours)).values()


def test_whole_numbers_and_truths_are_not_mixed_up():
    saved = record("gates", {"steps_back": [1, 0]})
    assert (
        comparing.DIFFERS in verdicts(comparing.with_saved(record("gates", {"steps_back": [True, 0]}), saved)).values()
    )


def test_timings_are_never_compared():
    ours, saved = (record("parallel", {"GRU": {"GFLOPs": 0.81, "ms": ms}}) for ms in (1.0, 9.5))
    assert verdicts(comparing.with_saved(ours, saved)) == {
        "GRU.GFLOPs": comparing.SAME,
        "GRU.ms": comparing.NOT_COMPARED,
    }


def test_figures_on_another_text_are_not_compared():
    ours, saved = record("ngram", {"bits_per_char": [5.0]}, "one"), record("ngram", {"bits_per_char": [4.9]}, "another")
    assert verdicts(comparing.with_saved(ours, saved)) == {"bits_per_char.0": comparing.NOT_COMPARED}
    saved["corpus"] = "one"
    assert verdicts(comparing.with_saved(ours, saved)) == {"bits_per_char.0": comparing.DIFFERS}


def test_an_undeclared_kind_is_an_error_of_ours():
    with pytest.raises(KeyError, match=r"no kind is declared for unheard_of\.x"):
        comparing.kind_of({"runs.*": "trained"}, "unheard_of.x")


def test_the_last_pattern_decides_and_what_is_implied_needs_none():
    kinds = {"*": "trained .3f", "runs.*.length": "setting", "runs.*.curve.*": "timing"}
    expected = {"x": "trained", "runs.0.length": "setting", "runs.0.curve.3": "timing"}
    expected |= {"runs.0.seed": "exact", "runs.0.seconds": "timing", "seconds": "timing"}
    assert {path: comparing.kind_of(kinds, path) for path in expected} == expected


def test_a_script_can_not_declare_away_what_is_saved():
    ours, saved = record("bptt", {"y": 1.0}), record("bptt", {"y": 2.0})
    ours["kinds"] = {"*": "exact", "y": "timing"}
    assert verdicts(comparing.with_saved(ours, saved)) == {"y": comparing.DIFFERS}


CASE = {"radius": 0.9, "activation": "tanh"}
PUBLISHED = {"vanishing": {"kind": "exact", "gradient_size": [{**CASE, "sizes": [0.66, 1.6e-08]}]}}


@pytest.mark.parametrize(
    "sizes, agree",
    [
        ([0.6649, 1.649e-08], True),  # printed 6.6e-01 and 1.6e-08
        ([0.6651, 1.649e-08], False),  # printed 6.7e-01
        ([0.6649, 1.651e-08], False),  # printed 1.7e-08
    ],
)
def test_published_figures_are_compared_to_the_digits_that_the_post_prints(sizes, agree):
    ours = record("vanishing", {"gradient_size": [{**CASE, "sizes": sizes}]})
    found = verdicts(comparing.with_published(ours, PUBLISHED, posts_own_text=False)).values()
    assert (comparing.DIFFERS not in found) == agree


def test_a_published_figure_that_we_lack_differs():
    ours = record("vanishing", {"gradient_size": []})
    assert set(verdicts(comparing.with_published(ours, PUBLISHED, posts_own_text=False)).values()) == {
        comparing.DIFFERS
    }


def test_published_figures_on_text_need_the_posts_own_text():
    published = {"ngram": {"kind": "corpus", "bits_per_char": [5.003]}}
    ours = record("ngram", {"bits_per_char": [5.0031]}, "a fingerprint")
    for own, verdict in ((False, comparing.NOT_COMPARED), (True, comparing.SAME)):
        assert verdicts(comparing.with_published(ours, published, posts_own_text=own)) == {"bits_per_char.0": verdict}


def test_rounding_errors_are_held_to_their_size():
    ours = copy.deepcopy(BPTT)
    sizes = {4.6e-11: comparing.SAME, 2e-11: comparing.WITHIN, 4.7e-10: comparing.DIFFERS, 0.0: comparing.DIFFERS}
    for gap, verdict in sizes.items():
        ours["results"]["largest_gap_to_finite_differences"] = gap
        published = {"bptt": {"largest_gap_to_finite_differences": 4.6e-11}}
        for found in (
            comparing.with_saved(ours, BPTT),
            comparing.with_published(ours, published, posts_own_text=False),
        ):
            assert verdicts(found)["largest_gap_to_finite_differences"] == verdict


def sweep(*figures, steps=2000, **more):
    runs = [
        {"length": length, "attention": True, "seed": seed, "steps": steps, "digits_right": right}
        for length, right, seed in figures
    ]
    return {"runs": runs, **more}


SEEDS = sweep((10, 0.98, 0), (10, 0.99, 1), (20, 0.90, 0), (20, 0.94, 1))


@pytest.mark.parametrize(
    "right, verdict",
    [
        (0.98, comparing.SAME),
        # At length 10 the seeds' range is 0.01 and the median range 0.025, so that 0.98 - 3 * 0.025 = 0.905 is the end.
        (0.906, comparing.WITHIN),
        (0.904, comparing.DIFFERS),
    ],
)
def test_a_trained_number_is_held_to_the_spread_over_seeds(right, verdict):
    ours = record("reverse", sweep((10, right, 0), (10, 0.99, 1), (20, 0.90, 0), (20, 0.94, 1)))
    found = verdicts(comparing.with_saved(ours, record("reverse", SEEDS)))
    assert found.pop("runs.0.digits_right") == verdict
    assert set(found.values()) == {comparing.SAME}


def test_one_seed_has_no_spread():
    ours, saved = record("reverse", sweep((40, 0.5, 0))), record("reverse", sweep((40, 0.9, 0)))
    assert verdicts(comparing.with_saved(ours, saved))["runs.0.digits_right"] == comparing.NOT_COMPARED


def test_what_one_trained_model_wrote_or_is_like_is_not_compared():
    ours, saved = (record("hmm", {"sample": text, "transition": [[p]]}) for text, p in (("ab", 0.1), ("ba", 0.2)))
    assert set(verdicts(comparing.with_saved(ours, saved)).values()) == {comparing.NOT_COMPARED}


def test_another_setting_in_the_same_place_differs():
    ours, saved = record("reverse", sweep((40, 0.5, 0), steps=3000)), record("reverse", sweep((40, 0.5, 0)))
    assert verdicts(comparing.with_saved(ours, saved))["runs.0.steps"] == comparing.DIFFERS


@pytest.mark.parametrize(
    "right, verdict",
    [
        (0.9804, comparing.SAME),  # printed 0.980
        (0.985, comparing.WITHIN),
        (0.9904, comparing.WITHIN),  # printed 0.990, as the other seed's
        (0.9906, comparing.OUTSIDE),
        (0.97, comparing.OUTSIDE),
        (0.74, comparing.OUTSIDE),
    ],
)
def test_a_published_trained_number_is_placed_in_the_range_of_the_posts_seeds(right, verdict):
    ours = record("reverse", sweep((10, right, 0), (10, 0.99, 1), (20, 0.90, 0), (20, 0.94, 1)))
    found = verdicts(comparing.with_published(ours, {"reverse": SEEDS}, posts_own_text=False))
    assert found["runs.0.digits_right"] == verdict


def test_the_posts_second_machine_widens_the_range():
    more = {"rerun_on_rtx_3090": {"length 40, attention, two seeds": {"digits_right": [0.74, 0.35]}}}
    published = {"reverse": sweep((40, 0.479, 0), (40, 0.25, 1), **more)}
    for right, verdict in ((0.73, comparing.WITHIN), (0.75, comparing.OUTSIDE)):
        ours = record("reverse", sweep((40, right, 0), (40, 0.25, 1)))
        found = verdicts(comparing.with_published(ours, published, posts_own_text=False))
        assert found["runs.0.digits_right"] == verdict and len(found) == 10
