"""An LSTM that remembers its first input by construction, so that a failure to remember is the training's."""

import torch

OPEN, SHUT = 10.0, -10.0  # arguments of a gate: σ(10) = 0.99995, σ(-10) = 0.00005


def remember_first(layer, forget_bias=OPEN):
    """Set the weights of an LSTM that reads one number, 0 or 1 at first, noise afterwards.

    Unit 0 takes in the first input and nothing later: its input gate is shut by unit 1, which is 0 before the first
    step and positive after it. Unit 2 holds the input just read. What unit 0 has taken in, g_1 = ±tanh(5), is
    multiplied by σ(forget_bias) a step: by 0.956 in 1,000 steps at +10.
    """
    H = layer.hidden_size
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        W_x, W_h, b = (getattr(layer, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih"))
        i, f, g, o = (slice(gate * H, (gate + 1) * H) for gate in range(4))
        b[i], b[f], b[o] = OPEN, forget_bias, OPEN
        W_x[g][[0, 2]], b[g][[0, 2]] = 10.0, -5.0  # g = tanh(10 x - 5): -1 for 0 and 1 for 1, nearly
        b[g][1] = OPEN  # g = 1 whatever is read
        W_h[i][0, 1] = -40.0  # from the second step on σ(10 - 40 · 0.76) or less
        b[f][2] = SHUT
