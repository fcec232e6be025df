//! Sums of a form that overflow in some order, and runs of the form in which they do.
//!
//! A compiler may add up the terms of a sum in any order. Where the magnitudes of its terms add up to more than
//! the largest number of its type, some order overflows, although the sum does not. Such sums are found by the
//! certified hard bound of each instruction on the reference's operands: it is infinite there. In the runs
//! they are infinite, or NaN, each in its own way.
//!
//! **Invariant:** bounds start afresh behind each instruction, so that what is found is that instruction's own
//! and not what earlier roundings come to.

use std::iter::Enumerate;
use std::sync::Arc;

use hlo::elided::splitmix64;
use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, Buffer, InstrId, Module, Opcode, with_buffer};
use hlo_certify::bounds::{At, Tree, Visitor, certify};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Allowances, Inputs, RunOptions};
use hlo_execution::element::Number;
use hlo_execution::format::Format;
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Tensor, Value};
use rustc_hash::FxHashMap;

use super::dumps::finished;

/// The number of runs: in the first three all such sums overflow alike, in the others each at random.
const RUNS: u64 = 6;

/// Liberties of compilers with sums that a form does not show.
const LIBERTIES: Allowances = Allowances {
    narrow_accumulator: true,
    reorder_regions: true,
    decompositions: true,
    ..Allowances::STRICT
};

/// An execution of an instruction.
type Execution = (Device, InstrId, u64);

/// Of each array of its result the elements that overflow in some order.
type Elements = Vec<Vec<usize>>;

/// The sums of a form that overflow in some order.
#[derive(Debug)]
pub struct Orders {
    sums: FxHashMap<Execution, Elements>,
}

impl Orders {
    /// `None` if there are none, or bounds cannot be worked out.
    pub fn of(module: &Module, inputs: Inputs, options: &RunOptions) -> Option<Orders> {
        let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
        if !all.any(|id| adds_up(module, id)) {
            return None;
        }
        let mut finder = Finder { module, sums: FxHashMap::default() };
        certify(module, inputs, options, LIBERTIES, &mut finder).ok()?;
        (!finder.sums.is_empty()).then_some(Orders { sums: finder.sums })
    }

    /// The results of runs in which they overflow, of those runs that end.
    pub fn results(
        self,
        module: &Module,
        inputs: &dyn Fn() -> Option<Inputs>,
        options: &RunOptions,
    ) -> Vec<Vec<ArrayLiteral>> {
        let sums = Arc::new(self.sums);
        let run = |seed| {
            let overflowing = Arc::new(Overflowing { sums: sums.clone(), seed });
            finished(interpret(module, inputs()?, options, Some(overflowing))).ok()
        };
        (0..RUNS).filter_map(run).collect()
    }
}

/// Whether an instruction adds something up, or does what nothing is known of: not what moves elements alone.
fn adds_up(module: &Module, id: InstrId) -> bool {
    let opcode = module.instr(id).opcode;
    match opcode.numeric_row() {
        NumericRow::Sum | NumericRow::Region | NumericRow::Opaque => {
            !matches!(opcode, Opcode::Sort | Opcode::Topk)
        }
        NumericRow::Exact | NumericRow::ExactReal(_) | NumericRow::Elementary(_) | NumericRow::Called => {
            false
        }
    }
}

struct Finder<'m> {
    module: &'m Module,
    sums: FxHashMap<Execution, Elements>,
}

impl Visitor for Finder<'_> {
    fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
        if adds_up(self.module, at.instr) {
            let arrays = value.arrays();
            let each = arrays.iter().zip(bounds.arrays()).map(|(t, bounds)| {
                let floats = Format::of(t.element_type()).is_some();
                let overflows = |&i: &usize| bounds.hard.at(i) == f64::INFINITY;
                if floats { (0..t.len()).filter(overflows).collect() } else { Vec::new() }
            });
            let elements: Elements = each.collect();
            if elements.iter().any(|e| !e.is_empty()) {
                self.sums.insert((at.device, at.instr, at.execution), elements);
            }
        }
        true
    }
}

/// Makes the sums overflow.
#[derive(Debug)]
struct Overflowing {
    sums: Arc<FxHashMap<Execution, Elements>>,
    seed: u64,
}

impl Observer for Overflowing {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        let Some(elements) = self.sums.get(&(site.device, site.id, site.execution)) else {
            return Flow::Continue;
        };
        let own = splitmix64(site.id.index() as u64) ^ splitmix64(site.execution);
        let mut arrays = elements.iter().enumerate();
        Flow::Replace(self.overflown(result, &mut arrays, own))
    }
}

impl Overflowing {
    fn overflown(
        &self,
        value: &Value,
        arrays: &mut Enumerate<std::slice::Iter<'_, Vec<usize>>>,
        own: u64,
    ) -> Value {
        match value {
            Value::Array(t) => match arrays.next() {
                Some((k, elements)) if !elements.is_empty() => {
                    let to =
                        |i: usize, x: f64| self.instead(x, own ^ splitmix64((k as u64) << 40 ^ i as u64));
                    let buffer = with_buffer!(t.buffer(), v => replaced(v, elements, &to));
                    Value::Array(Tensor::new(t.dims().to_vec(), buffer))
                }
                Some(_) | None => value.clone(),
            },
            Value::Tuple(parts) => Value::tuple(parts.iter().map(|part| self.overflown(part, arrays, own))),
            Value::Token | Value::Pending(_) => value.clone(),
        }
    }

    /// What is infinite is so in every order, or NaN.
    fn instead(&self, x: f64, own: u64) -> f64 {
        const OVERFLOWS: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        match OVERFLOWS.get(self.seed as usize) {
            Some(&to) => to,
            None => match splitmix64(own ^ splitmix64(self.seed)) as usize % 4 {
                3 => x,
                to => OVERFLOWS[to],
            },
        }
    }
}

fn replaced<T: Number>(v: &[T], elements: &[usize], to: &dyn Fn(usize, f64) -> f64) -> Buffer {
    let mut v = v.to_vec();
    for &i in elements {
        let (re, im) = v[i].parts();
        let re = to(2 * i, re.value());
        let im = im.map_or(0.0, |im| to(2 * i + 1, im.value()));
        v[i] = T::from_parts(re, im);
    }
    T::wrap(v)
}
