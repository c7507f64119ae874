"""The next token costs a recurrent layer the same after 16 tokens as after 16,384; attention pays for all of them.

One layer of width 256 has read a context of N tokens, for one sequence and for 32 side by side. What does it take to
read one more and give its output?

    GRU                  one update of its state
    linear attention     the same: a sum of outer products k vᵀ takes the new one in, and is multiplied by q
    cached attention     the new token's q meets the keys of all N + 1 tokens, its weights their values; keys and
                         values of the context are kept from before
    uncached attention   everything again, for all N + 1 tokens, as where only the tokens are kept

What a rival has to keep between tokens is its state; where nothing is cached, that is the input of all tokens.
Operations are those of matrix products, a multiplication and an addition counting as two. Cached and uncached attention
are the same function, computed by different routines, and give the same output up to rounding.

    python -m beyond.generation          26 s
    python -m beyond.generation --device cuda

Prints, at the end:

    growing with the context to the power of: time, bytes of state, operations
    batch  1, GRU               : -0.10, 0.00, 0.00: flat, measured up to 16,384 tokens
    batch  1, linear attention  : -0.05, 0.00, 0.00: flat, measured up to 16,384 tokens
    batch  1, cached attention  : 0.67, 1.00, 0.90: growing, measured up to 16,384 tokens
    batch  1, uncached attention: 1.46, 1.00, 1.70: growing, measured up to 4,096 tokens
    batch 32, GRU               : -0.04, 0.00, 0.00: flat, measured up to 16,384 tokens
    batch 32, linear attention  : -0.02, 0.00, 0.00: flat, measured up to 16,384 tokens
    batch 32, cached attention  : 1.05, 1.00, 0.90: growing, measured up to 16,384 tokens
    batch 32, uncached attention: 1.44, 1.00, 1.41: growing, measured up to 1,024 tokens
    cached and uncached attention give the same output, at most 1.5e-06 of the largest number apart

Times are medians over 20 tokens. The rivals take turns of five tokens. Two things aren't counted: the first token of a
turn, which finds in the processor's cache what another rival left there, and the whole first turn. All run in inference
mode, with room for keys and values allocated before. Uncached attention stops where a token would take more than 50
GFLOPs. A slope is the power of N that something grows with over a rival's last five contexts: 0 is flat, 1 is
proportional.

Sources: Katharopoulos et al., "Transformers are RNNs" (2020), for linear attention; Shazeer, "Fast Transformer
decoding" (2019), for what reading the cache costs.
"""

# Longer than most scripts: each of four rivals has a state of its own to build, to time and to count.

from itertools import pairwise, zip_longest
from statistics import median

import torch
from torch.nn.functional import softmax

from beyond.parallel_lengths import fused_attention
from lab import devices, plots, script, timing
from layers.scans import LinearAttention
from parallel import attention_flops, gru_flops

CONTEXTS = [2**n for n in range(4, 15)]  # tokens
BATCHES = [1, 32]  # sequences
WIDTH = 256
SEED = 0
TURNS, TOKENS = 5, 5  # turns of each rival, the first of them a warm-up; tokens in a turn, the first not counted
MOST = 50e9  # operations that uncached attention may take for a token
READ_AT_ONCE = 1024  # tokens, so that the context's intermediate results don't fill the memory
LAST = 5  # contexts that a slope is fitted to
FLAT = 0.2  # a slope below this is called flat: twice the context takes less than 15% more
GROWING = ["ms", "state_bytes", "MFLOPs"]
RIVALS = ["GRU", "linear attention", "cached attention", "uncached attention"]

KINDS = {"*": "exact", "device": "timing", "*.ms": "timing", "*.every_token_ms.*": "timing", "*.slopes.*": "timing"}
KINDS |= {"largest_gap": "rounding"}


def cached_attention(x, K, V, n, W_q, W_k, W_v):
    """The output at token n, x (batch, width). K and V (batch, room, width) hold n tokens and take in another."""
    K[:, n], V[:, n] = x @ W_k, x @ W_v
    scores = (x @ W_q)[:, None] @ K[:, : n + 1].mT / WIDTH**0.5  # (batch, 1, n + 1): nothing lies ahead, so no mask
    return (softmax(scores, dim=-1) @ V[:, : n + 1])[:, 0]  # (batch, width)


def flops(n):
    """Those of the token after n others, for one sequence."""
    d = WIDTH
    return {
        "GRU": gru_flops(1, d),
        "linear attention": 3 * 2 * d**2 + 2 * 2 * d * (d + 1) + 2 * d + 2 * (d + 1),  # d + 1: values, and a 1 beside
        "cached attention": 3 * 2 * d**2 + 2 * 2 * (n + 1) * d,
        "uncached attention": attention_flops(n + 1, d),
    }


def read(layer, x, state=None):
    """A layer's state after the tokens x (time, batch, width), which follow those that the given state is of."""
    for part in x.split(READ_AT_ONCE):
        _, state = layer(part, state)
    return state


def build(x, layers, states, W):
    """Each rival as (a function that gives the last token's output, bytes of state).

    x holds the context and the new token (time, batch, width); states are those of the layers after the context.
    """
    context, new = x[:-1], x[-1:]
    n, batch = context.shape[:2]
    K, V = (x.new_empty(batch, n + 1, WIDTH) for _ in range(2))
    K[:, :n], V[:, :n] = (context.transpose(0, 1) @ W[i] for i in (1, 2))
    everything = x.transpose(0, 1).contiguous()  # (batch, time, width)
    rivals = {name: (lambda name=name: layers[name](new, states[name])[0][0], states[name].nbytes) for name in layers}
    rivals["cached attention"] = (lambda: cached_attention(new[0], K, V, n, *W), K[:, :n].nbytes + V[:, :n].nbytes)
    if batch * flops(n)["uncached attention"] <= MOST:
        rivals["uncached attention"] = (lambda: fused_attention(everything, *W)[:, -1], context.nbytes)
    return rivals


def token_times(rivals, device):
    """ms of single tokens of each rival."""
    ms = {name: [] for name in rivals}
    for turn in range(1 + TURNS):
        for name, make_token in rivals.items():
            times = [1000 * timing.seconds(make_token, device) for _ in range(TOKENS)]
            ms[name] += times[1:] if turn else []
    return ms


@torch.inference_mode()
def after_contexts(batch, device):
    """A row for every rival and context, and how far apart cached and uncached attention are at most, relatively."""
    torch.manual_seed(SEED)
    layers = {"GRU": torch.nn.GRU(WIDTH, WIDTH), "linear attention": LinearAttention(WIDTH, WIDTH)}
    layers = {name: layer.to(device) for name, layer in layers.items()}
    W = (torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5).to(device)
    x = torch.randn(max(CONTEXTS) + 1, batch, WIDTH).to(device)  # (time, batch, width)
    rows, gaps, states = {name: [] for name in RIVALS}, [], {}
    for before, n in pairwise([0, *CONTEXTS]):
        states = {name: read(layer, x[before:n], states.get(name)) for name, layer in layers.items()}
        rivals = build(x[: n + 1], layers, states, W)
        times = token_times({name: make_token for name, (make_token, _) in rivals.items()}, device)
        for name, (_, state_bytes) in rivals.items():
            row = {"context": n, "ms": median(times[name]), "every_token_ms": times[name]}
            rows[name].append(row | {"state_bytes": state_bytes, "MFLOPs": batch * flops(n)[name] / 1e6})
        if "uncached attention" in rivals:
            cached, uncached = (rivals[name][0]() for name in ("cached attention", "uncached attention"))
            gaps.append(((cached - uncached).abs().max() / uncached.abs().max()).item())
    return rows, max(gaps)


def growth(rows):
    """The power of the context that each of a rival's costs grows with at the end."""
    contexts = [row["context"] for row in rows[-LAST:]]
    return {what: timing.slope(contexts, [row[what] for row in rows[-LAST:]]) for what in GROWING}


def options(parser):
    parser.add_device()


def measure(arguments):
    device = devices.trusted(arguments.device)
    rows, gaps = zip(*(after_contexts(batch, device) for batch in BATCHES), strict=True)
    found = {"seeds": [SEED], "device": str(device), "width": WIDTH, "batches": BATCHES}
    for batch, of in zip(BATCHES, rows, strict=True):
        found[f"batch_{batch}"] = {"rows": of, "slopes": {name: growth(of[name]) for name in RIVALS}}
    return found | {"largest_gap": max(gaps)}


def tell(found):
    batches = {batch: found[f"batch_{batch}"] for batch in found["batches"]}
    for batch, of in batches.items():
        yield f"ms for the next token, batch {batch}, float32, {found['device']}"
        yield from table(of["rows"], "ms", ".3f")
        runs = [row["every_token_ms"] for rows in of["rows"].values() for row in rows]
        spreads = [max(run) / min(run) for run in runs]
        yield f"slowest token / fastest: {median(spreads):.2f} (median), {max(spreads):.2f} at most"
        yield ""
    first = found["batches"][0]
    yield f"bytes of state, and 10⁶ operations for the next token, batch {first}"
    yield from table(batches[first]["rows"], "state_bytes", ",")
    yield from table(batches[first]["rows"], "MFLOPs", ".1f")
    yield ""
    yield "growing with the context to the power of: time, bytes of state, operations"
    for batch, of in batches.items():
        for name, slopes in of["slopes"].items():
            shown = ", ".join(f"{slope:z.2f}" for slope in slopes.values())
            verdict, last = "flat" if slopes["ms"] < FLAT else "growing", of["rows"][name][-1]["context"]
            yield f"batch {batch:2}, {name:18}: {shown}: {verdict}, measured up to {last:,} tokens"
    gap = found["largest_gap"]
    yield f"cached and uncached attention give the same output, at most {gap:.1e} of the largest number apart"


def table(rows, what, form):
    """A line for each context and a column for each rival, "-" where one isn't measured."""
    yield f"{'tokens':>8}" + "".join(f"{name:>20}" for name in rows)
    columns = [[format(row[what], form) for row in column] for column in rows.values()]
    for n, *cells in zip_longest([row["context"] for row in rows["GRU"]], *columns, fillvalue="-"):
        yield f"{n:8,}" + "".join(f"{cell:>20}" for cell in cells)


def draw(found):
    """Time and state against context, on logarithmic scales."""
    figure, (time, state) = plots.subplots(1, 2, size=(11, 4.6))
    for number, name in enumerate(RIVALS):
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "markersize": 4}
        for batch, dashes in zip(found["batches"], ("-", ":"), strict=True):
            rows = found[f"batch_{batch}"]["rows"][name]
            contexts = [row["context"] for row in rows]
            time.loglog(contexts, [row["ms"] for row in rows], dashes, label=f"{name}, batch {batch}", **style)
            if batch == found["batches"][0]:
                state.loglog(contexts, [row["state_bytes"] for row in rows], dashes, label=name, **style)
    time.set(xlabel="context (tokens)", ylabel="ms for the next token", title="What one more token takes …")
    state.set(xlabel="context (tokens)", ylabel="bytes, one sequence", title="… and what is kept for it")
    for axes in time, state:
        plots.label_ends(axes)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
