"""The pages of everything saved (reruns/page.py), machines side by side, and README's table (reruns/report.py)."""

import json
import re
import shutil

import pytest
from commands import ROOT

from lab import results
from lab.errors import UserError
from reruns import catalogue, claims, comparing, page, report

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
    (tmp_path / "box" / "gates.png").write_bytes(b"")
    made = page.pages([ENTRIES["gates"], ENTRIES["parallel"]], PUBLISHED, [], tmp_path)
    gates, last, index = (made[name].splitlines() for name in made)
    at = index.index("| numbers beside those saved here | box | laptop |")
    assert (
        index[at + 2]
        == f"| [gates]({page.FILES['Gradients through time']}#gates) | 459 the same | 458 the same, 1 differ |"
    )
    assert "#parallel) | " in index[at + 3] and index[at + 3].endswith(" not compared | |")
    assert any(line.startswith("- box: ") and "cuda some GPU 5.5, CUDA 1.2; " in line for line in index)
    assert "Printed [on box](box/gates.txt), [on laptop](laptop/gates.txt)." in gates
    assert gates[gates.index("| box |") + 2].endswith("](box/gates.png) |")  # no other figure is there
    assert "| figure | published | here | box | laptop | |" in gates  # the one that differs, on the laptop alone
    ours = results.load("parallel", tmp_path)["results"]["GRU"]["ms"]
    assert "| figure | published | here | box |" in last
    assert f"| GRU.ms | 9.5 | {ours} | 7.25 |" in last
    assert [line for line in last if "compared" in line] == [
        "Published figures that can't be compared: a timing (parallel). [POST.md](POST.md) has them beside ours."
    ]


def test_seeds_stand_in_one_row_beside_those_of_the_posts_second_machine():
    """The post's whole sequences right at 10 digits: 0.832 and 0.853 of two seeds, 0.88 and 0.92 on the RTX 3090."""
    record = results.load("reverse")
    record["results"]["runs"] = json.loads(json.dumps(PUBLISHED["reverse"]["runs"]))
    named = {(run["length"], run["attention"], run["seed"]): run for run in record["results"]["runs"]}
    named[10, False, 0]["sequences_right"], named[10, False, 1]["sequences_right"] = 0.9, 0.7
    found = comparing.with_published(record, PUBLISHED, posts_own_text=False)
    (told, table) = page._beside(record, found, {}, PUBLISHED)
    assert told == "Published figures: 110 the same, 1 within tolerance, 1 outside the seeds' range."
    row = "| length 10, no attention, sequences right | 0.832, 0.853 | 0.88, 0.92 | 0.900, 0.700 |"
    assert table.splitlines()[2:] == [f"{row} 1 within tolerance, 1 outside the seeds' range |"]


def test_what_the_readme_says_is_short_and_its_verdicts_are_the_claims(tmp_path):
    """Six times as long, as the post has it: 60 ms against 10. Nothing else has been run."""
    shutil.copy(ROOT / "outputs" / "parallel.json", tmp_path)
    found = results.load("parallel", tmp_path)
    for name, ms in ("GRU", 60.0), ("attention", 10.0):
        found["results"][name] |= {"ms": ms, "every_run_ms": [ms] * 10}
    (tmp_path / "parallel.json").write_text(results.to_json(found), encoding="utf-8")
    said, why = report.TABLES
    rows = [line.strip("| ").split(" | ") for line in report.table(said, claims.CLAIMS, tmp_path).splitlines()[2:]]
    assert len(rows) == len(report.SAID) == 8
    (ours,) = (row for row in rows if "not run yet" not in row[1])
    link = f"[**holds**](outputs/{page.FILES['Why Transformers won']}#parallel)"
    assert ours == ["A GRU takes six times as long as attention", "6.0 times on our CPU", link]
    assert {row[2] for row in rows if row is not ours} == {"**cannot be told**"}
    for heading in said, why:
        assert all(len(words.split()) <= 12 for words in report.TABLES[heading].values())
        for line in report.table(heading, claims.CLAIMS, ROOT / "outputs").splitlines():
            shown = re.sub(r"\[\**(.*?)\**\]\(.*?\)", r"\1", line)
            assert len(shown) <= 120, shown


def test_the_readme_keeps_all_but_its_tables_and_has_to_have_a_place_for_them(tmp_path):
    marks = [report.marks(heading) for heading in report.TABLES]
    (said, end_of_said), (why, end_of_why) = marks
    readme = f"before\n{said}\nold\n{end_of_said}\nbetween\n{why}\nold\n{end_of_why}\nafter\n"
    made = report.with_tables(readme, claims.CLAIMS, tmp_path)
    first, second = (report.table(heading, claims.CLAIMS, tmp_path) for heading in report.TABLES)
    assert made == (f"before\n{said}\n\n{first}\n\n{end_of_said}\nbetween\n{why}\n\n{second}\n\n{end_of_why}\nafter\n")
    assert report.with_tables(made, claims.CLAIMS, tmp_path) == made
    for lacking in said, end_of_said, why, end_of_why:
        with pytest.raises(UserError, match=r"README\.md has no lines "):
            report.with_tables(made.replace(lacking, ""), claims.CLAIMS, tmp_path)


def test_a_page_of_a_chapter_that_is_no_more_goes_and_nothing_else(tmp_path):
    readme = report.README.read_bytes()
    for suffix in ".json", ".txt":
        shutil.copy(ROOT / "outputs" / f"bptt{suffix}", tmp_path)
    (tmp_path / "1-old-name.md").write_text(f"{report.MADE}# Old name\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("# Notes of one's own\n", encoding="utf-8")
    report.write([ENTRIES["bptt"]], PUBLISHED, claims.CLAIMS, tmp_path)
    pages = {path.name for path in tmp_path.glob("*.md")}
    assert pages == {"README.md", "POST.md", "COURSE.md", page.FILES["Gradients through time"], "notes.md"}
    assert report.README.read_bytes() == readme  # it tells of outputs/ alone
