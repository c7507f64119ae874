"""The hidden Markov model (layers/hidden_markov.py)."""

import itertools
import warnings

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from layers import hidden_markov
from layers.hidden_markov import HMM, Pieces
from plain import hmm as plain

# The textbook example: P(0, 1, 2) = 0.03628, summed by hand over its eight paths in many lecture notes.
TEXTBOOK = HMM(np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]))


def model(states=3, symbols=4, seed=0):
    return hidden_markov.random_model(states, symbols, np.random.default_rng(seed))


def symbols(*lengths, V=4, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(V, size=length) for length in lengths]


def posterior(model, pieces):
    alpha, _ = hidden_markov.forward(model, pieces)
    return hidden_markov.backward(model, pieces, alpha)


def assert_valid(model):
    for table in model.start, model.transition, model.emission:
        np.testing.assert_allclose(table.sum(axis=-1), 1, atol=1e-12)
        assert (table >= 0).all()


# Forward and backward


def test_the_textbook_example():
    # α_1 = (.6 · .5, .4 · .1) = (.3, .04)
    # α_2 = ((.3 · .7 + .04 · .4) · .4, (.3 · .3 + .04 · .6) · .3) = (.0904, .0342)
    # α_3 = ((.0904 · .7 + .0342 · .4) · .1, (.0904 · .3 + .0342 · .6) · .6) = (.007696, .028584), which sum to .03628.
    assert np.exp(hidden_markov.log_probability(TEXTBOOK, Pieces([[0, 1, 2]]))) == pytest.approx(0.03628, rel=1e-14)
    alpha, c = hidden_markov.forward(TEXTBOOK, Pieces([[0, 1, 2]]))
    np.testing.assert_allclose(c, [0.34, 0.1246 / 0.34, 0.03628 / 0.1246], rtol=1e-14)
    np.testing.assert_allclose(alpha[-1], np.array([0.007696, 0.028584]) / 0.03628, rtol=1e-14)
    # Viterbi: symbol 0 in state 0 (.3 against .04), 1 in 0 (.3 · .7 · .4 = .084), 2 in 1 (.084 · .3 · .6 = .01512).
    path, log_p = hidden_markov.viterbi(TEXTBOOK, [0, 1, 2])
    assert path.tolist() == [0, 0, 1] and np.exp(log_p) == pytest.approx(0.01512, rel=1e-14)


@pytest.mark.parametrize("length", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_everything_equals_a_sum_over_all_paths(length, seed):
    m = model(seed=seed)
    (x,) = symbols(length, seed=seed)
    total, gamma, xi = plain.posterior(m, x)
    assert hidden_markov.log_probability(m, Pieces([x])) == pytest.approx(np.log(total), rel=1e-12)
    ours = posterior(m, Pieces([x]))
    np.testing.assert_allclose(ours[0], gamma, rtol=1e-10)
    np.testing.assert_allclose(ours[1], xi, rtol=1e-10, atol=1e-15)
    paths = plain.all_paths(m, x)
    best = max(paths, key=paths.get)
    path, log_p = hidden_markov.viterbi(m, x)
    assert tuple(path) == best and log_p == pytest.approx(np.log(paths[best]), rel=1e-12)


def test_probabilities_of_all_sequences_sum_to_one():
    m = model(3, 3)
    total = sum(np.exp(hidden_markov.log_probability(m, Pieces([x]))) for x in itertools.product(range(3), repeat=4))
    assert total == pytest.approx(1, rel=1e-12)


def test_scaled_and_logarithmic_versions_agree():
    m = model(4, 5, seed=3)
    (x,) = symbols(400, V=5)
    log_p, gamma = plain.log_forward_backward(m, x)
    assert hidden_markov.log_probability(m, Pieces([x])) == pytest.approx(log_p, rel=1e-9)
    ours, _ = posterior(m, Pieces([x]))
    np.testing.assert_allclose(ours, gamma, atol=1e-9)
    np.testing.assert_allclose(ours.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(gamma.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("lengths", [(5, 3, 9, 1, 4), (7, 7, 7), (1,), (1, 1), (0, 4, 0)])
def test_several_sequences_score_as_the_sum(lengths):
    m = model()
    sequences = symbols(*lengths)
    together = hidden_markov.expected_counts(m, Pieces(sequences))
    alone = [hidden_markov.expected_counts(m, Pieces([x])) for x in sequences]
    for i, name in enumerate(("log P", "start", "transitions", "emissions")):
        np.testing.assert_allclose(together[i], sum(one[i] for one in alone), rtol=1e-10, err_msg=name)
    assert together[1].sum() == pytest.approx(sum(length > 0 for length in lengths))
    assert together[2].sum() == pytest.approx(sum(max(0, length - 1) for length in lengths), abs=1e-12)  # none across
    assert together[3].sum() == pytest.approx(sum(lengths))
    np.testing.assert_allclose(together[3].sum(axis=0), np.bincount(np.concatenate(sequences), minlength=4), rtol=1e-12)


def test_pieces_hold_the_symbols_of_each_time():
    pieces = Pieces([[1, 2], [3, 4, 5], [], [6]])
    assert [pieces.x[step].tolist() for step in pieces.steps] == [[3, 1, 6], [4, 2], [5]]
    assert pieces.count == 3
    assert [piece.tolist() for piece in np.split(hidden_markov.cut(np.arange(7), 3).x, [3, 5])] == [
        [0, 3, 6],
        [1, 4],
        [2, 5],
    ]


def test_equals_hmmlearn_in_scores_and_in_one_step():
    m = model(5, 7, seed=2)
    sequences = symbols(40, 25, 1, 60, V=7)
    theirs = CategoricalHMM(5, n_iter=1, tol=-np.inf, init_params="")
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = m.start, m.transition, m.emission
    theirs.n_features = 7
    x, lengths = np.concatenate(sequences)[:, None], [len(s) for s in sequences]
    assert hidden_markov.log_probability(m, Pieces(sequences)) == pytest.approx(theirs.score(x, lengths), rel=1e-12)
    log_p, path = theirs.decode(x[:40])
    ours, ours_log_p = hidden_markov.viterbi(m, sequences[0])
    assert ours.tolist() == path.tolist() and ours_log_p == pytest.approx(log_p, rel=1e-12)
    theirs.fit(x, lengths)
    objective, better = hidden_markov.em_step(m, Pieces(sequences))
    assert objective == pytest.approx(theirs.monitor_.history[0], rel=1e-12)
    np.testing.assert_allclose(better.start, theirs.startprob_, rtol=1e-10)
    np.testing.assert_allclose(better.transition, theirs.transmat_, rtol=1e-10)
    np.testing.assert_allclose(better.emission, theirs.emissionprob_, rtol=1e-10)


def test_a_wrong_count_would_show():
    """The comparisons above notice a change in any entry of any table."""
    m, x = model(2, 3), [0, 2, 1, 1]
    total, *_ = plain.posterior(m, x)
    for table in range(3):
        tables = [m.start.copy(), m.transition.copy(), m.emission.copy()]
        row = np.atleast_2d(tables[table])[0]
        row[0] += 1e-6
        row[1] -= 1e-6
        other = hidden_markov.log_probability(HMM(*tables), Pieces([x]))
        assert other != pytest.approx(np.log(total), rel=1e-9)


# Long, impossible and degenerate sequences


def test_a_long_sequence_stays_finite():
    """50,000 symbols: their probability, some 10⁻²³⁸⁰⁰, is far below what a float can hold; its logarithm isn't."""
    (x,) = symbols(50_000, V=3)
    _, c = hidden_markov.forward(TEXTBOOK, Pieces([x]))
    log_p = np.log(c).sum()
    assert log_p / np.log(10) == pytest.approx(-23_800, rel=0.01)
    # By the law of large numbers a tenth of it has a tenth of the logarithm, to a few percent.
    assert np.log(c[:5_000]).sum() * 10 == pytest.approx(log_p, rel=3e-2)


def test_ten_thousand_steps_with_a_state_that_is_never_reached():
    """State 1 would explain the text a million times better at each step, but nothing leads to it.

    The usual β of that state overflows after some fifty steps, and infinity times 0 is not a number.
    """
    m = HMM(np.array([1.0, 0]), np.eye(2), np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]]))
    log_p, start, transitions, emissions = hidden_markov.expected_counts(m, Pieces([np.ones(10_000, int)]))
    assert log_p == pytest.approx(10_000 * np.log(1e-6), rel=1e-12)
    assert start.tolist() == [1, 0]
    assert transitions.tolist() == [[9999, 0], [0, 0]]
    assert emissions.tolist() == [[0, 10_000], [0, 0]]


def test_zeros_stay_zeros_exactly():
    m = HMM(
        np.array([1.0, 0, 0]),
        np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1.0]]),  # left to right
        np.array([[0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0.5, 0.5]]),
    )
    x = [[0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3], [1, 3]]
    for later, _ in itertools.islice(hidden_markov.baum_welch(m, Pieces(x)), 20):
        for before, after in zip(
            (m.start, m.transition, m.emission), (later.start, later.transition, later.emission), strict=True
        ):
            assert (after[before == 0] == 0).all()
        assert_valid(later)


def test_an_impossible_sequence_is_minus_infinity_and_not_nan():
    m = HMM(np.array([1.0]), np.array([[1.0]]), np.array([[0.5, 0.5, 0]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hidden_markov.log_probability(m, Pieces([[0, 2, 1]])) == -np.inf
        assert hidden_markov.bits_per_character(m, [0, 2, 1]) == np.inf
        assert hidden_markov.viterbi(m, [0, 2, 1])[1] == -np.inf
        with pytest.raises(ValueError, match="impossible"):
            hidden_markov.em_step(m, Pieces([[0, 2, 1]]))


def test_a_pseudo_count_makes_unseen_symbols_possible():
    # One state, "aab" and 3 symbols: with a pseudo-count of 1, (2 + 1, 1 + 1, 0 + 1) / 6.
    _, better = hidden_markov.em_step(model(1, 3), Pieces([[0, 0, 1]]), pseudo_count=1.0)
    np.testing.assert_allclose(better.emission, [[3 / 6, 2 / 6, 1 / 6]], rtol=1e-14)
    assert hidden_markov.log_probability(better, Pieces([[2]])) == pytest.approx(np.log(1 / 6))


def test_constant_text_and_states_that_are_never_visited():
    m = HMM(np.array([1.0, 0, 0]), np.array([[1.0, 0, 0], [0.2, 0.3, 0.5], [0, 0, 1]]), np.full((3, 2), 0.5))
    for later, _ in itertools.islice(hidden_markov.baum_welch(m, Pieces([[0] * 8])), 5):
        assert_valid(later)
        np.testing.assert_array_equal(later.transition[1:], m.transition[1:])
        np.testing.assert_array_equal(later.emission[1:], m.emission[1:])
    for later, _ in itertools.islice(hidden_markov.baum_welch(model(3, 2), Pieces([[0] * 8])), 50):
        assert_valid(later)
    assert hidden_markov.log_probability(later, Pieces([[0] * 8])) == pytest.approx(0, abs=1e-9)


def test_a_state_seen_only_at_the_last_step_keeps_its_row():
    m = HMM(np.array([1.0, 0]), np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[1.0, 0], [0, 1]]))
    _, better = hidden_markov.em_step(m, Pieces([[0, 0, 1]]))  # visited: 0, 0, 1; nothing ever leaves state 1
    np.testing.assert_allclose(better.transition, [[0.5, 0.5], [0.25, 0.75]], rtol=1e-14)
    assert_valid(better)


@pytest.mark.parametrize("sequences", [[], [[]], [[2]]])
def test_sequences_of_no_symbol_and_of_one(sequences):
    m = model()
    log_p, better = hidden_markov.em_step(m, Pieces(sequences))
    assert_valid(better)
    np.testing.assert_array_equal(better.transition, m.transition)  # nothing was followed by anything
    if not any(sequences):
        assert log_p == 0
        np.testing.assert_array_equal(better.emission, m.emission)
    path, log_p = hidden_markov.viterbi(m, sequences[0] if sequences else [])
    assert len(path) == sum(map(len, sequences)) and log_p <= 0


# Baum–Welch


@pytest.mark.parametrize("pseudo_count", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_the_objective_never_falls(seed, pseudo_count):
    """Without pseudo-count the likelihood rises; with one it is the likelihood times the prior that does."""
    rng = np.random.default_rng(seed)
    x = [rng.choice(4, size=60, p=[0.4, 0.3, 0.2, 0.1]) for _ in range(4)]
    *_, (last, objectives) = itertools.islice(hidden_markov.baum_welch(model(4, 4, seed), Pieces(x), pseudo_count), 60)
    objectives = np.array(objectives)
    assert (np.diff(objectives) >= -1e-9 * abs(objectives[:-1])).all()
    prior = pseudo_count * np.log(last.emission).sum() if pseudo_count else 0
    assert objectives[-1] == pytest.approx(hidden_markov.log_probability(last, Pieces(x)) + prior, rel=1e-12)


def test_an_objective_that_falls_is_reported(monkeypatch):
    objectives = iter([-10.0, -9.0, -9.5])
    monkeypatch.setattr(hidden_markov, "em_step", lambda model, pieces, pseudo_count: (next(objectives), model))
    training = hidden_markov.baum_welch(model(), Pieces([[0]]), window=9)
    next(training), next(training)
    with pytest.warns(RuntimeWarning, match="iteration 2 made the objective fall by 0.5"):
        next(training)


def test_it_ends_when_the_last_iterations_gained_a_small_share():
    (x,) = symbols(500)
    *_, (last, objectives) = hidden_markov.baum_welch(model(2), Pieces([x]), window=5, share=0.01)

    def share(n):
        """Of what the first n models gained after the first iteration, the part of the last five iterations."""
        return (objectives[n - 1] - objectives[n - 6]) / (objectives[n - 1] - objectives[1])

    n = len(objectives)
    assert share(n) <= 0.01 and all(share(earlier) > 0.01 for earlier in range(8, n))
    assert objectives[-1] == pytest.approx(hidden_markov.log_probability(last, Pieces([x])), rel=1e-12)


def test_a_plateau_is_not_an_end():
    """Gains shrink to 1e-4 and grow again, as those of two states that part late: a threshold would end there."""
    gains = [3.0, 1e-3, 5e-4, 2e-4, 1e-4, 1e-4, 2e-4, 5e-4, 2e-3, 1e-2, 0.1, 0.3, 0.1, *(1e-7 for _ in range(9))]
    objectives = np.cumsum([-8.0, *gains])
    ends = [n for n in range(1, len(objectives) + 1) if hidden_markov.settled(objectives[:n], 3, 1e-3)]
    assert ends[0] == 17  # three gains of 1e-7 after the last large one, and 14 models up to that
    assert hidden_markov.settled([-9.0, -5.0, -5.0, -5.0], 2, 1e-4)  # nothing to gain after the first iteration
    assert not hidden_markov.settled([-9.0, -5.0, -5.0], 2, 1e-4)  # too few to tell


def test_an_interrupted_training_ends_like_an_uninterrupted_one():
    (x,) = symbols(300)
    straight = list(hidden_markov.baum_welch(model(), Pieces([x]), 0.3, 5, 1e-3))
    for k in 0, 3, len(straight) - 1:  # continued from what was kept after any iteration, the last one included
        kept, objectives = straight[k]
        kept = hidden_markov.from_lists(hidden_markov.to_lists(kept))
        resumed = list(hidden_markov.baum_welch(kept, Pieces([x]), 0.3, 5, 1e-3, before=objectives[:-1]))
        assert resumed[-1][1] == straight[-1][1]
        assert hidden_markov.to_lists(resumed[-1][0]) == hidden_markov.to_lists(straight[-1][0])


@pytest.mark.slow
def test_known_parameters_are_recovered_up_to_the_order_of_states():
    rng = np.random.default_rng(0)
    truth = HMM(
        np.array([0.5, 0.3, 0.2]),
        np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]]),
        np.array([[0.7, 0.2, 0.05, 0.05], [0.05, 0.05, 0.8, 0.1], [0.1, 0.1, 0.1, 0.7]]),
    )
    x = [hidden_markov.sample(truth, 200, rng) for _ in range(200)]
    fits = [list(hidden_markov.baum_welch(model(3, 4, seed), Pieces(x), window=5, share=1e-4))[-1] for seed in range(3)]
    found, objectives = max(fits, key=lambda fit: fit[1][-1])
    assert objectives[-1] >= hidden_markov.log_probability(truth, Pieces(x))
    gaps = {
        order: abs(found.transition[np.ix_(order, order)] - truth.transition).max()
        + abs(found.emission[list(order)] - truth.emission).max()
        for order in itertools.permutations(range(3))
    }
    assert min(gaps.values()) < 0.05 < sorted(gaps.values())[1]


def test_uniform_transitions_make_a_mixture():
    """If a state says nothing about the next one, each symbol is drawn alone, from the mean of the states' rows."""
    m = HMM(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), model().emission)
    (x,) = symbols(50)
    assert hidden_markov.log_probability(m, Pieces([x])) == pytest.approx(
        np.log(m.emission.mean(axis=0)[x]).sum(), rel=1e-12
    )


def test_most_used_states_come_first_and_change_nothing():
    m, pieces = model(4, 4), Pieces(symbols(60, 40))
    *_, emissions = hidden_markov.expected_counts(m, pieces)
    ordered, counts = hidden_markov.most_used_first(m, pieces)
    used = counts.sum(axis=1)
    assert (np.diff(used) <= 0).all() and sorted(used) == sorted(emissions.sum(axis=1))
    log_p, *_, again = hidden_markov.expected_counts(ordered, pieces)
    assert log_p == pytest.approx(hidden_markov.log_probability(m, pieces), rel=1e-12)
    np.testing.assert_allclose(again, counts, rtol=1e-9)


# Samples


def test_a_sample_follows_the_model():
    x = hidden_markov.sample(TEXTBOOK, 20_000, np.random.default_rng(0))
    # The chain spends 4/7 of its time in state 0 (.3 · 4/7 = .4 · 3/7), so symbol 0 has 4/7 · .5 + 3/7 · .1 = 23/70.
    assert (x == 0).mean() == pytest.approx(23 / 70, abs=0.01)
    assert hidden_markov.sample(TEXTBOOK, 0, np.random.default_rng(0)).tolist() == []
    first, second = (hidden_markov.sample(TEXTBOOK, 50, np.random.default_rng(3)).tolist() for _ in range(2))
    assert first == second


# Bad input


@pytest.mark.parametrize(
    "tables, message",
    [
        (([0.6, 0.5], np.eye(2), np.eye(2)), "row 0 of start .* it sums to 1.1"),
        (([0.5, 0.5], [[1, 0], [0.2, 0.7]], np.eye(2)), "row 1 of transition .* it sums to 0.9"),
        (([0.5, 0.5], np.eye(2), [[1, 0], [0.5, 0.6]]), "row 1 of emission .* it sums to 1.1"),
        (([0.5, 0.5], np.eye(2), [[1.5, -0.5], [0.5, 0.5]]), "row 0 of emission .* its smallest is -0.5"),
        (([0.5, 0.5], [[1, np.nan], [0, 1]], np.eye(2)), "row 0 of transition .* it sums to nan"),
        (([1.0], np.eye(2), np.eye(2)), r"start has the shape \(1,\)"),
        (([0.5, 0.5], np.eye(3), np.eye(2)), r"transition has the shape \(3, 3\)"),
    ],
)
def test_tables_that_are_no_probabilities_are_refused(tables, message):
    with pytest.raises(ValueError, match=message):
        HMM(*map(np.array, tables))


def test_negative_symbols_are_refused():
    with pytest.raises(ValueError, match="not -1"):
        Pieces([[0, -1]])


@pytest.mark.parametrize("x", [[0, -1], [0, 2]])
def test_symbols_that_the_model_lacks_are_refused(x):
    m = HMM(np.array([1.0]), np.array([[1.0]]), np.array([[0.5, 0.5]]))
    with pytest.raises(ValueError, match="symbols are numbers from 0"):
        hidden_markov.viterbi(m, x)
    with pytest.raises(ValueError, match="symbols are numbers from 0"):
        hidden_markov.log_probability(m, Pieces([x]))
