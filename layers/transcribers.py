"""Three models that hear frames of sound and write labels, and how their mistakes are counted.

All have the same bidirectional GRU. The first two say at each frame which label it is, or that it is blank, and differ
in their loss alone. Framewise supervision needs one right path, a label or a blank for every frame; CTC needs the
string, and sums over all the paths that collapse to it (ctc.py). The third is a decoder with attention, which writes
label after label and looks at all frames at each step (attention.py).
"""

import torch
from torch import nn
from torch.nn import functional as F

from layers import attention, cells
from layers.ctc import BLANK, align, beam_search, best_path, ctc_loss
from layers.encoder_decoder import is_padding, reverse
from layers.spoken_digits import FEATURES, LABELS

HIDDEN, EMBEDDING = 48, 16
BEAM = 8  # prefixes
MOST_WRITTEN = 24  # labels, where a decoder doesn't end its string itself


class Encoder(nn.Module):
    """A GRU from the first frame to the last, and another one from the last to the first."""

    def __init__(self):
        super().__init__()
        self.there, self.back = nn.GRU(FEATURES, HIDDEN), nn.GRU(FEATURES, HIDDEN)

    def forward(self, sound, frames):
        there, _ = cells.run(self.there, sound.transpose(0, 1))
        back, _ = cells.run(self.back, reverse(sound, frames).transpose(0, 1))
        return torch.cat([there.transpose(0, 1), reverse(back.transpose(0, 1), frames)], 2)  # (batch, time, 2 hidden)


class FrameModel(nn.Module):
    """A label or a blank for every frame. How it learns them is its subclasses' own."""

    def __init__(self):
        super().__init__()
        self.encoder, self.output = Encoder(), nn.Linear(2 * HIDDEN, LABELS)

    def forward(self, speech):
        return self.output(self.encoder(speech.sound, speech.frames)).log_softmax(2)  # (batch, time, label)

    @torch.no_grad()
    def transcribe(self, speech):
        """Strings by each way of decoding."""
        log_probs = self(speech).cpu()
        frames = speech.frames.cpu()
        beam = [beam_search(rows[:T].double(), BEAM)[0] for rows, T in zip(log_probs, frames, strict=True)]
        return {"greedy": best_path(log_probs, frames), "beam": beam}

    @torch.no_grad()
    def frames_labelled(self, speech):
        """How many frames have a label rather than a blank as their most probable one."""
        return (self(speech).argmax(2) != BLANK)[~is_padding(speech.sound, speech.frames)].sum().item()

    @torch.no_grad()
    def show(self, speech, strings):
        """What one item's frames say, and where the paths of its string are."""
        log_probs, T = self(speech), speech.frames[0]
        _, occupancy, _ = align(log_probs, strings, speech.frames, torch.full_like(speech.frames, strings.shape[1]))
        shown = {"segments": speech.segments, "posteriors": log_probs.exp(), "occupancy": occupancy}
        return {name: values[0, :T].tolist() for name, values in shown.items()}


class Framewise(FrameModel):
    """Trained on one right path of every item."""

    def loss(self, speech, strings):
        """A mean over frames."""
        within = ~is_padding(speech.sound, speech.frames)
        return F.nll_loss(self(speech)[within], speech.path[within])


class CTC(FrameModel):
    """Trained on the strings alone."""

    def loss(self, speech, strings):
        """A mean over labels."""
        lengths = torch.full_like(speech.frames, strings.shape[1])
        return ctc_loss(self(speech), strings, speech.frames, lengths).sum() / strings.numel()


class Writer(nn.Module):
    """A decoder that writes a label at each step and looks at all frames to do so. A blank starts and ends a string."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.embed = nn.Embedding(LABELS, EMBEDDING)
        self.decoder = nn.GRUCell(EMBEDDING + 2 * HIDDEN, HIDDEN)
        self.W_dec = nn.Linear(HIDDEN, HIDDEN)
        self.W_enc = nn.Linear(2 * HIDDEN, HIDDEN)
        self.v = nn.Linear(HIDDEN, 1, bias=False)
        self.output = nn.Linear(3 * HIDDEN, LABELS)

    def read(self, speech):
        """What every step looks at: the encoder's states and keys (time, batch, ...), and where not to look."""
        states = self.encoder(speech.sound, speech.frames).transpose(0, 1).contiguous()
        keys = self.W_enc(states) + self.W_dec.bias  # which is the same at every step: see attention.py
        return states, keys, is_padding(speech.sound, speech.frames).t()

    def forward(self, previous, h, memory):
        """Steps after ``previous`` (step, batch): logits (step, batch, label), states, weights (step, batch, time)."""
        states, keys, padding = memory
        z, W_h, b_n, W_c = attention.gru_weights(self.decoder, self.embed.weight)  # z: a row per label
        W_dec, v = self.W_dec.weight, self.v.weight[0]
        h, contexts, weights = attention.decode(z, h, states, keys, W_h, b_n, W_c, W_dec, v, previous, padding)
        return self.output(torch.cat([h, contexts], 2)), h, weights

    def loss(self, speech, strings):
        """A mean over the labels and the end of each string."""
        memory = self.read(speech)
        border = torch.full_like(strings[:, :1], BLANK)
        previous, wanted = torch.cat([border, strings], 1).t(), torch.cat([strings, border], 1).t()
        logits, _, _ = self(previous, memory[0].new_zeros(len(strings), HIDDEN), memory)
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())

    @torch.no_grad()
    def transcribe(self, speech):
        """Strings by the most probable label at each step, each step reading the one before."""
        return {"greedy": [row[: (*row, BLANK).index(BLANK)] for row in self.write(speech)[0].tolist()]}

    @torch.no_grad()
    def write(self, speech, steps=MOST_WRITTEN):
        """Labels (batch, step) and weights (step, batch, time), ends ignored."""
        memory = self.read(speech)
        h = memory[0].new_zeros(1, len(speech.frames), HIDDEN)
        label = torch.full_like(speech.frames, BLANK)[None]
        labels, weights = [], []
        for _ in range(steps):
            logits, h, looked = self(label, h[0], memory)
            label = logits.argmax(2)
            labels.append(label)
            weights.append(looked)
        return torch.cat(labels).t(), torch.cat(weights)

    def show(self, speech, strings):
        """Where one item's steps look."""
        _, weights = self.write(speech, strings.shape[1] + 1)
        T = speech.frames[0]
        return {"segments": speech.segments[0, :T].tolist(), "weights": weights[:, 0, :T].tolist()}


def edit_distance(a, b):
    """The fewest labels to insert, leave out or replace that make a into b."""
    distances = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, distances[0] = distances[0], i
        for j, y in enumerate(b, 1):
            diagonal, distances[j] = distances[j], min(distances[j] + 1, distances[j - 1] + 1, diagonal + (x != y))
    return distances[-1]


def error_rate(written, strings):
    """Label error rate: edit distance by length of the right string. Can exceed 1."""
    return sum(map(edit_distance, written, strings)) / sum(map(len, strings))
