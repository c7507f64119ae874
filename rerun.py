"""Rerun the experiments and say how each figure compares with the saved outputs and with the post's.

    python rerun.py                     every quick experiment
    python rerun.py gates kneser_ney    these
    python rerun.py --all               the long trainings too, two experiments at a time, with progress
    python rerun.py --claims            what the post concludes, each with a verdict from the saved outputs
    python rerun.py --report            outputs/README.md: everything saved, on one page
    python rerun.py --check-machine     what this machine is, and how long --all would take on it

Each experiment runs as a user would run it, in a process of its own, and gets one line: its time, how many of its
figures are the same as saved in outputs/ and as published in data/published.json, and how many are within tolerance or
differ. What differs is listed. lab/compare.py says which numbers are compared, and how: those of trained models are
placed in the range that the seeds span. Exit status 1 if a figure that should agree doesn't, or if an experiment fails.

However a rerun is interrupted, the same command goes on from there; only when all is done do the results go where
--outputs says, all at once. A rerun that has come to its end starts afresh.
"""

import hashlib
import json
from collections import Counter
from importlib import import_module
from pathlib import Path

import claims
import corpus
from lab import compare, report, reruns, results, script

# Every experiment that has saved outputs, in the order of the post; True: takes longer than some seconds.
EXPERIMENTS = {
    "bptt": False,
    "decay": False,
    "vanishing": False,
    "gates": False,
    "corpus": False,
    "ngram": False,
    "kneser_ney": False,
    "hmm": True,
    "cells_table": False,
    "recall": True,
    "bidirectional": True,
    "char_models": True,
    "char_models_long": True,
    "gates_trained": True,
    "reverse": True,
    "reverse_40_longer": True,
    "reverse_40_lr": True,
    "reverse_40_6000": True,
    "reverse_40_unclipped": True,
    "reverse_seeds": True,
    "reverse_copy": True,
    "reverse_bahdanau": True,
    "reverse_mixed": True,
    "ctc": False,
    "ctc_digits": True,
    "parallel": False,
    "parallel_lengths": True,
    "generation": True,
    "path_length": False,
    "scan": False,
    "scan_lengths": True,
    "scan_models": True,
}
QUICK = [name for name, long in EXPERIMENTS.items() if not long]
TIMED = {"parallel", "parallel_lengths", "generation", "scan_lengths"}  # nothing may run beside what takes times
READ_THE_TEXT = {"corpus", "ngram", "kneser_ney", "hmm"}
READ_THE_TEXT |= {"char_models", "char_models_long", "gates_trained", "scan_models"}
SHOWN = 5  # lines of figures that differ, for each experiment


def main(argv=None):
    arguments = parse(argv)
    if arguments.redraw:
        return redraw(arguments.outputs or script.SAVED)
    published = json.loads((script.ROOT / "data" / "published.json").read_text(encoding="utf-8"))
    if arguments.claims:
        return judge(arguments.outputs or script.SAVED, published)
    if arguments.check_machine:
        import machine  # and torch, which nothing else here needs

        return machine.check(list(EXPERIMENTS))
    if arguments.report:
        page = report.page(list(EXPERIMENTS), published, claims.CLAIMS)
        results.write_whole(script.SAVED / "README.md", page.encode())
        return None
    text = corpus.load(arguments.data)
    posts_own_text = is_posts_own(text, published["corpus"])
    names = list(dict.fromkeys(arguments.names)) or [name for name in EXPERIMENTS if arguments.all or name in QUICK]
    disagree = []

    def tell(name: str, folder: Path, seconds: float | None = None):
        """Print an experiment's line and what differs."""
        record = results.load(name, folder)
        saved = compare.with_saved(record, results.load(name))
        own = posts_own_text and record["corpus"] == text.fingerprint  # --compare DIR may hold runs on another text
        post = compare.with_published(record, published, posts_own_text=own)
        print(line(name, seconds, saved, post), flush=True)
        for where, differing in (("saved", differs(saved)), ("published", differs(post))):
            for comparison in differing[:SHOWN]:
                print(f"    {where}: {comparison}")
            if len(differing) > SHOWN:
                print(f"    {where}: … and {len(differing) - SHOWN} more")
        if differs(saved) + differs(post):
            disagree.append(name)

    if arguments.compare:
        for name in names:
            tell(name, arguments.compare)
    else:
        if arguments.outputs:
            results.check_writable(arguments.outputs)
        folder = folder_of(arguments)
        made = []
        for experiment, status, seconds in reruns.run(queue(names, arguments, text), folder):
            if status:
                print(f"{experiment.name:<20} failed with exit status {status}", flush=True)
                disagree.append(experiment.name)
            else:
                made.append(experiment)
                tell(experiment.name, folder, seconds)
        reruns.finish(made, folder, arguments.outputs)
    if not posts_own_text and READ_THE_TEXT & set(names):
        sizes = published["corpus"]
        print(
            "\nThe published figures on text can't be compared: the post read its own"
            f" {sizes['train_characters']:,} + {sizes['validation_characters']:,} characters,"
            f" this text has {len(text.train):,} + {len(text.validation):,}."
        )
    agree = f"{len(names) - len(disagree)} of {len(names)} experiments agree"
    print(f"\n{agree}" + "".join(f"; not {name}" for name in disagree))
    return 1 if disagree else 0


def parse(argv):
    parser = script.Arguments(__doc__, experiment=False)
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help=f"which ones: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--all", action="store_true", help="the long ones too")
    nothing = parser.add_mutually_exclusive_group()
    nothing.add_argument("--compare", metavar="DIR", type=Path, help="run nothing: compare what DIR holds")
    nothing.add_argument("--redraw", action="store_true", help="run nothing: draw the saved figures from the numbers")
    nothing.add_argument("--claims", action="store_true", help="run nothing: judge the post's claims by what is saved")
    nothing.add_argument(
        "--report", action="store_true", help="run nothing: write outputs/README.md from what is saved"
    )
    nothing.add_argument(
        "--check-machine", action="store_true", help="run nothing: what this machine is, and how long --all would take"
    )
    corpus.add_argument(parser)
    arguments = parser.parse_args(argv)
    for name in arguments.names:
        if name not in EXPERIMENTS:
            parser.error(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return arguments


def queue(names: list[str], arguments, text: corpus.Corpus) -> list[reruns.Experiment]:
    """The experiments in the order in which they run: the quick ones, sweeps from the longest, and what takes times."""
    read = ("--data", str(arguments.data.resolve())) if arguments.data else ()
    experiments = []
    for name in names:
        own = (read, text.fingerprint) if name in READ_THE_TEXT else ((), "")
        cost = results.core_seconds(results.load(name))
        sweep = EXPERIMENTS[name] and name not in TIMED
        experiments.append(reruns.Experiment(script.ROOT / f"{name}.py", own[0], cost, sweep, own[1]))
    # Quick ones first also because char_models.py looks at what ngram.py and kneser_ney.py have saved.
    return sorted(experiments, key=lambda e: (e.name in TIMED, e.sweep, -e.cost * e.sweep))


def folder_of(arguments) -> Path:
    """Where the results of a rerun wait: one place for the same command, another for any other."""
    places = [path and str(path.resolve()) for path in (arguments.outputs, arguments.data)]
    key = hashlib.sha256(json.dumps([arguments.names, arguments.all, *places]).encode()).hexdigest()[:12]
    return script.ROOT / "work" / "rerun" / key


def is_posts_own(text: corpus.Corpus, published: dict) -> bool:
    """Whether a text has the sizes of the one that the post's figures were made on."""
    sizes = (len(text.train), len(text.validation), len(text.characters))
    return sizes == tuple(published[f"{name}_characters"] for name in ("train", "validation", "distinct"))


def differs(comparisons: list[compare.Comparison]) -> list[compare.Comparison]:
    return [comparison for comparison in comparisons if comparison.verdict == compare.DIFFERS]


def line(name: str, seconds: float | None, saved: list, post: list) -> str:
    """One experiment's line: ``gates    1.9 s   saved: 106 the same   published: 24 the same``."""
    parts = []
    for where, comparisons in (("saved", saved), ("published", post)):
        counts = Counter(comparison.verdict for comparison in comparisons)
        order = (compare.SAME, compare.WITHIN, compare.OUTSIDE, compare.DIFFERS, compare.NOT_COMPARED)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
        parts.append(f"{where}: {told or 'none'}")
    took = "" if seconds is None else f"{seconds:6.1f} s   "
    return f"{name:<20} {took}{'   '.join(parts)}"


def judge(folder: Path, published: dict):
    """Print each of the post's claims with its verdict and the figures behind it, ours and the post's."""
    for claim in claims.CLAIMS:
        verdict, figures = claim.verdict(folder)
        print(f"{claim.sentence}\n    {verdict}: {figures}")
        if posts := claim.on_published(published):
            own = "the post, on its own text" if claim.reads_the_text(published) else "the post"
            print(f"    {own}: {posts[0]}: {posts[1]}")


def redraw(folder: Path):
    """Draw every figure again from the numbers beside it."""
    for name in EXPERIMENTS:
        draw = getattr(import_module(name), "draw", None)
        if draw and (folder / f"{name}.json").exists():
            results.save_figure(draw(results.load(name, folder)["results"]), folder / f"{name}.png")
            print(f"{folder / name}.png")


if __name__ == "__main__":
    script.run(main)
