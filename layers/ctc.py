"""CTC: the probability of a string as the sum over all its alignments with many frames, its gradient, and its decoders.

A network reads T frames and gives, at each, probabilities of the labels and of a *blank*. A path (one label or blank
for each frame) collapses to a string: merge repeats, then drop the blanks. The probability of a string is the sum over
all the paths that collapse to it, and its negative logarithm is a loss that needs the string only. There are far too
many paths to list. The sum is a forward and a backward pass over the states of the string, which are its labels with a
blank before, between and after them:

    arrived_t(s) = α_{t-1}(s) + α_{t-1}(s-1) + α_{t-1}(s-2)      the last only over a blank between different labels
    α_t(s)       = arrived_t(s) · p_t(label of s)

all of it in logarithms. The gradient at the logits is softmax minus the expected number of times that a label is used
at a frame.

Source: Graves, Fernández, Gomez and Schmidhuber (2006), "Connectionist temporal classification"; prefix search as a
beam: Hannun (2017), "Sequence modeling with CTC". Departure: the backward pass is the forward pass of the mirrored
problem, run beside it in the same loop, so that one recursion serves both.
"""

import heapq
import itertools
import math
import warnings
from collections import defaultdict

import torch

BLANK = 0  # the label that means "nothing here"; the alphabet's labels are 1, 2, ...


def ctc_loss(log_probs, targets, frames, lengths):
    """-log P(target) of each item, one number an item: (batch,). Reduce it as you like; nothing is divided.

    ``log_probs`` (batch, time, label) holds log-probabilities, of which item i uses the first ``frames[i]``;
    ``targets`` (batch, length) holds labels, of which item i has ``lengths[i]``. An item with too few frames for its
    target has an infinite loss, no gradient, and a warning that says how many it needs.
    """
    check(log_probs, targets, frames, lengths)
    return CTCLoss.apply(log_probs, targets.to(log_probs.device), frames, lengths)


class CTCLoss(torch.autograd.Function):
    """The loss with its own gradient, -occupancy; through log_softmax that is softmax - occupancy at the logits."""

    @staticmethod
    def forward(ctx, log_probs, targets, frames, lengths):
        log_p, occupancy, states = align(log_probs, targets, frames, lengths)
        # A label's occupancy is the sum over the states that carry it. As a product it adds in a fixed order on a GPU.
        carries = torch.nn.functional.one_hot(states, log_probs.shape[2]).to(log_probs)  # (batch, state, label)
        ctx.save_for_backward(occupancy @ carries)  # (batch, time, label)
        return -log_p  # (batch,)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (occupancy,) = ctx.saved_tensors
        return -grad_output[:, None, None] * occupancy, None, None, None


def align(log_probs, targets, frames, lengths):
    """log P(target), and at each frame the probability of each state, given that the path collapses to the target.

    The states are the target with a blank before, between and after its labels. Returns log P (batch,), the occupancy
    (batch, time, state) and the label of each state (batch, state), where state = 2 length + 1.
    """
    (batch, time, _), device = log_probs.shape, log_probs.device
    frames, lengths = frames.to(device), lengths.to(device)
    t = torch.arange(time, device=device)[:, None, None]  # (time, 1, 1)
    s = torch.arange(2 * targets.shape[1] + 1, device=device)[:, None]  # (state, 1)
    states = torch.full((len(s), batch), BLANK, device=device)  # (state, batch)
    states[1::2] = targets.T
    states = states.where(s < 2 * lengths, BLANK)

    # Time first and the batch last, in which the steps of the recursion are contiguous.
    present = log_probs.permute(1, 2, 0).gather(1, states.expand(time, -1, -1))  # (time, state, batch)
    present.masked_fill_((t >= frames) | (s > 2 * lengths), -math.inf)
    # The mirrored problem: each item's frames and states in reverse, the padding kept behind them.
    mirror = ((frames - 1 - t) % time, (2 * lengths - s) % len(s), torch.arange(batch, device=device))
    both = arrivals(torch.cat([present, present[mirror]], 2), torch.cat([states, states[mirror[1:]]], 1))
    past, future = both[:, :, :batch], both[:, :, batch:][mirror]

    joint = past + present + future  # log P(target, in state s at frame t): (time, state, batch)
    log_p = joint[0].logsumexp(0)  # (batch,): every path is in some state at the first frame
    # An impossible target has -inf everywhere: 0 in place of its log P makes its occupancy 0 rather than NaN.
    occupancy = (joint - log_p.where(log_p > -math.inf, 0.0)).exp()
    return log_p, occupancy.permute(2, 0, 1), states.T


def arrivals(present, states):
    """log-probability of all the ways through frames 0 ... t-1 into state s at frame t, its own frame not counted.

    ``present`` (time, state, batch) is each state's own log-probability. A path stays in a state, moves to the next, or
    jumps over the blank between two different labels.
    """
    may_jump = (states[2:] != BLANK) & (states[2:] != states[:-2])  # (state - 2, batch)
    jump = torch.full_like(present[0], -math.inf)
    jump[2:][may_jump] = 0.0
    # Two states that can't be reached stand before the first, so that each has two before it. Before the first frame
    # paths are in the first blank: one step on they are still there, or in the first label.
    alpha = present.new_full((present.shape[1] + 2, present.shape[2]), -math.inf)  # (2 + state, batch)
    alpha[2] = 0.0
    arrived = torch.empty_like(present)
    for t in range(len(present)):
        torch.logaddexp(alpha[2:].logaddexp(alpha[1:-1]), alpha[:-2] + jump, out=arrived[t])
        torch.add(arrived[t], present[t], out=alpha[2:])
    return arrived  # (time, state, batch)


def check(log_probs, targets, frames, lengths):
    """Raise ValueError for what has no loss; warn of each item that has too few frames for its target."""
    if log_probs.dim() != 3 or targets.dim() != 2:
        shapes = f"{tuple(log_probs.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"log_probs must be (batch, time, label) and targets (batch, length), not {shapes}")
    batch, _, count = log_probs.shape
    if not len(targets) == len(frames) == len(lengths) == batch:
        raise ValueError(
            f"{batch} items of log_probs, {len(targets)} targets, {len(frames)} frames, {len(lengths)} lengths"
        )
    check_probabilities(log_probs, frames)
    for i, (target, T, L) in enumerate(zip(targets.tolist(), frames.tolist(), lengths.tolist(), strict=True)):
        if not 0 <= L <= len(target):
            raise ValueError(f"item {i} has a target of {L} labels: from 0 to the tensor's {len(target)} are possible")
        for label in target[:L]:
            if label == BLANK or not 0 <= label < count:
                raise ValueError(f"item {i} has label {label} in its target: from 1 to {count - 1} are possible")
        needed = L + sum(a == b for a, b in itertools.pairwise(target[:L]))
        if needed > T:
            warnings.warn(f"item {i} has an infinite loss: its target needs {needed} frames, it has {T}", stacklevel=3)


def check_frames(log_probs, frames):
    """Raise ValueError for frames (batch,) that log_probs (batch, time, label) don't have."""
    time = log_probs.shape[1]
    for i, T in enumerate(frames.tolist()):
        if not 1 <= T <= time:
            raise ValueError(f"item {i} has {T} frames: from 1 to the tensor's {time} are possible")


def check_probabilities(log_probs, frames):
    """The same, and where log_probs aren't any."""
    check_frames(log_probs, frames)
    used = torch.arange(log_probs.shape[1]) < frames.cpu()[:, None]
    sums = log_probs.detach().exp().sum(2).cpu()
    wrong = (used & ~((sums - 1).abs() < 1e-3)).nonzero().tolist()  # "not near 1" is true of NaN as well
    if wrong:
        i, t = wrong[0]
        raise ValueError(f"item {i}, frame {t}: the probabilities sum to {sums[i, t]:.4g}, not to 1 (log_softmax them)")


def collapse(path):
    """The string that a path stands for: repeats merged, then blanks dropped."""
    return [label for label, _ in itertools.groupby(path) if label != BLANK]


def best_path(log_probs, frames):
    """Greedy decoding: the string of the most probable path of each item, which needn't be the most probable string."""
    check_frames(log_probs, frames)
    paths = log_probs.argmax(2).tolist()
    return [collapse(path[:T]) for path, T in zip(paths, frames.tolist(), strict=True)]


def beam_search(log_probs, width):
    """The most probable string of one item (time, label), and log P of its paths within the beam.

    A beam of ``width`` prefixes, each with the probability of its paths that end in a blank and of those that end in
    its last label: kept apart because only after a blank does the same label once more make the prefix longer.
    """
    check_probabilities(log_probs[None], torch.tensor([len(log_probs)]))
    if width < 1:
        raise ValueError(f"a beam holds one prefix at least, not {width}")
    beam, log_scale = {(): [1.0, 0.0]}, 0.0
    for row in log_probs.exp().tolist():
        grown = defaultdict(lambda: [0.0, 0.0])
        for prefix, (blank, label) in beam.items():
            last = prefix[-1] if prefix else BLANK
            grown[prefix][0] += (blank + label) * row[BLANK]
            grown[prefix][1] += label * row[last]
            for k in range(1, len(row)):
                grown[(*prefix, k)][1] += (blank if k == last else blank + label) * row[k]
        best = heapq.nlargest(width, grown.items(), key=lambda item: sum(item[1]))
        scale = sum(best[0][1])  # of the best prefix, taken out so that nothing that matters underflows
        beam = {prefix: [blank / scale, label / scale] for prefix, (blank, label) in best}
        log_scale += math.log(scale)
    return list(best[0][0]), log_scale
