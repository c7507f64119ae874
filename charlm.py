"""A recurrent character model: an embedding, one recurrent layer, and the odds of the next character.

Trained on windows from random places, each begun with a state of zero; judged on a whole text that it reads from end to
end with the state carried along, every character after the first scored, those that training never showed included.
Along the way a learning curve is estimated, and the weights of its lowest point on the validation text are kept: they
are what --save writes and --sample writes from.

    python charlm.py LSTM 0                          trains for 3,000 steps: cell, seed, and steps if you like
    python charlm.py GRU 1 500 --sample 300          and writes 300 characters
    python charlm.py GRU 1 500 --save gru.pt
    python charlm.py --load gru.pt --sample 300 --prompt "A gate" --temperature 0.5

A step takes about 50 ms with RNN, 120 with GRU and 140 with LSTM on one core of the reference machine; an interrupted
training goes on where it stopped when the same command is given again. char_models.py trains all the post's models,
scan_models.py those with the layers of scan.py.

Sources: Elman, "Finding structure in time" (1990); Cho et al., "Learning phrase representations using RNN
encoder-decoder" (2014) for the GRU, with the reset as torch has it (see cells.py); Hochreiter and Schmidhuber, "Long
short-term memory" (1997) and Gers et al., "Learning to forget" (2000); Loshchilov and Hutter, "Decoupled weight decay
regularization" (2019) for AdamW; Pascanu et al., "On the difficulty of training recurrent neural networks" (2013) for
clipping the gradient's norm. Where the post is silent: AdamW's other settings are torch's own; training text is judged
on its beginning, as much of it as there is to validate on.
"""

import io
import math
import os
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import torch
from torch import nn
from torch.nn import functional as F

import cells
import corpus
import scan
from lab import devices, script, trainings
from lab.results import Results, write_whole
from lab.script import UserError

CELLS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}  # the post's
STEPS = 3000
EMBEDDING, HIDDEN = 64, 256
BATCH, WINDOW = 64, 128  # windows a step, characters a window
LEARNING_RATE, CLIP = 2e-3, 1.0
LAYERS = CELLS | {  # at this length and on one core a loop is faster than a scan, and one chunk than two
    "minGRU": partial(scan.MinGRU, recurrence=scan.loop),
    "linear attention": partial(scan.LinearAttention, chunk=WINDOW),
}
CHUNK = 64  # characters that an evaluation takes at once; the result doesn't depend on it
POINTS = 30  # of the learning curve
# A point is estimated on windows at even distances, after some characters in each that only warm the state up.
STREAMS, WARM_UP, TRAIN_SAMPLE, VALIDATION_SAMPLE = 64, 32, 160, 512  # windows; characters


class CharRNN(nn.Module):
    """The model of the post. On a CPU the layer's arithmetic is done by the cells written by hand."""

    def __init__(self, vocabulary, cell, hidden=HIDDEN):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.rnn = LAYERS[cell](EMBEDDING, hidden)
        self.linear = nn.Linear(hidden, vocabulary)

    def forward(self, ids, state=None):
        if ids.device.type == "cpu":
            h, state = cells.run(self.rnn, self.embedding.weight, state, ids)  # (time, batch, hidden)
        else:
            h, state = self.rnn(self.embedding(ids), state)
        return self.linear(h), state  # (time, batch, vocabulary)


def build(config, vocabulary):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        model = CharRNN(vocabulary, config["cell"], config["hidden"])
    if config["forget_bias"] is not None:  # torch adds two biases: the other one has to be 0
        forget = slice(config["hidden"], 2 * config["hidden"])
        with torch.no_grad():
            model.rnn.bias_ih_l0[forget] = config["forget_bias"]
            model.rnn.bias_hh_l0[forget] = 0.0
    return model


def windows(ids, generator, batch=BATCH):
    """Windows of text from random places, each with the character after it."""
    starts = torch.randint(len(ids) - WINDOW, (batch,), generator=generator)  # the last one ends with the text
    return ids[(torch.arange(WINDOW + 1)[:, None] + starts).to(ids.device)]  # (1 + time, batch)


def train_step(model, optimizer, batch, clip=CLIP):
    """One step down the gradient: the mean loss of every next character, and the gradient's norm before clipping."""
    logits, _ = model(batch[:-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item(), norm.item()


@contextmanager
def evaluating(model):
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def score(model, x, y, state=None, chunk=CHUNK):
    """Bits of each next character y after x (time, batch), chunk by chunk with the state carried along."""
    bits = []
    for ids, following in zip(x.split(chunk), y.split(chunk), strict=True):
        logits, state = model(ids, state)
        nats = F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none").view(following.shape)
        bits.append(nats.cpu().double() / math.log(2))
    return torch.cat(bits)  # (time, batch)


def evaluate(model, ids, chunk=CHUNK):
    """Exact bits per character of a text, read from end to end, and how many were scored: all but the first."""
    with evaluating(model):
        bits = score(model, ids[:-1, None], ids[1:, None], chunk=chunk)
    return bits.mean().item(), len(bits)


def estimate(model, ids, length):
    """About as many, cheaply: from windows at even distances, after a few characters to warm up in each."""
    length = min(length, len(ids) - 1)
    starts = torch.arange(STREAMS) * (len(ids) - 1 - length) // (STREAMS - 1)
    text = ids[(torch.arange(length + 1)[:, None] + starts).to(ids.device)]  # (1 + time, stream)
    with evaluating(model):
        bits = score(model, text[:-1], text[1:])
    return bits[min(WARM_UP, length // 2) :].mean().item()


def train(config, keeper):
    """One training, from its configuration to its record."""
    text = corpus.load(config["data"] and Path(config["data"]))
    check(text, config)
    device = devices.pick(config["device"])
    devices.check_recurrent(device)
    ids, validation = (torch.from_numpy(text.encode(part)).to(device) for part in (text.train, text.validation))
    model = build(config, text.size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"], fused=True)
    generator = torch.Generator().manual_seed(config["seed"])
    clock = time.process_time if device.type == "cpu" else time.perf_counter  # not what else the processor had to do
    step, seconds, began = 0, 0.0, clock()
    curve, best = {"step": [], "train_bits_per_char": [], "validation_bits_per_char": []}, None
    if state := keeper.load():
        step, seconds, curve, best = (state[name] for name in ("step", "seconds", "curve", "best"))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        generator.set_state(state["generator"])

    def state_now():
        return {
            "step": step,
            "seconds": seconds + clock() - began,
            "curve": curve,
            "best": best,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": generator.get_state(),
        }

    points = {max(1, round(config["steps"] * (k / POINTS) ** 2)) for k in range(1, POINTS + 1)}

    while step < config["steps"]:
        step += 1
        loss, norm = train_step(model, optimizer, windows(ids, generator), config["clip"])
        if not math.isfinite(loss + norm):
            raise script.Diverged(step)
        if step in points:
            curve["step"].append(step)
            curve["train_bits_per_char"].append(estimate(model, ids, TRAIN_SAMPLE))
            curve["validation_bits_per_char"].append(estimate(model, validation, VALIDATION_SAMPLE))
            if curve["validation_bits_per_char"][-1] == min(curve["validation_bits_per_char"]):
                best = {"step": step, "model": {name: p.clone() for name, p in model.state_dict().items()}}
        keeper.tick(step, config["steps"], bits=loss / math.log(2))
        keeper.save_if_due(state_now)
    seconds += clock() - began

    train_bits, _ = evaluate(model, ids[: len(validation)])  # as much text as there is to validate on
    validation_bits, scored = evaluate(model, validation)
    if not math.isfinite(train_bits + validation_bits):
        raise script.Diverged(step)
    model.load_state_dict(best["model"])
    best_bits, _ = evaluate(model, validation)
    if config["save"]:
        save(Path(config["save"]), config, text, best)
    return {
        **{name: value for name, value in config.items() if name not in ("data", "save", "text", "device")},
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": seconds,
        "train_bits_per_char": train_bits,
        "validation_bits_per_char": validation_bits,
        "scored_characters": scored,
        "best_step": best["step"],
        "best_validation_bits_per_char": best_bits,
        "curve": curve,
    }


def check(text, config):
    """Refuse at once what could only fail later."""
    if len(text.train) <= WINDOW:
        raise UserError(
            f"the training text has {script.counted(len(text.train), 'character')}:"
            f" a window and the one after it take {WINDOW + 1}"
        )
    if len(text.validation) < 2:
        has = script.counted(len(text.validation), "character")
        raise UserError(f"the validation text has {has}: there is no next one to score")
    if text.fingerprint != config["text"]:
        raise UserError("the text has changed since this training was set up: start it again")
    if config["save"] and not os.access(Path(config["save"]).parent, os.W_OK):
        raise UserError(f"can't write in {Path(config['save']).parent}: name a folder that is there")


def configuration(cell, seed, text, steps=STEPS, data=None, save=None, **changed):
    """Everything that one training's record depends on, as JSON can hold it."""
    return {
        "cell": cell,
        "seed": seed,
        "steps": steps,
        "hidden": HIDDEN,
        "learning_rate": LEARNING_RATE,
        "clip": CLIP,
        "forget_bias": None,
        "device": "cpu",
        **changed,
        "text": text.fingerprint,
        "data": data and str(Path(data).resolve()),
        "save": save and str(Path(save).resolve()),
    }


def save(path, config, text, best):
    """Write the weights of the best step, and what is needed to use them."""
    content = io.BytesIO()
    torch.save({"config": config, "characters": "".join(text.characters), **best}, content)
    write_whole(path, content.getvalue())


def load(path, text):
    """The model that `save` wrote, its configuration, and the step that its weights are of."""
    try:
        content = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    try:
        if ZipFile(content).testzip():  # torch doesn't look at the checksums
            raise ValueError
        content.seek(0)
        kept = torch.load(content, map_location="cpu", weights_only=True)
        config, characters, step = kept["config"], kept["characters"], kept["step"]
        model = build(config, len(characters) + 1)
        model.load_state_dict(kept["model"])
    except Exception:  # a damaged or foreign file can raise anything
        raise UserError(f"{path} is damaged, or not a model that charlm.py saved") from None
    if characters != "".join(text.characters):
        raise UserError(f"{path} was trained on a text of other characters: name that text's folder with --data")
    return model, config, step


def generate(model, prompt, count, temperature, generator):
    """The ids of a continuation. At temperature 0 the likeliest character is taken, at 1 the model's own odds hold."""
    written, state = [], None
    ids = prompt[:, None]  # (time, 1)
    with evaluating(model):
        for _ in range(count):
            logits, state = model(ids, state)
            z = logits[-1, 0, :-1].cpu().double()  # without the last, which stands for characters it doesn't know
            z = (z - z.max()) / temperature if temperature else torch.where(z == z.max(), 0.0, -math.inf)
            ids = torch.multinomial(z.softmax(0), 1, generator=generator)[:, None].to(prompt.device)
            written.append(ids.item())
    return written


def line(record):
    """A training's result as the post prints it."""
    return (
        f"{record['cell']} seed {record['seed']}, {record['steps']:,} steps: {record['parameters']:,} parameters, "
        f"{record['seconds']:.0f} s; train {record['train_bits_per_char']:.3f}, "
        f"validation {record['validation_bits_per_char']:.3f} bits/char"
    )


def describe(config):
    return f"{config['cell']} seed {config['seed']}"


def cost(config):
    """How long a training takes, in steps of the plain RNN."""
    rnn_steps = {"RNN": 1.0, "GRU": 2.4, "LSTM": 2.8, "minGRU": 0.9, "linear attention": 2.0}
    return rnn_steps[config["cell"]] * config["steps"]


def parse(argv):
    parser = script.Arguments(__doc__)
    parser.add_argument("cell", metavar="CELL", nargs="?", choices=LAYERS, help=", ".join(LAYERS))
    parser.add_argument("seed", metavar="SEED", nargs="?", type=script.seed, help="of weights and batches")
    parser.add_argument(
        "steps", metavar="STEPS", nargs="?", type=script.positive_int, default=STEPS, help="of training"
    )
    parser.add_argument("--lr", type=script.positive_float, default=LEARNING_RATE, help="learning rate of AdamW")
    parser.add_argument("--hidden", metavar="N", type=script.positive_int, default=HIDDEN, help="width of the layer")
    parser.add_argument("--clip", type=script.positive_float, default=CLIP, help="largest norm of the gradient")
    parser.add_argument("--forget-bias", type=script.finite_float, help="of an LSTM's forget gate at the start")
    corpus.add_argument(parser)
    devices.add_arguments(parser)
    parser.add_argument("--save", metavar="FILE", type=Path, help="write the weights of the best step")
    parser.add_argument("--load", metavar="FILE", type=Path, help="use saved weights instead of training")
    parser.add_argument("--sample", metavar="N", type=script.positive_int, help="write N characters of text")
    parser.add_argument("--prompt", metavar="TEXT", type=script.utf8, default="The ", help="how the text begins")
    parser.add_argument("--temperature", type=script.non_negative_float, default=1.0, help="0: always the likeliest")
    parser.add_argument("--seed", metavar="S", type=script.seed, default=0, dest="sample_seed", help="of the sample")
    arguments = parser.parse_args(argv)
    if arguments.seed is None and not arguments.load:
        parser.error("name a CELL and a SEED to train, or a FILE to --load")
    if arguments.cell and arguments.load:
        parser.error("a CELL and a SEED are trained; a FILE to --load has been")
    if arguments.forget_bias is not None and arguments.cell != "LSTM":
        parser.error(f"--forget-bias: only an LSTM has a forget gate, not {arguments.cell or 'a loaded model'}")
    if arguments.load and (ignored := arguments.changed.keys() & {"save", "lr", "hidden", "clip"}):
        parser.error(f"--{', --'.join(sorted(ignored))}: a model to --load isn't trained")
    if arguments.save and (arguments.save.is_dir() or not arguments.save.name):
        parser.error(f"--save: {arguments.save} is a folder; name a file")
    written = {"prompt": "--prompt", "temperature": "--temperature", "sample_seed": "--seed"}
    if not arguments.sample and (idle := [written[name] for name in written if name in arguments.changed]):
        parser.error(f"{', '.join(idle)}: what writes is --sample N, which isn't there")
    if not arguments.prompt:
        parser.error("--prompt: a text begins with one character at least")
    return arguments


def main(argv=None):
    arguments = parse(argv)
    text = corpus.load(arguments.data)
    seed = arguments.sample_seed if arguments.load else arguments.seed
    results = Results("charlm", arguments, corpus=text.fingerprint, seeds=[seed], device=arguments.device)
    weights = arguments.load or arguments.save
    if not arguments.load:
        config = configuration(
            arguments.cell, arguments.seed, text, arguments.steps, arguments.data, weights,
            learning_rate=arguments.lr, hidden=arguments.hidden, clip=arguments.clip,
            forget_bias=arguments.forget_bias, device=arguments.device,
        )  # fmt: skip
        if not weights:
            weights = script.ROOT / "work" / f"charlm-{trainings.key_of(config)}.pt"
            weights.parent.mkdir(exist_ok=True)
            config["save"] = str(weights)
        check(text, config)
        for record in trainings.run(train, [config], name="charlm", jobs=1, describe=describe):
            if "diverged_at_step" not in record:
                report(results, record)
    if arguments.load or arguments.sample:
        write_text(results, arguments, text, weights)
    if not (arguments.load or arguments.save):
        weights.unlink(missing_ok=True)
    results.save()


def report(results, record):
    results.record(runs=[record])
    results.print(line(record))
    results.print("\nbeyond the post")
    results.print(
        f"best step {record['best_step']:,}: validation {record['best_validation_bits_per_char']:.3f} bits/char "
        f"({record['scored_characters']:,} characters scored)"
    )


def write_text(results, arguments, text, weights):
    """What saved weights are worth on the validation text, and a sample of their own."""
    torch.set_num_threads(1)  # one character at a time is too little to share
    device = devices.pick(arguments.device)
    devices.check_recurrent(device)
    model, config, step = load(weights, text)
    model.to(device)
    if arguments.load:
        bits, scored = evaluate(model, torch.from_numpy(text.encode(text.validation)).to(device))
        results.print(
            f"{describe(config)}, step {step:,}: validation {bits:.3f} bits/char ({scored:,} characters scored)"
        )
        results.record(validation_bits_per_char=bits, scored_characters=scored, step=step)
    if arguments.sample:
        prompt = torch.from_numpy(text.encode(arguments.prompt)).to(device)
        if unknown := (prompt == text.size - 1).sum().item():
            script.note(f"of the prompt's {script.counted(len(prompt), 'character')} training never showed {unknown}")
        generator = torch.Generator().manual_seed(arguments.sample_seed)
        written = text.decode(generate(model, prompt, arguments.sample, arguments.temperature, generator))
        results.print(f"\n{describe(config)}, step {step:,}, at temperature {arguments.temperature:g}:")
        results.print(arguments.prompt + written)
        results.record(sample=arguments.prompt + written, step=step)


if __name__ == "__main__":
    script.run(main)
