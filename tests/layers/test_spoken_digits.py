"""How digits sound: durations, silence, noise, and the right path of framewise supervision."""

import math

import pytest
import torch

from layers import spoken_digits
from layers.ctc import collapse
from layers.spoken_digits import FEATURES, LABELS, LANGUAGE, random_strings, speak


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def heard(count, length, seed=0):
    generator = draws(seed)
    strings = random_strings(count, length, generator)
    return speak(strings, generator), strings


def test_every_segment_takes_the_frames_it_may():
    speech, strings = heard(count=50, length=6)
    for T, segments in zip(speech.frames.tolist(), speech.segments.tolist(), strict=True):
        segments = segments[:T]
        assert segments == sorted(segments)
        for segment in range(2 * strings.shape[1] + 1):
            frames = segments.count(segment)
            assert 8 <= frames <= 20 if segment % 2 else frames == 0 or 4 <= frames <= 8


def test_twelve_digits_take_about_200_frames():
    """12 digits of 14 frames and 13 gaps and ends, half of them with 6 frames of silence: 207 on average."""
    speech, _ = heard(count=400, length=12)
    spread = math.sqrt(12 * (13**2 - 1) / 12 + 13 * (0.5 * (6**2 + 2) - 9))  # of one string, about 17 frames
    assert speech.frames.double().mean().item() == pytest.approx(207, abs=4 * spread / math.sqrt(400))


def test_the_right_path_collapses_to_the_string_repeats_included():
    strings = torch.tensor([[3, 3, 3, 5], [1, 1, 2, 2], [4, 3, 4, 4]]).repeat(20, 1)
    speech = speak(strings, draws())
    for path, T, string in zip(speech.path.tolist(), speech.frames, strings.tolist(), strict=True):
        assert collapse(path[:T]) == string


def test_a_digit_glides_between_its_two_sounds_and_silence_is_none(monkeypatch):
    monkeypatch.setattr(spoken_digits, "NOISE", 0.0)
    speech = speak(torch.tensor([[7]]), draws(3))
    sounds = torch.randn(LABELS, 2, FEATURES, generator=draws(LANGUAGE))[7]
    (frames,) = (speech.segments[0] == 1).nonzero(as_tuple=True)
    n = len(frames)
    for i, t in enumerate(frames):
        assert torch.allclose(speech.sound[0, t], sounds[0] + (sounds[1] - sounds[0]) * i / n, atol=1e-6)
    assert (speech.sound[0, : frames[0]] == 0).all() and (speech.sound[0, frames[-1] + 1 :] == 0).all()
