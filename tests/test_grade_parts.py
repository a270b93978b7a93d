"""What crosses the border between the grader and a submission is plain, whole, and not believed."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import grade
import grade_one
import judging
import pytest
import sandbox
import torch
from hypothesis import given
from hypothesis import strategies as st
from sampled import sampled
from served import reply
from sizes import steady
from test_more_exercises import compare, future, needs_a_mask
from wire import PLACE, decode, encode

from eleven_steps.checks import check
from eleven_steps.checks.asking.clauses import Reply
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.questions import QUESTIONS
from eleven_steps.checks.verdict import Verdict
from helpers.attention import MultiHeadAttention


def test_results_are_whole_or_the_old_ones(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), grade.replacing(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_what_is_shut_in_gets_no_module_with_an_answer(tmp_path):
    sandbox.copy_course(tmp_path)
    checks = tmp_path / "eleven_steps" / "checks"
    assert {each.name for each in checks.iterdir()} - {"__pycache__"} == {"__init__.py", "asking"}
    assert not (checks / "__init__.py").read_text()
    ask = [sys.executable, "-P", "-c", "import eleven_steps.checks.asking.questions"]
    subprocess.run(ask, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True)
    assert {each.stem for each in tmp_path.glob("*.py")} == {"shut_in", "served", "wire"}
    assert not list(tmp_path.rglob("*.ipynb"))


class Elsewhere(judging.StandIn):
    """An answer that is asked in lines of JSON, as the grader asks; it keeps the questions."""

    def __init__(self, answer):
        super().__init__(self.there)
        self.answer, self.questions = answer, []

    def there(self, line):
        self.questions.append(line.decode())
        return json.dumps({"reply": self.replies(json.loads(line)["question"])}).encode()

    def replies(self, question):
        return reply(self.answer, question)


def test_what_steers_a_terminal_or_a_spreadsheet_is_spelt_out():
    assert grade.harmless("=1+2\x1b[2J\u202e") == "'=1+2\\x1b[2J\\u202e"
    assert grade.harmless("Zo\u00eb \u05d0") == "Zo\u00eb \u05d0" and grade.harmless(7) == 7


def test_a_stand_in_is_asked_something_new_each_time():
    answers = [Elsewhere(lambda queries, keys: queries @ keys.transpose(2, 3)) for _ in range(2)]
    assert all(check("scores.1", answer, record=False) for answer in answers)
    assert answers[0].questions != answers[1].questions


def test_a_question_holds_no_right_value():
    """Every tensor that travels to an answer is one of its arguments, made by an earlier step."""
    asked = Elsewhere(lambda queries, keys: queries @ keys.transpose(1, 2))
    assert not check("scores.1", asked, record=False)
    growing = Elsewhere(MultiHeadAttention)
    assert check("your_class.1", growing, record=False)
    questions = [json.loads(line)["question"] for line in asked.questions + growing.questions]
    assert {each["question"] for each in questions} <= {*QUESTIONS}
    for each in questions:
        text = json.dumps(each["arguments"])
        assert each["question"] == "call" or "data" not in text, each["question"]


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["Reply", "Case", "torch.float32", "module class"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("value", "returned", "callable", "error", "late", "names", "sizes", "bias")
                + ("dtype", "shape", "data", "type", "tuple", "array", "scalar", "failure", "line")
                + ("made", "of", "biased", "weight", "kind", "building", "number", "ellipsis")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@steady
@given(st.sampled_from(["scores.1", "combine.2", "by_hand.1", "by_hand.7", "your_class.1"]), PLAIN)
def test_nothing_that_comes_back_breaks_the_grader_or_passes(identifier, forged):
    for fact in {"reply": forged}, {"reply": {"value": forged, "callable": True}}, forged:
        line = json.dumps(fact).encode()
        assert judging.judged(identifier, lambda _, line=line: line)["said"]["kind"] != "right"


@steady
@given(st.dictionaries(st.sampled_from(["kind", "line", "passed", *PLACE]), PLAIN))
def test_no_place_changes_more_than_where_and_what_is_wrong(forged):
    whole = {"kind": "value", "line": 3} | dict.fromkeys(PLACE, "\x1b\n" * 999)
    for fact in forged, forged | whole:
        for mistakes in (), ("no_mask",):
            said = Verdict("value", gets="1.", step=6, mistakes=mistakes, reached=5)
            placed = grade_one.with_place(said, fact)
            names = "kind", "passed", "mistake", "step", "reached"
            assert all(getattr(placed, name) == getattr(said, name) for name in names)
            assert len(placed.message) < 9000 and "\x1b" not in placed.message
            assert placed.message.count("\n") <= 4


def crossed(value):
    return decode(json.loads(json.dumps(encode(value))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 0, 4), (2, 3, 4)])
def test_tensors_cross_the_border_whole_and_keep_their_strides(dtype, shape):
    tensor = torch.arange(math.prod(shape)).view(shape).to(dtype).transpose(0, -1 if shape else 0)
    came = crossed(tensor)
    assert came.dtype == dtype and torch.equal(came, tensor)
    assert not tensor.numel() or came.stride() == tensor.stride()


def test_a_claimed_size_takes_no_memory():
    assert decode({"dtype": "torch.float64", "shape": [10**9, 10**9]}).shape == (10**9, 10**9)
    module = decode({"sizes": [6, 6, 10**9, 2], "bias": False, "dropout": 0.0})
    assert (module.context_length, module.mask.numel()) == (10**9, 1)


def test_what_is_written_down_crosses_the_border():
    answer = {"mha": MultiHeadAttention(4, 6, 5, 0.5, 2, qkv_bias=True), "W": [[1, 2.5], [..., 0]]}
    came = crossed(answer | {"shape": ("B", "n"), "odd": object()})
    assert came["W"] == answer["W"] and came["shape"] == ("B", "n")
    assert type(came["odd"]).__name__ == "object"
    sizes = "d_in", "d_out", "context_length", "num_heads"
    assert [getattr(came["mha"], name) for name in sizes] == [4, 6, 5, 2]
    assert came["mha"].W_query.bias is not None and came["mha"].dropout.p == 0.5
    reply = Reply({"W_key.weight": (3, 4), "mask": Failure("ValueError: no", "x.no", 3)}, True)
    assert crossed(reply) == reply


class Box:
    """A sandbox: with one line to every question, or with an answer."""

    def __init__(self, line=b"", answer=None):
        self.line, self.answer = line, answer

    def tell_line(self, line, seconds):
        if self.answer:
            came = reply(self.answer, json.loads(line)["question"])
            self.line = json.dumps({"reply": came}).encode()

    def hear_line(self, seconds, longest):
        assert len(self.line) <= longest
        return self.line


LAYER = {"weight": {"dtype": "torch.float32", "shape": [25_000, 30_000]}, "biased": None}
LISTS = [[]] * 2_400_000


def forging(reply):
    return Box(json.dumps({"reply": {"reply": reply}}).encode())


@sampled("forged", [LISTS, LAYER], ids=["lists", "layer"])
def test_what_is_forged_costs_one_exercise_and_no_more_memory_than_is_allowed(forged):
    judges = judging.Judge(300_000_000)
    try:
        for name in ("practice.columns." + "1" * 5000, "nothing", "practice.columns.3"):
            start = judges.judge(name, Box(), 9.0, asked=False)["start"]
            assert bool(start["given"]) is (name == "practice.columns.3")
        right = Box(answer=lambda q, k: q @ k.transpose(2, 3))
        assert judges.judge("by_hand.7", forging(forged), 9.0)["said"]["kind"] != "right"
        assert judges.judge("scores.1", right, 9.0)["said"]["kind"] == "right"
        used = Path(f"/proc/{judges.process.pid}/status").read_text("utf-8")
        assert int(re.search(r"VmHWM:\s+(\d+)", used)[1]) < 900_000  # kB, torch included
    finally:
        judges.close()


class Asking(Elsewhere):
    """An answer elsewhere that asks back, each time a line to and fro."""

    def replies(self, question):
        if "served" in question:
            self.served.put(question["served"])
        else:
            self.facts, self.served = SimpleQueue(), SimpleQueue()
            Thread(target=self.run, args=(question,), daemon=True).start()
        return self.facts.get(timeout=60)

    def run(self, question):
        self.facts.put(reply(self.answer, question, self.consult))

    def consult(self, wanted):
        self.facts.put({"wants": json.loads(json.dumps(wanted))})
        return self.served.get(timeout=60)


@pytest.mark.parametrize("test", [compare, future, needs_a_mask])
def test_a_test_elsewhere_is_judged_as_here_and_gets_no_class(test):
    answer = Asking(test)
    assert check("the_test.1", answer, record=False) == check("the_test.1", test, record=False)
    asked = " ".join(answer.questions)
    assert "super().__init__()" in asked and "def forward" not in asked


def test_what_a_test_elsewhere_builds_is_bounded():
    sizes = {"sizes": [10**6, 10**6, 9, 0.0, 1], "named": {}, "class": 0}
    with pytest.raises(ValueError, match="sizes up to"):
        judging.serve([[]], sizes)
