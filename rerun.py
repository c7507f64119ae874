"""Rerun the experiments and say how each figure compares with the saved outputs and with the post's.

    python rerun.py                     every quick experiment
    python rerun.py gates kneser_ney    these
    python rerun.py --all               the long trainings too, two sweeps at a time, with progress
    python rerun.py --compare DIR       run nothing: compare what another rerun saved in DIR
    python rerun.py --claims            what the post concludes, each with a verdict from the saved outputs
    python rerun.py --report            the pages in outputs/: a verdict on each claim, everything saved by chapters,
                                        and the post line by line; and the table at the head of README.md
    python rerun.py --redraw            every text and figure again, from the numbers beside it
    python rerun.py --check-machine     what this machine is, and how long --all would take on it

Each experiment runs as a user would run it, in a process of its own, and gets one line: where it ran, its time, how
many of its figures are the same as saved in outputs/ and as published in data/published.json, and how many are within
tolerance or differ. What differs is listed. reruns/comparing.py says how numbers are compared: those of trained models
are placed in the range that the seeds span. Exit status 1 if a figure that should agree doesn't, or if an experiment
fails. --data, --device, --jobs and --cluster are handed to the experiments that take them.

However a rerun is interrupted, the same command goes on from there. What lies in --outputs DIR already isn't run again
if the same code made it from the same arguments and text.
"""

from argparse import Namespace

from lab import results, script
from lab.errors import SAVED, UserError, note, shown
from reruns import catalogue, claims, redrawing, report, telling

# What each mode understands, the one without an option of its own last.
MODES = {
    "compare": ("names", "data"),
    "claims": ("outputs",),
    "report": ("outputs",),
    "redraw": ("names", "outputs"),
    "check_machine": (),
    "rerun": ("names", "all", "outputs", *script.SHARED),
}


def main(argv=None):
    entries = catalogue.entries()
    mode, arguments = parse(argv, entries)
    folder = arguments.compare or arguments.outputs or SAVED
    published = results.published()
    if mode not in ("rerun", "check_machine"):
        held = [entry for entry in entries.values() if (folder / f"{entry.name}.json").exists()]
        if not held:
            raise UserError(f"{shown(folder)} holds no results: name a folder that a rerun saved in")
    if mode == "claims":
        return claims.tell(folder, published)
    if mode == "report":
        return report.write(held, published, claims.CLAIMS, folder)
    if mode == "redraw":
        return redrawing.redraw([entries[name] for name in arguments.names] or held, folder)
    if mode == "check_machine":
        from reruns import machine  # and torch, which nothing else here needs

        return machine.check(list(entries.values()))
    if mode == "compare":
        chosen = [entries[name] for name in arguments.names] or held
        summary = telling.Summary(published, read_text(arguments, chosen))
        for entry in chosen:
            record = results.load(entry.name, folder)
            with results.understood(folder / f"{entry.name}.json", SAVED / f"{entry.name}.json"):
                summary.tell(entry, record)
        return summary.close()
    chosen = chosen_of(arguments, entries)
    script.check_place(arguments)
    if arguments.device != "cpu" and (staying := [entry.name for entry in chosen if "device" not in entry.takes]):
        note(f"on the CPU all the same, in float64 or in whole numbers: {', '.join(staying)}")
    return telling.rerun(chosen, arguments, telling.Summary(published, read_text(arguments, chosen)))


def parse(argv, entries: dict[str, catalogue.Entry]) -> tuple[str, Namespace]:
    """The mode and the arguments, each of which it understands."""
    parser = script.Arguments(__doc__, saves=False, conflict_handler="resolve")
    parser.add_argument("names", nargs="*", default=[], metavar="EXPERIMENT", help=f"which ones: {', '.join(entries)}")
    parser.add_argument("--all", action="store_true", help="the long ones too")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--compare", metavar="DIR", type=script.folder, help="run nothing: compare what DIR holds")
    only.add_argument("--claims", action="store_true", help="run nothing: judge the post's claims by what is saved")
    only.add_argument("--report", action="store_true", help="run nothing: make the pages of what is saved")
    only.add_argument("--redraw", action="store_true", help="run nothing: make saved texts and figures again")
    only.add_argument("--check-machine", action="store_true", help="run nothing: what this machine is")
    parser.add_argument(
        "--outputs", metavar="DIR", type=script.folder, help="keep the results in DIR; without running: look there"
    )
    parser.add_argument("--data", metavar="DIR", type=script.folder, help="read the text there")
    parser.add_device()
    parser.add_jobs()
    arguments = parser.parse_args(argv)
    mode = next((mode for mode in MODES if getattr(arguments, mode, False)), "rerun")
    given = [name for name, value in vars(arguments).items() if value != parser.get_default(name) and name != "changed"]
    for name in given:
        if name not in (*MODES[mode], mode):
            what = "names of experiments" if name == "names" else f"--{name}"
            parser.error(f"--{mode.replace('_', '-')} takes no {what}")
    unknown = [name for name in arguments.names if name not in entries]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(entries)}")
    if arguments.all and arguments.names:
        parser.error("--all runs every experiment: name none beside it")
    if arguments.outputs and arguments.outputs.resolve() == SAVED and {"data", "device"} & set(given):
        parser.error("outputs/ keeps runs with default arguments only: name another --outputs DIR")
    arguments.names = list(dict.fromkeys(arguments.names))
    return mode, arguments


def chosen_of(arguments: Namespace, entries: dict[str, catalogue.Entry]) -> list[catalogue.Entry]:
    """The experiments to rerun, each option being of use to one of them."""
    if arguments.names:
        chosen = [entries[name] for name in arguments.names]
    else:
        chosen = [entry for entry in entries.values() if arguments.all or entry.is_quick]
    given = {"data": arguments.data, "device": arguments.device, "jobs": arguments.jobs, "cluster": arguments.cluster}
    for option, value in given.items():
        if value not in (None, "cpu") and not any(option in entry.takes for entry in chosen):
            raise UserError(f"none of these experiments takes --{option}: {', '.join(e.name for e in chosen)}")
    return chosen


def read_text(arguments: Namespace, entries: list[catalogue.Entry]):
    """The text that the experiments read, if one of them reads any."""
    if any("data" in entry.takes for entry in entries):
        import corpus

        return corpus.load(arguments.data)
    return None


if __name__ == "__main__":
    script.run_command(main)
