//! Broken and hostile messages: typed errors with the path of the field, and no panic whatever the bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use hlo::Module;
use hlo::diag::codes::{self, Code, parse::*, proto::*};
use hlo_parser::{ParseOptions, parse_module};
use hlo_proto::{Contents, Encoding, Found, Kind, ReadOptions, read, sniff, write};

const PROGRAM: &str = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[2,2]{0,1}, s32[])->(f32[2,2]{0,1}, s32[])}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b), metadata={op_name=\"x\" stack_frame_id=1 metadata_payload=\"zz\"}
}

ENTRY e {
  p = f32[2,2]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  q = s32[] parameter(1)
  c = f32[2,2]{0,1} constant({{1, -2}, {3, nan}})
  k = s32[3]{0} constant({1, -2, 300000})
  z = f32[] constant(0)
  r = f32[2]{0} reduce(p, z), dimensions={0}, to_apply=add
  w = f32[2]{0} reduce-window(r, z), window={size=1}, to_apply=add
  v = f32[2]{0} all-reduce(w), replica_groups=[1,2]<=[2], to_apply=add, frontend_attributes={a=\"b\",c={\"d\":1}}
  m = f32[2,2]{0,1} multiply(p, c), control-predecessors={v}, backend_config={\"x\":1}
  ROOT t = (f32[2,2]{0,1}, s32[]) tuple(m, q), origin={({\"m\"}, {})}
}
";

fn module(text: &str) -> Module {
    let parsed = parse_module(text, &ParseOptions::default());
    parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
}

fn bytes(text: &str, kind: Kind, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    write(&Contents::of(&module(text)), kind, encoding, &mut out).unwrap();
    out
}

fn read_module(bytes: &[u8]) -> Found {
    read(bytes, Kind::Module, Encoding::Binary, &ReadOptions::default())
}

/// Reads, verifies and prints: what is read is as good as what is parsed, and comes back when it is written.
fn survive(bytes: &[u8], kind: Kind, encoding: Encoding) {
    let _ = sniff(bytes);
    if let Some(document) = read(bytes, kind, encoding, &ReadOptions::default()).document {
        let found = hlo::verify::verify(&document.module);
        if !found.has_errors() {
            let mut out = Vec::new();
            if write(&Contents::of(&document.module), Kind::Module, Encoding::Binary, &mut out).is_ok() {
                let again = read_module(&out);
                let again = again.document.unwrap_or_else(|| panic!("{:?}", again.diagnostics)).module;
                hlo::equal::modules_equal(&document.module, &again).unwrap_or_else(|d| panic!("{d}"));
            }
            let _ = hlo::print::print_module(&document.module, &hlo::print::PrintOptions::LONG);
        }
    }
    let options = ReadOptions::default();
    for to in [(Kind::Module, Encoding::Text), (Kind::Snapshot, Encoding::Binary)] {
        let _ = hlo_proto::convert(bytes, (kind, encoding), to, &options, &mut std::io::sink());
    }
}

#[test]
fn every_truncation_ends_in_an_error_or_a_module() {
    for (kind, encoding) in
        [(Kind::Module, Encoding::Binary), (Kind::Snapshot, Encoding::Binary), (Kind::Proto, Encoding::Text)]
    {
        let whole = bytes(PROGRAM, kind, encoding);
        for end in 0..whole.len() {
            survive(&whole[..end], kind, encoding);
        }
    }
    let whole = bytes(PROGRAM, Kind::Module, Encoding::Binary);
    // A cut within the computations is always found.
    let found = read_module(&whole[..whole.len() / 2]);
    assert!(found.document.is_none());
    assert!(found.diagnostics.iter().any(|d| d.code == PROTO_MALFORMED), "{:?}", found.diagnostics);
}

#[test]
fn flipped_bytes_end_in_an_error_or_a_module() {
    let whole = bytes(PROGRAM, Kind::Module, Encoding::Binary);
    for at in 0..whole.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut bad = whole.clone();
            bad[at] ^= flip;
            survive(&bad, Kind::Module, Encoding::Binary);
        }
    }
    let text = bytes(PROGRAM, Kind::Module, Encoding::Text);
    for at in 0..text.len() {
        for value in [b'0', b'"', b'{', b'}', b'\\', 0xff] {
            let mut bad = text.clone();
            bad[at] = value;
            survive(&bad, Kind::Module, Encoding::Text);
        }
    }
}

// ---- messages by hand

fn varint(mut v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
    out
}

fn number(field: u64, v: u64) -> Vec<u8> {
    [varint(field << 3), varint(v)].concat()
}

fn body(field: u64, body: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(body.len() as u64), body.to_vec()].concat()
}

/// `f32[]`
fn scalar() -> Vec<u8> {
    body(3, &number(2, 11))
}

/// An instruction of type `f32[]`.
fn instruction(name: &str, opcode: &str, id: u64, rest: &[u8]) -> Vec<u8> {
    body(
        2,
        &[body(1, name.as_bytes()), body(2, opcode.as_bytes()), scalar(), number(35, id), rest.to_vec()]
            .concat(),
    )
}

fn computation(name: &str, id: u64, root: u64, instructions: &[Vec<u8>]) -> Vec<u8> {
    body(3, &[body(1, name.as_bytes()), instructions.concat(), number(5, id), number(6, root)].concat())
}

fn program(computations: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
    [body(1, b"m"), computations.concat(), rest.to_vec()].concat()
}

/// A module of one computation.
fn one(root: u64, instructions: &[Vec<u8>]) -> Vec<u8> {
    program(&[computation("e", 0, root, instructions)], &[])
}

#[track_caller]
fn refused(bytes: &[u8], code: Code, message: &str) {
    let found = read_module(bytes);
    assert!(found.document.is_none(), "it is read");
    let error = found.diagnostics.iter().last().expect("an error");
    assert_eq!((error.code.as_str(), &*error.message), (code.as_str(), message));
}

#[test]
fn ids_with_and_without_the_number_of_their_computation_name_the_same() {
    let wide = |n: u64| 3 << 32 | n;
    let read_with = |root, operand, predecessor| {
        let add = body(36, &[varint(operand), varint(wide(1))].concat());
        let rest = [add, body(37, &varint(predecessor))].concat();
        let all = [instruction("p", "parameter", wide(1), &[]), instruction("s", "add", wide(2), &rest)];
        read_module(&program(&[computation("e", 3, root, &all)], &number(6, 3)))
    };
    for (root, operand, predecessor) in
        [(2, 1, 1), (wide(2), 1, 1), (2, wide(1), 1), (wide(2), wide(1), wide(1))]
    {
        let found = read_with(root, operand, predecessor);
        let module = found.document.unwrap_or_else(|| panic!("{:?}", found.diagnostics)).module;
        let root = module.instr(module.root(module.entry()));
        assert_eq!((&*root.name, root.operands().len(), root.control_predecessors.len()), ("s", 2, 1));
    }
    // The number of another computation.
    let other = 4 << 32 | 1;
    assert!(read_with(2, other, 1).document.is_none() && read_with(other, 1, 1).document.is_none());
    refused(
        &program(
            &[computation(
                "e",
                3,
                1,
                &[
                    instruction("p", "parameter", wide(1), &[]),
                    instruction("q", "parameter", 1, &number(9, 1)),
                ],
            )],
            &number(6, 3),
        ),
        PROTO_BAD_ID,
        "computations[0].instructions[1].id: there are two instructions 1 in this computation",
    );
}

#[test]
fn ids_collide_dangle_and_cycle() {
    let p = || instruction("p", "parameter", 1, &[]);
    let uses = |name: &str, id, operands: &[u64]| {
        let packed = operands.iter().flat_map(|&o| varint(o)).collect::<Vec<u8>>();
        instruction(name, "add", id, &body(36, &packed))
    };
    assert!(read_module(&one(2, &[p(), uses("s", 2, &[1, 1])])).document.is_some());
    refused(
        &one(1, &[p(), instruction("q", "parameter", 1, &number(9, 1))]),
        PROTO_BAD_ID,
        "computations[0].instructions[1].id: there are two instructions 1 in this computation",
    );
    refused(
        &one(1, &[p(), uses("s", 2, &[1, 7])]),
        PROTO_BAD_ID,
        "computations[0].instructions[1].operand_ids: there is no instruction 7 before this one in its computation",
    );
    refused(
        &one(1, &[p(), uses("s", 2, &[1, 2])]),
        PROTO_BAD_ID,
        "computations[0].instructions[1].operand_ids: there is no instruction 2 before this one in its computation",
    );
    refused(&one(9, &[p()]), PROTO_BAD_ID, "computations[0].root_id: the computation has no instruction 9");
    let itself = instruction("c", "call", 1, &number(38, 0));
    refused(
        &one(1, &[itself]),
        PROTO_BAD_ID,
        "computations[0].instructions[0].called_computation_ids: there is no computation 0 before this one",
    );
    let two = [computation("a", 3, 1, &[p()]), computation("b", 3, 1, &[p()])];
    refused(&program(&two, &number(6, 3)), PROTO_BAD_ID, "computations[1].id: there are two computations 3");
    let apart = [computation("a", 3, 1, &[p()])];
    refused(&program(&apart, &number(6, 4)), PROTO_BAD_ID, "entry_computation_id: there is no computation 4");
    refused(
        &program(
            &[computation("e", 0, 1, &[p()])],
            &body(7, &body(1, &[number(1, 5), body(2, &body(1, &varint(1)))].concat())),
        ),
        PROTO_BAD_ID,
        "schedule: there is a schedule of computation 5, and no such computation",
    );
    refused(
        &program(
            &[computation("e", 0, 1, &[p()])],
            &body(7, &body(1, &[number(1, 0), body(2, &body(1, &varint(2)))].concat())),
        ),
        PROTO_BAD_ID,
        "computations[0]: the schedule of the computation names instruction 2, which it does not have",
    );
}

#[test]
fn values_that_make_no_sense() {
    refused(
        &one(1, &[instruction("x", "ad", 1, &[])]),
        UNKNOWN_OPCODE,
        "computations[0].instructions[0].opcode: there is no opcode \"ad\"",
    );
    refused(
        &one(1, &[instruction("x", "", 1, &[])]),
        PROTO_MISSING_FIELD,
        "computations[0].instructions[0].opcode: is not there",
    );
    refused(
        &one(1, &[instruction("", "iota", 1, &[])]),
        PROTO_MISSING_FIELD,
        "computations[0].instructions[0].name: is not there",
    );
    let p = || instruction("p", "parameter", 1, &[]);
    refused(
        &one(1, &[p(), p()]),
        DUPLICATE_INSTRUCTION,
        "computations[0].instructions[1].name: there are two instructions `p` in this computation",
    );
    refused(
        &one(1, &[instruction("p", "parameter", 1, &number(9, 1 << 40))]),
        PROTO_BAD_VALUE,
        "computations[0].instructions[0].parameter_number: parameter 1099511627776 in a computation of 1 instructions",
    );
    let shaped = |shape: &[u8]| {
        one(1, &[body(2, &[body(1, b"p"), body(2, b"parameter"), body(3, shape), number(35, 1)].concat())])
    };
    refused(
        &shaped(&number(2, 99)),
        PROTO_BAD_VALUE,
        "computations[0].instructions[0].shape.element_type: there is no enumerator 99",
    );
    refused(
        &shaped(&[]),
        PROTO_MISSING_FIELD,
        "computations[0].instructions[0].shape.element_type: is not there",
    );
    let negative = [number(2, 11), body(3, &varint(u64::MAX))].concat();
    refused(
        &shaped(&negative),
        PROTO_BAD_VALUE,
        "computations[0].instructions[0].shape.dimensions: a dimension of size -1",
    );
    let many = [number(2, 11), body(3, &[1; 65])].concat();
    refused(
        &shaped(&many),
        RANK_TOO_LARGE,
        "computations[0].instructions[0].shape.dimensions: 65 dimensions; at most 64 are supported",
    );
    let layout = [number(2, 11), body(3, &[1]), body(5, &body(1, &[0, 0]))].concat();
    refused(
        &shaped(&layout),
        LAYOUT_RANK,
        "computations[0].instructions[0].shape.layout.minor_to_major: 2 dimensions in the layout of an array of rank 1",
    );
    refused(&program(&[], &[]), PROTO_MISSING_FIELD, "computations: is not there");
    refused(
        &program(&[computation("e", 0, 0, &[])], &[]),
        EMPTY_COMPUTATION,
        "computations[0].instructions: computation `e` has no instructions",
    );
    refused(
        &one(1, &[instruction("r", "reduce", 1, &[])]),
        PROTO_MISSING_FIELD,
        "computations[0].instructions[0]: reduce needs the attribute `to_apply`",
    );
}

#[test]
fn sizes_that_lie() {
    // A literal of 2^40 elements in four bytes.
    let literal = [
        body(1, &[number(2, 11), body(3, &varint(1 << 40)), body(5, &body(1, &[0]))].concat()),
        body(8, &[0, 0, 128, 63]),
    ]
    .concat();
    refused(
        &one(1, &[instruction("c", "constant", 1, &body(8, &literal))]),
        PROTO_BAD_VALUE,
        "computations[0].instructions[0].literal.f32s: 1 elements for the 1099511627776 elements of the shape",
    );
    let literal =
        [body(1, &[number(2, 4), body(3, &[3]), body(5, &body(1, &[0]))].concat()), body(4, &[1, 2, 3, 4])]
            .concat();
    refused(
        &one(1, &[instruction("c", "constant", 1, &body(8, &literal))]),
        PROTO_BAD_VALUE,
        "computations[0].instructions[0].literal.s32s: more elements than the 3 of the shape",
    );
    let long = [varint(3 << 3 | 2), varint(u64::MAX >> 1), vec![0; 3]].concat();
    refused(
        &long,
        PROTO_MALFORMED,
        "computations[0]: a length of 9223372036854775807 bytes, and 3 bytes follow",
    );
    refused(&[0x0a], PROTO_MALFORMED, "name: a number does not end within ten bytes, 0 bytes before the end");
    refused(&[0x07], PROTO_MALFORMED, "the message: key 7 has no field number, or no wire type");
    refused(&body(1, b"\xff"), PROTO_MALFORMED, "name: byte 0 of the string is not UTF-8");
}

#[test]
fn nesting_is_limited() {
    let mut shape = number(2, 11);
    for _ in 0..5000 {
        shape = [number(2, 13), body(4, &shape)].concat();
    }
    let deep = one(1, &[body(2, &[body(1, b"p"), body(2, b"parameter"), body(3, &shape)].concat())]);
    let found = read_module(&deep);
    assert!(found.document.is_none());
    assert!(found.diagnostics.iter().any(|d| d.code == NESTING_TOO_DEEP), "{:?}", found.diagnostics);
    // Groups of unknown fields too.
    let groups = [body(1, b"m"), vec![0x0b; 1 << 20]].concat();
    assert!(read_module(&groups).diagnostics.iter().any(|d| d.code == NESTING_TOO_DEEP));
    let text = format!("computations {{ instructions {{ shape {{ {}", "tuple_shapes {".repeat(100_000));
    let found = read(text.as_bytes(), Kind::Module, Encoding::Text, &ReadOptions::default());
    assert!(found.diagnostics.iter().any(|d| d.code == NESTING_TOO_DEEP), "{:?}", found.diagnostics);
}

#[test]
fn memory_is_limited() {
    let many =
        program(&[computation("e", 0, 1, &vec![instruction("p", "parameter", 1, &body(5, &[])); 1000])], &[]);
    let options = ReadOptions { memory_bytes: 1 << 12, ..ReadOptions::default() };
    let found = read(&many, Kind::Module, Encoding::Binary, &options);
    assert!(found.document.is_none());
    assert!(found.diagnostics.iter().any(|d| d.code == codes::OUT_OF_MEMORY), "{:?}", found.diagnostics);
}

#[test]
fn unknown_fields_are_kept_from_one_encoding_to_another() {
    let p = [body(1, b"p"), body(2, b"parameter"), scalar(), number(35, 1), number(5000, 7)].concat();
    let unknown = [body(4000, b"\x00\xffnew"), vec![0xed, 0xbb, 0x01, 1, 2, 3, 4], number(3, 1)].concat();
    let whole = program(&[computation("e", 0, 1, &[body(2, &p)])], &unknown);
    let (binary, text) = ((Kind::Module, Encoding::Binary), (Kind::Module, Encoding::Text));
    let options = ReadOptions::default();
    let mut as_text = Vec::new();
    hlo_proto::convert(&whole, binary, text, &options, &mut as_text).unwrap();
    let shown = String::from_utf8(as_text.clone()).unwrap();
    assert!(shown.contains("    5000: 7\n") && shown.contains("4000: \"\\000\\377new\"\n"), "{shown}");
    let mut back = Vec::new();
    hlo_proto::convert(&as_text, text, binary, &options, &mut back).unwrap();
    assert_eq!(back, whole);
    // A module has no fields for them, and says so.
    let found = read_module(&whole);
    assert!(found.document.is_some());
    let warnings: Vec<&str> = found.diagnostics.iter().map(|d| &*d.message).collect();
    assert_eq!(
        warnings,
        [
            "4 fields are unknown here and left out: field 4000 of HloModuleProto (the message), field 3005 of HloModuleProto (the message), field 3 of HloModuleProto (the message), ..."
        ]
    );
}

#[test]
fn text_says_where_it_is_wrong() {
    let refused = |text: &str, message: &str, at: &str| {
        let found = read(text.as_bytes(), Kind::Module, Encoding::Text, &ReadOptions::default());
        let error = found.diagnostics.iter().last().expect("an error").clone();
        assert_eq!(
            (error.code.as_str(), &*error.message, &text[error.span.range()]),
            (PROTO_TEXT_MALFORMED.as_str(), message, at)
        );
    };
    refused("nam: \"m\"", "HloModuleProto has no field \"nam\"", "nam");
    refused("name: 5", "'5' where a string belongs", "5");
    refused("name \"m\"", "'\"' where ':' belongs", "\"");
    refused("name: \"m", "the string does not end", "\"");
    refused(
        "id: 9223372036854775808",
        "id: \"9223372036854775808\" is not a 64-bit integer",
        "9223372036854775808",
    );
    refused(
        "computations { id: 1",
        "the end of the text where a field or the end of the message belongs",
        "",
    );
    refused(
        "input_output_alias { entries { kind: MAY } }",
        "kind: \"MAY\" is not one of its enumerators",
        "MAY",
    );
    refused("name: \"\\q\"", "an unknown escape", "\\q");
    refused("is_dynamic: maybe", "is_dynamic: \"maybe\" is not true or false", "maybe");
}

#[test]
fn what_has_no_field_is_refused_before_anything_is_written() {
    let text = "HloModule m\n\nENTRY e {\n  p = f32[2]{0} parameter(0), metadata={op_name=\"x\" newer=1}\n  ROOT c = f32[2]{0} collective-broadcast(p), replica_groups={{0,1}}, sharding={mesh['a'=2], [{'a'}p1]}\n}\n";
    let mut out = Vec::new();
    let module = module(text);
    let Err(hlo_proto::WriteError::Unsupported(found)) =
        write(&Contents::of(&module), Kind::Module, Encoding::Binary, &mut out)
    else {
        panic!("it is written")
    };
    assert!(out.is_empty());
    assert!(found.iter().all(|d| d.code == codes::UNSUPPORTED_IN_PROTO && !d.span.is_none()));
    let messages: Vec<&str> = found.iter().map(|d| &*d.message).collect();
    assert_eq!(
        messages,
        [
            "p: there is no field for a field of metadata that is unknown here, in `metadata`",
            "c: there is no field for the priority of a dimension's sharding, in `sharding`"
        ]
    );
}
