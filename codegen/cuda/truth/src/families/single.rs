//! One instruction a kernel, of every spelling in the interpreter's table that works on registers alone.

use hlo_ptx::spell::{Operand, Spelling, spellings};
use hlo_ptx::types::{Class, Type};

use super::Scale;
use crate::case::{Array, Case, Judge, prologue};
use crate::operands::{Random, columns, to_bytes};

const OPCODES: &[&str] = &[
    "add", "addc", "sub", "subc", "mul", "mul24", "mad", "madc", "mad24", "sad", "div", "rem", "abs", "neg",
    "min", "max", "popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a",
    "testp", "copysign", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "set", "setp",
    "selp", "slct", "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "cvt",
];

/// Tables of `lop3` that are tried.
const LUTS: [u32; 6] = [0x1B, 0x96, 0xE8, 0xCA, 0x80, 0x3C];

/// A kernel of each spelling that the interpreter's verifier takes.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let mut all: Vec<(Spelling, Option<u32>)> = Vec::new();
    for opcode in OPCODES {
        // The interpreter executes neither stochastic rounding nor `.oob`, and says so.
        for s in spellings(opcode).into_iter().filter(|s| is_of_the_isa(s) && !s.has("rs") && !s.has("oob")) {
            match s.operands.contains(&Operand::Immediate) {
                true => all.extend(LUTS.iter().map(|&v| (s.clone(), Some(v)))),
                false => all.push((s, None)),
            }
        }
    }
    // Most spellings are refused: of all roundings of all conversions.
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let size = all.len().div_ceil(jobs).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = all
            .chunks(size)
            .map(|part| {
                scope.spawn(move || {
                    part.iter().filter_map(|(s, immediate)| case(s, *immediate, scale)).collect::<Vec<Case>>()
                })
            })
            .collect();
        parts.into_iter().flat_map(|p| p.join().unwrap_or_default()).collect()
    })
}

/// Whether the ISA has a spelling, as far as its rules between modifiers are simple. The table of the
/// interpreter takes more, and devices refuse what is left; but refusing thousands takes a device's compiler
/// a while.
fn is_of_the_isa(s: &Spelling) -> bool {
    let flushes = |t: &Type| matches!(t, Type::F32 | Type::F16 | Type::F16x2);
    let is_float = |t: Type| t.class() == Class::Float;
    match s.opcode {
        "set" | "setp" => {
            let ty = *s.types.last().unwrap_or(&Type::B32);
            let unordered = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"].iter().any(|m| s.has(m));
            (!s.has("ftz") || flushes(&ty)) && (!unordered || is_float(ty))
        }
        "cvt" if s.types.len() == 2 => {
            let (to, from) = (s.types[0], s.types[1]);
            let rounds = ["rn", "rz", "rm", "rp", "rna"].iter().any(|m| s.has(m));
            let is_integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|m| s.has(m));
            let (narrow, wide) = (s.has("relu") || s.has("satfinite"), s.has("ftz"));
            let packed = |t: Type| t.name().ends_with("x2");
            if packed(to) || packed(from) {
                return true;
            }
            if to == Type::Tf32 {
                return from == Type::F32 && rounds && !s.has("rm") && !s.has("rp") && !wide && !s.has("sat");
            }
            let single = to == Type::F32 || from == Type::F32;
            if s.has("rna")
                || (wide && !single)
                || (narrow && !(from == Type::F32 && matches!(to, Type::F16 | Type::Bf16)))
            {
                return false;
            }
            match (is_float(to), is_float(from)) {
                (false, false) => !rounds && !is_integral && !wide,
                (true, false) => rounds && !is_integral && !wide,
                (false, true) => is_integral && !rounds,
                (true, true) if to == from => !rounds,
                (true, true) if to.bits() < from.bits() => rounds && !is_integral,
                (true, true) => !is_integral && (to.bits() > from.bits()) != rounds,
            }
        }
        "fma" | "mad" => {
            let needs = s.types.first().is_some_and(|&t| is_float(t));
            let rounds = ["rn", "rz", "rm", "rp"].iter().any(|m| s.has(m));
            !needs || (rounds && !(s.has("sat") && s.has("relu")))
        }
        "min" | "max" => s.has("abs") == s.has("xorsign") || s.operands.len() == 4,
        "lop3" => !s.has("xor"),
        _ => true,
    }
}

/// The first lines of a text for a target.
#[must_use]
pub fn header(arch: u32) -> String {
    format!(".version 8.7\n.target sm_{arch}\n.address_size 64\n")
}

/// The family of a spelling.
fn family(s: &Spelling) -> &'static str {
    if s.has("approx") || s.has("full") {
        return "approximate";
    }
    match s.opcode {
        "cvt" => "convert",
        "set" | "setp" | "selp" | "slct" | "testp" => "compare",
        "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shf" | "shl" | "shr" | "prmt" => "logic",
        _ if s.types.first().is_some_and(|t| t.class() == Class::Float) => "float",
        _ => "integer",
    }
}

/// Bits of the register of a type: nothing narrower than 16 has one, and 8-bit integers are tried in wider
/// ones.
fn register_bits(bits: u32) -> u32 {
    match bits {
        ..=8 => 32,
        other => other,
    }
}

/// What an operand position reads.
struct Read {
    ty: Type,
    bits: u32,
    is_predicate: bool,
}

fn case(s: &Spelling, immediate: Option<u32>, scale: Scale) -> Option<Case> {
    let name = immediate.map_or_else(|| s.to_string(), |v| format!("{s} {v:#x}"));
    let (mut reads, mut writes): (Vec<Read>, Vec<(Type, u32)>) = (Vec::new(), Vec::new());
    let (mut declared, mut loaded, mut stored, mut operands) =
        (String::new(), String::new(), String::new(), Vec::new());
    let read = |reads: &mut Vec<Read>, ty: Type, bits: u32| {
        reads.push(Read { ty, bits: register_bits(bits), is_predicate: false });
        format!("%x{}", reads.len() - 1)
    };
    let is_carry = s.has("cc") || matches!(s.opcode, "addc" | "subc" | "madc");
    for (at, operand) in s.operands.iter().enumerate() {
        match *operand {
            Operand::Register { ty, bits, is_written: true } => {
                writes.push((ty, register_bits(bits)));
                operands.push(format!("%y{}", writes.len() - 1));
            }
            Operand::Register { ty, bits, is_written: false } => operands.push(read(&mut reads, ty, bits)),
            Operand::Predicate { is_written: true } => {
                writes.push((Type::Pred, 32));
                operands.push(format!("%q{}", writes.len() - 1));
            }
            Operand::Predicate { is_written: false } => {
                reads.push(Read { ty: Type::U32, bits: 32, is_predicate: true });
                operands.push(format!("%p{}", reads.len() - 1));
            }
            // Of scalar halves there is one result.
            Operand::PredicatePair if s.types.iter().any(|t| matches!(t, Type::F16 | Type::Bf16)) => {
                writes.push((Type::Pred, 32));
                operands.push(format!("%q{}", writes.len() - 1));
            }
            Operand::PredicatePair => {
                writes.extend([(Type::Pred, 32), (Type::Pred, 32)]);
                operands.push(format!("%q{}|%q{}", writes.len() - 2, writes.len() - 1));
            }
            Operand::Immediate => operands.push(immediate?.to_string()),
            Operand::Free if s.opcode == "lop3" => {
                writes.extend([(Type::B32, 32), (Type::Pred, 32)]);
                operands.push(format!("%y{}|%q{}", writes.len() - 2, writes.len() - 1));
            }
            // The narrow packed formats of 16 bits; those of 8 have no register that can be loaded.
            Operand::Free if s.opcode == "cvt" => {
                let ty = *s.types.get(usize::from(at > 0))?;
                if ty.bits() != 16 {
                    return None;
                }
                if at == 0 {
                    writes.push((ty, 16));
                    operands.push(format!("%y{}", writes.len() - 1));
                } else {
                    operands.push(read(&mut reads, ty, 16));
                }
            }
            Operand::Vector { .. }
            | Operand::Address
            | Operand::Label
            | Operand::Registers
            | Operand::Free => return None,
        }
    }
    // Carries in come from an addition before, carries out go to one behind.
    let (mut before, mut behind) = (String::new(), String::new());
    if is_carry {
        if s.opcode.ends_with('c') && s.opcode != "addcc" {
            let carry = read(&mut reads, Type::U32, 32);
            let add =
                if s.opcode == "subc" { "sub.cc.u32 %c0, 0, %c1" } else { "add.cc.u32 %c0, %c1, 0xffffffff" };
            before = format!("and.b32 %c1, {carry}, 1; {add};\n");
        }
        if s.has("cc") {
            writes.push((Type::U32, 32));
            let out = if s.opcode.starts_with("sub") { "subc" } else { "addc" };
            behind = format!("{out}.u32 %y{}, 0, 0;\n", writes.len() - 1);
        }
        declared += ".reg .b32 %c0, %c1;\n";
    }
    let mut widths = Vec::new();
    for (i, r) in reads.iter().enumerate() {
        declared += &format!(".reg .b{} %x{i};\n", r.bits);
        loaded += &format!("ld.global.b{} %x{i}, [%a{i}];\n", r.bits);
        if r.is_predicate {
            declared += &format!(".reg .pred %p{i}; .reg .b32 %m{i};\n");
            loaded += &format!("and.b32 %m{i}, %x{i}, 1; setp.ne.u32 %p{i}, %m{i}, 0;\n");
        }
        widths.push((r.bits / 8) as usize);
    }
    for (i, &(ty, bits)) in writes.iter().enumerate() {
        declared += &format!(".reg .b{bits} %y{i};\n");
        if ty == Type::Pred {
            declared += &format!(".reg .pred %q{i};\n");
            stored += &format!("selp.b32 %y{i}, 1, 0, %q{i};\n");
        }
        stored += &format!("st.global.b{bits} [%a{}], %y{i};\n", reads.len() + i);
        widths.push((bits / 8) as usize);
    }
    let body = format!(
        "{}{declared}{loaded}{before}{s} {};\n{behind}{stored}ret;\n}}",
        prologue(&widths),
        operands.join(", ")
    );
    let results = count(s, &reads, scale);
    let family = family(s);
    let judge = match family {
        "approximate" => Judge::Approximate(s.to_string(), *s.types.first()?),
        _ => Judge::Bits,
    };
    let fill = {
        let (s, name) = (s.clone(), name.clone());
        let reads: Vec<(Type, u32, bool)> = reads.iter().map(|r| (r.ty, r.bits, r.is_predicate)).collect();
        Box::new(move || fill(&s, &name, &reads, &writes, results))
    };
    let case = Case {
        family,
        instruction: name,
        body,
        variables: String::new(),
        blocks: (results / 256) as u32,
        threads: 256,
        fill,
        judge,
    };
    // What the interpreter's verifier refuses is no instruction.
    hlo_ptx::lower::module(&(header(100).replace("sm_100", "sm_100a") + &case.text("k"))).ok()?;
    Some(case)
}

/// How many results: every value of a narrow operand.
fn count(s: &Spelling, reads: &[Read], scale: Scale) -> usize {
    let narrow = reads.len() == 1 && reads[0].ty.bits() <= 16;
    let wide = if s.opcode == "cvt" || s.has("approx") { 2 } else { 1 };
    if narrow { scale.results.min(1 << 16) } else { scale.results * wide }.next_multiple_of(256)
}

fn fill(
    s: &Spelling,
    name: &str,
    reads: &[(Type, u32, bool)],
    writes: &[(Type, u32)],
    results: usize,
) -> Vec<Array> {
    let mut random = Random::of(name);
    let types: Vec<Type> = reads.iter().map(|r| r.0).collect();
    let mut values = columns(&types, results, &mut random);
    for (i, &(ty, bits, is_predicate)) in reads.iter().enumerate() {
        for v in &mut values[i] {
            if is_predicate {
                *v = random.bits() & 0xFFFF_FFFF;
            } else if ty.bits() < bits {
                // The upper bits of a wider register take no part.
                *v |= random.bits() << ty.bits();
            }
        }
    }
    // Positions, lengths and amounts of shifts: around the widths.
    let small = |random: &mut Random| match random.below(4) {
        0 => random.below(256),
        1 => random.bits() & 0xFFFF_FFFF,
        _ => random.below(70),
    };
    let amounts: &[usize] = match s.opcode {
        "shl" | "shr" => &[1],
        "shf" => &[2],
        "bfe" => &[1, 2],
        "bfi" => &[2, 3],
        "szext" => &[1],
        "bmsk" => &[0, 1],
        _ => &[],
    };
    for &i in amounts {
        for v in &mut values[i] {
            *v = match s.opcode {
                // The ISA: positions and lengths are 0 to 255.
                "bfe" | "bfi" => small(&mut random) & 0xFF,
                _ => small(&mut random),
            };
        }
    }
    if s.opcode == "fns" {
        values[1].iter_mut().for_each(|v| *v &= 31);
        for v in &mut values[2] {
            // -20 to 39.
            *v = random.below(60).wrapping_sub(20) & 0xFFFF_FFFF;
        }
    }
    if matches!(s.opcode, "div" | "rem") && s.types[0].class() != Class::Float {
        // The ISA leaves division by zero open, and of the smallest number by -1.
        let (bits, signed) = (s.types[0].bits(), s.types[0].is_signed());
        let (mask, least) = (u64::MAX >> (64 - bits), 1_u64 << (bits - 1));
        let [dividends, divisors, ..] = &mut values[..] else { return Vec::new() };
        for (a, b) in dividends.iter().zip(divisors) {
            let is_open = signed && a & mask == least && *b & mask == mask;
            if *b & mask == 0 || is_open {
                *b = 3;
            }
        }
    }
    let mut arrays = Vec::new();
    for (i, &(ty, bits, _)) in reads.iter().enumerate() {
        let width = (bits / 8) as usize;
        arrays.push(Array::input(
            ["a", "b", "c", "d", "e", "f"][i.min(5)],
            ty,
            width,
            to_bytes(&values[i], width),
        ));
    }
    for (i, &(ty, bits)) in writes.iter().enumerate() {
        arrays.push(Array::output(["y", "z", "w"][i.min(2)], ty, (bits / 8) as usize, results));
    }
    arrays
}
