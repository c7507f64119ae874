"""Searches side by side (lab/searches.py): what each asks for next depends on what it was answered."""

from dataclasses import dataclass

import pytest

from lab import searches, trainings


@dataclass(frozen=True)
class Config:
    name: str
    number: int


@pytest.fixture
def calls(monkeypatch):
    """What was trained together. A training's record is twice its number."""
    made = []

    def run(train, configs, arguments, line):
        made.append(configs)
        return [{"found": train(config)} for config in configs]

    monkeypatch.setattr(trainings, "run", run)
    return made


def double(config):
    return 2 * config.number


def doubling(name, number, until):
    while number < until:
        (record,) = yield [Config(name, number)]
        number = record["found"]


def test_each_search_goes_its_own_way_and_all_train_together(calls):
    records = searches.run(double, [doubling("a", 1, 8), doubling("b", 3, 6), doubling("c", 9, 9)], None)
    assert calls == [[Config("a", 1), Config("b", 3)], [Config("a", 2)], [Config("a", 4)]]
    assert [record["found"] for record in records] == [2, 6, 4, 8]


def test_what_was_asked_for_before_is_not_trained_again(calls):
    def twice():
        answers.append((yield [Config("a", 1), Config("a", 2)]))
        answers.append((yield [Config("a", 2), Config("a", 3)]))
        answers.append((yield [Config("a", 1)]))
        answers.append((yield []))

    answers = []
    records = searches.run(double, [twice()], None)
    assert [config.number for configs in calls for config in configs] == [1, 2, 3]
    assert [[record["found"] for record in answer] for answer in answers] == [[2, 4], [4, 6], [2], []]
    assert [record["found"] for record in records] == [2, 4, 6]


def test_no_searches_train_nothing(calls):
    assert searches.run(double, [], None) == [] == calls
