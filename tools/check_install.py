"""Builds sdist and wheel, installs the wheel into clean environments, and tries it there.

    python tools/check_install.py [--python PATH ...] [--versions newest lowest]

Environments: each Python from 3.11 to 3.14 that is found, with the newest allowed dependencies, and with the lowest
that pyproject.toml allows. In each, `tools/smoke_test.py` runs, two environments at a time. Times are CPU seconds, the
least of several runs.
"""

import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = (11, 12, 13, 14)
CORE = {"numpy", "scipy", "scikit-learn", "numba"}
MAX_IMPORT_RATIO, MAX_EXTRA_SECONDS = 1.3, 1.0
SMOKE_TEST = ROOT / "tools" / "smoke_test.py"


def lowest_versions(pyproject):
    """Constraints that allow only the lowest version of each dependency of the core and of the extra `app`.

    >>> needs = ["numpy>=1.26; python_version < '3.13'"]
    >>> lowest_versions({"dependencies": needs, "optional-dependencies": {"app": []}})
    ["numpy==1.26; python_version < '3.13'"]
    """
    requirements = [*pyproject["dependencies"], *pyproject["optional-dependencies"]["app"]]
    return [requirement.replace(">=", "==", 1) for requirement in requirements]


def find_pythons():
    """One interpreter of each supported version: on the path, or of pyenv."""
    found = []
    for minor in MINORS:
        managed = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))
        for candidate in (shutil.which(f"python3.{minor}"), *map(str, reversed(managed))):
            if candidate and not subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode:
                found.append(candidate)
                break
        else:
            print(f"Python 3.{minor}: not found, not checked")
    return found


def build(folder):
    """Build an sdist, and a wheel from it, so that an incomplete sdist is noticed."""
    tools = folder / "build"
    venv.create(tools, with_pip=True)
    pip = [str(tools / "bin" / "python"), "-m", "pip"]
    run([*pip, "install", "--quiet", "hatchling>=1.27"])
    run([str(tools / "bin" / "hatchling"), "build", "--target", "sdist", "--directory", str(folder / "dist")], cwd=ROOT)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "dist"), str(sdist)])
    (wheel,) = (folder / "dist").glob("*.whl")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB\n{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    return wheel


def check_content(wheel):
    """Check that the wheel has its types, and asks for four packages only."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    assert "transduce/py.typed" in names, "the wheel has no py.typed"
    lines = [line for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M) if "extra ==" not in line]
    needed = {re.match(r"[\w-]+", line)[0] for line in lines}
    assert needed == CORE, f"the wheel requires {sorted(needed)}, not {sorted(CORE)}"


def check_environment(python, versions, wheel):
    """Install into a clean environment, run the smoke test there, and return its name and a row of measures."""
    version = run([python, "-c", "import platform; print(platform.python_version())"]).strip()
    with tempfile.TemporaryDirectory() as folder:
        return f"Python {version}, {versions}", measures(python, versions, wheel, Path(folder))


def measures(python, versions, wheel, folder):
    """What the smoke test prints in a new environment in this folder."""
    run([python, "-m", "venv", str(folder / "env")])
    inside = str(folder / "env" / "bin" / "python")
    pip = [inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    if versions == "lowest":
        with open(ROOT / "pyproject.toml", "rb") as file:
            lines = lowest_versions(tomllib.load(file)["project"])
        (folder / "lowest.txt").write_text("\n".join(lines) + "\n")
        pip += ["--constraint", str(folder / "lowest.txt")]
    smoke = [inside, "-I", str(SMOKE_TEST)]
    run([*pip, str(wheel)])
    (cold, _), (first, second) = (measure([*smoke, "fit"])["fits"] for _ in range(2))
    ratio = measure([*smoke, "import"])["ratio"]
    run([*pip, f"{wheel}[app]"])
    work = folder / "work"
    work.mkdir()
    run([*smoke, "command-line"], cwd=work)
    return {"import": ratio, "not compiled": cold, "first fit": first, "second fit": second}


def run(command, **options):
    """Run a command; its output is shown only if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(command):
    """Run a command and return the JSON that it prints."""
    return json.loads(run(command))


def main():
    """Build, install and try; exit with 1 if something fails, and for missed times only if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--python", action="append", help="interpreter to check; repeat it. Default: all that are found"
    )
    parser.add_argument("--versions", nargs="+", choices=("newest", "lowest"), default=("newest", "lowest"))
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target of time is missed")
    arguments = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as name:
        wheel = build(Path(name))
        check_content(wheel)
        kinds = list(itertools.product(arguments.python or find_pythons(), arguments.versions))
        with ThreadPoolExecutor(2) as pool:
            for title, row in pool.map(lambda kind: check_environment(*kind, wheel), kinds):
                print(f"{title}: " + ", ".join(f"{key} {row[key]:.2f}" for key in row), flush=True)
                extra = row["first fit"] - row["second fit"]
                if row["import"] > MAX_IMPORT_RATIO or extra > MAX_EXTRA_SECONDS:
                    missed.append(title)
    if missed:
        print(f"Target missed (import {MAX_IMPORT_RATIO}, first fit {MAX_EXTRA_SECONDS} s slower): {'; '.join(missed)}")
        sys.exit(1 if arguments.strict else 0)


if __name__ == "__main__":
    main()
