"""The whole post on the reference machine: its scripts as they are here, against the plain listings.

Nothing is timed here: what was saved is added up. For a sweep, each training's steps are multiplied by the seconds of a
step, round by round, from benchmark_charlm and benchmark_seq2seq: plain is one training at a time on all cores, fast is
one training a core. Counting is from benchmark_kneser_ney (its modified kind). What the other scripts took, from their
own outputs, counts on both sides. The last column is what the saved trainings of a sweep took, learning curves and all,
shared by the cores: it should be near fast.

    python -m benchmarks.post          3 s
"""

from statistics import median

from lab import results, script

SWEEPS = ["char_models", "char_models_long", "reverse", "reverse_40_longer", "reverse_40_lr", "reverse_40_6000"]
OTHERS = ["bptt", "decay", "vanishing", "gates", "ngram", "parallel"]
RIVALS = ["plain", "fast"]

KINDS = {"*": "timing"}


def seconds_of_steps():
    """Kind of step → a list of rounds, each with the plain and the fast time."""
    letters, digits = results.load("benchmark_charlm")["results"], results.load("benchmark_seq2seq")["results"]
    settings = [(setting["length"], setting["attention"]) for setting in digits["settings"]]
    return letters["seconds"] | dict(zip(settings, digits["seconds"], strict=True))


def steps_of(run):
    """Which of those kinds a saved training's steps are, and how many there are of them."""
    return run["cell"] if "cell" in run else (run["length"], run["attention"]), run["steps"]


def add_up():
    """Seconds of each part of the post: rivals by rounds."""
    step, parts = seconds_of_steps(), {}
    rounds = range(min(map(len, step.values())))
    for name in SWEEPS:
        trainings = [steps_of(run) for run in results.load(name)["results"]["runs"]]
        parts[name] = {
            rival: [sum(steps * step[kind][i][rival] for kind, steps in trainings) for i in rounds] for rival in RIVALS
        }
    counting = results.load("benchmark_kneser_ney")["results"]["seconds"]
    parts["kneser_ney"] = {rival: [counting[rival][i] for i in rounds] for rival in RIVALS}
    others = sum(results.load(name)["seconds"] for name in OTHERS)
    parts["the others"] = {rival: [others for _ in rounds] for rival in RIVALS}
    return parts


def took(name):
    """Minutes of all cores that the saved trainings of a sweep took."""
    record = results.load(name)
    return sum(run["seconds"] for run in record["results"]["runs"]) / record["environment"]["cores"] / 60


def measure(arguments):
    parts = add_up()
    return {
        "cores": results.load("benchmark_charlm")["environment"]["cores"],
        "seconds": parts,
        "whole_seconds": {
            rival: [sum(seconds) for seconds in zip(*(part[rival] for part in parts.values()), strict=True)]
            for rival in RIVALS
        },
        "saved_minutes": {name: took(name) for name in SWEEPS},
    }


def tell(found):
    yield f"minutes on {found['cores']} cores"
    yield f"{'':18}   plain    fast   plain / fast: median, range   saved runs"
    for name, part in found["seconds"].items():
        saved = found["saved_minutes"].get(name)
        yield f"{name:18}{row(part):44}{f'{saved:10.1f}' if saved else ''}".rstrip()
    whole = found["whole_seconds"]
    yield f"{'the whole post':18}{row(whole)}"
    shares = [fast / plain for plain, fast in zip(whole["plain"], whole["fast"], strict=True)]
    yield f"fast takes {median(shares):.0%} of the time that plain takes, {min(shares):.0%} to {max(shares):.0%}"


def row(part):
    ratios = [plain / fast for plain, fast in zip(part["plain"], part["fast"], strict=True)]
    times = "".join(f"{median(part[rival]) / 60:8.1f}" for rival in RIVALS)
    return f"{times}   {median(ratios):5.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


if __name__ == "__main__":
    script.run(measure, tell)
