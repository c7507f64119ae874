"""Searches whose next trainings depend on what the last ones found, side by side.

def search(length):                              # yields lists of configurations, is sent their records
    records = yield [Config(length, rate) for rate in RATES]
    yield [Config(length, best(records), seed) for seed in SEEDS]

records = searches.run(train, [search(length) for length in LENGTHS], arguments)
"""

from argparse import Namespace
from collections.abc import Callable, Generator

from lab import trainings


def run(train: Callable, searches: list[Generator], arguments: Namespace, line: Callable | None = None) -> list[dict]:
    """Run searches until each has ended: all records, in the order in which they were asked for.

    What all of them want next is trained together (lab/trainings.py), so that cores are shared. A search may ask for a
    training that was asked for before: it isn't made again, and its record is there once.
    """
    records, wanted = {}, {search: next(search, None) for search in searches}
    while wanted := {search: configs for search, configs in wanted.items() if configs is not None}:
        new = dict.fromkeys(config for configs in wanted.values() for config in configs if config not in records)
        records |= zip(new, trainings.run(train, list(new), arguments, line), strict=True)
        wanted = {search: _send(search, [records[config] for config in configs]) for search, configs in wanted.items()}
    return list(records.values())


def _send(search, records):
    try:
        return search.send(records)
    except StopIteration:
        return None
