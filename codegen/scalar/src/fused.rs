//! Kernels of fusions: folds and scatters are evaluated as a whole before their readers, everything else
//! where it is stored.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, Buffer, ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_interp::columns::Register;
use hlo_library_base::memory::array_bytes;
use hlo_library_base::portable::{Evaluate, Memory};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{Bound, Expr, array_leaves, leaf_root};
use hlo_opt::fusion::combine::Combine;
use hlo_opt::fusion::{folds, update_slice_chain};

use super::code::{Arrays, Builder, Code, LANES, Number, Storage};
use super::nest::{Combiner, Fold, Nest, Variables, argument_of, count, variables};

/// A kernel of a fusion.
#[derive(Debug)]
pub(crate) struct Fused {
    /// Sizes of the operands' leaves in bytes, then of the results'.
    bytes: Vec<u64>,
    /// The number of operands' leaves.
    operands: usize,
    stages: Vec<Stage>,
    results: Vec<Output>,
}

/// Folds that are evaluated as a whole.
#[derive(Debug)]
enum Stage {
    Fold(Box<Fold>),
    Scatter(Box<Scatter>),
}

/// A result.
#[derive(Debug)]
struct Output {
    argument: usize,
    ty: ElementType,
    whole: Nest,
    /// If the result shares memory with an operand of which it updates windows: that operand, and the
    /// windows.
    windows: Option<(usize, Vec<Nest>)>,
}

/// A scatter into copies of its operands.
#[derive(Debug)]
struct Scatter {
    operands: Vec<(Nest, ElementType)>,
    /// `None` if all updates are out of bounds.
    updates: Option<Updates>,
}

#[derive(Debug)]
struct Updates {
    vars: Variables,
    code: Code,
    values: Vec<Register>,
    at: Number,
    inside: Option<usize>,
    combiner: Combiner,
}

/// The arrays that the values of a computation are stored in.
pub(crate) struct Known<'m> {
    module: &'m Module,
    /// Array leaves of instructions and their arrays.
    bound: Vec<(InstrId, u32, ArrayShape, Storage)>,
}

impl<'m> Known<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        Self { module, bound: Vec::new() }
    }

    /// Binds the parameters of a computation to arguments from `first` on; returns the next argument's
    /// number.
    pub(crate) fn parameters(&mut self, computation: ComputationId, first: usize) -> usize {
        let module = self.module;
        let mut argument = first;
        for &p in module.computation(computation).parameters().iter().flatten() {
            for (leaf, shape) in (0..).zip(array_leaves(&module.instr(p).shape)) {
                self.bind(p, leaf, shape, Storage::Argument(argument));
                argument += 1;
            }
        }
        argument
    }

    /// Binds a leaf of an instruction to an array.
    pub(crate) fn bind(&mut self, instr: InstrId, leaf: u32, shape: &ArrayShape, storage: Storage) {
        self.bound.push((instr, leaf, shape.clone(), storage));
    }

    /// An expression with all of these bindings.
    pub(crate) fn expr(&self) -> Expr<'m> {
        let mut expr = Expr::new(self.module);
        for (instr, leaf, shape, storage) in &self.bound {
            let array = expr.array(shape, argument_of(*storage));
            expr.bind(*instr, *leaf, Bound::Array(array));
        }
        expr
    }
}

/// The window that a `dynamic-update-slice` writes: its elements, and their offsets.
pub(crate) fn window(known: &Known<'_>, update: InstrId) -> Result<Option<Nest>, Unsupported> {
    let module = known.module;
    let instr = module.instr(update);
    let dims = &instr.shape.expect_array().dims;
    let value = instr.operands()[1];
    let window = &module.instr(value).shape.expect_array().dims;
    if window.contains(&0) {
        return Ok(None);
    }
    let mut expr = known.expr();
    let starts = expr.window_starts(update, 2, dims, window)?;
    let (index, vars) = variables(&mut expr, window, 0);
    let node = expr.node(value, 0, &index)?;
    let element: Index = index.iter().zip(&starts).map(|(x, s)| expr.space.add(x, s)).collect();
    let at = expr.space.linear(&element, dims);
    Nest::new(&expr, vars, &[(node, at)]).map(Some)
}

impl Fused {
    /// The kernel of a fusion.
    pub(crate) fn new(module: &Module, fusion: InstrId) -> Result<Self, Unsupported> {
        let Some(computation) = module.instr(fusion).attrs.computation(AttrKey::Calls) else {
            return Err(Unsupported::new(module, fusion, "a fusion of nothing"));
        };
        let mut known = Known::new(module);
        let operands = known.parameters(computation, 0);
        let mut temporaries = 0;
        let mut stages = Vec::new();
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            let stage = if let Some(space) = folds::space(module, id) {
                Stage::Fold(Box::new(Fold::new(&mut known.expr(), id, &space)?))
            } else if instr.opcode == Opcode::Scatter {
                Stage::Scatter(Box::new(Scatter::new(&known, id)?))
            } else {
                continue;
            };
            stages.push(stage);
            for (leaf, shape) in (0..).zip(array_leaves(&instr.shape)) {
                known.bind(id, leaf, shape, Storage::Temporary(temporaries));
                temporaries += 1;
            }
        }
        let mut bytes: Vec<u64> = known.bound[..operands].iter().map(|b| bytes_of(&b.2)).collect();
        let mut results = Vec::new();
        let root = module.root(computation);
        for (leaf, shape) in (0..).zip(array_leaves(&module.instr(root).shape)) {
            let (instr, at_leaf) = leaf_root(module, root, leaf);
            let is_parameter = |id: InstrId| module.instr(id).opcode == Opcode::Parameter;
            let windows = match update_slice_chain(module, instr, &is_parameter) {
                Some(chain) => {
                    let base = module.instr(chain[0]).operands()[0];
                    let operand = known.bound[..operands].iter().position(|b| b.0 == base && b.1 == 0);
                    let mut windows = Vec::new();
                    for update in chain {
                        windows.extend(window(&known, update)?);
                    }
                    operand.map(|operand| (operand, windows))
                }
                None => None,
            };
            let whole = Nest::of(&mut known.expr(), instr, at_leaf, &shape.dims)?;
            results.push(Output { argument: bytes.len(), ty: shape.element_type, whole, windows });
            bytes.push(bytes_of(shape));
        }
        Ok(Self { bytes, operands, stages, results })
    }

    /// An estimate of its operations.
    pub(crate) fn points(&self) -> u64 {
        let stage = |stage: &Stage| match stage {
            Stage::Fold(fold) => {
                let (kept, along) = fold.counts();
                kept.saturating_mul(along)
            }
            Stage::Scatter(scatter) => scatter.updates.as_ref().map_or(0, |u| count(&u.vars)),
        };
        let results = self.results.iter().map(|r| r.whole.count());
        self.stages.iter().map(stage).chain(results).fold(0, |n, m| n.saturating_add(m.unsigned_abs()))
    }

    /// The sizes of its arguments in bytes.
    pub(crate) fn traffic(&self) -> u64 {
        self.bytes.iter().fold(0, |n, &b| n.saturating_add(b))
    }
}

/// The size of an array in memory, in bytes.
pub(crate) fn bytes_of(shape: &ArrayShape) -> u64 {
    array_bytes(shape).unwrap_or(u64::MAX)
}

impl Evaluate for Fused {
    fn bytes(&self, _end: u64) -> Vec<u64> {
        self.bytes.clone()
    }

    fn run(&self, memory: &Memory<'_>, begin: u64, end: u64) {
        if begin == end {
            return;
        }
        let mut temporaries: Vec<Buffer> = Vec::new();
        for stage in &self.stages {
            let arrays = Arrays { memory, temporaries: &temporaries };
            match stage {
                Stage::Fold(fold) => temporaries.extend(fold.run(arrays)),
                Stage::Scatter(scatter) => temporaries.extend(scatter.run(arrays)),
            }
        }
        let arrays = Arrays { memory, temporaries: &temporaries };
        // Results that share memory with operands are written when everything is computed.
        let mut late: Vec<(usize, Vec<i64>, Buffer)> = Vec::new();
        for output in &self.results {
            let argument = output.argument;
            let over = (0..self.operands).any(|operand| memory.overlap(operand, argument));
            let windows = output.windows.as_ref().filter(|(operand, _)| {
                over && memory.address(*operand) == memory.address(argument)
                    && memory.bytes(*operand) == memory.bytes(argument)
            });
            if let Some((_, windows)) = windows {
                for window in windows {
                    let (at, values) = window.elements(output.ty, arrays);
                    late.push((argument, at, values));
                }
            } else if over {
                let values = output.whole.array(output.ty, arrays);
                late.push((argument, (0..values.len() as i64).collect(), values));
            } else {
                output.whole.run(0..output.whole.count(), arrays, &mut |_, at, computed| {
                    memory.write(argument, at, None, computed);
                });
            }
        }
        for (argument, at, values) in late {
            memory.write(argument, &at, None, &values);
        }
    }
}

impl Scatter {
    fn new(known: &Known<'_>, scatter: InstrId) -> Result<Self, Unsupported> {
        let module = known.module;
        let instr = module.instr(scatter);
        let mut operands = Vec::new();
        for &o in &instr.operands()[..instr.operands().len() / 2] {
            let shape = module.instr(o).shape.expect_array();
            let nest = Nest::of(&mut known.expr(), o, 0, &shape.dims)?;
            operands.push((nest, shape.element_type));
        }
        let mut expr = known.expr();
        let Some(scattered) = expr.scattered(scatter)? else { return Ok(Self { operands, updates: None }) };
        let Some(applied) = instr.attrs.computation(AttrKey::ToApply) else {
            return Err(Unsupported::new(module, scatter, "a scatter by nothing"));
        };
        let combine = Combine::literal(module, applied)?;
        let types: Vec<ElementType> = operands.iter().map(|o| o.1).collect();
        let combiner = Combiner::new(module, scatter, &combine, &types)?;
        let nodes: Vec<_> =
            scattered.updates.iter().zip(&types).map(|(&node, &ty)| expr.convert(node, ty)).collect();
        let mut builder = Builder::new(&expr);
        let values = builder.values(&nodes)?;
        let at = builder.number(&scattered.at)?;
        let inside = builder.guard(scattered.inside)?;
        let vars = [scattered.batch, scattered.window].concat();
        let updates = Updates { vars, code: builder.finish(), values, at, inside, combiner };
        Ok(Self { operands, updates: Some(updates) })
    }

    /// The results.
    fn run(&self, arrays: Arrays<'_>) -> Vec<Buffer> {
        let mut results: Vec<Buffer> =
            self.operands.iter().map(|(nest, ty)| nest.array(*ty, arrays)).collect();
        if let Some(updates) = &self.updates {
            updates.run(arrays, &mut results);
        }
        results
    }
}

impl Updates {
    fn run(&self, arrays: Arrays<'_>, results: &mut [Buffer]) {
        let all = count(&self.vars);
        let mut columns = self.code.columns(usize::try_from(all).unwrap_or(LANES));
        let mut at = Vec::new();
        let mut first = 0;
        while first < all {
            hlo_threads::cancel::poll();
            let n = usize::try_from(all - first).unwrap_or(LANES).min(LANES);
            super::nest::enter(&self.code, &mut columns, &self.vars, first, n);
            self.code.run(&mut columns, n, arrays);
            Code::number(&columns, &self.at, n, &mut at);
            let inside = Code::guard(&columns, self.inside);
            let with: Vec<&Buffer> = self.values.iter().map(|&r| &columns.values[r]).collect();
            // One after the other: an element may be updated again.
            for (lane, &offset) in at.iter().enumerate() {
                if inside.is_some_and(|inside| !inside[lane]) {
                    continue;
                }
                let offset = usize::try_from(offset).expect("invariant: what is inside has a number");
                let mut before: Vec<Buffer> = results
                    .iter()
                    .map(|result| {
                        let mut one = Buffer::zeros(result.element_type(), 1);
                        super::code::copy(result, offset, &mut one, 0, 1);
                        one
                    })
                    .collect();
                self.combiner.apply_one(&mut before, &with, lane, arrays);
                for (result, one) in results.iter_mut().zip(&before) {
                    super::code::copy(one, 0, result, offset, 1);
                }
            }
            first += n as i64;
        }
        self.code.give_back(columns);
    }
}

/// An epilogue kernel, for the finished rows of a contraction.
#[derive(Debug)]
pub(crate) struct Rows {
    bytes: Vec<u64>,
    columns: i64,
    /// The results and the arguments that they are stored to.
    nest: Nest,
    to: Vec<usize>,
}

impl Rows {
    /// The epilogue of a fusion whose hero's result is the first argument, and the number of rows of that.
    pub(crate) fn new(module: &Module, fusion: InstrId, hero: InstrId) -> Result<(Self, u64), Unsupported> {
        let refuse = |id: InstrId, why: &str| Err(Unsupported::new(module, id, why));
        let Some(computation) = module.instr(fusion).attrs.computation(AttrKey::Calls) else {
            return refuse(fusion, "a fusion of nothing");
        };
        let Some(given) = module.instr(hero).shape.as_array() else {
            return refuse(hero, "a hero without a result");
        };
        let mut known = Known::new(module);
        known.bind(hero, 0, given, Storage::Argument(0));
        known.parameters(computation, 1);
        let mut bytes: Vec<u64> = known.bound.iter().map(|b| bytes_of(&b.2)).collect();
        let columns = given.dims.last().copied().unwrap_or(1);
        let rows: i64 = given.dims.iter().rev().skip(1).product();
        let root = module.root(computation);
        let mut expr = known.expr();
        let (index, vars) = variables(&mut expr, &[rows, columns], 0);
        let here = expr.space.linear(&index, &[rows, columns]);
        let (mut outputs, mut to) = (Vec::new(), Vec::new());
        for (leaf, shape) in (0..).zip(array_leaves(&module.instr(root).shape)) {
            if shape.elements() != given.elements() {
                return refuse(fusion, "an epilogue whose result has other dimensions than its hero's");
            }
            to.push(bytes.len());
            bytes.push(bytes_of(shape));
            if rows * columns > 0 {
                let at = expr.space.reshape(&index, &[rows, columns], &shape.dims);
                outputs.push((expr.node(root, leaf, &at)?, here.clone()));
            }
        }
        let other = |x: &Affine| *x != here;
        let reads_other = expr.nodes.iter().any(|node| match &node.op {
            hlo_opt::expr::Op::Load { array, at, .. } => {
                expr.arrays[*array as usize].argument == 0 && other(at)
            }
            _ => false,
        });
        if reads_other {
            return refuse(fusion, "an epilogue that needs other elements than those of its row");
        }
        let nest = Nest::new(&expr, vars, &outputs)?;
        Ok((Self { bytes, columns, nest, to }, rows.unsigned_abs()))
    }
}

impl Evaluate for Rows {
    fn bytes(&self, _end: u64) -> Vec<u64> {
        self.bytes.clone()
    }

    fn run(&self, memory: &Memory<'_>, begin: u64, end: u64) {
        let element = |row: u64| i64::try_from(row).unwrap_or(i64::MAX).saturating_mul(self.columns);
        // A result may share memory with the contraction's: elements of a block are read before any of it is
        // written.
        let mut block: Vec<(usize, Vec<i64>, Buffer)> = Vec::new();
        let arrays = Arrays { memory, temporaries: &[] };
        let last = self.to.len() - 1;
        self.nest.run(element(begin)..element(end), arrays, &mut |i, at, values| {
            block.push((self.to[i], at.to_vec(), values.clone()));
            if i == last {
                for (argument, at, values) in block.drain(..) {
                    memory.write(argument, &at, None, &values);
                }
            }
        });
    }
}

/// A kernel of a computation applied to elements.
#[derive(Debug)]
pub(crate) struct Elements {
    /// The element size of each argument in bytes.
    widths: Vec<u64>,
    parameters: usize,
    nest: Nest,
}

impl Elements {
    /// The kernel of a computation of scalars.
    pub(crate) fn new(module: &Module, computation: ComputationId) -> Result<Self, Unsupported> {
        /// More elements than any array has.
        const ANY: i64 = 1 << 50;
        let mut expr = Expr::new(module);
        let at = expr.space.var(0, ANY);
        let (mut arguments, mut widths) = (Vec::new(), Vec::new());
        for &p in module.computation(computation).parameters().iter().flatten() {
            for shape in array_leaves(&module.instr(p).shape) {
                let ty = shape.element_type;
                let array = expr.array(&ArrayShape::new(ty, &[ANY]), arguments.len() as u32);
                let load = hlo_opt::expr::Op::Load { array, at: at.clone(), guard: hlo_opt::expr::ALWAYS };
                arguments.push(expr.push(load, ty));
                widths.push(ty.storage_bytes() as u64);
            }
        }
        let results = expr.apply(computation, &arguments)?;
        let width = |&node: &u32| expr.nodes[node as usize].ty.storage_bytes() as u64;
        widths.extend(results.iter().map(width));
        let outputs: Vec<_> = results.into_iter().map(|node| (node, at.clone())).collect();
        let nest = Nest::new(&expr, vec![(0, ANY)], &outputs)?;
        Ok(Self { widths, parameters: arguments.len(), nest })
    }
}

impl Evaluate for Elements {
    fn bytes(&self, end: u64) -> Vec<u64> {
        self.widths.iter().map(|width| width.saturating_mul(end)).collect()
    }

    fn run(&self, memory: &Memory<'_>, begin: u64, end: u64) {
        let range = begin as i64..end as i64;
        let arrays = Arrays { memory, temporaries: &[] };
        self.nest.run(range, arrays, &mut |i, at, values| {
            memory.write(self.parameters + i, at, None, values);
        });
    }
}
