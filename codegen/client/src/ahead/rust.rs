//! The Rust module of an object: its entry point, and a struct that owns the buffers of a run.

use std::fmt::Write;

use hlo::ElementType;
use hlo_ahead::compile::{Aliasing, Array, Object};

use super::Class;
use super::names::{Leaf, Names, Role, identifier};

const MODULE: &str = include_str!("module.rs.txt");

/// The Rust type of an element: what Rust has no number for by its bits, of complex numbers the parts.
fn rust_type(ty: ElementType) -> &'static str {
    match ty {
        ElementType::Pred
        | ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::U8
        | ElementType::F8E5M2
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E3M4
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E8M0FNU
        | ElementType::F4E2M1FN
        | ElementType::F6E3M2FN
        | ElementType::F6E2M3FN => "u8",
        ElementType::S1 | ElementType::S2 | ElementType::S4 | ElementType::S8 => "i8",
        ElementType::S16 => "i16",
        ElementType::S32 => "i32",
        ElementType::S64 => "i64",
        ElementType::U16 | ElementType::F16 | ElementType::BF16 => "u16",
        ElementType::U32 => "u32",
        ElementType::U64 => "u64",
        ElementType::F32 => "f32",
        ElementType::F64 => "f64",
        ElementType::C64 => "[f32; 2]",
        ElementType::C128 => "[f64; 2]",
    }
}

/// The module.
pub fn module(entry: &str, object: &Object, names: &Names, class: Option<&Class>, signature: &str) -> String {
    let mut accessors = String::new();
    for (n, (leaf, array)) in names.arguments.iter().zip(&object.arguments).enumerate() {
        argument(&mut accessors, &format!("arg{n}"), n, array);
        let Some(name) = &leaf.name else { continue };
        let kind = if leaf.role == Role::Feed { "arg" } else { "var" };
        argument(&mut accessors, &format!("{kind}_{}", identifier(name)), n, array);
    }
    for (n, (leaf, array)) in names.results.iter().zip(&object.results).enumerate() {
        result(&mut accessors, &format!("result{n}"), n, array);
        if let Some(name) = &leaf.name {
            result(&mut accessors, &format!("result_{}", identifier(name)), n, array);
        }
    }
    let list = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
    let name = |leaf: &Leaf| match &leaf.name {
        Some(name) => format!("Some({name:?})"),
        None => "None".to_owned(),
    };
    let bytes = |array: &Array| match array.aliasing {
        Aliasing::Argument(_) => "None".to_owned(),
        Aliasing::Own | Aliasing::Read | Aliasing::Overwritten => format!("Some({})", array.bytes),
    };
    let class = class.map_or("Model", |class| &class.name);
    let mut out = format!("//! Made by hlo compile: {entry}, for {} ({}).\n", object.target, object.triple);
    out.push_str(MODULE);
    for (mark, text) in [
        ("@CLASS@", class.to_owned()),
        ("@ENTRY@", entry.to_owned()),
        ("@TEMPS@", object.temporary_bytes.to_string()),
        ("@SHAPE@", format!("{signature:?}")),
        ("@STEPS@", list(&mut object.steps.iter().map(|step| format!("({:?}, {:?})", step.name, step.kind)))),
        ("@ARGUMENT_BYTES@", list(&mut object.arguments.iter().map(|a| format!("{}usize", a.bytes)))),
        ("@RESULT_BYTES@", list(&mut object.results.iter().map(bytes))),
        ("@ARGUMENT_NAMES@", list(&mut names.arguments.iter().map(name))),
        ("@RESULT_NAMES@", list(&mut names.results.iter().map(name))),
        ("@ACCESSORS@", accessors),
    ] {
        out = out.replace(mark, &text);
    }
    out
}

fn count(array: &Array) -> i64 {
    array.dims.iter().product()
}

fn argument(out: &mut String, name: &str, n: usize, array: &Array) {
    let (ty, count) = (rust_type(array.element_type), count(array));
    let _ = writeln!(
        out,
        "\n    pub fn {name}(&self) -> &[{ty}] {{\n        self.arguments[{n}].elements({count})\n    }}"
    );
    let _ = writeln!(
        out,
        "\n    pub fn {name}_mut(&mut self) -> &mut [{ty}] {{\n        self.arguments[{n}].elements_mut({count})\n    }}"
    );
}

fn result(out: &mut String, name: &str, n: usize, array: &Array) {
    let (ty, count) = (rust_type(array.element_type), count(array));
    let source = match array.aliasing {
        Aliasing::Argument(argument) => format!("self.arguments[{argument}]"),
        Aliasing::Own | Aliasing::Read | Aliasing::Overwritten => {
            format!("self.results[{n}].as_ref().unwrap()")
        }
    };
    let _ =
        writeln!(out, "\n    pub fn {name}(&self) -> &[{ty}] {{\n        {source}.elements({count})\n    }}");
}
