//! Every form of the table, written out with random optional modifiers and operands: it verifies, and runs or
//! stops with a report. What the table accepts and lowering does not know would show here.

use crate::table::{Form, What, all_forms};
use crate::types::Type;
use crate::{Launch, Memory, Options, launch, lower};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn register(bits: u32, n: usize) -> String {
    let letter = match bits {
        ..=16 => 'h',
        32 => 'r',
        64 => 'd',
        _ => 'q',
    };
    format!("%{letter}{n}")
}

/// An instruction of a form, or `None` where its operands need more than this knows.
fn write(opcode: &str, form: &Form, random: &mut Random) -> Option<String> {
    let (mut mods, mut types): (Vec<&str>, Vec<Type>) = (Vec::new(), Vec::new());
    for s in &form.slots {
        if s.optional && random.below(2) == 0 {
            continue;
        }
        let name = s.names[random.below(s.names.len())];
        if s.is_type {
            types.push(Type::from_name(name)?);
        }
        mods.push(name);
    }
    let vector = ["v2", "v4", "v8"].iter().zip([2, 4, 8]).find(|v| mods.contains(v.0)).map_or(1, |v| v.1);
    let ty = |i: u8| types.get(usize::from(i)).copied().unwrap_or(Type::B32);
    let list = |bits: u32, n: usize| {
        let all: Vec<String> = (0..n).map(|i| register(bits, i % 8)).collect();
        if n == 1 { all[0].clone() } else { format!("{{{}}}", all.join(", ")) }
    };
    let mut operands = Vec::new();
    for (at, k) in form.operands.iter().enumerate() {
        if k.optional {
            break;
        }
        let n = random.below(8);
        operands.push(match k.what {
            What::Destination(i) | What::Source(i) => register(ty(i).bits(), n),
            What::LooseDestination(i) | What::LooseSource(i) => register(ty(i).bits(), n),
            What::WideDestination(i) | What::WideSource(i) => register(2 * ty(i).bits(), n),
            What::VectorDestination(i) | What::VectorSource(i) => {
                if vector as u32 * ty(i).bits() > 256 {
                    return None;
                }
                list(ty(i).bits(), vector)
            }
            What::FixedDestination(t) | What::FixedSource(t) => register(t.bits(), n),
            What::Predicate | What::SourcePredicate => format!("%p{n}"),
            What::PredicatePair => format!("%p{n}|%p{}", (n + 1) % 8),
            What::Address => {
                let space = mods.iter().find_map(|m| super::space_of(m));
                let second = opcode == "cp" && at == 1;
                match space {
                    Some(crate::ir::Space::Shared) if !second => "[s+16]",
                    Some(crate::ir::Space::Local) => "[l+16]",
                    Some(crate::ir::Space::Const) => "[c+16]",
                    Some(crate::ir::Space::Param) if opcode != "st" => "[x]",
                    Some(crate::ir::Space::Param) => return None,
                    None if matches!(opcode, "mbarrier" | "ldmatrix" | "stmatrix") => "[s+16]",
                    _ => "[%x+16]",
                }
                .to_owned()
            }
            What::Label => "END".to_owned(),
            What::Immediate => match opcode {
                "cp" if mods.len() > 2 => "16",
                _ => "1",
            }
            .to_owned(),
            What::Registers => match opcode {
                "ldmatrix" | "stmatrix" => {
                    let n = if mods.contains(&"x4") {
                        4
                    } else if mods.contains(&"x2") {
                        2
                    } else {
                        1
                    };
                    list(32, n)
                }
                "atom" | "red" => list(ty(0).bits(), vector),
                _ => return None,
            },
            What::Free => match opcode {
                "mov" => register(ty(0).bits(), n),
                "cvta" => register(ty(0).bits(), n),
                "cvt" => "%h1".to_owned(),
                "lop3" | "shfl" | "match" | "elect" => "%r1|%p1".to_owned(),
                "mbarrier" => "%d1".to_owned(),
                "bar" | "barrier" => "%p1".to_owned(),
                "mapa" | "getctarank" => "%d1".to_owned(),
                _ => return None,
            },
        });
    }
    Some(format!(
        "{opcode}{} {};",
        mods.iter().map(|m| format!(".{m}")).collect::<String>(),
        operands.join(", ")
    ))
}

#[test]
fn every_form_verifies_and_runs() {
    let mut random = Random(5);
    let (mut verified, mut refused) = (0, std::collections::BTreeMap::new());
    for (opcode, form) in all_forms() {
        for _ in 0..24 {
            let Some(instruction) = write(opcode, form, &mut random) else { continue };
            let mut body = String::new();
            for n in 0..8 {
                // Small and extreme values: lane numbers, masks, ends of ranges.
                let pick = |r: &mut Random| match r.below(6) {
                    0 => r.next() % 33,
                    1 => u64::MAX,
                    2 => 1 << 63 | 1 << 31 | 1 << 15,
                    3 => 0x7FF0_0000_7F80_7C00,
                    _ => r.next(),
                };
                let v = [pick(&mut random), pick(&mut random), pick(&mut random)];
                body += &format!(
                    "mov.b16 %h{n}, {}; mov.b32 %r{n}, {}; mov.b64 %d{n}, {}; setp.ne.u32 %p{n}, %r{n}, {n};\n",
                    v[0] as u16, v[1] as u32, v[2]
                );
            }
            let text = format!(
                ".version 9.0\n.target sm_100a\n.address_size 64\n.const .align 16 .b8 c[256];\n.visible .entry k(.param .u64 x) {{\n\
                 .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b128 %q<8>; .reg .b64 %x;\n\
                 .shared .align 16 .b8 s[1024]; .local .align 16 .b8 l[256];\nld.param.u64 %x, [x];\n{body}{instruction}\nEND: ret;\n}}\n"
            );
            match lower::module(&text) {
                Ok(module) => {
                    verified += 1;
                    let mut memory = Memory::with_limit(1 << 20);
                    let loaded = memory.load(module).unwrap();
                    let x = memory.upload("x", &[1; 1024]).unwrap();
                    let options = Options { fuel: 100_000, ..Options::default() };
                    let _ = launch(
                        &loaded,
                        "k",
                        &Launch::new([1, 1, 1], [64, 1, 1], 0, &[x]),
                        &mut memory,
                        &options,
                    );
                }
                Err(d) => {
                    refused.insert(instruction, d[0].message.clone());
                }
            }
        }
    }
    // Combinations that the ISA excludes and no form can: comparisons of bits, roundings of conversions,
    // `mad.sat`.
    refused.retain(|i, _| !["setp.", "set.", "cvt.", "mad."].iter().any(|o| i.starts_with(o)));
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(verified > 3000, "{verified}");
}
