"""The course's table from what scripts have saved (beyond/course_table.py)."""

import pytest
from commands import measured

from beyond import course_table
from lab import results
from lab.errors import UserError

LAYER = {"parameters": 82_432, "relative_to_RNN": 1.0, "sequential_steps": 128, "state_bytes": 1024}
PATHS = {"full": [1.0] * 49 + [2e-5], "cell alone": [1.0] * 49 + [2e-7]}
SAVED = {
    "cells_table": {
        "characters": 128,
        "layers": dict.fromkeys(("RNN", "LSTM", "GRU"), LAYER)
        | {f"Transformer, token {n}": LAYER | {"sequential_steps": 1, "state_bytes": 2048} for n in ("1", "128")},
    },
    "parallel": {"GRU": {"GFLOPs": 0.8, "ms": 20.2}, "attention": {"GFLOPs": 1.5, "ms": 9.0}},
    "recall": {
        "reach": {
            name: {"delay": 40, "not_learned": 80, "budget_may_be_why": []}
            for names in course_table.READERS.values()
            for name in names
        }
        | {"Transformer": {"delay": 2560, "not_learned": None, "budget_may_be_why": []}}
        | {"LSTM": {"delay": 10, "not_learned": 20, "budget_may_be_why": ["a reason"]}}
    },
    "gates": {"steps_back": [1, 50], "gradient_size": {"RNN": [3.5, 3.5e-17]}},
    "cell_path": {
        "steps_back": [1, 50],
        "every_step": {"LSTM, forget bias 1": PATHS, "GRU, update bias +1": PATHS},
        "on_text": {
            name: {"trained": PATHS | {"cell alone": [1.6e-5] * 50}} for name in ("LSTM, forget bias 1", "GRU")
        },
    },
    "path_length": {"length": 1024, "steps": {"attention": {"factors": 1}}},
    "generation": {
        "batches": [1, 32],
        "batch_32": {"slopes": {"GRU": {"ms": -0.04}, "cached attention": {"ms": 1.05}}},
    },
}


@pytest.fixture
def saved(monkeypatch):
    """What the scripts have saved, for a test to change."""
    found = dict(SAVED)

    def load(name, folder):
        if name not in found:
            raise UserError(f"outputs/{name}.json is not there: run python -m beyond.{name} first")
        return {"results": found[name]}

    monkeypatch.setattr(results, "load", load)
    return found


def test_every_cell_has_a_figure_and_its_script(saved):
    found, lines = measured(course_table)
    assert not found["missing"] and len(lines) == 5 * (1 + 2 * 4)
    figures = [line.strip() for line in lines if line.startswith("       ")]
    assert len(figures) == 20 and all(any(f"({name})" in line for name in SAVED) for line in figures)
    assert "128 steps in a row for 128 characters (cells_table); 0.80 GFLOPs in 20.2 ms (parallel)" in figures
    assert "1 step in a row for 128 characters (cells_table); 1.50 GFLOPs in 9.0 ms (parallel)" in figures
    assert "Transformer: 2,560 and more (recall)" in figures
    assert any(line.startswith("LSTM: 10, perhaps more; LSTM, forget bias 1: 40;") for line in figures)
    assert (
        "3.5e-17 arrives 50 steps back (gates)" in figures
        and "1 factor from token 1,024 to token 1 (path_length)" in figures
    )
    assert any(
        "2.0e-05 arrives 50 steps back, 2.0e-07 by the direct path" in l and "share is 0.80" in l for l in figures
    )


def test_what_was_never_run_or_by_an_earlier_edition_is_said(saved):
    del saved["cell_path"]
    saved["recall"] = {"runs": []}
    _, lines = measured(course_table)
    assert lines.count(f"  {'':12}   not measured") == 8  # two rows
    assert "outputs/cell_path.json is not there: run python -m beyond.cell_path first" in lines
    assert "what recall has saved has no 'reach': run it again" in lines
    assert any("(cells_table)" in line for line in lines)


def test_the_row_s_words_are_the_course_s():
    assert list(course_table.ROWS) == list(course_table.COURSE)
    assert all(len(cells) == len(course_table.MODELS) for cells in course_table.COURSE.values())
