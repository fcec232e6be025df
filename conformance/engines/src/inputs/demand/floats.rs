//! What is asked of numbers: the domains of functions, the constants that they are compared with, and both
//! through arithmetic.

use hlo::{ArrayShape, InstrId, Instruction, Opcode};

use super::{Cover, Demand, Walk};

impl Walk<'_> {
    /// A use of a float operand that is only defined on a range.
    pub(super) fn domain(&mut self, i: &Instruction, operand: usize, low: f64, high: f64) {
        let float = self.array(i, operand).is_some_and(|a| a.element_type.is_float());
        if float {
            self.ask_operand(i, operand, &Demand::real(low, high));
        }
    }

    /// A function of a float that is defined for all numbers from the least on: its domain, and what its result
    /// should cover.
    pub(super) fn upwards(&mut self, id: InstrId, i: &Instruction, low: f64) {
        let float = self.array(i, 0).is_some_and(|a| a.element_type.is_float());
        if float {
            self.covered(id, i);
            self.ask_operand(i, 0, &Demand::upwards(low));
        }
    }

    /// The value of an operand that is a broadcast scalar constant.
    pub(super) fn constant(&self, i: &Instruction, operand: usize) -> Option<f64> {
        let mut at = *i.operands().get(operand)?;
        // A constant is never behind more than a few moves.
        for _ in 0..8 {
            let c = self.module.instr(at);
            if let Some(hlo::ConstantValue::Given(literal)) = c.attrs.constant_value() {
                let array = literal.as_array()?;
                return hlo::with_buffer!(&*array.buffer, v => match v.as_slice() {
                    [x] => Some(hlo_execution::element::Number::parts(*x).0.value()),
                    _ => None,
                });
            }
            let moves =
                matches!(c.opcode, Opcode::Broadcast | Opcode::Convert | Opcode::Copy | Opcode::Reshape);
            at = *c.operands().first().filter(|_| moves)?;
        }
        None
    }

    /// Passes a range of floats back through sums with, and products and quotients by, constants; a sum of
    /// two values that must not be negative asks the same of both.
    pub(super) fn arithmetic(&mut self, id: InstrId, i: &Instruction) {
        let float = i.shape.as_array().is_some_and(|a| a.element_type.is_float());
        let demand = self.demands[id.index()].first().filter(|_| float);
        let Some((real, domain)) = demand.and_then(|d| d.real.zip(d.domain)) else { return };
        let binary = i.opcode != Opcode::Negate;
        let constants = [self.constant(i, 0), self.constant(i, 1).filter(|_| binary)];
        for (n, other) in [(0, constants[1]), (1, constants[0])] {
            let before = |(low, high): (f64, f64)| -> Option<(f64, f64)> {
                let (a, b) = match (i.opcode, other) {
                    (Opcode::Negate, _) if n == 0 => (-high, -low),
                    (Opcode::Add, Some(c)) => (low - c, high - c),
                    (Opcode::Add, None) if real.0 >= 0.0 && constants[n].is_none() => (0.0, high / 2.0),
                    (Opcode::Subtract, Some(c)) if n == 0 => (low + c, high + c),
                    (Opcode::Subtract, Some(c)) => (c - high, c - low),
                    (Opcode::Multiply, Some(c)) => (low / c, high / c),
                    (Opcode::Divide, Some(c)) if n == 0 => (low * c, high * c),
                    _ => return None,
                };
                Some(if a <= b { (a, b) } else { (b, a) })
            };
            let Some(range) = before(real).filter(|(a, b)| a.is_finite() && b.is_finite() && a < b) else {
                continue;
            };
            // The end of an unbounded domain is the greatest number.
            let ends = |(a, b): (f64, f64)| (a.max(-f64::MAX), b.min(f64::MAX));
            let domain = before(domain).map(ends).filter(|(a, b)| a < b);
            self.ask_operand(i, n, &Demand { domain, ..Demand::real(range.0, range.1) });
        }
    }

    /// The different finite numbers of an operand that is a constant, at most four of them.
    fn constants(&self, i: &Instruction, operand: usize) -> Option<Vec<f64>> {
        if let Some(c) = self.constant(i, operand) {
            return Some(vec![c]);
        }
        let mut at = *i.operands().get(operand)?;
        // A constant is never behind more than a few moves.
        for _ in 0..8 {
            let c = self.module.instr(at);
            if let Some(hlo::ConstantValue::Given(literal)) = c.attrs.constant_value() {
                let buffer = &*literal.as_array()?.buffer;
                let mut all: Vec<f64> = hlo::with_buffer!(buffer, v => v
                    .iter()
                    .map(|&x| hlo_execution::element::Number::parts(x).0.value())
                    .collect());
                all.sort_by(f64::total_cmp);
                all.dedup();
                let picked = |n: usize| all.get(n * all.len().saturating_sub(1) / 3).copied();
                let few = if all.len() <= 4 { all.clone() } else { (0..4).filter_map(picked).collect() };
                return Some(few);
            }
            let moves = matches!(
                c.opcode,
                Opcode::Broadcast | Opcode::Convert | Opcode::Copy | Opcode::Reshape | Opcode::Transpose
            );
            at = *c.operands().first().filter(|_| moves)?;
        }
        None
    }

    /// Whether an array is of numbers that reach what they are compared with: floats, and integers where no
    /// loop counts them.
    fn reaches(&self, array: Option<&ArrayShape>) -> bool {
        array.is_some_and(|a| a.element_type.is_float() || a.element_type.is_integer() && !self.loops)
    }

    /// Numbers that are compared: on both sides of a constant and equal to it, or some floats equal to those
    /// that they are compared with.
    pub(super) fn comparison(&mut self, i: &Instruction) {
        let [a, b] = i.operands() else { return };
        let operand = self.array(i, 0);
        if a == b || !self.reaches(operand) {
            return;
        }
        let float = operand.is_some_and(|a| a.element_type.is_float());
        let constants = [self.constants(i, 0), self.constants(i, 1)];
        let ranges = [a, b].map(|o| self.demands[o.index()].first().and_then(|d| d.real));
        for (n, other) in [(0, 1), (1, 0)] {
            let cover = match (&constants[n], &constants[other]) {
                (Some(_), _) => continue,
                (None, Some(c)) => Cover::around(c.iter().copied().filter(|c| c.is_finite()).collect()),
                (None, None) if !float => continue,
                (None, None) => {
                    let ranges = ranges[other].into_iter().collect();
                    Cover { ranges, points: Vec::new(), ties: true }
                }
            };
            self.ask_operand(i, n, &Demand::cover(cover));
        }
    }

    /// Numbers that are cut off at constants: on both sides of those that numbers in [-1, 1) are not.
    pub(super) fn cut_off(&mut self, i: &Instruction, operand: usize, bounds: &[usize]) {
        if !self.reaches(self.array(i, operand)) || self.constants(i, operand).is_some() {
            return;
        }
        let all = bounds.iter().filter_map(|&b| self.constants(i, b)).flatten();
        let all: Vec<f64> = all.filter(|c| c.is_finite()).collect();
        if all.iter().all(|c| c.abs() < 1.0) {
            return;
        }
        let ranges = Cover::around(all).ranges;
        self.ask_operand(i, operand, &Demand::cover(Cover { ranges, ..Cover::default() }));
    }

    /// Passes what numbers should cover back through elementwise operations.
    pub(super) fn covered(&mut self, id: InstrId, i: &Instruction) {
        let cover = match self.demands[id.index()].first() {
            Some(d) if self.reaches(i.shape.as_array()) && !d.cover.is_empty() => d.cover.clone(),
            Some(_) | None => return,
        };
        if i.opcode == Opcode::Clamp {
            self.ask_operand(i, 1, &Demand::cover(cover));
            return;
        }
        let binary = i.operands().len() == 2;
        let constants = [self.constant(i, 0), self.constant(i, 1).filter(|_| binary)];
        match constants {
            [None, None] => {
                for (n, cover) in cover.operands(i.opcode).unwrap_or_default().into_iter().enumerate() {
                    self.ask_operand(i, n, &Demand::cover(cover));
                }
            }
            [Some(c), _] if binary => {
                self.ask_operand(i, 1, &Demand::cover(cover.beside(i.opcode, 1, c)));
            }
            [_, Some(c)] => self.ask_operand(i, 0, &Demand::cover(cover.beside(i.opcode, 0, c))),
            [Some(_), None] => {}
        }
    }
}
