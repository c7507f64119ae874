"""How a reach is read (beyond/recall.py): the longest delay that a model learned, and whether it could be longer.

That a model learned no longer delay counts only where its budget of steps plainly isn't why: where recall found no sign
that it is, and where no training at that delay had to end before 6,000 steps. At long delays fewer were affordable.
"""

from reruns.claims.base import decided

ENOUGH = 6000  # steps of a training: one that ends with fewer, unsolved, tells nothing


def reach_of(recall: dict, name: str) -> dict:
    """A model's reach, with the fewest steps that its trainings were given at the delay that it didn't learn."""
    reach = recall["reach"][name]
    tried = [run["steps"] for run in recall["runs"] if (run["cell"], run["delay"]) == (name, reach["not_learned"])]
    return reach | {"steps": min(tried, default=0)}


def is_told(reach: dict) -> bool:
    """Whether a longer delay was tried, and the budget isn't why it wasn't learned."""
    return reach["not_learned"] is not None and reach["steps"] >= ENOUGH and not reach["budget_may_be_why"]


def goes_as_far_as(steps: int, reach: dict) -> str:
    """Refuted only by a delay of so many steps or fewer that wasn't learned: what lies between two wasn't tried."""
    far = reach["delay"] >= steps
    return decided(far, not far and is_told(reach) and reach["not_learned"] <= steps)


def goes_further(one: dict, other: dict) -> str:
    """Left open by the one that is behind, where more training may take it further."""
    ahead = one["delay"] > other["delay"]
    return decided(ahead and is_told(other), not ahead and is_told(one))


def alike(one: dict, other: dict) -> str:
    """Whether neither goes more than twice as far as the other. One that may yet go further leaves it open."""
    less, more = sorted((one, other), key=lambda reach: reach["delay"])
    near = more["delay"] <= 2 * less["delay"]
    ended = all(reach["not_learned"] is None or is_told(reach) for reach in (less, more))
    return decided(near and ended, not near and is_told(less))


def told(reach: dict) -> str:
    if reach["not_learned"] is None:
        return f"{reach['delay']:,}"
    few = f", {reach['steps']:,} steps" if reach["steps"] < ENOUGH else ""
    more = "not learned" if is_told(reach) else f"can't be told{few}"
    return f"{reach['delay']:,}, {reach['not_learned']:,}: {more}"


def reaches(recall: dict, *names: str) -> str:
    return "one bit learned over delays up to " + "; ".join(f"{n} {told(reach_of(recall, n))}" for n in names)
