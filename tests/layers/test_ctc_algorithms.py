"""The CTC loss, its gradient and its decoders, against the enumeration of all paths, finite differences and torch."""

import itertools
import math

import pytest
import torch

from beyond.ctc import loss_of, uniform
from layers import ctc

TORCH_LOSS = torch.nn.functional.ctc_loss


def random_case(seed, batch=6, time=7, count=4, longest=4, dtype=torch.float64):
    """Logits, targets, frames and lengths of items that all differ; the longest items fill the tensors."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, time, count, generator=generator, dtype=dtype) * 2
    targets = torch.randint(1, count, (batch, longest), generator=generator)
    lengths = torch.randint(0, longest + 1, (batch,), generator=generator)
    frames = torch.randint(2 * longest - 1, time + 1, (batch,), generator=generator)  # enough for any repeats
    frames[0], lengths[-1] = time, longest
    return logits.requires_grad_(), targets, frames, lengths


def gradient_at_logits(logits, targets, frames, lengths):
    losses = ctc.ctc_loss(logits.log_softmax(2), targets, frames, lengths)
    return losses, *torch.autograd.grad(losses.sum(), logits)


def string_of(path):
    """What a path stands for, written without ctc.collapse: a label counts where it differs from the one before."""
    return [b for a, b in itertools.pairwise([0, *path]) if b != a and b != 0]


def probabilities_of_strings(log_probs, string_of=string_of):
    """{string: probability} from all the paths through one item (time, label), whatever its rows sum to."""
    table = {}
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        p = math.exp(sum(log_probs[t, label].item() for t, label in enumerate(path)))
        string = tuple(string_of(path))
        table[string] = table.get(string, 0.0) + p
    return table


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "time", "loss"),
    [
        # each path has probability (1/3)^time
        ([1, 1], 3, math.log(27)),  # a-a alone: 3.295837
        ([1, 1], 4, math.log(81 / 5)),  # a-a doubled in one of its three positions, or a blank at either end: 2.785011
        ([1, 1, 1], 5, math.log(243)),  # a-a-a alone: 5.493061
        ([], 5, math.log(243)),  # ----- alone
        ([1], 2, math.log(9 / 3)),  # aa, a-, -a
    ],
)
def test_uniform_frames(target, time, loss):
    assert loss_of(uniform(time, 3), target) == pytest.approx(loss, rel=1e-12)


def test_paths_are_counted_right():
    """A target of L labels without neighbours alike has C(T + L, 2 L) paths through T frames: uniform frames tell."""
    for L, T in (1, 1), (3, 3), (3, 10), (12, 200):
        count = 5
        loss = loss_of(uniform(T, count), [1 + i % (count - 1) for i in range(L)])
        assert T * math.log(count) - loss == pytest.approx(math.log(math.comb(T + L, 2 * L)), rel=1e-12)


def largest_gap_to_enumeration(string_of=string_of):
    logits, targets, frames, lengths = random_case(seed=3, batch=5, time=6, count=3, longest=3)
    log_probs = logits.detach().log_softmax(2)
    losses = ctc.ctc_loss(log_probs, targets, frames, lengths)
    gaps = []
    for loss, rows, target, T, L in zip(losses, log_probs, targets.tolist(), frames, lengths, strict=True):
        p = probabilities_of_strings(rows[:T], string_of).get(tuple(target[:L]), 0.0)
        gaps.append(abs(math.exp(-loss) - p))
    return max(gaps)


def test_loss_is_the_sum_over_all_paths():
    assert largest_gap_to_enumeration() < 1e-14


def test_the_enumeration_would_notice():
    """Blanks dropped before repeats are merged: another reading of the paths, which must not agree."""
    assert largest_gap_to_enumeration(lambda path: [k for k, _ in itertools.groupby(k for k in path if k)]) > 1e-3


def test_sum_over_paths_holds_for_any_scores():
    """The recursion doesn't need rows that sum to 1; only the loss insists on them."""
    scores = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    log_p, _, _ = ctc.align(scores, torch.tensor([[2, 2]]), torch.tensor([5]), torch.tensor([2]))
    assert log_p.exp().item() == pytest.approx(probabilities_of_strings(scores[0])[2, 2], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_values_and_gradients_are_torchs(seed):
    logits, targets, frames, lengths = random_case(seed, batch=9, time=30, count=6, longest=10)
    losses, gradient = gradient_at_logits(logits, targets, frames, lengths)
    theirs = TORCH_LOSS(logits.log_softmax(2).transpose(0, 1), targets, frames, lengths, reduction="none")
    assert torch.allclose(losses, theirs, rtol=1e-12)
    assert torch.allclose(gradient, torch.autograd.grad(theirs.sum(), logits)[0], rtol=0, atol=1e-12)


def test_single_precision_is_as_good_as_torchs():
    case = random_case(0, batch=4, time=200, count=28, longest=40, dtype=torch.float32)
    exact = gradient_at_logits(case[0].double().detach().requires_grad_(), *case[1:])
    losses, gradient = gradient_at_logits(*case)
    assert losses.dtype == gradient.dtype == torch.float32
    assert torch.allclose(losses.double(), exact[0], rtol=1e-5)
    assert (gradient - exact[1]).abs().max() < 1e-3


def test_long_sequences_do_not_underflow():
    logits = torch.zeros(1, 3000, 5, requires_grad=True)  # every path: 5^-3000
    losses, gradient = gradient_at_logits(logits, torch.tensor([[1, 2, 3]]), torch.tensor([3000]), torch.tensor([3]))
    assert losses.item() == pytest.approx(3000 * math.log(5) - math.log(math.comb(3003, 6)), rel=1e-4)
    assert gradient.isfinite().all()


def test_losses_are_one_an_item_and_divided_by_nothing():
    """torch's "mean" divides each loss by its target's length first (5.4931 and 2.7850 / 2 make 3.4428)."""
    log_probs = uniform(5, 3).expand(2, -1, -1)
    losses = ctc.ctc_loss(log_probs, torch.tensor([[1, 1], [1, 1]]), torch.tensor([5, 4]), torch.tensor([0, 2]))
    assert losses.tolist() == pytest.approx([5 * math.log(3), math.log(81 / 5)])
    assert losses.mean().item() == pytest.approx((5.493061 + 2.785011) / 2, abs=1e-6)


# --- the gradient -----------------------------------------------------------------------------------------------------


def test_gradient_is_that_of_finite_differences():
    logits, *rest = random_case(seed=1, batch=3, time=5, count=3, longest=2)
    assert torch.autograd.gradcheck(lambda logits: ctc.ctc_loss(logits.log_softmax(2), *rest), logits)
    # At the log-probabilities as well, where torch's own loss gives another one: it takes them for logits.
    assert torch.autograd.gradcheck(lambda rows: ctc.CTCLoss.apply(rows, *rest), logits)


def test_gradient_of_every_frame_sums_to_zero_and_is_zero_in_the_padding():
    logits, targets, frames, lengths = random_case(seed=2)
    _, gradient = gradient_at_logits(logits, targets, frames, lengths)
    assert gradient.sum(2).abs().max() < 1e-14
    for item, T in zip(gradient, frames, strict=True):
        assert (item[:T] != 0).all() and (item[T:] == 0).all()


def test_every_path_is_in_one_state_at_each_frame():
    logits, targets, frames, lengths = random_case(seed=4)
    _, occupancy, states = ctc.align(logits.detach().log_softmax(2), targets, frames, lengths)
    within = torch.arange(logits.shape[1]) < frames[:, None]
    assert torch.allclose(occupancy.sum(2), within.double(), atol=1e-12)
    for item, target, L in zip(range(len(lengths)), targets, lengths, strict=True):
        assert states[item, 1 : 2 * L : 2].tolist() == target[:L].tolist()
        assert (states[item, ::2] == ctc.BLANK).all()
        assert (occupancy[item, :, 2 * L + 1 :] == 0).all()


def test_gradient_is_scaled_by_what_comes_from_above():
    logits, *rest = random_case(seed=5)
    weights = torch.randn(len(logits), dtype=torch.float64)
    (weighted,) = torch.autograd.grad((ctc.ctc_loss(logits.log_softmax(2), *rest) * weights).sum(), logits)
    _, plain = gradient_at_logits(logits, *rest)
    assert torch.allclose(weighted, weights[:, None, None] * plain)


# --- items that don't disturb each other ------------------------------------------------------------------------------


def test_an_empty_target_within_a_batch():
    logits, targets, frames, _ = random_case(seed=6, batch=3)
    lengths = torch.tensor([0, 2, 0])
    losses, gradient = gradient_at_logits(logits, targets, frames, lengths)
    for i in 0, 2:  # the only path: blank at every frame
        assert losses[i].item() == pytest.approx(-logits[i, : frames[i]].log_softmax(1)[:, 0].sum().item())
    for i in range(3):
        alone = logits[i : i + 1, : frames[i]].detach().requires_grad_()
        loss, g = gradient_at_logits(alone, targets[i : i + 1, : lengths[i]], frames[i : i + 1], lengths[i : i + 1])
        assert loss.item() == pytest.approx(losses[i].item(), rel=1e-12)
        assert torch.allclose(g[0], gradient[i, : frames[i]], rtol=0, atol=1e-13)


def test_an_impossible_item_says_so_and_leaves_the_others_alone():
    logits, targets, frames, lengths = random_case(seed=7, batch=3)
    good, right = gradient_at_logits(logits, targets, frames, lengths)
    targets[1, :2], frames[1], lengths[1] = 2, 2, 2
    with pytest.warns(UserWarning, match=r"^item 1 has an infinite loss: its target needs 3 frames, it has 2$"):
        losses, gradient = gradient_at_logits(logits, targets, frames, lengths)
    assert losses[1] == math.inf
    assert (gradient[1] == 0).all()
    for i in 0, 2:
        assert losses[i] == good[i] and torch.equal(gradient[i], right[i])


def test_frames_needed_are_labels_and_repeats():
    for target, needed in ([1, 2, 3], 3), ([1, 1], 3), ([1, 1, 1], 5), ([2, 1, 1, 2], 5):
        assert math.isfinite(loss_of(uniform(needed, 4), target))
        with pytest.warns(UserWarning, match=f"needs {needed} frames, it has {needed - 1}"):
            assert loss_of(uniform(needed - 1, 4), target) == math.inf


def test_states_that_cannot_be_reached_make_no_nan():
    """ "aa" in 3 frames has one path, a-a: at every frame most states are impossible."""
    logits = torch.zeros(1, 3, 3, dtype=torch.float64, requires_grad=True)
    _, gradient = gradient_at_logits(logits, torch.tensor([[1, 1]]), torch.tensor([3]), torch.tensor([2]))
    used = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    assert torch.allclose(gradient[0], 1 / 3 - used.double())


def test_labels_of_probability_zero_make_no_nan():
    log_probs = torch.tensor([[[0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]]]).log().requires_grad_()
    targets, frames = torch.tensor([[1, 1], [2, 0]]), torch.tensor([3, 3])
    # a-a has probability 1/2; "b" has none, though three frames are enough for it.
    losses = ctc.ctc_loss(log_probs.expand(2, -1, -1), targets, frames, torch.tensor([2, 1]))
    assert losses.tolist() == pytest.approx([math.log(2), math.inf])
    (gradient,) = torch.autograd.grad(losses[0] + losses[1], log_probs)
    assert gradient.tolist() == [[[0, -1, 0], [-1, 0, 0], [0, -1, 0]]]


def test_padding_is_never_read():
    logits, targets, frames, lengths = random_case(seed=8)
    rows = logits.detach().log_softmax(2)
    losses = ctc.ctc_loss(rows, targets, frames, lengths)
    rows[torch.arange(rows.shape[1]) >= frames[:, None]] = math.nan
    targets[torch.arange(targets.shape[1]) >= lengths[:, None]] = -100
    rows.requires_grad_()
    again = ctc.ctc_loss(rows, targets, frames, lengths)
    assert torch.equal(losses, again)
    assert torch.autograd.grad(again.sum(), rows)[0].isfinite().all()


def test_runs_where_only_deterministic_algorithms_may():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    logits, *rest = random_case(seed=9, dtype=torch.float32)
    here = logits.detach().to(device).requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        losses, gradient = gradient_at_logits(here, *rest)
    finally:
        torch.use_deterministic_algorithms(False)
    expected = gradient_at_logits(logits, *rest)
    assert torch.allclose(losses.cpu(), expected[0]) and torch.allclose(gradient.cpu(), expected[1], atol=1e-5)


def test_loss_is_our_own(monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "ctc_loss", None)
    monkeypatch.setattr(torch, "ctc_loss", None)
    assert gradient_at_logits(*random_case(seed=0))[0].isfinite().all()


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": torch.tensor([[1, 2], [1, 0]])}, "item 1 has label 0 in its target: from 1 to 3 are possible"),
        ({"targets": torch.tensor([[1, -1], [1, 2]])}, "item 0 has label -1 in its target"),
        ({"targets": torch.tensor([[1, 2], [4, 2]])}, "item 1 has label 4 in its target"),
        ({"targets": torch.tensor([1, 2])}, r"targets \(batch, length\), not \(2, 5, 4\) and \(2,\)"),
        ({"targets": torch.tensor([[1, 2]])}, "2 items of log_probs, 1 targets"),
        ({"frames": torch.tensor([5, 6])}, "item 1 has 6 frames: from 1 to the tensor's 5 are possible"),
        ({"frames": torch.tensor([0, 5])}, "item 0 has 0 frames"),
        ({"frames": torch.tensor([5])}, "1 frames"),
        ({"lengths": torch.tensor([3, 1])}, "item 0 has a target of 3 labels: from 0 to the tensor's 2 are possible"),
        ({"lengths": torch.tensor([1, -1])}, "item 1 has a target of -1 labels"),
        ({"log_probs": torch.zeros(2, 5, 4)}, "item 0, frame 0: the probabilities sum to 4, not to 1"),
        ({"log_probs": torch.full((2, 5, 4), 0.25)}, "sum to 5.136, not to 1"),  # probabilities: 4 exp(1/4)
        ({"log_probs": torch.full((2, 5, 4), math.nan)}, "sum to nan, not to 1"),
        ({"log_probs": torch.zeros(5, 4)}, r"log_probs must be \(batch, time, label\)"),
    ],
)
def test_mistakes_are_errors(change, message):
    right = {
        "log_probs": torch.full((2, 5, 4), -math.log(4)),
        "targets": torch.tensor([[1, 2], [3, 3]]),
        "frames": torch.tensor([5, 4]),
        "lengths": torch.tensor([2, 2]),
    }
    assert ctc.ctc_loss(**right).isfinite().all()
    with pytest.raises(ValueError, match=message):
        ctc.ctc_loss(**right | change)


# --- decoding ---------------------------------------------------------------------------------------------------------


def test_collapse_merges_repeats_then_drops_blanks():
    assert ctc.collapse([0, 1, 1, 0, 1, 2, 2, 0, 0]) == [1, 1, 2]
    assert ctc.collapse([1, 1, 1]) == [1]
    assert ctc.collapse([0, 0]) == ctc.collapse([]) == []
    for path in itertools.product(range(3), repeat=6):
        assert ctc.collapse(path) == string_of(path)


def test_best_path_reads_each_items_own_frames():
    paths = torch.tensor([[1, 1, 0, 1, 2], [2, 0, 0, 3, 3]])
    log_probs = torch.nn.functional.one_hot(paths, 4).double().mul(5).log_softmax(2)
    assert ctc.best_path(log_probs, torch.tensor([5, 3])) == [[1, 1, 2], [2]]


def test_the_best_path_need_not_be_of_the_best_string():
    """Frames of blank 0.6, a 0.4: the path -- has 0.36 and is "", but aa, a- and -a together have 0.64."""
    log_probs = torch.tensor([[0.6, 0.4]] * 2, dtype=torch.float64).log()
    assert ctc.best_path(log_probs[None], torch.tensor([2])) == [[]]
    assert ctc.beam_search(log_probs, 2) == ([1], pytest.approx(math.log(0.64)))


@pytest.mark.parametrize("seed", range(10))
def test_a_beam_that_holds_everything_finds_the_most_probable_string(seed):
    log_probs = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log_softmax(1)
    table = probabilities_of_strings(log_probs)
    best = max(table, key=table.get)
    string, log_p = ctc.beam_search(log_probs, width=len(table))
    assert string == list(best) and log_p == pytest.approx(math.log(table[best]))
    assert -log_p == pytest.approx(loss_of(log_probs[None], string))


def test_a_narrow_beam_promises_no_more_than_there_is():
    """Paths that left the beam are missing from its sum, so it can only be too small."""
    log_probs = torch.randn(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).log_softmax(1)
    for width in 1, 2, 8, 64:
        string, log_p = ctc.beam_search(log_probs, width)
        assert log_p <= -loss_of(log_probs[None], string) + 1e-12


def test_beam_with_impossible_labels():
    assert ctc.beam_search(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).log(), 4) == ([1, 1], 0.0)


def test_decoders_refuse_what_is_no_probability_and_frames_that_are_not_there():
    even = torch.full((2, 3, 4), -math.log(4))
    assert ctc.best_path(even, torch.tensor([3, 1])) == [[], []]
    for frames in -1, 0, 4:
        with pytest.raises(ValueError, match=f"item 1 has {frames} frames"):
            ctc.best_path(even, torch.tensor([3, frames]))
    for log_probs, width, message in (
        (even[0].exp(), 5, "the probabilities sum to 5.136, not to 1"),  # 4 exp(1/4)
        (even[0, :0], 5, "item 0 has 0 frames"),
        (even[0], 0, "one prefix at least"),
    ):
        with pytest.raises(ValueError, match=message):
            ctc.beam_search(log_probs, width)
