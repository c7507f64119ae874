"""A gradient multiplied by the same number at every step is gone, or huge, after twenty.

With one recurrent weight w and no nonlinearity, the gradient k steps back is wᵏ. That is all there is to vanishing and
exploding gradients; vanishing.py shows what matrices and tanh change. A computer's numbers end before the gradient
does: the second part counts the steps after which wᵏ is exactly 0 (underflow) or infinite (overflow).

    python -m beyond.decay          0.2 s, and 1 s for the figure

Prints:

    weight 0.5: gradient after 1 steps 0.5, 5 steps 0.03125, 10 steps 0.0009766, 20 steps 9.537e-07
    weight 1.5: gradient after 20 steps 3,325

    where the numbers end
    weight 0.5: exactly 0 after 150 steps in float32, 1,075 steps in float64
    weight 1.5: infinite after 219 steps in float32, 1,751 steps in float64

Source: Bengio, Simard and Frasconi, "Learning long-term dependencies with gradient descent is difficult" (1994).
"""

import numpy as np

from lab import plots, script

STEPS_BACK = [1, 5, 10, 20]
SMALL, LARGE = 0.5, 1.5  # weights
ENDS = {"exactly 0": (SMALL, 0), "infinite": (LARGE, np.inf)}
TYPES = [np.float32, np.float64]

KINDS = {"*": "exact .14g", "weight_1.5_after_20_steps": "exact .0f"}


def gradients(weight, steps):
    """The gradient 0, 1, …, ``steps`` steps back."""
    g = [1.0]
    for _ in range(steps):
        g.append(g[-1] * weight)
    return np.array(g)


def steps_until(end, weight, dtype):
    """How many steps back the gradient, kept in numbers of ``dtype``, has become ``end``."""
    g, steps = dtype(1), 0
    with np.errstate(over="ignore", under="ignore"):
        while g != end:
            g, steps = g * dtype(weight), steps + 1
    return steps


def measure(arguments):
    ends = [
        {"weight": weight, "end": name, "steps": {dtype.__name__: steps_until(end, weight, dtype) for dtype in TYPES}}
        for name, (weight, end) in ENDS.items()
    ]
    return {
        "weight": SMALL,
        "steps_back": STEPS_BACK,
        "gradient": gradients(SMALL, max(STEPS_BACK))[STEPS_BACK],
        "weight_1.5_after_20_steps": gradients(LARGE, 20)[-1],
        "ends": ends,
    }


def tell(found):
    sizes = [f"{steps} steps {g:.4g}" for steps, g in zip(found["steps_back"], found["gradient"], strict=True)]
    yield f"weight {found['weight']}: gradient after {', '.join(sizes)}"
    yield f"weight 1.5: gradient after 20 steps {found['weight_1.5_after_20_steps']:,.0f}"
    yield ""
    yield "where the numbers end"
    for case in found["ends"]:
        counts = ", ".join(f"{count:,} steps in {dtype}" for dtype, count in case["steps"].items())
        yield f"weight {case['weight']}: {case['end']} after {counts}"


def draw(found):
    """Both gradients against the steps back, each to the last float32 number that isn't its end."""
    figure, axes = plots.subplots()
    for case in found["ends"]:
        last = case["steps"]["float32"] - 1
        sizes = [case["weight"] ** steps for steps in range(last + 1)]
        axes.semilogy(sizes, marker="X", markevery=[last])
        text = f"weight {case['weight']}:\n{case['end']} from step {last + 1} on"
        axes.annotate(text, (last, sizes[-1]), xytext=(10, 0), textcoords="offset points", va="center")
    axes.set(xlabel="steps back", ylabel="gradient in float32", title="The same factor at every step: gone, or huge")
    axes.set(xlim=(0, 310), yticks=[10.0**power for power in (-40, -20, 0, 20, 40)])
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
