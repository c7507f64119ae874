"""Backpropagation through time by hand, on a network small enough to check with a pencil.

An Elman network reads three inputs and predicts from its last state:

    z_t = x_t W_x + h_{t-1} W_h + b        h_t = tanh(z_t)        y = h_3 · w_out

Backwards, the gradient dh that reaches h_t passes the tanh first and the recurrent weights next:

    dz = dh · (1 - h_t²)        the gradient reaching h_{t-1} is dz W_hᵀ

(tanh = sinh / cosh, so tanh' = (cosh² - sinh²) / cosh² = 1 - tanh²: where h is 0.5, the factor is 0.75.) Every step
used the same W_h, so its gradient is a sum over steps, each giving the product of what went in, h_{t-1}, and dz.

    python bptt.py          0.3 s

Prints, first:

    h_1 = [ 0.537  -0.2913]
    h_2 = [ 0.5691 -0.0673]
    h_3 = [0.082 0.357]
    prediction y = h_3 . w_out = -0.2750
    gradient reaching h_2: [ 0.6201 -0.9208]
    gradient reaching h_1: [ 0.1521 -0.7177]
    gradient reaching h_0: [-0.0448 -0.4374]

Then dy/dW_h, its largest gap to finite differences, and that gap with other epsilons. At epsilon 1e-6 it is rounding
and nothing else: the two values of y are off by some 2⁻⁵⁴, and dividing by 2 epsilon makes a few 1e-11 of that. Its
digits depend on how a processor rounds products and tanh (4.6e-11 where both use fused multiply-add, 3.9e-11 to 5.1e-11
where they don't), so no rerun is held to them. The figures before the gap are exact.

Sources: Elman, "Finding structure in time" (1990); Werbos, "Backpropagation through time" (1990).
"""

import numpy as np

from lab import script

W_X = np.array([[0.5, -0.3]])  # (input, hidden)
W_H = np.array([[0.8, 0.2], [-0.4, 0.6]])  # (hidden, hidden)
B = np.array([0.1, 0.0])
W_OUT = np.array([1.0, -1.0])
X = np.array([[1.0], [0.0], [-1.0]])  # (time, input)
H_0 = np.zeros(2)
EPSILON = 1e-6
OTHER_EPSILONS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]

# The kind of each number, and the digits that the post prints.
KINDS = {
    "*": "exact .4f",
    "largest_gap_to_finite_differences": "rounding .1e",
    "gaps_to_finite_differences.*": "rounding",
}


def forward(x, h_0, W_x, W_h, b):
    """The states h_0, h_1, …, h_T."""
    h = [h_0]  # T + 1 states of (hidden,)
    for x_t in x:
        z = x_t @ W_x + h[-1] @ W_h + b
        h.append(np.tanh(z))
    return h


def backward(x, h, W_h, w_out):
    """For y = h_T · w_out: the gradients reaching h_0, …, h_T, and those of W_x, W_h and b."""
    dW_x, dW_h, db = 0, 0, 0
    dh = [w_out]
    for t in range(len(x), 0, -1):
        dz = dh[0] * (1 - h[t] ** 2)
        dW_x = dW_x + np.outer(x[t - 1], dz)
        dW_h = dW_h + np.outer(h[t - 1], dz)
        db = db + dz
        dh.insert(0, dz @ W_h.T)
    return dh, {"W_x": dW_x, "W_h": dW_h, "b": db}


def central_differences(f, W, epsilon):
    """The gradient of f at W from f's values alone: (f(W + ε) - f(W - ε)) / 2ε for each entry of W."""
    gradient = np.zeros_like(W)
    for index in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[index] = epsilon
        gradient[index] = (f(W + step) - f(W - step)) / (2 * epsilon)
    return gradient


def measure(arguments):
    h = forward(X, H_0, W_X, W_H, B)
    dh, gradients = backward(X, h, W_H, W_OUT)
    dW_h = gradients["W_h"]

    def y(W_h):
        return forward(X, H_0, W_X, W_h, B)[-1] @ W_OUT

    gaps = {epsilon: abs(dW_h - central_differences(y, W_H, epsilon)).max() for epsilon in OTHER_EPSILONS}
    return {
        "h": h[1:],
        "y": y(W_H),
        "gradient_reaching_h": {t: dh[t] for t in (2, 1, 0)},
        "dy_dW_h": dW_h,
        "largest_gap_to_finite_differences": gaps[EPSILON],
        "epsilons": OTHER_EPSILONS,
        "gaps_to_finite_differences": list(gaps.values()),
    }


def tell(found):
    for t, h_t in enumerate(found["h"], start=1):
        yield f"h_{t} = {np.round(h_t, 4)}"
    yield f"prediction y = h_3 . w_out = {found['y']:.4f}"
    for t, dh_t in found["gradient_reaching_h"].items():
        yield f"gradient reaching h_{t}: {np.round(dh_t, 4)}"
    gap = found["largest_gap_to_finite_differences"]
    yield f"dy/dW_h = {np.round(found['dy_dW_h'], 4).tolist()}; largest gap to finite differences {gap:.1e}"
    yield ""
    yield "central differences with other epsilons (cutting off the series costs epsilon², rounding costs 1 / epsilon)"
    for epsilon, gap in zip(found["epsilons"], found["gaps_to_finite_differences"], strict=True):
        yield f"epsilon {epsilon:.0e}: largest gap {gap:.1e}"


if __name__ == "__main__":
    script.run(measure, tell)
