"""Claims about why Transformers won: each figure that a sentence names decides it."""

import pytest
from claim_cases import Case, check, posts, verdict

PATHS = {
    "path_length": {
        "length": 1024,
        "at_token_1": {"GRU": [-215.0, -219.0], "minGRU": [-306.0, -308.0], "attention": [-2.3, -1.4]},
        "steps": {
            "recurrence, step by step": {"operations": 1023},
            "recurrence, by a scan": {"operations": 10},
            "attention": {"operations": 1},
        },
    }
}
CONTEXTS = [16, 1024]
GENERATION = {
    "generation": {
        "batches": [1, 32],
        "batch_1": {
            "rows": {
                "GRU": [{"context": n, "state_bytes": 1024} for n in CONTEXTS],
                "linear attention": [{"context": n, "state_bytes": 263_168} for n in CONTEXTS],
                "cached attention": [{"context": n, "state_bytes": 2048 * n} for n in CONTEXTS],
            },
            "slopes": {"GRU": {"ms": 0.0}, "cached attention": {"ms": 0.9}},
        },
        "batch_32": {"slopes": {"GRU": {"ms": 0.0}, "cached attention": {"ms": 1.0}}},
    }
}
PARALLEL = posts("parallel")
LENGTHS = {
    "parallel_lengths": {
        "lengths": [64, 1024],
        "parts": {
            "input side at once": [{"ms": 0.1}, {"ms": 1.7}],
            "serial part": [{"ms": 1.6}, {"ms": 21.0}],
        },
        "forward": {
            "rows": {"GRU": [{"ms": 1.9}, {"ms": 23.0}]},
            "slopes": {"GRU": 1.0, "attention": 2.0},
            "crossovers": {"attention": {"measured": 2000.0, "fitted": 2500.0}},
        },
        "forward and backward": {"crossovers": {"attention": {"measured": None, "fitted": None}}},
    }
}
SCAN = {
    "scan": {
        "gaps": {name: {"values": 1e-16, "gradients": 1e-16} for name in ("minGRU", "linear attention", "state space")},
        "trained_both_ways": {"weights": 1e-15},
    }
}
SCAN_LENGTHS = {
    "scan_lengths": {
        "lengths": [256, 8192],
        "forward and backward": {
            "ms": {
                "minGRU, scan": [3, 49],
                "GRU": [53, 1883],
                "attention": [3, 1286],
                "fused attention": [3, 568],
            }
        },
    }
}


def models(**bits):
    return {
        "runs": [{"cell": cell, "best_validation_bits_per_char": b} for cell, values in bits.items() for b in values]
    }


LAYERS = {
    "scan_models": models(minGRU=[2.8, 2.81], linear=[4.1, 4.2]),
    "char_models": models(RNN=[2.57, 2.58], GRU=[2.44, 2.46], LSTM=[2.46, 2.47]),
}


def transcribed(**errors):
    return {
        "chance": 0.8,
        "runs": [
            {"model": case.split("_")[0], "order": case.split("_")[1], "error": {"greedy": curve}}
            for case, curve in errors.items()
        ],
    }


ABLE = {
    "CTC_forwards": [0.9, 0.01],
    "attention_forwards": [0.9, 0.1],
    "attention_reversed": [0.9, 0.1],
    "CTC_reversed": [0.9, 0.81, 0.8, 0.8, 0.8],
}
CTC = {"ctc_digits": transcribed(**ABLE)}
CUDA = {"parallel on cuda": {"device": "cuda", "GRU": {"ms": 9.0}, "attention": {"ms": 0.3}}}
CPU = {"parallel": {"device": "cpu", "GRU": {"ms": 9.5}, "attention": {"ms": 1.5}}}


def curve(at, values):
    return ("ctc_digits", ("runs", at, "error", "greedy"), values)


CASES = {
    "attention_is_one_step": Case(
        PATHS,
        named=[
            ("path_length", ("steps", "recurrence, step by step", "operations"), 10),
            ("path_length", ("steps", "attention", "operations"), 1023),
            ("path_length", ("at_token_1", "GRU"), [-2.0]),
            ("path_length", ("at_token_1", "attention"), [-200.0]),
        ],
    ),
    "no_short_cut_for_gradients": Case(
        PATHS,
        named=[
            ("path_length", ("steps", "recurrence, by a scan", "operations"), 1023),
            ("path_length", ("at_token_1", "minGRU"), [-3.0]),
            ("path_length", ("at_token_1", "attention"), [-200.0]),
        ],
    ),
    "state_is_fixed": Case(
        GENERATION,
        named=[
            ("generation", ("batch_1", "rows", "GRU", 1, "state_bytes"), 2048),
            ("generation", ("batch_1", "rows", "cached attention", 1, "state_bytes"), 32_768),
        ],
    ),
    "serial_costs": Case(
        PARALLEL,
        named=[
            ("parallel", ("GRU", "ms"), 1.0),
            ("parallel", ("attention", "ms"), 10.0),
            ("parallel", ("GRU", "GFLOPs"), 1.48),
            ("parallel", ("attention", "GFLOPs"), 0.81),
        ],
    ),
    "six_times_as_long": Case(
        PARALLEL,
        named=[("parallel", ("GRU", "ms"), 3.0), ("parallel", ("attention", "ms"), 0.5)],
        undecided=[("parallel", ("GRU", "ms"), 7.5), ("parallel", ("GRU", "every_run_ms"), [7.0, 9.0])],
    ),
    "large_products_are_faster": Case(
        PARALLEL,
        named=[
            ("parallel", ("attention", "ms"), 20.0),
            ("parallel", ("GRU", "ms"), 0.5),
            ("parallel", ("attention", "GFLOPs"), 0.01),
            ("parallel", ("GRU", "GFLOPs"), 10.0),
        ],
        undecided=[("parallel", ("attention", "ms"), 12.0)],  # 123 GFLOP/s against 85
    ),
    "input_side_is_parallel": Case(
        LENGTHS,
        named=[
            ("parallel_lengths", ("parts", "input side at once", 1, "ms"), 20.0),
            ("parallel_lengths", ("parts", "serial part", 1, "ms"), 1.0),
        ],
        undecided=[("parallel_lengths", ("parts", "input side at once", 1, "ms"), 8.0)],
    ),
    "gap_grows_on_a_gpu": Case(
        CUDA | CPU,
        named=[
            ("parallel on cuda", ("GRU", "ms"), 1.0),
            ("parallel on cuda", ("attention", "ms"), 3.0),
            ("parallel", ("GRU", "ms"), 95.0),
            ("parallel", ("attention", "ms"), 0.1),
        ],
        undecided=[("parallel on cuda", ("GRU", "ms"), 2.4)],  # 8 times against 6.3
    ),
    "cost_is_square": Case(
        LENGTHS,
        named=[
            ("parallel_lengths", ("forward", "slopes", "attention"), 1.0),
            ("parallel_lengths", ("forward", "slopes", "GRU"), 2.0),
        ],
    ),
    "square_catches_up": Case(
        LENGTHS, named=[("parallel_lengths", ("forward", "crossovers", "attention", "measured"), None)]
    ),
    "a_token_stays_cheap": Case(
        GENERATION,
        named=[
            ("generation", (batch, "slopes", rival, "ms"), slope)
            for batch in ("batch_1", "batch_32")
            for rival, slope in (("GRU", 1.0), ("cached attention", 0.0))
        ],
        fails=[("generation", (batch, "slopes", "GRU", "ms"), 1.0) for batch in ("batch_1", "batch_32")],
        undecided=[("generation", ("batch_1", "slopes", "GRU", "ms"), 1.0)],
    ),
    "recurrences_again": Case(
        GENERATION | SCAN,
        named=[
            ("generation", ("batch_1", "rows", "linear attention", 1, "state_bytes"), 10**7),
            *(("scan", ("gaps", name, "gradients"), 1.0) for name in ("linear attention", "state space")),
        ],
    ),
    "scan_is_the_loop": Case(
        SCAN,
        named=[("scan", ("gaps", "minGRU", "values"), 1e-3), ("scan", ("trained_both_ways", "weights"), 1e-3)],
    ),
    "scan_is_faster": Case(
        SCAN_LENGTHS,
        named=[
            ("scan_lengths", ("forward and backward", "ms", "minGRU, scan", 1), 9999),
            ("scan_lengths", ("forward and backward", "ms", "GRU", 0), 1),
            ("scan_lengths", ("forward and backward", "ms", "attention", 1), 1),
            ("scan_lengths", ("forward and backward", "ms", "fused attention", 1), 1),
        ],
    ),
    "bare_layers_pay": Case(
        LAYERS,
        named=[
            (of, ("runs", {"cell": cell}, "best_validation_bits_per_char"), bits)
            for of, cells, bits in (
                ("scan_models", ("minGRU", "linear"), 2.0),
                ("char_models", ("RNN", "GRU", "LSTM"), 5.0),
            )
            for cell in cells
        ],
        fails=[("scan_models", ("runs", {"cell": "minGRU"}, "best_validation_bits_per_char"), 2.0)],
        undecided=[("scan_models", ("runs", 0, "best_validation_bits_per_char"), 2.5)],
    ),
    "alignment_is_monotonic": Case(
        CTC,
        named=[curve(0, [0.9, 0.8]), curve(1, [0.9, 0.8]), curve(2, [0.9, 0.8]), curve(3, [0.9, 0.1])],
        fails=[curve(3, [0.9, 0.1, 0.1])],
        undecided=[curve(3, [0.99, 0.96, 0.93, 0.9, 0.86])],  # it fails, and is still getting better
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


def test_a_model_that_falls_short_by_little_leaves_it_open():
    assert verdict("alignment_is_monotonic", CTC, curve(2, [0.9, 0.21])) == "cannot be told"
