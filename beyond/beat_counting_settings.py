"""The learning rate of each regularised row of beat_counting.py, chosen by short trainings on posts set aside.

Each row is trained for 500 steps at three rates, one seed, each with a cosine of its own that falls to 0 at the end. A
training is worth the fewest bits per character that it comes to on the two posts set aside; the validation text is
never looked at. beat_counting.py then names the best rate of each row, and a test holds it to what is saved here.

    python -m beyond.beat_counting_settings          12 min

Prints, first:

    bits per character of what is set aside, 500 steps, one seed; the learning rate
                                 0.002     0.004     0.008      best
    LSTM, regularised            3.308     3.021     2.812     0.008, the largest tried
    LSTM, regularised, wide      3.058     2.744     2.555     0.008, the largest tried
    GPT, regularised             2.736     2.674     2.660     0.008, the largest tried

Short trainings get on with larger rates than long ones, which is why none above 8e-3 was tried: four times as many
steps may do better at less. How much to drop can't be chosen so: what overfits in 2,000 steps has hardly begun to in
500, and the least would win.

Sources: those of beat_counting.py.
"""

from pathlib import Path

import charlm
import corpus
from beyond import beat_counting
from beyond.beat_counting import ROWS, options
from lab import devices, script, trainings
from lab.errors import UserError
from layers import stopped

SEED = 0
STEPS = 500
POINTS = 5  # of a learning curve
LEARNING_RATES = [2e-3, 4e-3, 8e-3]

KINDS = {
    "*": "trained",
    **{f"runs.*.{name}": "setting" for name in stopped.SETTINGS},
    "runs.*.parameters": "exact",
    "learning_rates.*": "setting",
}


def train(config, checkpoint):
    """One training, and the fewest bits that it came to on what is set aside."""
    text = corpus.load(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    ids, aside, _ = beat_counting.ids_of(text, config.data, devices.trusted(config.device))
    found = stopped.about(stopped.descend(config, checkpoint, ids, aside, text.size))
    return found | {"set_aside_bits_per_char": min(found["curve"]["set_aside_bits_per_char"])}


def configurations(arguments, where):
    settings = {"device": arguments.device, **where}
    return [
        stopped.Config(row, SEED, **own | {"steps": STEPS, "points": POINTS, "learning_rate": rate}, **settings)
        for row, own in ROWS.items()
        if own.get("cosine", True)
        for rate in LEARNING_RATES
    ]


def measure(arguments):
    text, where = charlm.read(arguments)
    beat_counting.refuse_short(text, arguments.data)
    runs = [stopped.recorded(run) for run in trainings.run(train, configurations(arguments, where), arguments)]
    curves = [run.pop("curve", None) for run in runs]
    finished = [run for run in runs if "diverged_at_step" not in run]
    best = {run["row"]: run for run in sorted(finished, key=lambda run: -run["set_aside_bits_per_char"])}
    return {
        "seeds": [SEED],
        "corpus": text.fingerprint,
        "learning_rates": LEARNING_RATES,
        "runs": runs,
        "curves": curves,
        "best": {row: best[row]["learning_rate"] for row in ROWS if row in best},
    }


def tell(found):
    yield f"bits per character of what is set aside, {STEPS} steps, one seed; the learning rate"
    yield f"{'':24}" + "".join(f"{rate:>10g}" for rate in found["learning_rates"]) + "      best"
    for row, best in found["best"].items():
        bits = {run["learning_rate"]: run.get("set_aside_bits_per_char") for run in found["runs"] if run["row"] == row}
        told = "".join(f"{bits[rate]:10.3f}" if bits[rate] else f"{'–':>10}" for rate in found["learning_rates"])
        ends = {min(bits): "smallest", max(bits): "largest"}
        at_the_end = f", the {ends[best]} tried" if best in ends else ""
        yield f"{row:24}{told}{best:>10g}{at_the_end}"
    yield from stopped.tell_diverged(found["runs"])


if __name__ == "__main__":
    script.run(measure, tell, options=options)
