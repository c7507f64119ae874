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
    """Run searches until each has ended: all records, search by search, in the order in which each asked for them.

    All that is wanted is trained together (lab/trainings.py), and no search waits for another one. Two may ask for the
    same training: it is made once, and its record is there once.
    """
    asked, waiting, records = {search: [] for search in searches}, {}, {}

    def go_on(search, configs):
        """What a search asks for next, once all that it has asked for is there; nothing where it has ended."""
        while configs is not None:
            asked[search] += configs
            if any(config not in records for config in configs):
                waiting[search] = configs
                return configs
            configs = _send(search, [records[config] for config in configs])
        return []

    def more(config, record):
        records[config] = record
        ready = [search for search, configs in waiting.items() if all(config in records for config in configs)]
        answers = {search: [records[config] for config in waiting.pop(search)] for search in ready}
        return [config for search in ready for config in go_on(search, _send(search, answers[search]))]

    if first := [config for search in searches for config in go_on(search, next(search, None))]:
        trainings.run(train, first, arguments, line, more)
    return [records[config] for config in dict.fromkeys(config for configs in asked.values() for config in configs)]


def _send(search, records):
    try:
        return search.send(records)
    except StopIteration:
        return None
