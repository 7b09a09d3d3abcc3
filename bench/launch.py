"""The workers' programs, which are compiled where they are in C."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKERS = HERE / "workers"
BUILD = HERE.parent / "build" / "bench"
LUA = "lua5.4"


@dataclass
class Program:
    """How the workers of a group are started: each is given the page and its index, too."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@cache
def compile_worker(name: str, *options: str, suffix: str = "") -> str:
    """Compile a worker in C and return its path."""
    program = BUILD / (name + suffix)
    BUILD.mkdir(parents=True, exist_ok=True)
    compiler = HERE.parent / "scripts" / "compile"
    subprocess.check_call([compiler, program, WORKERS / f"{name}.c", *options])
    return str(program)


def compile_lua_module(name: str) -> str:
    """Compile a module for Lua and return the LUA_CPATH with which it is found."""
    asked = ["luarocks", "--lua-version", "5.4", "config", "variables.LUA_INCDIR"]
    headers = subprocess.check_output(asked, text=True).strip()
    compile_worker(name, "-shared", "-fPIC", f"-I{headers}", suffix=".so")
    return f"{BUILD}/?.so;{os.environ.get('LUA_CPATH', ';')}"


def python_worker(name: str, *arguments: str) -> list[str]:
    """Say how a worker in Python is started."""
    return [sys.executable, str(WORKERS / f"{name}.py"), *arguments]


def lua_worker(name: str, *arguments: str) -> list[str]:
    """Say how a worker in Lua is started."""
    return [LUA, str(WORKERS / f"{name}.lua"), *arguments]


def c_program(name: str, *arguments: str, library: str = "") -> Program:
    """Compile a group's worker in C, where it needs to with a library to compare with."""
    return Program([compile_worker(name, *library.split()), *arguments])


def python_program(name: str, *arguments: str) -> Program:
    """Say how a group's worker in Python is started, which finds the page here."""
    return Program(python_worker(name, *arguments), {"PYTHONPATH": str(HERE)})


def lua_program(name: str, *arguments: str) -> Program:
    """Say how a group's worker in Lua is started, and compile its page."""
    return Program(lua_worker(name, *arguments), {"LUA_CPATH": compile_lua_module("page_lua")})


def installed(module: str) -> bool:
    """Tell whether a library to compare with is there."""
    return importlib.util.find_spec(module) is not None
