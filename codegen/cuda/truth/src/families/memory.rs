//! Loads and stores: extension to wider registers, vectors, state spaces, generic addresses.

use hlo_ptx::types::Type;

use super::Scale;
use crate::case::{Array, Case, Judge, prologue};
use crate::operands::Random;

const TYPES: [Type; 15] = [
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
    Type::B8,
];

/// Loads of each type into 64-bit registers, and stores from them, in each space.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let n = scale.results.min(1 << 12);
    let mut all = Vec::new();
    for ty in &TYPES[..14] {
        for vector in [1, 2, 4] {
            if ty.bits() * vector > 128 {
                continue;
            }
            for space in [
                "",
                ".global",
                ".shared",
                ".local",
                ".global.nc",
                ".volatile.global",
                ".relaxed.gpu.global",
                ".param",
            ] {
                all.extend(case(*ty, vector as usize, space, n));
            }
        }
    }
    all
}

fn case(ty: Type, count: usize, space: &str, n: usize) -> Option<Case> {
    // Integers and bits fit wider registers; floating point does not.
    let is_float = matches!(ty, Type::F32 | Type::F64);
    let bits = if is_float { ty.bits() } else { 64 };
    let bytes = ty.bits() as usize / 8;
    let each = bytes * count;
    let vector = if count > 1 { format!(".v{count}") } else { String::new() };
    let list = |letter: char| {
        let names: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
        if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
    };
    let wide = bits as usize / 8;
    // Input; the loaded registers as a whole; what a store leaves.
    let mut text = prologue(&[each, wide * count, each]);
    text += &format!(
        ".reg .b{bits} %x<{count}>, %y<{count}>; .reg .b8 %unused; .reg .b32 %s, %t; .reg .b64 %g;\n.local .align 16 .b8 l[{each}];\n"
    )
    .replace(" .reg .b8 %unused;", "");
    let (name, load, store) =
        (ty.name(), format!("ld{space}{vector}.{}", ty.name()), format!("st{space}{vector}.{}", ty.name()));
    let plain = format!("ld.global{vector}.{name}");
    let back = format!("st.global{vector}.{name}");
    let mut instruction = format!("{load} {store}");
    match space {
        ".shared" | ".local" => {
            let address = if space == ".shared" { "%s" } else { "%g" };
            text += "mov.u32 %t, %tid.x; mov.u32 %s, $K_s;\nmov.u64 %g, l;\n";
            text += &format!("mad.lo.u32 %s, %t, {each}, %s;\n");
            text += &format!(
                "{plain} {}, [%a0];\n{store} [{address}], {};\n{load} {}, [{address}];\n{back} [%a2], {};\n",
                list('y'),
                list('y'),
                list('x'),
                list('x')
            );
        }
        ".param" => {
            // Scalars only are passed by value: the address itself, of which parts are loaded.
            if count > 1 || is_float {
                return None;
            }
            instruction = load.clone();
            // The pointer differs between targets: only that the load agrees with a shift of the whole is
            // stored.
            text += &format!(
                "{load} %x0, [p0]; ld.param.u64 %g, [p0];\n.reg .pred %p;\n{}setp.eq.u64 %p, %x0, %g; selp.b64 %x0, 1, 0, %p;\n{plain} %y0, [%a0]; {back} [%a2], %y0;\n",
                extension(ty)
            );
        }
        ".global.nc" => {
            instruction = load.clone();
            text += &format!("{load} {}, [%a0];\n{back} [%a2], {};\n", list('x'), list('x'));
        }
        _ => text += &format!("{load} {}, [%a0];\n{store} [%a2], {};\n", list('x'), list('x')),
    }
    for i in 0..count {
        text += &format!("st.global.b{bits} [%a1+{}], %x{i};\n", i * wide);
    }
    text += "ret;\n}";
    let fill = {
        let name = instruction.clone();
        move || {
            let mut random = Random::of(&name);
            let data: Vec<u8> = (0..n * each).map(|_| random.bits() as u8).collect();
            vec![
                Array::input("m", ty, bytes, data),
                Array::output("x", Type::B64, wide, n * count),
                Array::output("y", ty, bytes, n * count),
            ]
        }
    };
    let variables = if space == ".shared" {
        format!(".shared .align 16 .b8 $K_s[{}];\n", 256 * each)
    } else {
        String::new()
    };
    let text = if space == ".shared" { text } else { text.replace("mov.u32 %s, $K_s;", "mov.u32 %s, 0;") };
    let case = Case {
        family: "memory",
        instruction,
        body: text,
        variables,
        blocks: (n / 256).max(1) as u32,
        threads: 256,
        fill: Box::new(fill),
        judge: Judge::Bits,
    };
    Some(case)
}

/// What a load of a type makes of the 64 bits in `%g`.
fn extension(ty: Type) -> String {
    let left = 64 - ty.bits();
    if left == 0 {
        return String::new();
    }
    let shift = if ty.is_signed() { "shr.s64" } else { "shr.u64" };
    format!("shl.b64 %g, %g, {left}; {shift} %g, %g, {left};\n")
}
