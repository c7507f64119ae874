"""How a reach is read (beyond/recall.py): the longest delay that a model learned, and whether it could be longer.

That a model learned no longer delay counts only where its budget of steps plainly isn't why.
"""

from reruns.claims.base import decided


def is_told(reach: dict) -> bool:
    """Whether a longer delay was tried, and the budget isn't why it wasn't learned."""
    return reach["not_learned"] is not None and not reach["budget_may_be_why"]


def goes_as_far_as(steps: int, reach: dict) -> str:
    far = reach["delay"] >= steps
    return decided(far, not far and is_told(reach))


def told(reach: dict) -> str:
    if reach["not_learned"] is None:
        return f"{reach['delay']:,}"
    more = "can't be told" if reach["budget_may_be_why"] else "not learned"
    return f"{reach['delay']:,}, {reach['not_learned']:,}: {more}"


def reaches(recall: dict, *names: str) -> str:
    return "one bit learned over delays up to " + "; ".join(f"{n} {told(recall['reach'][n])}" for n in names)
