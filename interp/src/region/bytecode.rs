//! Bytecode: scalar computations without control flow, compiled to kernels over columns.
//!
//! Bytecode has registers, each a column of elements (mostly [`super::LANES`]), and steps, each a typed
//! kernel from registers to one register that no other step writes. **Invariants:** registers `0..parameters`
//! are the inputs; each output has a register of its own that a step writes, so that a caller may swap it
//! with an input.

use hlo::elementwise::{Binary, Function, Kind, Unary, kind};
use hlo::literal::{Bits, Buffer, BufferOf};
use hlo::small_int::{S1, S2, S4};
use hlo::{
    AttrKey, Attrs, ComputationId, ConstantValue, ElementType, InstrId, Literal, Module, Opcode, Shape,
};
use hlo::{with_buffer, with_element_type};
use hlo_arithmetic::scalar::Int;
use hlo_threads::cancel;
use rustc_hash::FxHashMap;

use crate::ops::elementwise::lane::{K3, Lane, Part};
use crate::ops::elementwise::{
    carrier, comparison, narrow_block, precision, select_kernel, stochastic_by, widen_block,
};
use crate::ops::movement::reinterpret_block;

/// Calls are inlined as deep as this; what is nested deeper is not bytecode.
const MAX_INLINED: usize = 32;

/// More instructions than this, calls inlined, are not bytecode: it would only cost memory, and without a
/// limit calls of calls would take forever to inline.
const MAX_INSTRUCTIONS: u64 = 1 << 16;

/// The same for instructions that nothing needs.
const MAX_SCANNED: usize = 1 << 22;

/// Steps between two polls of a run: each takes microseconds.
const POLL_STEPS: usize = 1 << 10;

/// A kernel from some registers to another, over the first `n` lanes.
type Run = Box<dyn Fn(&mut [Buffer], usize) + Send + Sync>;

/// A step, for recognizers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// An operation of two registers.
    Binary(Binary, usize, usize),
    /// A comparison of two registers, by total order or not.
    Compare(hlo::attrs::Direction, bool, usize, usize),
    /// A choice: predicate, on true, on false.
    Select(usize, usize, usize),
    /// Anything else.
    Other,
}

/// A register before anything runs.
#[derive(Clone, Debug)]
pub(super) enum Register {
    /// An input.
    Input(ElementType),
    /// A constant in all lanes; the buffer has one element.
    Constant(Buffer),
    /// Written by the step with this number.
    Step(ElementType, usize),
}

/// A compiled computation.
pub(crate) struct Bytecode {
    pub(super) registers: Vec<Register>,
    pub(super) what: Vec<What>,
    steps: Vec<Run>,
    /// Registers of the results before each got one of its own.
    pub(super) results: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// The number of compiled instructions without parameters: the fuel of a run.
    pub(super) instructions: u64,
    /// Instructions of all computations that were inlined, needed or not.
    scanned: usize,
    /// Some instructions have control predecessors, which this does not count.
    pub(super) ordered: bool,
}

impl std::fmt::Debug for Bytecode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytecode")
            .field("registers", &self.registers)
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}

/// The value of an instruction while compiling: a register, or a tuple of values.
#[derive(Clone, Debug)]
enum Known {
    Register(usize),
    Tuple(Vec<Known>),
}

impl Bytecode {
    /// Without registers.
    pub(crate) fn empty() -> Bytecode {
        Bytecode {
            registers: Vec::new(),
            what: Vec::new(),
            steps: Vec::new(),
            results: Vec::new(),
            outputs: Vec::new(),
            instructions: 0,
            scanned: 0,
            ordered: false,
        }
    }

    /// Compiles a computation of scalars; `None` if it has anything that is not elementwise.
    pub(super) fn compile(module: &Module, computation: ComputationId) -> Option<Bytecode> {
        let mut bytecode = Bytecode::empty();
        let mut args = Vec::new();
        for parameter in module.computation(computation).parameters() {
            args.push(bytecode.input(&module.instr((*parameter)?).shape)?);
        }
        let result = bytecode.inline(module, computation, &args, 0)?;
        result.leaves(&mut bytecode.results);
        for i in 0..bytecode.results.len() {
            let r = bytecode.results[i];
            let own =
                matches!(bytecode.registers[r], Register::Step(..)) && !bytecode.results[..i].contains(&r);
            let output = if own { r } else { bytecode.copy(r) };
            bytecode.outputs.push(output);
        }
        Some(bytecode)
    }

    /// The registers of a parameter: a scalar's, or those of a tuple's leaves in order.
    fn input(&mut self, shape: &Shape) -> Option<Known> {
        match shape {
            Shape::Tuple(t) => Some(Known::Tuple(t.iter().map(|s| self.input(s)).collect::<Option<_>>()?)),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                Some(Known::Register(self.register(Register::Input(scalar_type(shape)?))))
            }
        }
    }

    /// An input.
    pub(crate) fn given(&mut self, ty: ElementType) -> usize {
        self.register(Register::Input(ty))
    }

    /// The only element of a buffer.
    pub(crate) fn constant(&mut self, element: Buffer) -> usize {
        self.register(Register::Constant(element))
    }

    /// The number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Computes the first `n` lanes of what some steps write.
    pub(crate) fn run_some(&self, steps: std::ops::Range<usize>, columns: &mut [Buffer], n: usize) {
        for step in &self.steps[steps] {
            step(columns, n);
        }
    }

    /// Columns of that many lanes for one thread.
    pub(crate) fn columns(&self, lanes: usize) -> Vec<Buffer> {
        let column = |r: &Register| match r {
            Register::Input(ty) | Register::Step(ty, _) => Buffer::zeros(*ty, lanes),
            Register::Constant(value) => with_buffer!(value, v => BufferOf::wrap(vec![v[0]; lanes])),
        };
        self.registers.iter().map(column).collect()
    }

    /// Computes the first `n` lanes of all registers.
    pub(super) fn run(&self, columns: &mut [Buffer], n: usize) {
        for steps in self.steps.chunks(POLL_STEPS) {
            for step in steps {
                step(columns, n);
            }
            // Callers poll before each run.
            if steps.len() == POLL_STEPS {
                cancel::poll();
            }
        }
    }

    /// The type of a register.
    pub(crate) fn ty(&self, register: usize) -> ElementType {
        match &self.registers[register] {
            Register::Input(ty) | Register::Step(ty, _) => *ty,
            Register::Constant(value) => value.element_type(),
        }
    }

    /// The operation of the step that writes a register.
    pub(super) fn what(&self, register: usize) -> What {
        match &self.registers[register] {
            Register::Step(_, step) => self.what[*step],
            Register::Input(_) | Register::Constant(_) => What::Other,
        }
    }

    fn inline(
        &mut self,
        module: &Module,
        computation: ComputationId,
        args: &[Known],
        depth: usize,
    ) -> Option<Known> {
        self.scanned = self.scanned.saturating_add(module.computation(computation).len());
        if depth > MAX_INLINED || self.scanned > MAX_SCANNED {
            return None;
        }
        let root = module.root(computation);
        let mut known: FxHashMap<InstrId, Known> = FxHashMap::default();
        for id in needed(module, computation) {
            let value = self.instruction(module, id, &known, args, depth)?;
            known.insert(id, value);
        }
        known.remove(&root)
    }

    fn instruction(
        &mut self,
        module: &Module,
        id: InstrId,
        known: &FxHashMap<InstrId, Known>,
        args: &[Known],
        depth: usize,
    ) -> Option<Known> {
        let instr = module.instr(id);
        if !matches!(instr.opcode, Opcode::Parameter) {
            self.instructions += 1;
        }
        self.ordered |= !instr.control_predecessors.is_empty();
        if self.instructions > MAX_INSTRUCTIONS {
            return None;
        }
        let operand = |n: usize| known.get(instr.operands().get(n)?);
        if let Some(kind) = kind(instr.opcode) {
            let to = scalar_type(&instr.shape)?;
            let operands =
                instr.operands().iter().map(|o| known.get(o)?.register()).collect::<Option<Vec<_>>>()?;
            return self.elementwise(kind, &instr.attrs, to, &operands).map(Known::Register);
        }
        if matches!(instr.opcode, Opcode::Parameter) {
            return args.get(usize::try_from(instr.parameter_number()?).ok()?).cloned();
        }
        if matches!(instr.opcode, Opcode::Constant) {
            scalar_type(&instr.shape)?;
            let literal = match instr.attrs.constant_value()? {
                ConstantValue::Given(literal) => (**literal).clone(),
                ConstantValue::Elided => hlo::elided::elided_literal(&instr.name, &instr.shape)?,
            };
            return match literal {
                Literal::Array(a) => {
                    Some(Known::Register(self.register(Register::Constant(a.into_buffer()))))
                }
                Literal::Tuple(_) | Literal::Token => None,
            };
        }
        if matches!(instr.opcode, Opcode::Broadcast | Opcode::Reshape | Opcode::OptBarrier) {
            let r = operand(0)?.register()?;
            return (scalar_type(&instr.shape)? == self.ty(r)).then_some(Known::Register(r));
        }
        if matches!(instr.opcode, Opcode::BitcastConvert | Opcode::Bitcast) {
            let (r, to) = (operand(0)?.register()?, scalar_type(&instr.shape)?);
            return (self.ty(r).bits() == to.bits()).then(|| Known::Register(self.reinterpret(r, to)));
        }
        if matches!(instr.opcode, Opcode::Tuple) {
            let elements = instr.operands().iter().map(|o| known.get(o).cloned()).collect::<Option<_>>()?;
            return Some(Known::Tuple(elements));
        }
        if matches!(instr.opcode, Opcode::GetTupleElement) {
            let Known::Tuple(elements) = operand(0)? else { return None };
            return elements.get(usize::try_from(instr.attrs.int(AttrKey::Index)?).ok()?).cloned();
        }
        if matches!(instr.opcode, Opcode::Call | Opcode::Fusion) {
            let key = if instr.opcode == Opcode::Call { AttrKey::ToApply } else { AttrKey::Calls };
            let args = instr.operands().iter().map(|o| known.get(o).cloned()).collect::<Option<Vec<_>>>()?;
            return self.inline(module, instr.attrs.computation(key)?, &args, depth + 1);
        }
        None
    }

    fn register(&mut self, register: Register) -> usize {
        self.registers.push(register);
        self.registers.len() - 1
    }

    /// Adds a step; `make` gets the register that it writes.
    fn step(
        &mut self,
        ty: ElementType,
        what: What,
        make: impl FnOnce(usize) -> Option<Run>,
    ) -> Option<usize> {
        let out = self.register(Register::Step(ty, self.steps.len()));
        self.steps.push(make(out)?);
        self.what.push(what);
        Some(out)
    }

    fn copy(&mut self, from: usize) -> usize {
        fn of<T: BufferOf>(from: usize, to: usize) -> Run {
            step1::<T, T>(|a, o| o.copy_from_slice(a), from, to)
        }
        let ty = self.ty(from);
        self.step(ty, What::Other, |to| Some(with_element_type!(ty, T => of::<T>(from, to))))
            .expect("invariant: a copy has a kernel")
    }

    pub(crate) fn reinterpret(&mut self, from: usize, ty: ElementType) -> usize {
        if self.ty(from) == ty {
            return from;
        }
        let run = move |to: usize| -> Run {
            Box::new(move |r, n| with_output(r, to, |r, out| reinterpret_block(&r[from], n, out)))
        };
        self.step(ty, What::Other, |to| Some(run(to))).expect("invariant: made above")
    }

    /// The register in a type: itself, or converted.
    pub(crate) fn converted(&mut self, from: usize, ty: ElementType) -> usize {
        fn of<T: Lane>(from: usize, to: usize, source: ElementType) -> Run {
            Box::new(move |r, n| {
                let mut block = carrier(source, n);
                with_output(r, to, |r, out| {
                    widen_block(&r[from], 0, n, &mut block);
                    narrow_block::<T>(&block, &mut typed_mut::<T>(out)[..n]);
                });
            })
        }
        let source = self.ty(from);
        if source == ty {
            return from;
        }
        self.step(ty, What::Other, |to| Some(with_element_type!(ty, T => of::<T>(from, to, source))))
            .expect("invariant: every type converts to every other")
    }

    pub(crate) fn elementwise(
        &mut self,
        kind: Kind,
        attrs: &Attrs,
        to: ElementType,
        operands: &[usize],
    ) -> Option<usize> {
        match (kind, operands) {
            (Kind::Unary(Unary::Abs), &[a]) if self.ty(a).is_complex() => self.part(Part::Modulus, a, to),
            (Kind::Function(op), &[a]) => {
                let a = self.converted(a, to);
                fn of<T: Lane>(op: Function, a: usize, o: usize) -> Option<Run> {
                    let kernel = T::function(op)?;
                    Some(step1::<T, T>(move |a, o| kernel.run(a, o), a, o))
                }
                self.step(to, What::Other, |o| with_element_type!(to, T => of::<T>(op, a, o)))
            }
            (Kind::Unary(op), &[a]) => {
                let a = self.converted(a, to);
                fn of<T: Lane>(op: Unary, a: usize, o: usize) -> Option<Run> {
                    let kernel = T::unary(op)?;
                    Some(step1::<T, T>(move |a, o| kernel.run(a, o), a, o))
                }
                self.step(to, What::Other, |o| with_element_type!(to, T => of::<T>(op, a, o)))
            }
            (Kind::Binary(op), &[a, b]) => {
                let (a, b) = (self.converted(a, to), self.converted(b, to));
                fn of<T: Lane>(op: Binary, a: usize, b: usize, o: usize) -> Option<Run> {
                    let kernel = T::binary(op)?;
                    Some(step2::<T, T>(move |a, b, o| kernel.run(a, b, o), a, b, o))
                }
                self.step(to, What::Binary(op, a, b), |o| with_element_type!(to, T => of::<T>(op, a, b, o)))
            }
            (Kind::Real, &[a]) => self.part(Part::Real, a, to),
            (Kind::Imag, &[a]) => self.part(Part::Imaginary, a, to),
            (Kind::IsFinite, &[a]) => {
                fn of<T: Lane>(a: usize, o: usize) -> Option<Run> {
                    Some(step1(T::is_finite()?, a, o))
                }
                let ty = self.ty(a);
                self.step(to, What::Other, |o| with_element_type!(ty, T => of::<T>(a, o)))
            }
            (Kind::ReducePrecision, &[a]) => {
                fn of<T: Lane>((exponent, mantissa): (u32, u32), a: usize, o: usize) -> Option<Run> {
                    let f = T::reduce_precision()?;
                    Some(Box::new(move |r, n| {
                        with_output(r, o, |r, out| {
                            let out = &mut typed_mut::<T>(out)[..n];
                            out.iter_mut()
                                .zip(typed(&r[a]))
                                .for_each(|(o, &a)| *o = f(a, exponent, mantissa));
                        });
                    }))
                }
                let (ty, bits) = (self.ty(a), precision(attrs)?);
                let own = self.step(ty, What::Other, |o| with_element_type!(ty, T => of::<T>(bits, a, o)))?;
                Some(self.converted(own, to))
            }
            (Kind::Convert, &[a]) => Some(self.converted(a, to)),
            (Kind::Compare, &[a, b]) => {
                fn of<T: Lane>(
                    (direction, total): (hlo::attrs::Direction, bool),
                    a: usize,
                    b: usize,
                    o: usize,
                ) -> Option<Run> {
                    Some(step2(T::compare(direction, total)?, a, b, o))
                }
                let how = comparison(attrs)?;
                let ty = self.ty(a).holding(self.ty(b));
                let (a, b) = (self.converted(a, ty), self.converted(b, ty));
                let what = What::Compare(how.0, how.1, a, b);
                self.step(to, what, |o| with_element_type!(ty, T => of::<T>(how, a, b, o)))
            }
            (Kind::Complex, &[a, b]) => {
                fn of<T: Lane>(a: usize, b: usize, o: usize) -> Option<Run> {
                    Some(step2(T::from_parts()?, a, b, o))
                }
                self.step(to, What::Other, |o| with_element_type!(to, T => of::<T>(a, b, o)))
            }
            (Kind::Clamp, &[low, x, high]) => {
                fn of<T: Lane>(low: usize, x: usize, high: usize, o: usize) -> Option<Run> {
                    let k: K3<T, T> = T::clamp()?;
                    Some(Box::new(move |r, n| {
                        with_output(r, o, |r, out| {
                            let (low, x, high) = (typed(&r[low]), typed(&r[x]), typed(&r[high]));
                            k(&low[..n], &x[..n], &high[..n], &mut typed_mut(out)[..n]);
                        });
                    }))
                }
                let (low, x, high) =
                    (self.converted(low, to), self.converted(x, to), self.converted(high, to));
                self.step(to, What::Other, |o| with_element_type!(to, T => of::<T>(low, x, high, o)))
            }
            (Kind::Select, &[p, t, f]) => {
                fn of<T: BufferOf>(p: usize, t: usize, f: usize, o: usize) -> Run {
                    Box::new(move |r, n| {
                        with_output(r, o, |r, out| {
                            select_kernel(
                                typed(&r[p]),
                                typed(&r[t]),
                                typed(&r[f]),
                                &mut typed_mut::<T>(out)[..n],
                            );
                        });
                    })
                }
                let (t, f) = (self.converted(t, to), self.converted(f, to));
                let what = What::Select(p, t, f);
                self.step(to, what, |o| Some(with_element_type!(to, T => of::<T>(p, t, f, o))))
            }
            (Kind::StochasticConvert, &[x, random]) => {
                fn of<R: BufferOf + Int>(x: usize, random: usize, bits: u32, o: usize) -> Option<Run> {
                    let one = stochastic_by::<R>(bits)?;
                    Some(Box::new(move |r, n| {
                        with_output(r, o, |r, out| {
                            let (values, out) = (&typed::<f64>(&r[x])[..n], &mut typed_mut::<R>(out)[..n]);
                            with_buffer!(&r[random], random => {
                                for ((o, &x), r) in out.iter_mut().zip(values).zip(random) {
                                    *o = one(x, Bits::bits(*r) as u64);
                                }
                            });
                        });
                    }))
                }
                let (bits, x) = (self.ty(random).bits(), self.converted(x, ElementType::F64));
                macro_rules! results {
                    ($($ty:ident $R:ty),*) => {
                        $(if to == ElementType::$ty {
                            return self.step(to, What::Other, |o| of::<$R>(x, random, bits, o));
                        })*
                    };
                }
                results!(S1 S1, S2 S2, S4 S4, S8 i8, S16 i16, S32 i32, S64 i64);
                None
            }
            // A number of operands that the verifier does not let pass.
            (
                Kind::StochasticConvert
                | Kind::Unary(_)
                | Kind::Binary(_)
                | Kind::Function(_)
                | Kind::Real
                | Kind::Imag
                | Kind::IsFinite
                | Kind::ReducePrecision
                | Kind::Convert
                | Kind::Compare
                | Kind::Complex
                | Kind::Clamp
                | Kind::Select,
                _,
            ) => None,
        }
    }

    /// A part of a number, in a type that may be another float type than the number's.
    fn part(&mut self, part: Part, a: usize, to: ElementType) -> Option<usize> {
        fn of<T: Lane>(part: Part, a: usize, o: usize) -> Option<Run> {
            Some(step1(T::part(part)?, a, o))
        }
        let ty = self.ty(a);
        let own =
            self.step(ty.real_part(), What::Other, |o| with_element_type!(ty, T => of::<T>(part, a, o)))?;
        Some(self.converted(own, to))
    }
}

impl Known {
    fn register(&self) -> Option<usize> {
        match self {
            Known::Register(r) => Some(*r),
            Known::Tuple(_) => None,
        }
    }

    fn leaves(&self, out: &mut Vec<usize>) {
        match self {
            Known::Register(r) => out.push(*r),
            Known::Tuple(t) => t.iter().for_each(|k| k.leaves(out)),
        }
    }
}

/// The element type of a scalar.
fn scalar_type(shape: &Shape) -> Option<ElementType> {
    shape.as_array().filter(|a| a.dims.is_empty()).map(|a| a.element_type)
}

/// The instructions of a computation that its root needs, in order.
fn needed(module: &Module, computation: ComputationId) -> Vec<InstrId> {
    let order: Vec<InstrId> = module.instructions(computation).collect();
    let mut live: rustc_hash::FxHashSet<InstrId> = rustc_hash::FxHashSet::default();
    live.insert(module.root(computation));
    let mut kept = Vec::new();
    for &id in order.iter().rev() {
        if live.contains(&id) {
            live.extend(module.instr(id).operands());
            kept.push(id);
        }
    }
    kept.reverse();
    kept
}

fn typed<T: BufferOf>(column: &Buffer) -> &[T] {
    T::slice(column).expect("invariant: a step knows the types of its registers")
}

fn typed_mut<T: BufferOf>(column: &mut Buffer) -> &mut [T] {
    T::slice_mut(column).expect("invariant: a step knows the types of its registers")
}

/// Calls `f` with all registers and, apart from them, the one that it writes.
fn with_output(registers: &mut [Buffer], out: usize, f: impl FnOnce(&[Buffer], &mut Buffer)) {
    let mut column = std::mem::replace(&mut registers[out], Buffer::Pred(Vec::new()));
    f(registers, &mut column);
    registers[out] = column;
}

fn step1<A: BufferOf, O: BufferOf>(
    kernel: impl Fn(&[A], &mut [O]) + Send + Sync + 'static,
    a: usize,
    o: usize,
) -> Run {
    Box::new(move |r, n| with_output(r, o, |r, out| kernel(&typed(&r[a])[..n], &mut typed_mut(out)[..n])))
}

fn step2<A: BufferOf, O: BufferOf>(
    kernel: impl Fn(&[A], &[A], &mut [O]) + Send + Sync + 'static,
    a: usize,
    b: usize,
    o: usize,
) -> Run {
    Box::new(move |r, n| {
        with_output(r, o, |r, out| kernel(&typed(&r[a])[..n], &typed(&r[b])[..n], &mut typed_mut(out)[..n]));
    })
}
