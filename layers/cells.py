"""Three recurrent cells written by hand, forward and backward through time.

Every cell takes the input-side product z_t = W_ih x_t + b of all steps at once and carries a state h_t along:

    Elman   h_t = tanh(z_t + W_h h_{t-1})

    GRU     r_t = σ(z_t^r + W_r h_{t-1})                 reset
            u_t = σ(z_t^u + W_u h_{t-1})                 update (torch calls it z)
            q_t = W_n h_{t-1} + b_n
            n_t = tanh(z_t^n + r_t q_t)                  the reset comes after the product, as in torch
            h_t = (1 - u_t) n_t + u_t h_{t-1}

    LSTM    i_t, f_t, o_t = σ(z_t + W_i,f,o h_{t-1})     input, forget and output gates
            g_t = tanh(z_t^g + W_g h_{t-1})
            c_t = f_t c_{t-1} + i_t g_t
            h_t = o_t tanh(c_t)

Their derivatives need only what the forward pass has computed already, because

    h = tanh(a)   gives   dh/da = 1 - h²                 0.75 at h = 0.5
    s = σ(a)      gives   ds/da = s (1 - s)              0.25 at s = 0.5

so the backward loop goes from the last step to the first, turns the gradient at the gates into the gradient at their
arguments, and hands W_hᵀ times that to the step before. Gates stand in torch's order (r, u, n and i, f, g, o) and
weights in torch's layout, so the parameters of nn.RNN, nn.GRU and nn.LSTM fit as they are: `run(layer, x, state)`
computes here what `layer(x, state)` computes there, for one layer that reads one way, time first.

What makes it fast on one core: nothing is allocated inside the loops; a step's gates are computed in one small buffer
that stays in the cache and are written out once; their gradients overwrite them; and the gradient of W_h, a sum over
steps, is one large product after the loop. When the inputs come from a small vocabulary, z has only as many distinct
rows: give them as a table with the ids of each step (time, batch), and a step looks its rows up instead of multiplying.
"""

from collections import deque

import torch
from torch import nn
from torch.autograd.function import once_differentiable

d_sigmoid = torch.ops.aten.sigmoid_backward.grad_input  # (ds, s) -> ds s (1 - s)
d_tanh = torch.ops.aten.tanh_backward.grad_input  # (dh, h) -> dh (1 - h²)


def elman(z, h0, W_h, ids=None):
    """All states (time, batch, hidden) of h_t = tanh(z_t + W_h h_{t-1})."""
    return Elman.apply(z, ids, h0, W_h)


def gru(z, h0, W_h, b_n, ids=None):
    """All states (time, batch, hidden). z holds every bias but b_n, which the reset gate multiplies."""
    return GRU.apply(z, ids, h0, W_h, b_n)


def lstm(z, state, W_h, ids=None):
    """All states (time, batch, hidden), and the last c (batch, hidden); state is (h0, c0)."""
    return LSTM.apply(z, ids, *state, W_h)


def input_product(layer, x):
    """W_ih x + b for inputs x (…, input) of a one-layer nn.RNN, nn.GRU or nn.LSTM; see `gru` for the bias left out."""
    b_ih, b_hh = layer.bias_ih_l0, layer.bias_hh_l0
    if isinstance(layer, nn.GRU):
        b_hh = torch.cat([b_hh[: 2 * layer.hidden_size], torch.zeros_like(b_hh[2 * layer.hidden_size :])])
    return nn.functional.linear(x, layer.weight_ih_l0, b_ih + b_hh)


def run(layer, x, state=None, ids=None):
    """What `layer(x, state)` returns for x (time, batch, input), or for rows of x (vocabulary, input) that ids name."""
    if not isinstance(layer, nn.RNNBase):  # one of scans.py's, which takes ids itself
        return layer(x, state, ids)
    check(layer)
    if x.device.type != "cpu":  # which has layers of its own for this
        return layer(x if ids is None else nn.functional.embedding(ids, x), state)
    z, W_h = input_product(layer, x), layer.weight_hh_l0
    if state is None:
        zeros = x.new_zeros(1, (x if ids is None else ids).shape[1], layer.hidden_size)
        state = (zeros, zeros) if isinstance(layer, nn.LSTM) else zeros
    if isinstance(layer, nn.LSTM):
        h, c = lstm(z, (state[0][0], state[1][0]), W_h, ids)
        return h, (h[-1:], c[None])
    if isinstance(layer, nn.GRU):
        h = gru(z, state[0], W_h, layer.bias_hh_l0[-layer.hidden_size :], ids)
    else:
        h = elman(z, state[0], W_h, ids)
    return h, h[-1:]


def check(layer):
    """Refuse what would be computed as something else."""
    told = {"num_layers": 1, "bidirectional": False, "batch_first": False, "bias": True, "proj_size": 0}
    told |= {"nonlinearity": "tanh"} if isinstance(layer, nn.RNN) else {}
    for name, right in told.items():
        if getattr(layer, name) != right:
            raise ValueError(f"{name} must be {right!r} in a layer that these cells run, not {getattr(layer, name)!r}")


def keeping_gate(layer):
    """The rows of the gate that keeps the old state, torch's second: an LSTM's forget gate, a GRU's update gate."""
    if not isinstance(layer, nn.LSTM | nn.GRU):
        raise ValueError(f"{getattr(layer, 'mode', type(layer).__name__)} has no gates")
    return slice(layer.hidden_size, 2 * layer.hidden_size)


def set_gate_bias(layer, value):
    """Set the bias of the gate that keeps, in every layer and direction: on the input side; the other one becomes 0."""
    rows = keeping_gate(layer)
    if not layer.bias:
        raise ValueError(f"this {layer.mode} was made with bias=False: it has no gate bias to set")
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.startswith("bias_ih"):
                parameter[rows] = value
            elif name.startswith("bias_hh"):
                parameter[rows] = 0


# A buffer of the size of all gates costs more to get than to fill (at 32 MiB the system maps and clears it anew), so
# those that are done with wait here for the next training step: a few of each shape, so that none can pile up.
_spare = {}


def take(shape, like):
    waiting = _spare.get((tuple(shape), like.dtype, like.device))
    return waiting.pop() if waiting else torch.empty(shape, dtype=like.dtype, device=like.device)


def give(buffer):
    _spare.setdefault((tuple(buffer.shape), buffer.dtype, buffer.device), deque(maxlen=8)).append(buffer)


def inputs(z, ids, a):
    """Fills the buffer a (batch, gates) with z_t, step after step."""
    for x in (z if ids is None else ids).unbind():
        yield a.copy_(x) if ids is None else torch.index_select(z, 0, x, out=a)


def states(z, ids, h0):
    """Room for h_0 … h_T, with h_0 in place."""
    S = z.new_empty(1 + len(z if ids is None else ids), *h0.shape)  # (1 + time, batch, hidden)
    S[0] = h0
    return S


def flat(x):
    return x.reshape(-1, x.shape[-1])  # (time * batch, …)


def gates(A, H):
    """The gates of every step: one list of views (batch, hidden) for each gate."""
    return [gate.unbind() for gate in A.split(H, dim=-1)]


def saved(ctx):
    """The gates kept for the backward pass, which overwrites them."""
    if ctx.buffers is None:
        raise RuntimeError("this forward pass has been differentiated already; run it again")
    buffers, ctx.buffers = ctx.buffers, None
    return buffers


def d_inputs(z, ids, D):
    """The gradient at z from the gradient at the gates' arguments; rows looked up more than once collect a sum."""
    if ids is None:
        return D
    if z.device.type == "cpu":
        dz = torch.zeros_like(z).index_add_(0, ids.reshape(-1), flat(D))
    else:  # as a product, which adds in the same order each time
        dz = nn.functional.one_hot(ids.reshape(-1), len(z)).to(D).t() @ flat(D)
    give(D)
    return dz


class Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, ids, h0, W_h):
        S, U = states(z, ids, h0), W_h.t().contiguous()
        h = S[0]
        for a, out in zip(inputs(z, ids, torch.empty_like(h)), S[1:].unbind(), strict=True):
            h = torch.tanh(a.addmm_(h, U), out=out)
        ctx.save_for_backward(z, ids, S, W_h)
        return S[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, dS):
        z, ids, S, W_h = ctx.saved_tensors
        D = take(dS.shape, S)  # (time, batch, hidden): gradient at the arguments of tanh
        dh = torch.zeros_like(S[0])
        for da, h, grad_output in reversed(list(zip(D.unbind(), S[1:].unbind(), dS.unbind(), strict=True))):
            dh += grad_output
            d_tanh(dh, h, grad_input=da)
            torch.mm(da, W_h, out=dh)
        dU = flat(S[:-1]).t() @ flat(D)
        return d_inputs(z, ids, D), None, dh, dU.t()


class GRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, ids, h0, W_h, b_n):
        S, U, H = states(z, ids, h0), W_h.t(), h0.shape[-1]
        U_ru, U_n = U[:, : 2 * H].contiguous(), U[:, 2 * H :].contiguous()
        A = take((len(S) - 1, len(h0), 3 * H), z)  # (time, batch, gates): r, u, n
        Q = take((len(S) - 1, len(h0), H), z)  # (time, batch, hidden)
        a = torch.empty_like(A[0])
        a_ru, a_n = a[:, : 2 * H], a[:, 2 * H :]
        h = S[0]
        for _, ru, r, u, n, q, out in zip(
            inputs(z, ids, a), A[..., : 2 * H].unbind(), *gates(A, H), Q.unbind(), S[1:].unbind(), strict=True
        ):
            torch.sigmoid(a_ru.addmm_(h, U_ru), out=ru)
            torch.addmm(b_n, h, U_n, out=q)
            torch.tanh(a_n.addcmul_(r, q), out=n)
            h = torch.lerp(n, h, u, out=out)
        ctx.save_for_backward(z, ids, S, W_h)
        ctx.buffers = A, Q
        return S[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, dS):
        z, ids, S, W_h = ctx.saved_tensors
        A, Q = saved(ctx)
        H = S.shape[-1]
        dh, dn = torch.zeros_like(S[0]), torch.empty_like(S[0])
        d_ru = S.new_empty(S.shape[1], 2 * H)
        dr, du = d_ru[:, :H], d_ru[:, H:]
        steps = zip(
            A.unbind(), A[..., : 2 * H].unbind(), *gates(A, H), Q.unbind(), S[:-1].unbind(), dS.unbind(), strict=True
        )
        for a, ru, r, u, n, q, h, grad_output in reversed(list(steps)):
            dh += grad_output
            torch.mul(torch.sub(h, n, out=du), dh, out=du)
            torch.addcmul(dh, dh, u, value=-1, out=dn)
            dh *= u  # what passes the step unchanged
            d_tanh(dn, n, grad_input=dn)
            torch.mul(dn, q, out=dr)
            torch.mul(dn, r, out=n)  # the gradient at q takes the place of n, for the products with W_h
            q.copy_(dn)
            d_sigmoid(d_ru, ru, grad_input=ru)
            dh.addmm_(a, W_h)
        dU, db_n = flat(S[:-1]).t() @ flat(A), flat(A)[:, 2 * H :].sum(0)
        A[..., 2 * H :] = Q  # on the input side the gradient at n's argument itself
        give(Q)
        return d_inputs(z, ids, A), None, dh, dU.t(), db_n


class LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, ids, h0, c0, W_h):
        S, U, H = states(z, ids, h0), W_h.t().contiguous(), h0.shape[-1]
        A = take((len(S) - 1, len(h0), 4 * H), z)  # (time, batch, gates): i, f, g, o
        C = take(S.shape, z)  # (1 + time, batch, hidden)
        C[0] = c0
        a, tanh_c = torch.empty_like(A[0]), torch.empty_like(S[0])
        a_if, a_g, a_o = a.split([2 * H, H, H], dim=-1)
        h, c = S[0], C[0]
        for _, i_f, i, f, g, o, c_out, h_out in zip(
            inputs(z, ids, a), A[..., : 2 * H].unbind(), *gates(A, H), C[1:].unbind(), S[1:].unbind(), strict=True
        ):
            a.addmm_(h, U)
            torch.sigmoid(a_if, out=i_f)
            torch.tanh(a_g, out=g)
            torch.sigmoid(a_o, out=o)
            c = torch.mul(f, c, out=c_out).addcmul_(i, g)
            h = torch.mul(o, torch.tanh(c, out=tanh_c), out=h_out)
        ctx.save_for_backward(z, ids, S, W_h)
        ctx.buffers = A, C
        return S[1:], c.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, dS, dc_last):
        z, ids, S, W_h = ctx.saved_tensors
        A, C = saved(ctx)
        H = S.shape[-1]
        dh, dc, tanh_c = torch.zeros_like(S[0]), dc_last.clone(), torch.empty_like(S[0])
        d = torch.empty_like(A[0])
        d_if, (di, df, dg, do) = d[:, : 2 * H], d.split(H, dim=-1)
        steps = zip(
            A.unbind(),
            A[..., : 2 * H].unbind(),
            *gates(A, H),
            C[:-1].unbind(),
            C[1:].unbind(),
            dS.unbind(),
            strict=True,
        )
        for a, i_f, i, f, g, o, c_before, c, grad_output in reversed(list(steps)):
            dh += grad_output
            torch.tanh(c, out=tanh_c)  # once more: cheaper than storing it
            torch.mul(dh, tanh_c, out=do)
            dh *= o
            dc += d_tanh(dh, tanh_c, grad_input=dh)
            torch.mul(dc, g, out=di)
            torch.mul(dc, c_before, out=df)
            torch.mul(dc, i, out=dg)
            dc *= f
            d_sigmoid(d_if, i_f, grad_input=i_f)
            d_tanh(dg, g, grad_input=g)
            d_sigmoid(do, o, grad_input=o)
            torch.mm(a, W_h, out=dh)
        dU = flat(S[:-1]).t() @ flat(A)
        give(C)
        return d_inputs(z, ids, A), None, dh, dc, dU.t()
