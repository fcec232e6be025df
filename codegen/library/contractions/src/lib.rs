//! Contractions as library calls: products of matrices and convolutions, in the element type's own
//! arithmetic.
//!
//! The strategy of a [`Contraction`] depends on shapes, types and the machine; the modules `dot` and
//! `convolution` have tables of them.

#![allow(
    unsafe_code,
    reason = "operations on raw memory, with the instructions of the machine: library calls are the layer for it"
)]

mod convolution;
mod dot;

use hlo::{InstrId, Module, Opcode};
use hlo_library_base::pool::Pool;
use hlo_library_base::{Call, Operation, Prepared, Unsupported};

use convolution::Convolution;
use dot::Dot;
use dot::ragged::RaggedDot;
use dot::scaled::ScaledDot;
use dot::view::View;

/// A contraction and all of its static facts.
#[derive(Clone, Debug)]
pub struct Contraction(Kind);

/// The contractions, by opcode.
#[derive(Clone, Debug)]
enum Kind {
    Convolution(Box<Convolution>),
    Dot(Box<Dot>),
    RaggedDot(Box<RaggedDot>),
    ScaledDot(Box<ScaledDot>),
}

impl Contraction {
    /// The contraction that an instruction is; `None` if its opcode is none. Errors: a case of it that is not
    /// supported.
    pub fn of(module: &Module, id: InstrId) -> Option<Result<Contraction, Unsupported>> {
        // Not a dispatch: whatever is not here is no contraction.
        let kind = match module.instr(id).opcode {
            Opcode::Convolution => Convolution::of(module, id).map(|op| Kind::Convolution(Box::new(op))),
            Opcode::Dot => Dot::of(module, id).map(|op| Kind::Dot(Box::new(op))),
            Opcode::RaggedDot => RaggedDot::of(module, id).map(|op| Kind::RaggedDot(Box::new(op))),
            Opcode::ScaledDot => ScaledDot::of(module, id).map(|op| Kind::ScaledDot(Box::new(op))),
            _others => return None,
        };
        Some(kind.map(Contraction))
    }

    /// The contraction that is the hero of a fusion, and for each of its arguments the number of the fusion's
    /// operand: data movement and widening between operand and hero are part of how the operation reads it.
    /// `None` if the opcode has no epilogue.
    pub fn of_hero(module: &Module, hero: InstrId) -> Option<Result<(Contraction, Vec<usize>), Unsupported>> {
        let opcode = module.instr(hero).opcode;
        if opcode != Opcode::Dot && opcode != Opcode::Convolution {
            return None;
        }
        let operands = module.instr(hero).operands();
        let views = || -> Result<[View; 2], Unsupported> {
            Ok([View::of(module, operands[0])?, View::of(module, operands[1])?])
        };
        Some(views().and_then(|views| {
            let parameters = views.iter().map(|view| view.parameter).collect();
            let kind = if opcode == Opcode::Dot {
                Kind::Dot(Box::new(Dot::of_views(module, hero, views)?))
            } else {
                Kind::Convolution(Box::new(Convolution::of_views(module, hero, views)?))
            };
            Ok((Contraction(kind), parameters))
        }))
    }

    fn operation(&self) -> &dyn Operation {
        match &self.0 {
            Kind::Convolution(op) => &**op,
            Kind::Dot(op) => &**op,
            Kind::RaggedDot(op) => &**op,
            Kind::ScaledDot(op) => &**op,
        }
    }
}

impl Operation for Contraction {
    fn strategy(&self) -> &'static str {
        self.operation().strategy()
    }

    fn scratch_bytes(&self) -> u64 {
        self.operation().scratch_bytes()
    }

    fn cost(&self) -> (u64, u64) {
        self.operation().cost()
    }

    fn prepared_bytes(&self, constant: &[bool]) -> Option<u64> {
        self.operation().prepared_bytes(constant)
    }

    unsafe fn prepare(&self, arguments: &[*const u8], to: *mut u8, pool: &Pool) -> Prepared {
        // SAFETY: as the caller says.
        unsafe { self.operation().prepare(arguments, to, pool) }
    }

    unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: as the caller says.
        unsafe { self.operation().run(call) }
    }
}
