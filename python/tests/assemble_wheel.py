"""Assembles a wheel of the package that this Python imports, as `cargo xtask wheel` would, but around the extension that it has.

    python assemble_wheel.py PYPROJECT FOLDER

Prints the path of the wheel and then its extras, a line each. Only the tests use it: its tag says nothing about the C library.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import tidemill


def metadata(project: dict[str, Any], version: str) -> str:
    """What pip reads: name, version, and what each extra brings."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}"]
    lines.append(f"Requires-Python: {project['requires-python']}")
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {package}; extra == '{extra}'" for package in packages]
    assert not project.get("dependencies"), "the package needs no other"
    return "\n".join(lines) + "\n"


def assemble(package: Path, project: dict[str, Any], version: str, folder: Path) -> Path:
    """Writes the wheel."""
    tag = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"{project['name']}-{version}.dist-info"
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    files = {f"tidemill/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.is_file()}
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = folder / f"{project['name']}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def main() -> None:
    """Assembles what the arguments name."""
    pyproject, folder = map(Path, sys.argv[1:])
    package = Path(tidemill.__file__).parent
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    print(assemble(package, project, tidemill.__version__, folder))
    print("\n".join(project["optional-dependencies"]))


if __name__ == "__main__":
    main()
