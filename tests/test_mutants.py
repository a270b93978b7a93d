"""check_attention: right classes of four styles with one node changed; its line says the step."""

import ast
import contextlib
import io
import math
import tomllib
from pathlib import Path

import pytest
import torch
from einops import einsum, rearrange
from said import typed
from sampled import sampled
from torch import nn
from torch.nn import functional as F

from eleven_steps.checks import check_attention, wrong_class

HEAD = """
class Mine(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads  # 1
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)  # 2
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)  # 2
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)  # 2
        self.out_proj = nn.Linear(d_out, d_out)  # 11
        self.dropout = nn.Dropout(dropout)  # 7
        self.register_buffer("past", torch.ones(context_length, context_length).tril())  # 6

    def forward(self, x):
        b, n, _ = x.shape  # 1
"""
# Behind each line stand the steps that it is for.
STYLES = {
    "plain": """
        queries = self.W_query(x)  # 2
        keys = self.W_key(x)  # 2
        values = self.W_value(x)  # 2
        queries = queries.view(b, n, self.num_heads, self.head_dim)  # 3
        keys = keys.view(b, n, self.num_heads, self.head_dim)  # 3
        values = values.view(b, n, self.num_heads, self.head_dim)  # 3
        queries = queries.transpose(1, 2)  # 4
        keys = keys.transpose(1, 2)  # 4
        values = values.transpose(1, 2)  # 4
        scores = queries @ keys.transpose(2, 3)  # 5
        scores = scores.masked_fill(self.past[:n, :n] == 0, -torch.inf)  # 6
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)  # 7
        weights = self.dropout(weights)  # 7
        context = weights @ values  # 8
        context = context.transpose(1, 2)  # 9
        context = context.reshape(b, n, self.num_heads * self.head_dim)  # 10
        return self.out_proj(context)  # 11
""",
    "einsum": """
        q = self.W_query(x)  # 2
        k = self.W_key(x)  # 2
        v = self.W_value(x)  # 2
        q = q.unflatten(2, (self.num_heads, -1))  # 3
        k = k.unflatten(2, (self.num_heads, -1))  # 3
        v = v.unflatten(2, (self.num_heads, -1))  # 3
        s = torch.einsum("bihd,bjhd->bhij", q, k)  # 5
        s = s.masked_fill(~self.past[:n, :n].bool(), float("-inf"))  # 6
        s = s * q.size(-1) ** -0.5  # 7
        w = self.dropout(s.softmax(-1))  # 7
        y = torch.einsum("bhij,bjhd->bihd", w, v)  # 8
        y = y.flatten(2)  # 10
        return self.out_proj(y)  # 11
""",
    "added": """
        q = self.W_query(x)  # 2
        k = self.W_key(x)  # 2
        v = self.W_value(x)  # 2
        q = q.reshape(b, n, self.num_heads, -1)  # 3
        k = k.reshape(b, n, self.num_heads, -1)  # 3
        v = v.reshape(b, n, self.num_heads, -1)  # 3
        q = q.permute(0, 2, 1, 3)  # 4
        k = k.permute(0, 2, 3, 1)  # 4
        v = v.permute(0, 2, 1, 3)  # 4
        s = torch.matmul(q, k)  # 5
        s = s * (1.0 / math.sqrt(self.head_dim))  # 7
        s = s + self.past[:n, :n].log()  # 6
        w = F.softmax(s, dim=-1)  # 7
        w = F.dropout(w, self.dropout.p, self.training)  # 7
        y = torch.matmul(w, v)  # 8
        y = y.permute(0, 2, 1, 3)  # 9
        y = y.reshape(b, n, -1)  # 10
        return self.out_proj(y)  # 11
""",
    "stacked": """
        q = torch.stack(self.W_query(x).split(self.head_dim, dim=-1), dim=1)  # 2 3 4
        k = torch.stack(self.W_key(x).split(self.head_dim, dim=-1), dim=1)  # 2 3 4
        v = torch.stack(self.W_value(x).split(self.head_dim, dim=-1), dim=1)  # 2 3 4
        q = q / self.head_dim**0.5  # 7
        s = q @ k.mT  # 5
        s = torch.where(self.past[:n, :n] > 0, s, -torch.inf)  # 6
        e = (s - s.amax(dim=-1, keepdim=True)).exp()  # 7
        w = e / e.sum(dim=-1, keepdim=True)  # 7
        w = self.dropout(w)  # 7
        y = w @ v  # 8
        y = torch.cat(y.unbind(dim=1), dim=-1)  # 9 10
        return self.out_proj(y)  # 11
""",
}
SLIPS = tomllib.loads(Path(__file__).with_name("slips.toml").read_text("utf-8"))
OTHER_OPERATOR = {ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Add: ast.Sub, ast.Sub: ast.Add}
OTHER_OPERATOR |= {ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult}
OTHER_CALL = {"triu": "tril", "tril": "triu", "softmax": "sigmoid", "amax": "amin"}
LAYERS = ["W_query", "W_key", "W_value", "out_proj"]
MODULES = {"torch", "F", "nn", "math", "self"}
SIZES = [(2, 7, 5, 12, 3, False, 9), (3, 4, 6, 8, 4, True, 4), (2, 1, 3, 4, 2, False, 3)]


def changes(node, stored):
    """Yield functions that change one node of a tree in place, or return what stands for it."""

    def setting(**values):
        return lambda own: [setattr(own, name, value) for name, value in values.items()] and own

    match node:
        case ast.Constant(value=bool(value)):
            yield setting(value=not value)
        case ast.Constant(value=int(value)):
            yield from (setting(value=each) for each in (value + 1, value - 1))
        case ast.Constant(value=float(value)):
            yield setting(value=2 * value)
        case ast.Constant(value="-inf"):
            yield setting(value="inf")
        case ast.Constant(value=str(value)) if "->" in value:
            yield setting(value=value[:-2] + value[:-3:-1])
        case ast.BinOp(op=op):
            if other := OTHER_OPERATOR.get(type(op)):
                yield setting(op=other())
            if isinstance(op, ast.MatMult | ast.Div | ast.Sub):
                yield lambda own: setting(left=own.right, right=own.left)(own)
        case ast.UnaryOp():
            yield lambda own: own.operand
        case ast.Compare():
            yield setting(ops=[ast.NotEq()])
        case ast.Name(id=name, ctx=ast.Load()) if name in stored:
            yield from (setting(id=other) for other in stored - {name})
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            for group in (LAYERS, ["head_dim", "num_heads"]):
                yield from (setting(attr=o) for o in group if name in group and o != name)
        case ast.Call(func=ast.Attribute(value=base, attr=name), args=args):
            plain = not isinstance(base, ast.Name) or base.id not in MODULES
            if plain:
                yield lambda own: own.func.value
            elif args and base.id != "nn":
                yield lambda own: own.args[0]
            if other := OTHER_CALL.get(name):
                yield lambda own: setting(attr=other)(own.func) and own
            if len(args) > 1:
                yield lambda own: setting(args=[*own.args[1::-1], *own.args[2:]])(own)


class Put(ast.NodeTransformer):
    """Change one node of a tree."""

    def __init__(self, node, change):
        self.node, self.change = node, change

    def visit(self, node):
        return self.change(node) if node is self.node else self.generic_visit(node)


def mutants(style):
    """Yield the name, the source and the steps of a style's mutants, line by line."""
    lines = (HEAD + STYLES[style].strip("\n")).splitlines()
    nodes = ast.walk(ast.parse("\n".join(lines)))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for at, line in enumerate(lines):
        code, marked, steps = line.partition("  # ")
        code = code.strip()
        seen = {ast.unparse(ast.parse(code))} if marked else set()
        for number, node in enumerate(ast.walk(ast.parse(code))) if marked else ():
            for change in changes(node, stored - {"b", "n", "_"}):
                own = ast.parse(code)
                own = ast.unparse(Put(list(ast.walk(own))[number], change).visit(own))
                if own not in seen:
                    seen.add(own)
                    text = "\n".join([*lines[:at], line.replace(code, own), *lines[at + 1 :]])
                    yield f"{style}, line {at + 1}, {own}", text, {*map(int, steps.split())}


def built(source):
    """The class of a source, whose lines tracebacks know, as in a notebook."""
    scope = {"nn": nn, "torch": torch, "F": F, "math": math, "__name__": __name__}
    scope |= {"Tensor": torch.Tensor, "rearrange": rearrange, "einsum": einsum}
    typed(source, scope)
    return scope["Mine"]


def outputs(cls):
    """What a class returns at some sizes; an error as its type."""
    for b, n, d_in, d_out, num_heads, bias, longest in SIZES:
        torch.manual_seed(5)
        try:
            module = cls(d_in, d_out, longest, 0.0, num_heads, bias).eval()
            for layer in LAYERS:
                nn.init.normal_(getattr(module, layer).weight)
            with torch.no_grad():
                yield module(torch.randn(b, n, d_in, generator=torch.Generator().manual_seed(9)))
        except Exception as error:
            yield error


def same(ones, others):
    """Whether outputs agree, errors with errors."""
    for one, other in zip(ones, others, strict=True):
        tensors = isinstance(one, torch.Tensor) + isinstance(other, torch.Tensor)
        alike = tensors == 2 and one.shape == other.shape
        if tensors and not (alike and torch.allclose(one, other, 1e-4, 1e-5, True)):
            return False
    return True


def placed(every, start=0):
    """Judge one in so many mutants: how many, those that pass, those at another step."""
    count, passed, elsewhere = 0, [], []
    for style in STYLES:
        right = list(outputs(built(HEAD + STYLES[style].strip("\n"))))
        for index, (name, source, steps) in enumerate(mutants(style)):
            if (index - start) % every:
                continue
            cls = built(source)
            mine = list(outputs(cls))
            if same(mine, right):
                continue  # the same function, written otherwise
            count += 1
            with contextlib.redirect_stdout(io.StringIO()):
                verdict = check_attention(cls)
            if verdict.passed:
                passed.append((name, source))
            elif verdict.step not in steps and not same_as_named(verdict, mine):
                elsewhere.append((name, steps, str(verdict)))
    return count, passed, elsewhere


def same_as_named(verdict, mine):
    """Whether the class that makes the mistake that was named is the same function."""
    return bool(verdict.mistake) and same(list(outputs(wrong_class(verdict.mistake))), mine)


@sampled("style", [*STYLES])
def test_the_unchanged_class_is_right(style):
    verdict = check_attention(built(HEAD + STYLES[style].strip("\n")))
    assert verdict.passed, verdict


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_one_changed_node_is_put_at_the_step_of_its_line(every):
    count, passed, elsewhere = placed(every)
    assert count >= 600 // every and not passed
    assert len(elsewhere) <= 0.05 * count, elsewhere


def slips():
    """Yield a name, the source and the step of each single slip of slips.toml."""
    for style, of in SLIPS.items():
        for step, old, new in of["slips"]:
            yield f"{style}: {new.strip()}", of["class"].replace(old, new), step


@sampled("style", [*SLIPS])
def test_a_class_without_its_slips_is_right(style):
    assert check_attention(built(SLIPS[style]["class"])).passed


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_slip_as_learners_make_it_is_put_at_its_step(every):
    some = [*slips()][::every]
    verdicts = [(name, step, check_attention(built(source))) for name, source, step in some]
    assert some and not [name for name, _, verdict in verdicts if verdict.passed]
    elsewhere = [(name, step, str(e)) for name, step, e in verdicts if e.step != step]
    assert len(elsewhere) <= 0.07 * len(some), elsewhere
