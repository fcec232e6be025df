//! Loop nests over elements: values computed at every index of a space, and reductions of them.

use hlo::{Attrs, Buffer, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_interp::columns::Register;
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{Expr, NodeId, array_leaves};
use hlo_opt::fusion::combine::Combine;
use hlo_opt::fusion::folds::Space;
use hlo_threads::cancel;

use super::code::{Arrays, Builder, Code, Columns, LANES, Number, Storage, copy, fill, spread};

/// Loop variables, outermost first: numbers and sizes.
pub(crate) type Variables = Vec<(u32, i64)>;

/// The index with one variable per dimension, numbered from `first`.
pub(crate) fn variables(expr: &mut Expr<'_>, dims: &[i64], first: u32) -> (Index, Variables) {
    let vars: Variables = (first..).zip(dims.iter().copied()).collect();
    let index = vars.iter().map(|&(number, size)| expr.space.var(number, size)).collect();
    (index, vars)
}

/// The number of points of the variables' space.
pub(crate) fn count(vars: &[(u32, i64)]) -> i64 {
    vars.iter().fold(1, |n, v| n.saturating_mul(v.1))
}

/// Sets variables to `n` consecutive points of their space in row-major order, from the point `first` on.
pub(crate) fn enter(code: &Code, columns: &mut Columns, vars: &[(u32, i64)], first: i64, n: usize) {
    let mut inner = 1i64;
    for &(var, size) in vars.iter().rev() {
        if let Some(column) = code.var(columns, var) {
            let (mut at, mut left) = (first / inner % size, inner - first % inner);
            for value in &mut column[..n] {
                *value = at;
                left -= 1;
                if left == 0 {
                    left = inner;
                    at = if at + 1 == size { 0 } else { at + 1 };
                }
            }
        }
        inner = inner.saturating_mul(size.max(1));
    }
}

/// Sets variables to one point of their space in all of the first `n` lanes.
fn enter_one(code: &Code, columns: &mut Columns, vars: &[(u32, i64)], point: i64, n: usize) {
    let mut rest = point;
    for &(var, size) in vars.iter().rev() {
        if let Some(column) = code.var(columns, var) {
            column[..n].fill(rest % size);
        }
        rest /= size.max(1);
    }
}

/// Values at every point of a space, and the offset at which each is stored.
#[derive(Debug)]
pub(crate) struct Nest {
    vars: Variables,
    code: Code,
    outputs: Vec<(Register, Number)>,
}

/// A consumer of values: which output, their offsets, and the values in the first lanes.
pub(crate) type Sink<'s> = dyn FnMut(usize, &[i64], &Buffer) + 's;

impl Nest {
    /// Of nodes and their offsets.
    pub(crate) fn new(
        expr: &Expr<'_>,
        vars: Variables,
        outputs: &[(NodeId, Affine)],
    ) -> Result<Self, Unsupported> {
        let mut builder = Builder::new(expr);
        let nodes: Vec<NodeId> = outputs.iter().map(|o| o.0).collect();
        let registers = builder.values(&nodes)?;
        let mut all = Vec::new();
        for (register, (_, at)) in registers.into_iter().zip(outputs) {
            all.push((register, builder.number(at)?));
        }
        Ok(Self { vars, code: builder.finish(), outputs: all })
    }

    /// An array leaf of an instruction, at all of its indices.
    pub(crate) fn of(
        expr: &mut Expr<'_>,
        instr: InstrId,
        leaf: u32,
        dims: &[i64],
    ) -> Result<Self, Unsupported> {
        let (index, vars) = variables(expr, dims, 0);
        let at = expr.space.linear(&index, dims);
        if dims.contains(&0) {
            return Ok(Self { vars, code: Code::default(), outputs: Vec::new() });
        }
        let node = expr.node(instr, leaf, &index)?;
        Self::new(expr, vars, &[(node, at)])
    }

    /// The number of points.
    pub(crate) fn count(&self) -> i64 {
        count(&self.vars)
    }

    /// Computes the values of some points.
    pub(crate) fn run(&self, range: std::ops::Range<i64>, arrays: Arrays<'_>, sink: &mut Sink<'_>) {
        if range.is_empty() {
            return;
        }
        let lanes = usize::try_from(range.end - range.start).unwrap_or(LANES).min(LANES);
        let mut columns = self.code.columns(lanes);
        let mut at = Vec::new();
        let mut first = range.start;
        while first < range.end {
            cancel::poll();
            let n = usize::try_from(range.end - first).unwrap_or(LANES).min(lanes);
            enter(&self.code, &mut columns, &self.vars, first, n);
            self.code.run(&mut columns, n, arrays);
            for (i, (register, number)) in self.outputs.iter().enumerate() {
                Code::number(&columns, number, n, &mut at);
                sink(i, &at, &columns.values[*register]);
            }
            first += n as i64;
        }
        self.code.give_back(columns);
    }

    /// All values of the only output, as an array of this type.
    pub(crate) fn array(&self, ty: ElementType, arrays: Arrays<'_>) -> Buffer {
        let mut values = Buffer::zeros(ty, usize::try_from(self.count()).unwrap_or(0));
        self.run(0..self.count(), arrays, &mut |_, at, computed| spread(&mut values, at, None, computed));
        values
    }

    /// The values of the only output in the order of points, and their offsets.
    pub(crate) fn elements(&self, ty: ElementType, arrays: Arrays<'_>) -> (Vec<i64>, Buffer) {
        let count = usize::try_from(self.count()).unwrap_or(0);
        let (mut at, mut values) = (Vec::with_capacity(count), Buffer::zeros(ty, count));
        self.run(0..self.count(), arrays, &mut |_, numbers, computed| {
            copy(computed, 0, &mut values, at.len(), numbers.len());
            at.extend_from_slice(numbers);
        });
        (at, values)
    }
}

/// A combiner, applied lane by lane.
#[derive(Debug)]
pub(crate) struct Combiner {
    code: Code,
    accumulators: Vec<Register>,
    elements: Vec<Register>,
    results: Vec<Register>,
}

impl Combiner {
    /// For accumulators of these types.
    pub(crate) fn new(
        module: &Module,
        reduce: InstrId,
        combine: &Combine<'_>,
        types: &[ElementType],
    ) -> Result<Self, Unsupported> {
        let refuse = || Unsupported::new(module, reduce, "a combination of these types");
        let count = types.len() as u32;
        let own;
        let (expr, results) = match combine {
            Combine::General { expr, results } => (&**expr, Some(&results[..])),
            Combine::Sum | Combine::Binary(..) | Combine::Extreme { .. } => {
                own = Expr::new(module);
                (&own, None)
            }
        };
        let mut builder = Builder::new(expr);
        let accumulators: Vec<Register> = (0..).zip(types).map(|(i, &ty)| builder.given(i, ty)).collect();
        let elements: Vec<Register> = (count..).zip(types).map(|(i, &ty)| builder.given(i, ty)).collect();
        let results = match (combine, results) {
            (_, Some(results)) => builder.values(results)?,
            (Combine::Sum, _) => {
                let sum =
                    builder.binary(hlo::elementwise::Binary::Add, types[0], [accumulators[0], elements[0]]);
                vec![sum.ok_or_else(refuse)?]
            }
            (Combine::Binary(op, _), _) => {
                let both = builder.binary(*op, types[0], [accumulators[0], elements[0]]);
                vec![both.ok_or_else(refuse)?]
            }
            (Combine::Extreme { .. } | Combine::General { .. }, None) => return Err(refuse()),
        };
        Ok(Self { code: builder.finish(), accumulators, elements, results })
    }

    /// Combines the first `n` lanes of `values` with as many lanes of `with` from lane `from` on; one column
    /// per accumulator.
    fn apply(
        &self,
        columns: &mut Columns,
        values: &mut [Buffer],
        with: &[&Buffer],
        from: usize,
        n: usize,
        arrays: Arrays<'_>,
    ) {
        for (&register, value) in self.accumulators.iter().zip(&*values) {
            copy(value, 0, &mut columns.values[register], 0, n);
        }
        for (&register, value) in self.elements.iter().zip(with) {
            copy(value, from, &mut columns.values[register], 0, n);
        }
        self.code.run(columns, n, arrays);
        for (&register, value) in self.results.iter().zip(values) {
            copy(&columns.values[register], 0, value, 0, n);
        }
    }

    /// Combines one value of each kind with another.
    pub(crate) fn apply_one(&self, values: &mut [Buffer], with: &[&Buffer], lane: usize, arrays: Arrays<'_>) {
        let mut columns = self.code.columns(1);
        self.apply(&mut columns, values, with, lane, 1, arrays);
        self.code.give_back(columns);
    }
}

/// A reduction: for each point of one space all points of another, in order.
#[derive(Debug)]
pub(crate) struct Fold {
    /// The variables of the results, in their order.
    kept: Variables,
    /// The reduced variables.
    along: Variables,
    elements: Code,
    operands: Vec<Register>,
    initial: Code,
    starts: Vec<Register>,
    combiner: Combiner,
    /// Whether it is reassociable.
    free: bool,
    finish: Code,
    /// Accumulators and results of `finish`.
    finished: Vec<(Register, Register)>,
    types: Vec<ElementType>,
    results: Vec<ElementType>,
}

impl Fold {
    /// The reduction of an instruction of a fusion.
    pub(crate) fn new(expr: &mut Expr<'_>, reduce: InstrId, space: &Space) -> Result<Self, Unsupported> {
        let module = expr.module;
        let instr = module.instr(reduce);
        let results: Vec<ElementType> = array_leaves(&instr.shape).map(|s| s.element_type).collect();
        let (kept_index, kept) = variables(expr, &space.kept_dims(), 0);
        let along_dims: Vec<i64> = reduced(space).map(|d| space.dims[d]).collect();
        let (along_index, along) = variables(expr, &along_dims, kept.len() as u32);
        let mut index: Index = space.dims.iter().map(|_| Affine::default()).collect();
        for (d, x) in reduced(space).zip(along_index) {
            index[d] = x;
        }
        for (d, x) in space.kept.iter().zip(kept_index) {
            if let Some(d) = *d {
                index[d] = x;
            }
        }
        let combine = Combine::of(module, reduce, false)?;
        let types: Vec<ElementType>;
        let (mut operands, mut starts) = (Vec::new(), Vec::new());
        if instr.opcode == Opcode::Dot {
            let (product, ty) = expr.weighted(reduce, &index)?;
            types = vec![ty];
            operands.push(product);
            starts.push(expr.zero(ty));
        } else {
            types = results.iter().map(|&ty| combine.accumulator(ty)).collect();
            let n = instr.operands().len() / 2;
            let empty = space.dims.contains(&0);
            for (i, &o) in instr.operands().iter().enumerate() {
                let (list, index) = if i < n { (&mut operands, &index[..]) } else { (&mut starts, &[][..]) };
                if i < n && empty {
                    continue;
                }
                let node = expr.node(o, 0, index)?;
                list.push(expr.convert(node, types[i % n]));
            }
        }
        let mut elements = Builder::new(expr);
        let operands = elements.values(&operands)?;
        let mut initial = Builder::new(expr);
        let starts = initial.values(&starts)?;
        let combiner = Combiner::new(module, reduce, &combine, &types)?;
        let nothing = Expr::new(module);
        let mut finish = Builder::new(&nothing);
        let finished = (0..).zip(types.iter().zip(&results)).map(|(i, (&from, &to))| {
            let given = finish.given(i, from);
            (given, finish.converted(given, to))
        });
        let finished = finished.collect();
        Ok(Self {
            kept,
            along,
            elements: elements.finish(),
            operands,
            initial: initial.finish(),
            starts,
            combiner,
            free: combine.free(),
            finish: finish.finish(),
            finished,
            types,
            results,
        })
    }

    /// The number of results and of terms.
    pub(crate) fn counts(&self) -> (i64, i64) {
        (count(&self.kept), count(&self.along))
    }

    /// Computes all results.
    pub(crate) fn run(&self, arrays: Arrays<'_>) -> Vec<Buffer> {
        let (kept, terms) = self.counts();
        let count = usize::try_from(kept).unwrap_or(0);
        let mut results: Vec<Buffer> = self.results.iter().map(|&ty| Buffer::zeros(ty, count)).collect();
        if count == 0 {
            return results;
        }
        let across = self.free && kept < LANES as i64 / 4 && terms > kept;
        let lanes = if across { terms.min(LANES as i64) } else { kept.min(LANES as i64) } as usize;
        let mut columns = self.elements.columns(lanes);
        let mut combining = self.combiner.code.columns(lanes);
        let mut finishing = self.finish.columns(lanes);
        let mut initial = self.initial.columns(1);
        self.initial.run(&mut initial, 1, arrays);
        let mut values: Vec<Buffer> = self.types.iter().map(|&ty| Buffer::zeros(ty, lanes)).collect();
        let block = if across { 1 } else { lanes };
        for first in (0..count).step_by(block) {
            let n = block.min(count - first);
            if across && terms > 0 {
                self.across(first, terms, lanes, &mut values, [&mut columns, &mut combining], arrays);
                // The initial value comes first.
                let of_lane: Vec<Buffer> = values.clone();
                for (value, &start) in values.iter_mut().zip(&self.starts) {
                    fill(&initial.values[start], 0, value, 1);
                }
                let with: Vec<&Buffer> = of_lane.iter().collect();
                self.combiner.apply(&mut combining, &mut values, &with, 0, 1, arrays);
            } else {
                for (value, &start) in values.iter_mut().zip(&self.starts) {
                    fill(&initial.values[start], 0, value, n);
                }
                enter(&self.elements, &mut columns, &self.kept, first as i64, n);
                for term in 0..terms {
                    cancel::poll();
                    enter_one(&self.elements, &mut columns, &self.along, term, n);
                    self.elements.run(&mut columns, n, arrays);
                    let with: Vec<&Buffer> = self.operands.iter().map(|&r| &columns.values[r]).collect();
                    self.combiner.apply(&mut combining, &mut values, &with, 0, n, arrays);
                }
            }
            for (value, &(given, _)) in values.iter().zip(&self.finished) {
                copy(value, 0, &mut finishing.values[given], 0, n);
            }
            self.finish.run(&mut finishing, n, arrays);
            for (result, &(_, made)) in results.iter_mut().zip(&self.finished) {
                copy(&finishing.values[made], 0, result, first, n);
            }
        }
        self.elements.give_back(columns);
        self.combiner.code.give_back(combining);
        self.finish.give_back(finishing);
        self.initial.give_back(initial);
        results
    }

    /// All terms of one result, `lanes` at a time, combined into the first lane.
    fn across(
        &self,
        result: usize,
        terms: i64,
        lanes: usize,
        values: &mut [Buffer],
        [columns, combining]: [&mut Columns; 2],
        arrays: Arrays<'_>,
    ) {
        let mut first = 0;
        while first < terms {
            cancel::poll();
            let n = usize::try_from(terms - first).unwrap_or(lanes).min(lanes);
            enter_one(&self.elements, columns, &self.kept, result as i64, n);
            enter(&self.elements, columns, &self.along, first, n);
            self.elements.run(columns, n, arrays);
            let with: Vec<&Buffer> = self.operands.iter().map(|&r| &columns.values[r]).collect();
            if first == 0 {
                for (value, element) in values.iter_mut().zip(with) {
                    copy(element, 0, value, 0, n);
                }
            } else {
                self.combiner.apply(combining, values, &with, 0, n, arrays);
            }
            first += n as i64;
        }
        let mut left = usize::try_from(terms).unwrap_or(lanes).min(lanes);
        while left > 1 {
            let half = left / 2;
            let upper: Vec<Buffer> = values.to_vec();
            let with: Vec<&Buffer> = upper.iter().collect();
            self.combiner.apply(combining, values, &with, left - half, half, arrays);
            left -= half;
        }
    }
}

/// The reduced dimensions, in order.
fn reduced(space: &Space) -> impl Iterator<Item = usize> + '_ {
    (0..space.dims.len()).filter(|&d| space.is_reduced(d))
}

impl Builder<'_, '_> {
    /// An operation of two registers.
    pub(crate) fn binary(
        &mut self,
        op: hlo::elementwise::Binary,
        ty: ElementType,
        operands: [Register; 2],
    ) -> Option<Register> {
        self.elementwise(hlo::elementwise::Kind::Binary(op), &Attrs::default(), ty, &operands)
    }
}

/// The shape and argument of a kernel's array, for binding it.
pub(crate) fn argument_of(storage: Storage) -> u32 {
    match storage {
        Storage::Argument(argument) => argument as u32,
        Storage::Temporary(number) => super::code::TEMPORARIES + number as u32,
    }
}
