"""CTC sums over every alignment of a short target with many frames, and needs nobody to say which one is right.

A network reads T frames and gives, at each, probabilities of the labels and of a *blank*. A path (one label or blank
for each frame) collapses to a string: merge repeats, then drop the blanks. The probability of a string is the sum over
all the paths that collapse to it, and its negative logarithm is a loss that needs the string only. There are far too
many paths to list; a forward and a backward pass over the states of the string with blanks around its labels do the
sum, and give the gradient at the logits: softmax minus the expected number of times that a label is used at a frame.

    python ctc.py        2 s; ctc_digits.py trains with this loss

Prints, at the end:

    aaa in 5 frames: 1 of 243 paths, loss 5.493061 (a-a-a)
    aa  in 2 frames: 0 of   9 paths, loss inf (item 0 has an infinite loss: its target needs 3 frames, it has 2)
    12 labels in 200 frames: 2.830224e+31 paths, too many to list

    two frames with blank 0.6 and a 0.4: the most probable path isn't the most probable string
    best path: '', probability 0.36
    beam: 'a', probability 0.64

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

from lab import plots, script
from lab.results import Results

BLANK = 0  # the label that means "nothing here"; the alphabet's labels are 1, 2, ...
LETTERS = "-ab"  # how main writes labels
COUNTED = [("aa", 4), ("aa", 3), ("aaa", 5), ("aa", 2)]  # targets and frames small enough to list all paths
SPEECH = (12, 200, 11)  # labels, frames, alphabet: about what ctc_digits.py trains on
LATTICE = ("abba", 14)  # the target and the frames of the figure


def ctc_loss(log_probs, targets, frames, lengths):
    """-log P(target) of each item, one number an item: (batch,). Reduce it as you like; nothing is divided.

    ``log_probs`` (batch, time, label) holds log-probabilities, of which item i uses the first ``frames[i]``;
    ``targets`` (batch, length) holds labels, of which item i has ``lengths[i]``. An item with too few frames for its
    target has an infinite loss, no gradient, and a warning that says how many it needs.
    """
    check(log_probs, targets, frames, lengths)
    return CTC.apply(log_probs, targets.to(log_probs.device), frames, lengths)


class CTC(torch.autograd.Function):
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
    def backward(ctx, d_loss):
        (occupancy,) = ctx.saved_tensors
        return -d_loss[:, None, None] * occupancy, None, None, None


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
    batch, time, count = log_probs.shape
    if not len(targets) == len(frames) == len(lengths) == batch:
        raise ValueError(
            f"{batch} items of log_probs, {len(targets)} targets, {len(frames)} frames, {len(lengths)} lengths"
        )
    used = torch.arange(time) < frames.cpu()[:, None]
    sums = log_probs.detach().exp().sum(2).cpu()
    for i, (target, T, L) in enumerate(zip(targets.tolist(), frames.tolist(), lengths.tolist(), strict=True)):
        if not 1 <= T <= time:
            raise ValueError(f"item {i} has {T} frames: from 1 to the tensor's {time} are possible")
        if not 0 <= L <= len(target):
            raise ValueError(f"item {i} has a target of {L} labels: from 0 to the tensor's {len(target)} are possible")
        for label in target[:L]:
            if label == BLANK or not 0 <= label < count:
                raise ValueError(f"item {i} has label {label} in its target: from 1 to {count - 1} are possible")
        needed = L + sum(a == b for a, b in itertools.pairwise(target[:L]))
        if needed > T:
            warnings.warn(f"item {i} has an infinite loss: its target needs {needed} frames, it has {T}", stacklevel=3)
    wrong = (used & ~((sums - 1).abs() < 1e-3)).nonzero().tolist()  # "not near 1" is true of NaN as well
    if wrong:
        i, t = wrong[0]
        raise ValueError(f"item {i}, frame {t}: the probabilities sum to {sums[i, t]:.4g}, not to 1 (log_softmax them)")


def collapse(path):
    """The string that a path stands for: repeats merged, then blanks dropped."""
    return [label for label, _ in itertools.groupby(path) if label != BLANK]


def best_path(log_probs, frames):
    """Greedy decoding: the string of the most probable path of each item, which needn't be the most probable string."""
    paths = log_probs.argmax(2).tolist()
    return [collapse(path[:T]) for path, T in zip(paths, frames.tolist(), strict=True)]


def beam_search(log_probs, width):
    """The most probable string of one item (time, label), and log P of its paths within the beam.

    A beam of ``width`` prefixes, each with the probability of its paths that end in a blank and of those that end in
    its last label: kept apart because only after a blank does the same label once more make the prefix longer.
    """
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


def uniform(time, count):
    """One item of log-probabilities that prefer nothing: (1, time, label)."""
    return torch.full((1, time, count), -math.log(count), dtype=torch.float64)


def loss_of(log_probs, target):
    """The loss of one target, a list of labels, as a number."""
    frames, lengths = torch.tensor([log_probs.shape[1]]), torch.tensor([len(target)])
    return ctc_loss(log_probs, torch.tensor([target]), frames, lengths).item()


def main(argv=None):
    results = Results("ctc", script.Arguments(__doc__).parse_args(argv))

    results.print(
        "a, b and blank equally probable at every frame: the paths that collapse to a string, listed, and the loss"
    )
    counted = []
    for string, time in COUNTED:
        target = [LETTERS.index(letter) for letter in string]
        paths = [path for path in itertools.product(range(3), repeat=time) if collapse(path) == target]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loss = loss_of(uniform(time, 3), target)
        shown = " ".join("".join(LETTERS[label] for label in path) for path in paths) or said[0].message
        results.print(f"{string:3} in {time} frames: {len(paths)} of {3**time:3} paths, loss {loss:.6f} ({shown})")
        counted.append({"string": string, "frames": time, "paths": len(paths), "loss": loss if paths else "inf"})
    results.record(uniform=counted)

    labels, time, count = SPEECH
    target = [1 + i % (count - 1) for i in range(labels)]
    paths = math.exp(time * math.log(count) - loss_of(uniform(time, count), target))
    results.print(f"{labels} labels in {time} frames: {paths:.6e} paths, too many to list")
    results.record(paths_of_speech=paths)

    results.print()
    results.print("two frames with blank 0.6 and a 0.4: the most probable path isn't the most probable string")
    log_probs = torch.tensor([[0.6, 0.4]] * 2, dtype=torch.float64).log()
    (greedy,) = best_path(log_probs[None], torch.tensor([2]))
    beam, log_p = beam_search(log_probs, width=4)
    probabilities = math.exp(-loss_of(log_probs[None], greedy)), math.exp(log_p)
    for name, labels, p in zip(("best path", "beam"), (greedy, beam), probabilities, strict=True):
        results.print(f"{name}: '{''.join(LETTERS[label] for label in labels)}', probability {p:.2f}")
    results.record(probability={"best path": probabilities[0], "beam": probabilities[1]})

    string, time = LATTICE
    target = torch.tensor([[LETTERS.index(letter) for letter in string]])
    _, occupancy, _ = align(uniform(time, 3), target, torch.tensor([time]), torch.tensor([len(string)]))
    results.record(lattice=string, occupancy=occupancy[0])
    results.save(draw)


def draw(results):
    """Every state's share of the paths at each frame, where all paths are equally probable."""
    figure, axes = plots.subplots(size=(7.0, 3.6))
    states = "-" + "".join(letter + "-" for letter in results["lattice"])
    image = axes.imshow(list(zip(*results["occupancy"], strict=True)), aspect="auto", cmap="Greys", vmin=0)
    axes.set(
        title=f"Where the paths of '{results['lattice']}' are, if all are equally probable",
        xlabel="frame",
        ylabel="state (- is blank)",
        yticks=range(len(states)),
        yticklabels=states,
    )
    axes.grid(False)
    figure.colorbar(image, label="share of the paths")
    return figure


if __name__ == "__main__":
    script.run(main)
