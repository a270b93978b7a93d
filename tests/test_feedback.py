"""The page that a student gets back says what is theirs, and nothing that is not."""

from html import unescape

from feedback import pages
from handed_in import Submission
from match_students import Person
from page_read import Page
from renew import COURSE, read
from results import course_exercises, results

from eleven_steps.checks.verdict import Verdict

SITE = "https://example.org/course"
EVIL = 'score = 42  # <script src="x.js"></script> & "quotes" `ticks`\ncheck("scores.2", score)'
SOLUTION = 'check("scores.2", 3 * 5 + 4 * 7, record=False)'


def page_of(cells, said, exercises=None, late="", student="ada", site=SITE):
    """Return the page of one student who handed in one notebook, and the name of its file."""
    person = Person(student, "Lovelace, Ada", late=late)
    one = Submission(student, "05_scores.ipynb", tuple(cells), person=person)
    exercises = exercises or [*said]
    missing = Verdict("missing", "no notebook is handed in.")
    judged = [(one, {name: said.get(name, missing) for name in exercises})]
    ((name, content),) = pages([one], list(results(judged, exercises)), site)
    return Page(content), name


def test_answers_stand_there_as_text_and_the_last_that_was_handed_in_counts():
    said = {"scores.2": Verdict("value", "another number is asked for, not `42<b>`.")}
    page, _ = page_of(['score = 1\ncheck("scores.2", score)', EVIL, SOLUTION], said)
    assert [each.rstrip() for each in page.answers] == [EVIL]
    assert not {"script", "b", "img"} & {tag for tag, _ in page.tags}
    assert "not 42<b>." in page.said and "0 of 1 point" in page.said
    assert "Lovelace, Ada" in page.said and "3 * 5" not in page.said


def test_a_page_loads_nothing_and_links_the_notebooks_and_the_step():
    said = {"your_class.1": Verdict("mistake", wrong="No score is masked.", step=6, reached=5)}
    cells = ['check("your_class.1", Mine)']
    page, _ = page_of(cells, said)
    assert page.links == [f"{SITE}/13_your_own_class.html", f"{SITE}/06_mask.html"]
    assert not {"src", "srcset", "data"} & {name for _, given in page.tags for name in given}
    assert "link" not in dict(page.tags) and "5 of 11 points" in page.said
    alone, _ = page_of(cells, said, site="")
    assert "a" not in dict(alone.tags) and "06_mask" in alone.said


def test_no_name_leads_out_of_the_folder_or_to_the_page_of_another():
    said = {"scores.1": Verdict("missing", "none.")}
    students = "a/b", "a_b", "a%2Fb", "..", "a" * 240 + "1", "a" * 240 + "2", "Zo\u00eb"
    names = {page_of([], said, student=student)[1] for student in students}
    assert len(names) == len(students)
    assert all("/" not in name and len(name.encode()) < 240 for name in names)


def test_no_page_has_a_solution_of_the_course_though_the_tags_are_lost():
    right, shown = Verdict("right", "right."), 0
    for path in COURSE.values():
        code = [cell for cell in read(path).cells if cell.cell_type == "code"]
        mine = [name for name, stem in course_exercises().items() if stem == path.stem]
        if not mine:
            continue
        page, _ = page_of([cell.source for cell in code], dict.fromkeys(mine, right))
        solved = [each.source for each in code if "solution" in each.metadata.get("tags", [])]
        assert not [each for each in solved if each in unescape(page.said)], path.stem
        shown += len(page.answers)
    assert shown == len(course_exercises())
