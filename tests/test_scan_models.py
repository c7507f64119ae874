"""The layers of scan.py as character models: charlm.py's model around them, and the table of scan_models.py."""

import pytest
import torch
from commands import assert_refused, run
from torch.nn import functional as F

import char_models
import charlm
import corpus
import scan_models
from lab import results, trainings
from lab.results import to_json
from lab.trainings import Keeper

every_cell = pytest.mark.parametrize("cell", scan_models.CELLS)
SHORT = "the first, short training of some characters\n"


@pytest.fixture(autouse=True)
def single_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / corpus.TRAIN).write_text(SHORT * 20, encoding="utf-8")
    (folder / corpus.VALIDATION).write_text("then some characters of the first; ζ\n" * 4, encoding="utf-8")
    return folder


@pytest.fixture
def small(monkeypatch):
    """Trainings of a few steps in this process, with few windows of few characters."""

    def run(train, configs, **_):
        for config in configs:
            yield train(config | {"hidden": 8}, Keeper())

    monkeypatch.setattr(trainings, "run", run)
    monkeypatch.setattr(scan_models, "RUNS", [(cell, seed, 3) for cell in scan_models.CELLS for seed in (0, 1)])


@every_cell
def test_the_model_is_embedding_layer_and_readout_whose_parameters_all_learn(cell, data):
    text = corpus.load(data)
    ids = torch.from_numpy(text.encode(text.train))
    config = charlm.configuration(cell, 1, text, 3, data, hidden=8)
    model = charlm.build(config, text.size)
    x = charlm.windows(ids, torch.Generator().manual_seed(0), batch=5)
    written_out = model.linear(model.rnn(model.embedding(x))[0])
    assert torch.allclose(model(x)[0], written_out, atol=1e-5)
    loss = F.cross_entropy(written_out[:-1].flatten(0, 1), x[1:].flatten())
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=charlm.LEARNING_RATE)
    assert charlm.train_step(model, optimizer, x)[0] == pytest.approx(loss.item(), abs=1e-5)
    assert all((p != was).any() for p, was in zip(model.parameters(), before, strict=True))


def test_the_models_have_as_many_parameters_as_their_equations():
    """148 · 64 + G · 256 · (64 + 1) + 148 · (256 + 1) = 47,508 + 16,640 G: u and n for minGRU; q, k and v."""
    for cell, products in zip(scan_models.CELLS, (2, 3), strict=True):
        model = charlm.CharRNN(148, cell)
        assert sum(p.numel() for p in model.parameters()) == 47_508 + 16_640 * products


@every_cell
def test_bits_don_t_depend_on_how_the_text_is_cut(cell, data):
    text = corpus.load(data)
    ids = torch.from_numpy(text.encode(text.validation))
    model = charlm.build(charlm.configuration(cell, 1, text, 3, data, hidden=8), text.size)
    exact, scored = charlm.evaluate(model, ids, chunk=len(ids))
    for chunk in 1, 7, 64:
        assert charlm.evaluate(model, ids, chunk) == (pytest.approx(exact, abs=1e-5), scored)
    assert scored == len(ids) - 1


@every_cell
def test_an_interrupted_training_ends_with_the_same_bits(cell, data, tmp_path):
    config = charlm.configuration(cell, 2, corpus.load(data), 4, data, hidden=8)
    whole = charlm.train(config, Keeper())

    class Stopped(Exception):
        pass

    class Stopping(Keeper):
        def save_if_due(self, make_state):
            super().save_if_due(make_state)
            if make_state()["step"] == 2:
                raise Stopped

    with pytest.raises(Stopped):
        charlm.train(config, Stopping(tmp_path / "work", config, every=0))
    resumed = charlm.train(config, Keeper(tmp_path / "work", config))
    assert resumed | {"seconds": 0} == whole | {"seconds": 0}


def test_the_table_holds_both_kinds_of_layer_and_counting(data, small, tmp_path, capsys):
    """The recurrent rows are those that char_models.py has saved on this text: 2.5 and 2.7 are 2.6 ± 0.1."""
    out = tmp_path / "out"
    out.mkdir()
    gru = {"cell": "GRU", "steps": 3000, "best_step": 1000, "scored_characters": 147, "parameters": 9}
    bits = [
        {"best_validation_bits_per_char": b, "validation_bits_per_char": b + 1, "seed": i}
        for i, b in ((0, 2.5), (1, 2.7))
    ]
    saved = {"corpus": corpus.load(data).fingerprint, "results": {"runs": [gru | b for b in bits]}}
    (out / "char_models.json").write_text(to_json(saved), encoding="utf-8")
    scan_models.main(["--data", str(data), "--outputs", str(out)])
    lines = (out / "scan_models.txt").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if "parameters" in line]) == 4
    rows = lines[lines.index("beyond the post: the best step of each learning curve, and models that only count") + 1 :]
    assert rows[1].split("steps")[1].split() == ["1,000", "±", "0", "2.600", "±", "0.100", "3.600", "±", "0.100"]
    assert [row.split(",")[0] for row in rows[1:4]] == ["GRU", *scan_models.CELLS]
    assert len({len(row) for row in rows[:4]}) == 1
    assert "no Kneser–Ney to compare with" in capsys.readouterr().err  # the saved figures are of another text
    found = results.load("scan_models", out)["results"]
    assert [run["cell"] for run in found["beside"]] == ["GRU", "GRU"] and len(found["runs"]) == 4
    assert found["beside"][0].keys() == set(char_models.IN_THE_TABLE)
    assert (out / "scan_models.png").stat().st_size > 10_000


def test_without_saved_models_the_table_says_so_and_goes_on(data, small, tmp_path, capsys):
    scan_models.main(["--data", str(data), "--outputs", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert "no models to compare with: char_models.py has saved nothing on this text" in said.err
    assert "minGRU, 3 steps" in said.out and "GRU, 3,000" not in said.out


def test_charlm_trains_and_samples_the_new_layers(data, small, tmp_path, capsys):
    charlm.main(
        ["linear attention", "0", "2", "--data", str(data), "--sample", "5", "--outputs", str(tmp_path / "out")]
    )
    assert "linear attention seed 0, 2 steps" in capsys.readouterr().out
    assert_refused(run("charlm.py", "mingru", "0"), "minGRU", "linear attention")
