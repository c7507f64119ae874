"""Training a character model that is stopped, and tuned, on a text of its own, and never sees what it is scored on.

What helps against overfitting are settings: dropped outputs and weights, weights that decay, a learning rate that falls
as a cosine does. What remains of a training are the bits of every character of both texts, so that mixtures need no
model.

Characters that training never showed don't count for when to stop: to give the symbol that stands for them its due is
left to mixtures.py. Learning while reading takes a minute or more after a training has ended. So the bits of each text
are kept as soon as it has been read once, and a kill loses half a minute of reading at most.
"""

import math
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch.nn import functional as F

from lab.descent import Descent
from lab.errors import Diverged
from lab.trainings import Checkpoint
from layers import char_lm, char_rnn, dropping, mixtures
from layers.char_gpt import GPT, Size

GPT_BLOCKS, GPT_HEADS = 4, 4
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)  # of learning while reading, to choose from


@dataclass(frozen=True)
class Config:
    row: str  # of the table
    seed: int  # of weights, windows and what is dropped
    text: str  # fingerprint of the text: no other is trained on
    steps: int
    kind: str = "LSTM"  # or GPT
    hidden: int = 128  # units of the LSTM, or the width of the GPT
    dropout: float = 0.0  # share of an LSTM's outputs, or of what a GPT's blocks add
    weight_dropout: float = 0.0  # share of an LSTM's recurrent weights
    decay: float = 0.1  # of weights, AdamW's
    batch: int = 32  # windows a step
    window: int = 128  # characters
    cosine: bool = True  # whether the rate falls to 0 as a cosine does, after warming up
    warm_up: int = 100  # steps in which it rises, where it falls later
    learning_rate: float = 2e-3  # AdamW's, at its highest
    clip: float = 1.0  # the largest norm that a gradient may have
    points: int = 20  # of the learning curve, evenly spread: where it may be stopped
    cost: float = 1.0  # about how many seconds it takes
    learns_reading: bool = False  # whether it is also scored while it learns from what it reads
    device: str = "cpu"
    data: str | None = None  # folder of the text; None: data/

    def __str__(self):
        return f"{self.row}, seed {self.seed}"


NOT_RECORDED = ("text", "cost", "learns_reading", "device", "data")
SETTINGS = [name for name in Config.__dataclass_fields__ if name not in (*NOT_RECORDED, "seed")]


def build(config, vocabulary):
    """The untrained model, drawn on the CPU whatever the device, with no other draw disturbed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if config.kind == "GPT":
            return GPT(vocabulary, Size(config.hidden, GPT_BLOCKS, GPT_HEADS), config.window, config.dropout)
        return dropping.DroppingLSTM(vocabulary, config.hidden, config.dropout, config.weight_dropout)


def rate(config, step):
    """The learning rate of a step, from 1."""
    return config.learning_rate * (dropping.cosine(step, config.steps, config.warm_up) if config.cosine else 1)


def loss_on(model, ids, config, generator):
    """The mean loss of every next character in windows from random places."""
    starts = torch.randint(len(ids) - config.window, (config.batch,), generator=generator)
    batch = ids[(torch.arange(config.window + 1)[:, None] + starts).to(ids.device)]  # (1 + time, batch)
    logits, _ = model(batch[:-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[1:].flatten())


def stopping_bits(model, ids):
    """What is stopped by: exact where windows are read side by side, estimated where a state goes through the text."""
    if isinstance(model, GPT):
        return char_lm.evaluate(model, ids)[0]
    return char_rnn.estimate(model, ids, len(ids) // char_rnn.STREAMS + char_rnn.WARM_UP)


def descend(config, checkpoint, ids, aside, vocabulary):
    """A training on ids that has ended; its model has the weights that were best on what is set aside."""
    model = build(config, vocabulary).to(ids.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(config, 1), weight_decay=config.decay, fused=True)
    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(model, optimizer, partial(loss_on, model, ids, config), generator, config, checkpoint)
    points = {round(config.steps * k / config.points) for k in range(1, config.points + 1)}
    known = aside[aside < vocabulary - 1]
    for step in training:
        for group in optimizer.param_groups:  # a checkpoint keeps it
            group["lr"] = rate(config, step + 1)
        if step in points:
            bits = stopping_bits(model, known)
            training.log(step=step, bits_per_char=training.losses[-1] / math.log(2), set_aside_bits_per_char=bits)
            training.keep_best("set_aside_bits_per_char")
    if training.best is None:
        raise Diverged(config.steps)
    model.load_state_dict(training.best["model"])
    return training


def about(training):
    """What the record of a training says of it, whatever it is then scored on."""
    return recorded(asdict(training.config)) | {
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "seconds": training.seconds,
        "best_step": training.best["step"],
        "curve": training.curve,
    }


def recorded(record):
    return {name: value for name, value in record.items() if name not in NOT_RECORDED}


def tell_diverged(runs):
    """A line for each training that came to nothing."""
    for run in runs:
        if "diverged_at_step" in run:
            yield f"{run['row']}, seed {run['seed']}: {Diverged(run['diverged_at_step'])}"


def train(config, checkpoint, ids, aside, scored, vocabulary):
    """One training on ids, stopped on those set aside; its record has the bits of both texts scored, packed."""
    training = descend(config, checkpoint, ids, aside, vocabulary)
    packed = {"reading": [mixtures.pack(char_lm.score_text(training.model, text)) for text in (aside, scored)]}
    if config.learns_reading:
        packed |= while_learning(training.model.eval(), config, ids, aside, scored, checkpoint)
    return about(training) | {"packed": packed}


def while_learning(model, config, ids, aside, scored, checkpoint):
    """The bits of both texts where the model learns while it reads, at the rate that is best on those set aside."""
    folder = checkpoint.folder and checkpoint.folder / "reading"
    kept = Checkpoint(folder, f"{config}, learning while it reads", every=0)
    done = (kept.load() or {"bits": {}})["bits"]  # by rate, and whether it is of the text to score
    sizes = dropping.usual_sizes(model, ids)

    def bits(rate, text, last=False):
        if (rate, last) not in done:
            done[rate, last] = dropping.score_learning(model, text, sizes, rate)
            kept.save_if_due(lambda: {"step": len(done), "bits": done})
        return done[rate, last]

    rate = min(RATES, key=lambda rate: bits(rate, aside).mean())
    return {"rate": rate, "learning": [mixtures.pack(bits(rate, aside)), mixtures.pack(bits(rate, scored, last=True))]}
