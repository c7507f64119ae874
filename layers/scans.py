"""Recurrent layers whose gates read the input alone, which therefore train as a scan: in parallel over the steps.

    h_t = a_t ⊙ h_{t-1} + b_t          where nothing in a and b depends on h

Three layers are of this kind, each in forms that compute the same:

    minGRU             step by step, and as a scan, which takes about 2 log₂ T rounds and O(T) operations
    linear attention   its state is a matrix and its a is 1: step by step, in chunks, and all steps at once
    state space        its a is the same at every step: as a scan, and as a convolution

The module is longer than others because each of the three stands here in all its forms. minGRU is the paper's plain
one, with torch's u for the paper's 1 - z. (The paper trains another, whose positive states let it scan by cumulative
sums of logarithms; this scan has no use for them.) The state-space layer has its input weights folded into C and no
direct way from input to output.

Sources: Blelloch, "Prefix sums and their applications" (1990); Feng et al., "Were RNNs all we needed?" (2024);
Katharopoulos et al., "Transformers are RNNs" (2020); Gu et al., "On the parameterization and initialization of diagonal
state space models" (2022), for the state-space layer.
"""

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import elu, embedding

CHUNK = 64  # steps that linear attention takes at once; the result doesn't depend on it


def loop(a, b, h0):
    """All states (time, …) of h_t = a_t h_{t-1} + b_t, one after the other."""
    if not len(b):
        raise ValueError("a recurrence takes one step at least")
    h, states = h0, []
    for a_t, b_t in zip(a, b, strict=True):
        h = torch.addcmul(b_t, a_t, h)
        states.append(h)
    return torch.stack(states)


def scan(a, b, h0):
    """The same states in 2 log2(time) rounds."""
    if not len(a) == len(b) > 0:
        raise ValueError(f"a scan takes as many a as b, and one at least, not {len(a)} and {len(b)}")
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
