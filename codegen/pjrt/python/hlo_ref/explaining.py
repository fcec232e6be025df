"""`explain`: which instruction loses the accuracy of a function's results, and where its first NaN or infinity is born.

The program runs twice in the interpreter, every operation correctly rounded: as it is, and with its floats in f64. Both runs are traced; an instruction whose result is much further off than its operands were loses
accuracy there, by cancellation as a rule, whatever back end runs it.
"""

import dataclasses
import json
import os
import re

import numpy as np

from . import arrays as files
from . import checking, tool
from .tool import Instruction

_WIDER = {"f32": "f64", "f16": "f64", "bf16": "f64", "c64": "c128"}
_NARROW_TYPE = re.compile(r"\b(f32|f16|bf16|c64)\[")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")
_EPSILON = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "c64": 2.0**-24}
# What executes other instructions: those are looked at themselves.
_CONTAINERS = {"call", "while", "conditional", "fusion", "parameter", "tuple", "get-tuple-element"}
# An error of so many half units in the last place is worth a word, if the operands' were so many times smaller.
_LARGE, _AMPLIFIED = 64, 16
_TRACE_LIMIT = "256MiB"


@dataclasses.dataclass
class Birth:
    """The first instruction that makes a NaN (or an infinity) of numbers that are none."""

    kind: str
    instruction: Instruction
    count: int

    def __str__(self):
        return f"{self.kind} is born at {self.instruction.opcode} %{self.instruction.name} ({self.count} elements): {self.instruction.place}"


@dataclasses.dataclass
class Loss:
    """An instruction that loses accuracy: relative errors of its operands and of its result, against f64, as units in the last place of its type."""

    instruction: Instruction
    error_in: float
    error_out: float

    @property
    def amplification(self):
        return self.error_out / max(self.error_in, 0.5)

    def __str__(self):
        i = self.instruction
        return f"{i.opcode} %{i.name} loses accuracy: {self.error_in:.3g} ulp in, {self.error_out:.3g} ulp out: {i.place}"


@dataclasses.dataclass
class Explanation:
    """Births of NaN and infinities in the order of execution, losses by how much they lose, and errors of the results in units in the last place."""

    births: list
    losses: list
    results: list
    unknown: str = ""

    def __str__(self):
        lines = [str(b) for b in self.births] + [str(loss) for loss in self.losses]
        if self.results:
            lines.append("results are off by " + ", ".join(f"{error:.3g}" for error in self.results) + " ulp")
        if self.unknown:
            lines.append(self.unknown)
        return "\n".join(lines or ["nothing is lost, and no NaN is born"])


def _exact(match, dtype):
    """A number as the narrow type has it, exactly."""
    return repr(float(np.float32(match[0]) if dtype in ("f32", "c64") else np.float64(match[0])))


def _widened(text, known):
    """The program with its floats in f64. Bits that are looked at stay those of the narrow type."""
    lines, computation = [], ""
    for line in text.splitlines():
        body, metadata, rest = line.partition(", metadata=")
        if line.endswith("{") and not line.startswith(" "):
            computation = line.removeprefix("ENTRY ").split()[0].lstrip("%")
        match = tool._LINE.match(line)
        instruction = known.get((computation, match[1])) if match else None
        if instruction and instruction.opcode == "bitcast-convert":
            indent = "  "
            of = known.get((computation, instruction.operands[0]))
            operand = "%" + instruction.operands[0]
            if of and _NARROW_TYPE.match(of.type):
                lines.append(f"{indent}%{match[1]}.narrow_operand = {of.type} convert({operand})")
                operand = f"%{match[1]}.narrow_operand"
            root = "ROOT " if line.lstrip().startswith("ROOT") else ""
            if _NARROW_TYPE.match(instruction.type):
                lines.append(f"{indent}%{match[1]}.narrow = {instruction.type} bitcast-convert({operand})")
                wide = _NARROW_TYPE.sub(lambda m: _WIDER[m[1]] + "[", instruction.type)
                lines.append(f"{indent}{root}%{match[1]} = {wide} convert(%{match[1]}.narrow)")
            else:
                lines.append(f"{indent}{root}%{match[1]} = {instruction.type} bitcast-convert({operand})")
            continue
        if instruction and instruction.opcode == "constant" and (narrow := _NARROW_TYPE.match(instruction.type)):
            head, _, values = body.partition(" constant(")
            body = f"{head} constant({_NUMBER.sub(lambda m: _exact(m, narrow[1]), values)}"
        body = _NARROW_TYPE.sub(lambda m: _WIDER[m[1]] + "[", body)
        lines.append(body + metadata + rest)
    return "\n".join(lines) + "\n"


class _Trace:
    def __init__(self, folder, module, inputs, timeout):
        tool.hlo("run", module, "--inputs", inputs, "--trace", folder, "--trace-limit", _TRACE_LIMIT, "--json", timeout=timeout)
        with open(os.path.join(folder, "index.jsonl")) as file:
            self.records = [record for record in map(json.loads, file) if "name" in record]
        self._values = np.load(os.path.join(folder, "values.npz"))

    def values(self, array):
        file = array.get("file")
        if not file or file not in self._values:
            return None
        value = self._values[file]
        if array["type"] == "bf16":
            return (value.astype(np.uint32) << 16).view(np.float32)
        return value


def _births(trace, known):
    births, last = [], {}
    for record in trace.records:
        key = (record["computation"], record["name"])
        counts = {kind: sum(a.get(field) or 0 for a in record["arrays"]) for kind, field in (("NaN", "nan"), ("infinity", "inf"))}
        instruction = known.get(key)
        if instruction and record["opcode"] not in _CONTAINERS | {"constant"}:
            before = [last.get((record["computation"], name), {}) for name in instruction.operands]
            for kind, count in counts.items():
                comes_in = any(b.get("NaN") or b.get(kind) for b in before)
                if count and not comes_in and not any(b.kind == kind and b.instruction is instruction for b in births):
                    births.append(Birth(kind, instruction, count))
        last[key] = counts
    return births


def _error(narrow, wide):
    """The greatest relative error of an element; an element that should be 0 is measured by the largest one."""
    narrow, wide = np.asarray(narrow, wide.dtype), np.asarray(wide)
    finite = np.isfinite(narrow) & np.isfinite(wide)
    if not finite.any():
        return 0.0
    difference, size = np.abs(narrow - wide)[finite], np.abs(wide)[finite]
    scale = np.where(size > 0, size, size.max() or 1.0)
    return float((difference / scale).max())


def _losses(narrow, wide, known):
    by_key = {(r["computation"], r["name"], r["execution"], tuple(r["device"])): r for r in wide.records}
    losses, errors = {}, {}
    for record in narrow.records:
        other = by_key.get((record["computation"], record["name"], record["execution"], tuple(record["device"])))
        if other is None:
            continue
        error, epsilon = 0.0, None
        for a, b in zip(record["arrays"], other["arrays"]):
            if a["type"] in _EPSILON and (va := narrow.values(a)) is not None and (vb := wide.values(b)) is not None:
                epsilon = _EPSILON[a["type"]]
                error = max(error, _error(va, vb) / epsilon / 2)
        key = (record["computation"], record["name"])
        errors[key] = error
        instruction = known.get(key)
        if epsilon is None or instruction is None or record["opcode"] in _CONTAINERS:
            continue
        before = max((errors.get((record["computation"], name), 0.0) for name in instruction.operands), default=0.0)
        loss = Loss(instruction, before, error)
        if error > _LARGE and loss.amplification > _AMPLIFIED and (key not in losses or losses[key].error_out < error):
            losses[key] = loss
    return sorted(losses.values(), key=lambda loss: -loss.amplification)


def explain(f, *args, timeout=None, **kwargs):
    """Says which instruction of `f(*args, **kwargs)` loses accuracy, and where the first NaN is born, with lines of Python."""
    with checking.files_of(f, args, kwargs) as (folder, module, inputs, lowered):
        text = tool.to_hlo(module, timeout)
        known = tool.instructions(text)
        plain, wide = os.path.join(folder, "plain.hlo"), os.path.join(folder, "wide.hlo")
        with open(plain, "w") as file:
            file.write(text)
        trace = _Trace(os.path.join(folder, "trace"), plain, inputs, timeout)
        explanation = Explanation(_births(trace, known), [], [])
        if not _NARROW_TYPE.search(text):
            explanation.unknown = "accuracy is measured against f64, and nothing in this program is narrower"
            return explanation
        with open(wide, "w") as file:
            file.write(_widened(text, known))
        wide_inputs = os.path.join(folder, "wide.npz")
        widen = lambda a: a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
        is_narrow = lambda a: a.dtype.name in ("float32", "float16", "bfloat16", "complex64")
        files.save(wide_inputs, "arg", [widen(a) if is_narrow(a) else a for a in lowered.arguments])
        try:
            other = _Trace(os.path.join(folder, "wide"), wide, wide_inputs, timeout)
        except tool.Failed as why:
            explanation.unknown = f"accuracy is unknown: the program does not run in f64 ({why})"
            return explanation
        explanation.losses = _losses(trace, other, known)
        explanation.results = _result_errors(trace, other)
        return explanation


def _result_errors(narrow, wide):
    if not narrow.records or not wide.records:
        return []
    errors = []
    for a, b in zip(narrow.records[-1]["arrays"], wide.records[-1]["arrays"]):
        if a["type"] in _EPSILON and (va := narrow.values(a)) is not None and (vb := wide.values(b)) is not None:
            errors.append(_error(va, vb) / _EPSILON[a["type"]] / 2)
    return errors
