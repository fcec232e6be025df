//! The header of an object: C99, and in C++ a class with tfcompile's surface.
//!
//! **Invariant:** it includes nothing but the standard library's headers, and depends on what the object is
//! alone.

use std::fmt::Write;

use hlo::ElementType;
use hlo_ahead::compile::{Aliasing, Array, Object};

use super::Class;
use super::names::{Leaf, Names, Role, identifier};

const ABI: &str = include_str!("abi.h");
const CLASS: &str = include_str!("class.h");

/// The C type of an element.
pub(super) fn c_type(ty: ElementType) -> &'static str {
    match ty {
        ElementType::Pred => "hlo_ahead_pred",
        ElementType::S1 | ElementType::S2 | ElementType::S4 | ElementType::S8 => "int8_t",
        ElementType::U1 | ElementType::U2 | ElementType::U4 | ElementType::U8 => "uint8_t",
        ElementType::S16 => "int16_t",
        ElementType::S32 => "int32_t",
        ElementType::S64 => "int64_t",
        ElementType::U16 => "uint16_t",
        ElementType::U32 => "uint32_t",
        ElementType::U64 => "uint64_t",
        ElementType::F16 => "hlo_ahead_f16",
        ElementType::BF16 => "hlo_ahead_bf16",
        ElementType::F32 => "float",
        ElementType::F64 => "double",
        ElementType::C64 => "hlo_ahead_c64",
        ElementType::C128 => "hlo_ahead_c128",
        ElementType::F8E5M2
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E3M4
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E8M0FNU
        | ElementType::F4E2M1FN
        | ElementType::F6E3M2FN
        | ElementType::F6E2M3FN => "hlo_ahead_bits8",
    }
}

/// A string of C.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '?' => out.push_str("\\?"),
            c if c.is_ascii_graphic() || c == ' ' => out.push(c),
            c => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// What may stand in a comment of C.
fn remark(text: &str) -> String {
    text.replace("/*", "/ *").replace("*/", "* /").replace(['\n', '\r'], " ")
}

/// The header.
pub fn header(entry: &str, object: &Object, names: &Names, class: Option<&Class>, signature: &str) -> String {
    let guard = format!("HLO_AHEAD_{entry}_H");
    let upper = entry.to_ascii_uppercase();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "/* Made by hlo compile: {entry}, for {} ({}).\n\n   {}\n",
        object.target,
        object.triple,
        remark(signature)
    );
    let row = |out: &mut String, what: &str, n: usize, array: &Array, leaf: &Leaf, note: &str| {
        let dims: Vec<String> = array.dims.iter().map(ToString::to_string).collect();
        let shape = format!("{}[{}]", array.element_type.name(), dims.join(","));
        let shown = remark(leaf.shown());
        let _ = writeln!(out, "   {what} {n:>3}  {shown:<24} {shape:<20} {:>12} bytes{note}", array.bytes);
    };
    for (n, (array, leaf)) in object.arguments.iter().zip(&names.arguments).enumerate() {
        let note = match (array.aliasing, leaf.role) {
            (Aliasing::Overwritten, _) => ", overwritten",
            (_, Role::Variable { readonly: true }) => ", read only",
            (Aliasing::Read | Aliasing::Own | Aliasing::Argument(_), _) => "",
        };
        row(&mut out, "argument", n, array, leaf, note);
    }
    for (n, (array, leaf)) in object.results.iter().zip(&names.results).enumerate() {
        let note = match array.aliasing {
            Aliasing::Argument(argument) => format!(", left in argument {argument}"),
            Aliasing::Read | Aliasing::Own | Aliasing::Overwritten => String::new(),
        };
        row(&mut out, "result  ", n, array, leaf, &note);
    }
    let _ = writeln!(
        out,
        "   temporaries {} bytes, constants {} bytes",
        object.temporary_bytes, object.constant_bytes
    );
    let functions =
        object.needs.iter().filter(|need| need.starts_with("hlo_") && !need.starts_with("hlo_ahead_"));
    let calls: Vec<&str> = object.library_calls.iter().chain(functions).map(String::as_str).collect();
    let library = match calls[..] {
        [] => "nothing but the C library".to_owned(),
        _ => format!("the run-time library (libhlo_ahead.a): {}", remark(&calls.join(", "))),
    };
    let _ = writeln!(out, "   Needs {library}. */\n#ifndef {guard}\n#define {guard}\n\n{ABI}");
    let _ = writeln!(out, "#ifdef __cplusplus\nextern \"C\" {{\n#endif");
    let _ = writeln!(out, "extern const hlo_ahead_descriptor {entry}_descriptor;");
    let _ = writeln!(
        out,
        "/* Arguments and results are as many pointers as the tables have rows; what a result in an argument has is not looked at. */\nint32_t {entry}_run(void *const *arguments, void *const *results, void *temporaries, const hlo_ahead_run_options *options);"
    );
    let _ = writeln!(out, "#ifdef __cplusplus\n}}\n#endif\n");
    let _ = writeln!(out, "#define {upper}_ARGUMENT_COUNT {}", object.arguments.len());
    let _ = writeln!(out, "#define {upper}_RESULT_COUNT {}", object.results.len());
    let _ = writeln!(out, "#define {upper}_TEMPORARY_BYTES {}", object.temporary_bytes);
    let _ = writeln!(out, "#define {upper}_ALIGNMENT 64");
    let define = |out: &mut String, kind: &str, leaves: &[Leaf], arrays: &[Array]| {
        for (n, (leaf, array)) in leaves.iter().zip(arrays).enumerate() {
            let _ = writeln!(out, "#define {upper}_{kind}_{n}_BYTES {}", array.bytes);
            if let Some(name) = &leaf.name {
                let _ = writeln!(out, "#define {upper}_{kind}_{name} {n}");
            }
        }
    };
    define(&mut out, "ARGUMENT", &names.arguments, &object.arguments);
    define(&mut out, "RESULT", &names.results, &object.results);
    if let Some(class) = class {
        out.push_str(&class_of(entry, object, names, class, signature));
    }
    out.push_str("\n#endif\n");
    out
}

fn class_of(entry: &str, object: &Object, names: &Names, class: &Class, signature: &str) -> String {
    let mut accessors = String::new();
    for (n, (leaf, array)) in names.arguments.iter().zip(&object.arguments).enumerate() {
        accessor(&mut accessors, &format!("arg{n}"), n, array, Kind::Argument);
        let Some(name) = &leaf.name else { continue };
        match leaf.role {
            Role::Feed => accessor(&mut accessors, &format!("arg_{name}"), n, array, Kind::Argument),
            Role::Variable { .. } => {
                accessor(&mut accessors, &format!("var_{name}"), n, array, Kind::Argument)
            }
        }
    }
    for (n, (leaf, array)) in names.results.iter().zip(&object.results).enumerate() {
        accessor(&mut accessors, &format!("result{n}"), n, array, Kind::Result);
        if let Some(name) = &leaf.name {
            accessor(&mut accessors, &format!("result_{name}"), n, array, Kind::Result);
        }
    }
    let list = |leaves: &[Leaf], wanted: &dyn Fn(&Leaf) -> bool| {
        let one = |leaf: &Leaf| match leaf.name.as_ref().filter(|_| wanted(leaf)) {
            Some(name) => format!("{}, ", quoted(name)),
            None => "nullptr, ".to_owned(),
        };
        leaves.iter().map(one).collect::<String>()
    };
    let is_variable = |leaf: &Leaf| leaf.role != Role::Feed;
    let open: String = class.namespaces.iter().map(|n| format!("namespace {n} {{\n")).collect();
    let close: String = class.namespaces.iter().rev().map(|n| format!("}}  // namespace {n}\n")).collect();
    let variables = names.arguments.iter().filter(|leaf| is_variable(leaf)).count();
    let mut out = CLASS.to_owned();
    for (mark, text) in [
        ("@OPEN@", open),
        ("@CLOSE@", close),
        ("@CLASS@", class.name.clone()),
        ("@ENTRY@", entry.to_owned()),
        ("@ARGS@", object.arguments.len().to_string()),
        ("@VARIABLES@", variables.to_string()),
        ("@RESULTS@", object.results.len().to_string()),
        ("@TEMPS@", object.temporary_bytes.to_string()),
        ("@ARG_NAMES@", list(&names.arguments, &|leaf| !is_variable(leaf))),
        ("@VARIABLE_NAMES@", list(&names.arguments, &is_variable)),
        ("@RESULT_NAMES@", list(&names.results, &|_| true)),
        ("@SHAPE@", quoted(signature)),
        ("@ACCESSORS@", accessors),
    ] {
        out = out.replace(
            mark,
            text.trim_end_matches(if mark == "@OPEN@" || mark == "@CLOSE@" { '\n' } else { '\0' }),
        );
    }
    out
}

/// Whose accessors they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Argument,
    Result,
}

/// `NAME_data`, `NAME(i, j, ...)`, `NAME_size`, `NAME_count`, and for what is given `set_NAME_data`.
fn accessor(out: &mut String, name: &str, n: usize, array: &Array, kind: Kind) {
    let ty = c_type(array.element_type);
    let name = identifier(name);
    let data = match kind {
        Kind::Argument => format!("args_[{n}]"),
        Kind::Result => format!("Result({n})"),
    };
    let count: i64 = array.dims.iter().product();
    if kind == Kind::Argument {
        // What a program overwrites is not given as constant.
        let taken = if array.aliasing == Aliasing::Overwritten { "" } else { "const " };
        let _ = writeln!(
            out,
            "  void set_{name}_data({taken}void *data) {{ args_[{n}] = const_cast<void *>(static_cast<const void *>(data)); }}"
        );
    }
    let _ = writeln!(out, "  {ty} *{name}_data() {{ return static_cast<{ty} *>({data}); }}");
    let _ =
        writeln!(out, "  const {ty} *{name}_data() const {{ return static_cast<const {ty} *>({data}); }}");
    let parameters: Vec<String> = (0..array.dims.len()).map(|d| format!("size_t dim{d}")).collect();
    let parameters = parameters.join(", ");
    let checks: String = array
        .dims
        .iter()
        .enumerate()
        .map(|(d, size)| match size {
            0 => "HLO_AHEAD_CHECK(false); ".to_owned(),
            size => format!("HLO_AHEAD_CHECK(dim{d} < size_t({size})); "),
        })
        .collect();
    let mut offset = "0".to_owned();
    for (d, size) in array.dims.iter().enumerate() {
        offset = if d == 0 { "dim0".to_owned() } else { format!("({offset} * {size} + dim{d})") };
    }
    let _ = writeln!(out, "  {ty} &{name}({parameters}) {{ {checks}return {name}_data()[{offset}]; }}");
    let _ = writeln!(
        out,
        "  const {ty} &{name}({parameters}) const {{ {checks}return {name}_data()[{offset}]; }}"
    );
    let _ = writeln!(out, "  static constexpr size_t {name}_size() {{ return {}; }}", array.bytes);
    let _ = writeln!(out, "  static constexpr size_t {name}_count() {{ return {count}; }}");
}
