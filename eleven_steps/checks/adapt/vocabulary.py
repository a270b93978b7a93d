"""What things are called elsewhere: words.toml, read once."""

import re
import tomllib
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
WORDS: dict[str, str] = _TABLES["sizes"]
SIZE_OF = {word: size for size, words in WORDS.items() for word in words.split()}
MASKS, FLAGS = (tuple(_TABLES["lists"][name].split()) for name in ("masks", "flags"))
NAMED = {what: re.compile(pattern, re.DOTALL) for what, pattern in _TABLES["names"].items()}
_AROUND = _TABLES["layers"].pop("around")
ROLE_NAMED = {
    role: re.compile(rf"_?(?:{_AROUND}_?)?(?:{words})(?:_?{_AROUND})?s?_?", re.IGNORECASE)
    for role, words in _TABLES["layers"].items()
}
ADDED_NAMED = {  # the group is which parameter
    layer: re.compile(
        rf"(?:.*\.)?(?:{words})(\.bias|(?:\.(?:weight|scale|gamma|g))?)", re.IGNORECASE
    )
    for layer, words in _TABLES["added"].items()
}
