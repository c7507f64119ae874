"""An experiment that exists in this test only, one script and one line of the catalogue, is all that others are."""

import hashlib
import json


def test_a_new_experiment_is_run_compared_drawn_and_reported(house):
    house.add("drawn")
    done = house.run("drawn.py")
    assert (done.returncode, done.stdout) == (0, "this is drawn\n"), done.stderr
    made = {path.suffix: path.read_bytes() for path in house.outputs.iterdir()}
    assert made.keys() == {".json", ".txt", ".png"}

    # Its three numbers and its name are the same, but for the time, which differs as it should.
    done = house.run("rerun.py", "drawn")
    assert done.returncode == 1 and "    saved: ms: " in done.stdout
    assert "saved: 4 the same, 1 differ   published: none" in done.stdout
    assert done.stdout.endswith("0 of 1 experiments agree; not drawn\n")

    # Published, and declared a time.
    with open(house.folder / "drawn.py", "r+", encoding="utf-8") as file:
        text = file.read().replace('if NAME == "last" else {}', "")
        file.seek(0)
        file.write(text + "\n")
        file.truncate()
    assert house.run("drawn.py").returncode == 0
    path = house.folder / "data" / "published.json"
    published = json.loads(path.read_text(encoding="utf-8")) | {"drawn": {"kind": "exact", "curve": [1, 2, 5]}}
    path.write_text(json.dumps(published), encoding="utf-8")
    done = house.run("rerun.py", "drawn")
    assert (done.returncode, done.stdout) == (2, "") and "published.json is not as SHA256SUMS says" in done.stderr
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("SHA256SUMS").write_text(f"{digest}  published.json\n", encoding="utf-8")
    done = house.run("rerun.py", "drawn", "--outputs", "outputs/here")
    assert "saved: 4 the same, 1 not compared   published: 2 the same, 1 differ" in done.stdout
    assert "    published: curve.2: 4 here, 5 there\n" in done.stdout
    compared = house.run("rerun.py", "--compare", "outputs/here")
    assert compared.stdout.splitlines()[1:] == done.stdout.splitlines()[1:] and compared.returncode == 1

    (house.outputs / "drawn.png").unlink()
    (house.outputs / "drawn.txt").write_text("nothing", encoding="utf-8")
    done = house.run("rerun.py", "--redraw")
    assert done.stdout == "outputs/drawn.txt\noutputs/drawn.png\n", done.stderr
    assert (house.outputs / "drawn.txt").read_bytes() == made[".txt"]
    assert (house.outputs / "drawn.png").read_bytes() == made[".png"]

    assert house.run("rerun.py", "--report").returncode == 0
    assert "[drawn](1-toys.md#drawn)" in (house.outputs / "README.md").read_text(encoding="utf-8")
    page = (house.outputs / "1-toys.md").read_text(encoding="utf-8")
    assert "## drawn\n\nAn experiment that computes next to nothing" in page and "](drawn.png)" in page
    assert "Published figures: 2 the same, 1 differ." in page and "[on here](here/drawn.txt)" in page
