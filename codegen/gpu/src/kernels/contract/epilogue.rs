//! Epilogues of contractions: what is stored for each element of the result, itself or a fused expression of
//! it.

use hlo::InstrId;
use hlo::opcode::NumericRow;
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, Result, Value};
use hlo_opt::expr::index::{Affine, Index, Space};
use hlo_opt::expr::{Expr, Node, Op};

use crate::code::Code;
use crate::kernels::loops::Output;
use crate::subject::Subject;

/// Variables of the expression: batch, row, and group of contiguous columns.
const VARS: [u32; 3] = [0, 1, 2];

/// With more operations per element, code is long.
const LONG: usize = 24;

/// The epilogue of some contiguous columns of a row of the result.
pub(crate) struct Epilogue<'m> {
    expr: Expr<'m>,
    outputs: Vec<Output>,
    /// The number of columns.
    pub(crate) width: u32,
}

/// The index of the result of a batch, a row, and a column.
pub(crate) type ResultIndex<'a> = &'a dyn Fn(&mut Space, [&Affine; 3]) -> Index;

impl<'m> Epilogue<'m> {
    /// For results of `[batch, rows, columns]`, whose columns are a multiple of the width.
    pub(crate) fn new(
        subject: &Subject<'m>,
        hero: InstrId,
        [batch, rows, columns]: [i64; 3],
        width: u32,
        index: ResultIndex<'_>,
    ) -> std::result::Result<Self, Unsupported> {
        let mut expr = subject.expr.clone();
        let shape = expr.module.instr(hero).shape.expect_array();
        let batch = expr.space.var(VARS[0], batch);
        let row = expr.space.var(VARS[1], rows);
        let group = expr.space.var(VARS[2], columns / i64::from(width));
        let mut outputs = Vec::new();
        for c in 0..width {
            let column = group.times(i64::from(width)).plus(i64::from(c));
            let index = index(&mut expr.space, [&batch, &row, &column]);
            let sum = expr.given(c, shape.element_type);
            expr.bind_at(hero, 0, sum, &index);
            for root in &subject.roots {
                let node = expr.node(root.instr, root.leaf, &index)?;
                let at = expr.space.linear(&index, &root.shape.dims);
                outputs.push(Output { node, array: root.array, at });
            }
        }
        Ok(Self { expr, outputs, width })
    }

    /// Whether it is so long that it is emitted once, in a loop over a row of a thread's elements.
    pub(crate) fn is_long(&self) -> bool {
        let module = self.expr.module;
        let cost = |node: &Node| match &node.op {
            Op::Elementwise { instr, .. } => match module.instr(*instr).opcode.numeric_row() {
                NumericRow::Elementary(_) => LONG,
                _ => 1,
            },
            Op::Load { .. } | Op::Given { .. } => 0,
            _ => 1,
        };
        self.expr.nodes.iter().map(cost).sum::<usize>() > LONG * self.width as usize / 2
    }

    /// Stores the epilogue of elements of the result, one per column. `at`: batch, row and group of columns,
    /// each an `i32` or `i64`.
    pub(crate) fn store<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        at: [Value<'ctx>; 3],
        elements: &[Val<'ctx>],
    ) -> Result<()> {
        let mut code = Code::new(e, &self.expr, arguments);
        for (var, value) in VARS.into_iter().zip(at) {
            code.set_var(var, value);
        }
        for (c, element) in (0..).zip(elements) {
            code.give(c, *element);
        }
        let mut values = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            values.push(code.value(output.node)?);
        }
        for output in &self.outputs {
            code.address(output.array, &output.at)?;
        }
        for (output, value) in self.outputs.iter().zip(&values) {
            code.store(value, output.array, &output.at)?;
        }
        Ok(())
    }
}
