//! What a kernel computes: an instruction, or the computation of a fusion, as an expression whose parameters
//! are arrays in memory.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_opt::expr::{Bound, Expr, array_leaves, leaf_root};

/// An array leaf of the result.
#[derive(Clone, Debug)]
pub(crate) struct Root<'m> {
    /// The instruction that computes it, looking through tuples.
    pub(crate) instr: InstrId,
    /// Its leaf.
    pub(crate) leaf: u32,
    /// The array that it is stored to.
    pub(crate) array: u32,
    /// Its shape.
    pub(crate) shape: &'m ArrayShape,
}

/// An expression, and which of its values are stored.
pub(crate) struct Subject<'m> {
    /// Operands are bound to arrays: those of a fusion by the parameters of its computation.
    pub(crate) expr: Expr<'m>,
    /// The results.
    pub(crate) roots: Vec<Root<'m>>,
    /// The number of arrays that are arguments: operands, then results.
    pub(crate) arrays: u32,
}

impl<'m> Subject<'m> {
    /// Of an instruction. Errors: a fusion of nothing.
    pub(crate) fn new(module: &'m Module, id: InstrId) -> Result<Self, Unsupported> {
        let mut expr = Expr::new(module);
        let instr = module.instr(id);
        let mut argument = 0;
        let mut bind = |expr: &mut Expr<'m>, of: InstrId| {
            for (leaf, shape) in array_leaves(&module.instr(of).shape).enumerate() {
                let array = expr.array(shape, argument);
                expr.bind(of, leaf as u32, Bound::Array(array));
                argument += 1;
            }
        };
        let root = if instr.opcode == Opcode::Fusion {
            let computation = instr.attrs.computation(AttrKey::Calls);
            let computation =
                computation.ok_or_else(|| Unsupported::new(module, id, "a fusion of nothing"))?;
            for &p in module.computation(computation).parameters().iter().flatten() {
                bind(&mut expr, p);
            }
            module.root(computation)
        } else {
            for &operand in instr.operands() {
                bind(&mut expr, operand);
            }
            id
        };
        let mut roots = Vec::new();
        for (leaf, shape) in array_leaves(&instr.shape).enumerate() {
            let (instr, own) = leaf_root(module, root, leaf as u32);
            let array = expr.array(shape, argument);
            argument += 1;
            roots.push(Root { instr, leaf: own, array, shape });
        }
        Ok(Self { expr, roots, arrays: argument })
    }
}

impl Subject<'_> {
    /// The number of arguments that are operands: the first ones.
    pub(crate) fn reads(&self) -> u32 {
        self.arrays - self.roots.len() as u32
    }
}
