"""Strings of digits as one might hear them: frames of 12 numbers, for who wants to transcribe them.

A digit takes 8 to 20 frames, gliding from one sound of its own to another, each time at its own speed. Half of the gaps
between digits, and half of the ends, are a short silence. There is noise everywhere. 12 digits take some 200 frames.
"""

import math
from collections import namedtuple

import torch

from layers.ctc import BLANK

LABELS = 11  # the blank, which is also silence, and ten digits: digit d is label d + 1
FEATURES = 12  # numbers in a frame of sound
SPOKEN = (8, 20)  # frames that a digit takes, at least and at most
SILENCE = (4, 8)  # frames of silence in half of the gaps between digits, and at half of the ends
NOISE = 0.7  # standard deviation, where that of the digits' own features is 1
LANGUAGE = 0  # seed of what the digits sound like, which all trainings share
ROUND = 20  # frames: batches are padded to a multiple, since cells.py keeps buffers for every length it has seen

# Sound (batch, time, feature); frames (batch,) of each item; the segment of its string that every frame belongs to
# (batch, time): silence, digit, silence, ..., digit, silence, as the states of CTC; one right path (batch, time); and
# which frames aren't padding, by their numbers in the flattened batch.
Speech = namedtuple("Speech", "sound frames segments path within", defaults=[None])


def random_strings(count, length, draws):
    """Labels (count, length)."""
    return torch.randint(1, LABELS, (count, length), generator=draws)


def speak(strings, draws):
    """Speak strings of labels (batch, length)."""
    sounds = torch.randn(LABELS, 2, FEATURES, generator=torch.Generator().manual_seed(LANGUAGE))
    sounds[BLANK] = 0.0
    batch, length = strings.shape
    labels = torch.full((batch, 2 * length + 1), BLANK)  # (batch, segment)
    labels[:, 1::2] = strings
    durations = torch.randint(SILENCE[0], SILENCE[1] + 1, labels.shape, generator=draws)
    durations *= torch.randint(2, labels.shape, generator=draws)
    durations[:, 1::2] = torch.randint(SPOKEN[0], SPOKEN[1] + 1, strings.shape, generator=draws)

    ends = durations.cumsum(1)
    frames = ends[:, -1]
    t = torch.arange(math.ceil(frames.max() / ROUND) * ROUND).expand(batch, -1).contiguous()
    segments = torch.searchsorted(ends, t, right=True).clamp(max=2 * length)  # (batch, time)
    # How far through its segment a frame is, from 0 to below 1: (batch, time).
    position = (t - (ends - durations).gather(1, segments)) / durations.gather(1, segments).clamp(min=1)
    label, glide = labels.gather(1, segments), position[:, :, None]
    sound = sounds[label, 0] * (1 - glide) + sounds[label, 1] * glide  # (batch, time, feature)
    sound += NOISE * torch.randn(sound.shape, generator=draws)
    # The right path of framewise supervision: a digit's label is that of its middle half, so that equal neighbours
    # stay apart.
    path = label.where((position >= 0.25) & (position < 0.75), BLANK)
    return Speech(sound, frames, segments, path, (t < frames[:, None]).flatten().nonzero()[:, 0])
