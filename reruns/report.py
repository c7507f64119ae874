"""What ``rerun.py --report`` writes: the pages in outputs/."""

from pathlib import Path

from lab import results
from reruns import page, post
from reruns.catalogue import Entry
from reruns.claims.base import Claim

MADE = "<!-- made by python rerun.py --report -->\n\n"  # how its pages begin


def write(entries: list[Entry], published: dict, claims: list[Claim], folder: Path):
    """Write all of it, and remove pages of chapters that are no more."""
    made = files(entries, published, claims, folder)
    for path, text in made.items():
        results.write_whole(path, text.encode())
    for path in folder.glob("*.md"):
        if path not in made and path.is_file() and results.read(path).startswith(MADE.encode()):
            path.unlink()


def files(entries: list[Entry], published: dict, claims: list[Claim], folder: Path) -> dict[Path, str]:
    """What each file will hold."""
    pages = page.pages(entries, published, claims, folder)
    pages["POST.md"] = post.page(entries, published, claims, folder)
    return {folder / name: MADE + text for name, text in pages.items()}
