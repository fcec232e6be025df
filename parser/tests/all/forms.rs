//! The forms that a text may have.

use hlo::{AttrKey, ElementType, Module, Opcode, Shape};

use crate::{codes, parse};

/// `name = opcode(operands)` for each instruction of the entry computation.
fn listing(m: &Module) -> Vec<String> {
    let line = |i: &hlo::Instruction| {
        let operands: Vec<&str> = i.operands().iter().map(|&o| &*m.instr(o).name).collect();
        format!("{} = {}({})", i.name, i.opcode, operands.join(", "))
    };
    m.instructions(m.entry()).map(|i| line(m.instr(i))).collect()
}

fn names(m: &Module) -> Vec<&str> {
    m.computations().iter().map(|&c| &*m.computation(c).name).collect()
}

#[test]
fn a_module_without_a_header() {
    let m = parse(
        "f {\n  ROOT x = f32[] parameter(0)\n}\nmain {\n  p = f32[] parameter(0)\n  q = f32[] call(p), to_apply=f\n}\n",
    );
    assert_eq!((&*m.name, names(&m)), ("module_main", vec!["f", "main"]));
    assert_eq!(&*m.instr(m.root(m.entry())).name, "q", "the last computation and the last instruction");
    assert!(!m.text_style.header && !m.text_style.percent && !m.text_style.program_shape);
    let m = parse(
        "ENTRY %e (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2]{0} parameter(0)\n} // e\n\n%g {\n  ROOT %c = f32[] constant(1)\n}\n",
    );
    assert_eq!(&*m.computation(m.entry()).name, "e");
    assert!(m.text_style.percent && m.text_style.program_shape && m.text_style.name_after_brace);
    assert_eq!(m.computation(m.entry()).declared.as_ref().unwrap().parameters[0].0, "p".into());
}

#[test]
fn a_single_instruction() {
    let m = parse("foo = f32[10] add(f32[10] a, f32[10] %b), metadata={op_name=\"x\"}");
    assert_eq!(listing(&m), ["a = parameter()", "b = parameter()", "foo = add(a, b)"]);
    let m = parse(
        "f32[2] fusion(f32[2] p0, s32[]), kind=kLoop, calls={ x = f32[2] parameter(0) y = s32[] parameter(1) ROOT z = f32[2] negate(x) }",
    );
    assert_eq!(listing(&m), ["p0 = parameter()", "_1 = parameter()", "fusion = fusion(p0, _1)"]);
    assert_eq!(m.computations().len(), 2);
    let m = parse("ROOT r = (f32[2], f32[2]) tuple(f32[2] x, f32[2] x)");
    assert_eq!(listing(&m), ["x = parameter()", "r = tuple(x, x)"]);
    assert_eq!(codes("r = f32[] add(f32[] x, y)"), ["P0113"]);
    // Only the instruction's own operands are made up.
    assert_eq!(
        codes(
            "r = f32[] reduce(f32[1] x, f32[] y), dimensions={0}, to_apply={ ROOT a = f32[] add(f32[] u, f32[] v) }"
        ),
        ["P0102", "P0102"]
    );
}

#[test]
fn computations_in_attributes() {
    let m = parse(
        "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  z = f32[] constant(0)\n  r = f32[] reduce(p, z), dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }, metadata={op_name=\"x\"}\n  i = s32[] constant(0)\n  ROOT c = f32[] conditional(i, r, r), branch_computations={ { ROOT a = f32[] parameter(0) }, {\n ROOT a = f32[] parameter(0)\n } }\n}\n",
    );
    assert_eq!(names(&m), ["_.0", "_.1", "_.2", "e"]);
    let root = m.instr(m.root(m.entry()));
    assert_eq!(root.attrs.computations(AttrKey::BranchComputations).unwrap().len(), 2);
    let m = parse(
        "HloModule m\nf {\n  ROOT a = f32[] parameter(0)\n}\nENTRY e {\n  i = s32[] constant(0)\n  r = f32[] constant(0)\n  ROOT c = f32[] conditional(i, r, r), branch_computations={%f, { ROOT a = f32[] parameter(0) }}\n}\n",
    );
    assert_eq!(m.computations().len(), 3);
    let deep = parse(
        "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply={ q = f32[] parameter(0) ROOT d = f32[] call(q), to_apply={ ROOT r = f32[] parameter(0) } }\n}\n",
    );
    assert_eq!(deep.computations().len(), 3);
}

#[test]
fn instructions_in_operands() {
    let m = parse(
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] add(maximum(x, f32[2] x), f32[2] constant({1, 2}))\n}\n",
    );
    assert_eq!(
        listing(&m),
        [
            "x = parameter()",
            "maximum.anon = maximum(x, x)",
            "constant.anon = constant()",
            "r = add(maximum.anon, constant.anon)"
        ]
    );
    assert_eq!(m.instr(m.root(m.entry())).operands().len(), 2);
    assert_eq!(
        codes("HloModule m\nENTRY e {\n  ROOT r = f32[] reverse(f32[] constant(1), dimensions={})\n}\n"),
        ["P0001"]
    );
}

#[test]
fn compact_tuple_elements() {
    let m = parse(
        "HloModule m\nENTRY e {\n  t = (f32[2], (s32[], f32[])) parameter(0)\n  a = f32[2] add(t#0, %t#0)\n  ROOT b = f32[] negate(f32[] %t#1#1)\n}\n",
    );
    assert_eq!(
        listing(&m),
        [
            "t = parameter()",
            "t_0 = get-tuple-element(t)",
            "a = add(t_0, t_0)",
            "t_1 = get-tuple-element(t)",
            "t_1_1 = get-tuple-element(t_1)",
            "b = negate(t_1_1)",
        ]
    );
    assert!(m.text_style.compact_gte);
}

#[test]
fn shapes_left_out() {
    let m = parse(
        "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = add(a, b)\n}\nENTRY e {\n  p = f32[2,3] parameter(0)\n  n = negate(p)\n  c = compare(n, p), direction=GT\n  t = tuple(n, c)\n  g = get-tuple-element(t), index=1\n  z = f32[] constant(0)\n  ROOT r = reduce(p, z), dimensions={1}, to_apply=sum\n}\n",
    );
    let shape = |name: &str| {
        let id = m.instructions(m.entry()).find(|&i| &*m.instr(i).name == name).unwrap();
        m.instr(id).shape.without_layout()
    };
    assert_eq!(shape("n"), Shape::array(ElementType::F32, &[2, 3]));
    assert_eq!(shape("g"), Shape::array(ElementType::Pred, &[2, 3]));
    assert_eq!(shape("r"), Shape::array(ElementType::F32, &[2]));
    // The callee stands after the caller, and has a shape left out itself.
    let m = parse(
        "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = call(p), to_apply=f\n}\nf {\n  x = f32[] parameter(0)\n  ROOT y = negate(x)\n}\n",
    );
    assert_eq!(m.instr(m.root(m.entry())).shape, Shape::scalar(ElementType::F32));
    assert_eq!(names(&m), ["e", "f"], "the order of the text is kept");
}

#[test]
fn asynchronous_sugar() {
    let m = parse(
        "HloModule m\nf {\n  ROOT x = f32[2] parameter(0)\n}\nENTRY e {\n  p = f32[2] parameter(0)\n  s = ((f32[2]), f32[2], u32[]) call-start(p), to_apply=f, async_execution_thread=\"t\", metadata={op_name=\"x\"}\n  u = ((f32[2]), f32[2], u32[]) call-update(s)\n  ROOT d = f32[2] call-done(u)\n}\n",
    );
    assert_eq!(names(&m), ["f", "async_wrapped", "e"]);
    assert_eq!(
        listing(&m),
        ["p = parameter()", "s = async-start(p)", "u = async-update(s)", "d = async-done(u)"]
    );
    let wrapped = m.find_computation("async_wrapped").unwrap();
    assert_eq!(m.computation(wrapped).execution_thread.as_deref(), Some("t"));
    let root = m.instr(m.root(wrapped));
    assert_eq!((root.opcode, root.operands().len()), (Opcode::Call, 1));
    assert!(root.attrs.computation(AttrKey::ToApply).is_some() && root.attrs.metadata().is_some());
    assert!(m.text_style.async_sugar);
    let plain = parse(
        "HloModule m\nf {\n  ROOT x = f32[2] parameter(0)\n}\nENTRY e {\n  p = f32[2] parameter(0)\n  s = ((f32[2]), f32[2]) async-start(p), calls=f\n  ROOT d = f32[2] async-done(s), calls=f\n}\n",
    );
    assert!(!plain.text_style.async_sugar);
    // Operands that are bound late reach the wrapped instruction.
    let late = parse(
        "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  s = ((f32[2]), (), u32[]) add-start(p)\n  u = ((f32[2], f32[2]), f32[2], u32[]) add-update(s, p)\n  ROOT d = f32[2] add-done(u)\n}\n",
    );
    let root = late.instr(late.root(late.find_computation("async_wrapped").unwrap()));
    assert_eq!((root.operands().len(), &root.shape), (2, &Shape::array(ElementType::F32, &[2])));
}

#[test]
fn comments_and_white_space() {
    let m = parse(
        "// first\nHloModule m // name\n/* a\n * b **/\nENTRY e { a = f32[] parameter(0) /* x */ b = f32[] /*y*/ add ( a , /*index=1*/ a ) , metadata={ op_name=\"//\" /* in */ }\n\tROOT\tc\t=\tf32[] negate(b)\r\n}",
    );
    assert_eq!(listing(&m), ["a = parameter()", "b = add(a, a)", "c = negate(b)"]);
    assert_eq!(
        m.instr(m.instructions(m.entry()).nth(1).unwrap()).attrs.metadata().unwrap().op_name.as_deref(),
        Some("//")
    );
}

#[test]
fn names_and_keywords() {
    let m = parse(
        "HloModule jit_f.1-x\nENTRY main.2 {\n  constant = f32[] parameter(0)\n  %fusion.1__1-a = f32[] negate(constant)\n  b = f32[] add(constant, %fusion.1__1-a)\n  ROOT index = f32[] negate(b)\n}\n",
    );
    assert_eq!(&*m.name, "jit_f.1-x");
    assert_eq!(listing(&m)[2], "b = add(constant, fusion.1__1-a)");
    let m = parse(
        "HloModule convolution.167:\nENTRY e (a f32[1]) -> f32[1] {\n  ROOT a = f32 [1] {0} parameter(0)\n}\n",
    );
    assert_eq!(&*m.name, "convolution.167");
}

#[test]
fn spans_are_locations_in_the_text() {
    let text = "HloModule m\nENTRY %e {\n  %p = f32[2]{0} parameter(0)\n  ROOT %n = f32[2]{0} negate(%p), metadata={}\n}\n";
    let m = parse(text);
    let span = |id| &text[m.instr(id).span.range()];
    let ids: Vec<_> = m.instructions(m.entry()).collect();
    assert_eq!((span(ids[0]), span(ids[1])), ("p = f32[2]{0} parameter", "n = f32[2]{0} negate"));
    assert_eq!(&text[m.computation(m.entry()).span.range()], "%e");
}

#[test]
fn log_prefixes() {
    let text = "I0521 12:04:45.883483    1509 service.cc:186] HloModule m\nI0521 12:04:45.883490    1509 service.cc:186] ENTRY e {\nI0521 12:04:45.883495    1509 service.cc:186]   ROOT p = f32[] parameter(0)\nI0521 12:04:45.883500    1509 service.cc:186] }\n";
    assert_eq!(listing(&parse(text)), ["p = parameter()"]);
    assert_eq!(listing(&parse(&hlo_parser::strip_log_prefixes(text))), ["p = parameter()"]);
}

#[test]
fn one_mistake_is_one_error() {
    let text = "HloModule m\nENTRY e {\n  a = f32[] parametr(0)\n  b = f32[] negate(a)\n  c = f32[] add(a, b)\n  ROOT d = f32[] negate(c)\n}\n";
    assert_eq!(codes(text), ["P0112"], "what uses a broken instruction is not blamed");
    let two = "HloModule m\nf {\n  a = f32[] parameter(0)\n  ROOT b = f32[] neg(a)\n}\nENTRY e {\n  a = f32[] parameter(0)\n  ROOT b = f32[] call(a), to_apply=f, frontend=1\n}\n";
    assert_eq!(codes(two), ["P0112", "P0201"]);
}

#[test]
fn all_forms_in_one_text() {
    let m = parse(include_str!("../data/forms.hlo"));
    let used: std::collections::BTreeSet<&str> =
        m.computations().iter().flat_map(|&c| m.instructions(c)).map(|i| m.instr(i).opcode.name()).collect();
    assert!(
        used.contains("async-start") && used.contains("get-tuple-element") && used.contains("custom-call")
    );
    assert_eq!(m.stack_tables.file_locations[0].end_column, 9);
    assert_eq!(m.header.custom, [("my_field".into(), "{x}".into())]);
}
