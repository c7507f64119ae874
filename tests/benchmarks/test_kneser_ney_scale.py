"""What counting costs as the text grows (benchmarks/kneser_ney_scale.py)."""

import re

from commands import record_of

import corpus
from benchmarks import kneser_ney_scale


def test_time_and_memory_by_length(tmp_path, write_corpus):
    text = corpus.load()
    data = write_corpus(text.train[:3_000], text.validation[:500])
    record = record_of(kneser_ney_scale, tmp_path / "out", "--data", data)
    lines, runs = record["printed"], record["results"]["runs"]
    # 45,000 more characters, written by 4,096 streams side by side: 11 each.
    assert lines[0].startswith("written by the model: 45,056 characters in ")
    assert [line.split("x the text")[0].strip() for line in lines[1:]] == ["1", "4", "16"]
    assert all(re.search(r"\d s and \d+ MB for each million", line) for line in lines[1:])
    assert [run["characters"] for run in runs] == [3_000, 12_000, 48_000]
    # The text goes on growing: what the model writes isn't the training text over again.
    assert runs[0]["ngrams"] < runs[1]["ngrams"] / 2 < runs[2]["ngrams"] / 4
