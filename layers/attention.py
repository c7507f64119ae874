"""A GRU decoder with additive attention written by hand, forward and backward over all steps of a known target.

At every step the decoder asks all encoder states e_j how well each answers its own last state, and reads their weighted
sum beside its input:

    query     p_t = W_dec h_{t-1}
    scores    s_tj = v · a_tj  with  a_tj = tanh(k_j + p_t),  keys k_j = W_enc e_j + b_enc + b_dec
    weights   α_t = softmax of s_t over the source positions j
    context   c_t = Σ_j α_tj e_j
    state     h_t = GRU(z_t + W_c c_t, h_{t-1}),  with the gates r, u, n and q as cells.py writes them

The query's bias b_dec stands with the keys: only the sum k_j + p_t counts, and keys are computed once for all steps.

Most of the work is the array a_t, (source, batch, hidden) at each step. To write all of them to memory and read them
back, 52 MB at length 40, takes longer than to compute them again, so the backward pass does that. Its derivative 1 - a²
never becomes an array of its own: the gradients at the scores add up to 0 over j, which leaves

    dp_t = Σ_j ds_tj v (1 - a_tj²) = -v Σ_j ds_tj a_tj²
    dk_j = Σ_t ds_tj v (1 - a_tj²) = v (Σ_t ds_tj - Σ_t ds_tj a_tj²)

The rest is as in cells.py: gradients overwrite what they are the gradients of, and sums over steps are taken after the
loop, as one product, but for dk and dv, which need the a_t. One step's numbers lie side by side as (n, r, u, q, p): the
gates' input side is then the first three, and what comes from the last state the last four.
"""

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from layers.cells import d_inputs, d_sigmoid, d_tanh, flat, give, inputs, saved, states, take

d_softmax = torch.ops.aten._softmax_backward_data.out


def decode(z, h0, e, k, W_h, b_n, W_c, W_dec, v, ids=None, padding=None):
    """All states (time, batch, hidden), contexts (time, batch, width) and weights (time, batch, source).

    z, or its rows looked up by ids, is the input side of the gates without the context; e (source, batch, width) and
    k (source, batch, hidden) are the encoder's states and their keys; padding (source, batch) is true where they are to
    get no weight.
    """
    # On another device it would have to be waited for, at every call.
    if padding is not None and padding.device.type == "cpu" and padding.all(0).any():
        raise ValueError("an item that is nothing but padding has nothing to attend to")
    H = h0.shape[-1]
    W = torch.cat([W_h, W_dec])
    return Decode.apply(z.roll(H, -1), ids, h0, e, k, padding, W, b_n, W_c.roll(H, 0), v)  # (r, u, n) -> (n, r, u)


def gru_weights(cell, x):
    """What `decode` takes of an nn.GRUCell that reads x and the context side by side: z, W_h, b_n and W_c.

    z is the input side of the gates for every row of x (…, input), with all biases but b_n, which the reset gate
    multiplies. W_c has no columns where x is all that the cell reads.
    """
    W_x, W_c = cell.weight_ih.tensor_split([x.shape[-1]], 1)
    b_ru, b_n = cell.bias_hh.split([2 * cell.hidden_size, cell.hidden_size])
    z = linear(x, W_x, cell.bias_ih + torch.cat([b_ru, torch.zeros_like(b_n)]))
    return z, cell.weight_hh, b_n, W_c


class Decode(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, ids, h0, e, k, padding, W, b_n, W_c, v):
        S, U, C, H = states(z, ids, h0), W.t().contiguous(), W_c.t().contiguous(), h0.shape[-1]
        b = torch.cat([b_n.new_zeros(2 * H), b_n, b_n.new_zeros(H)])
        A = take((len(S) - 1, len(h0), 5 * H), k)  # (time, batch, n r u q p)
        contexts = k.new_empty(len(A), len(h0), e.shape[2])  # (time, batch, width)
        weights = k.new_empty(len(A), len(h0), len(e))  # (time, batch, source)
        x, a = k.new_empty(len(h0), 3 * H), torch.empty_like(k)  # (batch, n r u), (source, batch, hidden)
        x_n, x_ru = x.split([H, 2 * H], dim=1)
        e_of_item = e.transpose(0, 1)  # (batch, source, width)
        h = S[0]
        for _, n, r, u, q, p, ru, ruqp, α, α_row, c, c_row, out in zip(
            inputs(z, ids, x),
            *(block.unbind() for block in A.split(H, dim=-1)),
            A[..., H : 3 * H].unbind(),
            A[..., H:].unbind(),
            weights.unbind(),
            weights[:, :, None].unbind(),
            contexts.unbind(),
            contexts[:, :, None].unbind(),
            S[1:].unbind(),
            strict=True,
        ):
            torch.addmm(b, h, U, out=ruqp)
            torch.tanh(torch.add(k, p, out=a), out=a)
            scores = (flat(a) @ v).view(a.shape[:2])  # (source, batch)
            if padding is not None:
                scores.masked_fill_(padding, -torch.inf)
            torch.softmax(scores.t(), 1, out=α)
            torch.bmm(α_row, e_of_item, out=c_row)
            x.addmm_(c, C)
            torch.sigmoid(ru.add_(x_ru), out=ru)
            torch.tanh(x_n.addcmul_(r, q), out=n)
            h = torch.lerp(n, h, u, out=out)
        ctx.save_for_backward(z, ids, S, e, k, W, W_c, v, contexts, weights)
        ctx.buffers = (A,)
        ctx.mark_non_differentiable(weights)
        return S[1:], contexts, weights

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_S, grad_contexts, _):
        z, ids, S, e, k, W, W_c, v, contexts, weights = ctx.saved_tensors
        (A,) = saved(ctx)
        H = S.shape[-1]
        W_back = torch.cat([W[: 3 * H], -v[:, None] * W[3 * H :]])  # in p's place comes Σ_j ds_j a_j², not yet times -v
        dc, ds = torch.empty_like(contexts), torch.empty_like(weights)
        dk, dv, dh = torch.zeros_like(k), torch.zeros_like(v), torch.zeros_like(S[0])
        a, dn, d_ru = torch.empty_like(k), torch.empty_like(S[0]), S.new_empty(len(S[0]), 2 * H)
        dr, du = d_ru.split(H, dim=1)
        e_of_item, a_of_item = e.permute(1, 2, 0), a.transpose(0, 1)  # (batch, width, source), (batch, source, hidden)
        steps = zip(
            *(block.unbind() for block in A.split(H, dim=-1)),
            A[..., 4 * H :].unsqueeze(2).unbind(),
            A[..., H : 3 * H].unbind(),
            A[..., : 3 * H].unbind(),
            A[..., H:].unbind(),
            S[:-1].unbind(),
            grad_S.unbind(),
            grad_contexts.unbind(),
            dc.unbind(),
            dc[:, :, None].unbind(),
            weights.unbind(),
            ds.unbind(),
            ds[:, :, None].unbind(),
            strict=True,
        )
        for step in reversed(list(steps)):
            n, r, u, q, p, p_row, ru, nru, ruqp, h, grad_h, grad_c, dc_t, dc_row, α, ds_t, ds_row = step
            dh += grad_h
            torch.mul(torch.sub(h, n, out=du), dh, out=du)
            torch.addcmul(dh, dh, u, value=-1, out=dn)
            dh *= u  # what passes the step unchanged
            d_tanh(dn, n, grad_input=n)
            torch.mul(n, q, out=dr)
            torch.mul(n, r, out=q)
            d_sigmoid(d_ru, ru, grad_input=ru)
            torch.addmm(grad_c, nru, W_c, out=dc_t)
            d_softmax(torch.bmm(dc_row, e_of_item)[:, 0], α, 1, α.dtype, grad_input=ds_t)
            torch.tanh(torch.add(k, p, out=a), out=a)  # once more: cheaper than having kept it
            ds_of_position = ds_t.t().contiguous()  # (source, batch)
            dv.addmv_(flat(a).t(), ds_of_position.view(-1))
            a.mul_(a)
            dk.addcmul_(a, ds_of_position[:, :, None])
            torch.bmm(ds_row, a_of_item, out=p_row)
            dh.addmm_(ruqp, W_back)
        dk = (ds.sum(0).t()[:, :, None] - dk) * v
        de = torch.bmm(weights.permute(1, 2, 0), dc.transpose(0, 1)).transpose(0, 1)  # (source, batch, width)
        ruqp = flat(A)[:, H:]
        dW = ruqp.t() @ flat(S[:-1])
        dW[3 * H :] *= -v[:, None]
        dz = take((*A.shape[:2], 3 * H), A).copy_(A[..., : 3 * H])  # d_inputs gives it back
        dW_c, db_n = flat(dz).t() @ flat(contexts), ruqp[:, 2 * H : 3 * H].sum(0)
        give(A)
        return d_inputs(z, ids, dz), None, dh, de, dk, None, dW, db_n, dW_c, dv
