"""Making texts and figures again from the numbers beside them, without computing any."""

from pathlib import Path

from lab import results
from lab.errors import shown
from reruns.catalogue import Entry


def redraw(entries: list[Entry], folder: Path):
    """Write NAME.txt and NAME.png again for each experiment; prints the paths."""
    for entry in entries:
        found = results.load(entry.name, folder)["results"]
        script = entry.script()
        with results.understood(folder / f"{entry.name}.json"):
            made = {".txt": "".join(line + "\n" for line in script.tell(found)).encode()}
            if script.draw:
                made[".png"] = results.png(script.draw(found))
        for suffix, content in made.items():
            results.write_whole(folder / f"{entry.name}{suffix}", content)
            print(shown(folder / f"{entry.name}{suffix}"), flush=True)
