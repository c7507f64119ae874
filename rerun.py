"""Rerun the experiments and say how each figure compares with the saved outputs and with the post's.

    python rerun.py                     every quick experiment
    python rerun.py gates kneser_ney    these
    python rerun.py --all               the long trainings too; interrupted, the same command continues them
    python rerun.py --claims            what the post concludes, each with a verdict from the saved outputs
    python rerun.py --report            outputs/README.md: everything saved, on one page

Each experiment runs as a user would run it, in a process of its own, and gets one line: its time, how many of its
figures are the same as saved in outputs/ and as published in data/published.json, and how many are within tolerance or
differ. What differs is listed. lab/compare.py says which numbers are compared, and how: those of trained models are
placed in the range that the seeds span. Exit status 1 if a figure that should agree doesn't, or if an experiment fails.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

import claims
import corpus
from lab import compare, report, results, script

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
    "char_models": True,
    "char_models_long": True,
    "reverse": True,
    "reverse_40_lr": True,
    "reverse_40_6000": True,
    "ctc": False,
    "parallel": False,
}
READ_THE_TEXT = {"corpus", "ngram", "kneser_ney", "hmm", "char_models", "char_models_long"}
SHOWN = 5  # lines of figures that differ, for each experiment


def main(argv=None):
    arguments = parse(argv)
    if arguments.redraw:
        return redraw(arguments.outputs or script.SAVED)
    if arguments.claims:
        return judge(arguments.outputs or script.SAVED)
    published = json.loads((script.ROOT / "data" / "published.json").read_text(encoding="utf-8"))
    if arguments.report:
        page = report.page(list(EXPERIMENTS), published, claims.CLAIMS)
        results.write_whole(script.SAVED / "README.md", page.encode())
        return None
    text = corpus.load(arguments.data)
    posts_own_text = is_posts_own(text, published["corpus"])
    names = arguments.names or [name for name, long in EXPERIMENTS.items() if arguments.all or not long]
    failed = []
    with tempfile.TemporaryDirectory() as aside:
        folder = arguments.compare or arguments.outputs or Path(aside)
        for name in names:
            saved_record = results.load(name)  # before the run, which with --outputs outputs replaces it
            start = time.perf_counter()
            if not arguments.compare and not experiment(name, folder, arguments):
                failed.append(name)
                continue
            record = results.load(name, folder)
            seconds = None if arguments.compare else time.perf_counter() - start
            saved = compare.with_saved(record, saved_record)
            own = posts_own_text and record["corpus"] == text.fingerprint  # --compare DIR may hold runs on another text
            post = compare.with_published(record, published, posts_own_text=own)
            print(line(name, seconds, saved, post), flush=True)
            if any(differs(saved) + differs(post)):
                failed.append(name)
                for where, differing in (("saved", differs(saved)), ("published", differs(post))):
                    for comparison in differing[:SHOWN]:
                        print(f"    {where}: {comparison}")
                    if len(differing) > SHOWN:
                        print(f"    {where}: … and {len(differing) - SHOWN} more")
    if not posts_own_text and READ_THE_TEXT & set(names):
        sizes = published["corpus"]
        print(
            "\nThe published figures on text can't be compared: the post read its own"
            f" {sizes['train_characters']:,} + {sizes['validation_characters']:,} characters,"
            f" this text has {len(text.train):,} + {len(text.validation):,}."
        )
    print(
        f"\n{len(names) - len(failed)} of {len(names)} experiments agree" + "".join(f"; not {name}" for name in failed)
    )
    return 1 if failed else 0


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
    corpus.add_argument(parser)
    arguments = parser.parse_args(argv)
    for name in arguments.names:
        if name not in EXPERIMENTS:
            parser.error(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return arguments


def experiment(name: str, folder: Path, arguments) -> bool:
    """Run one script as its users do, its results going to ``folder``. What it prints is in there as well."""
    command = [sys.executable, str(script.ROOT / f"{name}.py"), "--outputs", str(folder)]
    if name in READ_THE_TEXT and "data" in arguments.changed:
        command += ["--data", str(arguments.data)]
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    if status:
        print(f"{name:<20} failed with exit status {status}: {' '.join(command[1:])}", flush=True)
    return status == 0


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


def judge(folder: Path):
    """Print each of the post's claims with its verdict and the figures behind it."""
    for claim in claims.CLAIMS:
        verdict, figures = claim.verdict(folder)
        print(f"{claim.sentence}\n    {verdict}: {figures}")


def redraw(folder: Path):
    """Draw every figure again from the numbers beside it."""
    for name in EXPERIMENTS:
        draw = getattr(import_module(name), "draw", None)
        if draw and (folder / f"{name}.json").exists():
            results.save_figure(draw(results.load(name, folder)["results"]), folder / f"{name}.png")
            print(f"{folder / name}.png")


if __name__ == "__main__":
    script.run(main)
