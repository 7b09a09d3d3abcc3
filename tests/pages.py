"""Reads the blocks of code of a Markdown page, with the output shown below them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code; `output` is the text block that follows at once, if any."""

    language: str
    text: str
    line: int  # of its first line of text
    output: str | None = None


def read_blocks(page: Path) -> list[Block]:
    """Return the page's blocks in order; blocks that are an output stand in their code's."""
    source = page.read_text()
    blocks: list[Block] = []
    end = 0
    for fence in FENCE.finditer(source):
        language, text = fence.groups()
        if language == "text" and blocks and not source[end : fence.start()].strip():
            blocks[-1] = replace(blocks[-1], output=text)
        elif language != "text":
            line = source.count("\n", 0, fence.start()) + 2
            blocks.append(Block(language, text, line))
        end = fence.end()
    return blocks
