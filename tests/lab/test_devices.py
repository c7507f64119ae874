"""lab.devices: names of devices, and a self-check that finds the faults that recurrent layers have had on some."""

import copy
import multiprocessing
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lab import devices, pools
from lab.errors import UserError

CPU = torch.device("cpu")
CUDA = torch.version.cuda


def fault_of(kind, spoil=None):
    """What the self-check says about a copy of a layer that ``spoil`` changed."""
    torch.manual_seed(0)
    layer = kind(5, 7, num_layers=2, batch_first=True)
    suspect = copy.deepcopy(layer)
    if spoil:
        spoil(suspect)
    return devices.find_fault(layer, suspect, CPU)


@pytest.mark.parametrize("kind", devices.LAYERS)
def test_sound_layers_pass(kind):
    assert fault_of(kind) == ""


class WithoutState(nn.GRU):
    def forward(self, x, state=None):
        return super().forward(x)


class BatchSecond(nn.GRU):
    """Transposes the last state, as a device has done with batch_first."""

    def forward(self, x, state=None):
        y, last = super().forward(x, state)
        return y, last.flip(1)


class OneStepBackward(nn.LSTM):
    """The gradient of the weights is that of the last step only: right values, wrong gradients."""

    def forward(self, x, state=None):
        with torch.no_grad():
            before, kept = super().forward(x[:, :-1], state)
        y, last = super().forward(x[:, -1:], kept)
        return torch.cat([before, y], 1), last


class NaNLater(nn.RNN):
    """Not a number from the third call on."""

    calls = 0

    def forward(self, x, state=None):
        self.calls += 1
        y, last = super().forward(x, state)
        return y * (float("nan") if self.calls > 2 else 1.0), last


class DependsOnBatch(nn.LSTM):
    """In evaluation the outputs depend on how many sequences there are."""

    def forward(self, x, state=None):
        y, last = super().forward(x, state)
        return y if self.training else y * len(x), last


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (WithoutState, "outputs"),
        (BatchSecond, "last state"),
        (OneStepBackward, "gradient of"),
        (NaNLater, "loss nan after"),
        (DependsOnBatch, "evaluation depends on the batch"),
    ],
)
def test_a_broken_layer_is_found(broken, message):
    assert fault_of(broken.__base__, lambda layer: setattr(layer, "__class__", broken)).startswith(message)


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_ih_l1", "bias_hh_l1"])
@pytest.mark.parametrize("kind", devices.LAYERS)
def test_a_gradient_that_is_wrong_by_a_thousandth_is_found(kind, name):
    def spoil(layer):
        getattr(layer, name).register_hook(lambda gradient: gradient * 1.001 + 0.001)

    assert fault_of(kind, spoil).startswith(f"gradient of {name}")


def test_a_device_that_fails_the_check_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(devices, "find_fault", lambda *layers: "outputs: 3.0e-01 from the CPU's")
    fake = torch.device("meta")
    with pytest.raises(UserError, match=r"nn.RNN is wrong on meta \(outputs.*use --device cpu$"):
        devices.check_recurrent(fake)


def test_a_device_that_cannot_do_it_at_all_is_refused_in_one_line():
    # On the meta device tensors have no numbers, so that comparing raises an error of torch's own.
    with pytest.raises(UserError, match=r"nn\.RNN is wrong on meta") as error:
        devices.check_recurrent(torch.device("meta"))
    assert "\n" not in str(error.value)


def test_the_check_leaves_the_random_numbers_alone(monkeypatch):
    monkeypatch.setattr(devices, "find_fault", lambda *layers: "")
    devices.check_recurrent.cache_clear()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    devices.check_recurrent(torch.device("meta"))
    devices.check_recurrent.cache_clear()
    assert torch.equal(before, torch.get_rng_state())


def test_the_cpu_is_always_there_and_needs_no_check(monkeypatch):
    monkeypatch.setattr(devices, "find_fault", None)
    devices.check_recurrent(devices.pick("cpu"))


@pytest.mark.parametrize("name", ["cuda:2", "cpu:1", "tpu", "", "CUDA"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "backends", SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True)))
    with pytest.raises(UserError, match=r"there is cpu, cuda, cuda:0, cuda:1, mps$"):
        devices.pick(name)


def test_a_gpu_is_named_in_the_record_and_the_cpu_is_not(monkeypatch):
    monkeypatch.setattr(devices, "available", lambda: ["cpu", "cuda"])
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda name: f"a GPU called {name}")
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Release Build\nGCC version:  gcc 11.4.0\n"
    monkeypatch.setattr(devices.Path, "read_text", lambda path, encoding: line)
    assert devices.about("cuda") == {"device_name": "a GPU called cuda", "driver": f"535.104.05, CUDA {CUDA}"}
    assert devices.about("cpu") == devices.about("cuda:7") == {}  # the second: of a cluster's worker
    monkeypatch.setattr(devices.Path, "read_text", lambda path, encoding: "")
    assert devices.about("cuda")["driver"] == f"unknown, CUDA {CUDA}"


@pytest.mark.parametrize(
    "jobs, names, gpus, cores, side_by_side",
    [
        (None, {"cpu"}, 0, 6, 6),
        (None, {"cuda"}, 1, 16, 4),
        (None, {"cuda"}, 2, 16, 8),
        (None, {"cuda"}, 2, 6, 6),
        (None, {"cuda:1"}, 2, 16, 4),
        (None, {"mps"}, 0, 10, 4),
        (5, {"cuda"}, 1, 2, 5),
    ],
)
def test_trainings_share_a_gpu_as_far_as_there_are_cores(monkeypatch, jobs, names, gpus, cores, side_by_side):
    made = []
    monkeypatch.setattr(pools, "available_cores", lambda: cores)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    pool = SimpleNamespace(shutdown=lambda: None)
    monkeypatch.setattr(pools, "ProcessPoolExecutor", lambda count, *rest: made.append(count) or pool)
    with pools.processes(jobs, names):
        assert made == [side_by_side]


def test_processes_take_the_gpus_in_turn(monkeypatch):
    taken, counter = [], multiprocessing.Value("i", 0)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for _ in range(5):
        pools.take_turn(counter, 2)
    assert taken == [0, 1, 0, 1, 0]
