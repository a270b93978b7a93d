"""The scripts of pictures that answer: each a module of files that know nothing of each other."""

import shutil
import subprocess

import pytest

from eleven_steps.sliders.live import script


def run_node(source, *options):
    """Have node read a module and, if no option says otherwise, run it; return what it prints."""
    node = shutil.which("node")
    if not node:
        pytest.skip("no node on this machine to read it")
    command = [node, "--input-type=module", *options, "-"]
    ended = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60)
    assert not ended.returncode, ended.stderr
    return ended.stdout.split()


DRAGGING = """
const part = new EventTarget(), told = [];
part.setPointerCapture = () => {};
onDrag(part, () => "it", (what, right, up) => told.push(`${what}:${right}:${up}`));
const does = (type, pointerId, clientX, clientY, button = 0) =>
  part.dispatchEvent(Object.assign(new Event(type), { pointerId, clientX, clientY, button }));
"""
dragged = pytest.mark.parametrize(
    ("acts", "told"),
    [
        ("does('pointerdown', 1, 5, 5); does('pointermove', 1, 8, 4);", "it:3:1"),
        ("does('pointerdown', 1, 5, 5, 2); does('pointermove', 1, 8, 4);", ""),  # right button
        (  # a second finger
            "does('pointerdown', 1, 5, 5); does('pointerdown', 2, 90, 90);"
            "does('pointermove', 2, 91, 91); does('pointermove', 1, 6, 5);",
            "it:1:0",
        ),
        (  # it was let go
            "does('pointerdown', 1, 5, 5); does('lostpointercapture', 1, 5, 5);"
            "does('pointermove', 1, 6, 5); does('pointerdown', 2, 0, 0);"
            "does('pointermove', 2, 9, 0);",
            "it:9:0",
        ),
    ],
)


@dragged
def test_one_finger_drags(acts, told):
    assert run_node(f"{script('listen')}{DRAGGING}{acts}console.log(...told);") == told.split()
