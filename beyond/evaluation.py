"""How a model of characters is scored by the post's listing, and how many bits lie between that and our score.

Here every character of the validation text after the first is scored once, and the mean is taken. The listing of the
post's charlm.py differs in two ways:

- It adds up whole windows of 128 characters only; what is left at the end of the text isn't scored.
- It divides by a window less than it added up, unless what it counts happens to be a multiple of 128: the windows are
  those that begin before len - 1 - 128, and it divides by how often 128 goes into that number. So the post's bits per
  character are all a little too high, by one part in as many as it divides by.

The state is carried along in both, so that each character costs the same in both, and only sums differ. Here they are
taken from the same models, trained for 300 steps each.

    python -m beyond.evaluation          2 min

Prints:

    validation, after 300 steps
    RNN  2.9896 bits/char; whole windows only 2.9882 (-0.0014), as the listing divides 2.9949 (+0.0053)
    GRU  2.7113 bits/char; whole windows only 2.7100 (-0.0013), as the listing divides 2.7161 (+0.0048)
    LSTM 3.0655 bits/char; whole windows only 3.0643 (-0.0012), as the listing divides 3.0712 (+0.0057)
    scored: 57,279 characters here; the listing adds up 447 windows, 57,216 characters, and divides by 446
    the post's own text: 443 windows, divided by 442; 0.0061 to 0.0064 bits too much in its nine models
    of the 192,000 windows of 3,000 steps 0 end with the text, from 599,454 places; in the listing none, from 599,453

The batches differ too: the listing draws where a window begins from one place fewer, so that no window ends with the
text's last character. In a training of ours hardly any does either. But drawn from another number of places, all
windows of a training are others: as with another seed.

Source: the post's charlm.py, as it shows it.
"""

from dataclasses import asdict

import torch

import charlm
import corpus
from lab import results, script, trainings
from lab.errors import Diverged, UserError
from layers.char_rnn import CELLS, evaluating, score

SEED = 0
STEPS = 300
WINDOW = charlm.WINDOW

KINDS = {"*": "trained", "runs.*.cell": "setting", "runs.*.steps": "setting"}
KINDS |= {"here.*": "corpus", "listing.*": "corpus", "batches.*": "corpus", "post.*": "exact"}


def windows(length):
    """How many windows the listing adds up for a text of ``length`` characters, and by how many it divides."""
    return len(range(0, length - 1 - WINDOW, WINDOW)), (length - 1 - WINDOW) // WINDOW


def three_ways(bits):
    """The bits of all characters but the first (time,), as a mean: ours, of whole windows only, and the listing's."""
    added, divided_by = windows(1 + len(bits))
    whole = bits[: added * WINDOW]
    return {
        "bits_per_char": bits.mean().item(),
        "whole_windows": whole.mean().item(),
        "listing": (whole.sum() / (divided_by * WINDOW)).item(),
    }


def train(config, checkpoint):
    """One training, and what its model needs for the validation text."""
    training, _, ids, validation = charlm.set_up(config, checkpoint)
    charlm.learn(training, ids, validation)
    with evaluating(training.model):
        bits = score(training.model, validation[:-1, None], validation[1:, None])[:, 0]  # (time,)
    if not bits.isfinite().all():
        raise Diverged(config.steps)
    about = {name: value for name, value in asdict(config).items() if name in ("cell", "seed", "steps")}
    return about | {"seconds": training.seconds} | three_ways(bits)


def ending_with_the_text(length):
    """How many windows of a whole training of ours end with the last character of a training text."""
    generator, last = torch.Generator().manual_seed(SEED), length - WINDOW - 1
    batches = (torch.randint(length - WINDOW, (charlm.BATCH,), generator=generator) for _ in range(charlm.STEPS))
    return sum((starts == last).sum().item() for starts in batches)


def of_the_post():
    """What the post's own figures owe to the divisor."""
    published = results.published()
    added, divided_by = windows(published["corpus"]["validation_characters"])
    bits = [run["validation_bits_per_char"] for run in published["char_models"]["runs"]]
    too_much = [b * (1 - divided_by / added) for b in bits]
    return {"windows": added, "divided_by": divided_by, "least_too_much": min(too_much), "most_too_much": max(too_much)}


def measure(arguments):
    text, where = charlm.read(arguments)
    if not windows(len(text.validation))[1] > 0:
        has = script.counted(len(text.validation), "character")
        raise UserError(f"the validation text has {has}: the listing's division takes {2 * WINDOW + 1}")
    configs = [charlm.Config(cell, SEED, steps=STEPS, device=arguments.device, **where) for cell in CELLS]
    runs = trainings.run(train, configs, arguments, tell_run)
    added, divided_by = windows(len(text.validation))
    return {
        "seeds": [SEED],
        "corpus": text.fingerprint,
        "runs": [{name: value for name, value in run.items() if name not in charlm.NOT_RECORDED} for run in runs],
        "here": {"scored_characters": len(text.validation) - 1},
        "listing": {"windows": added, "divided_by": divided_by, "scored_characters": added * WINDOW},
        "batches": {
            "windows": charlm.STEPS * charlm.BATCH,
            "end_with_the_text": ending_with_the_text(len(text.train)),
            "places": len(text.train) - WINDOW,
        },
        "post": of_the_post(),
    }


def tell_run(run):
    if "diverged_at_step" in run:
        return charlm.line(run)
    ours, whole, listing = (run[name] for name in ("bits_per_char", "whole_windows", "listing"))
    told = f"{run['cell']:4} {ours:.4f} bits/char; whole windows only {whole:.4f} ({whole - ours:+.4f})"
    return f"{told}, as the listing divides {listing:.4f} ({listing - ours:+.4f})"


def tell(found):
    here, listing, batches, post = (found[name] for name in ("here", "listing", "batches", "post"))
    yield f"validation, after {STEPS} steps"
    yield from map(tell_run, found["runs"])
    yield (
        f"scored: {here['scored_characters']:,} characters here; the listing adds up {listing['windows']} windows,"
        f" {listing['scored_characters']:,} characters, and divides by {listing['divided_by']}"
    )
    yield (
        f"the post's own text: {post['windows']} windows, divided by {post['divided_by']};"
        f" {post['least_too_much']:.4f} to {post['most_too_much']:.4f} bits too much in its nine models"
    )
    yield (
        f"of the {batches['windows']:,} windows of {charlm.STEPS:,} steps {batches['end_with_the_text']} end"
        f" with the text, from {batches['places']:,} places; in the listing none, from {batches['places'] - 1:,}"
    )


def options(parser):
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, options=options)
