//! `bitcast`, which reads memory in the order that layouts say: transpositions and reshapes to that order and
//! back.

use hlo::memory_order::{self, Step};
use hlo::{ArrayShape, Dims, ElementType, Instruction};

use super::cx::{Export, Exporter, Leaves};
use crate::ir::ValueId;

impl Exporter<'_> {
    pub(super) fn bitcast(&mut self, i: &Instruction) -> Export<Leaves> {
        let x = self.operand(i, 0)?;
        let (Some(from), Some(to)) = (self.operand_shape(i, 0).as_array(), i.shape.as_array()) else {
            return self.refuse("is not of an array");
        };
        if from.same_dims(to) && from.layout == to.layout {
            return Ok([x].into());
        }
        if from.is_dynamic() || to.is_dynamic() {
            return self.refuse("is of run-time sizes, whose order in memory StableHLO cannot say");
        }
        let element = from.element_type;
        if element != to.element_type && element.bits() != to.element_type.bits() {
            return self.refuse("changes the width of elements: StableHLO has no order in memory");
        }
        let (source, source_shapes) = self.steps(from)?;
        let (target, target_shapes) = self.steps(to)?;
        let elements = |shapes: &[Dims]| -> i64 { shapes.last().map_or(1, |d| d.iter().product()) };
        if elements(&source_shapes) != elements(&target_shapes) {
            return self.refuse("is between layouts of different padding");
        }
        let mut value = x;
        for (step, after) in source.iter().zip(&source_shapes[1..]) {
            value = self.step(value, step, element, after)?;
        }
        let (memory, physical) = (&source_shapes[source.len()], &target_shapes[target.len()]);
        if memory != physical {
            let ty = self.tensor(element, physical)?;
            value = self.one("stablehlo.reshape", &[value], ty, &[])?;
        }
        for (n, step) in target.iter().enumerate().rev() {
            value = self.undo(value, step, element, &target_shapes[n])?;
        }
        if element != to.element_type {
            if [element, to.element_type].contains(&ElementType::Pred) {
                return self.refuse("takes predicates for bytes");
            }
            let ty = self.tensor(to.element_type, &to.dims)?;
            value = self.one("stablehlo.bitcast_convert", &[value], ty, &[])?;
        }
        Ok([value].into())
    }

    fn steps(&self, array: &ArrayShape) -> Export<(Vec<Step>, Vec<Dims>)> {
        match memory_order::steps(array.layout.as_deref(), &array.dims) {
            Ok(steps) => Ok(steps),
            Err(_) => self.refuse("is of a layout that gives no order in memory"),
        }
    }

    fn transposed(
        &mut self,
        x: ValueId,
        order: &[usize],
        element: ElementType,
        dims: &[i64],
    ) -> Export<ValueId> {
        if order.iter().copied().eq(0..order.len()) {
            return Ok(x);
        }
        let ty = self.tensor(element, dims)?;
        let permutation: Vec<i64> = order.iter().map(|&d| d as i64).collect();
        let permutation = self.ints(&permutation);
        self.one("stablehlo.transpose", &[x], ty, &[("permutation", permutation)])
    }

    /// A step to memory.
    fn step(&mut self, x: ValueId, step: &Step, element: ElementType, after: &Dims) -> Export<ValueId> {
        match step {
            Step::Permute(order) => self.transposed(x, order, element, after),
            Step::Reshape(_) => {
                let ty = self.tensor(element, after)?;
                self.one("stablehlo.reshape", &[x], ty, &[])
            }
            Step::Pad(_) => self.refuse("is of a layout that pads"),
        }
    }

    /// A step from memory, to an array of these dimensions.
    fn undo(&mut self, x: ValueId, step: &Step, element: ElementType, before: &Dims) -> Export<ValueId> {
        match step {
            Step::Permute(order) => {
                let mut inverse = vec![0; order.len()];
                order.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
                self.transposed(x, &inverse, element, before)
            }
            Step::Reshape(_) => {
                let ty = self.tensor(element, before)?;
                self.one("stablehlo.reshape", &[x], ty, &[])
            }
            Step::Pad(_) => self.refuse("is of a layout that pads"),
        }
    }
}
