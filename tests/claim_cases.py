"""Holding a claim to its sentence: each figure that it names, replaced by its opposite, has to change the verdict."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.errors import ROOT
from reruns import claims

PUBLISHED = json.loads((ROOT / "data" / "published.json").read_text(encoding="utf-8"))
BY_NAME = {claim.name: claim for claim in claims.CLAIMS}
LEFT_OUT = object()  # in place of a value: what is there goes


@dataclass(frozen=True)
class Case:
    """``found`` are results for which the claim holds, by experiment.

    ``named``: changes of one figure each, as (experiment, path, opposite), after which it must not hold; all of those
    that the sentence names. A figure that stands in two places takes a list of changes. ``fails`` and ``undecided``:
    lists of changes, made together, with that verdict. Claims on figures without chance are undecided only where
    outputs are missing.
    """

    found: dict
    named: list = field(default_factory=list)
    fails: list = field(default_factory=list)
    undecided: list | None = None


def posts(*names: str) -> dict:
    return {name: copy.deepcopy(PUBLISHED[name]) for name in names}


def put(found, path: tuple, value):
    """Replace what a path leads to: a key, an index, ... for all of a list, or a dictionary for items that have it."""
    step, *rest = path
    if step is ...:
        places = list(range(len(found)))
    elif isinstance(step, dict):
        places = [i for i, item in enumerate(found) if step.items() <= item.items()]
    else:
        places = [step]
    assert places, f"nothing has {step}"
    for place in places:
        if rest:
            put(found[place], tuple(rest), value)
        elif value is LEFT_OUT:
            del found[place]
        else:
            found[place] = value(found[place]) if isinstance(value, Callable) else value


def verdict(name: str, found: dict, *changes) -> str:
    """What the claim says of these results after these changes of them."""
    claim, changed = BY_NAME[name], copy.deepcopy(found)
    for experiment, path, value in changes:
        put(changed[experiment], path, value)
    more = {each: changed.get(each) for each in claim.also}
    return claim.judge(*(changed[each] for each in claim.needs), **more)[0]


def check(name: str, case: Case):
    assert verdict(name, case.found) == claims.HOLDS
    assert case.named, "it names no figure"
    for change in case.named:
        changes = change if isinstance(change, list) else [change]
        assert verdict(name, case.found, *changes) != claims.HOLDS, f"{change} changes nothing"
    assert verdict(name, case.found, *(case.fails or case.named[:1])) == claims.FAILS
    if case.undecided is not None:
        assert verdict(name, case.found, *case.undecided) == claims.UNDECIDED
