"""The core's layers are those of the picture in docs/design.md."""

from __future__ import annotations

import re

from programs import TOP

SOURCES = TOP / "core/src"
INCLUDE = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)
NAMES = re.compile(r"(?:core/src)? +(\w+(?: \w+)*)(?:  |$)")
NO_LAYER = {"sneck", "sneck_legacy", "sneck_quorum", "sneck_all", "script_table"}
UPWARD = {("client.h", "renewal")}  # the client has the room for it


def read_layers() -> list[set[str]]:
    """Read the names of each layer, from the top."""
    page = (TOP / "docs/design.md").read_text()
    picture = page.split("core/include/sneck.h\n", 1)[1].split("\ncore/scripts", 1)[0]
    layers: list[set[str]] = []
    for part in picture.split("\n\n"):
        matches = [NAMES.match(line) for line in part.splitlines()]
        layers.append({name for match in matches if match for name in match[1].split()})
    return layers


def test_every_file_has_one_layer() -> None:
    names = [name for layer in read_layers() for name in layer]
    assert len(names) == len(set(names))
    files = {path.stem for path in SOURCES.glob("*.[ch]")} - NO_LAYER
    assert files - set(names) == set(), "files that the picture does not show"
    assert set(names) - files == set(), "no files"


def test_no_file_includes_what_is_above_it() -> None:
    layers = read_layers()
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    upward = {
        (path.name, name)
        for path in sorted(SOURCES.glob("*.[ch]"))
        for name in INCLUDE.findall(path.read_text())
        if not {path.stem, name} & NO_LAYER and level[name] < level[path.stem]
    }
    assert upward == UPWARD
