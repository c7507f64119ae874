"""What the README and the docstrings say is what the commands do and what the saved outputs hold."""

import ast
import re
import shlex
from functools import cache
from importlib import import_module

import pytest
from commands import ROOT

import rerun
from lab import script, sources
from reruns import catalogue

README, BEYOND, BENCHMARKS = (
    (ROOT / folder / "README.md").read_text(encoding="utf-8") for folder in ("", "beyond", "benchmarks")
)
ENTRIES = catalogue.entries()
FOLDERS = {"": "", "beyond": "beyond.", "benchmarks": "benchmarks."}
MODULES = [
    before + path.stem
    for folder, before in FOLDERS.items()
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.stem not in ("__init__", "rerun")
]
ROWS = dict(re.findall(r"^\| `([\w/]+)\.py` \| (.*) \|$", README + BEYOND + BENCHMARKS, re.MULTILINE))
SLACK = 1.5  # between a time that is told and the one that was measured: machines are never quite free
START_UP = 3.0  # seconds: importing torch and drawing the figure are told, but happen outside what is measured


def saved_text(name):
    return (ROOT / "outputs" / f"{name}.txt").read_text(encoding="utf-8")


def docstring(module):
    return ast.get_docstring(ast.parse(sources.path_of(module).read_text(encoding="utf-8")))


def seconds(text):
    """``0.3 s``, ``12 min`` or ``1.5 h`` as seconds."""
    number, unit = re.search(r"([\d.]+) (s|min|h)\b", text).groups()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def assert_time_is_true(entry, text):
    record = entry.record
    trained = sum(run.get("seconds", 0) for run in catalogue.runs(record))
    # A sweep that was interrupted took longer than its last command: as long as its trainings, shared by the cores.
    measured = max(record["seconds"], trained / record["environment"]["cores"])
    told = seconds(text)
    assert measured / SLACK <= told <= measured * SLACK + START_UP, f"{text} told, {measured:.1f} s measured"


def command_after(marker):
    return re.search(rf"<!-- {marker} -->\n```sh\n(.*)\n```", README).group(1)


def test_two_commands_do_all_the_set_up():
    set_up = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
    assert command_after("main command") == f"{set_up} && .venv/bin/python rerun.py"
    assert command_after("test command") == f"{set_up} '.[test]' && .venv/bin/pytest -n auto"


@pytest.mark.parametrize("page, level, of_the_post", [(README, "###", True), (BEYOND, "##", False)])
def test_the_tables_follow_the_chapters_with_a_row_for_each_experiment(page, level, of_the_post):
    headings = re.findall(rf"^{level} (.*)$", page, re.MULTILINE)
    assert headings == [*catalogue.CHAPTERS, *["Beyond the post"] * of_the_post]
    for heading, modules in catalogue.CHAPTERS.items():
        table = page.partition(f"{level} {heading}\n")[2].partition("\n#")[0]
        rows = re.findall(r"^\| `([\w/]+)\.py` ", table, re.MULTILINE)
        expected = [module for module in modules if module.startswith("beyond.") != of_the_post]
        assert [row.replace("/", ".") for row in rows] == expected


@pytest.mark.parametrize("name", ENTRIES)
def test_a_row_of_a_table_is_true(name):
    _question, time, headline = ROWS[ENTRIES[name].module.replace(".", "/")].split(" | ")
    assert_time_is_true(ENTRIES[name], time)
    quotes = re.findall(r"`([^`]+)`", headline)
    assert quotes, "the headline quotes nothing"
    for quote in quotes:
        assert quote in saved_text(name), f"{quote!r} is not in outputs/{name}.txt"


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("benchmarks.")])
def test_a_benchmark_s_result_was_printed_by_it(module):
    _what, headline = ROWS[module.replace(".", "/")].split(" | ")
    (quote,) = re.findall(r"`([^`]+)`", headline)
    assert quote in saved_text(module.replace("benchmarks.", "benchmark_"))


def test_the_readme_says_how_fast_the_whole_post_is():
    (quote,) = re.findall(r"`(the whole post [^`]+)`", README)
    assert quote in saved_text("benchmark_post")


@pytest.mark.parametrize("name", ENTRIES)
def test_a_docstring_quotes_what_was_printed(name):
    """Under a line that starts with "Prints", the indented lines are consecutive lines of outputs/NAME.txt."""
    quoted = re.search(r"^Prints.*:\n\n((?:    .*\n|\n)+)", docstring(ENTRIES[name].module) + "\n", re.MULTILINE)
    assert quoted, "it doesn't say what it prints"
    lines = "\n".join(line[4:] for line in quoted.group(1).strip("\n").splitlines())
    assert f"\n{lines}\n" in f"\n{saved_text(name)}"


@pytest.mark.parametrize("name", ENTRIES)
def test_a_docstring_says_the_command_and_a_true_time(name):
    module = ENTRIES[name].module
    command = f"-m {module}" if "." in module else f"{module}.py"
    told = re.search(rf"^    python {re.escape(command)} +(.*)$", docstring(module), re.MULTILINE)
    assert told, "it doesn't say its command and time"
    assert_time_is_true(ENTRIES[name], told.group(1))


@pytest.mark.parametrize("module", MODULES)
def test_a_script_has_help_and_its_import_runs_nothing(module, capsys):
    imported = import_module(module)
    assert capsys.readouterr().out == ""
    assert_helps(script.experiment(imported).parser().parse_args, [])
    assert docstring(module).splitlines()[0] in capsys.readouterr().out


def assert_helps(parse, arguments):
    """--help comes after the other arguments have been understood: a wrong one would end with status 2."""
    with pytest.raises(SystemExit, match="0"):
        parse([*arguments, "--help"])


@pytest.mark.parametrize("command", re.findall(r"^(?:\.venv/bin/)?python ([\w-].*)$", README, re.MULTILINE))
def test_a_command_that_the_readme_shows_is_accepted(command):
    name, *arguments = shlex.split(command.split("#")[0])
    if name == "rerun.py":
        assert_helps(lambda given: rerun.parse(given, ENTRIES), arguments)
        return
    module = arguments.pop(0) if name == "-m" else name.removesuffix(".py")
    assert_helps(script.experiment(import_module(module)).parser().parse_args, arguments)


PAGES = [path for folder in ("", "beyond", "benchmarks", "data", "outputs") for path in (ROOT / folder).glob("*.md")]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_no_link_of_a_page_is_dead(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, heading = link.partition("#")
        if not path.startswith("https:"):
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not heading or heading in anchors(target), link


@cache
def anchors(page):
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_path_that_a_readme_names_is_missing():
    for path in re.findall(r"`([\w/]+(?:\.\w+|/))`", README + BEYOND + BENCHMARKS):
        if "NAME" not in path and not path.startswith("my-text"):
            assert (ROOT / path).exists(), path
