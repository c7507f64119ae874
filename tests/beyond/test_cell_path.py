"""The paths of a gradient (beyond/cell_path.py): derived by hand for two steps of one unit, and against gates.py."""

import pytest
import torch
from commands import measured, record_of
from torch import nn

import gates
from beyond import cell_path
from beyond.cell_path import PATHS


def layer(kind, width=1, seed=0):
    torch.manual_seed(seed)
    return kind(1, width).double()


def d_sigmoid(s):
    return s * (1 - s)


def of_lstm(net, x_1, x_2):
    """∂h_2/∂x_1 of one unit along each path; c_0 = h_0 = 0, so c_1 = i_1 g_1."""
    w_i, w_f, w_g, w_o = net.weight_ih_l0[:, 0]
    v_i, v_f, v_g, v_o = net.weight_hh_l0[:, 0]
    b_i, b_f, b_g, b_o = net.bias_ih_l0 + net.bias_hh_l0
    i_1, g_1, o_1 = (w_i * x_1 + b_i).sigmoid(), (w_g * x_1 + b_g).tanh(), (w_o * x_1 + b_o).sigmoid()
    c_1 = i_1 * g_1
    h_1 = o_1 * c_1.tanh()
    i_2, f_2 = (w_i * x_2 + v_i * h_1 + b_i).sigmoid(), (w_f * x_2 + v_f * h_1 + b_f).sigmoid()
    g_2, o_2 = (w_g * x_2 + v_g * h_1 + b_g).tanh(), (w_o * x_2 + v_o * h_1 + b_o).sigmoid()
    c_2 = f_2 * c_1 + i_2 * g_2
    dc_1 = d_sigmoid(i_1) * w_i * g_1 + i_1 * (1 - g_1**2) * w_g
    dh_1 = o_1 * (1 - c_1.tanh() ** 2) * dc_1 + c_1.tanh() * d_sigmoid(o_1) * w_o
    out = o_2 * (1 - c_2.tanh() ** 2)  # ∂h_2/∂c_2
    alone = out * f_2 * dc_1
    with_candidate = alone + out * i_2 * (1 - g_2**2) * v_g * dh_1
    through_gates = out * (d_sigmoid(i_2) * v_i * g_2 + d_sigmoid(f_2) * v_f * c_1) + c_2.tanh() * d_sigmoid(o_2) * v_o
    return with_candidate + through_gates * dh_1, with_candidate, alone


def of_gru(net, x_1, x_2):
    """The same of a GRU: h_1 = (1 - u_1) n_1."""
    w_r, w_u, w_n = net.weight_ih_l0[:, 0]
    v_r, v_u, v_n = net.weight_hh_l0[:, 0]
    (b_r, b_u, b_n), (e_r, e_u, e_n) = net.bias_ih_l0, net.bias_hh_l0
    r_1, u_1 = (w_r * x_1 + b_r + e_r).sigmoid(), (w_u * x_1 + b_u + e_u).sigmoid()
    n_1 = (w_n * x_1 + b_n + r_1 * e_n).tanh()
    h_1 = (1 - u_1) * n_1
    r_2, u_2 = (w_r * x_2 + v_r * h_1 + b_r + e_r).sigmoid(), (w_u * x_2 + v_u * h_1 + b_u + e_u).sigmoid()
    n_2 = (w_n * x_2 + b_n + r_2 * (v_n * h_1 + e_n)).tanh()
    dn_1 = (1 - n_1**2) * (w_n + d_sigmoid(r_1) * w_r * e_n)
    dh_1 = -d_sigmoid(u_1) * w_u * n_1 + (1 - u_1) * dn_1
    alone = u_2 * dh_1
    with_candidate = alone + (1 - u_2) * (1 - n_2**2) * r_2 * v_n * dh_1
    through_gates = d_sigmoid(u_2) * v_u * (h_1 - n_2)
    through_gates += (1 - u_2) * (1 - n_2**2) * d_sigmoid(r_2) * v_r * (v_n * h_1 + e_n)
    return with_candidate + through_gates * dh_1, with_candidate, alone


@pytest.mark.parametrize("kind, by_hand", [(nn.LSTM, of_lstm), (nn.GRU, of_gru)])
def test_the_paths_of_two_steps_are_those_derived_by_hand(kind, by_hand):
    net, x = layer(kind), torch.tensor([0.7, -0.4], dtype=torch.float64)
    with torch.no_grad():
        expected = by_hand(net, *x)
    assert len({f"{value:.6f}" for value in expected}) == 3  # a path that isn't cut would show
    for path, value in zip(PATHS, expected, strict=True):
        found = cell_path.gradient(net, x[:, None, None], path)[1]  # two steps back
        assert found.item() == pytest.approx(value.item(), rel=1e-12)
    full, with_candidate, _ = expected
    gap = cell_path.sizes(net, x[:, None, None])["difference"][1]
    assert gap.item() == pytest.approx(abs((full - with_candidate) / full).item(), rel=1e-9)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_what_is_cut_changes_no_state_and_in_full_it_is_torch_s_own_gradient(kind):
    net, x = layer(kind, width=5), torch.randn(7, 3, 1, dtype=torch.float64)
    for path in PATHS:
        assert torch.allclose(cell_path.last_state(net, x, path), net(x)[0][-1], atol=1e-14)
    inputs = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(net(inputs)[0][-1].sum(), inputs)
    expected = gradient.norm(dim=2).flip(0).median(dim=1).values
    assert torch.allclose(cell_path.sizes(net, x)["full"], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_the_full_gradient_agrees_with_finite_differences(kind):
    net, x = layer(kind, width=4), torch.randn(6, 1, 1, dtype=torch.float64)
    sizes = []
    with torch.no_grad():
        for t in range(len(x)):
            step = torch.zeros_like(x)
            step[t] = 1e-6
            up, down = (cell_path.last_state(net, x + s, "full").sum() for s in (step, -step))
            sizes.insert(0, abs(up - down).item() / 2e-6)
    assert cell_path.sizes(net, x)["full"].tolist() == pytest.approx(sizes, rel=1e-6)


def test_the_cell_alone_is_a_product_of_forget_gates():
    """With no weights on the state the other paths are gone, and gates are σ of the biases: each step one more σ(b)."""
    net = layer(nn.LSTM)
    with torch.no_grad():
        net.weight_hh_l0.zero_()
    gates.set_gate_bias(net, 2.0)
    with torch.no_grad():
        net.weight_ih_l0[1] = 0.0
    sizes = cell_path.sizes(net, torch.zeros(50, 1, 1).double())
    # From the second step back on: the last step's own input reaches the output gate, too, where the cell is not 0.
    ratios = sizes["cell alone"][2:] / sizes["cell alone"][1:-1]
    assert ratios.tolist() == pytest.approx([torch.sigmoid(torch.tensor(2.0)).item()] * 48, rel=1e-6)
    assert torch.allclose(sizes["full"], sizes["cell alone"], rtol=1e-12)


def test_medians_over_five_seeds():
    """Those of gates.py in full, to its last digit; those of the cell alone as the issue states them."""
    found = cell_path.untrained()
    full = measured(gates)[0]["every_step"]
    for name, paths in found.items():
        if name in full:  # gates.py has no bias of 7
            assert paths["full"].tolist() == pytest.approx(full[name], rel=1e-9)
    alone = {bias: found[f"LSTM, forget bias {bias}"]["cell alone"][49].item() for bias in (0, 1, 3)}
    assert {bias: f"{size:.1e}" for bias, size in alone.items()} == {0: "8.1e-15", 1: "1.9e-07", 3: "4.0e-02"}
    for name, paths in found.items():
        if not name.endswith(" 7"):  # with a gate that stays open it is what each input writes that differs
            assert (paths["cell alone"][10:] <= paths["cell alone"][9]).all(), name  # only falls


def test_the_command_measures_what_it_tells(tmp_path, in_this_process, write_corpus, monkeypatch):
    monkeypatch.setattr(cell_path, "TRAINED", {"GRU": ("GRU", None)})
    monkeypatch.setattr(
        cell_path, "UNTRAINED", {name: cell_path.UNTRAINED[name] for name in ("GRU, default", "LSTM, forget bias 3")}
    )
    folder = write_corpus("A cat sat on a mat; the hat was flat.\n" * 20, "That cat ate the bat.\n" * 20)
    saved = record_of(cell_path, tmp_path / "out", "--steps", 2, "--data", folder)
    found, lines = saved["results"], saved["printed"]
    assert [run["seed"] for run in found["runs"]] == [0, 1, 2]
    assert all(run["trained"] != run["untrained"] for run in found["runs"])
    middle = sorted(run["trained"]["full"][49] for run in found["runs"])[1]
    assert found["on_text"]["GRU"]["trained"]["full"][49] == middle
    assert "LSTM, forget bias 3  full      : 8.9e-01 / 4.1e-01 / 4.3e-01 / 4.6e-01" in lines
    assert any(line.startswith("LSTM, forget bias 3  untrained : 8.7e-02,") for line in lines)
    assert (tmp_path / "out" / "cell_path.png").exists()
