"""Write demo/models.js: what the page computes with, and the figures that it quotes from outputs/.

Four small models are trained by the scripts' own trainings: a GRU of 64 units and a GPT that read characters
(charlm.py, the weights of their best steps), and two that reverse one to twenty digits, without and with attention
(seq2seq.py). Their weights are rounded to whole multiples, -127 to 127, of one number for each row, and from then on
these rounded weights are the models: the scores below are theirs, and the tests compare the page with what Python
computes from them.

For the panel on gradients the file also holds the orthogonal matrix and every random draw of vanishing.py's eight
cases, in float64. Untrained GRUs and LSTMs need no weights: the page draws them as torch does.

    python -m demo.export               train, and write everything; interrupted, the same command goes on
    python -m demo.export --figures     take the figures from outputs/ once more, and leave the models alone

The first takes minutes, most of them for the characters, the second seconds. The models that reverse are trained for
2,000 steps, as in reverse.py.
"""

import argparse
import base64
import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch

import charlm
import corpus
import seq2seq
import vanishing
from beyond import beat_counting
from beyond.ctc_digits import EXAMPLE, LONGEST
from lab import results, script, trainings
from lab.errors import SAVED, UserError
from lab.results import Work, to_json, write_whole
from layers import char_gpt, char_lm
from layers.encoder_decoder import Seq2Seq
from layers.spoken_digits import SPOKEN

MODELS = Path(__file__).resolve().parent / "models.js"
PREFIX, SUFFIX = "const EXPORTED = ", ";\n"
HIDDEN = 64  # units of the GRU that reads characters
GRU_STEPS, GPT_STEPS, DIGIT_STEPS = 12_000, charlm.STEPS, 2_000
LENGTHS = (1, 20)  # digits, the shortest and the longest
SETTINGS = ("length", "attention", "seed", "steps", "learning_rate", "clip")  # of a model that reverses
STATES = ["GRU", "Transformer, token 1"]  # of cells_table.py: what each keeps of a text of one token
KEPT = "LSTM, forget bias 3"  # of cell_path.py: the cell whose path is quoted
LABELS = "-0123456789"  # how the page writes what a frame of speech is, the blank first


def train(config, checkpoint):
    """One training as its script does it; the record is its rounded weights, and which step they are of."""
    if isinstance(config, charlm.Config):
        training, _, ids, validation = charlm.set_up(config, checkpoint)
        charlm.learn(training, ids, validation)
        step, state = training.best["step"], training.best["model"]
    else:
        training = seq2seq.set_up(config, checkpoint)
        for _ in training:
            pass
        step, state = training.step, training.model.state_dict()
    return {"step": step, "weights": {name: rounded(W) for name, W in state.items()}}


def rounded(W):
    """A matrix or a vector as small whole numbers and, for each row, what one of them stands for."""
    rows = W.double().reshape(len(W) if W.dim() > 1 else 1, -1)  # (rows, columns)
    unit = (rows.abs().amax(1) / 127).float()
    whole = (rows / unit.double()[:, None]).round()
    return {"shape": list(W.shape), "unit": packed(unit, "<f4"), "values": packed(whole, "i1")}


def weights(model):
    """The weights of an exported model, in float64, by name."""
    tensors = {}
    for name, W in model["weights"].items():
        unit, whole = unpacked(W["unit"], "<f4"), unpacked(W["values"], "i1")
        rows = whole.reshape(len(unit), -1).astype(np.float64) * unit.astype(np.float64)[:, None]
        tensors[name] = torch.from_numpy(rows.reshape(W["shape"]))
    return tensors


def packed(numbers, kind):
    return base64.b64encode(np.asarray(numbers).astype(kind).tobytes()).decode()


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def character_model(exported):
    """One of the exported models that read characters, as a torch module in float64."""
    settings = argparse.Namespace(forget_bias=None, **{name: exported.get(name) for name in ("cell", "hidden", "seed")})
    model = char_lm.build(settings, len(exported["alphabet"]) + 1).double()
    model.load_state_dict(weights(exported))
    return model


def digit_model(exported):
    """One of the exported models that reverse, as a torch module in float64."""
    model = Seq2Seq(exported["attention"]).double()
    model.load_state_dict(weights(exported))
    return model


def trained(work):
    """The four models with what they score, by name."""
    text = corpus.load()
    gru = charlm.Config("GRU", 0, text.fingerprint, GRU_STEPS, HIDDEN)
    gpt = charlm.Config("GPT", 0, text.fingerprint, GPT_STEPS)
    digits = [seq2seq.Config(LENGTHS, attends, 0, DIGIT_STEPS) for attends in (False, True)]
    arguments = argparse.Namespace(jobs=None, cluster=None, work=work)
    gru_record, gpt_record, without, having = trainings.run(train, [gru, gpt, *digits], arguments)

    size = char_gpt.SIZES[gpt.cell]
    shape = {"window": char_gpt.WINDOW, "heads": size.heads, "blocks": size.blocks}
    models, validation = {}, torch.from_numpy(text.encode(text.validation))
    for name, config, record in ("gru", gru, gru_record | {"hidden": HIDDEN}), ("gpt", gpt, gpt_record | shape):
        model = {setting: asdict(config)[setting] for setting in ("cell", "seed", "steps")} | record
        model |= {"alphabet": "".join(text.characters)}
        built = character_model(model)
        parameters = sum(p.numel() for p in built.parameters())
        bits, _ = char_lm.evaluate(built, validation)
        models[name] = {"validation_bits_per_char": bits, "parameters": parameters} | model
    for name, config, record in zip(("without_attention", "attention"), digits, (without, having), strict=True):
        model = {setting: asdict(config)[setting] for setting in SETTINGS} | record
        models[name] = scores(digit_model(model)) | model
    return models


def scores(model):
    """How many of 1,000 new sequences of each length are reversed without a fault, and how many of their digits."""
    shares = {"sequences_right": [], "digits_right": []}
    for length in range(LENGTHS[0], LENGTHS[1] + 1):
        source = seq2seq.random_digits(seq2seq.TEST_SEQUENCES, length, length, seq2seq.generator(0, "test"))
        right = model.write(source, length)[0] == seq2seq.answer(source)  # (sequences, time)
        shares["sequences_right"].append(seq2seq.share(right.all(1)))
        shares["digits_right"].append(seq2seq.share(right))
    return shares


def draws():
    """The matrix and the random numbers of vanishing.py: for each case an initial state and an input at each step."""
    rng = np.random.default_rng(vanishing.SEED)
    Q = vanishing.orthogonal(rng, vanishing.WIDTH)
    normal = rng.standard_normal((len(vanishing.CASES), 1 + vanishing.STEPS, vanishing.WIDTH))  # (case, time, width)
    return {"Q": packed(Q, "<f8"), "normal": packed(normal, "<f8")}


def figures(folder=SAVED):
    """What the page quotes of the outputs that are saved so far: it asks no question about the others."""
    saved = [name for name in QUOTED if (folder / f"{name}.json").exists()]
    return {name: QUOTED[name](results.load(name, folder)["results"]) for name in saved}


def picked(*names):
    """Of a dictionary, these."""
    return lambda found: {name: found[name] for name in names}


def counting(found):
    """The two kinds of Kneser–Ney."""
    return {"fixed_discount": found, "modified": found["modified"]}


def beaten(found):
    """Bits per character of the widest LSTM and the GPT, means over seeds, of counting, and of all of them mixed."""
    rows = grouped([run for run in found["runs"] if "diverged_at_step" not in run], lambda run: run["row"])
    bits = {row: fmean(run["validation_bits_per_char"] for run in same) for row, same in rows.items()}
    tuned = {"LSTM": bits[beat_counting.WIDEST], "GPT": bits[beat_counting.OF_GPT]}
    return tuned | {"counting": found["counting"]["on_all_bits_per_char"], "mixture": found["all"]["bits_per_char"]}


def reversals(found):
    """The runs of reverse.py, each with its digits right by position."""
    scored = ("digits_right", "sequences_right", "teacher_forced_digits_right")
    runs = map(picked("length", "attention", "seed", *scored), found["runs"])
    positions = map(picked("right_by_position"), found["details"])
    return {"runs": [run | by_position for run, by_position in zip(runs, positions, strict=True)]}


def transcriptions(found):
    """Of ctc_digits.py's last error rates, with greedy decoding, the means over seeds; what CTC says frame by frame."""
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    cases = grouped(finished, lambda run: f"{run['model']}, {run['order']}")
    ctc = cases["CTC, forwards"]
    posteriors = next(run["example"]["posteriors"] for run in ctc if "example" in run)  # (time, label)
    return {
        "error": {case: fmean(run["error"]["greedy"][-1] for run in same) for case, same in cases.items()},
        "frames_labelled": fmean(run["frames_labelled"] for run in ctc),
        "frames_of_a_digit": fmean(SPOKEN),
        "digits_tested": LONGEST,
        "example": EXAMPLE,
        "path": "".join(LABELS[row.index(max(row))] for row in posteriors),
    }


def one_bit(found):
    """Each model at each delay: how many seeds learned to remember one bit, and the gradient that arrives there."""
    return {"reach": found["reach"], "delays": {cell: list(by_delay(found, cell)) for cell in found["reach"]}}


def by_delay(found, cell):
    """One model's delays in turn, its trainings with the usual budget told by their best learning rate."""
    own = [run for run in found["runs"] if run["cell"] == cell]
    for delay, same in sorted(grouped(own, lambda run: run["delay"]).items()):
        usual = [run for run in same if run["steps"] == same[0]["steps"]]
        rates = grouped(usual, lambda run: run["learning_rate"])
        best = max(rates.values(), key=merit)
        solved = steps_to_solve(best)
        yield {
            "delay": delay,
            "solved": len(solved),
            "tried": len(best if solved else usual),  # where none solved it, all rates were tried for nothing
            "learning_rate": best[0]["learning_rate"],
            "rates": len(rates),
            "solved_at": median(solved) if solved else None,
            "budget": same[0]["steps"],
            "gradient_before": median_of(best, "gradient_before"),
            "gradient_after": median_of(best, "gradient_after"),
        }


def steps_to_solve(runs):
    return [run["solved_at"] for run in runs if run.get("solved_at")]


def merit(runs):
    """What a learning rate is chosen by: how many seeds solved it, then how few steps that took."""
    steps = steps_to_solve(runs)
    return len(steps), -median(steps or [0])


def median_of(runs, name):
    """Of the runs that have it; a training that diverged has no gradient."""
    values = [run[name] for run in runs if name in run]
    return median(values) if values else None


def grouped(runs, key):
    """Lists of runs by a key, in the order in which the keys come."""
    groups = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


QUOTED = {
    "vanishing": picked("gradient_size"),
    "gates": picked("gradient_size", "every_step"),
    "parallel": picked("sequence_length", "width", "GRU", "attention"),
    "cells_table": lambda found: {
        "units": found["units"],
        "state_bytes": {name: found["layers"][name]["state_bytes"] for name in STATES},
        "parameters": {name: found["layers"][name]["parameters"] for name in ("RNN", "GRU", "LSTM")},
    },
    "cell_path": lambda found: {way: curve[-1] for way, curve in found["every_step"][KEPT].items()},
    "kneser_ney": lambda found: {name: min(kind["bits_per_char"]) for name, kind in counting(found).items()},
    "beat_counting": beaten,
    "char_models": lambda found: {
        "runs": [picked("cell", "seed", "steps", "validation_bits_per_char")(run) for run in found["runs"]]
    },
    "reverse": reversals,
    "ctc": picked("labels_of_speech", "frames_of_speech", "paths_of_speech"),
    "ctc_digits": transcriptions,
    "recall": one_bit,
}


def read():
    """What demo/models.js holds."""
    if not MODELS.exists():
        raise UserError(f"{MODELS} is not there yet: train its models, without --figures")
    return json.loads(MODELS.read_text(encoding="utf-8").removeprefix(PREFIX).removesuffix(SUFFIX))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true", help="take the figures from outputs/, and train nothing")
    arguments = parser.parse_args(argv)
    quoted = figures()
    work = Work("demo.export", "demo", arguments, {"figures"})
    try:
        content = (read() if arguments.figures else trained(work) | {"vanishing": draws()}) | {"figures": quoted}
        write_whole(MODELS, (PREFIX + to_json(content).rstrip() + SUFFIX).encode())
        work.clear()
    finally:
        work.release()
    for name in "gru", "gpt", "without_attention", "attention":
        print(f"{name}: step {content[name]['step']:,}")


if __name__ == "__main__":
    script.run_command(main)
