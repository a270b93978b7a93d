"""Judge answers in a separate process, so that a forged answer costs only one exercise.

Only this process reads the output of a sandbox, within a limit of memory and time. The grader just
passes lines on. If anything odd happens, the judging process is ended and a new one is started.
"""

import contextlib
import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from sandbox import NOISE, Lost, Sandbox, work
from served import MOST
from wire import decode, encode, encode_tensor

from eleven_steps.checks import check
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt
from eleven_steps.checks.asking.questions import defined
from eleven_steps.checks.verdict import Verdict

START = 120  # seconds of work after which a process that is not ready counts as lost
JUDGING = 60.0  # seconds of work between two questions; an honest answer takes a twentieth
SHARED = 20  # wall time to wait, as a multiple of the limit, because processors may be shared
LONGEST_REPLY = 10_000_000  # bytes; the gradients of an honest class have a twentieth
LOOK = 1.0  # seconds between two readings of its processor time
QUESTION, END = b"?", b"."  # how a line from the judge begins
ODD = "this cannot be looked at."
MOST_SERVED = 5000  # most questions that one answer may send back
WIDEST = 4096  # size of a class that is built for a learner's test
TEXTS = "kind", "text", "wrong", "gets", "expected", "hint", "exercise", "code"
FIELDS = (*TEXTS, "line", "step", "mistakes", "reached")  # fields of a verdict that are sent
LONGEST_TEXT = 600  # characters
RUNS = "call", "run_clause"  # the questions that run a function or a class: there may be a place


class StandIn:
    """Represent an answer in the sandbox: `check` asks this proxy, which asks by `carry`.

    Args:
        carry: sends a line to the sandbox and returns its reply; raises if there is none.
    """

    def __init__(self, carry: Callable[[bytes], bytes]):
        self.carry, self.late, self.noisy, self.failed = carry, False, False, None
        self.ran = False  # whether a function or a class of the answer was run

    def ask(self, question: str, *arguments: Any) -> Any:
        """Return the reply of the answer, which may be forged.

        A learner's test does not get the classes that it is tried on. It gets their constructors
        only, and asks this process to compute each forward pass.

        Raises:
            TimeoutError: the answer has used all its time.
            EOFError: the process has ended.
            ValueError: the line that it sent is not a reply.
        """
        self.ran |= question in RUNS
        sources = arguments[0] if question == "verdicts" else []
        given = [[constructor_of(source) for source in sources]] if sources else list(arguments)
        fact = self.tell({"question": question, "arguments": encode(given)})
        for _ in range(MOST_SERVED):
            if "wants" not in fact:
                break
            came = attempt(serve, sources, fact["wants"])
            if isinstance(came, Failure):
                came = encode(Failure(came.text))  # the line of code would reveal the class
            fact = self.tell({"served": came})
        if "reply" not in fact:
            raise self.noise()
        return attempt(lambda: decode(fact["reply"]))

    def tell(self, question: dict) -> dict:
        """Send one line to the sandbox, and return the content of its reply."""
        if self.failed:
            raise self.failed
        try:
            fact = json.loads(self.carry(json.dumps({"question": question}).encode()))
        except EOFError as lost:
            self.failed = lost
            raise
        except (ValueError, RecursionError):
            fact = None
        if isinstance(fact, dict) and "late" in fact:
            self.late, self.failed = True, TimeoutError("no end")
            raise self.failed
        if not isinstance(fact, dict) or not isinstance(fact.get("reply"), dict):
            raise self.noise()
        return fact["reply"]

    def noise(self) -> ValueError:
        """Return the error for a malformed reply; every later question raises it, too."""
        self.noisy, self.failed = True, ValueError(NOISE)
        return self.failed


def constructor_of(lines: Sequence[str]) -> list[str]:
    """Return the source of a class without its forward."""
    first = next(i for i, line in enumerate(lines) if line.startswith("    def forward("))
    following = [i for i in range(first + 1, len(lines)) if lines[i][:1].strip()]
    return [*lines[:first], *lines[following[0] if following else len(lines) :]]


def serve(sources: Sequence[Sequence[str]], wanted: Any) -> Any:
    """Return as plain data the output of one of the classes, or its gradients.

    Args:
        sources: the lines of each class, by its number.
        wanted: what `served` asks; where it is forged, this raises anything.
    """
    sizes, named = wanted["sizes"], wanted["named"]
    for size in (*sizes, *named.values()):
        if not isinstance(size, int | float) or not size <= WIDEST:
            raise ValueError(f"sizes up to {WIDEST} can be served")
    mha = defined(sources[wanted["class"]])(*sizes, **named)
    x, *parameters = map(decode, wanted["tensors"])
    mha.to(parameters[0].dtype)
    with torch.no_grad():
        for name, numbers in zip(wanted["names"], parameters, strict=True):
            mha.get_parameter(name).copy_(numbers)
    mha.training, mha.dropout.training = wanted["training"]
    mha.dropout.p = float(wanted["dropout"])
    with torch.random.fork_rng(devices=[]), torch.set_grad_enabled("gradient" in wanted):
        torch.set_rng_state(decode(wanted["random"]))
        inputs = x.requires_grad_("gradient" in wanted), *mha.parameters()
        came = mha(x), torch.get_rng_state()
        if "gradient" in wanted:
            given = decode(wanted["gradient"])
            came = torch.autograd.grad(
                came[0], inputs, given, allow_unused=True, materialize_grads=True
            )
        return {"tuple": [encode_tensor(tensor, MOST) for tensor in came]}


def judged(identifier: str, carry: Callable[[bytes], bytes]) -> dict:
    """Judge an answer in the sandbox with `check`.

    Returns:
        As plain data: the verdict ("said"), the numbers of the problem ("start"), and whether the
        answer was late, sent something that is not a reply ("noisy"), made the check itself fail
        ("odd"), and ran a function or a class ("ran").
    """
    asked, start, verdict = StandIn(carry), {}, Verdict("failed")
    with contextlib.suppress(BaseException):  # forged data may be odd in any way, and too slow
        verdict = check(identifier, asked, record=False)
        start = start_of(verdict)
    odd = verdict.kind == "failed"  # only forged data make the check itself fail
    said = as_fields(Verdict("type", ODD) if odd else verdict)
    found = {"late": asked.late, "noisy": asked.noisy, "odd": odd, "ran": asked.ran}
    return {"said": said, "start": start} | found


def as_fields(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data, its texts cut."""
    cut = {name: getattr(verdict, name)[:LONGEST_TEXT] for name in TEXTS}
    return {name: getattr(verdict, name) for name in FIELDS} | cut


def as_verdict(said: dict[str, Any]) -> Verdict:
    return Verdict(**said | {"mistakes": tuple(said["mistakes"])})


def start_of(verdict: Verdict) -> dict:
    """Return the matrices and sizes of a pencil-and-paper problem, as plain data."""
    given = {name: matrix.tolist() for name, matrix in verdict.given.items()}
    return {"given": given, "sizes": dict(verdict.sizes)}


def work_through(pipe: Any, memory: int) -> None:
    """Judge one answer after the other, until the pipe is closed.

    The pipe brings identifiers of exercises, each followed by the replies to our questions.
    """
    torch.set_num_threads(1)
    with contextlib.suppress(OSError):  # if the system does not report the memory in use
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory  # in addition to the memory in use now
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def carry(line: bytes) -> bytes:
        pipe.send_bytes(QUESTION + line)
        if reply := pipe.recv_bytes():
            return reply
        raise EOFError

    with contextlib.suppress(EOFError, OSError):
        pipe.send_bytes(b"ready")
        while True:
            job = json.loads(pipe.recv_bytes())
            if job["asked"]:
                content = judged(job["exercise"], carry)
            else:
                content = {"start": start_of(check(job["exercise"], record=False))}
            pipe.send_bytes(END + json.dumps(content).encode())


class Judge:
    """Run the judging process, started when it is needed; memory is its limit in bytes."""

    def __init__(self, memory: int):
        self.memory, self.process, self.pipe = memory, None, None

    def judge(self, identifier: str, box: Sandbox, seconds: float, asked: bool = True) -> dict:
        """Return the result of `judged` for an answer; raise Lost if the sandbox has ended.

        seconds: how long the sandbox may take for each reply. asked: whether to judge the answer;
        otherwise only the numbers of the problem are returned.
        """
        said = as_fields(Verdict("type", ODD))
        lost, content = None, {"said": said, "late": False, "odd": True, "ran": False}
        self.begin()
        with contextlib.suppress(EOFError, OSError):
            self.pipe.send_bytes(json.dumps({"exercise": identifier, "asked": asked}).encode())
            while (line := self.hear(JUDGING))[:1] == QUESTION:
                try:
                    box.tell_line(line[1:], seconds)
                    reply = box.hear_line(seconds, LONGEST_REPLY)
                except Lost as error:
                    lost, reply = error, b""
                self.pipe.send_bytes(reply)
            content = json.loads(line[1:])
        if content.get("noisy"):
            lost = Lost(NOISE)
        if content.get("odd"):
            self.close()
        if lost:
            raise lost
        return content

    def begin(self) -> None:
        """Start the process unless it is running; raise OSError if it does not start."""
        if self.process is not None:
            return
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other = spawn.Pipe()
        self.process = spawn.Process(target=work_through, args=(other, self.memory), daemon=True)
        self.process.start()
        other.close()
        try:
            self.hear(START)
        except EOFError as error:
            self.close()
            raise OSError("the judging process does not start") from error

    def hear(self, seconds: float) -> bytes:
        """Read a line; raise EOFError if there is none after so many seconds of work."""
        end = time.monotonic() + SHARED * seconds
        worked = work(self.process.pid) + seconds
        while not self.pipe.poll(LOOK):
            if time.monotonic() > end or work(self.process.pid) > worked:
                raise EOFError("too much work for one answer")
        return self.pipe.recv_bytes()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = None
