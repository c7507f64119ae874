"""A recurrence whose gates read the input alone needn't wait for itself: it trains as a scan, in parallel.

    h_t = a_t ⊙ h_{t-1} + b_t

where nothing in a and b depends on h. Three layers of this kind, each in forms that compute the same: minGRU, step by
step and as a scan, which takes about 2 log₂ T rounds and O(T) operations; linear attention, whose state is a matrix and
whose a is 1, step by step, in chunks, and all at once; and a state-space layer, whose a is the same at every step, as a
scan and as a convolution. Here they are held together in float64, values and gradients, and a minGRU is trained both
ways. scan_lengths.py times them, scan_models.py and recall.py show what such layers can do.

    python scan.py          2 s

Prints:

    largest relative gaps in float64: values, gradients (1,000 steps, width 32)
    8,192 steps of the recurrence, loop and scan : 1.4e-16, 2.8e-16
    minGRU, loop and scan                        : 2.3e-16, 9.4e-16
    linear attention, recurrent and chunked      : 2.8e-16, 1.2e-14
    linear attention, recurrent and parallel     : 5.7e-16, 1.5e-14
    state space, scan and convolution            : 3.4e-15, 1.0e-14

    minGRU trained 100 steps by loop and by scan: squared error 1.386 to 0.740; weights 3.2e-16 apart

A gap is the largest difference of two forms' values, or of their gradients at all inputs and weights, relative to the
largest number compared.

Departures: minGRU is the paper's plain one, with torch's u for the paper's 1 - z. (The paper trains another, whose
positive states let it scan by cumulative sums of logarithms; this scan has no use for them.) The state-space layer has
its input weights folded into C and no direct way from input to output.

Sources: Blelloch, "Prefix sums and their applications" (1990); Feng et al., "Were RNNs all we needed?" (2024);
Katharopoulos et al., "Transformers are RNNs" (2020); Gu et al., "On the parameterization and initialization of diagonal
state space models" (2022), for the state-space layer's A, S4D-Lin.
"""

import math
from functools import partial

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import elu, embedding, mse_loss

from lab import script
from lab.results import Results

SEED = 0
LONGEST = 8192  # steps of the recurrence itself
LENGTH, WIDTH = 1000, 32  # steps and channels of the layers that are compared
STATES = 4  # complex ones, of each channel of the state-space layer
ZEROS = 0.01  # share of the a_t that are exactly 0
PAIRS = [
    ("minGRU, loop", "minGRU, scan"),
    ("linear attention, recurrent", "linear attention, chunked"),
    ("linear attention, recurrent", "linear attention, parallel"),
    ("state space, scan", "state space, convolution"),
]
TRAINED, DELAY, RATE = 100, 3, 0.01  # training: steps, how long ago the input was that is asked for, Adam's rate
CHUNK = 64  # steps that linear attention takes at once; the result doesn't depend on it


def loop(a, b, h0):
    """All states (time, …) of h_t = a_t h_{t-1} + b_t, one after the other."""
    h, states = h0, []
    for a_t, b_t in zip(a, b, strict=True):
        h = torch.addcmul(b_t, a_t, h)
        states.append(h)
    return torch.stack(states)


def scan(a, b, h0):
    """The same states in 2 log2(time) rounds."""
    return Scan.apply(a, b, h0)


def prefix(a, b):
    """h_t = a_t h_{t-1} + b_t from a state of zero, with O(time) operations and no division.

    Two steps are one step of the same kind, h_t = (a_t a_{t-1}) h_{t-2} + (a_t b_{t-1} + b_t): so every other state is
    a sequence half as long, and the states between them are one step away from those.
    """
    h = torch.empty_like(b)
    h[0] = b[0]
    if len(b) > 1:
        before = slice(0, len(b) - 1, 2)  # the partners of steps 1, 3, 5, …
        h[1::2] = prefix(a[1::2] * a[before], torch.addcmul(b[1::2], a[1::2], b[before]))
        h[2::2] = torch.addcmul(b[2::2], a[2::2], h[1:-1:2])
    return h


class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, h0):
        h = prefix(a, torch.cat([torch.addcmul(b[:1], a[:1], h0), b[1:]]))
        ctx.save_for_backward(a, h0, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx, dh):
        """The gradient at h_t gathers what comes from later, g_t = dh_t + a_{t+1} g_{t+1}: a scan from the end."""
        a, h0, h = ctx.saved_tensors
        a = a.conj()
        after = torch.cat([torch.zeros_like(a[:1]), a[1:].flip(0)])  # a_{t+1}, the last step first
        g = prefix(after, dh.flip(0)).flip(0)
        return g * torch.cat([h0[None], h[:-1]]).conj(), g, a[0] * g[0]


def looked_up(ids, *tables):
    """The rows that ids name; without ids the tables themselves, which then hold a row for each step already."""
    return tables if ids is None else [embedding(ids, table) for table in tables]


class MinGRU(nn.Module):
    """A GRU whose gate and candidate read the input alone; called as nn.GRU is, or as cells.run is, with ids.

    u_t = σ(W_u x_t + b_u),  n_t = W_n x_t + b_n,  h_t = u_t h_{t-1} + (1 - u_t) n_t
    """

    def __init__(self, input_size, hidden_size, recurrence=scan):
        super().__init__()
        self.input_product = nn.Linear(input_size, 2 * hidden_size)
        self.recurrence = recurrence

    def forward(self, x, state=None, ids=None):
        u, n = self.input_product(x).chunk(2, dim=-1)
        u = u.sigmoid()
        a, b = looked_up(ids, u, (1 - u) * n)  # (time, batch, hidden) each
        h0 = torch.zeros_like(b[0]) if state is None else state[0]  # (batch, hidden)
        h = self.recurrence(a, b, h0)
        return h, h[-1:]


def feature_map(x):
    """φ of linear attention: positive, so that no weight is."""
    return elu(x) + 1


def linear_attention(q, k, v, S, chunk):
    """Causal sums S_t = S_{t-1} + k_t v_tᵀ as read by q_t, chunk by chunk: q_tᵀ S_t of all steps, and the last S.

    Within a chunk every step sees every earlier one at once, as in attention; what came before the chunk is a state, as
    in a recurrent layer. A chunk of one step is the recurrent form, a chunk of all steps the parallel one.
    """
    y = []
    for q_c, k_c, v_c in zip(q.split(chunk, 1), k.split(chunk, 1), v.split(chunk, 1), strict=True):
        within = (q_c @ k_c.mT).tril() @ v_c  # (batch, chunk, value), by weights (batch, chunk, chunk)
        y.append(within if S is None else torch.baddbmm(within, q_c, S))
        S = k_c.mT @ v_c if S is None else torch.baddbmm(S, k_c.mT, v_c)  # (batch, key, value)
    return torch.cat(y, 1), S


class LinearAttention(nn.Module):
    """One head of causal linear attention, called as MinGRU is; its state is a sum over all it has read.

    y_t = Σ_s≤t φ(q_t)ᵀφ(k_s) v_s / Σ_s≤t φ(q_t)ᵀφ(k_s); a value of 1 beside each v_s lets one sum carry both.
    """

    def __init__(self, input_size, hidden_size, chunk=CHUNK):
        super().__init__()
        self.input_product = nn.Linear(input_size, 3 * hidden_size)
        self.chunk = chunk

    def forward(self, x, state=None, ids=None):
        q, k, v = self.input_product(x).chunk(3, dim=-1)
        v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
        q, k, v = looked_up(ids, feature_map(q), feature_map(k), v)  # (time, batch, hidden), of v hidden + 1
        S = None if state is None else state[0]  # (batch, hidden, hidden + 1)
        y, S = linear_attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), S, self.chunk)
        return (y[..., :-1] / y[..., -1:]).transpose(0, 1), S[None]  # (time, batch, hidden)


def kernel(log_A, C, length):
    """What an impulse l steps ago is worth now: Re Σ_n C_n A_n^l."""
    ago = torch.arange(length, device=C.device)[:, None, None]
    return ((ago * log_A).exp() * C).sum(-1).real  # (time, width)


def convolved(x, log_A, C):
    """The state-space layer as one convolution, by FFT: the output at t is Σ_l kernel_l x_{t-l}."""
    n = 2 * len(x)  # room for the end not to come round to the beginning
    K = torch.fft.rfft(kernel(log_A, C, len(x)), n=n, dim=0)[:, None]
    return torch.fft.irfft(torch.fft.rfft(x, n=n, dim=0) * K, n=n, dim=0)[: len(x)]  # (time, batch, width)


def recurred(x, log_A, C, recurrence=scan):
    """The same as a recurrence: every channel drives a few states h_t = A h_{t-1} + x_t, and y_t = Re Σ_n C_n h_t,n."""
    b = x[..., None].to(C.dtype).expand(*x.shape, C.shape[-1])  # (time, batch, width, state)
    h = recurrence(log_A.exp().expand_as(b), b, torch.zeros_like(b[0]))
    return (h * C).sum(-1).real


def forms(length, width, device="cpu", dtype=torch.float32):
    """Each layer in each form on one input: a function without arguments, and what its gradient is taken of."""

    def layer(kind, **options):
        torch.manual_seed(SEED)  # all forms get the same weights
        made = kind(width, width, **options).to(device, dtype)
        return lambda: made(x)[0], [x, *made.parameters()]

    torch.manual_seed(SEED)
    x = torch.randn(length, 1, width).to(device, dtype).requires_grad_()  # (time, batch, width)
    step = torch.logspace(-3, -1, width)[:, None]  # how much time lies between two inputs, for each channel
    log_A = step * torch.complex(torch.tensor(-0.5), math.pi * torch.arange(STATES))  # (width, state)
    C = step * torch.randn(width, STATES, dtype=torch.cfloat)
    log_A, C = (parameter.to(device, dtype.to_complex()).requires_grad_() for parameter in (log_A, C))
    return {
        "minGRU, loop": layer(MinGRU, recurrence=loop),
        "minGRU, scan": layer(MinGRU),
        "linear attention, recurrent": layer(LinearAttention, chunk=1),
        "linear attention, chunked": layer(LinearAttention),
        "linear attention, parallel": layer(LinearAttention, chunk=length),
        "state space, scan": (partial(recurred, x, log_A, C), [x, log_A, C]),
        "state space, convolution": (partial(convolved, x, log_A, C), [x, log_A, C]),
    }


def gaps(one, other):
    """How far two forms are apart, in values and in gradients of a sum with weights that all differ."""
    compared = []
    for function, inputs in one, other:
        y = function()
        up = torch.arange(y.numel(), dtype=y.dtype).cos().view_as(y)
        compared.append((y.detach(), *torch.autograd.grad(y, inputs, up)))
    values, *gradients = [relative(a, b) for a, b in zip(*compared, strict=True)]
    return {"values": values, "gradients": max(gradients)}


def relative(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def of_recurrence(recurrence):
    """A long recurrence with some a_t exactly 0, in the form that `gaps` takes."""
    torch.manual_seed(SEED)
    a, b = torch.rand(LONGEST, 2, 3).double(), torch.randn(LONGEST, 2, 3).double()  # (time, …)
    a[torch.rand(a.shape) < ZEROS] = 0
    inputs = [a.requires_grad_(), b.requires_grad_(), torch.randn(2, 3).double().requires_grad_()]
    return partial(recurrence, *inputs), inputs


def trained(recurrence):
    """A minGRU that has learnt for some steps to tell what it read DELAY steps ago: its weights, in one row."""
    torch.manual_seed(SEED)
    model = nn.ModuleList([MinGRU(1, WIDTH, recurrence), nn.Linear(WIDTH, 1)]).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    losses = []
    for _ in range(TRAINED):
        x = torch.randn(100, 8, 1).double()  # (time, batch, 1)
        loss = mse_loss(model[1](model[0](x)[0])[DELAY:], x[:-DELAY])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]), losses


def main(argv=None):
    arguments = script.Arguments(__doc__).parse_args(argv)
    results = Results("scan", arguments, seeds=[SEED])
    results.print(f"largest relative gaps in float64: values, gradients ({LENGTH:,} steps, width {WIDTH})")
    found = {}
    pairs = {f"{LONGEST:,} steps of the recurrence, loop and scan": (of_recurrence(loop), of_recurrence(scan))}
    compared = forms(LENGTH, WIDTH, dtype=torch.float64)
    for one, other in PAIRS:
        pairs[f"{one} and {other.rpartition(', ')[2]}"] = compared[one], compared[other]
    for name, pair in pairs.items():
        found[name] = gaps(*pair)
        results.print(f"{name:45}: {found[name]['values']:.1e}, {found[name]['gradients']:.1e}")

    (by_loop, losses), (by_scan, _) = trained(loop), trained(scan)
    weights = relative(by_scan, by_loop)
    results.print(
        f"\nminGRU trained {TRAINED} steps by loop and by scan: squared error {losses[0]:.3f} to {losses[-1]:.3f}; "
        f"weights {weights:.1e} apart"
    )
    results.record(gaps=found, trained_both_ways={"weights": weights, "error": [losses[0], losses[-1]]})
    results.save()


if __name__ == "__main__":
    script.run(main)
