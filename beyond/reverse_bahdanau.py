"""Attention as Bahdanau et al. had it: the encoder reads both ways, and the output layer sees the context as well.

Two things are added to the model with attention in seq2seq.py, and no others. An encoder state becomes the states of
two GRUs side by side, one reading forwards and one backwards, 256 numbers; and the digit is chosen from the decoder's
state and the context together. Lengths 20 and 40 as in reverse.py. The paper also begins the decoder with the backward
GRU's state, and has a maxout layer before the output that reads the last digit too; here the decoder begins with the
forward one's, as without attention.

    python -m beyond.reverse_bahdanau          7 min

Prints, first:

    length 20, Bahdanau    , seed 0: digits right 0.999, whole sequences right 0.996
    length 20, Bahdanau    , seed 1: digits right 0.994, whole sequences right 0.977
    length 40, Bahdanau    , seed 0: digits right 0.972, whole sequences right 0.928
    length 40, Bahdanau    , seed 1: digits right 0.936, whole sequences right 0.836

At length 40, with the learning rate at which reverse.py's attention gets 0.139 and 0.453 of the sequences right, this
one nearly learns the task.

Sources: Bahdanau, Cho and Bengio (2015), section 3 and appendix A.
"""

from functools import partial

import reverse
from lab import script
from reverse import SEEDS
from seq2seq import Config

LENGTHS = [20, 40]
CONFIGS = [Config(length, True, seed, bahdanau=True) for length in LENGTHS for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw_models, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
