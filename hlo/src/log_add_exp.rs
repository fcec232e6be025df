//! `log(exp(a) + exp(b))` as frameworks write it: the applied computation of cumulative log-sum-exp.
//!
//! It is `select(d != d, a + b, max(a, b) + log1p(exp(-|d|)))` with `d = a - b`: infinities of one sign,
//! whose difference is NaN, and NaNs are added. In exact arithmetic it is associative and commutative, it is
//! monotone, and moves by no more than the operand that moves most, so that in any order and with any
//! brackets its rounding errors stay bounded. Compilers and the certified tolerance both rest on that.

use crate::attrs::Direction;
use crate::element_type::{ElementType, TypeClass};
use crate::ids::{ComputationId, InstrId};
use crate::module::Module;
use crate::opcode::Opcode;

/// The float that a computation of two scalars is this function of; `None` if it is another.
pub fn log_add_exp(module: &Module, computation: ComputationId) -> Option<ElementType> {
    let [Some(a), Some(b)] = *module.computation(computation).parameters() else { return None };
    let form = Form { module, a, b };
    let root = module.root(computation);
    let ty = module.instr(root).shape.as_array().filter(|s| s.dims.is_empty())?.element_type;
    let all_alike = module.instructions(computation).all(|id| {
        let shape = module.instr(id).shape.as_array();
        shape.is_some_and(|s| s.dims.is_empty() && [ty, ElementType::Pred].contains(&s.element_type))
    });
    (ty.class() == TypeClass::Float && all_alike && form.is_whole(root)).then_some(ty)
}

/// Whether a fold of windows by a computation may be taken in any order: log-sum-exp in types wide enough
/// that roundings in any order are bounded. Narrow floats stop growing long before their elements end, and
/// where depends on the order. What compilers do and what bounds allow for.
pub fn folds_in_any_order(module: &Module, computation: ComputationId) -> bool {
    matches!(log_add_exp(module, computation), Some(ElementType::F32 | ElementType::F64))
}

struct Form<'a> {
    module: &'a Module,
    a: InstrId,
    b: InstrId,
}

impl Form<'_> {
    fn operands<const N: usize>(&self, id: InstrId, opcode: Opcode) -> Option<[InstrId; N]> {
        let instr = self.module.instr(id);
        (instr.opcode == opcode).then(|| <[InstrId; N]>::try_from(instr.operands()).ok())?
    }

    /// An operation of both parameters, in either order.
    fn of_both(&self, id: InstrId, opcode: Opcode) -> bool {
        self.operands(id, opcode).is_some_and(|both| both == [self.a, self.b] || both == [self.b, self.a])
    }

    fn is_whole(&self, root: InstrId) -> bool {
        let Some([unordered, sum, regular]) = self.operands(root, Opcode::Select) else { return false };
        self.is_unordered(unordered) && self.of_both(sum, Opcode::Add) && self.is_regular(regular)
    }

    /// Whether the difference is not equal to itself.
    fn is_unordered(&self, id: InstrId) -> bool {
        self.operands(id, Opcode::Compare).is_some_and(|[x, y]| {
            let attrs = &self.module.instr(id).attrs;
            x == y
                && attrs.direction() == Some(&Direction::Ne)
                && !attrs.is_total_order()
                && self.of_both(x, Opcode::Subtract)
        })
    }

    fn is_regular(&self, id: InstrId) -> bool {
        let Some([x, y]) = self.operands(id, Opcode::Add) else { return false };
        [(x, y), (y, x)]
            .into_iter()
            .any(|(greater, rest)| self.of_both(greater, Opcode::Maximum) && self.is_rest(rest))
    }

    /// `log1p(exp(-|d|))`.
    fn is_rest(&self, id: InstrId) -> bool {
        let inner = |id: InstrId, opcode: Opcode| self.operands(id, opcode).map(|[x]| x);
        inner(id, Opcode::LogPlusOne)
            .and_then(|id| inner(id, Opcode::Exponential))
            .and_then(|id| inner(id, Opcode::Negate))
            .and_then(|id| inner(id, Opcode::Abs))
            .is_some_and(|d| self.of_both(d, Opcode::Subtract))
    }
}
