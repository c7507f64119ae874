"""What a result is made by (lab/sources.py)."""

from lab import sources


def test_what_a_script_is_made_of():
    """All that it imports and that those import: char_models.py names charlm, which names cells, and so on."""
    names = {path.relative_to(sources.ROOT).as_posix() for path in sources.files_of("char_models")}
    assert names >= {"char_models.py", "charlm.py", "layers/cells.py", "corpus.py", "lab/trainings.py", "lab/pools.py"}
    assert not names & {"rerun.py", "reruns/claims/base.py", "seq2seq.py"}


def test_code_that_is_another_has_another_digest_and_only_that(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    for name, text in (("one", "from parts import two"), ("parts/two", "import numpy"), ("parts/three", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    digest = sources.digest("one")
    (tmp_path / "parts" / "three.py").write_text("edited = True", encoding="utf-8")
    assert sources.digest("one") == digest
    (tmp_path / "parts" / "two.py").write_text("edited = True", encoding="utf-8")
    edited = sources.digest("one")
    assert edited != digest
    monkeypatch.setattr(sources.metadata, "version", lambda name: "another")
    assert sources.digest("one") != edited
