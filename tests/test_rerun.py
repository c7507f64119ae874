"""rerun.py: what it says of reruns, and that what should differ does."""

import json
import shutil

import pytest
from commands import ROOT, run

import rerun
from lab import results, script
from lab.errors import UserError
from reruns import catalogue, claims, comparing, report, telling

SAVED = ROOT / "outputs"
PUBLISHED = json.loads((ROOT / "data" / "published.json").read_text(encoding="utf-8"))
ENTRIES = catalogue.entries()


def perturb(path, change):
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record["results"])
    path.write_text(results.to_json(record), encoding="utf-8")


def test_a_rerun_of_exact_experiments_agrees_with_saved_and_published(tmp_path):
    done = run("rerun.py", "bptt", "decay", "--outputs", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    bptt, decay, _, saved, published, last = done.stdout.splitlines()
    # The post printed 18 figures of bptt: three states of 2, y, three gradients of 2, four of dy/dW_h, and the gap,
    # which is rounding errors.
    assert bptt.split()[:2] == ["bptt", "cpu"] and "published: 17 the same, 1 within" in bptt.replace(
        "18", "17 the same, 1 within"
    )
    assert decay.startswith("decay ") and "published: 10 the same" in decay and "differ" not in decay
    assert published.startswith("published figures: 2") and saved.startswith("saved figures    : 4")
    assert last == "2 of 2 experiments agree"


# The quick ones that take seconds; tests/test_kneser_ney.py runs that one anyway, and looks at its lines.
SECONDS = {name: pytest.param(name, marks=pytest.mark.slow) for name in ("path_length", "kneser_ney")}


@pytest.mark.parametrize("name", [SECONDS.get(name, name) for name, entry in ENTRIES.items() if entry.is_quick])
def test_a_saved_output_is_what_its_script_prints(name, tmp_path, capsys):
    entry = ENTRIES[name]
    assert script.perform(entry.script(), ["--outputs", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    found = comparing.with_saved(results.load(name, tmp_path), entry.record)
    assert not [str(each) for each in found if each.verdict == comparing.DIFFERS]
    assert printed == (tmp_path / f"{name}.txt").read_text(encoding="utf-8")
    # The digits of rounding errors depend on the processor and on the threads.
    if not entry.is_timed and "rounding" not in {kind.split()[0] for kind in entry.record["kinds"].values()}:
        assert printed == (SAVED / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ENTRIES)
def test_a_saved_text_and_figure_are_made_from_the_saved_numbers(name, tmp_path, capsys):
    shutil.copy(SAVED / f"{name}.json", tmp_path)
    assert rerun.main(["--redraw", name, "--outputs", str(tmp_path)]) is None
    made = [tmp_path / path.name for path in sorted(SAVED.glob(f"{name}.*")) if path.suffix != ".json"][::-1]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in made]
    for path in made:
        assert path.read_bytes() == (SAVED / path.name).read_bytes()


def test_the_pages_and_the_table_of_the_readme_are_current():
    made = report.files(list(ENTRIES.values()), PUBLISHED, claims.CLAIMS, SAVED)
    assert made.keys() == {*SAVED.glob("*.md"), ROOT / "README.md"}
    for path, text in made.items():
        assert text.encode() == path.read_bytes(), f"{path}: python rerun.py --report makes it again"


@pytest.mark.parametrize(
    "name, change, path",
    [
        ("bptt", lambda r: r["h"][2].__setitem__(0, r["h"][2][0] + 1e-4), "h.2.0"),
        ("vanishing", lambda r: r["gradient_size"][0].update(radius=0.91), "gradient_size.0.radius"),
        ("gates", lambda r: r["gradient_size"].pop("RNN"), "gradient_size.RNN.0"),
        ("ngram", lambda r: r["bits_per_char"].__setitem__(2, 3.5), "bits_per_char.2"),
        ("parallel", lambda r: r["GRU"].update(GFLOPs=0.9), "GRU.GFLOPs"),
    ],
)
def test_a_perturbed_figure_is_named_and_fails(tmp_path, capsys, name, change, path):
    shutil.copy(SAVED / f"{name}.json", tmp_path)
    assert rerun.main(["--compare", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("\n1 of 1 experiments agree\n")
    perturb(tmp_path / f"{name}.json", change)
    assert rerun.main([name, "--compare", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f" {path}: " in out and out.endswith(f"0 of 1 experiments agree; not {name}\n")


def test_one_that_fails_is_told_and_the_others_run(tmp_path, write_corpus):
    data = write_corpus("ab", "a")  # nothing to score
    done = run("rerun.py", "ngram", "decay", "--data", data, "--outputs", tmp_path / "out")
    assert done.returncode == 1
    assert f"{'ngram':<20} failed with exit status 2" in done.stdout
    assert done.stdout.endswith("1 of 2 experiments agree; not ngram\n")
    assert done.stderr.startswith("ngram: ngram.py: the validation text has 1 character;")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["decay.json", "decay.png", "decay.txt"]


def test_another_text_is_not_compared_with_figures_of_this_one(write_corpus):
    done = run("rerun.py", "ngram", "--data", write_corpus("abcab " * 200, "abcab " * 20))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same" not in done.stdout and "differ" not in done.stdout
    assert "The published figures on text can't be compared" in done.stdout and "1,200 + 120" in done.stdout
    assert done.stdout.endswith("nothing was compared\n")


@pytest.mark.parametrize(
    "train, validation, distinct, own", [(593_616, 56_786, 147, True), (593_616, 56_786, 146, False)]
)
def test_the_posts_own_text_is_known_by_its_sizes(train, validation, distinct, own):
    import corpus

    characters = "".join(map(chr, range(1000, 1000 + distinct)))
    text = corpus.Corpus(characters + characters[0] * (train - distinct), characters[0] * validation)
    assert telling.is_posts_own(text, PUBLISHED["corpus"]) == own


def test_every_saved_number_has_a_declared_kind():
    for entry in ENTRIES.values():
        assert comparing.with_saved(entry.record, entry.record)


@pytest.mark.parametrize("mode", ["claims", "report", "redraw"])
def test_what_is_made_from_results_needs_some(mode, tmp_path):
    with pytest.raises(UserError, match="holds no results"):
        rerun.main([f"--{mode}", "--outputs", str(tmp_path / "nowhere")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", ["--claims", "--report", "--redraw"])
@pytest.mark.parametrize("odd", [{}, {"gradient_size": 5}, {"gradient_size": {"LSTM, forget bias 0": 5}}])
def test_results_of_another_form_are_named_and_nothing_is_written(mode, odd, tmp_path):
    record = results.load("gates")
    odd = record["results"] | odd if odd else {}
    (tmp_path / "gates.json").write_text(results.to_json(record | {"results": odd}), encoding="utf-8")
    (tmp_path / "gates.txt").write_text("what was printed", encoding="utf-8")
    there = sorted(path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(
        UserError, match=r"gates\.json holds other results than this version saves \(.*\): run it again"
    ):
        rerun.main([mode, "--outputs", str(tmp_path)])
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == there
    assert rerun.main(["--compare", str(tmp_path)]) == 1  # numbers that only one has differ
