"""Start a process in a sandbox, exchange lines of JSON with it, and end all it started.

Bubblewrap isolates the process. It sees the programs of the system, this Python and the course
without its answers, but no home folder, no other submission and no result. It can write to one
empty folder in memory, and it has no network.
"""

import compileall
import contextlib
import functools
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eleven_steps

MODULE = "shut_in"
BESIDE = (f"{MODULE}.py", "served.py", "wire.py")  # files of the grader that run in the sandbox
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts"),
)
COURSE, DESK = "/tmp/course", "/tmp/desk"  # as the process sees them
DESK_SIZE = 100_000_000  # bytes
LONGEST_LINE = 100_000  # bytes, of every line that is not a reply
MOST_PROCESSES = 64
NOISE = "wrote what is no answer, to a file descriptor that is not its own"
TICK = 0.1  # seconds between two looks at the process
STRETCH = 1.0  # seconds of one reading; without processor time they were idle


def copy_course(folder: Path, whole: bool = False) -> None:
    """Copy the course to a folder; without its answers, unless `whole`."""
    course, ignore = Path(eleven_steps.__file__).parents[1], functools.partial(left_out, whole)
    for name in ("helpers", "eleven_steps", "data", "docs"):
        if (course / name).is_dir():
            shutil.copytree(course / name, folder / name, ignore=ignore)
    for name in BESIDE:
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / "eleven_steps" / "checks" / "__init__.py").touch()
    compileall.compile_dir(folder, quiet=2)
    folder.chmod(0o755)  # bubblewrap reads it as another user


def left_out(whole: bool, folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that are not copied: of the checks, all but asking."""
    bare = not whole and Path(folder).name == "checks"
    return [name for name in names if name == "__pycache__" or bare and name != "asking"]


class Lost(Exception):
    """Report that the process has ended, or was ended, and why."""


@dataclass(frozen=True)
class Isolation:
    """Describe what isolates a process."""

    shut_in: bool  # True: by bubblewrap; False: not isolated
    hidden: tuple[str, ...] = ()  # folders to hide, even if they are inside a visible folder


def bubblewrap(course: Path, hidden: tuple[str, ...]) -> list[str]:
    """Return the bwrap command: only the folders named here are visible, and read-only."""
    seen = [path for path in sorted({*SYSTEM, *python_folders()}) if os.path.exists(path)]
    # The copy of the course has no answers, but the installed course has.
    hidden = *hidden, str(Path(eleven_steps.__file__).parent)
    tops = [os.path.realpath(folder) for folder in seen]
    veils = [path for path in hidden if any(map(Path(os.path.realpath(path)).is_relative_to, tops))]
    return [
        *(shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user"),
        *("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--uid", "1000", "--gid", "1000", "--hostname", "grading", "--clearenv"),
        *(word for path in seen for word in ("--ro-bind", path, path)),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"),
        *(word for path in veils for word in ("--tmpfs", path, "--remount-ro", path)),
        *("--dir", "/tmp", "--ro-bind", str(course), COURSE),
        *("--size", str(DESK_SIZE), "--tmpfs", DESK, "--remount-ro", "/", "--chdir", DESK),
        *(word for pair in environment(COURSE, DESK).items() for word in ("--setenv", *pair)),
    ]


def python_folders() -> set[str]:
    """Return the folders of this Python and of its packages, as named and with links resolved."""
    places = {sys.prefix, sys.base_prefix, str(Path(os.path.realpath(sys.executable)).parents[1])}
    for path in sys.path:
        if Path(path).name in ("site-packages", "dist-packages") and os.path.isdir(path):
            places.add(path)
    return places | {os.path.realpath(path) for path in places}


def environment(course: str, desk: str) -> dict[str, str]:
    folders = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR"), desk)
    return folders | {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": course,
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "LANG": "C.UTF-8",
        "USER": "student",
        "ELEVEN_STEPS_PROGRESS": f"{desk}/progress.json",
    }


def find_isolation(hidden: tuple[str, ...] = ()) -> tuple[Isolation, str]:
    """Return the isolation that this machine has, and the reason if it has none."""
    if not shutil.which("bwrap"):
        return Isolation(False), "bubblewrap is not installed"
    with tempfile.TemporaryDirectory() as course:
        probe = [*bubblewrap(Path(course), hidden), "true"]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip()[:200]
        return Isolation(False), f"bubblewrap is refused by this machine ({reason})"
    return Isolation(True, hidden), ""


class Sandbox:
    """Run a process in a sandbox; memory is the limit for all its processes together."""

    looked = 0.0  # when the processes inside were last counted
    until = math.inf  # hard end, in seconds of time.monotonic
    spent, allowed = 0.0, math.inf  # seconds of work, and the most allowed
    stretch: tuple[float, float] | None = None  # time and work as this stretch began

    def __init__(self, isolation: Isolation, course: Path, memory: int):
        self.memory, self.heard, shut_in = memory, b"", isolation.shut_in
        self.desk = None if shut_in else tempfile.mkdtemp(prefix="desk")
        told, tells = os.pipe()
        before = bubblewrap(course, isolation.hidden) if shut_in else []
        before += ["--info-fd", str(tells)] if shut_in else []
        self.process = subprocess.Popen(
            [*before, sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=self.desk,
            env={} if shut_in else environment(str(course), self.desk),
            pass_fds=[tells] if shut_in else [],
            start_new_session=True,
        )
        os.close(tells)
        self.first = self.first_inside(told)
        os.set_blocking(self.process.stdin.fileno(), False)

    def first_inside(self, told: int) -> int | None:
        """Return a handle on the first process inside, which ends all others, or None."""
        with open(told, "rb") as file, contextlib.suppress(ValueError, KeyError, OSError):
            return os.pidfd_open(json.loads(file.read())["child-pid"])
        return None

    def tell(self, fact: dict, seconds: float) -> None:
        """Write one message; raise Lost if it is not read in time."""
        self.tell_line(json.dumps(fact).encode(), seconds)

    def tell_line(self, line: bytes, seconds: float) -> None:
        left, pipe = memoryview(line + b"\n"), self.process.stdin.fileno()
        end = time.monotonic() + seconds
        while left:
            if select.select([], [pipe], [], TICK)[1]:
                try:
                    left = left[os.write(pipe, left) :]
                except OSError:
                    raise Lost("ended its process") from None
            self.look(end, seconds)

    def hear(self, seconds: float) -> dict:
        """Read one message, which may be forged; raise Lost if none comes in time."""
        try:
            fact = json.loads(self.hear_line(seconds))
        except (ValueError, RecursionError):
            fact = None
        if not isinstance(fact, dict):
            raise Lost(NOISE)
        return fact

    def hear_line(self, seconds: float, longest: int = LONGEST_LINE) -> bytes:
        """Read a line up to a limit of bytes."""
        pipe, end, parts = self.process.stdout.fileno(), time.monotonic() + seconds, [self.heard]
        self.look(end, seconds)  # also before a line that has arrived already
        while b"\n" not in parts[-1]:
            if select.select([pipe], [], [], TICK)[0]:
                parts.append(os.read(pipe, 1 << 20))
                if not parts[-1]:
                    raise Lost("ended its process")
                if sum(map(len, parts)) > longest + (1 << 20):
                    raise Lost("returned too much")
            self.look(end, seconds)
        line, _, self.heard = b"".join(parts).partition(b"\n")
        if len(line) > longest:
            raise Lost("returned too much")
        self.count(time.monotonic(), sum(map(work, descendants(self.process.pid))))
        self.stretch = None  # the sandbox waits from now on
        return line

    def look(self, end: float, seconds: float) -> None:
        """Raise Lost if the sandbox exceeds its time, memory or number of processes."""
        now = time.monotonic()
        if now > min(end, self.until) or self.spent > self.allowed:
            late = now > end and self.until > end
            over = f" within {seconds:g} seconds" if late else ", and all time is used up"
            raise Lost(f"did not end{over}")
        if now < self.looked + TICK:
            return
        self.looked = now
        inside = list(descendants(self.process.pid))
        self.count(now, sum(map(work, inside)))
        if len(inside) > MOST_PROCESSES:
            raise Lost(f"started more than {MOST_PROCESSES} processes")
        used = sum(map(resident, inside))
        if used > self.memory and sum(map(proportional, inside)) > self.memory:
            raise Lost(f"used more than {self.memory // 1_000_000} MB of memory")

    def count(self, now: float, worked: float) -> None:
        """Add processor time to the seconds spent, or the wall time of a STRETCH without any work.

        A process that waits for a busy processor still works a little in every stretch, so that a
        stretch without work means that it sleeps.
        """
        began, before = self.stretch or (now, worked)
        passed, done = now - began, max(0.0, worked - before)
        if passed >= STRETCH or done:
            self.spent += passed if passed >= STRETCH and not done else min(passed, done)
            began, before = now, worked
        self.stretch = began, before

    def close(self) -> None:
        """End the process and all that it started, and wait until they have ended."""
        if self.first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
            select.select([self.first], [], [])  # readable once every process inside has ended
            os.close(self.first)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        if self.desk:
            subprocess.run(["rm", "-rf", self.desk], capture_output=True, check=False)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def descendants(process: int) -> Iterator[int]:
    """Yield a process and its descendants, as far as the system lists them."""
    yield process
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            for child in Path(f"/proc/{process}/task/{task}/children").read_text().split():
                yield from descendants(int(child))


def work(process: int, others: bool = True) -> float:
    """Return the processor time of a process and of its ended children."""
    with contextlib.suppress(OSError, IndexError):
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11 : 15 if others else 13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident(process: int) -> int:
    """Return the memory of a process in bytes, shared memory included."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")
    return 0


def proportional(process: int) -> int:
    """Return the memory of a process in bytes, with its share of shared memory."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident(process)
