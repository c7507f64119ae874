"""Each claim (reruns/claims.py) can hold, can fail and, where it is about seeds, can be undecided."""

import json

from lab.errors import ROOT
from reruns import claims


def judged(function, *found):
    return function(*found)[0]


def sizes(*ends):
    cases = zip((0.9, 1.0, 1.1), ends, strict=True)
    return {"gradient_size": [{"radius": radius, "activation": "linear", "sizes": [end]} for radius, end in cases]}


def test_claims_about_exact_figures_can_fail():
    assert judged(claims.radius_decides, sizes(0.005, 1.0, 117)) == claims.HOLDS
    assert judged(claims.radius_decides, sizes(0.005, 1.0, 1.1)) == claims.FAILS
    assert judged(claims.radius_decides, sizes(0.5, 1.0, 117)) == claims.FAILS
    driven = {"radius": 1.1, "activation": "tanh", "sizes": [3e-5]}
    for free, verdict in ((0.9, claims.HOLDS), (1e-5, claims.FAILS)):
        cases = [driven, driven | {"inputs": False, "sizes": [free]}]
        assert judged(claims.inputs_decide, {"gradient_size": cases}) == verdict
    for ends, verdict in (((1e-11, 1e-5, 0.5), claims.HOLDS), ((1e-11, 0.4, 0.5), claims.FAILS)):
        gates = {f"LSTM, forget bias {b}": [e] for b, e in zip((0, 1, 3), ends, strict=True)}
        assert judged(claims.bias_decides, {"gradient_size": gates}) == verdict
    for bits, verdict in (((5, 4, 3.5, 3.7), claims.HOLDS), ((5, 4, 3.5, 3.4), claims.FAILS)):
        assert judged(claims.add_one_stops, {"context": [0, 1, 2, 3], "bits_per_char": bits}) == verdict
    for best, verdict in ((4, claims.FAILS), (5, claims.HOLDS), (6, claims.HOLDS), (7, claims.FAILS)):
        contexts = list(range(1, 8))
        bits = [2.6 + abs(context - best) / 10 for context in contexts]
        assert judged(claims.kneser_ney_goes_on, {"context": contexts, "bits_per_char": bits}) == verdict


def cells(**bits):
    return {
        "runs": [
            {"cell": cell, "validation_bits_per_char": b, "train_bits_per_char": 2, "best_validation_bits_per_char": b}
            | {"best_step": 1000, "steps": 3000}
            for cell, values in bits.items()
            for b in values
        ]
    }


def test_claims_about_trained_models_need_every_seed():
    assert judged(claims.lstm_leads, cells(RNN=[2.8, 2.9], LSTM=[2.6, 2.7])) == claims.HOLDS
    assert judged(claims.lstm_leads, cells(RNN=[2.8, 2.9], LSTM=[2.6, 2.85])) == claims.UNDECIDED
    assert judged(claims.lstm_leads, cells(RNN=[2.5, 2.4], LSTM=[2.6, 2.7])) == claims.FAILS
    counted = {"bits_per_char": [4.0, 2.6]}
    for bits, verdict in (([2.7, 2.8], claims.HOLDS), ([2.5, 2.8], claims.UNDECIDED), ([2.5, 2.4], claims.FAILS)):
        assert judged(claims.counting_beats_training, counted, cells(GRU=bits)) == verdict
    short = cells(RNN=[2.8, 2.9], GRU=[2.8, 2.8])
    for long, verdict in (
        (cells(RNN=[3.0], GRU=[3.1]), claims.HOLDS),
        (cells(RNN=[3.0], GRU=[2.7]), claims.UNDECIDED),
        (cells(RNN=[2.7], GRU=[2.7]), claims.FAILS),
    ):
        assert judged(claims.longer_is_worse, short, long) == verdict
    assert judged(claims.all_overfit, short) == claims.HOLDS
    for run_ in short["runs"]:
        run_["best_step"] = 3000
    assert judged(claims.all_overfit, short) == claims.FAILS


def hidden(two=3.0, **bits):
    runs = [{"states": int(n[1:]), "validation_bits_per_char": b} for n, values in bits.items() for b in values]
    return {"runs": runs, "add_one": {"bits_per_char": [5.0, 4.0, two]}}


def test_claims_about_hidden_states_can_fail():
    assert judged(claims.one_state_is_counting, hidden(n1=[5.0, 5.0])) == claims.HOLDS
    assert judged(claims.one_state_is_counting, hidden(n1=[5.0, 5.001])) == claims.FAILS
    assert judged(claims.states_help, hidden(n1=[5.0, 5.0], n8=[4.3, 4.4], n64=[3.5, 3.6])) == claims.HOLDS
    assert judged(claims.states_help, hidden(n1=[5.0, 5.0], n8=[4.3, 3.55], n64=[3.5, 3.6])) == claims.UNDECIDED
    assert judged(claims.states_help, hidden(n1=[5.0, 5.0], n8=[4.3, 4.99997], n64=[3.5, 3.6])) == claims.UNDECIDED
    assert judged(claims.states_help, hidden(n1=[5.0, 5.0], n8=[3.3, 3.4], n64=[3.5, 3.6])) == claims.FAILS
    assert judged(claims.states_help, hidden(two=3.7, n1=[5.0, 5.0], n64=[3.5, 3.6])) == claims.FAILS


def reversed_(attention, **shares):
    return [
        {"length": int(length[1:]), "attention": attention, "sequences_right": share}
        for length, values in shares.items()
        for share in values
    ]


def test_claims_about_reversal_can_fail():
    collapsing = reversed_(False, n5=[0.97, 0.98], n10=[0.8, 0.9], n20=[0.1, 0.2], n40=[0.0, 0.0])
    short = reversed_(True, n5=[0.99, 1.0])
    assert judged(claims.bottleneck, {"runs": collapsing}) == claims.HOLDS
    assert judged(claims.bottleneck, {"runs": [run | {"sequences_right": 0.9} for run in collapsing]}) == claims.FAILS
    assert judged(claims.short_is_easy, {"runs": collapsing + short}) == claims.HOLDS
    assert judged(claims.short_is_easy, {"runs": collapsing + reversed_(True, n5=[0.5, 1.0])}) == claims.UNDECIDED
    slow = {"runs": reversed_(False, n40=[0.0, 0.02])}
    for shares, verdict in (([0.92, 0.94], claims.HOLDS), ([0.4, 0.94], claims.UNDECIDED), ([0.0, 0.0], claims.FAILS)):
        assert judged(claims.attention_wins, {"runs": reversed_(True, n40=shares)}, slow) == verdict


def test_claims_about_attention_and_alignment_can_fail():
    def with_digits(*shares):
        return {"runs": [{"attention": True, "digits_right": share} for share in shares]}

    for low, high, verdict in (
        ([0.9, 0.95], [0.5, 0.6], claims.HOLDS),
        ([0.9, 0.95], [0.5, 0.92], claims.UNDECIDED),
        ([0.4, 0.5], [0.5, 0.6], claims.FAILS),
    ):
        assert judged(claims.rate_spoils_attention, with_digits(*low), with_digits(*high), with_digits(0.2)) == verdict

    def copied(reversing, copying):
        runs = [
            {"attention": False, "task": task, "length": 3, "digits_right": sum(places) / 3}
            for task, places in (("reverse", reversing), ("copy", copying))
        ]
        return {"runs": runs, "details": [{"right_by_position": places} for places in (reversing, copying)]}

    # What a reversal writes first was read last.
    easy, hard = [0.9, 0.8, 0.2], [0.6, 0.5, 0.1]
    assert judged(claims.last_read_is_easy, copied(easy, hard[::-1])) == claims.HOLDS
    assert judged(claims.last_read_is_easy, copied(easy, hard)) == claims.FAILS
    assert judged(claims.last_read_is_easy, copied(easy[::-1], hard[::-1])) == claims.FAILS
    assert judged(claims.reversing_is_easier, copied(easy, hard)) == claims.HOLDS
    assert judged(claims.reversing_is_easier, copied(hard, easy)) == claims.FAILS

    def transcribed(**errors):
        runs = [
            {"model": case.split("_")[0], "order": case.split("_")[1], "error": {"greedy": [0.9, error]}}
            for case, error in errors.items()
        ]
        return {"runs": runs, "chance": 0.8}

    able = {"CTC_forwards": 0.01, "attention_forwards": 0.1, "attention_reversed": 0.1}
    assert judged(claims.alignment_is_monotonic, transcribed(**able, CTC_reversed=0.8)) == claims.HOLDS
    assert judged(claims.alignment_is_monotonic, transcribed(**able, CTC_reversed=0.1)) == claims.FAILS
    lame = able | {"attention_reversed": 0.3}
    assert judged(claims.alignment_is_monotonic, transcribed(**lame, CTC_reversed=0.8)) == claims.UNDECIDED


def test_claims_about_length_and_memory_can_fail():
    def crossing(at):
        found = {"crossovers": {"attention": {"measured": at, "fitted": at}}}
        return {"lengths": [64, 8192], "forward": found, "forward and backward": found}

    assert judged(claims.square_catches_up, crossing(5000.0)) == claims.HOLDS
    assert judged(claims.square_catches_up, crossing(None)) == claims.FAILS

    def growing(gru, cached):
        slopes = {"slopes": {"GRU": {"ms": gru}, "cached attention": {"ms": cached}}}
        return {"batches": [1], "batch_1": slopes}

    assert judged(claims.a_token_stays_cheap, growing(0.01, 0.9)) == claims.HOLDS
    assert judged(claims.a_token_stays_cheap, growing(0.9, 0.9)) == claims.FAILS
    assert judged(claims.a_token_stays_cheap, growing(0.01, 0.1)) == claims.FAILS

    def arriving(operations, scan, attention):
        steps = {"recurrence, by a scan": {"operations": operations}}
        return {"length": 1024, "at_token_1": {"minGRU": [scan], "attention": [attention]}, "steps": steps}

    assert judged(claims.no_short_cut_for_gradients, arriving(10, -300.0, -2.0)) == claims.HOLDS
    assert judged(claims.no_short_cut_for_gradients, arriving(10, -3.0, -2.0)) == claims.FAILS
    assert judged(claims.no_short_cut_for_gradients, arriving(1023, -300.0, -2.0)) == claims.FAILS

    def remembering(rnn, gru, lstm):
        drops = {"RNN": rnn, "GRU": gru} | dict.fromkeys(["LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3"], lstm)
        return {"drops_to_chance_at": drops}

    assert judged(claims.gates_remember, remembering(20, 640, None)) == claims.HOLDS
    assert judged(claims.gates_remember, remembering(20, 80, None)) == claims.FAILS
    assert judged(claims.gates_remember, remembering(None, 80, 160)) == claims.FAILS


def test_claims_about_scans_can_fail():
    def apart_by(gap, weights):
        return {"gaps": {"minGRU": {"values": gap, "gradients": 1e-15}}, "trained_both_ways": {"weights": weights}}

    assert judged(claims.scan_is_the_loop, apart_by(1e-15, 1e-15)) == claims.HOLDS
    assert judged(claims.scan_is_the_loop, apart_by(1e-6, 1e-15)) == claims.FAILS
    assert judged(claims.scan_is_the_loop, apart_by(1e-15, 1e-6)) == claims.FAILS

    def taking(scan, gru=(10, 100), attention=(1, 90)):
        ms = {"minGRU, scan": scan, "GRU": gru, "attention": attention, "fused attention": attention}
        return {"lengths": [256, 8192], "forward and backward": {"ms": ms}}

    assert judged(claims.scan_is_faster, taking((5, 80))) == claims.HOLDS
    assert judged(claims.scan_is_faster, taking((11, 80))) == claims.FAILS
    assert judged(claims.scan_is_faster, taking((5, 95))) == claims.FAILS

    recurrent = cells(GRU=[2.5, 2.6])
    for bits, verdict in (([2.7, 2.8], claims.HOLDS), ([2.7, 2.55], claims.UNDECIDED), ([2.4, 2.45], claims.FAILS)):
        assert judged(claims.parallel_pays, cells(minGRU=bits), recurrent) == verdict


def test_the_claim_about_both_directions_can_fail():
    def tagged(forward, near, far):
        settings = [("forward", 5, forward), ("both", 5, near), ("both", 80, far)]
        runs = [
            {"task": "what comes after", "cell": "RNN", "reader": reader, "distance": distance, "accuracy": share}
            for reader, distance, share in settings
        ]
        return {"ceiling": {"what comes after": {"forward": 0.5}}, "runs": runs}

    assert judged(claims.both_ways_cure_blindness, tagged(0.51, 1.0, 0.49)) == claims.HOLDS
    assert judged(claims.both_ways_cure_blindness, tagged(0.6, 1.0, 0.49)) == claims.UNDECIDED  # better than it can be
    assert judged(claims.both_ways_cure_blindness, tagged(0.51, 0.5, 0.49)) == claims.FAILS
    assert judged(claims.both_ways_cure_blindness, tagged(0.51, 1.0, 0.95)) == claims.FAILS


def test_a_claim_judges_the_post_s_own_figures_too():
    """The post's Kneser–Ney, 2.594 bits, is below each of its models: 2.690 is the lowest (its table). Not so here."""
    published = json.loads((ROOT / "data" / "published.json").read_text(encoding="utf-8"))
    verdicts = {claim.judge.__name__: claim.on_published(published) for claim in claims.CLAIMS}
    assert verdicts["counting_beats_training"][0] == claims.HOLDS
    assert verdicts["one_state_is_counting"] is None  # the post has no such model
    published["kneser_ney"]["bits_per_char"] = [2.7]
    (counting,) = (claim for claim in claims.CLAIMS if claim.judge.__name__ == "counting_beats_training")
    assert counting.on_published(published)[0] == claims.FAILS and counting.reads_the_text(published)


def test_a_claim_without_its_outputs_cannot_be_told(tmp_path):
    for claim in claims.CLAIMS:
        verdict, why = claim.verdict(tmp_path)
        assert verdict == claims.UNDECIDED and "run" in why
