"""A tiny GPT on the same text: about as many parameters as the post's RNN has, and about as many as its LSTM.

Two sizes of the Transformer of layers/char_gpt.py are trained as charlm.py trains the recurrent models: the same text,
windows, optimizer and learning rate, for the post's 3,000 steps. One seed of each then goes on until the lowest point
of its learning curve lies so far back that it has been trained half as long again without getting better, but no
further than 6,000 steps.

    python -m beyond.gpt          37 min

Prints, in the middle:

                                 parameters  10¹² ops     seconds       best step  bits/char there  at the last step
    RNN, 3,000 steps                129,940      15.3     150 ± 2     1,979 ± 274    2.579 ± 0.008     2.597 ± 0.013
    GRU, 3,000 steps                294,804      34.7     385 ± 9     1,082 ± 130    2.455 ± 0.016     2.569 ± 0.003
    LSTM, 3,000 steps               377,236      44.4     489 ± 4     2,253 ± 177    2.469 ± 0.005     2.489 ± 0.016
    minGRU, 3,000 steps              80,788       5.7     135 ± 7     2,871 ± 258    2.806 ± 0.009     2.806 ± 0.009
    GPT, 3,000 steps                118,676      18.3     362 ± 6     2,384 ± 464    2.519 ± 0.017     2.531 ± 0.021
    larger GPT, 3,000 steps         363,124      56.5     962 ± 4     1,294 ± 214    2.447 ± 0.023     2.581 ± 0.023

At about the RNN's size a GPT is better, at its best step and at the last. At about the LSTM's it learns sooner and
overfits sooner: at its best step it is ahead of the LSTM on average and not with every seed, as the smaller GRU is,
and after 3,000 steps it is behind. Neither size had to go on beyond these. No head has learned to look for what
followed the same character before.

A GPT reads windows and carries nothing along: each character is predicted from the 65 to 128 characters before it. The
recurrent rows are those saved by char_models.py and beyond/scan_models.py, whose state goes back to the start. Their
seconds are those of another and faster processor, an Intel Xeon: benchmarks/charlm.py has them on the same.

What the columns mean: parameters; 10¹² operations of the products in 3,000 training steps, as they are done on a CPU,
and the seconds these took on one core, learning curve included; the best step among them, chosen on the validation
text, which flatters all models a little. The share of the products' speed compares a training's operations a second
with those of one large product, timed before and after each training by the same clock. What the heads of one seed look
at is averaged over 64 windows, beside what one would that looks at all characters alike.

Sources: Vaswani et al., "Attention is all you need" (2017); Radford et al., "Improving language understanding by
generative pre-training" (2018), for the decoder alone; layers/transformer.py for the block. Elhage et al., "A
mathematical framework for Transformer circuits" (2021), for heads that look for what followed the same character.
(Longer than most: beside its trainings it tells what they cost, what they write and where they look.)
"""

import math
import time
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch

import charlm
import corpus
from char_models import best_of_counting, options, saved_for, spread, to_the_next_point
from charlm import BATCH, CLIP, LEARNING_RATE, STEPS, TRAIN_SAMPLE, VALIDATION_SAMPLE, WINDOW
from lab import devices, plots, script, timing, trainings
from lab.descent import Descent
from lab.errors import Diverged, UserError
from layers import char_lm, heads, looking_back
from layers.char_gpt import SIZES

SEEDS = [0, 1, 2]
READS = ("ngram", "kneser_ney", "char_models", "scan_models")
LONGER_SEED = 0  # which goes on, and whose heads are looked at
MOST_STEPS = 2 * STEPS
EVERY = STEPS // 10  # steps between points of the learning curve after the first STEPS
PATIENCE = 1.5  # times the best step: where a training ends, if not before STEPS
RIVALS = {"char_models": ("RNN", "GRU", "LSTM"), "scan_models": ("minGRU",)}  # the experiment that trained them
PRODUCT = 2048  # rows and columns of the large product
WRITTEN, PROMPT = 400, "The "
PICTURED = "larger GPT"  # whose head is drawn

KINDS = {
    "*": "trained",
    "*scored_characters": "corpus",
    "runs.*.parameters": "exact",
    "runs.*.flops_a_step": "exact",
    "runs.*.steps": "exact",  # no setting: seeds differ in it
    **{f"runs.*.{name}": "setting" for name in ("cell", "first", "learning_rate", "clip")},
    "runs.*_bits_per_char": "trained .3f",
    "beside.*.parameters": "exact",
    "beside.*.flops_a_step": "exact",
    "counting.*": "corpus",
}


@dataclass(frozen=True)
class Config:
    cell: str  # one of layers.char_gpt.SIZES
    seed: int  # of weights and windows
    text: str  # fingerprint of the text: no other is trained on
    first: int = STEPS  # after so many steps it is judged as the post's models are
    steps: int = STEPS  # it never takes more
    learning_rate: float = LEARNING_RATE  # AdamW's
    clip: float = CLIP  # the largest norm that a gradient may have
    device: str = "cpu"
    data: str | None = None  # folder of the text; None: data/

    def __str__(self):
        return f"{self.cell} seed {self.seed}"

    @property
    def cost(self) -> float:
        return SIZES[self.cell].width * self.first


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    text = corpus.load(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    device = devices.pick(config.device)
    ids, validation = (torch.from_numpy(text.encode(part)).to(device) for part in (text.train, text.validation))
    model = char_lm.build(config, text.size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(model, optimizer, partial(charlm.loss_on, model, ids), generator, config, checkpoint)
    before = time_product(device)
    learn(training, ids, validation, text.size)
    if training.best is None:
        raise Diverged(config.steps)
    first = {name: training.curve.pop(name)[0] for name in list(training.curve) if name.startswith("first_")}
    model.load_state_dict(training.best["model"])
    found = trainings.settings(config) | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "flops_a_step": char_lm.flops(model, BATCH * WINDOW),
        "product_seconds": min(before, time_product(device)),
        "scored_characters": len(validation) - 1,
        **{name.removeprefix("first_"): value for name, value in first.items()},
        "curve": training.curve,
    }
    if config.seed == LONGER_SEED:
        found |= {
            "ended_at_step": training.step,
            "longer_seconds": training.seconds,
            "longer_best_step": training.best["step"],
            "longer_best_validation_bits_per_char": char_lm.evaluate(model, validation)[0],
            "looking_back": looking_back.measure(model, text, validation, config.seed),
            "shown": shown(model, text, validation),
        }
    return charlm.recorded(found)


def learn(training, ids, validation, vocabulary):
    """Go through a training; what it is worth after ``first`` steps is kept in its curve, under names of its own."""
    config = training.config
    points = set(charlm.curve_points(config.first))
    for step in training:
        if step not in points and (step < config.first or (step - config.first) % EVERY):
            continue
        training.log(
            step=step,
            train_bits_per_char=char_lm.estimate(training.model, ids, TRAIN_SAMPLE),
            validation_bits_per_char=char_lm.estimate(training.model, validation, VALIDATION_SAMPLE),
        )
        training.keep_best("validation_bits_per_char")
        if step == config.first and training.best:
            training.log(first_seconds=training.seconds, **judged(training, ids, validation, vocabulary))
        if step >= config.first and training.best and step >= PATIENCE * training.best["step"]:
            return


def judged(training, ids, validation, vocabulary):
    """What the models of the post are judged by, of the last weights and of the best so far."""
    last, best = training.model, char_lm.build(training.config, vocabulary).to(training.device)
    best.load_state_dict(training.best["model"])
    found = {
        "train_bits_per_char": char_lm.evaluate(last, ids[: len(validation)])[0],
        "validation_bits_per_char": char_lm.evaluate(last, validation)[0],
        "best_step": training.best["step"],
        "best_validation_bits_per_char": char_lm.evaluate(best, validation)[0],
    }
    if not math.isfinite(sum(found.values())):
        raise Diverged(training.step)
    return {f"first_{name}": value for name, value in found.items()}


def time_product(device):
    """Seconds of one large product, the fastest of a few, by the clock of the trainings."""
    a = torch.ones(PRODUCT, PRODUCT, device=device)
    if device.type != "cpu":
        return min(timing.seconds(lambda: a @ a, device) for _ in range(4))
    clock = []
    for _ in range(5):
        a @ a
        clock.append(time.process_time())
    return min(after - before for before, after in pairwise(clock))


def shown(model, text, validation):
    """What the model writes, and where its heads look in windows of the validation text."""
    prompt = torch.from_numpy(text.encode(PROMPT)).to(validation.device)
    written = char_lm.generate(model, prompt, WRITTEN, 1.0, torch.Generator().manual_seed(0))
    look, alike, picture = heads.look(model, validation)
    picture["text"] = text.decode(picture.pop("ids"))
    return {"sample": PROMPT + text.decode(written), "heads": look, "alike": alike, "picture": picture}


def measure(arguments):
    text, where = charlm.read(arguments)
    looking_back.histories_of(text)  # which refuses a text that is too short
    steps = {seed: MOST_STEPS if seed == LONGER_SEED else STEPS for seed in SEEDS}
    where["device"] = arguments.device
    configs = [Config(cell, seed, steps=steps[seed], **where) for cell in SIZES for seed in SEEDS]
    runs = [charlm.recorded(run) for run in trainings.run(train, configs, arguments, line)]
    curves, looked, shown = ([run.pop(name, None) for run in runs] for name in ("curve", "looking_back", "shown"))
    found = {"seeds": SEEDS, "corpus": text.fingerprint, "runs": runs, "curves": curves, "looking_back": looked}
    found["shown"] = {run["cell"]: one for run, one in zip(runs, shown, strict=True) if one}
    return found | {"beside": rivals(text, arguments.outputs), "counting": best_of_counting(text, arguments.outputs)}


def rivals(text, folder):
    """The trainings that other experiments saved for this text, with what their steps take."""
    found = []
    for name, cells in RIVALS.items():
        saved = saved_for(text, folder, name, "models") or {"runs": []}
        for run in saved["runs"]:
            if run["cell"] in cells and "diverged_at_step" not in run:
                model = char_lm.build(Namespace(**run), text.size)
                found.append(run | {"flops_a_step": char_lm.flops(model, BATCH * WINDOW)})
    return found


def tell(found):
    yield from map(line, found["runs"])
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    yield ""
    yield from table(found["beside"] + finished, found["counting"])
    yield ""
    yield f"until its best, seed {LONGER_SEED}: it ends when half as many steps again have brought nothing better"
    yield f"{'':22}{'best step':>16}{'bits/char there':>18}{'ended at':>16}"
    for run in (run for run in finished if "ended_at_step" in run):
        told = "{longer_best_step:16,}{longer_best_validation_bits_per_char:18.3f}{ended_at_step:16,}".format(**run)
        cut_short = run["ended_at_step"] < PATIENCE * run["longer_best_step"]
        yield f"{run['cell']:22}{told}" + ", the most there are: it may get better yet" * cut_short
    for cell, own in by_cell(finished).items():
        shares = ", ".join(f"{share(run):.0%}" for run in own)
        speed = 2 * PRODUCT**3 / min(run["product_seconds"] for run in own) / 1e9
        yield f"share of the products' speed, {cell}: {shares} of {speed:.0f} GFLOP/s"
    for cell, parts in found["shown"].items():
        yield ""
        yield f"{cell} seed {LONGER_SEED}: what its heads look at, on average"
        yield from heads.tell(parts["heads"], parts["alike"])
        yield f"{cell} seed {LONGER_SEED} writes:"
        yield parts["sample"]


def by_cell(runs):
    return {cell: [run for run in runs if run["cell"] == cell] for cell in dict.fromkeys(run["cell"] for run in runs)}


def share(run):
    """A training's operations a second, as a share of those of a large product."""
    return run["flops_a_step"] * run["first"] / run["seconds"] / (2 * PRODUCT**3 / run["product_seconds"])


def table(runs, counting):
    """One row for each model, the mean of its seeds ± the largest distance from it, and one for each that counts."""
    yield f"{'':28} parameters  10¹² ops     seconds       best step  bits/char there  at the last step"
    for cell, own in by_cell(runs).items():
        steps = own[0].get("first") or own[0]["steps"]
        seconds, known = spread([run["seconds"] for run in own], ".0f"), max(map(to_the_next_point, own))
        step = spread([run["best_step"] for run in own], ",.0f", known)
        best, last = ([run[f"{name}validation_bits_per_char"] for run in own] for name in ("best_", ""))
        yield (
            f"{f'{cell}, {steps:,} steps':28}{own[0]['parameters']:11,}{own[0]['flops_a_step'] * steps / 1e12:10.1f}"
            f"{seconds:>12}{step:>16}{spread(best):>17}{spread(last):>18}"
        )
    for model, best in counting.items():
        name = f"{model}, context {best['context']}"
        yield f"{name:94}{best['bits_per_char']:18.3f}"
    for scored in {run["scored_characters"] for run in runs}:
        yield f"All score the same {scored:,} characters. The best step was chosen on them: that flatters it a little."


def line(run):
    """A training's result as charlm.py prints one, and what came after."""
    told = charlm.line(run | {"steps": run["first"]})
    if "ended_at_step" not in run:
        return told
    return told + "; best {longer_best_validation_bits_per_char:.3f} at step {longer_best_step:,}".format(**run)


def draw(found):
    """Learning curves beside those that count, and the picture of a head of the larger model."""
    figure, (left, right) = plots.subplots(1, 2, size=(12, 5), width_ratios=[1.1, 1])
    cells = list(SIZES)
    for run, curve in zip(found["runs"], found["curves"], strict=True):
        if not curve:
            continue
        style = {"color": plots.COLOURS[cells.index(run["cell"])], "linewidth": 1.2}
        for part, dash in ("validation", "-"), ("train", "--"):
            label = f"{run['cell']}, {part}" if run["seed"] == SEEDS[0] else None
            left.plot(curve["step"], curve[f"{part}_bits_per_char"], dash, label=label, **style)
        if "ended_at_step" in run:
            left.plot(run["longer_best_step"], run["longer_best_validation_bits_per_char"], "o", **style)
    for number, (cell, own) in enumerate(by_cell(found["beside"]).items()):
        best = sum(run["best_validation_bits_per_char"] for run in own) / len(own)
        style = {"color": plots.COLOURS[2 + number], "linewidth": 1, "linestyle": plots.DASHES[number + 3]}
        left.axhline(best, label=f"{cell}, best step {best:.3f}", **style)
    for (name, best), dash in zip(found["counting"].items(), ("--", ":", "-."), strict=False):
        label = f"{name} {best['bits_per_char']:.3f}"
        left.axhline(best["bits_per_char"], color="black", linewidth=1, linestyle=dash, label=label)
    left.set_title("While training, each seed a line; others, their means")
    left.set(xscale="log", xlabel="step", ylabel="bits per character", xlim=(100, None), ylim=(1.0, 3.6))
    left.legend(fontsize=8)
    if parts := found["shown"].get(PICTURED):
        heads.draw(right, parts["picture"], PICTURED)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
