//! The expression IR lowered to steps over columns of elements.
//!
//! Each node is a register of an [`Expression`] (the interpreter's bytecode), whose steps are the
//! interpreter's arithmetic; what depends on indices (loads, iota, guards) is an action here. **Invariants:**
//! an action comes after those that compute what it reads; lane `i` depends on the indices of lane `i` alone;
//! nothing is read where the guard of a load does not hold.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use hlo::elementwise::{Binary, kind};
use hlo::{Bits, Buffer, BufferOf, ElementType, InstrId, Literal, with_buffer};
use hlo_arithmetic::scalar::{Scalar, convert};
use hlo_interp::columns::{Expression, Register};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use hlo_codegen::Unsupported;
use hlo_library_base::portable::Memory;
use hlo_opt::expr::index::{Affine, AtomId, Def};
use hlo_opt::expr::{ALWAYS, Expr, GuardId, NodeId, Op};

/// The maximum number of elements that are evaluated at a time.
pub(crate) const LANES: usize = 256;

/// Larger columns (in bytes) are not kept from run to run.
const MAX_KEPT_BYTES: u64 = 1 << 16;

/// From this number on, arguments that arrays refer to are temporaries.
pub(crate) const TEMPORARIES: u32 = 1 << 24;

/// A column of index values, one per lane.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Number {
    /// An affine expression: columns and their factors.
    terms: SmallVec<[(usize, i64); 3]>,
    constant: i64,
}

/// Where an array is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storage {
    /// An argument of the kernel.
    Argument(usize),
    /// A temporary of the kernel.
    Temporary(usize),
}

impl Storage {
    /// Of an array of the expression.
    pub(crate) fn of(argument: u32) -> Self {
        match argument.checked_sub(TEMPORARIES) {
            Some(number) => Storage::Temporary(number as usize),
            None => Storage::Argument(argument as usize),
        }
    }
}

/// The arrays that code reads.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'a> {
    pub(crate) memory: &'a Memory<'a>,
    pub(crate) temporaries: &'a [Buffer],
}

impl Arrays<'_> {
    fn read(&self, from: Storage, at: &[i64], mask: Option<&[bool]>, out: &mut Buffer) {
        match from {
            Storage::Argument(argument) => self.memory.read(argument, at, mask, out),
            Storage::Temporary(number) => gather(&self.temporaries[number], at, mask, out),
        }
    }
}

/// Gathers elements of a buffer by their offsets: zeros where `mask` is false.
fn gather(from: &Buffer, at: &[i64], mask: Option<&[bool]>, out: &mut Buffer) {
    fn of<T: BufferOf + Default>(from: &Buffer, at: &[i64], mask: Option<&[bool]>, out: &mut [T]) {
        let from = T::slice(from).expect("invariant: a register has the type of what it reads");
        for (i, (o, &at)) in out.iter_mut().zip(at).enumerate() {
            let here = mask.is_none_or(|m| m[i]);
            *o = if here { from[usize::try_from(at).unwrap_or(usize::MAX)] } else { T::default() };
        }
    }
    with_buffer!(out, out => of(from, at, mask, out));
}

/// Scatters the first elements of a buffer to these offsets of another, where `mask` is true.
pub(crate) fn spread(to: &mut Buffer, at: &[i64], mask: Option<&[bool]>, values: &Buffer) {
    fn of<T: BufferOf>(to: &mut [T], at: &[i64], mask: Option<&[bool]>, values: &Buffer) {
        let values = T::slice(values).expect("invariant: an array has the type of what it gets");
        for (i, (&value, &at)) in values.iter().zip(at).enumerate() {
            if mask.is_none_or(|m| m[i]) {
                to[usize::try_from(at).unwrap_or(usize::MAX)] = value;
            }
        }
    }
    with_buffer!(to, to => of(to, at, mask, values));
}

/// Copies elements from one column to another.
pub(crate) fn copy(from: &Buffer, at: usize, to: &mut Buffer, first: usize, n: usize) {
    fn of<T: BufferOf>(from: &Buffer, at: usize, to: &mut [T], first: usize, n: usize) {
        let from = T::slice(from).expect("invariant: columns that are copied have the same type");
        to[first..first + n].copy_from_slice(&from[at..at + n]);
    }
    with_buffer!(to, to => of(from, at, to, first, n));
}

/// Broadcasts one element of a column to the first `n` lanes of another.
pub(crate) fn fill(from: &Buffer, at: usize, to: &mut Buffer, n: usize) {
    fn of<T: BufferOf>(from: &Buffer, at: usize, to: &mut [T], n: usize) {
        let from = T::slice(from).expect("invariant: columns that are copied have the same type");
        to[..n].fill(from[at]);
    }
    with_buffer!(to, to => of(from, at, to, n));
}

/// One thing to compute.
#[derive(Debug)]
enum Action {
    /// Steps of the interpreter's bytecode.
    Steps(Range<usize>),
    /// A floored quotient.
    Quotient { to: usize, of: Number, by: i64 },
    /// A remainder that is not negative.
    Remainder { to: usize, of: Number, by: i64 },
    /// An integer element as an index, clamped to a range.
    Value { to: usize, of: Register, low: i64, high: i64 },
    /// Whether all of these hold: `low <= number < high`.
    Guard { to: usize, all: Vec<(Number, i64, i64)> },
    /// Elements of an array.
    Load { to: Register, from: Storage, at: Number, guard: Option<usize> },
    /// Elements of a constant; zero beyond it.
    Constant { to: Register, literal: Arc<Literal>, at: Number },
    /// Index values as elements of type s64.
    Count { to: Register, of: Number },
    /// The first where the guard holds, else the second.
    Select { to: Register, guard: usize, yes: Register, no: Register },
    /// Bits of narrower elements, low ones first.
    Pack { to: Register, parts: Vec<Register> },
    /// Some of the bits of a wider element.
    Unpack { to: Register, whole: Register, part: Number },
}

/// Code: actions over columns.
#[derive(Debug, Default)]
pub(crate) struct Code {
    expression: Expression,
    actions: Vec<Action>,
    numbers: usize,
    guards: usize,
    /// The index columns of loop variables.
    vars: FxHashMap<u32, usize>,
    spare: Spare,
}

/// Columns that no run uses.
#[derive(Debug, Default)]
struct Spare(Mutex<Vec<Columns>>);

/// The columns of a run.
#[derive(Debug)]
pub(crate) struct Columns {
    lanes: usize,
    /// By register.
    pub(crate) values: Vec<Buffer>,
    numbers: Vec<Vec<i64>>,
    guards: Vec<Vec<bool>>,
    at: Vec<i64>,
}

impl Code {
    /// Allocates columns of that many lanes.
    pub(crate) fn columns(&self, lanes: usize) -> Columns {
        let lanes = lanes.clamp(1, LANES);
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(columns) = spare.pop_if(|c| c.lanes >= lanes) {
            return columns;
        }
        drop(spare);
        Columns {
            lanes,
            values: self.expression.columns(lanes),
            numbers: vec![vec![0; lanes]; self.numbers],
            guards: vec![vec![false; lanes]; self.guards],
            at: vec![0; lanes],
        }
    }

    /// Returns columns for later runs.
    pub(crate) fn give_back(&self, columns: Columns) {
        let bytes: u64 = columns.values.iter().map(Buffer::bytes).sum();
        if bytes <= MAX_KEPT_BYTES {
            self.spare.0.lock().unwrap_or_else(PoisonError::into_inner).push(columns);
        }
    }

    /// The column of a loop variable, if anything depends on it.
    pub(crate) fn var<'c>(&self, columns: &'c mut Columns, var: u32) -> Option<&'c mut Vec<i64>> {
        self.vars.get(&var).map(|&column| &mut columns.numbers[column])
    }

    /// An affine expression in the first `n` lanes.
    pub(crate) fn number(columns: &Columns, number: &Number, n: usize, out: &mut Vec<i64>) {
        out.clear();
        out.resize(n, number.constant);
        for &(column, factor) in &number.terms {
            for (o, &x) in out.iter_mut().zip(&columns.numbers[column]) {
                *o = o.wrapping_add(x.wrapping_mul(factor));
            }
        }
    }

    /// The mask of a guard, in the first lanes.
    pub(crate) fn guard(columns: &Columns, guard: Option<usize>) -> Option<&[bool]> {
        guard.map(|g| &columns.guards[g][..])
    }

    /// Executes all actions in the first `n` lanes.
    pub(crate) fn run(&self, columns: &mut Columns, n: usize, arrays: Arrays<'_>) {
        let mut at = std::mem::take(&mut columns.at);
        for action in &self.actions {
            match action {
                Action::Steps(steps) => self.expression.run(steps.clone(), &mut columns.values, n),
                Action::Quotient { to, of, by } => {
                    Self::number(columns, of, n, &mut at);
                    let to = &mut columns.numbers[*to];
                    to.iter_mut().zip(&at).for_each(|(o, &x)| *o = x.div_euclid(*by));
                }
                Action::Remainder { to, of, by } => {
                    Self::number(columns, of, n, &mut at);
                    let to = &mut columns.numbers[*to];
                    to.iter_mut().zip(&at).for_each(|(o, &x)| *o = x.rem_euclid(*by));
                }
                Action::Value { to, of, low, high } => {
                    let to = &mut columns.numbers[*to][..n];
                    with_buffer!(&columns.values[*of], x => {
                        to.iter_mut().zip(x).for_each(|(o, &x)| *o = whole(x).clamp(*low, *high));
                    });
                }
                Action::Guard { to, all } => {
                    columns.guards[*to][..n].fill(true);
                    for (number, low, high) in all {
                        Self::number(columns, number, n, &mut at);
                        let to = &mut columns.guards[*to];
                        to.iter_mut().zip(&at).for_each(|(o, x)| *o &= (low..high).contains(&x));
                    }
                }
                Action::Load { to, from, at: number, guard } => {
                    Self::number(columns, number, n, &mut at);
                    let mask = guard.map(|g| &columns.guards[g][..]);
                    arrays.read(*from, &at, mask, &mut columns.values[*to]);
                }
                Action::Constant { to, literal, at: number } => {
                    Self::number(columns, number, n, &mut at);
                    let array = literal.as_array().expect("invariant: looked at when the code was made");
                    let count = array.buffer.len();
                    let inside: Vec<bool> =
                        at.iter().map(|&at| usize::try_from(at).is_ok_and(|at| at < count)).collect();
                    gather(&array.buffer, &at, Some(&inside), &mut columns.values[*to]);
                }
                Action::Count { to, of } => {
                    Self::number(columns, of, n, &mut at);
                    let to = i64::slice_mut(&mut columns.values[*to]).expect("invariant: counted in s64");
                    to[..n].copy_from_slice(&at);
                }
                Action::Select { to, guard, yes, no } => {
                    let mut out = std::mem::replace(&mut columns.values[*to], Buffer::Pred(Vec::new()));
                    copy(&columns.values[*no], 0, &mut out, 0, n);
                    let numbers = 0..n as i64;
                    at.clear();
                    at.extend(numbers);
                    spread(&mut out, &at, Some(&columns.guards[*guard]), &columns.values[*yes]);
                    columns.values[*to] = out;
                }
                Action::Pack { to, parts } => {
                    let mut all = vec![0u128; n];
                    let mut low = 0;
                    for &part in parts {
                        let width = columns.values[part].element_type().bits();
                        or_bits(&columns.values[part], &mut all, low, width);
                        low += width;
                    }
                    set_bits(&all, &mut columns.values[*to]);
                }
                Action::Unpack { to, whole, part } => {
                    Self::number(columns, part, n, &mut at);
                    let mut all = vec![0u128; n];
                    let width = columns.values[*whole].element_type().bits();
                    or_bits(&columns.values[*whole], &mut all, 0, width);
                    let bits = i64::from(columns.values[*to].element_type().bits());
                    for (word, part) in all.iter_mut().zip(&at) {
                        *word = u32::try_from(part * bits).map_or(0, |by| word.checked_shr(by).unwrap_or(0));
                    }
                    set_bits(&all, &mut columns.values[*to]);
                }
            }
        }
        columns.at = at;
    }
}

/// An integer as an index, saturated.
fn whole<T: Scalar + Bits>(x: T) -> i64 {
    if T::TYPE == ElementType::U64 {
        return i64::try_from(x.bits()).unwrap_or(i64::MAX);
    }
    convert::<T, i64>(x)
}

/// Adds the `width` bits of elements to words, from bit `low` on.
fn or_bits(from: &Buffer, words: &mut [u128], low: u32, width: u32) {
    let mask = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
    with_buffer!(from, from => {
        for (word, &x) in words.iter_mut().zip(from) {
            *word |= (x.bits() & mask) << low;
        }
    });
}

/// The elements of these bits.
fn set_bits(words: &[u128], to: &mut Buffer) {
    with_buffer!(to, to => to.iter_mut().zip(words).for_each(|(o, &word)| *o = Bits::from_bits(word)));
}

/// Lowers an expression to code.
#[derive(Debug)]
pub(crate) struct Builder<'t, 'm> {
    expr: &'t Expr<'m>,
    code: Code,
    nodes: FxHashMap<NodeId, Register>,
    atoms: FxHashMap<AtomId, usize>,
    guards: FxHashMap<GuardId, usize>,
    given: FxHashMap<u32, Register>,
    /// The number of bytecode steps that are in actions already.
    taken: usize,
}

impl<'t, 'm> Builder<'t, 'm> {
    /// For this expression.
    pub(crate) fn new(expr: &'t Expr<'m>) -> Self {
        Self {
            expr,
            code: Code::default(),
            nodes: FxHashMap::default(),
            atoms: FxHashMap::default(),
            guards: FxHashMap::default(),
            given: FxHashMap::default(),
            taken: 0,
        }
    }

    /// The code.
    pub(crate) fn finish(mut self) -> Code {
        self.take_steps();
        self.code
    }

    /// The register of a value that the caller provides.
    pub(crate) fn given(&mut self, number: u32, ty: ElementType) -> Register {
        let expression = &mut self.code.expression;
        *self.given.entry(number).or_insert_with(|| expression.input(ty))
    }

    /// The registers of nodes.
    pub(crate) fn values(&mut self, nodes: &[NodeId]) -> Result<Vec<Register>, Unsupported> {
        self.all(nodes.iter().copied())?;
        Ok(nodes.iter().map(|n| self.nodes[n]).collect())
    }

    /// The columns and factors of an affine expression.
    pub(crate) fn number(&mut self, x: &Affine) -> Result<Number, Unsupported> {
        let mut needed = Vec::new();
        self.expr.values_in(x, &mut |n| needed.push(n));
        self.all(needed.into_iter())?;
        Ok(self.known_number(x))
    }

    /// The column of a guard; `None`: it always holds.
    pub(crate) fn guard(&mut self, guard: GuardId) -> Result<Option<usize>, Unsupported> {
        let mut needed = Vec::new();
        self.expr.values_in_guard(guard, &mut |n| needed.push(n));
        self.all(needed.into_iter())?;
        Ok(self.known_guard(guard))
    }

    /// An elementwise operation of registers.
    pub(crate) fn elementwise(
        &mut self,
        kind: hlo::elementwise::Kind,
        attrs: &hlo::Attrs,
        ty: ElementType,
        operands: &[Register],
    ) -> Option<Register> {
        self.code.expression.elementwise(kind, attrs, ty, operands)
    }

    /// A register converted to another type.
    pub(crate) fn converted(&mut self, from: Register, ty: ElementType) -> Register {
        self.code.expression.converted(from, ty)
    }

    fn all(&mut self, nodes: impl Iterator<Item = NodeId>) -> Result<(), Unsupported> {
        let known = &self.nodes;
        for node in self.expr.reachable_except(nodes, &|n| known.contains_key(&n)) {
            let register = self.node(node)?;
            self.nodes.insert(node, register);
        }
        Ok(())
    }

    /// Emits the bytecode steps so far as an action, before the next one.
    fn take_steps(&mut self) {
        let steps = self.code.expression.steps();
        if steps > self.taken {
            self.code.actions.push(Action::Steps(self.taken..steps));
            self.taken = steps;
        }
    }

    fn act(&mut self, action: Action) {
        self.take_steps();
        self.code.actions.push(action);
    }

    fn known_number(&mut self, x: &Affine) -> Number {
        let terms = x.terms.iter().map(|&(atom, factor)| (self.atom(atom), factor)).collect();
        Number { terms, constant: x.constant }
    }

    fn atom(&mut self, id: AtomId) -> usize {
        if let Some(&column) = self.atoms.get(&id) {
            return column;
        }
        let expr = self.expr;
        let atom = expr.space.atom(id);
        let action = match &atom.def {
            Def::Var(var) => {
                let column = self.column();
                self.code.vars.insert(*var, column);
                self.atoms.insert(id, column);
                return column;
            }
            Def::Div(x, by) => {
                let of = self.known_number(x);
                Action::Quotient { to: self.column(), of, by: *by }
            }
            Def::Mod(x, by) => {
                let of = self.known_number(x);
                Action::Remainder { to: self.column(), of, by: *by }
            }
            Def::Value(node) => {
                let of = self.nodes[node];
                Action::Value { to: self.column(), of, low: atom.low, high: atom.high }
            }
        };
        self.act(action);
        let column = self.code.numbers - 1;
        self.atoms.insert(id, column);
        column
    }

    /// A new index column.
    fn column(&mut self) -> usize {
        self.code.numbers += 1;
        self.code.numbers - 1
    }

    fn known_guard(&mut self, guard: GuardId) -> Option<usize> {
        if guard == ALWAYS {
            return None;
        }
        if let Some(&column) = self.guards.get(&guard) {
            return Some(column);
        }
        let expr = self.expr;
        let all = expr.guards[guard as usize]
            .iter()
            .map(|c| (self.known_number(&c.value), c.low, c.high))
            .collect();
        let to = self.code.guards;
        self.code.guards += 1;
        self.act(Action::Guard { to, all });
        self.guards.insert(guard, to);
        Some(to)
    }

    fn node(&mut self, node: NodeId) -> Result<Register, Unsupported> {
        let expr = self.expr;
        let ty = expr.nodes[node as usize].ty;
        let refuse = |instr: InstrId, why: &str| Unsupported::new(expr.module, instr, why);
        let root = || expr.module.root(expr.module.entry());
        Ok(match &expr.nodes[node as usize].op {
            Op::Load { array, at, guard } => {
                let of = &expr.arrays[*array as usize];
                let (at, guard) = (self.known_number(at), self.known_guard(*guard));
                let own = self.code.expression.input(of.shape.element_type);
                self.act(Action::Load { to: own, from: Storage::of(of.argument), at, guard });
                own
            }
            Op::Constant { instr, at } => {
                let literal = expr.literal(*instr);
                let literal = literal.filter(|l| l.as_array().is_some());
                let literal =
                    literal.ok_or_else(|| refuse(*instr, "a constant whose value is not in the text"))?;
                let at = self.known_number(at);
                let to = self.code.expression.input(ty);
                self.act(Action::Constant { to, literal, at });
                to
            }
            Op::Iota { value } => {
                let of = self.known_number(value);
                let to = self.code.expression.input(ElementType::S64);
                self.act(Action::Count { to, of });
                self.code.expression.converted(to, ty)
            }
            Op::Elementwise { instr, operands } => {
                let operands: Vec<Register> = operands.iter().map(|n| self.nodes[n]).collect();
                let instruction = expr.module.instr(*instr);
                let kind = kind(instruction.opcode);
                let made =
                    kind.and_then(|k| self.code.expression.elementwise(k, &instruction.attrs, ty, &operands));
                made.ok_or_else(|| refuse(*instr, "on these types"))?
            }
            Op::Convert { operand } => self.code.expression.converted(self.nodes[operand], ty),
            Op::ToOrderedInt { .. } | Op::FromOrderedInt { .. } => {
                return Err(refuse(root(), "an extreme in the order of integers, element by element"));
            }
            Op::Select { guard, yes, no } => {
                let (yes, no) = (self.nodes[yes], self.nodes[no]);
                match self.known_guard(*guard) {
                    None => yes,
                    Some(guard) => {
                        let to = self.code.expression.input(ty);
                        self.act(Action::Select { to, guard, yes, no });
                        to
                    }
                }
            }
            Op::BitcastConvert { operand } => self.code.expression.reinterpreted(self.nodes[operand], ty),
            Op::Pack { parts } => {
                let parts = parts.iter().map(|n| self.nodes[n]).collect();
                let to = self.code.expression.input(ty);
                self.act(Action::Pack { to, parts });
                to
            }
            Op::Unpack { whole, part } => {
                let (whole, part) = (self.nodes[whole], self.known_number(part));
                let to = self.code.expression.input(ty);
                self.act(Action::Unpack { to, whole, part });
                to
            }
            Op::SumOfProducts { factors } => {
                let expression = &mut self.code.expression;
                // The sum begins with zero, to which a negative zero adds nothing.
                let mut sum = Some(expression.constant(Buffer::zeros(ty, 1)));
                for pair in factors.chunks_exact(2) {
                    let factors = [self.nodes[&pair[0]], self.nodes[&pair[1]]];
                    let product = expression.binary(Binary::Multiply, ty, factors);
                    sum = sum.zip(product).and_then(|(sum, x)| expression.binary(Binary::Add, ty, [sum, x]));
                }
                sum.ok_or_else(|| refuse(root(), "a sum of products of this type"))?
            }
            Op::Sum { terms } => {
                let terms = [self.nodes[&terms[0]], self.nodes[&terms[1]]];
                let sum = self.code.expression.binary(Binary::Add, ty, terms);
                sum.ok_or_else(|| refuse(root(), "a sum of this type"))?
            }
            Op::Given { number } => self.given(*number, ty),
        })
    }
}
