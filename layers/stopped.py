"""Training a character model that is stopped, and tuned, on a text of its own, and never sees what it is scored on.

What helps against overfitting are settings: dropped outputs and weights, weights that decay, a learning rate that falls
as a cosine does. Of the training remains the bits of every character of both texts, so that mixtures need no model.
"""

import math
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch.nn import functional as F

from lab.descent import Descent
from lab.errors import Diverged
from layers import char_lm, char_rnn, dropping, mixtures
from layers.char_gpt import GPT, Size

GPT_BLOCKS, GPT_HEADS = 4, 4
POINTS = 25  # of the learning curve, evenly spread over a training
RATES = (1e-4, 3e-4, 1e-3)  # of learning while reading, to choose from


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


def train(config, checkpoint, ids, aside, scored, vocabulary):
    """One training on ids, stopped on those set aside; its record has the bits of both texts scored, packed."""
    model = build(config, vocabulary).to(ids.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(config, 1), weight_decay=config.decay, fused=True)
    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(model, optimizer, partial(loss_on, model, ids, config), generator, config, checkpoint)
    points = {round(config.steps * k / POINTS) for k in range(1, POINTS + 1)}
    for step in training:
        for group in optimizer.param_groups:  # a checkpoint keeps it
            group["lr"] = rate(config, step + 1)
        if step in points:
            bits = stopping_bits(model, aside)
            training.log(step=step, bits_per_char=training.losses[-1] / math.log(2), set_aside_bits_per_char=bits)
            training.keep_best("set_aside_bits_per_char")
    if training.best is None:
        raise Diverged(config.steps)
    model.load_state_dict(training.best["model"])
    return {name: value for name, value in asdict(config).items() if name not in NOT_RECORDED} | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": training.seconds,
        "best_step": training.best["step"],
        "curve": training.curve,
        "packed": packed(model, config, ids, aside, scored),
    }


def packed(model, config, ids, aside, scored):
    """The bits of the characters set aside and of those scored, also where the model learns while it reads them."""
    found = {"reading": [mixtures.pack(char_lm.score_text(model, text)) for text in (aside, scored)]}
    if config.learns_reading:
        sizes = dropping.usual_sizes(model.eval(), ids)
        chosen, before = dropping.best_rate(model, aside, sizes, RATES)
        after = dropping.score_learning(model, scored, sizes, chosen)
        found |= {"rate": chosen, "learning": [mixtures.pack(before), mixtures.pack(after)]}
    return found
