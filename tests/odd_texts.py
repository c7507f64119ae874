"""Texts with which counting goes wrong first: of one character, without repetition, with counts that are all equal."""

CAT = "the cat sat on the mat. " * 30
TEXTS = [
    "a",
    "ab",
    "aaaa",
    "aaaaaa",
    "ab" * 20,
    "abcd" * 50,
    "abcde",
    CAT,
    "ab" * 500 + "ac",
    "xq" * 50 + "abcacb",
]
