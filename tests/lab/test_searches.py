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
    """What was trained, in turn. A training's record is twice its number."""
    made = []

    def run(train, configs, arguments, line, more):
        waiting = list(dict.fromkeys(configs))
        while waiting:
            config = waiting.pop(0)
            made.append(config)
            waiting += [new for new in more(config, {"found": train(config)}) if new not in [*made, *waiting]]

    monkeypatch.setattr(trainings, "run", run)
    return made


def double(config):
    return 2 * config.number


def doubling(name, number, until):
    while number < until:
        (record,) = yield [Config(name, number)]
        number = record["found"]


def test_each_search_goes_its_own_way_and_none_waits_for_another(calls):
    records = searches.run(double, [doubling("a", 1, 8), doubling("b", 3, 6), doubling("c", 9, 9)], None)
    assert calls == [Config("a", 1), Config("b", 3), Config("a", 2), Config("a", 4)]
    assert [record["found"] for record in records] == [2, 4, 8, 6]  # search by search


def test_a_search_goes_on_when_all_that_it_asked_for_is_there(calls):
    def pair():
        answers.append((yield [Config("p", 1), Config("p", 2)]))

    answers = []
    searches.run(double, [pair(), doubling("a", 1, 4)], None)
    assert calls == [Config("p", 1), Config("p", 2), Config("a", 1), Config("a", 2)]
    assert [record["found"] for record in answers[0]] == [2, 4]


def test_two_searches_share_a_training(calls):
    records = searches.run(double, [doubling("a", 1, 4), doubling("a", 2, 8)], None)
    assert calls == [Config("a", 1), Config("a", 2), Config("a", 4)]
    assert [record["found"] for record in records] == [2, 4, 8]


def test_what_was_asked_for_before_is_not_trained_again(calls):
    def twice():
        answers.append((yield [Config("a", 1), Config("a", 2)]))
        answers.append((yield [Config("a", 2), Config("a", 3)]))
        answers.append((yield [Config("a", 1)]))
        answers.append((yield []))

    answers = []
    records = searches.run(double, [twice()], None)
    assert [config.number for config in calls] == [1, 2, 3]
    assert [[record["found"] for record in answer] for answer in answers] == [[2, 4], [4, 6], [2], []]
    assert [record["found"] for record in records] == [2, 4, 6]


def test_no_searches_train_nothing(calls):
    assert searches.run(double, [], None) == [] == calls
