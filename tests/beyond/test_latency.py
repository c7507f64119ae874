"""From the last frame to the transcript (beyond/latency.py): what is timed gives the whole models' transcripts."""

import pytest
import torch
from commands import record_of

from beyond import latency
from layers.ctc import best_path
from layers.spoken_digits import Speech, random_strings, speak
from layers.transcribers import CTC, Writer


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def spoken(digits, count=1):
    return speak(random_strings(count, digits, seeded()), seeded(1))


def test_what_is_timed_gives_what_the_whole_models_give():
    speech = spoken(4)
    T = speech.frames[0]
    rivals = latency.after_the_last_frame(speech, 4)
    with torch.inference_mode():
        one_way, both_ways, writer = (
            latency.build(model, latency.TIMED_SEED) for model in (latency.OneWay, CTC, Writer)
        )
        last = rivals["CTC, one way"]()
        assert last == one_way(speech).argmax(2)[0, T - 1].item()
        assert rivals["CTC, both ways"]() == best_path(both_ways(speech), speech.frames)[0]
        assert rivals["attention"]() == writer.write(speech, 5)[0][0].tolist()


def test_one_way_knows_nothing_of_the_frames_to_come():
    speech = spoken(3, count=2)
    later = speech.sound.clone()
    later[:, 20:] += 1.0
    with torch.no_grad():
        for model, same in ((latency.OneWay, True), (CTC, False)):
            model = latency.build(model, 0)
            before, after = model(speech), model(speech._replace(sound=later))
            assert torch.equal(before[:, :20], after[:, :20]) == same
            assert not torch.equal(before[:, 20:], after[:, 20:])


def test_labels_are_timed_from_the_end_of_their_digit():
    """Silence, digit, digit, silence: ends at frames 3 and 7. The labels come at frames 4 and 6: 1 later, 1 earlier."""
    segments = torch.tensor([[0, 1, 1, 1, 3, 3, 3, 3, 4]])
    assert latency.ends_of(segments[0]) == [3, 7]
    path = torch.tensor([[0, 0, 0, 0, 5, 5, 7, 0, 0]])
    assert latency.collapsed(path[0]) == [5, 7] and latency.collapsed(torch.tensor([5, 0, 5, 5])) == [5, 5]
    assert latency.written_after(path, [9], segments, [[5, 7]]) == [[1, -1]]
    assert latency.written_after(path, [9], segments, [[5, 8]]) == []  # a wrong string has no times


def test_how_many_frames_are_still_to_come(monkeypatch):
    """One string of three digits in segments 1, 3 and 5, its last frame 9: 9 - 1, 9 - 4 and 9 - 8 frames to come."""
    segments = torch.tensor([[1, 1, 2, 3, 3, 4, 5, 5, 5, 6]])
    monkeypatch.setattr(latency, "speak", lambda strings, draws: Speech(None, torch.tensor([10]), segments, None))
    assert latency.frames_to_wait() == pytest.approx((8 + 5 + 1) / 3)


def test_both_models_have_about_as_many_parameters():
    sizes = [sum(p.numel() for p in model().parameters()) for model in latency.MODELS.values()]
    assert max(sizes) / min(sizes) < 1.05


def test_the_command_measures_what_it_tells(tmp_path, in_this_process, monkeypatch):
    for name, value in {"LENGTHS": [1, 3], "RUNS": 1, "WARM_UP": 0, "TESTED": 3, "SEEDS": range(1)}.items():
        monkeypatch.setattr(latency, name, value)
    saved = record_of(latency, tmp_path, "--steps", 2)
    found, lines = saved["results"], saved["printed"]
    assert list(found["ms"]) == latency.RIVALS and all(len(times) == 2 for times in found["ms"].values())
    assert found["frames"][0] < found["frames"][1] and set(found["growth"]) == set(latency.RIVALS)
    assert [line.split(",")[1].strip() for line in lines[-2:]] == ["one way", "both ways"]
    assert (tmp_path / "latency.png").exists()
