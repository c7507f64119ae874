"""Kneser–Ney smoothing in the most obvious way, with dictionaries: the reference for kneser_ney.py."""

from collections import Counter, defaultdict


class KneserNey:
    """All models of a text with contexts of up to ``longest`` - 1 characters; an n-gram is a string."""

    def __init__(self, text: str, V: int, longest: int, discounts):
        self.V = V
        counts = [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for n in range(1, longest + 1)]
        continuations = [Counter(ngram[1:] for ngram in longer) for longer in counts[1:]]
        self.longest = [Table(table, discounts) for table in counts]
        self.below = [Table(table, discounts) for table in continuations]

    def probability(self, history: str, character: str, context: int) -> float:
        """p(character | history), for the model with that context; a shorter history is all that there is."""
        return self._interpolate((self.longest if len(history) == context else self.below), history, character)

    def _interpolate(self, tables, history, character):
        shorter = self._interpolate(self.below, history[1:], character) if history else 1 / self.V
        table = tables[len(history)]
        if history not in table.total:
            return shorter
        count = table.count.get(history + character, 0)
        return (count - table.discount[min(count, 3)] + table.freed[history] * shorter) / table.total[history]

    def probabilities(self, text: str, context: int) -> list[float]:
        """The probability of every character of a text."""
        return [self.probability(text[max(0, i - context) : i], text[i], context) for i in range(len(text))]


class Table:
    """The n-grams of one length with their counts, and the sums that every history needs."""

    def __init__(self, count: Counter, discounts):
        self.count = count
        self.discount = discounts(count.values())
        self.total = defaultdict(int)
        self.freed = defaultdict(float)
        for ngram, occurrences in count.items():
            self.total[ngram[:-1]] += occurrences
            self.freed[ngram[:-1]] += self.discount[min(occurrences, 3)]


def fixed_discounts(counts) -> list[float]:
    return [0, 0.75, 0.75, 0.75]


def modified_discounts(counts) -> list[float]:
    """Chen and Goodman (1998), equation 26; 0.5, 1, 1.5 where it gives no number or one outside its bounds."""
    n = Counter(counts)
    try:
        Y = n[1] / (n[1] + 2 * n[2])
        D1 = 1 - 2 * Y * n[2] / n[1]
        D2 = 2 - 3 * Y * n[3] / n[2]
        D3 = 3 - 4 * Y * n[4] / n[3]
    except ZeroDivisionError:
        return [0, 0.5, 1, 1.5]
    if 0 < D1 <= 1 and 0 < D2 <= 2 and 0 < D3 <= 3:
        return [0, D1, D2, D3]
    return [0, 0.5, 1, 1.5]
