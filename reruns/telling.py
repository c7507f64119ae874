"""What a rerun tells: a line for each experiment, which of its figures differ, and what all of them come to."""

import hashlib
import json
import shutil
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from lab import results
from lab.errors import note
from lab.script import counted
from reruns import comparing, running
from reruns.catalogue import Entry

SHOWN = 5  # lines of figures that differ, for each experiment


class Summary:
    """Compares each experiment's record with what is saved of it and with what the post published, and tells."""

    def __init__(self, published: dict, text):
        self.published, self.text = published, text
        self.posts_own_text = bool(text) and is_posts_own(text, published["corpus"])
        self.verdicts = {"saved": Counter(), "published": Counter()}
        self.agree, self.disagree, self.not_compared = [], [], []
        self.another_text = False

    def tell(self, entry: Entry, record: dict, seconds: float | None = None, place: str = ""):
        """Print the experiment's line, and what differs."""
        saved = comparing.with_saved(record, entry.record) if entry.record else []
        own = self.posts_own_text and record["corpus"] == self.text.fingerprint
        found = {"saved": saved, "published": comparing.with_published(record, self.published, posts_own_text=own)}
        counts = {where: Counter(each.verdict for each in compared) for where, compared in found.items()}
        place = place or record["environment"]["device"]
        took = "" if seconds is None else f"{seconds:7.1f} s"
        told = "   ".join(f"{where}: {in_words(count)}" for where, count in counts.items())
        print(f"{entry.name:<20} {place:<5}{took}   {told}", flush=True)
        self.another_text |= any(each.why == comparing.OTHER_TEXT for each in found["published"])
        for where, compared in found.items():
            self.verdicts[where] += counts[where]
            differing = [each for each in compared if each.verdict == comparing.DIFFERS]
            for each in differing[:SHOWN]:
                print(f"    {where}: {each}")
            if len(differing) > SHOWN:
                print(f"    {where}: … and {len(differing) - SHOWN} more")
        total = counts["saved"] + counts["published"]
        group = self.disagree if total[comparing.DIFFERS] else self.agree
        (group if total.total() > total[comparing.NOT_COMPARED] else self.not_compared).append(entry.name)

    def fail(self, entry: Entry, status: int):
        print(f"{entry.name:<20} failed with exit status {status}", flush=True)
        self.disagree.append(entry.name)

    def close(self) -> int:
        """Print what it all comes to; the exit status."""
        print()
        if self.another_text and self.text:
            sizes = self.published["corpus"]
            print(
                "The published figures on text can't be compared: the post read its own"
                f" {sizes['train_characters']:,} + {sizes['validation_characters']:,} characters,"
                f" this text has {len(self.text.train):,} + {len(self.text.validation):,}."
            )
        for where, verdicts in self.verdicts.items():
            print(f"{where + ' figures':<17}: {in_words(verdicts)}")
        judged = len(self.agree) + len(self.disagree)
        told = f"{len(self.agree)} of {judged} experiments agree" if judged else "nothing was compared"
        told += "".join(f"; not {name}" for name in self.disagree)
        print(told + "".join(f"; nothing of {name} was compared" for name in self.not_compared if judged))
        return 1 if self.disagree else 0


def in_words(verdicts: Iterable[str]) -> str:
    """``24 the same, 2 not compared``."""
    verdicts = Counter(verdicts)
    return ", ".join(f"{verdicts[v]} {v}" for v in comparing.VERDICTS if verdicts[v]) or "none"


def compared_in_words(found: Iterable[comparing.Comparison]) -> str:
    """The same of what could be compared; nothing where nothing could."""
    verdicts = [one.verdict for one in found if one.verdict != comparing.NOT_COMPARED]
    return in_words(verdicts) if verdicts else ""


def is_posts_own(text, published: dict) -> bool:
    """Whether a text has the sizes of the one that the post's figures were made on."""
    sizes = (len(text.train), len(text.validation), len(text.characters))
    return sizes == tuple(published[f"{name}_characters"] for name in ("train", "validation", "distinct"))


def rerun(entries: list[Entry], arguments: Namespace, summary: Summary) -> int:
    """Run the experiments and tell of each as soon as it ends; the exit status.

    Without --outputs their results lie in a folder that is removed once all is done: until then the same command goes
    on from there.
    """
    names = [entry.name for entry in entries]
    command = [names, str(arguments.data and arguments.data.resolve()), arguments.device]
    work = results.WORK / "rerun" / hashlib.sha256(json.dumps(command).encode()).hexdigest()[:12]
    folder = arguments.outputs or work
    results.check_writable(folder)
    text = summary.text and summary.text.fingerprint
    reruns = [running.Rerun(entry, arguments, folder, text) for entry in entries]
    done = 0
    try:
        for one, record in running.run(reruns, arguments):
            if record:
                summary.tell(one.entry, record, one.seconds or record["seconds"], "cluster" * ("cluster" in one.given))
            else:
                summary.fail(one.entry, one.status)
            done += 1
    except KeyboardInterrupt:
        note(f"{done} of {counted(len(names), 'experiment')} are done; the same command goes on from here")
        raise
    shutil.rmtree(work, ignore_errors=True)
    with suppress(OSError):  # it holds other reruns
        work.parent.rmdir()
    return summary.close()
