"""Holding a script's results to the figures that the post published, and the comparison to noticing any other."""

import copy
import json
from decimal import Decimal

from lab.errors import ROOT
from reruns import comparing

PUBLISHED = json.loads((ROOT / "data" / "published.json").read_text(encoding="utf-8"))


def assert_same_as_published(record: dict):
    """Every exact figure agrees to the last digit printed, and would not if that digit were another."""
    entry = comparing.PUBLISHED_NAMES.get(record["experiment"], record["experiment"])
    exact = 0
    for path, verdict in verdicts(record, PUBLISHED).items():
        if comparing.kind_of(record["kinds"], path) == "exact":
            assert verdict == comparing.SAME, path
            changed = copy.deepcopy(PUBLISHED)
            change(changed[entry], path)
            assert verdicts(record, changed)[path] == comparing.DIFFERS, path
            exact += 1
    assert exact > 0


def verdicts(record, published):
    comparisons = comparing.with_published(record, published, posts_own_text=False)
    return {comparison.path: comparison.verdict for comparison in comparisons}


def change(value, path: str):
    """Raise the last digit of a number, lengthen a word, negate a truth."""
    key, _, rest = path.partition(".") if path not in value else (path, "", "")
    key = int(key) if isinstance(value, list) else key
    if rest:
        change(value[key], rest)
    elif isinstance(value[key], bool):
        value[key] = not value[key]
    elif isinstance(value[key], str):
        value[key] += "!"
    else:
        number = Decimal(repr(value[key])).normalize()
        value[key] = type(value[key])(number + Decimal((0, (1,), number.as_tuple().exponent)))
