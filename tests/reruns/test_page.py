"""The page of everything saved (reruns/page.py), with machines side by side."""

import json
import shutil

from commands import ROOT

from lab import results
from reruns import catalogue, page

PUBLISHED = json.loads((ROOT / "data" / "published.json").read_text(encoding="utf-8"))
ENTRIES = catalogue.entries()


def test_other_machines_have_a_column_each(tmp_path):
    """One has a GPU and two experiments, the other one of them, with one figure that the post printed changed."""
    for machine, names in {"": ("gates", "parallel"), "box": ("gates", "parallel"), "laptop": ("gates",)}.items():
        (tmp_path / machine).mkdir(exist_ok=True)
        for name in names:
            for suffix in (".json", ".txt"):
                shutil.copy(ROOT / "outputs" / f"{name}{suffix}", tmp_path / machine)
    box = results.load("parallel", tmp_path / "box")
    box["environment"] |= {"device": "cuda", "device_name": "some GPU", "driver": "5.5, CUDA 1.2"}
    box["results"]["GRU"]["ms"] = 7.25
    (tmp_path / "box" / "parallel.json").write_text(results.to_json(box), encoding="utf-8")
    laptop = results.load("gates", tmp_path / "laptop")
    laptop["results"]["gradient_size"]["RNN"][1] *= 2
    (tmp_path / "laptop" / "gates.json").write_text(results.to_json(laptop), encoding="utf-8")
    made = page.page([ENTRIES["gates"], ENTRIES["parallel"]], PUBLISHED, [], tmp_path).splitlines()
    at = made.index("| numbers beside those saved here | box | laptop |")
    assert made[at + 2] == "| [gates](#gates) | 459 the same | 458 the same, 1 differ |"
    assert made[at + 3].startswith("| [parallel](#parallel) | ") and made[at + 3].endswith(" not compared | |")
    assert any(line.startswith("- box: ") and "cuda some GPU 5.5, CUDA 1.2; " in line for line in made)
    assert "Printed [on box](box/gates.txt), [on laptop](laptop/gates.txt)." in made
    ours = results.load("parallel", tmp_path)["results"]["GRU"]["ms"]
    assert "| figure | published | ours | box | |" in made
    assert f"| GRU.ms | 9.5 | {ours} | 7.25 | not compared: a timing |" in made
    assert "| figure | published | ours | box | laptop | |" in made  # the one that differs, on the laptop alone
