//! Custom calls with shape operands, as which JAX exports operations of unknown shapes.
//!
//! `stablehlo.dynamic_*` are operations whose attributes are operands (StableHLO's
//! `StablehloCanonicalizeDynamism`). In other calls `indices_of_shape_operands` lists the operands that are
//! the shapes of the results, in order; these are no arguments of the call.

use hlo::diag::codes;
use hlo::{InstrId, Shape};

use super::cx::{Convert, Converter};
use super::dynamic::{refines, sizes};
use crate::ir::{Attribute, OpId};

/// The attribute that lists the operands that are shapes of results.
const SHAPE_OPERANDS: &str = "indices_of_shape_operands";

impl Converter<'_> {
    /// A call whose target is `stablehlo.dynamic_*`.
    pub(super) fn dynamic_call(&mut self, op: OpId, name: &str) -> Convert<()> {
        match name {
            "reduce_window" => self.dynamic_reduce_window(op),
            "rng_bit_generator" => self.dynamic_rng_bit_generator(op),
            "top_k" => self.dynamic_top_k(op),
            "approx_top_k" => self.dynamic_approx_top_k(op),
            _ => self.unsupported(op, "no dynamic operation of this name has HLO"),
        }
    }

    /// `(inputs..., initial values..., window dimensions, window strides, base dilations, window dilations,
    /// padding)`
    fn dynamic_reduce_window(&mut self, op: OpId) -> Convert<()> {
        const PARTS: usize = 5;
        let operands = self.operands(op)?;
        let Some(arrays) = operands.len().checked_sub(PARTS).filter(|&n| n > 0 && n % 2 == 0) else {
            return self
                .structure(op, "has not as many initial values as inputs, and five parts of a window");
        };
        let parts: Convert<Vec<Vec<i64>>> =
            (arrays..operands.len()).map(|i| self.constant_operand(op, i)).collect();
        let parts = parts?;
        let rank = self.dims_of(operands[0]).len();
        if parts[0].len() != rank {
            return self.structure(op, &format!("has a window whose parts are not of {rank} dimensions"));
        }
        let forward = vec![0; rank];
        let window = [&parts[0], &parts[1], &parts[2], &parts[3], &forward].map(Vec::as_slice);
        let window = self.window_of(op, window, &parts[4])?;
        let &[reducer] = &self.called_computations(op)[..] else {
            return self.structure(op, "has not one reducer");
        };
        self.reduce_window_of(op, &operands[..arrays], window, reducer)
    }

    /// `(initial state, shape of the output)`
    fn dynamic_rng_bit_generator(&mut self, op: OpId) -> Convert<()> {
        let [state, _] = self.exactly(op)?;
        let mut shapes = self.result_shapes(op)?;
        let [_, output] = &mut shapes[..] else { return self.structure(op, "has not two results") };
        *output = self.sized(op, output, 1)?;
        self.random_bits(op, state, shapes)
    }

    /// `(operand, k)`
    fn dynamic_top_k(&mut self, op: OpId) -> Convert<()> {
        let [x, _] = self.exactly(op)?;
        let &[k] = &self.constant_operand(op, 1)?[..] else {
            return self.structure(op, "has a `k` that is no scalar");
        };
        self.top_k_of(op, x, k, true)
    }

    /// `(inputs..., initial values..., k, shapes of the results...)`, by the comparator that is called.
    fn dynamic_approx_top_k(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let count = operands.len() - self.shape_operands(op, operands.len())?.len();
        let Some(k) = count.checked_sub(1).filter(|&n| n > 0 && n % 2 == 0) else {
            return self.structure(op, "has not as many initial values as inputs, and a `k`");
        };
        let &[number] = &self.constant_operand(op, k)?[..] else {
            return self.structure(op, "has a `k` that is no scalar");
        };
        self.approx_top_k_of(op, &operands[..k / 2], Some(number))
    }

    /// The operands of a call that are the shapes of its results: the last ones, in order. Empty without the
    /// attribute.
    fn shape_operands(&self, op: OpId, operands: usize) -> Convert<Vec<usize>> {
        if self.m.attr(op, SHAPE_OPERANDS).is_none() {
            return Ok(Vec::new());
        }
        let (listed, results) = (self.ints(op, SHAPE_OPERANDS)?, self.m.op(op).results.len());
        let last: Vec<usize> = (operands.saturating_sub(results)..operands).collect();
        if listed.len() != results || !listed.iter().zip(&last).all(|(&l, &i)| l == i as i64) {
            let message =
                format!("has `{SHAPE_OPERANDS}` {listed:?}, which are not its last {results} operands");
            return self.structure(op, &message);
        }
        Ok(last)
    }

    /// Operands and results' shapes of a call, without the operands that are those shapes.
    pub(super) fn arguments_and_results(&mut self, op: OpId) -> Convert<(Vec<InstrId>, Vec<Shape>)> {
        let (mut operands, mut shapes) = (self.operands(op)?, self.result_shapes(op)?);
        let said = self.shape_operands(op, operands.len())?;
        for (shape, &index) in shapes.iter_mut().zip(&said) {
            *shape = self.sized(op, shape, index)?;
        }
        operands.truncate(operands.len() - said.len());
        Ok((operands, shapes))
    }

    /// The shape of a result whose sizes an operand says: they must fit the declared ones.
    fn sized(&self, op: OpId, declared: &Shape, operand: usize) -> Convert<Shape> {
        let said = self.constant_operand(op, operand)?;
        let Shape::Array(array) = declared else {
            return self.structure(op, "has a result with a shape operand that is no tensor");
        };
        if !refines(&said, &array.dims) {
            let message =
                format!("operand {operand} says {said:?}, the type of the result {}", sizes(&array.dims));
            return self.fail(codes::STABLEHLO_CONSTRAINT, op, message);
        }
        Ok(Shape::array(array.element_type, &said))
    }

    /// An integer of the dictionary that is a call's configuration.
    pub(super) fn configured(&self, op: OpId, key: &str) -> Option<i64> {
        let config = ["mhlo.backend_config", "backend_config"].into_iter().find_map(|config| {
            let Attribute::Dictionary(list) = self.attr(op, config)? else { return None };
            list.iter().find(|a| self.m.text(a.name) == key).map(|a| self.m.get_attribute(a.value))
        });
        match config {
            Some(Attribute::Integer { value, .. }) => i64::try_from(*value).ok(),
            _ => None,
        }
    }
}
