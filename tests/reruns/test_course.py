"""outputs/COURSE.md holds every place of the course and of the lesson, each with all claims that judge it."""

from reruns import course
from reruns.claims import CLAIMS, outline
from reruns.claims.base import COURSE, LESSON, Claim


def gates_help():
    return "holds", "3 of 4"


def and_much():
    return "cannot be told", "0 or 1"


def so_it_does():
    return "does not hold", "none"


SOME = [
    Claim("Gates help.", (), gates_help, COURSE, ("course 0.3",)),
    Claim("And much.", (), and_much, COURSE, ("course 0.3",)),
    Claim("So it does.", (), so_it_does, LESSON, ("lesson 2",)),
]


def test_a_place_has_a_row_for_each_claim_that_names_it(tmp_path):
    made = course.page(SOME, tmp_path)
    assert f"| course 0.3 | {outline.COURSE_SAYS['course 0.3']} | **holds** () | Gates help. 3 of 4 |\n" in made
    assert "\n|  |  | **cannot be told** () | And much. 0 or 1 |\n" in made
    assert "2 claims: 1 holds, 1 cannot be told." in made and "1 claims: 1 does not hold." in made


def test_the_page_of_all_claims_has_every_place(tmp_path):
    made = course.page(CLAIMS, tmp_path)
    for place, what in (outline.COURSE_SAYS | outline.LESSON_SAYS).items():
        assert f"| {place} | {what} | **" in made
    for place, (what, why) in outline.COURSE_NOT_JUDGED.items():
        assert f"| {place} | {what} | {why} |" in made
