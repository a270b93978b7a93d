"""Wheels of torch, numpy and safetensors that can be imported in a browser and compute nothing.

The real ones exist for Pyodide, but no package index has them. With these the rest of the site is
tried: that it opens, that the course is found, that the page's own scripts run.
"""

import zipfile
from pathlib import Path

VERSIONS = {"torch": "2.13.0", "numpy": "2.4.3", "safetensors": "0.7.0"}
SOURCE = '''
import sys, types, importlib.machinery

class Kind(type):
    """Any attribute, item or union of a class that computes nothing is one again."""
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing
    def __or__(cls, other):
        return cls
    __ror__ = __or__
    def __getitem__(cls, key):
        return cls
    def __iter__(cls):
        return iter(())

class Nothing(metaclass=Kind):
    def __init__(self, *args, **options):
        pass
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()
    def __call__(self, *args, **options):
        return args[0] if args and callable(args[0]) else Nothing()
    def __iter__(self):
        return iter(())
    def __getitem__(self, key):
        return Nothing()
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass
    def __len__(self):
        return 0

for name in "add radd sub rsub mul rmul truediv matmul pow lt gt le ge and or neg".split():
    setattr(Nothing, f"__{name}__", lambda self, *other: Nothing())

def any_name(name):
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    return type(name, (Nothing,), {})

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy", "safetensors") and "." in name:
            return importlib.machinery.ModuleSpec(name, Finder, is_package=True)
    @staticmethod
    def create_module(spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = any_name
        return module
    @staticmethod
    def exec_module(module):
        pass

sys.meta_path.insert(0, Finder)

def fill(name):
    module = sys.modules[name]
    module.__getattr__, module.inf, module.nan = any_name, float("inf"), float("nan")
'''
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheels(folder: Path) -> None:
    """Write the three wheels into a folder."""
    for name, version in VERSIONS.items():
        about = f"{name}-{version}.dist-info"
        files = {
            f"{name}/__init__.py": "from stand_in import fill\nfill(__name__)\n",
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{about}/WHEEL": WHEEL,
        }
        if name == "torch":
            files |= {"stand_in.py": SOURCE}
        else:
            files[f"{about}/METADATA"] += "Requires-Dist: torch\n"
        files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in files)
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            for file, text in files.items():
                wheel.writestr(file, text)
