"""What a step of each cell costs (beyond/cells_table.py)."""

import pytest
import torch
from commands import record_of
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from beyond import cells_table

E, H = 64, 256  # what a layer of charlm.py reads, and its units


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return record_of(cells_table, tmp_path_factory.mktemp("cells_table"))["results"]


@pytest.fixture
def layers(found):
    return found["layers"]


def test_a_gru_is_three_plain_cells_and_an_lstm_four(layers):
    """Each gate has the plain cell's parameters: H·E + H·H weights and two biases of H."""
    plain = H * E + H * H + 2 * H
    assert plain == 82_432
    for name, times in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        assert layers[name]["parameters"] == times * plain
        assert layers[name]["relative_to_RNN"] == times


def test_parameters_of_the_transformer_layer(layers):
    """Four H × H matrices of attention, two H × 4H of the feed-forward part, biases, two scales and shifts."""
    assert layers["Transformer, token 1"]["parameters"] == 4 * H * H + 4 * H + 8 * H * H + 5 * H + 4 * H == 789_760


@pytest.mark.parametrize("name, cell", [("RNN", nn.RNNCell), ("GRU", nn.GRUCell), ("LSTM", nn.LSTMCell)])
def test_multiply_adds_are_what_torch_counts_in_a_step(layers, name, cell):
    """Two floating-point operations each."""
    with FlopCounterMode(display=False) as counter:
        cell(E, H)(torch.zeros(1, E))
    assert layers[name]["multiply_adds"] == counter.get_total_flops() / 2


def test_multiply_adds_of_the_transformer_layer_are_what_torch_counts(layers):
    """One token against t keys: the layer's matrices on it, its query with each key, its weights with each value."""
    for t, name in ((1, "Transformer, token 1"), (128, "Transformer, token 128")):
        with FlopCounterMode(display=False) as counter:
            for width_in, width_out in [(H, 3 * H), (H, H), (H, 4 * H), (4 * H, H)]:
                nn.Linear(width_in, width_out)(torch.zeros(1, width_in))
            torch.mm(torch.zeros(1, H), torch.zeros(H, t))
            torch.mm(torch.zeros(1, t), torch.zeros(t, H))
        assert layers[name]["multiply_adds"] == counter.get_total_flops() / 2


def test_bytes_of_state(layers):
    """Four bytes a number: h; h and c; a key and a value of width H for each token."""
    assert [layers[name]["state_bytes"] for name in ("RNN", "GRU", "LSTM")] == [4 * H, 4 * H, 8 * H]
    assert layers["Transformer, token 1"]["state_bytes"] == 8 * H
    assert layers["Transformer, token 1,024"]["state_bytes"] == 1024 * 8 * H


def test_steps_that_wait_for_one_another(layers):
    assert {name: row["sequential_steps"] for name, row in layers.items()} == {
        "RNN": 128,
        "GRU": 128,
        "LSTM": 128,
        "Transformer, token 1": 1,
        "Transformer, token 128": 1,
        "Transformer, token 1,024": 1,
        "Transformer, token 65,536": 1,
    }


def test_attention_overtakes_the_matrices_where_it_multiplies_more(found):
    """12 H² multiply-adds with the matrices, 2 H with each token: even at 6 H = 1,536 tokens."""
    assert found["attention_overtakes_at_token"] == 6 * H + 1
