#!/usr/bin/env python3
"""Compares this project's protocol buffers with those of XLA itself, as jaxlib carries it (docs/formats.md).

    pip install jaxlib protobuf
    protos.py --hlo target/release/hlo ../shared/corpus [--limit N]

Four comparisons; each prints its counts, and the exit code is 1 if any found a difference:

tables     the descriptors that stand in jaxlib's library: messages filled at random, every field of each, go from binary to text and back through
           `hlo convert`; Google's own library must read the text as the same message and give the same bytes.
written    for each program in HLO text, `hlo convert` and jaxlib write HloModuleProto. Field by field these say the same: instructions are matched by
           their place, ids by what they name. jaxlib reads ours as the module that it parses from the text.
read       what jaxlib wrote, read and printed by us, is what we print of the text.
bytes      Google's library gives the bytes that we write.

Programs that jaxlib cannot parse, or that it changes while parsing, are counted apart, with the reason.
"""
import argparse
import base64
import collections
import glob
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOTS = ["HloModuleProto", "HloProto", "HloSnapshot", "HloUnoptimizedSnapshot"]
TO = {"HloModuleProto": "pb", "HloProto": "hlo-pb", "HloSnapshot": "snapshot-pb", "HloUnoptimizedSnapshot": "unoptimized-snapshot-pb"}

WORKER = r"""
import base64, json, sys
from jaxlib import _hlo
for line in sys.stdin:
    task = json.loads(line)
    try:
        if "text" in task:
            m = _hlo.hlo_module_from_text(task["text"])
            answer = {"pb": base64.b64encode(m.as_serialized_hlo_module_proto()).decode(), "text": m.to_string()}
        else:
            m = _hlo.HloModule.from_serialized_hlo_module_proto(base64.b64decode(task["pb"]))
            answer = {"text": m.to_string(), "pb": base64.b64encode(m.as_serialized_hlo_module_proto()).decode()}
    except Exception as e:
        answer = {"error": str(e)[:2000]}
    print(json.dumps(answer), flush=True)
"""


class Jaxlib:
    """jaxlib in a process of its own: some programs end it."""

    def __init__(self):
        self.process = None

    def ask(self, **task):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait()
            self.process = None
            return {"error": "jaxlib ended"}
        return json.loads(line)


def descriptors():
    """The file descriptors that stand in jaxlib's library, in a pool."""
    import jaxlib
    from google.protobuf import descriptor_pb2, descriptor_pool
    files = ["google/protobuf/any.proto", "google/protobuf/timestamp.proto", "google/protobuf/duration.proto", "xla/xla_data.proto",
             "xla/service/metrics.proto", "xla/service/hlo.proto"]
    pool = descriptor_pool.DescriptorPool()
    found = {}
    for library in glob.glob(os.path.join(os.path.dirname(jaxlib.__file__), "*.so")):
        data = pathlib.Path(library).read_bytes()
        for name in files:
            start = data.find(b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12")
            if start < 0 or name in found:
                continue
            # The length stands elsewhere: the fields of a FileDescriptorProto come in the order of their numbers.
            at, last = start, 0
            while True:
                tag, after = varint(data, at)
                number, wire = tag >> 3, tag & 7
                if wire == 2 and number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12) and number >= last:
                    length, after = varint(data, after)
                    at, last = after + length, number
                elif wire == 0 and number in (10, 11, 14):
                    _, at = varint(data, after)
                else:
                    break
            file = descriptor_pb2.FileDescriptorProto()
            file.ParseFromString(data[start:at])
            found[name] = file
    for name in files:
        pool.Add(found[name])
    return pool


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fill(message, rng, depth, once):
    """Gives every field of a message a value; in the first message of each kind all of them, later some."""
    full = message.DESCRIPTOR.full_name not in once
    once.add(message.DESCRIPTOR.full_name)
    for field in message.DESCRIPTOR.fields:
        # What files are told by is always there.
        told = field.name in ("name", "computations", "hlo", "hlo_module", "version") and depth < 6
        if not told and not full and (depth > 5 or rng.random() < 0.6):
            continue
        # Of a oneof the last one counts; each is tried in some message.
        if field.containing_oneof and not full and rng.random() < 0.5:
            continue
        repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        if field.message_type is not None:
            if depth > 12:
                continue
            if field.message_type.GetOptions().map_entry:
                value_field = field.message_type.fields_by_name["value"]
                for _ in range(2):
                    key = scalar(field.message_type.fields_by_name["key"], rng)
                    if value_field.message_type is not None:
                        fill(getattr(message, field.name)[key], rng, depth + 1, once)
                    else:
                        getattr(message, field.name)[key] = scalar(value_field, rng)
            elif repeated:
                for _ in range(rng.randint(1, 2)):
                    fill(getattr(message, field.name).add(), rng, depth + 1, once)
            else:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), rng, depth + 1, once)
        elif repeated:
            getattr(message, field.name).extend(scalar(field, rng) for _ in range(rng.randint(1, 4)))
        else:
            setattr(message, field.name, scalar(field, rng))


def scalar(field, rng):
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        if field.type == field.TYPE_BYTES:
            return bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        # Names without line ends, which no file of HLO has there.
        characters = "ab \"'\\\u00e9{}" + ("" if "name" in field.name else "\n")
        return "".join(rng.choice(characters) for _ in range(rng.randint(1, 9)))
    if kind == field.CPPTYPE_BOOL:
        return True
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice([0.5, -1.25, 1e30, 3.0, float("inf"), 1e-40 if kind == field.CPPTYPE_DOUBLE else 2.0 ** -140])
    low, high = {field.CPPTYPE_INT32: (-2**31, 2**31 - 1), field.CPPTYPE_INT64: (-2**63, 2**63 - 1),
                 field.CPPTYPE_UINT32: (0, 2**32 - 1), field.CPPTYPE_UINT64: (0, 2**64 - 1)}[kind]
    return rng.choice([v for v in (1, low or 2, high, rng.randint(low, high)) if v])


class Peer:
    def __init__(self, hlo):
        from google.protobuf import message_factory
        self.hlo = hlo
        self.pool = descriptors()
        self.classes = {name: message_factory.GetMessageClass(self.pool.FindMessageTypeByName("xla." + name)) for name in ROOTS}
        self.folder = tempfile.TemporaryDirectory()
        self.bad = 0

    def convert(self, source, to, name):
        """Bytes of `source` (a path) in another format; a string is why not."""
        out = os.path.join(self.folder.name, name)
        r = subprocess.run([self.hlo, "-q", "convert", source, "--no-verify", "--to", to, "-o", out], capture_output=True, text=True)
        # 4: it does not verify, and was written.
        if r.returncode not in (0, 4) or not os.path.exists(out):
            return r.stderr.strip() or f"exit code {r.returncode}"
        data = pathlib.Path(out).read_bytes()
        os.unlink(out)
        return data

    def sorted(self, name, data):
        """The same message with maps in the order of their keys: conversions keep the order of what they read."""
        message = self.classes[name]()
        message.ParseFromString(data)
        return message.SerializeToString(deterministic=True)

    def difference(self, where, what):
        self.bad += 1
        if self.bad <= 40:
            print(f"DIFFERS {where}: {what}")

    def tables(self, count):
        from google.protobuf import text_format
        fields = 0
        for name in ROOTS:
            for seed in range(count):
                message, once = self.classes[name](), set()
                fill(message, random.Random(f"{name}{seed}"), 0, once)
                fields = max(fields, sum(len(self.pool.FindMessageTypeByName(n).fields) for n in once))
                data = message.SerializeToString(deterministic=True)
                path = os.path.join(self.folder.name, "tables.pb")
                pathlib.Path(path).write_bytes(data)
                to = TO[name]
                text = self.convert(path, to + "txt", "tables.pbtxt.out")
                if isinstance(text, str):
                    self.difference(f"{name} {seed}", text[:300])
                    continue
                again = self.classes[name]()
                try:
                    text_format.Parse(text.decode(), again)
                except text_format.ParseError as e:
                    self.difference(f"{name} {seed}: our text", e)
                    continue
                if again.SerializeToString(deterministic=True) != data:
                    self.difference(f"{name} {seed}", "our text says another message")
                pathlib.Path(path).write_text(text_format.MessageToString(message))
                back = self.convert(path, to, "tables.pb.out")
                if isinstance(back, str) or self.sorted(name, back) != data:
                    self.difference(f"{name} {seed}", back[:300] if isinstance(back, str) else "their text gives other bytes")
        print(f"tables: {count} messages of each of {len(ROOTS)} kinds, at most {fields} fields of the descriptors in one")

    def programs(self, roots, limit):
        files = sorted(str(p) for root in roots for p in pathlib.Path(root).rglob("*") if p.suffix in (".hlo", ".txt") and p.is_file())
        files = [f for f in files if b"HloModule" in pathlib.Path(f).read_bytes()[:1 << 16]]
        if limit and len(files) > limit:
            files = random.Random(0).sample(files, limit)
        counts = collections.Counter()
        kinds = collections.Counter()
        workers = [Jaxlib() for _ in range(2)]

        def one(job):
            i, file = job
            return file, *self.program(file, i, workers[i % 2])

        # Each worker is asked by one thread.
        with ThreadPoolExecutor(2) as pool:
            halves = [[(i, f) for i, f in enumerate(files) if i % 2 == half] for half in range(2)]
            for results in pool.map(lambda half: [one(job) for job in half], halves):
                for file, outcome, details in results:
                    counts.update(outcome)
                    for kind in details:
                        kinds[re.sub(r"\[\d+\]", "[]", kind)[:160]] += 1
                        self.difference(file, kind)
        print(f"programs: {len(files)}; " + ", ".join(f"{v} {k}" for k, v in sorted(counts.items())))
        for kind, n in kinds.most_common(40):
            print(f"  {n:5} {kind}")

    def program(self, file, i, jaxlib):
        """Outcomes, and what differs."""
        text = pathlib.Path(file).read_text(errors="replace")
        ours = self.convert(file, "pb", f"{i}.pb.out")
        if isinstance(ours, str):
            return [("not written by us: " + (re.findall(r"error\[\w+\]", ours) or ["?"])[0])], []
        # What only text says is in a field that XLA does not know.
        message = self.classes["HloModuleProto"]()
        message.ParseFromString(ours)
        details = []
        outcome = ["written by us"]
        same = message.SerializeToString(deterministic=True)
        # Maps with numbers for keys, of which a schedule is one, have no order there.
        if same != ours and not (message.HasField("schedule") and len(same) == len(ours)):
            details.append("bytes: Google's library gives others")
        else:
            outcome.append("same bytes by Google's library")
        theirs = jaxlib.ask(text=text)
        if "error" in theirs:
            return outcome + ["not parsed by jaxlib"], details
        their_bytes = base64.b64decode(theirs["pb"])
        read = jaxlib.ask(pb=base64.b64encode(ours).decode())
        their = self.parsed(theirs["pb"])
        if "error" in read:
            details.append("read by jaxlib: " + read["error"].split("\n")[0][:150])
        elif (found := list(differences(normal(self.parsed(read["pb"])), normal(self.parsed(theirs["pb"]))))):
            details.extend("read by jaxlib: " + f for f in found[:3])
        elif normal_text(read["text"]) != normal_text(theirs["text"]):
            details.append("read by jaxlib as another text: " + first_difference(normal_text(read["text"]), normal_text(theirs["text"])))
        else:
            outcome.append("read by jaxlib as its text")
        found = list(differences(normal(message), normal(their)))
        if found:
            details.extend("written: " + f for f in found[:3])
        else:
            outcome.append("field by field as jaxlib writes it")
        path = os.path.join(self.folder.name, f"{i}.pb")
        pathlib.Path(path).write_bytes(their_bytes)
        back = self.convert(path, "pb", f"{i}.back.out")
        if isinstance(back, str) or self.sorted("HloModuleProto", back) != self.sorted("HloModuleProto", their_bytes):
            details.append("read: their bytes come back as others")
        texts = []
        again = jaxlib.ask(pb=theirs["pb"])
        for source in (path, self.write(f"{i}.pb", again.get("text", theirs["text"]))):
            r = subprocess.run([self.hlo, "-q", "print", "--style", "default", source], capture_output=True, text=True)
            texts.append(r.stdout if r.returncode == 0 else r.stderr)
        os.unlink(path)
        # jaxlib's text has computations in another order than its message.
        texts = ["\n\n".join(sorted(block.strip() for block in normal_text(t).split("\n\n"))) for t in texts]
        if texts[0] != texts[1]:
            details.append("read by us as another text: " + first_difference(*texts))
        else:
            outcome.append("read by us as its text")
        return outcome, details

    def parsed(self, data):
        message = self.classes["HloModuleProto"]()
        message.ParseFromString(base64.b64decode(data))
        return message

    def write(self, name, text):
        path = os.path.join(self.folder.name, name + ".hlo")
        pathlib.Path(path).write_text(text)
        return path


HEADER_ONLY_TEXT = re.compile(
    r", (allow_spmd_sharding_propagation_to_(parameters|output)=\{[^}]*\}|replica_count=\d+|num_partitions=\d+|alias_passthrough_params=\w+)")


def normal_text(text):
    """Without what a message of XLA does not say."""
    head, newline, rest = text.partition("\n")
    return HEADER_ONLY_TEXT.sub("", head) + newline + rest


def first_difference(a, b):
    for x, y in zip(a.split("\n"), b.split("\n")):
        if x != y:
            at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            return f"...{x[max(0, at - 40):at + 60]!r} and ...{y[max(0, at - 40):at + 60]!r}"
    return "the ends"


def normal(module):
    """A message with instructions and computations by place in a walk from the root, so that order and ids do not matter."""
    computations = {c.id: c for c in module.computations}
    index = module.stack_frame_index
    frames = {}
    # jaxlib numbers frames anew while it parses: what counts is where they lead.
    for n, frame in enumerate(index.stack_frames, 1):
        where = plain(index.file_locations[frame.file_location_id - 1]) if frame.file_location_id else {}
        for key, names in (("file_name_id", index.file_names), ("function_name_id", index.function_names)):
            if key in where:
                where[key] = names[where[key] - 1]
        frames[n] = (str(where), frame.parent_frame_id)

    def chain(n):
        out = []
        while n in frames and len(out) < 1000:
            where, n = frames[n]
            out.append(where)
        return " < ".join(out)

    for c in module.computations:
        for i in c.instructions:
            i.metadata.stack_frame_id, i.metadata.op_type = 0, i.metadata.op_type + (
                " at " + chain(i.metadata.stack_frame_id) if i.metadata.stack_frame_id else "")
    out = {"entry": shape_of(computations, module.entry_computation_id, {})}
    for field in ("name", "host_program_shape", "input_output_alias", "buffer_donor", "frontend_attributes"):
        value = getattr(module, field)
        out[field] = value if isinstance(value, str) else plain(value)
    out["payloads"] = [p.hex() for p in module.payloads]
    out["scheduled"] = module.HasField("schedule")
    return out


def shape_of(computations, number, seen):
    if number in seen:
        return f"computation {seen[number]}"
    seen[number] = len(seen)
    c = computations[number]
    names = {i.id: n for n, i in enumerate(sorted(c.instructions, key=lambda i: i.id))}
    result = {"program_shape": plain(c.program_shape), "root": names[c.root_id], "fusion": c.is_fusion_computation,
              "thread": c.execution_thread if c.execution_thread != "main" else ""}
    instructions = []
    for i in sorted(c.instructions, key=lambda i: i.id):
        fields = plain(i)
        for key in ("id", "name", "called_computation_ids"):
            fields.pop(key, None)
        for key in ("operand_ids", "control_predecessor_ids"):
            if key in fields:
                fields[key] = [names[v] for v in getattr(i, key)]
        fields["called"] = [shape_of(computations, n, seen) for n in i.called_computation_ids]
        instructions.append(fields)
    result["instructions"] = instructions
    return result


def plain(message):
    """A message as a dictionary, with what an absent layout and an absent alignment mean."""
    out = {}
    for field, value in message.ListFields():
        repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            out[field.name] = {str(k): (v if not hasattr(v, "ListFields") else plain(v)) for k, v in value.items()}
        elif field.message_type is not None:
            out[field.name] = [plain(v) for v in value] if repeated else plain(value)
        elif repeated:
            out[field.name] = [repr(v) for v in value] if field.cpp_type in (5, 6) else list(value)
        else:
            out[field.name] = value if not isinstance(value, float) else repr(value)
    if message.DESCRIPTOR.name == "LayoutProto":
        out.setdefault("tail_padding_alignment_in_elements", 1)
    if message.DESCRIPTOR.name == "ProgramShapeProto":
        out.pop("parameter_names", None)
    return out


def differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b:
                yield f"{path}.{key}: {'only theirs' if key not in a else 'only ours'} {str(a.get(key, b.get(key)))[:60]}"
            else:
                yield from differences(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{path}: {len(a)} ours, {len(b)} theirs"
            return
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}[{i}]")
    elif a != b:
        yield f"{path}: ours {str(a)[:60]}, theirs {str(b)[:60]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlo", default="target/release/hlo")
    parser.add_argument("--messages", type=int, default=40, help="random messages of each kind")
    parser.add_argument("--limit", type=int, help="so many programs, chosen at random")
    parser.add_argument("folders", nargs="*")
    args = parser.parse_args()
    peer = Peer(args.hlo)
    peer.tables(args.messages)
    if args.folders:
        peer.programs(args.folders, args.limit)
    print(f"{peer.bad} differences")
    return 1 if peer.bad else 0


if __name__ == "__main__":
    sys.exit(main())
