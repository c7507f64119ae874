"""Two more layers that scan, and that know what stands where: a selective state space, and attention that fades.

    selective state space   each channel has a few states, which its input moves at a pace that the input itself sets:

        h_t = exp(Δ_t A) ⊙ h_{t-1} + Δ_t B_t u_t          y_t = C_t · h_t + D u_t

        u_t and Δ_t (one for each channel), B_t and C_t (one for each state) are products of x_t; Δ_t = softplus(…) > 0.
        A < 0 is learned and the same at every step. A large Δ_t forgets what was and takes u_t in, a small skips it.

    fading attention        linear attention whose weights halve with every few characters:

        y_t = Σ_s≤t γ^(t-s) φ(q_t)ᵀφ(k_s) v_s / Σ_s≤t γ^(t-s) φ(q_t)ᵀφ(k_s)

Linear attention has to be given positions, since its sum is the same in any order. Fading is preferred to rotary
positions here. Turned vectors tell distances apart, but the sum still holds all that was ever read, so the last
characters would drown in a long text. A sum that fades stays bounded, what stands nearer counts more, and the state
remains one matrix: S_t = γ S_{t-1} + k_t v_tᵀ. Each head fades at a pace of its own, from a character to a window.

Both are called as the layers of scans.py are, and have forms that compute the same: as a scan, or step by step where
inputs are looked up; in chunks of any size.

Sources: Gu and Dao, "Mamba" (2023), algorithm 2, without what stands around it (convolution, gate) and with b = Δ B as
in its code; Sun et al., "Retentive network" (2023), for fading, with linear attention's weights (Katharopoulos et al.,
2020) in place of theirs.
"""

import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from layers.scans import CHUNK, feature_map, looked_up, scan

STATES = 4  # of each channel
HALF_LIVES = (1, 2, 4, 8, 16, 32, 64, 128)  # characters, of each head
TINY = 1e-30  # stands for a sum of weights that is smaller: nothing divides by 0


class SelectiveStateSpace(nn.Module):
    """Called as scans.MinGRU is; its state is (1, batch, states, hidden)."""

    def __init__(self, input_size, hidden_size, states=STATES):
        super().__init__()
        self.sizes = [hidden_size, hidden_size, states, states]  # of u, Δ, B and C
        self.input_product = nn.Linear(input_size, sum(self.sizes))
        self.log_A = nn.Parameter(torch.arange(1.0, states + 1).log()[:, None].repeat(1, hidden_size))  # of -A
        self.D = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x, state=None, ids=None):
        u, step, B, C = self.input_product(x).split(self.sizes, dim=-1)
        step = F.softplus(step)[..., None, :]  # Δ
        a = (-step * self.log_A.exp()).exp()  # (…, states, hidden)
        b = step * u[..., None, :] * B[..., None]
        direct, C = looked_up(ids, self.D * u, C)  # (time, batch, …)
        h0 = a.new_zeros(1, C.shape[1], *self.log_A.shape) if state is None else state
        if ids is not None and ids.device.type == "cpu":
            y, last = SelectiveLoop.apply(a, b, C, h0[0], ids)
            return y + direct, last[None]
        a, b = looked_up(ids, a.flatten(-2), b.flatten(-2))
        h = scan(a, b, h0[0].flatten(1)).unflatten(2, self.log_A.shape)  # (time, batch, states, hidden)
        return (C[..., None] * h).sum(2) + direct, h[-1:]


class SelectiveLoop(torch.autograd.Function):
    """C_t · h_t of all steps, and the last h, step by step: a and b are tables (vocabulary, states, hidden).

    What an input does is looked up when its step comes, so all but the states h fits into the processor's cache.
    """

    @staticmethod
    def forward(ctx, a, b, C, h0, ids):
        S = h0.new_empty(1 + len(ids), *h0.shape)  # (1 + time, batch, states, hidden)
        S[0] = h0
        y, a_t = h0.new_zeros(*ids.shape, h0.shape[2]), torch.empty_like(h0)
        for i, C_t, y_t, before, h in zip(ids, C[..., None], y, S[:-1], S[1:], strict=True):
            torch.index_select(b, 0, i, out=h)
            h.addcmul_(torch.index_select(a, 0, i, out=a_t), before)
            for C_n, h_n in zip(C_t.unbind(1), h.unbind(1), strict=True):
                y_t.addcmul_(C_n, h_n)
        ctx.save_for_backward(a, C, S, ids)
        return y, S[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, d_last):
        """The gradient dh at h_t gathers C_t dy_t and what comes from later, a_{t+1} dh_{t+1}."""
        a, C, S, ids = ctx.saved_tensors
        dh, a_t = d_last.clone(), torch.empty_like(d_last)
        da, db, dC = torch.empty_like(S[1:]), torch.empty_like(S[1:]), torch.empty_like(C)
        steps = zip(ids, C[..., None], dy, S[:-1], S[1:], da, db, dC[..., None], strict=True)
        for i, C_t, dy_t, before, h, da_t, db_t, dC_t in reversed(list(steps)):
            for C_n, dh_n in zip(C_t.unbind(1), dh.unbind(1), strict=True):
                dh_n.addcmul_(C_n, dy_t)
            torch.bmm(h, dy_t[..., None], out=dC_t)
            db_t.copy_(dh)
            torch.mul(dh, before, out=da_t)
            dh *= torch.index_select(a, 0, i, out=a_t)
        rows = ids.flatten()
        da, db = (torch.zeros_like(a).index_add_(0, rows, d.flatten(0, 1)) for d in (da, db))
        return da, db, dC, dh, None


class FadingAttention(nn.Module):
    """Called as scans.LinearAttention is; its state is (1, batch, head, key, value + 1)."""

    def __init__(self, input_size, hidden_size, half_lives=HALF_LIVES, chunk=CHUNK):
        super().__init__()
        if hidden_size % len(half_lives):
            raise ValueError(f"{len(half_lives)} heads can't be cut from a width of {hidden_size}")
        self.input_product = nn.Linear(input_size, 3 * hidden_size)
        self.chunk = chunk
        self.register_buffer("half_lives", torch.tensor(half_lives, dtype=torch.float32), persistent=False)

    def forward(self, x, state=None, ids=None):
        q, k, v = self.input_product(x).unflatten(-1, (3, len(self.half_lives), -1)).unbind(-3)  # (…, head, size)
        v = F.pad(v, (0, 1), value=1.0)  # a value of 1 beside each: one sum carries both
        rows = [part.flatten(-2) for part in (feature_map(q), feature_map(k), v)]
        q, k, v = (part.unflatten(2, (len(self.half_lives), -1)).permute(1, 2, 0, 3) for part in looked_up(ids, *rows))
        S, y = None if state is None else state[0], []
        for q_c, k_c, v_c in zip(*(part.split(self.chunk, 2) for part in (q, k, v)), strict=True):
            part, S = self.of_chunk(q_c, k_c, v_c, S)
            y.append(part)
        y = torch.cat(y, 2)  # (batch, head, time, value + 1)
        return (y[..., :-1] / y[..., -1:].clamp(min=TINY)).permute(2, 0, 1, 3).flatten(2), S[None]

    def of_chunk(self, q, k, v, S):
        """What a chunk (batch, head, chunk, …) reads from itself and from the state before it; the state after it."""
        t = torch.arange(q.shape[2], device=q.device)
        rate = -math.log(2) / self.half_lives[:, None, None]
        faded = ((t[:, None] - t) * rate).exp().tril()  # (head, chunk, chunk): γ^(t - s) where s ≤ t
        y = (q @ k.mT * faded) @ v
        new = (k * faded[:, -1, :, None]).mT @ v  # (batch, head, key, value + 1)
        if S is None:
            return y, new
        since = ((t[:, None] + 1) * rate).exp()  # (head, chunk, 1): γ^(t + 1)
        return y + q * since @ S, torch.addcmul(new, since[:, -1:], S)


LAYERS = {"selective state space": SelectiveStateSpace, "fading attention": FadingAttention}
