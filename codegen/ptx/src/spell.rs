//! Every spelling of an instruction that the table has: each combination of modifiers, types and numbers of
//! operands.
//!
//! Whoever checks all instructions takes them from here. A spelling matches a form; the verifier may still
//! refuse it, because rules between modifiers (roundings of conversions, comparisons of bits) are lowering's.

use crate::table::{Form, What, forms_of};
use crate::types::Type;

/// What stands at an operand position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register of a type, or of twice its width.
    Register {
        /// The type of the instruction.
        ty: Type,
        /// Bits of the register, at least.
        bits: u32,
        /// The instruction writes it.
        is_written: bool,
    },
    /// As many registers of a type as the vector modifier says.
    Vector {
        /// The type of an element.
        ty: Type,
        /// The instruction writes them.
        is_written: bool,
    },
    /// A predicate.
    Predicate {
        /// The instruction writes it.
        is_written: bool,
    },
    /// `p|q`.
    PredicatePair,
    /// An address.
    Address,
    /// A label.
    Label,
    /// An integer literal.
    Immediate,
    /// A list of registers whose number is up to the instruction.
    Registers,
    /// What lowering alone knows.
    Free,
}

/// An instruction with its modifiers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spelling {
    /// `add`
    pub opcode: &'static str,
    /// `rn`, `ftz`, `f32`
    pub modifiers: Vec<&'static str>,
    /// The types among the modifiers.
    pub types: Vec<Type>,
    /// The operands.
    pub operands: Vec<Operand>,
}

impl Spelling {
    /// Whether it has a modifier.
    #[must_use]
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }
}

impl std::fmt::Display for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.opcode)?;
        self.modifiers.iter().try_for_each(|m| write!(f, ".{m}"))
    }
}

/// Every spelling of an opcode, in the order of the table. None: the table does not have it.
#[must_use]
pub fn spellings(opcode: &str) -> Vec<Spelling> {
    let mut all = Vec::new();
    let Some((opcode, forms)) = forms_of(opcode) else { return all };
    for form in forms {
        let mut heads: Vec<(Vec<&'static str>, Vec<Type>)> = vec![(Vec::new(), Vec::new())];
        for slot in &form.slots {
            let mut next = Vec::new();
            for (modifiers, types) in &heads {
                if slot.optional {
                    next.push((modifiers.clone(), types.clone()));
                }
                for name in &slot.names {
                    let (mut modifiers, mut types) = (modifiers.clone(), types.clone());
                    modifiers.push(name);
                    if slot.is_type {
                        types.extend(Type::from_name(name));
                    }
                    next.push((modifiers, types));
                }
            }
            heads = next;
        }
        let least = form.operands.iter().filter(|k| !k.optional).count();
        for (modifiers, types) in heads {
            for count in least..=form.operands.len() {
                let operands = operands(form, count, &types);
                all.push(Spelling { opcode, modifiers: modifiers.clone(), types: types.clone(), operands });
            }
        }
    }
    all
}

fn operands(form: &Form, count: usize, types: &[Type]) -> Vec<Operand> {
    let ty = |i: u8| types.get(usize::from(i)).copied().unwrap_or(Type::B32);
    let register = |ty: Type, factor: u32, is_written: bool| Operand::Register {
        ty,
        bits: ty.bits() * factor,
        is_written,
    };
    let operand = |what: What| match what {
        What::Destination(i) | What::LooseDestination(i) => register(ty(i), 1, true),
        What::Source(i) | What::LooseSource(i) => register(ty(i), 1, false),
        What::WideDestination(i) => register(ty(i), 2, true),
        What::WideSource(i) => register(ty(i), 2, false),
        What::FixedDestination(t) => register(t, 1, true),
        What::FixedSource(t) => register(t, 1, false),
        What::VectorDestination(i) => Operand::Vector { ty: ty(i), is_written: true },
        What::VectorSource(i) => Operand::Vector { ty: ty(i), is_written: false },
        What::Predicate => Operand::Predicate { is_written: true },
        What::SourcePredicate => Operand::Predicate { is_written: false },
        What::PredicatePair => Operand::PredicatePair,
        What::Address => Operand::Address,
        What::Label => Operand::Label,
        What::Immediate => Operand::Immediate,
        What::Registers => Operand::Registers,
        What::Free => Operand::Free,
    };
    form.operands.iter().take(count).map(|k| operand(k.what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_few() {
        let all: Vec<String> = spellings("copysign").iter().map(ToString::to_string).collect();
        assert_eq!(all, ["copysign.f32", "copysign.f64"]);
        let sqrt: Vec<String> = spellings("sqrt").iter().map(ToString::to_string).collect();
        // approx with and without ftz; four roundings with and without ftz; four of f64.
        assert_eq!(sqrt.len(), 2 + 8 + 4);
        assert!(sqrt.contains(&"sqrt.rm.ftz.f32".to_owned()));
        let wide = &spellings("mul").into_iter().find(|s| s.to_string() == "mul.wide.s32").unwrap();
        assert_eq!(wide.operands[0], Operand::Register { ty: Type::S32, bits: 64, is_written: true });
        assert!(spellings("frobnicate").is_empty());
    }
}
