"""What cannot be is refused; the error says what it got and what is expected, as was read."""

# ruff: noqa: F401, F403, F405 - said/refused.toml names what is imported
import math
import pickle
import re
import socket

import pytest
import torch
from parts import LEFT, OTHER, make
from safetensors.torch import save_file
from said import answers, as_read
from sizes import build
from test_gpt2 import checkpoint

from eleven_steps import checks, sliders
from eleven_steps.beyond import checkpoints
from eleven_steps.beyond.ablations import without_path
from eleven_steps.beyond.checkpoints import load_sentence
from eleven_steps.beyond.compare import worst
from eleven_steps.beyond.gpt2 import load_attention
from eleven_steps.beyond.grammar import read
from eleven_steps.beyond.newer_models import show_change
from eleven_steps.beyond.processes import check_shares, share_heads, share_tokens
from eleven_steps.beyond.processes.travel import pack
from eleven_steps.beyond.sizes import *
from eleven_steps.beyond.timing import time_in_turns, time_steps
from eleven_steps.beyond.tiny import TinyModel, without_head
from eleven_steps.beyond.variants import *
from eleven_steps.checks.paper import practice
from eleven_steps.pictures import *
from eleven_steps.pictures.charts import draw_dots, draw_growth, draw_squares
from eleven_steps.pictures.progress import draw_progress
from helpers import examples
from helpers.attention import (
    CausalAttention,
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
)
from helpers.examples import load_example
from helpers.trace import trace

DATA = examples.DATA  # of the course


def every(act):
    """Have each class do what cannot be: all say the same of it."""
    said = set()
    for cls in (MultiHeadAttention, FusedMultiHeadAttention, MultiHeadAttentionWrapper):
        said.add(error(lambda cls=cls: act(lambda *sizes: cls(*sizes, num_heads=2))))
    return "; ".join(sorted(said | {error(lambda: act(CausalAttention))}))


def tensor(*shape):
    return torch.arange(math.prod(shape)).view(shape).float()


def parts(*given):
    return make(list(given))


def drawn(**position):
    return draw_tensors([Shown(tensor(1, 1), "x", "num_tokens d_in")], "One")


def gpt2(content, layer=0, **options):
    """Load from a file of these tensors, or bytes; None: from no file."""
    path = examples.DATA / "model.safetensors"
    path.unlink(missing_ok=True)
    if isinstance(content, dict):
        save_file(content, path)
    elif content is not None:
        path.write_bytes(content)
    load_attention(path, layer, **options)


def taken_out(layer, head):
    with without_head(TinyModel(), layer, head):
        pass


def path_cut(heads, reads):
    with without_path(TinyModel(), heads, reads):
        pass


def error(act):
    try:
        made = act()
        return made if isinstance(made, str) else f"not refused: {type(made).__name__}"
    except NameError:  # a name that is no more is no answer
        raise
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"


def test_what_is_said_of_what_cannot_be_is_what_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection was tried"))
    told = {}
    for source in answers("refused"):
        own = tmp_path if source.startswith("gpt2(") else DATA
        with monkeypatch.context() as patch:
            patch.setattr(examples, "DATA", own)
            told[source] = error(lambda source=source: eval(source, {**globals()}))
        told[source] = re.sub(" at 0x[0-9a-f]+", "", told[source].replace(str(own), "DATA"))
    assert told == as_read("refused", told)


class Trap:
    """Pickled, this creates a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.touch, ()


@pytest.mark.parametrize("dump", [torch.save, lambda trap, path: path.write_bytes(trap)])
def test_a_pickle_is_refused_and_never_run(tmp_path, dump):
    path, sprung = tmp_path / "model.safetensors", tmp_path / "sprung"
    trap = Trap(sprung)
    dump(trap if dump is torch.save else pickle.dumps(trap), path)
    with pytest.raises(ValueError, match="is not a safetensors file"):
        load_attention(path, 0)
    assert not sprung.exists()
