//! Atomic operations: each alone on its address, where result and memory are determined, and many on one
//! address, where memory is.

use hlo_ptx::spell::{Operand, Spelling, spellings};
use hlo_ptx::types::Type;

use super::Scale;
use super::single::header;
use crate::case::{Array, Case, Judge, prologue};
use crate::operands::{Random, columns, to_bytes};

/// A case of each type and operation, in global, shared and generic memory.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let wanted = |s: &Spelling| {
        let plain = |list: &[&str]| !list.iter().any(|m| s.has(m));
        plain(&["acquire", "release", "acq_rel", "cluster", "sys", "shared::cluster", "shared::cta", "L2::cache_hint", "b128"])
            // Order and scope change nothing of values: one combination of them.
            && s.has("relaxed") == s.has("gpu")
            && !s.has("cta")
            && !(s.has("add") && s.has("s64"))
            && s.operands.len() == least(s)
    };
    let mut all = Vec::new();
    for opcode in ["atom", "red"] {
        for s in spellings(opcode).into_iter().filter(wanted) {
            all.extend(case(&s, scale));
            all.extend(contended(&s, scale));
        }
    }
    all
}

/// Operands without the cache hint.
fn least(s: &Spelling) -> usize {
    let results = usize::from(s.opcode == "atom");
    results + 2 + usize::from(s.has("cas"))
}

/// Bits of an element of the memory, elements a thread works on.
fn shape(s: &Spelling) -> Option<(Type, usize)> {
    let ty = *s.types.first()?;
    let count = ["v2", "v4", "v8"].iter().zip([2, 4, 8]).find(|v| s.has(v.0)).map_or(1, |v| v.1);
    (ty.bits() as usize * count <= 128).then_some((ty, count))
}

fn list(letter: char, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
    if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
}

fn case(s: &Spelling, scale: Scale) -> Option<Case> {
    let (ty, count) = shape(s)?;
    let n = scale.results.min(1 << 14);
    let (bits, bytes) = (ty.bits() as usize, ty.bits() as usize / 8);
    let each = bytes * count;
    let (is_atom, is_cas, is_shared) = (s.opcode == "atom", s.has("cas"), s.has("shared"));
    // b, c (of compare and swap), memory, result.
    let mut text = prologue(&[each, each, each, each]);
    text += &format!(
        ".reg .b{bits} %b<{count}>, %c<{count}>, %d<{count}>, %m<{count}>; .reg .b32 %s, %t; .reg .b64 %g;\n"
    );
    for i in 0..count {
        let at = i * bytes;
        text += &format!(
            "ld.global.b{bits} %b{i}, [%a0+{at}]; ld.global.b{bits} %c{i}, [%a1+{at}]; mov.b{bits} %d{i}, 0;\n"
        );
    }
    let mut operands: Vec<String> = Vec::new();
    if is_atom {
        operands.push(list('d', count));
    }
    operands.push(if is_shared { "[%s]".to_owned() } else { "[%a2]".to_owned() });
    operands.push(list('b', count));
    if is_cas {
        operands.push(list('c', count));
    }
    if is_shared {
        text += &format!("mov.u32 %s, $K_s; mov.u32 %t, %tid.x; mad.lo.u32 %s, %t, {each}, %s;\n");
        for i in 0..count {
            let at = i * bytes;
            text += &format!("ld.global.b{bits} %m{i}, [%a2+{at}]; st.shared.b{bits} [%s+{at}], %m{i};\n");
        }
    }
    text += &format!("{s} {};\n", operands.join(", "));
    for i in 0..count {
        let at = i * bytes;
        if is_shared {
            text += &format!("ld.shared.b{bits} %m{i}, [%s+{at}]; st.global.b{bits} [%a2+{at}], %m{i};\n");
        }
        text += &format!("st.global.b{bits} [%a3+{at}], %d{i};\n");
    }
    text += "ret;\n}";
    let name = s.to_string();
    let fill = {
        let name = name.clone();
        move || {
            let mut random = Random::of(&name);
            let mut values = columns(&[ty, ty, ty], n * count, &mut random);
            if is_cas {
                // Half of the comparisons hold.
                let [compared, _, memory] = &mut values[..] else { return Vec::new() };
                for (c, m) in compared.iter_mut().zip(memory) {
                    if random.below(2) == 0 {
                        *c = *m;
                    }
                }
            }
            vec![
                Array::input("b", ty, bytes, to_bytes(&values[0], bytes)),
                Array::input("c", ty, bytes, to_bytes(&values[1], bytes)),
                Array::both("memory", ty, bytes, to_bytes(&values[2], bytes)),
                Array::output("d", ty, bytes, n * count),
            ]
        }
    };
    let case = Case {
        family: "atomic",
        instruction: name,
        body: text,
        variables: if is_shared {
            format!(".shared .align 16 .b8 $K_s[{}];\n", 256 * each)
        } else {
            String::new()
        },
        blocks: (n / 256) as u32,
        threads: 256,
        fill: Box::new(fill),
        judge: Judge::Bits,
    };
    hlo_ptx::lower::module(&(header(90) + &case.text("k"))).ok()?;
    Some(case)
}

/// Integer operations that commute, many on one address: what is left in memory is determined.
fn contended(s: &Spelling, scale: Scale) -> Option<Case> {
    let (ty, count) = shape(s)?;
    let commutes = ["add", "min", "max", "and", "or", "xor", "inc"].iter().any(|m| s.has(m));
    let is_float = ty.class() == hlo_ptx::types::Class::Float;
    if count != 1
        || !commutes
        || is_float
        || s.has("shared")
        || s.operands.iter().any(|o| matches!(o, Operand::Registers))
    {
        return None;
    }
    let n = scale.results.min(1 << 13);
    let (bits, bytes) = (ty.bits() as usize, ty.bits() as usize / 8);
    let mut text = prologue(&[bytes, 0]);
    text += &format!(
        ".reg .b{bits} %b, %d; .reg .b32 %t;\nld.global.b{bits} %b, [%a0]; and.b32 %t, %i, 15; mul.wide.u32 %o, %t, {bytes}; add.s64 %a1, %a1, %o;\n"
    );
    let result = if s.opcode == "atom" { "%d, " } else { "" };
    // The operand of `inc` is where it wraps: all threads have the same.
    if s.has("inc") {
        text += "mov.b32 %b, 37;\n";
    }
    text += &format!("{s} {result}[%a1], %b;\nret;\n}}");
    let name = s.to_string();
    let fill = {
        let name = name.clone();
        move || {
            let mut random = Random::of(&format!("contended {name}"));
            let values = columns(&[ty], n, &mut random);
            let start: Vec<u64> = (0..16).map(|i| values[0][i * 7 % n]).collect();
            vec![
                Array::input("b", ty, bytes, to_bytes(&values[0], bytes)),
                Array::both("memory", ty, bytes, to_bytes(&start, bytes)),
            ]
        }
    };
    let case = Case {
        family: "atomic",
        instruction: format!("{name} by many"),
        body: text,
        variables: String::new(),
        blocks: (n / 256) as u32,
        threads: 256,
        fill: Box::new(fill),
        judge: Judge::Bits,
    };
    hlo_ptx::lower::module(&(header(90) + &case.text("k"))).ok()?;
    Some(case)
}
