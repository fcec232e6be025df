//! Elementary functions one unit in the last place away from zero or towards it, which the table of opcodes
//! grants every engine. Zeros, infinities and NaNs stay, and no finite result becomes one of them: the next
//! number of a float is the next integer of its bits.

use hlo::attrs::Direction;
use hlo::opcode::Numeric;
use hlo::{InstrId, Module, Opcode};
use hlo_opt::passes::edit::{Edit, each, folds};
use hlo_opt::passes::facts::pattern_type;
use hlo_opt::passes::{Fuel, Pass};

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ulp {
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
}

impl Pass for Ulp {
    fn name(&self) -> &str {
        match self {
            Ulp::Up => "ulp-up",
            Ulp::Down => "ulp-down",
        }
    }

    fn doc(&self) -> &str {
        match self {
            Ulp::Up => "gives elementary functions one unit in the last place too large",
            Ulp::Down => "gives elementary functions one unit in the last place too small",
        }
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let folds = folds(module);
        each(module, fuel, |e| if folds.contains(&e.at().parent()) { None } else { off_by_one(e, *self) })
    }
}

fn off_by_one(e: &mut Edit<'_>, way: Ulp) -> Option<InstrId> {
    let ty = e.array(e.id())?.element_type;
    let bits = pattern_type(ty)?;
    if !e.at().opcode.is_elementwise() || !matches!(e.at().opcode.numeric(ty), Numeric::Ulp(_)) {
        return None;
    }
    let operands = e.at().operands().to_vec();
    let value = e.again(&operands)?;
    let (one, zero) = (e.scalar_bits(bits, 1), e.scalar_bits(ty, 0));
    let (one, zero) = (e.fill(one, value)?, e.fill(zero, value)?);
    let opcode = match way {
        Ulp::Up => Opcode::Add,
        Ulp::Down => Opcode::Subtract,
    };
    let raw = e.bits_as(value, bits)?;
    let moved = e.binary(opcode, raw, one)?;
    let moved = e.bits_as(moved, ty)?;
    // Neither before nor after may it be anything but a finite number other than 0.
    let mut sure = None;
    for x in [value, moved] {
        let finite = e.unary(Opcode::IsFinite, x)?;
        let not_zero = e.compare(Direction::Ne, x, zero)?;
        let both = e.binary(Opcode::And, finite, not_zero)?;
        sure = Some(match sure {
            None => both,
            Some(s) => e.binary(Opcode::And, s, both)?,
        });
    }
    e.select(sure?, moved, value)
}
