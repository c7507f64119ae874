"""CTC sums over every alignment of a short target with many frames, and needs nobody to say which one is right.

A path gives each frame a label or a blank. It collapses to a string: repeats are merged, then blanks dropped. The
probability of a string is that of all its paths together; layers/ctc.py computes it, and says how. With few frames all
paths can be listed, and the loss can be checked with a pencil: where they are equally probable, it is the logarithm of
(all paths / paths that collapse to the string).

    python -m beyond.ctc        2 s; ctc_digits.py trains with this loss

Prints, at the end:

    aaa in 5 frames: 1 of 243 paths, loss 5.493061 (a-a-a)
    aa  in 2 frames: 0 of   9 paths, loss inf (item 0 has an infinite loss: its target needs 3 frames, it has 2)
    12 labels in 200 frames: 2.830224e+31 paths, too many to list

    two frames with blank 0.6 and a 0.4: the most probable path isn't the most probable string
    best path: '', probability 0.36
    beam: 'a', probability 0.64

Sources: as layers/ctc.py.
"""

import itertools
import math
import warnings

import torch

from lab import plots, script
from layers.ctc import align, beam_search, best_path, collapse, ctc_loss

LETTERS = "-ab"  # how labels are written, the blank first
COUNTED = [("aa", 4), ("aa", 3), ("aaa", 5), ("aa", 2)]  # targets and frames small enough to list all paths
SPEECH = (12, 200, 11)  # labels, frames, alphabet: about what ctc_digits.py trains on
LATTICE = ("abba", 14)  # the target and the frames of the figure
KINDS = {"*": "exact"}


def uniform(time, count):
    """One item of log-probabilities that prefer nothing: (1, time, label)."""
    return torch.full((1, time, count), -math.log(count), dtype=torch.float64)


def loss_of(log_probs, target):
    """The loss of one target, a list of labels, as a number."""
    frames, lengths = torch.tensor([log_probs.shape[1]]), torch.tensor([len(target)])
    return ctc_loss(log_probs, torch.tensor([target]), frames, lengths).item()


def labels_of(string):
    return [LETTERS.index(letter) for letter in string]


def written(labels):
    return "".join(LETTERS[label] for label in labels)


def list_paths(string, time):
    """All paths that collapse to a string, the loss beside them, and what is said where there is no path."""
    target = labels_of(string)
    paths = [written(path) for path in itertools.product(range(3), repeat=time) if collapse(path) == target]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loss = loss_of(uniform(time, 3), target)
    listed = {"string": string, "frames": time, "paths": len(paths), "loss": loss if paths else "inf"}
    return listed | {"listed": " ".join(paths) or str(said[0].message)}


def count_paths(labels, time, count):
    """How many paths a string without equal neighbours has: too many to list, so from its loss on uniform frames."""
    target = [1 + i % (count - 1) for i in range(labels)]
    return math.exp(time * math.log(count) - loss_of(uniform(time, count), target))


def measure(arguments):
    log_probs = torch.tensor([[0.6, 0.4]] * 2, dtype=torch.float64).log()  # (time, label): blank and a
    (greedy,) = best_path(log_probs[None], torch.tensor([2]))
    beam, log_p = beam_search(log_probs, width=4)

    string, time = LATTICE
    target, frames, lengths = torch.tensor([labels_of(string)]), torch.tensor([time]), torch.tensor([len(string)])
    _, occupancy, _ = align(uniform(time, 3), target, frames, lengths)  # (1, time, state)
    return {
        "uniform": [list_paths(*case) for case in COUNTED],
        "labels_of_speech": SPEECH[0],
        "frames_of_speech": SPEECH[1],
        "paths_of_speech": count_paths(*SPEECH),
        "decoded": {"best path": written(greedy), "beam": written(beam)},
        "probability": {"best path": math.exp(-loss_of(log_probs[None], greedy)), "beam": math.exp(log_p)},
        "lattice": string,
        "occupancy": occupancy[0],
    }


def tell(found):
    yield "a, b and blank equally probable at every frame: the paths that collapse to a string, listed, and the loss"
    for row in found["uniform"]:
        share = f"{row['paths']} of {3 ** row['frames']:3} paths"
        yield f"{row['string']:3} in {row['frames']} frames: {share}, loss {float(row['loss']):.6f} ({row['listed']})"
    speech = f"{found['labels_of_speech']} labels in {found['frames_of_speech']} frames"
    yield f"{speech}: {found['paths_of_speech']:.6e} paths, too many to list"
    yield ""
    yield "two frames with blank 0.6 and a 0.4: the most probable path isn't the most probable string"
    for name, string in found["decoded"].items():
        yield f"{name}: '{string}', probability {found['probability'][name]:.2f}"


def draw(found):
    """Every state's share of the paths at each frame, where all paths are equally probable."""
    figure, axes = plots.subplots(size=(7.0, 3.6))
    states = "-" + "".join(letter + "-" for letter in found["lattice"])
    image = axes.imshow(list(zip(*found["occupancy"], strict=True)), aspect="auto", cmap="Greys", vmin=0)
    axes.set(
        title=f"Where the paths of '{found['lattice']}' are, if all are equally probable",
        xlabel="frame",
        ylabel="state (- is blank)",
        yticks=range(len(states)),
        yticklabels=states,
    )
    axes.grid(False)
    figure.colorbar(image, label="share of the paths")
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
