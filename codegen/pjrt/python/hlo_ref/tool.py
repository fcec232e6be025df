"""The program `hlo`, and HLO text as far as names, operands and places are read from it."""

import dataclasses
import json
import linecache
import os
import re
import subprocess

from . import places

_LINE = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$")
_NAME = re.compile(r"%([\w.\-]+)")
_METADATA = re.compile(r"metadata=\{(.*?)\}(?:,|$)")


@dataclasses.dataclass
class Place:
    """A line of Python."""

    op_name: str = ""
    file: str = ""
    line: int = 0

    def __str__(self):
        if not self.file:
            return self.op_name or "(no place known)"
        code = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {code}" if code else "")


@dataclasses.dataclass
class Instruction:
    name: str
    type: str
    opcode: str
    computation: str
    operands: list
    place: Place


def place_of(rest):
    found = _METADATA.search(rest)
    if not found:
        return Place()
    def field(name):
        value = re.search(name + r'="((?:[^"\\]|\\.)*)"', found[1])
        return value[1] if value else ""
    line = re.search(r"source_line=(\d+)", found[1])
    return Place(field("op_name"), field("source_file"), int(line[1]) if line else 0)


def instructions(text):
    """All instructions of a module by computation and name."""
    found, computation = {}, ""
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            head = line.removeprefix("ENTRY ").split()
            computation = head[0].lstrip("%") if head else ""
            continue
        match = _LINE.match(line)
        if match:
            name, type_, opcode, rest = match.groups()
            operands = _NAME.findall(rest.split("), ")[0])
            found[computation, name] = Instruction(name, type_, opcode, computation, operands, place_of(rest))
    return found


class Failed(RuntimeError):
    """The program `hlo` cannot do what it was asked to: a program that is not supported, say."""


def hlo(*args, timeout=None, may_differ=False):
    """Runs `hlo`; what it prints as JSON, an object a line."""
    env = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([places.program(), *args], capture_output=True, text=True, timeout=timeout, env=env, check=False)
    objects = []
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            objects.append(json.loads(line))
    if done.returncode == 0 or (may_differ and done.returncode == 1 and objects):
        return objects
    reasons = [error["message"] for o in objects for error in o.get("errors", [])]
    raise Failed("; ".join(reasons) or done.stderr.strip() or f"hlo ended with exit code {done.returncode}")


def to_hlo(path, timeout=None):
    """A program as HLO text."""
    done = subprocess.run([places.program(), "convert", path, "--to", "hlo"], capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip() or done.stdout.strip())
    return done.stdout
