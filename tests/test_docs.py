"""Programs in examples/ and blocks of code in the documents do what the documents say.

The blocks of one language on a page are one program, in order, as a reader types them in; blocks
of C are programs of their own. Languages run in the order in which the page shows them, on one
private server. A text block right below a block of code is its output.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from installed import compile_program, install_library, lua_environment
from pages import Block, read_blocks
from programs import LUA_TREE, TOP
from sneck.testing import Server

PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md")), TOP / "bench/README.md"]
LINUX_ONLY = ("epoll.c",)
EXAMPLES = sorted(
    path
    for path in (TOP / "examples").glob("*.*")
    if sys.platform == "linux" or path.name not in LINUX_ONLY
)
GIVING_UP = ("epoll.c", "libuv.c", "nonblocking.c")
SEVERAL_SERVERS = ("quorum.lua", "quorum.py")  # whose addresses are arguments
LIBRARY = {"libuv.c": "libuv"}  # by pkg-config's name, besides sneck
RUNNABLE = ("c", "python", "lua", "sh")
FRAGMENT = TOP / "tests/docs/fragment.c"
DEFAULT_URL = "redis://localhost:6379"
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
SEPARATOR = "\x1e"
PRINT_SEPARATOR = {
    "python": r'print("\x1e", end="", flush=True)',
    "lua": r'io.write("\x1e")',
    "sh": r"printf '\036'",
}
INTERPRETER = {"python": [sys.executable], "lua": ["lua5.4"], "sh": ["sh", "-eu"]}
LANGUAGE = {".c": "c", ".py": "python", ".lua": "lua"}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the C library, and give the place."""
    prefix = tmp_path_factory.mktemp("prefix")
    install_library(prefix)
    return prefix


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a server, make it the default one, and give its address."""
    with Server(port=True) as server:
        monkeypatch.setenv("SNECK_URL", server.tcp_url)
        yield server.tcp_url


def run(command: list[str], directory: Path) -> str:
    """Run a program to its end and return what it printed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=lua_environment(LUA_TREE),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def flags_of(example: Path) -> list[str]:
    """Return what the compiler must be told of the library that an example needs."""
    if example.name not in LIBRARY:
        return []
    asked = ["pkg-config", "--cflags", "--libs", LIBRARY[example.name]]
    return subprocess.check_output(asked, text=True).split()


def run_c(blocks: list[Block], prefix: Path, directory: Path) -> list[str]:
    """Run each block as a program, a fragment within tests/docs/fragment.c."""
    outputs = []
    for block in blocks:
        source, program = directory / f"line{block.line}.c", directory / f"line{block.line}"
        source.write_text(block.text)
        if "int main(" in block.text:
            compile_program(prefix, source, program)
        else:
            compile_program(prefix, FRAGMENT, program, f'-DFRAGMENT="{source}"')
        outputs.append(run([str(program)], directory))
    return outputs


def run_session(language: str, blocks: list[Block], directory: Path) -> list[str]:
    """Run the blocks as one program, whose lines have the numbers that they have on the page."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines))
        lines += [*block.text.splitlines(), PRINT_SEPARATOR[language]]
    program = directory / f"page.{language}"
    program.write_text("\n".join(lines) + "\n")
    return run([*INTERPRETER[language], str(program)], directory).split(SEPARATOR)[:-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_blocks_of_code_print_what_the_page_shows(
    page: Path, url: str, prefix: Path, tmp_path: Path
) -> None:
    blocks = [block for block in read_blocks(page) if block.language in RUNNABLE]
    for language in dict.fromkeys(block.language for block in blocks):
        spoken = [
            Block(language, block.text.replace(DEFAULT_URL, url), block.line, block.output)
            for block in blocks
            if block.language == language
        ]
        if language == "c":
            outputs = run_c(spoken, prefix, tmp_path)
        else:
            outputs = run_session(language, spoken, tmp_path)
        for block, output in zip(spoken, outputs, strict=True):
            if block.output is not None:
                assert output == block.output, f"{page}:{block.line}"


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path, prefix: Path, tmp_path: Path) -> None:
    language = LANGUAGE[example.suffix]
    if language == "c":
        compile_program(prefix, example, tmp_path / "program", *flags_of(example))
        command = [str(tmp_path / "program")]
    else:
        command = [*INTERPRETER[language], str(example)]
    with ExitStack() as stack:
        count = 3 if example.name in SEVERAL_SERVERS else 0
        servers = [stack.enter_context(Server()) for _ in range(count)]
        printed = run([*command, *(server.url for server in servers)], tmp_path)
    assert "is ours" in printed
    assert ("is given up" in printed) == (example.name in GIVING_UP)


@pytest.mark.parametrize("suffix", LANGUAGE)
def test_readme_shows_the_first_example(suffix: str) -> None:
    blocks = read_blocks(TOP / "README.md")
    shown = next(block for block in blocks if block.language == LANGUAGE[suffix])
    assert shown.text in (TOP / f"examples/acquire{suffix}").read_text()


def test_demo_loses_additions_only_where_nothing_protects_them(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SNECK_PREFIX", str(prefix))
    demo = [sys.executable, str(TOP / "examples/demo/run.py"), "--times", "50", "--processes", "1"]
    rows = [line.rsplit(maxsplit=4) for line in run(demo, tmp_path).splitlines()[-4:]]
    assert [(title, expected) for title, expected, _, _, _ in rows] == [
        ("in a file, without a lock", "150"),
        ("in a file, with a lock", "150"),
        ("at a key, by GET and SET", "150"),
        ("at a key, by update", "150"),
    ]
    assert [int(lost) > 0 for _, _, _, lost, _ in rows] == [True, False, True, False]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_links_within_the_tree_lead_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_stands_in_the_index() -> None:
    index = LINK.findall((TOP / "docs/README.md").read_text())
    pages = {page.name for page in (TOP / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(index)
