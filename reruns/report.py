"""What ``rerun.py --report`` writes: the pages in outputs/, and README.md's two tables of conclusions."""

from pathlib import Path

from lab import results
from lab.errors import ROOT, SAVED, UserError
from reruns import course, page, post
from reruns.catalogue import Entry
from reruns.claims.base import COURSE, UNDECIDED, Claim

MADE = "<!-- made by python rerun.py --report -->\n\n"  # how its pages begin
README = ROOT / "README.md"
# Claims of README's tables, each under its heading: what is said, in a dozen words at most.
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
WHY = {
    "attention_is_one_step": "Token 1 is one step away from token 1,024",
    "serial_costs": "A GRU waits for each step: less arithmetic, more time",
    "attention_predicts_better": "At its best step a GPT of like size is better",
    "regularising_beats_counting": "Only a regularised LSTM beats counting",
    "each_knows_something_else": "Mixed with counting, both are better",
    "attention_looks_further": "The larger GPT uses twice as much of the past",
    "one_core_wins_no_time": "On one core, though, a GPT is the slower to train",
    "a_token_stays_cheap": "And writing costs it more the longer the text",
}
TABLES = {"the post, or the course, says": SAID, "why Transformers won, and where not": WHY}


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
        made[README] = with_tables(results.read(README).decode(), claims, folder)
    return made


def table(heading: str, claims: list[Claim], folder: Path) -> str:
    """What is said, what came out and a verdict, which leads to the experiment's page."""
    named = {claim.name: claim for claim in claims}
    rows = [f"| {heading} | here | verdict |", "|---|---|---|"]
    for name, said in TABLES[heading].items():
        claim = named[name]
        if missing := claim.waits_for(folder):
            figure, told = f"not run yet: {', '.join(missing)}", f"**{UNDECIDED}**"
        else:
            verdict, *_, figure = claim.judged(folder)
            told = page.linked(verdict, claim, "outputs/")
        rows.append(f"| {said}{f' ({claim.source})' if claim.source == COURSE else ''} | {figure} | {told} |")
    return "\n".join(rows)


def with_tables(readme: str, claims: list[Claim], folder: Path) -> str:
    """README.md with each table between its two marks."""
    for heading in TABLES:
        begin, end = marks(heading)
        before, _, rest = readme.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise UserError(f"README.md has no lines {begin} and {end}: put them where the table belongs")
        readme = f"{before}{begin}\n\n{table(heading, claims, folder)}\n\n{end}{after}"
    return readme


def marks(heading: str) -> tuple[str, str]:
    """The lines of README.md between which a table is written."""
    return f"<!-- {heading}: made by python rerun.py --report -->", f"<!-- end of: {heading} -->"
