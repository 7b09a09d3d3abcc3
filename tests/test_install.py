"""Sneck is installed as users do it, and used from a directory that knows nothing of the tree.

For C by pkg-config and by CMake; for Python by a wheel; for Lua by a packed rock. And where the
build lacks something, it says which package to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installed import compile_program, install_library, lua_environment
from programs import TOP
from sneck.testing import Server

PAGES = ("docs", "examples", "README.md", "CHANGELOG.md")
PYTHON_SOURCES = ("bindings", "core", "python", "LICENSE", "MANIFEST.in", *PAGES)
LUA_SOURCES = ("bindings", "core", "lua", "LICENSE", *PAGES)


@pytest.fixture
def clean(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Move to an empty directory, where the server is the default one."""
    monkeypatch.setenv("SNECK_URL", server.url)
    directory = tmp_path / "clean"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def copy_sources(target: Path, *names: str) -> Path:
    """Copy sources of the tree, so that no build leaves anything in it or reads anything else."""
    target.mkdir()
    for name in names:
        source = TOP / name
        if source.is_dir():
            no_builds = shutil.ignore_patterns("*.so", "*.o", "*.egg-info", "__pycache__")
            shutil.copytree(source, target / name, ignore=no_builds)
        else:
            shutil.copy(source, target)
    return target


def python_sources(target: Path) -> Path:
    """Copy what the Python package is built from."""
    return copy_sources(target, *PYTHON_SOURCES, "setup.py", "pyproject.toml")


def pip(*arguments: str | Path, python: Path | str = sys.executable) -> str:
    """Run pip for an interpreter, which need not have it itself; return all that it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build_wheel(sources: Path, directory: Path) -> Path:
    """Build the wheel with the tools that are installed here."""
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", directory, sources)
    (wheel,) = directory.glob("*.whl")
    return wheel


def pages_of(directory: Path) -> set[str]:
    """Return the pages of an installation, as messages and the README name them."""
    pages = [*directory.glob("README.md"), *directory.glob("docs/*.md")]
    return {str(page.relative_to(directory)) for page in pages}


def output_of(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a program and return what it printed."""
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout


def test_a_c_program_is_compiled_by_pkg_config(clean: Path, tmp_path: Path) -> None:
    install_library(tmp_path / "prefix")
    compile_program(tmp_path / "prefix", TOP / "examples/acquire.c", clean / "acquire")
    assert output_of(clean / "acquire") == "reports:42 is ours\n"


def test_the_pages_are_installed_with_the_library(tmp_path: Path) -> None:
    install_library(tmp_path)
    assert pages_of(tmp_path / "share/doc/sneck") == pages_of(TOP)


@pytest.mark.parametrize("target", ["shared", "static"])
def test_a_c_program_is_built_by_find_package(clean: Path, tmp_path: Path, target: str) -> None:
    install_library(tmp_path / "prefix")
    output_of(
        "cmake",
        *("-S", TOP / "tests/install"),
        *("-B", clean),
        f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}",
        f"-DPROGRAM={TOP / 'examples/acquire.c'}",
    )
    output_of("cmake", "--build", clean, "--target", target)
    assert output_of(clean / target) == "reports:42 is ours\n"


def test_the_library_exports_its_api_only(tmp_path: Path) -> None:
    install_library(tmp_path)
    (library,) = tmp_path.glob("lib*/libsneck.so")
    symbols = output_of("nm", "--dynamic", "--defined-only", "--format=posix", library)
    exported = {line.split()[0] for line in symbols.splitlines()}
    header = "".join(path.read_text() for path in TOP.glob("core/include/*.h"))
    assert exported
    assert {name for name in exported if f"{name}(" not in header} == set()


def test_a_wheel_works_in_a_new_environment(clean: Path, tmp_path: Path) -> None:
    wheel = build_wheel(python_sources(tmp_path / "sources"), tmp_path)
    assert "-cp310-abi3-" in wheel.name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clean / "venv"], check=True)
    python = clean / "venv/bin/python"
    pip("install", "--no-index", "--no-deps", wheel, python=python)
    assert output_of(python, TOP / "examples/acquire.py") == "reports:42 is ours\n"
    assert pages_of(clean / "venv/share/doc/sneck") == pages_of(TOP)


@pytest.mark.usefixtures("clean")
def test_a_rock_works_in_a_new_tree(tmp_path: Path) -> None:
    (rockspec,) = TOP.glob("*.rockspec")
    sources = copy_sources(tmp_path / "sources", *LUA_SOURCES, rockspec.name)
    luarocks = ("luarocks", "--lua-version", "5.4", "--tree", tmp_path / "tree")
    subprocess.run([*luarocks, "make", "--pack-binary-rock"], cwd=sources, check=True)
    (rock,) = sources.glob("*.rock")
    output_of(*luarocks, "install", rock)
    shutil.rmtree(sources)
    environment = lua_environment(tmp_path / "tree")
    output = output_of("lua5.4", TOP / "examples/acquire.lua", environment=environment)
    assert output == "reports:42 is ours\n"
    installed = output_of(*luarocks, "show", "--rock-dir", "sneck").strip()
    assert pages_of(Path(installed)) == pages_of(TOP) - {"README.md"}


def failed_build(sources: Path, **environment: str) -> str:
    """Let `pip install` fail, and return what it says."""
    options = ["--no-build-isolation", "--no-deps", "--target", str(sources / "target")]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(sources)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stdout


def headers_without_hiredis(directory: Path) -> str:
    """Make a view of the system's headers without those of hiredis; return compiler options."""
    directory.mkdir()
    for entry in Path("/usr/include").iterdir():
        if entry.name != "hiredis":
            (directory / entry.name).symlink_to(entry)
    multiarch = output_of("cc", "-print-multiarch").strip()
    own = output_of("cc", "-print-file-name=include").strip()
    folders = [own, str(directory / multiarch), str(directory)]
    return " ".join(["-nostdinc", *(f"-isystem {folder}" for folder in folders)])


def test_a_build_without_a_compiler_says_what_to_install(tmp_path: Path) -> None:
    sources = python_sources(tmp_path / "sources")
    output = failed_build(sources, CC=str(tmp_path / "no-compiler"))
    assert "needs a C compiler" in output
    assert "apt install gcc" in output


def test_a_build_without_hiredis_says_what_to_install(tmp_path: Path) -> None:
    sources = python_sources(tmp_path / "sources")
    options = headers_without_hiredis(tmp_path / "include")
    output = failed_build(sources, CFLAGS=options)
    assert "needs hiredis" in output
    assert "apt install libhiredis-dev" in output
