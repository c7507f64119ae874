"""A claim: a sentence, the experiments whose outputs it needs, and the function that judges their results.

A claim about trained models holds if it holds for every seed, does not hold if the opposite holds for every seed, and
cannot be told otherwise. One that says several things holds if all of them do, and does not hold if one doesn't. Every
figure that the sentence names enters the verdict: tests/reruns/claims replaces each by its opposite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import results
from lab.errors import SAVED, UserError

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be told"
POST, COURSE, LESSON, OURS = "the post", "the course", "the lesson", "this repository"  # whose conclusion it is
PUBLISHED = "published: "  # before the name of an experiment: the post's own figures of it
ON = " on "  # between the name of an experiment and a kind of device that it has to have run on
DECLARED = []  # claims, in the order in which their modules were imported


@dataclass(frozen=True)
class Claim:
    """A sentence, whose it is and where it stands, what outputs it needs, which it looks at if they are there."""

    sentence: str
    needs: tuple[str, ...]
    judge: Callable[..., tuple[str, ...]]
    source: str = OURS
    where: tuple[str, ...] = ()  # the places of the post, the course and the lesson that say so (outline.py)
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.judge.__name__

    @property
    def experiments(self) -> list[str]:
        """Those whose figures it looks at, or may."""
        return [name.removeprefix(PUBLISHED).partition(ON)[0] for name in self.needs + self.also]

    def verdict(self, folder: Path = SAVED) -> tuple[str, str]:
        """The verdict on what ``folder`` holds, and the figures behind it."""
        return self.judged(folder)[:2]

    def judged(self, folder: Path = SAVED) -> tuple[str, ...]:
        """The same, and of a claim whose judge gives it a third: the figure that tells most, in a few words."""
        try:
            found = [_load(name, folder) for name in self.needs]
        except UserError as error:
            return UNDECIDED, str(error)
        more = {}
        for name in self.also:
            try:
                more[name] = _load(name, folder)
            except UserError:
                more[name] = None
        with results.understood(*(folder / f"{name}.json" for name in self.experiments)):
            return self.judge(*found, **more)

    def waits_for(self, folder: Path = SAVED) -> list[str]:
        """The experiments among ``needs`` of which ``folder`` holds no outputs."""
        names = [name for name in self.needs if not name.startswith(PUBLISHED) and ON not in name]
        return [name for name in names if not (folder / f"{name}.json").exists()]

    def on_published(self, published: dict) -> tuple[str, str] | None:
        """The same for the figures that the post printed, or None where it printed less than the claim looks at."""
        try:
            found = [published[name] for name in self.needs]
            return self.judge(*found, **{name: published.get(name) for name in self.also})[:2]
        except KeyError:
            return None

    def reads_the_text(self, published: dict) -> bool:
        """Whether it rests on figures that another text changes."""
        return any(published.get(name, {}).get("kind") == "corpus" for name in self.needs)


def claim(sentence: str, *needs: str, source: str = OURS, where: str | tuple[str, ...] = (), also: tuple = ()):
    """Declare the decorated function as a claim's judge: it takes the results of ``needs``, and by name of ``also``."""

    def declare(judge):
        places = (where,) if isinstance(where, str) else where
        DECLARED.append(Claim(sentence, needs, judge, source, places, also))
        return judge

    return declare


def waiting(claims: list[Claim], folder: Path) -> str:
    """One line for all claims that can't be told because nothing is saved yet to judge them by; empty without any."""
    missing = [names for claim in claims if (names := claim.waits_for(folder))]
    if not missing:
        return ""
    names = ", ".join(dict.fromkeys(name for names in missing for name in names))
    many = "1 claim waits" if len(missing) == 1 else f"{len(missing)} claims wait"
    return f"{many} for outputs that are not saved yet: {names}"


def _load(name: str, folder: Path) -> dict:
    if name.startswith(PUBLISHED):
        return results.published()[name.removeprefix(PUBLISHED)]
    name, _, device = name.partition(ON)
    if not device:
        return results.load(name, folder)["results"]
    for path in sorted([folder / f"{name}.json", *folder.glob(f"*/{name}.json")]):
        record = results.load(name, path.parent)
        if record["environment"]["device"].startswith(device):
            return record["results"]
    raise UserError(f"{name} has not been run on {device} yet")


def decided(always: bool, never: bool) -> str:
    """The verdict where something is true of every seed, of none, or of some."""
    return HOLDS if always else FAILS if never else UNDECIDED


def exactly(right: bool) -> str:
    """The verdict on figures without chance."""
    return decided(right, not right)


def each(truths: list[bool]) -> str:
    """The verdict where something is true of each of these, of none, or of some; nothing is told by no case at all."""
    return decided(bool(truths) and all(truths), bool(truths) and not any(truths))


def together(*verdicts: str) -> str:
    """The verdict on a sentence that says several things."""
    return FAILS if FAILS in verdicts else UNDECIDED if UNDECIDED in verdicts else HOLDS


def agreed(*verdicts: str) -> str:
    """The verdict on several cases of one sentence: theirs where they agree."""
    return verdicts[0] if len(set(verdicts)) == 1 else UNDECIDED


def apart(low: list[float], high: list[float], by: float = 0.0) -> str:
    """Whether every number of ``low`` is below every one of ``high``, by more than ``by``; undecided without any."""
    if not low or not high:
        return UNDECIDED
    return decided(max(low) + by < min(high), min(low) >= max(high))


def span(values: list[float], form: str = ".3f") -> str:
    """``2.694`` for one value, ``2.690 to 2.696`` for several."""
    if not values:
        return "no figures"
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
