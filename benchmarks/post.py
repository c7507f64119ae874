"""The whole post on the reference machine: its scripts as they are here, against the plain listings.

Nothing is measured here: it adds up what was saved. For a sweep, each training's steps times the seconds of a step,
round by round, from benchmark_charlm and benchmark_seq2seq: plain is one training at a time on all cores, fast is one
training a core. Counting is from benchmark_kneser_ney (its modified kind). What the other scripts took, from their own
outputs, counts on both sides. The last column is what the saved trainings of a sweep took, learning curves and all,
shared by the cores: it should be near fast.

    python benchmarks/post.py          3 s
"""

import sys
from importlib import import_module
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
# In place of this folder, where "charlm" would be a benchmark.
sys.path[:1] = [str(ROOT)]

from lab import results, script  # noqa: E402
from lab.results import Results  # noqa: E402

SWEEPS = ["char_models", "char_models_long", "reverse", "reverse_40_longer", "reverse_40_lr", "reverse_40_6000"]
OTHERS = ["bptt", "decay", "vanishing", "gates", "ngram", "parallel"]
RIVALS = ["plain", "fast"]


def trainings(name):
    """A sweep's trainings: which of the measured steps each takes, and how many of them."""
    module = import_module(name)
    if hasattr(module, "RUNS"):
        return [(cell, steps) for cell, _, steps in module.RUNS]
    return [((config["length"], config["attention"]), config["steps"]) for config in module.CONFIGS]


def measured():
    """Seconds of each kind of step: a list of rounds, each with the plain and the fast time."""
    letters, digits = results.load("benchmark_charlm")["results"], results.load("benchmark_seq2seq")["results"]
    settings = [(setting["length"], setting["attention"]) for setting in digits["settings"]]
    return letters["seconds"] | dict(zip(settings, digits["seconds"], strict=True))


def add_up():
    """Seconds of each part of the post: rivals by rounds."""
    step, parts = measured(), {}
    rounds = range(min(map(len, step.values())))
    for name in SWEEPS:
        parts[name] = {
            rival: [sum(steps * step[kind][i][rival] for kind, steps in trainings(name)) for i in rounds]
            for rival in RIVALS
        }
    counting = results.load("benchmark_kneser_ney")["results"]["seconds"]
    parts["kneser_ney"] = {rival: [counting[rival][i] for i in rounds] for rival in RIVALS}
    others = sum(results.load(name)["seconds"] for name in OTHERS)
    parts["the others"] = {rival: [others for _ in rounds] for rival in RIVALS}
    return parts


def took(name):
    """Minutes of all cores that the saved trainings of a sweep took, where there are any."""
    try:
        record = results.load(name)
    except script.UserError:
        return ""
    runs = record["results"]["runs"]
    return f"{sum(run['seconds'] for run in runs) / record['environment']['cores'] / 60:10.1f}"


def row(part):
    ratios = [plain / fast for plain, fast in zip(part["plain"], part["fast"], strict=True)]
    times = "".join(f"{median(part[rival]) / 60:8.1f}" for rival in RIVALS)
    return f"{times}   {median(ratios):5.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


def main(argv=None):
    out = Results("benchmark_post", script.Arguments(__doc__).parse_args(argv))
    parts = add_up()
    whole = {
        rival: [sum(seconds) for seconds in zip(*(part[rival] for part in parts.values()), strict=True)]
        for rival in RIVALS
    }
    out.print(f"minutes on {results.load('benchmark_charlm')['environment']['cores']} cores")
    out.print(f"{'':18}   plain    fast   plain / fast: median, range   saved runs")
    for name, part in parts.items():
        out.print(f"{name:18}{row(part):44}{took(name) if name in SWEEPS else ''}".rstrip())
    out.print(f"{'the whole post':18}{row(whole)}")
    shares = [fast / plain for plain, fast in zip(whole["plain"], whole["fast"], strict=True)]
    out.print(f"fast takes {median(shares):.0%} of the time that plain takes, {min(shares):.0%} to {max(shares):.0%}")
    out.record(seconds=parts, whole_seconds=whole)
    out.save()


if __name__ == "__main__":
    script.run(main)
