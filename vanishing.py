"""How a gradient shrinks or grows on its way back through 50 steps of a recurrent network.

Each step multiplies it by the slope of the activation, (1 - h²) for tanh, and by W_hᵀ. If W_h is a radius times an
orthogonal matrix, a linear network multiplies its length by exactly the radius, and any radius but 1 is fatal in the
end. The slope of tanh only ever shrinks it: with inputs that drive the units, radius 1 vanishes too, and so does 1.1.
Without inputs the units settle where slope and radius just balance, which is why an untrained network on zeros looks
healthier than it is.

The second part takes a general matrix. There the longest stretch of any vector in one step, the largest singular value
σ, differs from what happens to directions in the long run, the spectral radius. Pascanu, Mikolov and Bengio (2013)
show that σ below 1 is sufficient for the gradient to vanish (where the slope is at most 1), and that σ above 1 is
necessary for it to explode. It isn't sufficient: in half of the cases above 1 the gradient shrinks. The gain printed is
that of the worst direction: the largest singular value of the product of all steps. It is at most σ to the power of
their number.

    python vanishing.py          0.3 s, and 1 s for the figure

Prints, at the end:

    radius 1.10, σ 2.04, tanh, no inputs: 1.9e+00 / 3.1e+00 / 4.4e+00 / 5.8e+00, at most σ^50 = 2.8e+15
    radius 0.49, σ 0.90, linear: 9.0e-01 / 1.5e-03 / 2.4e-08 / 3.5e-16, at most σ^50 = 5.2e-03
    radius 0.49, σ 0.90, tanh  : 7.9e-01 / 2.2e-04 / 1.9e-10 / 1.8e-20, at most σ^50 = 5.2e-03
    σ below 1: 0 of 2 cases have grown after 50 steps
    σ above 1: 4 of 8 cases have grown after 50 steps

All arithmetic is float64, and the smallest number met, 1e-20, is far from where that ends (2e-308): nothing underflows.

Sources: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013), section 2.1;
Hochreiter, "Untersuchungen zu dynamischen neuronalen Netzen" (1991).
"""

import numpy as np

from lab import plots, script

SEED = 0
WIDTH = 64
STEPS = 50
STEPS_BACK = [1, 10, 25, 50]
INPUT = 0.5  # standard deviation of what the inputs add to z
# (radius, activation, inputs): the post's eight cases, in the order in which they draw from one generator.
CASES = [(radius, activation, INPUT) for radius in (0.9, 1.0, 1.1) for activation in ("linear", "tanh")]
CASES += [(2.0, "tanh", INPUT), (1.1, "tanh", 0)]
LARGEST_SINGULAR_VALUE = 0.9  # of a general matrix that must make the gradient vanish

KINDS = {"*": "exact .1e", "steps_back.*": "exact d", "*.radius": "exact .1f"}


def orthogonal(rng, width):
    """A matrix that turns every vector and changes the length of none."""
    return np.linalg.qr(rng.standard_normal((width, width)))[0]


def spectral_radius(W):
    return abs(np.linalg.eigvals(W)).max()


def largest_singular_value(W):
    return np.linalg.norm(W, 2)


def states(W, activation, inputs, rng, steps=STEPS):
    """Run the network from a random state on random inputs of that size: h_1, …, h_T, each (width,)."""
    h = 0.5 * rng.standard_normal(len(W))
    visited = []
    for _ in range(steps):
        z = h @ W + inputs * rng.standard_normal(len(W))  # drawn also if the size is 0
        h = np.tanh(z) if activation == "tanh" else z
        visited.append(h)
    return visited


def gradients(dh, h, W, activation):
    """The gradient 1, 2, …, T steps back, from ``dh``, the one reaching h_T: a vector, or one in each row."""
    for h_t in reversed(h):
        dz = dh * (1 - h_t**2) if activation == "tanh" else dh
        dh = dz @ W.T
        yield dh


def measure(arguments):
    rng = np.random.default_rng(SEED)
    Q = orthogonal(rng, WIDTH)
    every_direction = np.full(WIDTH, 1 / np.sqrt(WIDTH))
    gradient_size = []
    for radius, activation, inputs in CASES:
        W = radius * Q
        h = states(W, activation, inputs, rng)
        sizes = [np.linalg.norm(dh) for dh in gradients(every_direction, h, W, activation)]
        gradient_size.append(case(radius, activation, inputs, sizes=at_steps_back(sizes), every_step=sizes))

    G = rng.standard_normal((WIDTH, WIDTH))
    scaled = [(radius / spectral_radius(G) * G, activation, inputs) for radius, activation, inputs in CASES]
    small = LARGEST_SINGULAR_VALUE / largest_singular_value(G) * G
    general = []
    for W, activation, inputs in [*scaled, (small, "linear", INPUT), (small, "tanh", INPUT)]:
        radius, σ = spectral_radius(W), largest_singular_value(W)
        h = states(W, activation, inputs, rng)
        gains = [largest_singular_value(dh) for dh in gradients(np.eye(WIDTH), h, W, activation)]
        sizes = {"largest_singular_value": σ, "gains": at_steps_back(gains), "every_step": gains}
        general.append(case(radius, activation, inputs, **sizes))
    return {"seeds": [SEED], "steps_back": STEPS_BACK, "gradient_size": gradient_size, "general_matrix": general}


def at_steps_back(sizes):
    """Those at STEPS_BACK of a list that starts one step back."""
    return [sizes[steps - 1] for steps in STEPS_BACK]


def case(radius, activation, inputs, **sizes):
    return {"radius": radius, "activation": activation} | ({} if inputs else {"inputs": False}) | sizes


def tell(found):
    steps_back = found["steps_back"]
    for c in found["gradient_size"]:
        shown = ", ".join(f"{steps} steps {size:.1e}" for steps, size in zip(steps_back, c["sizes"], strict=True))
        yield f"radius {c['radius']}, {name_of(c)}: gradient size after {shown}"
    yield ""
    steps, last = " / ".join(map(str, steps_back)), steps_back[-1]
    yield f"general matrices of largest singular value σ: gain of the worst direction after {steps} steps"
    for c in found["general_matrix"]:
        σ, shown = c["largest_singular_value"], " / ".join(f"{gain:.1e}" for gain in c["gains"])
        yield f"radius {c['radius']:.2f}, σ {σ:.2f}, {name_of(c)}: {shown}, at most σ^{last} = {σ**last:.1e}"
    for side in "below", "above":
        cases = [c for c in found["general_matrix"] if (c["largest_singular_value"] > 1) == (side == "above")]
        grown = sum(c["gains"][-1] > 1 for c in cases)
        yield f"σ {side} 1: {grown} of {len(cases)} cases have grown after {last} steps"


def name_of(c):
    return f"{c['activation']:6}" if c.get("inputs", True) else f"{c['activation']}, no inputs"


def draw(found):
    """Left: the post's eight cases. Right: general matrices, the gain of the worst direction against its bound."""
    figure, (left, right) = plots.subplots(1, 2, size=(11, 4.6))
    steps = range(1, STEPS + 1)
    styles = {}
    for c in found["gradient_size"]:
        label = f"{c['radius']} {name_of(c).strip()}"
        (line,) = left.semilogy(steps, c["every_step"], label=label)
        styles[label] = {"color": line.get_color(), "linestyle": line.get_linestyle()}
    left.set(title="radius × orthogonal: size of the gradient", ylabel="size of the gradient")
    for c in found["general_matrix"]:
        radius, σ = round(c["radius"], 2), c["largest_singular_value"]
        if "inputs" not in c and radius != 1:
            name = f"{radius} {c['activation']}"
            right.semilogy(steps, c["every_step"], label=f"{name}, σ {σ:.2f}", **styles.get(name, {}))
    right.semilogy(steps, LARGEST_SINGULAR_VALUE ** np.array(steps), "k-", linewidth=0.8, label="at most, if σ is 0.9")
    right.set(title="general matrix: gain of the worst direction", ylabel="largest singular value of the product")
    for axes in left, right:
        axes.set(xlabel="steps back", xlim=(1, STEPS))
        plots.label_ends(axes)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
