"""All of reverse.py without clipping the gradient, which the post's listing doesn't do: are its figures made so?

The post says of its character models that it clips their gradients, and of those that reverse digits nothing; the
listing that it shows trains neither. All trainings of this family clip at a norm of 1; these do not, and are otherwise
those of reverse.py.

    python -m beyond.reverse_unclipped          not run at full length yet; about 9 min by the time of a step

Sources: Pascanu, Mikolov and Bengio (2013) for clipping; else as seq2seq.py.
"""

from dataclasses import replace
from functools import partial

import reverse
from lab import script

CONFIGS = [replace(config, clip=None) for config in reverse.CONFIGS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
