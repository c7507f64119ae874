"""What the saved outputs say about experiments (reruns/catalogue.py)."""

import re
from graphlib import TopologicalSorter
from itertools import pairwise

import pytest
from commands import ROOT

from beyond import course_table
from lab import script, sources
from reruns import catalogue

ENTRIES = catalogue.entries()


def test_quick_ones_are_those_that_take_seconds():
    quick = {name for name, entry in ENTRIES.items() if entry.is_quick}
    assert quick > {"bptt", "decay", "vanishing", "gates", "corpus", "ngram", "kneser_ney", "ctc", "parallel", "scan"}
    assert not quick & {"hmm", "char_models", "reverse", "parallel_lengths", "generation"}


def test_what_times_is_timed():
    """A training's own seconds are told, not judged; where times are the result, nothing may run beside them."""
    timed = {name for name, entry in ENTRIES.items() if entry.is_timed}
    assert timed >= {"parallel", "parallel_lengths", "generation", "scan_lengths"}
    assert not timed & {"bptt", "char_models", "reverse", "hmm"}


def test_what_is_long_is_timed_or_a_sweep():
    for entry in ENTRIES.values():
        assert entry.is_quick != (entry.is_sweep or (entry.is_timed and entry.name != "parallel")), entry.name


def test_turns_are_quick_ones_then_sweeps_from_the_longest_then_what_is_timed():
    order = sorted(ENTRIES.values(), key=lambda entry: entry.turn)
    kinds = [2 * entry.is_timed + entry.is_sweep for entry in order]
    assert kinds == sorted(kinds)
    assert all(a.core_seconds >= b.core_seconds for a, b in pairwise(entry for entry in order if entry.is_sweep))
    names = [entry.name for entry in order]
    assert max(names.index("ngram"), names.index("kneser_ney")) < names.index("char_models")  # which reads theirs


MODULES = [path.stem for path in ROOT.glob("*.py")] + [f"beyond.{path.stem}" for path in ROOT.glob("beyond/[!_]*.py")]
OF_OTHERS = re.compile(
    r"results\.load\(|saved_for\(|best_of_counting\(|sweep\(arguments, "
)  # what looks at what they saved


def test_a_script_that_looks_at_what_others_saved_says_which():
    """All of them are scripts, and none waits for itself, by whatever detour."""
    reads = {entry.name: entry.reads for entry in map(catalogue.Entry, MODULES) if entry.name != "rerun"}
    looking = {m for m in MODULES if OF_OTHERS.search(sources.path_of(m).read_text(encoding="utf-8"))} - {"rerun"}
    assert {m.removeprefix("beyond.") for m in looking} == {name for name, others in reads.items() if others}
    assert set().union(*reads.values()) <= reads.keys()
    order = list(TopologicalSorter(reads).static_order())  # raises where there is a circle
    assert order.index("char_models") < order.index("scan_models") < order.index("gpt") < order.index("ladder")
    assert list(course_table.WANTED) == list(course_table.READS)


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_saved_of_a_script_is_what_it_says_itself(name):
    entry = ENTRIES[name]
    code = entry.script()
    taken = vars(code.parser().parse_args([]))
    assert entry.takes == [option for option in script.SHARED if option in taken]
    assert entry.record["kinds"] == code.kinds
    assert ("data" in entry.takes) == bool(entry.record["corpus"])
    assert ("jobs" in entry.takes) == ("cluster" in entry.takes)


def test_an_experiment_that_has_saved_nothing_is_asked_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(catalogue.results, "SAVED", tmp_path)
    for name in ("parallel", "ngram", "reverse"):
        fresh = catalogue.Entry(ENTRIES[name].module)
        assert fresh.record is None
        assert (fresh.takes, fresh.is_timed) == (ENTRIES[name].takes, ENTRIES[name].is_timed)


def test_seconds_of_a_core_are_a_run_s_own_or_those_of_its_trainings():
    entry = object.__new__(catalogue.Entry)
    entry.record = {"seconds": 10.0, "environment": {"cores": 2}, "results": {}}
    assert entry.core_seconds == 20
    entry = object.__new__(catalogue.Entry)
    trained = [{"seconds": 30.0}, {"seconds": 40.0}]  # interrupted, the last command took 10 s
    entry.record = {"seconds": 10.0, "environment": {"cores": 2}, "results": {"runs": trained}}
    assert entry.core_seconds == 70
