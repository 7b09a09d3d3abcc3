"""The tree is clean by every checker: compilers' warnings, types, style, generated files."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from programs import TOP

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
# what CMake does not compile
C_CODE = {
    "python": ["bindings/python/*.c"],
    "lua": ["bindings/lua/*.c"],
    "examples": ["examples/*.c", "examples/demo/*.c"],
    "bench": ["bench/workers/*.c"],
}
COMPILERS = ("gcc", "clang")
NOT_SHELL = {"generate", "requirements-build.txt", "requirements-test.txt"}
OPTIONS = (
    *("-DPy_LIMITED_API=0x030A0000", "-DSNECK_STATIC"),
    *("-Icore/include", "-Icore/src", "-Ibindings/python", "-Ibindings/lua"),
    *("-isystem", sysconfig.get_path("include"), "-isystem", "/usr/include/lua5.4"),
)
# each is one program to mypy, where two modules of one name would clash
TYPED = {
    "package": ["python/sneck"],
    "tests": ["tests", "--exclude", "tests/(hostile|python|runners)/"],
    "runner": ["tests/runners/python"],
    "tests of Python": ["tests/python"],
    "bench": ["bench"],
    "demo": ["examples/demo"],
    "generate": ["scripts/generate"],
}


def check(*command: str, **environment: str) -> None:
    """Run a checker in the tree; its complaints are the test's."""
    done = subprocess.run(
        command,
        cwd=TOP,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("compiler", COMPILERS)
def test_library_and_its_tests_have_no_warning(compiler: str, tmp_path: Path) -> None:
    options = [f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_C_FLAGS=-O2 -Werror"]
    check("cmake", "-S", ".", "-B", str(tmp_path), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)
    # compiled but not linked: Debian's clang comes without the sanitizers' libraries
    for unit in json.loads((tmp_path / "compile_commands.json").read_text()):
        check(*shlex.split(unit["command"]), "-o", str(tmp_path / "object"))


@pytest.mark.parametrize("part", C_CODE)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_code_has_no_warning(compiler: str, part: str, tmp_path: Path) -> None:
    sources = [str(path) for pattern in C_CODE[part] for path in sorted(TOP.glob(pattern))]
    assert sources
    options = ["-std=c11", "-O2", *WARNINGS, *OPTIONS]
    for source in sources:
        check(compiler, *options, "-c", source, "-o", str(tmp_path / "object"))


def test_header_is_cplusplus(tmp_path: Path) -> None:
    source = tmp_path / "header.cc"
    source.write_text("#include <sneck_legacy.h>\nint main() { return sneck_version()[0] == 0; }\n")
    check("clang", "-x", "c++", *WARNINGS, *OPTIONS, "-fsyntax-only", "-nostdinc++", str(source))


def test_generated_files_are_up_to_date() -> None:
    check(sys.executable, "scripts/generate", "--check")


def test_python_is_clean_by_ruff() -> None:
    check(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    check(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")


@pytest.mark.parametrize("part", TYPED)
def test_python_is_clean_by_mypy(part: str, tmp_path: Path) -> None:
    check(sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", *TYPED[part])


def test_stubs_tell_what_the_extension_has(tmp_path: Path) -> None:
    # from elsewhere, so that the installed package is looked at and not the sources
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "sneck"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_shell_scripts_are_clean_by_shellcheck() -> None:
    files = [path for path in (TOP / "scripts").iterdir() if path.name not in NOT_SHELL]
    benches = [TOP / "bench" / name for name in ("uncontended", "contended", "cas")]
    scripts = [*files, TOP / ".ci/run", *benches]
    shellcheck = Path(sys.executable).parent / "shellcheck"
    check(str(shellcheck), "--external-sources", *[str(script) for script in scripts])


def test_lua_is_clean_by_luacheck() -> None:
    check("luacheck", "lua", "tests", "examples", "bench")


@pytest.mark.parametrize(
    "script", ["scripts/setup", "scripts/build", "scripts/demo", "scripts/test"]
)
def test_shell_scripts_parse(script: str) -> None:
    check("sh", "-n", script)


def test_no_file_is_too_long_to_read() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.c", "*.h", "*.py", "*.pyi", "*.lua"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    texts = {name: (TOP / name).read_text() for name in listed}
    lengths = {
        name: text.count("\n")
        for name, text in texts.items()
        if not text.startswith("/* Generated")
    }
    # the header is the reference, and there is one
    limits = {"core/include/sneck.h": 800}
    assert {name: n for name, n in lengths.items() if n > limits.get(name, 600)} == {}
