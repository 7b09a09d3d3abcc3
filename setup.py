"""Build `sneck._core`: the C core and its Python binding in one extension.

Everything that is not C stands in pyproject.toml. The version comes from
core/include/sneck.h. Whatever the build needs is tried first, so that a missing
package is named in one line instead of by a compiler's error.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

ROOT = Path(__file__).parent.resolve()
BUILD = "build/python"
LIMITED_API = "0x030A0000"
# A Python without a GIL has no limited API: for it the extension is of one version.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")

COMPILER = (
    "sneck needs a C compiler to build; install one: apt install gcc libc6-dev "
    "(Debian, Ubuntu), dnf install gcc (Fedora), apk add gcc musl-dev (Alpine), "
    "xcode-select --install (macOS)"
)
PYTHON = (
    "sneck needs Python's headers to build; install them: apt install python3-dev "
    "(Debian, Ubuntu), dnf install python3-devel (Fedora), apk add python3-dev (Alpine), "
    "brew install python (macOS)"
)
HIREDIS = (
    "sneck needs hiredis and its headers to build; install them: apt install libhiredis-dev "
    "(Debian, Ubuntu), dnf install hiredis-devel (Fedora), apk add hiredis-dev (Alpine), "
    "brew install hiredis (macOS)"
)

HIREDIS_PROGRAM = """
#include <hiredis/hiredis.h>
int main(void) { redisReaderFree(redisReaderCreate()); return 0; }
"""

# Programs that must compile, what they link with, and the complaint otherwise.
PROBES: tuple[tuple[str, list[str], str], ...] = (
    ("int main(void) { return 0; }", [], COMPILER),
    ("#include <stdlib.h>\nint main(void) { return 0; }", [], COMPILER),
    ("#include <Python.h>\nint main(void) { return 0; }", [], PYTHON),
    (HIREDIS_PROGRAM, ["-lhiredis"], HIREDIS),
)


def version() -> str:
    """Read the version from the header, the one place where it stands."""
    header = (ROOT / "core/include/sneck.h").read_text()
    found = re.search(r'^#define SNECK_VERSION "([^"]+)"$', header, re.MULTILINE)
    if found is None:
        raise PlatformError("core/include/sneck.h defines no SNECK_VERSION")
    return found[1]


def pkg_config(option: str) -> list[str]:
    """Ask where hiredis is; nothing when pkg-config or its file is missing."""
    try:
        output = subprocess.run(
            ["pkg-config", option, "hiredis"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return shlex.split(output)


class BuildCore(build_ext):
    """Build the extension after a look at what the machine has."""

    def build_extensions(self) -> None:
        """Try each thing that the build needs, then build. Raises PlatformError."""
        for program, libraries, complaint in PROBES:
            if not self._compiles(program, libraries):
                raise PlatformError(complaint)
        super().build_extensions()

    def _compiles(self, program: str, libraries: list[str]) -> bool:
        extension = self.extensions[0]
        include = [f"-I{path}" for path in self.compiler.include_dirs]
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, "probe.c")
            source.write_text(program)
            command = [
                *(*self.compiler.compiler_so, *include, *extension.extra_compile_args),
                *(str(source), "-o", str(source.with_suffix(""))),
                *(*extension.extra_link_args, *libraries),
            ]
            try:
                return not subprocess.run(command, capture_output=True, check=False).returncode
            except OSError:
                return False


def sources(pattern: str) -> list[str]:
    """List files below the root, relative to it, as setuptools wants them."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))


core = Extension(
    "sneck._core",
    sources=[*sources("bindings/python/*.c"), "core/src/sneck_all.c"],
    depends=[*sources("bindings/python/*.h"), *sources("core/include/*"), *sources("core/src/*")],
    include_dirs=["core/include", "core/src", "bindings/python"],
    define_macros=[
        ("SNECK_STATIC", None),
        *([("Py_LIMITED_API", LIMITED_API)] if ABI3 else []),
    ],
    extra_compile_args=["-std=c11", "-fvisibility=hidden", *pkg_config("--cflags")],
    extra_link_args=pkg_config("--libs-only-L"),
    libraries=["hiredis", "pthread"],
    py_limited_api=ABI3,
)

(ROOT / BUILD).mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    ext_modules=[core],
    cmdclass={"build_ext": BuildCore},
    options={
        "build": {"build_base": BUILD},
        "egg_info": {"egg_base": BUILD},
        "bdist_wheel": {"py_limited_api": "cp310" if ABI3 else False},
    },
)
