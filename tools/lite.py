"""Write the course as a JupyterLite site to lite/: it runs in a browser, with nothing installed.

Usage: python tools/lite.py --torch WHEEL [--cdn ADDRESS] [--wheels FOLDER] [--to FOLDER]

Python itself is Pyodide, from npm. The course is built as a wheel, the small packages that it needs
come from pip. Compiled packages, such as numpy, exist for Pyodide alone: the page loads them from
the ADDRESS of Pyodide's full distribution, or they are served from the site if they are in FOLDER.
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
SETTINGS = "tools/jupyterlab/labconfig/default_setting_overrides.json"
# /drive is what the browser keeps when the page is closed.
OPTIONS = {"loadPyodideOptions": {"env": {"ELEVEN_STEPS_PROGRESS": "/drive/progress.json"}}}
KERNEL_EXTENSION = "@jupyterlite/pyodide-kernel-extension:kernel"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", type=Path, required=True, metavar="WHEEL")
    parser.add_argument("--cdn", default="", metavar="ADDRESS", help="of Pyodide's distribution")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="compiled packages to serve")
    parser.add_argument("--to", type=Path, default=ROOT / "lite", metavar="FOLDER")
    options = parser.parse_args()
    site = options.to.resolve()
    with tempfile.TemporaryDirectory(prefix="lite") as folder:
        work = Path(folder)
        pyodide = unpack_pyodide(work)
        given = [options.torch, *(options.wheels.glob("*.whl") if options.wheels else ())]
        for wheel in given:
            shutil.copy(wheel, pyodide)
        build_course(pyodide)
        download(pyodide, "-c", ROOT / "constraints.txt", *ADDED)
        write_lock(pyodide, options.cdn)
        write_content(work)
        shutil.rmtree(site, ignore_errors=True)
        apps = "--apps", "lab", "--apps", "notebooks", "--no-unused-shared-packages"
        lite = "-m", "jupyter", "lite", "build", "--output-dir", site, "--no-sourcemaps", *apps
        run(sys.executable, *lite, "--contents", work / "content", cwd=work)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(
        f"{site}: {size / 1e6:.0f} MB. Serve it from any web server; a file: address is not enough."
    )


def run(*command: object, **options) -> None:
    """Run a command, and print what it has printed only if it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{command[0]} failed.")


def pip(*arguments: object) -> None:
    run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def download(folder: Path, *packages: object) -> None:
    """Download wheels of pure Python for Pyodide's version of it."""
    pure = "--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"
    pip("download", "--no-deps", *pure, "--python-version", "3.14", "-d", folder, *packages)


def unpack_pyodide(work: Path) -> Path:
    """Return the folder with Pyodide where JupyterLite looks for it, without what no page loads."""
    run("npm", "pack", "--silent", f"pyodide@{PYODIDE}", cwd=work)
    shutil.unpack_archive(work / f"pyodide-{PYODIDE}.tgz", work, filter="data")
    pyodide = work / "static" / "pyodide"
    (work / "package").rename(pyodide.parent.mkdir() or pyodide)
    for pattern in "*.map", "*.d.ts", "console*":
        for each in pyodide.glob(pattern):
            each.unlink()
    return pyodide


def build_course(pyodide: Path) -> None:
    """Build the course's wheel; notebooks import its helpers by their own name as well."""
    with tempfile.TemporaryDirectory() as folder:  # a build leaves files behind
        source = Path(folder, "course")
        left_out = shutil.ignore_patterns(".*", "lite", "site", "notebooks", "tests", "__pycache__")
        shutil.copytree(ROOT, source, ignore=left_out)
        pip("wheel", "--no-deps", "-w", pyodide, source)
    (wheel,) = pyodide.glob(f"{COURSE.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as course:
        course.write(ROOT / "helpers" / "__init__.py", "helpers/__init__.py")


def write_lock(pyodide: Path, cdn: str) -> None:
    """List in Pyodide's lock what the site serves, and where to get what it does not."""
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))
    packages = lock["packages"]
    served = dict(map(entry, pyodide.glob("*.whl")))
    packages.update(served)
    needed = [*KERNEL, *ADDED, COURSE]
    for name in needed:  # it grows
        depends = [normal(each) for each in packages[name]["depends"]]
        packages[name]["depends"] = [each for each in depends if each in packages]
        needed += [each for each in packages[name]["depends"] if each not in needed]
    others = [packages[name] for name in needed if name not in served]
    if not cdn:  # what is pure Python is served as well: pip has it
        pure = [each for each in others if each["file_name"].endswith("-none-any.whl")]
        download(pyodide, *(f"{each['name']}=={each['version']}" for each in pure))
        for name, made in map(entry, pyodide.glob("*.whl")):  # Pyodide packs its own anew
            packages[name] = made | {"depends": packages[name]["depends"]}
        missing = [each["name"] for each in others if each not in pure]
        for each in packages.values():
            each["depends"] = [name for name in each["depends"] if name not in missing]
        print(
            f"Not in this site: {', '.join(missing)}. --cdn or --wheels brings them."
            * bool(missing)
        )
    for name, each in packages.items():
        if cdn and name not in served:
            each["file_name"] = f"{cdn.rstrip('/')}/{each['file_name']}"
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
    depends = [each.name for each in asked if not each.marker or each.marker.evaluate(BROWSER)]
    tops = {name.split("/")[0].removesuffix(".py") for name in names}
    name = normal(about["Name"])
    return name, {
        "name": name,
        "version": about["Version"],
        "file_name": wheel.name,
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
        "depends": [normal(each) for each in depends],
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "imports": sorted(top for top in tops if not top.endswith((".dist-info", ".data"))),
    }


def write_content(work: Path) -> None:
    """Lay down the notebooks as they are, and the settings."""
    kept = shutil.ignore_patterns(".*")
    shutil.copytree(ROOT / "notebooks", work / "content", ignore=kept)
    shutil.copy(ROOT / SETTINGS, work / "overrides.json")
    data = {"appName": "Eleven Steps", "litePluginSettings": {KERNEL_EXTENSION: OPTIONS}}
    config = {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}
    (work / "jupyter-lite.json").write_text(json.dumps(config), encoding="utf-8")


if __name__ == "__main__":
    main()
