"""What ``rerun.py --report`` writes: the pages in outputs/, and the table of conclusions at the head of README.md."""

from pathlib import Path

from lab import results
from lab.errors import ROOT, SAVED, UserError
from reruns import course, page, post
from reruns.catalogue import Entry
from reruns.claims.base import POST, UNDECIDED, Claim

MADE = "<!-- made by python rerun.py --report -->\n\n"  # how its pages begin
README = ROOT / "README.md"
BEGIN, END = "<!-- conclusions, made by python rerun.py --report -->", "<!-- end of the conclusions -->"
# Claims of README's table: what the post or the course says, in a dozen words at most.
SAID = {
    "plain_cell_loses_all": "A plain cell's gradient is gone after fifty steps",
    "bias_decides": "One forget-gate bias sets an LSTM's head start",
    "plain_gives_up": "A plain RNN gives up after 10 to 20 steps",
    "counting_beats_training": "No recurrent network beats Kneser–Ney counting",
    "gru_gains_nothing": "The GRU fits best, but on new text is no better",
    "attention_wins": "Attention reverses forty digits far better than one state",
    "six_times_as_long": "A GRU takes six times as long as attention",
    "alignment_is_monotonic": "CTC keeps to the sound's order",
}


def write(entries: list[Entry], published: dict, claims: list[Claim], folder: Path):
    """Write all of it, and remove pages of chapters that are no more."""
    made = files(entries, published, claims, folder)
    for path, text in made.items():
        results.write_whole(path, text.encode())
    for path in folder.glob("*.md"):
        if path not in made and path.is_file() and results.read(path).startswith(MADE.encode()):
            path.unlink()


def files(entries: list[Entry], published: dict, claims: list[Claim], folder: Path) -> dict[Path, str]:
    """What each file will hold. README.md's table is of the saved outputs: a report on another folder leaves it."""
    pages = page.pages(entries, published, claims, folder)
    pages["POST.md"] = post.page(entries, published, claims, folder)
    pages["COURSE.md"] = course.page(claims, folder)
    made = {folder / name: MADE + text for name, text in pages.items()}
    if folder.resolve() == SAVED:
        made[README] = with_table(results.read(README).decode(), table(claims, folder))
    return made


def table(claims: list[Claim], folder: Path) -> str:
    """What is said, what came out and a verdict, which leads to the experiment's page."""
    named = {claim.name: claim for claim in claims}
    rows = ["| the post, or the course, says | here | verdict |", "|---|---|---|"]
    for name, said in SAID.items():
        claim = named[name]
        if missing := claim.waits_for(folder):
            figure, told = f"not run yet: {', '.join(missing)}", f"**{UNDECIDED}**"
        else:
            verdict, *_, figure = claim.judged(folder)
            told = page.linked(verdict, claim, "outputs/")
        rows.append(f"| {said}{f' ({claim.source})' if claim.source != POST else ''} | {figure} | {told} |")
    return "\n".join(rows)


def with_table(readme: str, made: str) -> str:
    """README.md with this table between its two marks."""
    before, _, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise UserError(f"README.md has no lines {BEGIN} and {END}: put them where the table belongs")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"
