//! Each family of moves by itself: what its edits make of a program.

use hlo::verify::verify;

use super::candidate;
use crate::reduce::Candidate;
use crate::reduce::moves::{Edit, MOVES};
use crate::reduce::program::{Tidy, finished};
use crate::reduce::search::Context;

/// The edits of all moves of this name.
fn edits(c: &Candidate, done: &str) -> Vec<Edit> {
    let context = Context::new(c, 1 << 20);
    let found: Vec<Edit> = MOVES.iter().filter(|m| m.done == done).flat_map(|m| (m.plan)(&context)).collect();
    assert!(MOVES.iter().any(|m| m.done == done), "no move {done}");
    found
}

/// What each edit gives that verifies.
fn results(text: &str, done: &str) -> Vec<Candidate> {
    let original = finished(&candidate(text), Tidy::Code);
    let mut all = Vec::new();
    for edit in edits(&original, done) {
        let mut c = original.clone();
        if edit(&mut c) {
            let c = finished(&c, Tidy::Parameters);
            let found = verify(&c.module);
            if !found.has_errors() {
                all.push(c);
            } else if std::env::var_os("DEBUG_MOVES").is_some() {
                eprintln!("{found:?}");
            }
        }
    }
    all
}

/// The text without its first line, and without empty lines and the indentation.
fn body(c: &Candidate) -> String {
    let text = crate::reduce::text(&c.module);
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("\n")
}

/// Some edit of a move must give this.
fn gives(text: &str, done: &str, expected: &str) -> Candidate {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let expected = expected.join("\n");
    let all = results(text, done);
    match all.iter().find(|c| body(c) == expected) {
        Some(c) => c.clone(),
        None => {
            panic!("none is\n{expected}\n\nbut\n{}", all.iter().map(body).collect::<Vec<_>>().join("\n\n"))
        }
    }
}

fn entry(instructions: &str) -> String {
    format!("HloModule m\nENTRY main {{\n{instructions}\n}}\n")
}

fn values(c: &Candidate, input: usize) -> Vec<f64> {
    let scalars = crate::reduce::values::scalars(&c.inputs[0][input].buffer);
    scalars
        .into_iter()
        .map(|s| match s {
            crate::reduce::values::Scalar::Int(i) => i as f64,
            crate::reduce::values::Scalar::Real(re, _) => re,
        })
        .collect()
}

const STRAIGHT: &str = "
  c = f32[2] constant({1, 2})
  n = f32[2] negate(c)
  a = f32[2] add(n, n)
  ROOT m = f32[2] multiply(a, c)";

#[test]
fn cuts() {
    let text = entry(STRAIGHT);
    let behind = "ENTRY main {
        constant = f32[2] constant({1, 2})
        ROOT negate = f32[2] negate(constant)
        }";
    gives(&text, "cut off behind the failure", behind);
    let before = "ENTRY main {
        p1 = f32[2] parameter(1)
        p0 = f32[2] parameter(0)
        ROOT multiply = f32[2] multiply(p1, p0)
        }";
    let c = gives(&text, "cut off before the failure", before);
    assert_eq!((values(&c, 0), values(&c, 1)), (vec![1.0, 2.0], vec![-2.0, -4.0]), "recorded values");
    let inner = "ENTRY main {
        constant = f32[2] constant({1, 2})
        negate = f32[2] negate(constant)
        ROOT add = f32[2] add(negate, negate)
        }";
    gives(&text, "cut to an inner value", inner);
    let replaced = "ENTRY main {
        p0 = f32[2] parameter(0)
        constant = f32[2] constant({1, 2})
        ROOT multiply = f32[2] multiply(p0, constant)
        }";
    gives(&text, "producers replaced by parameters", replaced);
}

#[test]
fn outputs() {
    let text = entry(
        "p = f32[2] parameter(0)\n n = f32[2] negate(p)\n a = f32[2] abs(p)\n ROOT t = (f32[2], f32[2], f32[2]) tuple(n, a, p)",
    );
    let two = "ENTRY main {
        p0 = f32[2] parameter(0)
        abs = f32[2] abs(p0)
        ROOT tuple = (f32[2], f32[2]) tuple(abs, p0)
        }";
    gives(&text, "outputs dropped", two);
    gives(
        &text,
        "cut to one output",
        "ENTRY main {\n p0 = f32[2] parameter(0)\n ROOT negate = f32[2] negate(p0)\n }",
    );
}

#[test]
fn bypasses() {
    gives(
        &entry(STRAIGHT),
        "instructions bypassed",
        "ENTRY main {
        constant = f32[2] constant({1, 2})
        ROOT multiply = f32[2] multiply(constant, constant)
        }",
    );
    // Another shape: reshaped, or sizes made to fit.
    let text =
        entry("p = f32[4] parameter(0)\n s = f32[2] slice(p), slice={[0:2]}\n ROOT n = f32[2] negate(s)");
    gives(
        &text,
        "instructions bypassed",
        "ENTRY main {\n p0 = f32[2] parameter(0)\n ROOT negate = f32[2] negate(p0)\n }",
    );
    let text = entry(
        "p = s32[4] parameter(0)\n c = f32[4] cosine(q)\n q = f32[4] convert(p)\n ROOT r = f32[2,2] reshape(c)",
    );
    let text = text.replace(
        "c = f32[4] cosine(q)\n q = f32[4] convert(p)",
        "q = f32[4] convert(p)\n c = f32[4] cosine(q)",
    );
    gives(
        &text,
        "instructions bypassed",
        "ENTRY main {
        p0 = s32[4] parameter(0)
        convert = f32[4] convert(p0)
        ROOT reshape = f32[2,2] reshape(convert)
        }",
    );
}

#[test]
fn calls() {
    let f = "f { a = f32[] parameter(0)\n c = f32[] constant(2)\n ROOT m = f32[] multiply(a, c) }";
    let text = format!(
        "HloModule m\n{f}\nENTRY main {{ p = f32[3] parameter(0)\n ROOT r = f32[3] map(p), dimensions={{0}}, to_apply=f }}"
    );
    gives(
        &text,
        "calls inlined",
        "ENTRY main {
        p0 = f32[3] parameter(0)
        constant = f32[] constant(2)
        broadcast = f32[3] broadcast(constant), dimensions={}
        ROOT multiply = f32[3] multiply(p0, broadcast)
        }",
    );
    let text = format!(
        "HloModule m\n{f}\nENTRY main {{ p = f32[] parameter(0)\n ROOT r = f32[] fusion(p), kind=kLoop, calls=f }}"
    );
    gives(
        &text,
        "calls inlined",
        "ENTRY main {
        p0 = f32[] parameter(0)
        constant = f32[] constant(2)
        ROOT multiply = f32[] multiply(p0, constant)
        }",
    );
    let g = "g { ROOT a = f32[] parameter(0) }";
    let text = format!(
        "HloModule m\n{f}\n{g}\nENTRY main {{ i = s32[] parameter(0)\n p = f32[] parameter(1)\n ROOT r = f32[] conditional(i, p, p), branch_computations={{f, g}} }}"
    );
    gives(
        &text,
        "conditionals replaced by a branch",
        "ENTRY main {
        p0 = f32[] parameter(0)
        constant = f32[] constant(2)
        ROOT multiply = f32[] multiply(p0, constant)
        }",
    );
}

const LOOP: &str = "HloModule m
c { p = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  y = f32[2] get-tuple-element(p), index=2
  o = s32[] constant(1)
  j = s32[] add(i, o)
  z = f32[2] add(x, y)
  ROOT t = (s32[], f32[2], f32[2]) tuple(j, z, y) }
ENTRY main {
  i = s32[] constant(0)
  v = f32[2] constant({1, 2})
  t = (s32[], f32[2], f32[2]) tuple(i, v, v)
  w = (s32[], f32[2], f32[2]) while(t), condition=c, body=b
  ROOT g = f32[2] get-tuple-element(w), index=1 }";

#[test]
fn loops() {
    gives(
        LOOP,
        "loops replaced by one iteration",
        "ENTRY main {
        constant = s32[] constant(0)
        constant.1 = f32[2] constant({1, 2})
        tuple = (s32[], f32[2], f32[2]) tuple(constant, constant.1, constant.1)
        get-tuple-element = s32[] get-tuple-element(tuple), index=0
        get-tuple-element.1 = f32[2] get-tuple-element(tuple), index=1
        get-tuple-element.2 = f32[2] get-tuple-element(tuple), index=2
        constant.2 = s32[] constant(1)
        add = s32[] add(get-tuple-element, constant.2)
        add.1 = f32[2] add(get-tuple-element.1, get-tuple-element.2)
        tuple.1 = (s32[], f32[2], f32[2]) tuple(add, add.1, get-tuple-element.2)
        ROOT get-tuple-element.3 = f32[2] get-tuple-element(tuple.1), index=1
        }",
    );
    // The second array does not change: it is what it is at first.
    gives(
        LOOP,
        "loop state dropped",
        "compare_f {
        p0 = (s32[], f32[2]) parameter(0)
        get-tuple-element = s32[] get-tuple-element(p0), index=0
        constant = s32[] constant(3)
        ROOT compare = pred[] compare(get-tuple-element, constant), direction=LT
        }
        f {
        p0 = (s32[], f32[2]) parameter(0)
        get-tuple-element = s32[] get-tuple-element(p0), index=0
        get-tuple-element.1 = f32[2] get-tuple-element(p0), index=1
        constant = f32[2] constant({1, 2})
        constant.1 = s32[] constant(1)
        add = s32[] add(get-tuple-element, constant.1)
        add.1 = f32[2] add(get-tuple-element.1, constant)
        ROOT tuple = (s32[], f32[2]) tuple(add, add.1)
        }
        ENTRY main {
        constant = s32[] constant(0)
        constant.1 = f32[2] constant({1, 2})
        tuple = (s32[], f32[2]) tuple(constant, constant.1)
        while = (s32[], f32[2]) while(tuple), condition=compare_f, body=f
        ROOT get-tuple-element = f32[2] get-tuple-element(while), index=1
        }",
    );
    let one = "HloModule m
        c { p = (s32[]) parameter(0)\n ROOT t = pred[] constant(false) }
        b { p = (s32[]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] negate(i)\n ROOT t = (s32[]) tuple(n) }
        ENTRY main { i = s32[] parameter(0)\n t = (s32[]) tuple(i)\n w = (s32[]) while(t), condition=c, body=b\n ROOT g = s32[] get-tuple-element(w), index=0 }";
    gives(
        one,
        "loop state dropped",
        "constant_f {
        p0 = s32[] parameter(0)
        ROOT constant = pred[] constant(false)
        }
        negate_f {
        p0 = s32[] parameter(0)
        ROOT negate = s32[] negate(p0)
        }
        ENTRY main {
        p0 = s32[] parameter(0)
        ROOT while = s32[] while(p0), condition=constant_f, body=negate_f
        }",
    );
    // Inner values become constants: what they are in the first iteration.
    let all = results(LOOP, "inner values replaced by constants");
    assert!(
        all.iter().any(|c| body(c).contains("constant.1 = f32[2] constant({2, 4})")),
        "{:?}",
        all.iter().map(body).collect::<Vec<_>>()
    );
}

#[test]
fn tuples_of_calls() {
    let text = "HloModule m
        f { p = (f32[2], s32[]) parameter(0)\n x = f32[2] get-tuple-element(p), index=0\n n = f32[2] negate(x)\n ROOT t = (f32[2], f32[2]) tuple(n, x) }
        ENTRY main { p = f32[2] parameter(0)\n i = s32[] parameter(1)\n t = (f32[2], s32[]) tuple(p, i)\n r = (f32[2], f32[2]) call(t), to_apply=f\n ROOT g = f32[2] get-tuple-element(r), index=0 }";
    gives(
        text,
        "tuples made smaller",
        "negate_f {
        p0 = (f32[2], s32[]) parameter(0)
        get-tuple-element = f32[2] get-tuple-element(p0), index=0
        ROOT negate = f32[2] negate(get-tuple-element)
        }
        ENTRY main {
        p0 = f32[2] parameter(0)
        p1 = s32[] parameter(1)
        tuple = (f32[2], s32[]) tuple(p0, p1)
        ROOT call = f32[2] call(tuple), to_apply=negate_f
        }",
    );
    gives(
        text,
        "tuples made smaller",
        "f {
        p0 = f32[2] parameter(0)
        negate = f32[2] negate(p0)
        ROOT tuple = (f32[2], f32[2]) tuple(negate, p0)
        }
        ENTRY main {
        p0 = f32[2] parameter(0)
        call = (f32[2], f32[2]) call(p0), to_apply=f
        ROOT get-tuple-element = f32[2] get-tuple-element(call), index=0
        }",
    );
}

#[test]
fn regions() {
    let text = "HloModule m
        lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n n = f32[] negate(a)\n ROOT l = pred[] compare(n, b), direction=GT }
        ENTRY main { p = f32[4] parameter(0)\n i = s32[4] iota(), iota_dimension=0\n s = (f32[4], s32[4]) sort(p, i), dimensions={0}, to_apply=lt\n ROOT g = f32[4] get-tuple-element(s), index=0 }";
    gives(
        text,
        "operands dropped",
        "compare_f {
        p0 = f32[] parameter(0)
        negate = f32[] negate(p0)
        p1 = f32[] parameter(1)
        ROOT compare = pred[] compare(negate, p1), direction=GT
        }
        ENTRY main {
        p0 = f32[4] parameter(0)
        ROOT sort = f32[4] sort(p0), dimensions={0}, to_apply=compare_f
        }"
        .replace(
            "negate = f32[] negate(p0)\n        p1 = f32[] parameter(1)",
            "p1 = f32[] parameter(1)\n        negate = f32[] negate(p0)",
        )
        .as_str(),
    );
    let simpler = results(text, "regions simplified");
    assert!(simpler.iter().any(|c| body(c).contains("ROOT compare = pred[] compare(p0, p1), direction=LT")));
}

#[test]
fn parts_of_a_concatenation() {
    let text = entry(
        "p = f32[2] parameter(0)\n q = f32[3] parameter(1)\n c = f32[7] concatenate(p, q, p), dimensions={0}\n ROOT n = f32[7] negate(c)",
    );
    gives(
        &text,
        "operands dropped",
        "ENTRY main {
        p0 = f32[2] parameter(0)
        p1 = f32[3] parameter(1)
        concatenate = f32[5] concatenate(p0, p1), dimensions={0}
        ROOT negate = f32[5] negate(concatenate)
        }",
    );
}

#[test]
fn parameters() {
    let text = entry(
        "p = f32[2] parameter(0)\n q = f32[2] parameter(1)\n t = (f32[2], f32[2]) parameter(2)\n g = f32[2] get-tuple-element(t), index=1\n a = f32[2] add(p, q)\n ROOT m = f32[2] multiply(a, g)",
    );
    let merged = gives(
        &text,
        "parameters merged",
        "ENTRY main {
        p0 = f32[2] parameter(0)
        p1 = (f32[2], f32[2]) parameter(1)
        get-tuple-element = f32[2] get-tuple-element(p1), index=1
        add = f32[2] add(p0, p0)
        ROOT multiply = f32[2] multiply(add, get-tuple-element)
        }",
    );
    assert_eq!(merged.inputs[0].len(), 3, "the arrays of a parameter that is gone are gone");
    let c = gives(
        &text,
        "parameters and constants exchanged",
        "ENTRY main {
        p2 = f32[2] parameter(2)
        p0 = f32[2] parameter(0)
        p1 = f32[2] parameter(1)
        add = f32[2] add(p0, p1)
        ROOT multiply = f32[2] multiply(add, p2)
        }",
    );
    assert_eq!(
        c.inputs[0][2].buffer,
        candidate(&text).inputs[0][3].buffer,
        "the second element of the tuple"
    );
    let text = entry("c = s32[2] constant({3, 4})\n ROOT n = s32[2] negate(c)");
    let c = gives(
        &text,
        "parameters and constants exchanged",
        "ENTRY main {\n p0 = s32[2] parameter(0)\n ROOT negate = s32[2] negate(p0)\n }",
    );
    assert_eq!(values(&c, 0), [3.0, 4.0]);
}

#[test]
fn annotations_and_devices() {
    let text = "HloModule m, is_scheduled=true, replica_count=2\nENTRY main { p = f32[2]{0} parameter(0), sharding={replicated}\n ROOT n = f32[2]{0} negate(p), metadata={op_name=\"x\"} }";
    let all = results(text, "annotations dropped");
    let plain = "ENTRY main {\np0 = f32[2] parameter(0)\nROOT negate = f32[2] negate(p0)\n}";
    assert_eq!(body(&all[0]), plain);
    assert!(crate::reduce::text(&all[0].module).starts_with("HloModule reduced, replica_count=2\n"));
    let all = results(text, "run on fewer devices");
    assert_eq!(all.iter().map(|c| c.inputs.len()).collect::<Vec<_>>(), [1, 1, 1, 1, 1], "either device");
}

#[test]
fn types() {
    let text = entry("p = f64[2] parameter(0)\n c = bf16[2] convert(p)\n ROOT n = bf16[2] negate(c)");
    let c = gives(
        &text,
        "element types simplified",
        "ENTRY main {
        p0 = f32[2] parameter(0)
        convert = bf16[2] convert(p0)
        ROOT negate = bf16[2] negate(convert)
        }",
    );
    assert_eq!(c.inputs[0][0].buffer.element_type(), hlo::ElementType::F32);
}

#[test]
fn numbers() {
    let text = entry("c = f32[4] constant({0.1, 7, -3, 1e30})\n ROOT n = f32[4] negate(c)");
    for wanted in
        ["{0, 0, 0, 0}", "{0, 1, 2, 3}", "{1, 1, 1, 1}", "{0.1, 0, -3, 1e+30}", "{0.1, 7, 1, 1e+30}"]
    {
        let all = results(&text, "values simplified");
        assert!(
            all.iter().any(|c| body(c).contains(wanted)),
            "{wanted}: {:?}",
            all.iter().map(body).collect::<Vec<_>>()
        );
    }
    let text =
        entry("p = f32[4] parameter(0)\n z = f32[] constant(0)\n ROOT q = f32[9] pad(p, z), padding=2_3_0");
    gives(
        &text,
        "windows and numbers simplified",
        "ENTRY main {
        p0 = f32[4] parameter(0)
        constant = f32[] constant(0)
        ROOT pad = f32[7] pad(p0, constant), padding=0_3
        }",
    );
}
