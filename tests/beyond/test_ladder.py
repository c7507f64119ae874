"""beyond/ladder.py: a row for every model from saved figures alone, and what it refuses."""

import pytest
from commands import record_of

from beyond import ladder
from lab import results
from lab.errors import UserError
from lab.results import to_json


def run(**values):
    return {"parameters": 100, "seconds": 10.0, "best_validation_bits_per_char": 2.5} | values


ROWS = "LSTM, as in the post", "LSTM, regularised, wide", "GPT, regularised"
SAVED = {
    "ngram": {"context": [0, 1, 2], "bits_per_char": [5.0, 3.5, 4.0]},
    "kneser_ney": {
        "context": [1, 2], "bits_per_char": [2.9, 2.8],
        "modified": {"context": [1, 2, 3], "bits_per_char": [2.7, 2.6, 2.61], "chosen": {"context": 3}},
        "V": 10, "scored_characters": 99,
    },
    "hmm": {
        "runs": [
            {"states": states, "validation_bits_per_char": bits, "seconds": 5.0}
            for states, bits in ((1, 5.0), (4, 3.6), (4, 3.8), (8, 3.9))
        ]
    },
    "char_models": {"runs": [run(cell="LSTM", best_validation_bits_per_char=b) for b in (2.4, 2.6)]},
    "scan_models": {"runs": [run(cell="minGRU"), {"cell": "minGRU", "diverged_at_step": 3}]},
    "ladder_models": {"runs": [run(cell="fading attention")]},
    "gpt": {"runs": [run(cell="GPT", best_validation_bits_per_char=2.3, seconds=70.0)]},
    "beat_counting": {
        "runs": [
            run(row=row, validation_bits_per_char=bits)
            for row, bits in zip(ROWS, (2.5, 2.35, 2.25), strict=True)
        ],
        "all": {"bits_per_char": 2.1, "weights": {ROWS[1]: 0.3, ROWS[2]: 0.4, "modified Kneser–Ney": 0.3}},
    },
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "SAVED", tmp_path / "nothing")
    for name, found in SAVED.items():
        save(tmp_path, name, found)
    return tmp_path


def save(folder, name, found, corpus="one text"):
    record = {
        "experiment": name,
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 2.0,
    }
    text = to_json(record | {"corpus": corpus, "results": found})
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def test_every_model_has_a_row_from_the_worst_to_the_best(folder):
    record = record_of(ladder, folder)
    rows = record["results"]["rows"]
    assert [row["model"] for row in rows] == [
        "hidden Markov, 4 states", "add-one, context 1", "Kneser–Ney, context 2", "modified Kneser–Ney, context 3",
        "LSTM", "minGRU", "fading attention", "LSTM, as in the post", "LSTM, regularised, wide", "GPT",
        "GPT, regularised", "both and Kneser–Ney",
    ]  # fmt: skip
    by_model = {row["model"]: row for row in rows}
    assert by_model["LSTM"]["bits_per_char"] == [2.4, 2.6] and by_model["GPT"]["seconds"] == [70.0]
    assert by_model["both and Kneser–Ney"]["parameters"] == 200 and by_model["both and Kneser–Ney"]["seconds"] == [20.0]
    assert by_model["add-one, context 1"]["seconds"] == [2.0]
    lines = record["printed"]
    (lstm,) = (line for line in lines if line.startswith("LSTM  "))
    assert lstm.split() == ["LSTM", "100", "10", "2.500", "±", "0.100", "its", "best", "step"]
    assert lines[-1] == "All score the same 99 characters."
    assert (folder / "ladder.png").stat().st_size > 10_000


def test_a_hidden_markov_model_s_free_numbers(folder):
    """4 states, 10 symbols: 3 of the first state, 4 · 3 of the next one, 4 · 9 of the symbols: 51."""
    rows = record_of(ladder, folder)["results"]["rows"]
    assert next(row["parameters"] for row in rows if row["family"] == "hidden Markov") == 51


@pytest.mark.parametrize("name", SAVED)
def test_without_one_of_them_it_refuses_in_one_line(folder, name):
    (folder / f"{name}.json").unlink()
    with pytest.raises(UserError, match=f"{name}.json is not there: run .*{name}"):
        record_of(ladder, folder)


def test_figures_of_another_text_are_refused(folder):
    save(folder, "gpt", SAVED["gpt"], corpus="another text")
    with pytest.raises(UserError, match="not all of one text"):
        record_of(ladder, folder)
