"""What --check-machine says (reruns/machine.py)."""

import re

import pytest

from lab.errors import ROOT, UserError
from reruns import catalogue, machine


@pytest.mark.parametrize(
    "name, installed, pin, said",
    [
        ("numpy", "2.4.6", "2.4.6", "numpy 2.4.6: as the saved outputs"),
        ("numpy", "2.4.6+cpu", "2.4.6", "numpy 2.4.6+cpu: as the saved outputs"),
        ("numpy", "2.4.60", "2.4.6", "numpy 2.4.60: differs, the saved outputs come from 2.4.6"),
        ("numpy", None, "2.4.6", "numpy: not installed, the saved outputs come from 2.4.6"),
        ("python", "3.11.9", "3.11.7", "python 3.11.9: as the saved outputs"),
        ("python", "3.12.1", "3.11.7", "python 3.12.1: differs, the saved outputs come from 3.11.7"),
    ],
)
def test_versions_beside_those_of_the_saved_outputs(name, installed, pin, said):
    assert machine.version(name, installed, pin) == said


@pytest.mark.parametrize("fault", ["", "nn.GRU is wrong on cuda:0 (last state: 1.0e+00 from the CPU's)"])
def test_a_machine_whose_device_fails_its_check_is_told(fault, monkeypatch, capsys):
    def trusted(name):
        if fault:
            raise UserError(fault)

    monkeypatch.setattr(machine.devices, "available", lambda: ["cpu", "cuda", "cuda:0"])
    monkeypatch.setattr(machine.devices, "trusted", trusted)
    monkeypatch.setattr(machine.results, "available_cores", lambda: 4)
    # Twice as slow in one training and eight times in the other: four times.
    reference = machine.reference()
    slow = {machine.LSTM: 2 * reference[machine.LSTM], machine.ATTENTION: 8 * reference[machine.ATTENTION]}
    monkeypatch.setattr(machine, "measure", lambda cores: slow)
    entries = catalogue.entries()
    assert machine.check(list(entries.values())) == (1 if fault else 0)
    out = capsys.readouterr().out
    assert out.count("cuda") == (2 if fault else 1) and (fault or "cuda:0: recurrent layers agree") in out
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(pins) == 5 and all(f"           {name}" in out for name in pins)
    work = 4 * sum(entry.core_seconds for entry in entries.values())
    assert f"{machine.duration(work)} of one core's work, 4.00 times" in out
    # The longest training, one of 12,000 steps, takes 2,027 s on the reference machine.
    longest = max(run["seconds"] for run in entries["char_models_long"].record["results"]["runs"])
    assert f"--all: about {machine.duration(max(work / 4, 4 * longest))} on 4 cores" in out


def test_a_probe_measures_both_trainings():
    here = machine.probe(seconds=0)
    assert here.keys() == machine.reference().keys() and min(here.values()) > 0
