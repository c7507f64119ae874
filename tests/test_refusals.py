"""What no command accepts: one line on standard error that says what is wrong and what would be right, status 2.

A row is a command and words of its line. ``{tmp}`` stands for a folder that is empty but for what ``PREPARED`` puts
there. Nothing is printed and nothing is written.
"""

import os
import signal
import sys
from importlib import import_module

import pytest
from commands import assert_refused, run

import rerun
from lab import results, script

PREPARED = {"damaged.pt": b"not a model", "bptt.txt/inside": b""}
LONG = "x" * 300
OWN_TEXT = ["corpus", "--posts", "data/posts", "--held-out", "25-error-bars"]

RERUN = [
    (["rerun", "bttp"], ["no experiment 'bttp'", "bptt"]),
    (["rerun", "--all", "bptt"], ["--all runs every experiment"]),
    (["rerun", "bptt", "--compare", "{tmp}/nowhere"], ["{tmp}/nowhere holds no results"]),
    (["rerun", "--compare", "{tmp}", "--outputs", "{tmp}/out"], ["--compare takes no --outputs"]),
    (["rerun", "--compare", "{tmp}", "--claims"], ["not allowed with argument"]),
    (["rerun", "--claims", "gates"], ["--claims takes no names of experiments"]),
    (["rerun", "--claims", "--outputs", "{tmp}/nowhere"], ["{tmp}/nowhere holds no results"]),
    (["rerun", "--redraw", "--outputs", "{tmp}/nowhere"], ["{tmp}/nowhere holds no results"]),
    (["rerun", "--redraw", "--all"], ["--redraw takes no --all"]),
    (["rerun", "--report", "--data", "{tmp}"], ["--report takes no --data"]),
    (["rerun", "--check-machine", "--device", "cuda"], ["--check-machine takes no --device"]),
    (["rerun", "bptt", "--data", "data"], ["none of these experiments takes --data: bptt"]),
    (["rerun", "bptt", "decay", "--jobs", "2"], ["none of these experiments takes --jobs: bptt, decay"]),
    (["rerun", "bptt", "--jobs", "0"], ["--jobs", "at least 1"]),
    (["rerun", "reverse", "--jobs", "2", "--cluster", "tcp://127.0.0.1:9"], ["--jobs is for this machine"]),
    (["rerun", "reverse", "--cluster", ""], ["no Dask scheduler at"]),
    (["rerun", "parallel", "--device", "abacus"], ["no device 'abacus' here: there is cpu"]),
    (["rerun", "parallel", "--device", "cuda", "--outputs", "outputs"], ["outputs/ keeps runs with default arguments"]),
    (["rerun", "ngram", "--data", "{tmp}/nowhere"], ["there is no folder {tmp}/nowhere"]),
    (["rerun", "bptt", "--outputs", ""], ["must be a folder's path"]),
    (["rerun", "bptt", "--outputs", "{tmp}/pipe"], ["can't write in {tmp}/pipe: Not a directory"]),
    (["rerun", "--claims", "--outputs", "{tmp}/loop"], ["--outputs", "{tmp}/loop", "Too many levels"]),
]
GRADIENTS = [
    (["gates", "--forget-bias", "1", "3", "1"], ["--forget-bias: 1.0 is given twice"]),
    (["gates", "--forget-bias", "1e39"], ["below 3.4e+38", "'1e39'"]),
    (["bptt", "--outputs", "{tmp}"], ["can't write {tmp}/bptt.txt: what is there is not a file"]),
    (["bptt", "--outputs", "/dev/full"], ["can't write in /dev/full: Not a directory"]),
    (["bptt", "--outputs", "/proc"], ["can't write in /proc"]),
    (["bptt", "--outputs", "{tmp}/loop"], ["--outputs", "Too many levels of symbolic links"]),
    (["bptt", "--outputs", LONG], ["--outputs", "File name too long"]),
    (["gates", "--forget-bias", "nan"], ["--forget-bias: must be a finite number (and below 3.4e+38), not 'nan'"]),
    (["gates", "--forget-bias", "inf"], ["--forget-bias: must be a finite number (and below 3.4e+38), not 'inf'"]),
    (["gates", "--forget-bias", "much"], ["--forget-bias: must be a finite number (and below 3.4e+38), not 'much'"]),
    (["parallel", "--lengths"], ["unrecognized arguments: --lengths"]),
]
COUNTING = [
    (OWN_TEXT, ["--posts, --held-out and --into belong together"]),
    ([*OWN_TEXT, "--into", "data"], ["data/ holds the frozen text, which never changes: name another folder"]),
    ([*OWN_TEXT, "--into", "elsewhere", "--build"], ["give one of --data, --build and --posts"]),
    (["corpus", "--posts", "nowhere", "--held-out", "a", "--into", "elsewhere"], ["there is no folder nowhere"]),
    (["corpus", "--posts", "data/posts", "--held-out", " ,", "--into", "elsewhere"], ["--held-out", "names of posts"]),
    (["corpus", "--data", ""], ["--data", "must be a folder's path"]),
    (["corpus", "--posts", "", "--held-out", "a", "--into", "elsewhere"], ["--posts", "must be a folder's path"]),
    (["corpus", "--posts", "data/posts", "--held-out", "a", "--into", ""], ["--into", "must be a folder's path"]),
    (["corpus", "--data", "nowhere"], ["there is no folder nowhere", "corpus.py --posts makes one"]),
    (["ngram", "--data", "nowhere"], ["there is no folder nowhere"]),
    (["ngram", "--data", "no\nwhere"], ["there is no folder no where"]),
    (["kneser_ney", "--data", "nowhere"], ["there is no folder nowhere"]),
    (["kneser_ney", "--sample", "-3"], ["--sample", "at least 1", "'-3'"]),
    (["kneser_ney", "--sample", "0"], ["--sample", "at least 1"]),
    (["kneser_ney", "--sample", "many"], ["--sample", "'many'"]),
    (["kneser_ney", "--sample", "5", "--seed", "-1"], ["--seed", "from 0"]),
    (["kneser_ney", "--sample", "5", "--prompt", os.fsdecode(b"ab\xff")], ["--prompt", "UTF-8", "3"]),
    (["kneser_ney", "--prompt", "The"], ["--prompt and --seed belong to --sample N"]),
    (["kneser_ney", "--seed", "1"], ["--prompt and --seed belong to --sample N"]),
    (["kneser_ney", "--scale"], ["unrecognized arguments: --scale"]),
    (["beyond.hmm", "--states", "4"], ["--states and --seed belong to --sample N"]),
    (["beyond.hmm", "--seed", "1"], ["--states and --seed belong to --sample N"]),
    # Even where these are what --sample would take.
    (["beyond.hmm", "--states", "16", "--seed", "0"], ["--states and --seed belong to --sample N"]),
    (["beyond.hmm", "--sample", "0"], ["--sample", "at least 1"]),
    (["beyond.hmm", "--sample", "5", "--states", "0"], ["--states", "at least 1"]),
]
CHARACTERS = [
    (["charlm", "Elman", "0"], ["CELL", "'Elman'", "RNN", "GRU", "LSTM"]),
    (["charlm", "mingru", "0"], ["minGRU", "linear attention"]),
    (["charlm", "GRU"], ["SEED"]),
    (["charlm"], ["CELL", "--load"]),
    (["charlm", "GRU", "-1"], ["SEED"]),
    (["charlm", "GRU", "0.5"], ["SEED"]),
    (["charlm", "GRU", "99999999999999999999"], ["SEED"]),
    (["charlm", "GRU", "0", "0"], ["STEPS"]),
    (["charlm", "GRU", "0", "-5"], ["STEPS"]),
    (["charlm", "GRU", "0", "--hidden", "0"], ["--hidden"]),
    (["charlm", "GRU", "0", "--clip", "0"], ["--clip", "above 0"]),
    (["charlm", "GRU", "0", "--clip", "-1"], ["--clip"]),
    (["charlm", "GRU", "0", "--clip", "nan"], ["--clip"]),
    (["charlm", "GRU", "0", "--lr", "0"], ["--lr"]),
    (["charlm", "GRU", "0", "--lr", "inf"], ["--lr"]),
    (["charlm", "GRU", "0", "--forget-bias", "1"], ["--forget-bias", "LSTM"]),
    (["charlm", "LSTM", "0", "--forget-bias", "nan"], ["--forget-bias"]),
    (["charlm", "GRU", "0", "--sample", "0"], ["--sample"]),
    (["charlm", "GRU", "0", "--sample", "5", "--temperature", "-1"], ["--temperature"]),
    (["charlm", "GRU", "0", "--sample", "5", "--temperature", "nan"], ["--temperature"]),
    (["charlm", "GRU", "0", "--sample", "5", "--prompt="], ["--prompt"]),
    (["charlm", "GRU", "0", "--prompt", "\udcff"], ["--prompt", "UTF-8"]),
    (["charlm", "GRU", "0", "--temperature", "0.5", "--prompt", "A"], ["--prompt, --temperature", "--sample"]),
    (["charlm", "--load", "FILE", "--seed", "1"], ["--seed", "--sample"]),
    (["charlm", "GRU", "0", "--load", "FILE"], ["--load"]),
    (["charlm", "--load", "model.pt", "--save", "again.pt"], ["--save", "isn't trained"]),
    (["charlm", "--load", "model.pt", "--lr", "5"], ["--lr", "isn't trained"]),
    (["charlm", "--load", "model.pt", "--jobs", "2"], ["--jobs", "isn't trained"]),
    (["charlm", "GRU", "0", "--jobs", "2", "--cluster", "here:1"], ["--jobs is for this machine"]),
    (["charlm", "--load", "{tmp}/nowhere.pt"], ["can't read {tmp}/nowhere.pt"]),
    (["charlm", "GRU", "0", "--save", "."], ["can't write .: what is there is not a file"]),
    (["charlm", "GRU", "0", "--save", "{tmp}/nowhere/m.pt"], ["can't write in {tmp}/nowhere"]),
    (["charlm", "GRU", "0", "--save", "{tmp}/damaged.pt/m.pt"], ["can't write in {tmp}/damaged.pt"]),
    (["charlm", "GRU", "0", "--save", "/proc/m.pt"], ["can't write in /proc"]),
    (["charlm", "GRU", "0", "--save", "{tmp}/pipe"], ["can't write {tmp}/pipe: what is there is not a file"]),
    (["charlm", "GRU", "0", "--save", "/dev/null"], ["can't write /dev/null: what is there is not a file"]),
    (["charlm", "GRU", "0", "--save", "{tmp}/loop"], ["--save", "Too many levels of symbolic links"]),
    (["charlm", "GRU", "0", "--save", LONG], ["--save", "File name too long"]),
    (["charlm", "--load", "{tmp}/pipe"], ["can't read {tmp}/pipe: it is not a file"]),
    (["charlm", "--load", "/dev/zero"], ["can't read /dev/zero: it is not a file"]),
    (["charlm", "--load", "{tmp}"], ["can't read {tmp}: it is not a file"]),
    (["charlm", "GRU", "4294967296"], ["SEED", "0 to 4,294,967,295"]),
    (["charlm", "GRU", "0", "--sample", "1000000000000"], ["--sample", "at most 1,000,000,000"]),
    (["charlm", "LSTM", "0", "1", "--hidden", "1000000"], ["more memory than there is"]),
    (["charlm", "LSTM", "0", "1", "--hidden", "1000000000"], ["more memory than there is"]),
    (["char_models", "--jobs", "9" * 31], ["--jobs", "at most 1,000,000,000", "9" * 31]),
    (["charlm", "GRU", "0", "--data", "{tmp}/nowhere"], ["there is no folder {tmp}/nowhere"]),
    (["char_models_long", "--jobs", "0"], ["--jobs"]),
    (["beyond.scan_models", "--data", "{tmp}/nowhere"], ["there is no folder {tmp}/nowhere"]),
    (["beyond.gates_trained", "--load", "{tmp}/nothing.pt"], ["can't read {tmp}/nothing.pt"]),
    (["beyond.gates_trained", "--load", "{tmp}/damaged.pt"], ["{tmp}/damaged.pt is damaged, or not a model"]),
    (["beyond.gates_trained", "--load", "{tmp}/damaged.pt", "--steps", "5"], ["--steps", "aren't trained"]),
    (["beyond.gates_trained", "--steps", "0"], ["--steps"]),
]
REVERSAL = [
    (["seq2seq", "1000000000", "none", "0", "1", "--jobs", "1000000000"], ["more memory than there is"]),
    (["seq2seq", "1000000000000", "none", "0"], ["LENGTH", "at most 1,000,000,000"]),
    (["seq2seq", "10", "none", "1431655765"], ["SEED must be below 1,431,655,765"]),
    (["seq2seq", "--lengths", "5-1000000000000"], ["--lengths", "at most 1,000,000,000"]),
    (["seq2seq", "0", "attention", "0"], ["LENGTH", "at least 1", "'0'"]),
    (["seq2seq", "-3", "attention", "0"], ["seq2seq.py"]),
    (["seq2seq", "10", "transformer", "0"], ["'attention'", "'none'"]),
    (["seq2seq", "10", "attention", "-1"], ["seq2seq.py"]),
    (["seq2seq", "10", "attention", "0", "0"], ["STEPS", "at least 1", "'0'"]),
    (["seq2seq", "10", "attention", "0", "100", "0"], ["LR", "above 0", "'0'"]),
    (["seq2seq", "10", "attention", "0", "100", "nan"], ["LR", "above 0", "'nan'"]),
    (["seq2seq", "10", "attention"], ["give LENGTH"]),
    (["seq2seq"], ["give LENGTH"]),
    (["seq2seq", "--lengths", "5"], ["two lengths", "5-20"]),
    (["seq2seq", "--lengths", "20-5"], ["two lengths"]),
    (["seq2seq", "--lengths", "0-5"], ["--lengths", "at least 1"]),
    (["seq2seq", "10", "attention", "0", "--lengths", "5-20"], ["without them"]),
    (["reverse_40_lr", "--jobs", "0"], ["--jobs", "at least 1"]),
    (["beyond.ctc_digits", "--epochs", "0"], ["--epochs", "at least 1"]),
    (["beyond.ctc", "--epochs", "1"], ["--epochs"]),
]
MEMORY = [
    (["beyond.recall", "--budget", "0"], ["--budget", "'0'"]),
    (["beyond.recall", "--cap", "7"], ["--cap", "choose from 5, 10, 20"]),
    (["beyond.recall", "--cap", "x"], ["--cap"]),
    (["beyond.recall", "--jobs", "-1"], ["--jobs", "'-1'"]),
    (["beyond.recall", "--cap", "5", "--budget", "1", "--cluster", ""], ["no Dask scheduler at 'tcp://'"]),
    (["beyond.recall", "--outputs", "/dev/null/there"], ["can't write in /dev/null/there"]),
    (["beyond.recall", "--outputs", ""], ["--outputs", "not empty"]),
    (["beyond.bidirectional", "--steps", "-3"], ["--steps", "'-3'"]),
    (["beyond.bidirectional", "--cluster", "tls://127.0.0.1:9"], ["needs certificates"]),
]
ROWS = [*RERUN, *GRADIENTS, *COUNTING, *CHARACTERS, *REVERSAL, *MEMORY]


@pytest.mark.parametrize("command, words", ROWS, ids=[" ".join(command) for command, _ in ROWS])
def test_a_command_is_refused(command, words, tmp_path, monkeypatch, capsys, in_this_process):
    for name, content in PREPARED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    module, *arguments = (word.replace("{tmp}", str(tmp_path)) for word in command)
    if module != "rerun" and "--outputs" not in arguments:
        arguments += ["--outputs", str(tmp_path / "out")]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    there = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(sys, "argv", [module])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # which would outlast the test
    with pytest.raises(SystemExit) as ended:
        script.run_command(lambda: start(module, arguments))
    out, error = capsys.readouterr()
    assert (ended.value.code, out) == (2, "") and error.count("\n") == 1, error
    for word in words:
        assert word.replace("{tmp}", str(tmp_path)) in error
    assert sorted(tmp_path.rglob("*")) == there and not list(results.WORK.rglob("*"))


def start(module: str, arguments: list[str]) -> int | None:
    if module == "rerun":
        return rerun.main(arguments)
    return script.perform(script.experiment(import_module(module)), arguments)


@pytest.mark.parametrize(
    "command, words",
    [
        (["bptt.py", "--nonsense"], ["bptt.py: ", "--nonsense"]),
        (["beyond.decay", "--outputs", ""], ["python -m beyond.decay: ", "--outputs"]),
        (["rerun.py", "bttp"], ["rerun.py: ", "'bttp'"]),
    ],
)
def test_so_it_is_as_a_process(command, words):
    assert_refused(run(*command), *words)
