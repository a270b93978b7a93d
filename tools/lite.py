"""Write the course as a JupyterLite site to lite/: it runs in a browser, with nothing installed.

Usage: python tools/lite.py [--cdn ADDRESS] [--to FOLDER] WHEEL ..., torch's for Pyodide and others

Python itself is Pyodide, from npm. The course is built as a wheel, and pip downloads packages of
pure Python. Compiled packages, such as numpy, need builds for Pyodide: the page loads them from the
ADDRESS of Pyodide's full distribution, or the site serves the WHEELs.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = "314.0.2"  # the version that torch's wheel is built for
COURSE = "eleven-steps-to-multi-head-attention"
# What the kernel loads before the first cell, and what Pyodide does not bring.
KERNEL = "micropip", "ipython", "jedi", "pygments", "packaging", "typing-extensions"
ADDED = "ipywidgets", "anywidget", "jupyterlab-widgets", "comm", "psygnal"
BROWSER = {"sys_platform": "emscripten", "platform_system": "Emscripten", "extra": ""}
PURE = "--only-binary :all: --platform any --implementation py --abi none --python-version 3.14"
LOCKED = {"install_dir": "site", "package_type": "package", "unvendored_tests": False}
SETTINGS = "tools/jupyterlab/labconfig/default_setting_overrides.json"
# The browser keeps the folder /drive when the page is closed.
OPTIONS = {"loadPyodideOptions": {"env": {"ELEVEN_STEPS_PROGRESS": "/drive/progress.json"}}}
PLUGINS = {"@jupyterlite/pyodide-kernel-extension:kernel": OPTIONS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cdn", default="", metavar="ADDRESS", help="of Pyodide's distribution")
    parser.add_argument("--to", type=Path, default=ROOT / "lite", metavar="FOLDER")
    parser.add_argument("wheels", type=Path, nargs="+", metavar="WHEEL", help="torch, and others")
    options = parser.parse_args()
    site = options.to.resolve()
    with tempfile.TemporaryDirectory(prefix="lite") as folder:
        work = Path(folder)
        pyodide = unpack_pyodide(work)
        for wheel in options.wheels:
            shutil.copy(wheel, pyodide)
        build_course(pyodide, work / "source")
        pip("download", "-d", pyodide, *PURE.split(), "-c", ROOT / "constraints.txt", *ADDED)
        write_lock(pyodide, options.cdn)
        shutil.copytree(ROOT / "notebooks", work / "content", ignore=shutil.ignore_patterns(".*"))
        shutil.copy(ROOT / SETTINGS, work / "overrides.json")
        data = {"appName": "Eleven Steps", "litePluginSettings": PLUGINS}
        config = {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}
        (work / "jupyter-lite.json").write_text(json.dumps(config), encoding="utf-8")
        shutil.rmtree(site, ignore_errors=True)
        build = (
            "-m jupyter lite build --no-sourcemaps --no-unused-shared-packages --contents content"
        )
        run(sys.executable, *build.split(), "--apps", "lab", "--output-dir", site, cwd=work)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(
        f"{site}: {size / 1e6:.0f} MB. It needs a web server: a page of a folder may load nothing."
    )


def run(*command: object, **options) -> None:
    """Run a command, and print its output only if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{command[0]} failed.")


def pip(command: str, *arguments: object) -> None:
    quiet = "--quiet", "--disable-pip-version-check"
    run(sys.executable, "-m", "pip", command, "--no-deps", *quiet, *arguments)


def unpack_pyodide(work: Path) -> Path:
    """Unpack Pyodide where JupyterLite looks for it, without unused files; return the folder."""
    run("npm", "pack", "--silent", f"pyodide@{PYODIDE}", cwd=work)
    shutil.unpack_archive(work / f"pyodide-{PYODIDE}.tgz", work, filter="data")
    pyodide = work / "static" / "pyodide"
    unused = shutil.ignore_patterns("*.map", "*.d.ts", "console*")
    return shutil.copytree(work / "package", pyodide, ignore=unused)


def build_course(pyodide: Path, source: Path) -> None:
    """Build the course's wheel; notebooks import its helpers by their own name as well."""
    unused = shutil.ignore_patterns(".*", "lite", "site", "notebooks", "tests", "__pycache__")
    shutil.copytree(ROOT, source, ignore=unused)  # a build leaves files behind
    pip("wheel", "-w", pyodide, source)
    (wheel,) = pyodide.glob(f"{COURSE.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as course:
        course.write(ROOT / "helpers" / "__init__.py", "helpers/__init__.py")


def write_lock(pyodide: Path, cdn: str) -> None:
    """Write into Pyodide's lock which packages the site serves, and where to get all others."""
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))
    packages, needed = lock["packages"], [*KERNEL, *ADDED, COURSE]
    served = dict(map(entry, pyodide.glob("*.whl")))
    packages.update(served)
    for name in needed:  # it grows
        depends = [normal(each) for each in packages[name]["depends"]]
        packages[name]["depends"] = [each for each in depends if each in packages]
        needed += [each for each in packages[name]["depends"] if each not in needed]
    others = {name: packages[name] for name in needed if name not in served}
    if not cdn:  # pip can download packages of pure Python, and the site serves them too
        pure = [name for name in others if others[name]["file_name"].endswith("-none-any.whl")]
        pins = [f"{name}=={packages[name]['version']}" for name in pure]
        pip("download", "-d", pyodide, *PURE.split(), *pins)
        for name, made in map(entry, pyodide.glob("*.whl")):  # Pyodide packs its own anew
            packages[name] = made | {"depends": packages[name]["depends"]}
        missing = [name for name in others if name not in pure]
        print(
            *(f"Not in this site, for want of --cdn or a wheel: {name}" for name in missing),
            sep="\n",
        )
        for each in packages.values():
            each["depends"] = [name for name in each["depends"] if name not in missing]
    for name in packages.keys() - served.keys() if cdn else ():
        packages[name]["file_name"] = f"{cdn.rstrip('/')}/{packages[name]['file_name']}"
    (pyodide / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def entry(wheel: Path) -> tuple[str, dict]:
    """Return a wheel's name and how Pyodide's lock describes it."""
    from packaging.requirements import Requirement  # of the environment that builds

    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(packed.read(metadata).decode("utf-8"))
    asked = [Requirement(each) for each in about.get_all("Requires-Dist") or ()]
    needed = [each.name for each in asked if not each.marker or each.marker.evaluate(BROWSER)]
    tops = {name.split("/")[0].removesuffix(".py") for name in names}
    own = {"name": normal(about["Name"]), "version": about["Version"], "file_name": wheel.name}
    own["sha256"] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own["imports"] = sorted(top for top in tops if not top.endswith((".dist-info", ".data")))
    return own["name"], LOCKED | own | {"depends": needed}


if __name__ == "__main__":
    main()
