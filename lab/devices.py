"""Where the arithmetic of a training runs, and whether recurrent layers can be trusted there.

Initial weights and batches are drawn on the CPU and moved, so every device starts from the same numbers.
"""

import copy
import functools
import os
import platform
import re
from contextlib import suppress
from pathlib import Path

# cuBLAS gives the same bits twice only with a workspace of its own, and reads this when it starts: so before torch.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

from lab.errors import UserError

LAYERS = (nn.RNN, nn.GRU, nn.LSTM)
OLDEST_TORCH = (2, 6)
LARGEST_GAP = 1e-4  # between a device and the CPU, relative to the largest number compared or to 1
LOSS_GAP = 0.05  # relative, after a few steps of training on each
STEPS = 10


def available() -> list[str]:
    """The names of this machine's devices."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return ["cpu", *["cuda"] * bool(gpus), *gpus, *["mps"] * torch.backends.mps.is_available()]


def pick(name: str) -> torch.device:
    """The device of that name, set to full float32 precision and to the same result each time."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < OLDEST_TORCH:
        raise UserError(f"torch {torch.__version__} is too old: these scripts need 2.6 or newer")
    names = available()
    if name not in names:
        raise UserError(f"no device {name!r} here: there is {', '.join(names)}")
    if name.startswith("cuda"):
        if ":" in name:
            torch.cuda.set_device(name)  # whose random numbers are then the ones that are seeded and kept
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.allow_tf32 = False  # products of 10-bit mantissas, which cuDNN would use by default
    return torch.device(name)


def about(name: str) -> dict[str, str]:
    """What a device of this machine is, for the record: its name and its driver. Of the CPU the record says enough."""
    if name == "cpu" or name not in available():
        return {}
    if name == "mps":
        return {"device_name": platform.processor(), "driver": f"macOS {platform.mac_ver()[0]}"}
    driver = "unknown"
    with suppress(OSError, TypeError):
        driver = re.search(r"\d+\.\d[\d.]*", Path("/proc/driver/nvidia/version").read_text(encoding="utf-8"))[0]
    return {"device_name": torch.cuda.get_device_name(name), "driver": f"{driver}, CUDA {torch.version.cuda}"}


def send(tensor: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """What was made on the CPU, on a device. A copy from ordinary memory would wait for all that the GPU has to do."""
    on_gpu = torch.device(device).type == "cuda"
    return tensor.pin_memory().to(device, non_blocking=True) if on_gpu else tensor.to(device)


def trusted(name: str) -> torch.device:
    """The device of that name, whose recurrent layers have been seen to compute what the CPU's do."""
    device = pick(name)
    check_recurrent(device)
    return device


@functools.cache
def check_recurrent(device: torch.device):
    """Refuse a device whose recurrent layers don't compute what the CPU's do. Looks once; the CPU passes unseen."""
    if device.type == "cpu":
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for kind in LAYERS:
            layer = kind(5, 7, num_layers=2, batch_first=True)
            try:
                fault = find_fault(layer, copy.deepcopy(layer).to(device), device)
            except RuntimeError as error:  # something that the device can't do at all
                fault = " ".join(str(error).split())
            if fault:
                raise UserError(f"nn.{kind.__name__} is wrong on {device} ({fault}): use --device cpu")


def find_fault(trusted: nn.RNNBase, suspect: nn.RNNBase, device: torch.device) -> str:
    """How ``suspect``, on ``device``, differs from ``trusted``, on the CPU, with the same weights; empty if it doesn't.

    Batch, length, sizes and layers all differ from each other, the initial state isn't zero and every output and every
    last state enters the loss, so that a mixed-up axis or a forgotten term shows.
    """
    batch, length, layers = 3, 4, trusted.num_layers
    x = torch.randn(batch, length, trusted.input_size)  # (batch, time, input)
    states = torch.randn(2, layers, batch, trusted.hidden_size)  # h_0, and c_0 of an LSTM
    weight = torch.randn(batch, length, trusted.hidden_size)

    def run(layer, device):
        inputs = [tensor.clone().to(device).requires_grad_() for tensor in (x, *states)]
        state = (inputs[1], inputs[2]) if layer.mode == "LSTM" else inputs[1]
        y, last = layer(inputs[0], state)
        last = torch.cat(last) if layer.mode == "LSTM" else last
        ((y * weight.to(device)).sum() + last.square().sum()).backward()
        gradients = {name: parameter.grad for name, parameter in layer.named_parameters()}
        gradients["input"] = inputs[0].grad
        gradients["initial state"] = torch.stack(
            [torch.zeros_like(s) if s.grad is None else s.grad for s in inputs[1:]]
        )
        values = {"outputs": y, "last state": last} | {f"gradient of {name}": g for name, g in gradients.items()}
        return {name: value.detach().cpu() for name, value in values.items()}

    theirs = run(suspect, device)
    for name, right in run(trusted, "cpu").items():
        gap = (theirs[name] - right).abs().max().item() / max(1.0, right.abs().max().item())
        if not gap <= LARGEST_GAP:  # also where it is NaN
            return f"{name}: {gap:.1e} from the CPU's"

    def losses(layer, device):
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
        for _ in range(STEPS):
            loss = (layer(x.to(device))[0] - weight.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    ours, other = losses(trusted, "cpu"), losses(suspect, device)
    if not abs(other - ours) <= LOSS_GAP * ours:
        return f"loss {other:.4g} after {STEPS} steps, {ours:.4g} on the CPU"

    suspect.dropout = 0.5
    losses(suspect, device)
    suspect.eval()
    with torch.no_grad():
        gap = (suspect(x.to(device))[0][:1] - suspect(x[:1].to(device))[0]).abs().max().item()
    return "" if gap <= LARGEST_GAP else f"evaluation depends on the batch: {gap:.1e}"
