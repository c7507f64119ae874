"""A character model, recurrent or a GPT: trained on windows from random places, judged on a whole text.

Each window begins with a state of zero. The validation text is read from end to end with the state carried along, by a
GPT in windows, and every character after the first is scored. A learning curve is estimated along the way, and the
weights of its lowest point on the validation text are kept: --save writes them, and --sample writes from them.

    python charlm.py LSTM 0                          trains for 3,000 steps: cell, seed, and steps if you like
    python charlm.py GPT 0                           the same of a Transformer that reads windows (layers/char_gpt.py)
    python charlm.py GRU 1 500 --sample 300          and writes 300 characters
    python charlm.py GRU 1 500 --save gru.pt
    python charlm.py --load gru.pt --sample 300 --prompt "A gate" --temperature 0.5

A step takes about 50 ms with RNN, 130 with GRU and 165 with LSTM on one core of the reference machine, and 120 with GPT
on a slower one. char_models.py trains all the post's models. (Long because half of it is the command: what can be asked
of a model.)

Sources: Elman, "Finding structure in time" (1990); Cho et al., "Learning phrase representations using RNN
encoder-decoder" (2014) for the GRU, with the reset as torch has it (see layers/cells.py); Hochreiter and Schmidhuber,
"Long short-term memory" (1997) and Gers et al., "Learning to forget" (2000); Loshchilov and Hutter, "Decoupled weight
decay regularization" (2019) for AdamW; Pascanu et al., "On the difficulty of training recurrent neural networks" (2013)
for clipping the gradient's norm. Where the post is silent: AdamW's other settings are torch's own; training text is
judged on as much of it as there is to validate on. What its listing's way of scoring makes is in beyond/evaluation.py.
"""

import base64
import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional as F

import corpus
from lab import devices, results, script, trainings
from lab.descent import Descent
from lab.errors import Diverged, UserError, note
from layers import char_files
from layers.char_gpt import SIZES
from layers.char_lm import CELLS, build, estimate, evaluate, generate
from layers.char_rnn import HIDDEN
from layers.selective import HALF_LIVES

STEPS = 3000
BATCH, WINDOW = 64, 128  # windows a step, characters a window
LEARNING_RATE, CLIP = 2e-3, 1.0
POINTS = 30  # of the learning curve
TRAIN_SAMPLE, VALIDATION_SAMPLE = 160, 512  # characters of the windows that a point is estimated on
RNN_STEPS = {"RNN": 1.0, "GRU": 2.6, "LSTM": 3.3, "minGRU": 0.9, "linear attention": 2.0}  # what a step costs
RNN_STEPS |= {"selective state space": 1.2, "fading attention": 1.4, "GPT": 1.9, "larger GPT": 4.8}

KINDS = {
    "*": "trained",
    "*scored_characters": "corpus",
    "runs.*.parameters": "exact",
    **{f"runs.*.{name}": "setting" for name in ("cell", "steps", "hidden", "learning_rate", "clip", "forget_bias")},
}
NOT_RECORDED = {"text", "data", "device", "with_weights"}  # where a training ran, not what it was


@dataclass(frozen=True)
class Config:
    cell: str  # one of CELLS
    seed: int  # of weights and windows
    text: str  # fingerprint of the text: no other is trained on
    steps: int = STEPS
    hidden: int = HIDDEN  # units of the layer, or the width of a GPT
    learning_rate: float = LEARNING_RATE  # AdamW's
    clip: float = CLIP  # the largest norm that a gradient may have
    forget_bias: float | None = None  # of an LSTM's forget gate at the start; None: as torch draws it
    device: str = "cpu"
    data: str | None = None  # folder of the text; None: data/
    with_weights: bool = False  # whether the record holds the weights of the best step

    def __str__(self):
        return f"{self.cell} seed {self.seed}"

    @property
    def cost(self) -> float:
        return RNN_STEPS[self.cell] * self.steps


def windows(ids, generator, batch=BATCH):
    """Windows of text from random places, each with the character after it."""
    starts = torch.randint(len(ids) - WINDOW, (batch,), generator=generator)  # the last one ends with the text
    return ids[devices.send(torch.arange(WINDOW + 1)[:, None] + starts, ids.device)]  # (1 + time, batch)


def loss_on(model, ids, generator):
    """The mean loss of every next character in fresh windows."""
    batch = windows(ids, generator)
    logits, _ = model(batch[:-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[1:].flatten())


def set_up(config, checkpoint):
    """The training, not yet begun, the text, and the ids of its two parts on the training's device."""
    text = corpus.load(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    device = devices.trusted(config.device)
    ids, validation = (torch.from_numpy(text.encode(part)).to(device) for part in (text.train, text.validation))
    model = build(config, text.size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(model, optimizer, partial(loss_on, model, ids), generator, config, checkpoint)
    return training, text, ids, validation


def curve_points(steps):
    """The steps of a training after which its learning curve has a point: denser early."""
    return sorted({max(1, round(steps * (k / POINTS) ** 2)) for k in range(1, POINTS + 1)})


def learn(training, ids, validation):
    """Go through a training with a learning curve, and keep the weights of its lowest point."""
    points = set(curve_points(training.config.steps))
    for step in training:
        if step in points:
            training.log(
                step=step,
                train_bits_per_char=estimate(training.model, ids, TRAIN_SAMPLE),
                validation_bits_per_char=estimate(training.model, validation, VALIDATION_SAMPLE),
            )
            training.keep_best("validation_bits_per_char")
    if training.best is None:  # the last step's loss was finite, what it left behind isn't
        raise Diverged(training.config.steps)


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    training, text, ids, validation = set_up(config, checkpoint)
    learn(training, ids, validation)
    model, best, seconds = training.model, training.best, training.seconds
    train_bits, _ = evaluate(model, ids[: len(validation)])  # as much text as there is to validate on
    validation_bits, scored = evaluate(model, validation)
    if not math.isfinite(train_bits + validation_bits):
        raise Diverged(config.steps)
    model.load_state_dict(best["model"])
    best_bits, _ = evaluate(model, validation)
    settings = recorded(asdict(config))
    packed = char_files.pack(settings, text, best) if config.with_weights else b""
    return settings | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": seconds,
        "train_bits_per_char": train_bits,
        "validation_bits_per_char": validation_bits,
        "scored_characters": scored,
        "best_step": best["step"],
        "best_validation_bits_per_char": best_bits,
        "curve": training.curve,
        **({"weights": base64.b64encode(packed).decode()} if packed else {}),
    }


def recorded(record):
    return {name: value for name, value in record.items() if name not in NOT_RECORDED}


def trained(configs, arguments, line=None):
    return [recorded(record) for record in trainings.run(train, configs, arguments, line)]


def read(arguments, *, train=True):
    """The text, refused where that could only fail later, and what a configuration says of it."""
    text = corpus.load_to_score(arguments.data)
    if train and len(text.train) <= WINDOW:
        has = script.counted(len(text.train), "character")
        raise UserError(f"the training text has {has}: a window and the one after it take {WINDOW + 1}")
    return text, {"text": text.fingerprint, "data": arguments.data and str(arguments.data.resolve())}


def measure(arguments):
    refuse(arguments)
    return of_a_file(arguments) if arguments.load else of_a_training(arguments)


def of_a_training(arguments):
    text, where = read(arguments)
    hidden = SIZES[arguments.cell].width if arguments.cell in SIZES else arguments.hidden
    config = Config(
        arguments.cell, arguments.seed, steps=arguments.steps, hidden=hidden, learning_rate=arguments.lr,
        clip=arguments.clip, forget_bias=arguments.forget_bias, device=arguments.device, **where,
        with_weights=bool(arguments.save or arguments.sample),
    )  # fmt: skip
    (record,) = trained([config], arguments)
    weights = base64.b64decode(record.pop("weights", ""))
    found = {"seeds": [arguments.seed], "corpus": text.fingerprint, "runs": [record]}
    if weights and arguments.save:
        try:
            results.write_whole(arguments.save, weights)
        except OSError as error:  # what was measured is told all the same
            note(f"can't write {arguments.save}: {error.strerror}; the same command tries again without training")
            arguments.work.unfinished = True
    if weights and arguments.sample:
        found |= sample(*char_files.unpack(weights, text), text, arguments)
    return found


def of_a_file(arguments):
    text, _ = read(arguments, train=False)
    torch.set_num_threads(1)  # one character at a time is too little to share
    device = devices.trusted(arguments.device)
    model, settings = char_files.load(arguments.load, text)
    bits, scored = evaluate(model.to(device), torch.from_numpy(text.encode(text.validation)).to(device))
    found = {"seeds": [arguments.sample_seed], "corpus": text.fingerprint, "model": vars(settings)}
    found |= {"validation_bits_per_char": bits, "scored_characters": scored}
    return found | (sample(model, settings, text, arguments) if arguments.sample else {})


def sample(model, settings, text, arguments):
    """The prompt, and what the model writes after it."""
    device = devices.trusted(arguments.device)
    prompt = torch.from_numpy(text.encode(arguments.prompt)).to(device)
    if unknown := (prompt == text.size - 1).sum().item():
        note(f"of the prompt's {script.counted(len(prompt), 'character')} training never showed {unknown}")
    generator = torch.Generator().manual_seed(arguments.sample_seed)
    written = text.decode(generate(model.to(device), prompt, arguments.sample, arguments.temperature, generator))
    return {"model": vars(settings), "temperature": arguments.temperature, "sample": arguments.prompt + written}


def tell(found):
    for run in found.get("runs", []):
        yield line(run)
        if "best_step" in run:
            yield ""
            yield "beyond the post"
            yield f"best step {run['best_step']:,}: {judged(run, 'best_validation_bits_per_char')}"
    if "model" in found:
        model = "{cell} seed {seed}, step {step:,}".format(**found["model"])
    if "validation_bits_per_char" in found:
        seen = ", trained on another text, which may hold some of this" * found["model"]["other_text"]
        yield f"{model}{seen}: {judged(found, 'validation_bits_per_char')}"
    if "sample" in found:
        yield ""
        yield f"{model}, at temperature {found['temperature']:g}:"
        yield found["sample"]


def judged(found, bits):
    return f"validation {found[bits]:.3f} bits/char ({found['scored_characters']:,} characters scored)"


def line(run):
    """A training's result as the post prints it."""
    told = "{cell} seed {seed}, {steps:,} steps: ".format(**run)
    if "diverged_at_step" in run:
        return told + f"the loss was not finite at step {run['diverged_at_step']:,}"
    told += f"{run['parameters']:,} parameters, {run['seconds']:.0f} s; train {run['train_bits_per_char']:.3f}, "
    return told + f"validation {run['validation_bits_per_char']:.3f} bits/char"


def options(parser):
    parser.add_argument("cell", metavar="CELL", nargs="?", choices=CELLS, help=", ".join(CELLS))
    parser.add_argument("seed", metavar="SEED", nargs="?", type=script.seed, help="of weights and windows")
    parser.add_argument("steps", metavar="STEPS", nargs="?", type=script.positive_int, default=STEPS, help="in all")
    parser.add_argument("--lr", type=script.positive_float, default=LEARNING_RATE, help="learning rate of AdamW")
    parser.add_argument("--hidden", metavar="N", type=script.positive_int, default=HIDDEN, help="width of the layer")
    parser.add_argument("--clip", type=script.positive_float, default=CLIP, help="largest norm of the gradient")
    parser.add_argument("--forget-bias", type=script.finite_float, help="of an LSTM's forget gate at the start")
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()
    parser.add_argument("--save", metavar="FILE", type=script.file, help="write the weights of the best step")
    parser.add_argument("--load", metavar="FILE", type=script.file, help="use saved weights instead of training")
    parser.add_argument("--sample", metavar="N", type=script.positive_int, help="write N characters of text")
    parser.add_argument("--prompt", metavar="TEXT", type=script.utf8, default="The ", help="how the text begins")
    parser.add_argument("--temperature", type=script.non_negative_float, default=1.0, help="0: always the likeliest")
    parser.add_argument("--seed", metavar="S", type=script.seed, default=0, dest="sample_seed", help="of the sample")


def refuse(arguments):
    """Refuse arguments that can't be meant together."""
    changed, save = arguments.changed, arguments.save
    if arguments.seed is None and not arguments.load:
        raise UserError("name a CELL and a SEED to train, or a FILE to --load")
    if arguments.cell and arguments.load:
        raise UserError("a CELL and a SEED are trained; a FILE to --load has been")
    if arguments.forget_bias is not None and arguments.cell != "LSTM":
        raise UserError(f"--forget-bias: only an LSTM has a forget gate, not {arguments.cell or 'a loaded model'}")
    if arguments.cell in SIZES and "hidden" in changed:
        raise UserError(f"--hidden: a GPT's width goes by its name; there are {' and '.join(SIZES)}")
    if arguments.cell == "fading attention" and arguments.hidden % len(HALF_LIVES):
        raise UserError(f"--hidden: {arguments.hidden} units can't be cut into {len(HALF_LIVES)} heads")
    given = changed.keys() | {name for name in ("jobs", "cluster") if getattr(arguments, name) is not None}
    if arguments.load and (ignored := given & {"save", "lr", "hidden", "clip", "jobs", "cluster"}):
        raise UserError(f"--{', --'.join(sorted(ignored))}: a model to --load isn't trained")
    if save and not save.parent.is_dir():
        raise UserError(f"can't write in {save.parent}: name a folder that is there")
    if save:
        results.check_file(save)
    written = {"prompt": "--prompt", "temperature": "--temperature", "sample_seed": "--seed"}
    if not arguments.sample and (idle := [written[name] for name in written if name in changed]):
        raise UserError(f"{', '.join(idle)}: what writes is --sample N, which isn't there")
    if not arguments.prompt:
        raise UserError("--prompt: a text begins with one character at least")


if __name__ == "__main__":
    script.run(measure, tell, options=options)
