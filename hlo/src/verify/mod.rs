//! The verifier.
//!
//! **The contract.** A module in which [`verify`] finds no error may be handed to any later stage; none of
//! them panics on it. It checks, in this order, and reports everything it finds:
//!
//! 1. *Structure* (`structure.rs`): there is an entry computation, and nothing calls it; every computation
//!    has a root; parameters are numbered 0, 1, ... without gaps or repetition; operands and control
//!    predecessors are instructions of the same computation that come before their users; no name is given
//!    twice in a computation; computations do not call each other in a cycle. (A signature in a header that
//!    is not that of the instructions is a warning.) Past errors here the rest is not looked at, since it
//!    rests on them.
//! 2. *Shapes* (`shapes.rs`): every shape has a size that fits an `i64` and, if it has a layout, one of its
//!    rank; every opcode has as many operands and all attributes that its row of the table asks for; the
//!    declared shape is the one that [`crate::infer`] finds (XLA's `ShapeVerifier`); literals have the shape
//!    of their instruction; mixed precision, where it is not allowed.
//! 3. *Calls* (`calls.rs`): a fusion owns its computation, in which everything but the root is used;
//!    execution threads; composites; custom calls' layout constraints; aliasing between results and operands.
//! 4. *Collectives* (`collectives.rs`): replica groups and source-target pairs, by group mode.
//! 5. *Channels and asynchronous pairs* (`channels.rs`, `async_pairs.rs`): send and recv, start, update and
//!    done, deadlocks.
//! 6. *Buffers* (`buffers.rs`): values of buffer type have one writer and pass only where they may.
//! 7. *The module's header* (`header.rs`): entry layout, input-output aliasing, donors.
//! 8. *Annotations* (`annotations.rs`): sharding, original values, result accuracy, source locations.
//!
//! The classes are those of XLA's verifier (`xla/service/hlo_verifier.cc`) as it runs on a module that is
//! read from text: layouts are not compared and mixed precision is allowed unless [`VerifyOptions`] asks for
//! more. Beyond XLA, dimension numbers that it only finds out about by crashing are checked here, and so are
//! calls in a cycle.

mod annotations;
mod async_pairs;
mod buffers;
mod calls;
mod channels;
mod collectives;
mod header;
mod shapes;
mod structure;

use crate::attrs::AttrKey;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ids::{ComputationId, InstrId};
use crate::module::{Instruction, Module};
use crate::opcode::Opcode;

/// How strict to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyOptions {
    /// Layouts of results must follow from those of operands (after layout assignment).
    pub layout_sensitive: bool,
    /// Float operands of one instruction may differ in type where its rule does not say otherwise.
    pub allow_mixed_precision: bool,
    /// Unbounded dynamic dimensions may occur.
    pub allow_unbounded: bool,
    /// Called computations run on the thread of their caller.
    pub execution_threads: bool,
    /// Scheduled modules are searched for deadlocks of sends, receives and other collectives.
    pub deadlocks: bool,
}

impl VerifyOptions {
    /// For a module that was read from text.
    pub const TEXT: VerifyOptions = VerifyOptions {
        layout_sensitive: false,
        allow_mixed_precision: true,
        allow_unbounded: false,
        execution_threads: false,
        deadlocks: false,
    };
}

/// Checks a module that was read from text.
pub fn verify(module: &Module) -> Diagnostics {
    verify_with(module, &VerifyOptions::TEXT)
}

/// Checks a module.
pub fn verify_with(module: &Module, options: &VerifyOptions) -> Diagnostics {
    let mut v = Verifier {
        module,
        options,
        diagnostics: Diagnostics::new(),
        position: vec![u32::MAX; module.instruction_capacity()],
        callers: vec![Vec::new(); module.computation_capacity()],
    };
    structure::check(&mut v);
    if v.diagnostics.has_errors() {
        // The rest rests on the structure; but shapes can be looked at where an instruction's own operands
        // are fine.
        if v.module.entry_or_none().is_some() {
            shapes::check(&mut v, shapes::Scope::OnlySoundOperands);
        }
    } else {
        shapes::check(&mut v, shapes::Scope::Everything);
        calls::check(&mut v);
        collectives::check(&mut v);
        async_pairs::check(&mut v);
        channels::check(&mut v);
        buffers::check(&mut v);
        header::check(&mut v);
        annotations::check(&mut v);
    }
    v.diagnostics.sort();
    v.diagnostics
}

/// The state that checks share.
struct Verifier<'m> {
    module: &'m Module,
    options: &'m VerifyOptions,
    diagnostics: Diagnostics,
    /// Position of each instruction in its computation; `u32::MAX` for removed ones.
    position: Vec<u32>,
    /// Instructions that name each computation, once for each time they do.
    callers: Vec<Vec<InstrId>>,
}

impl<'m> Verifier<'m> {
    /// Reports an error at an instruction; the message is prefixed with the opcode.
    fn error(&mut self, id: InstrId, code: Code, message: impl Into<String>) {
        self.report(id, code, message, |d| d);
    }

    /// Like [`Verifier::error`], with labels and notes added by `more`.
    fn report(
        &mut self,
        id: InstrId,
        code: Code,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let instr = self.module.instr(id);
        let message = format!("{}: {}", instr.opcode, message.into());
        let mut d = Diagnostic::error(code, instr.span, message);
        if instr.span.is_none() {
            d = d.note(format!("in instruction %{}", instr.name));
        }
        self.diagnostics.push(more(d));
    }

    /// Calls `f` with each instruction of the module, in order.
    fn for_each(&mut self, mut f: impl FnMut(&mut Self, InstrId, &'m Instruction)) {
        let module = self.module;
        for &c in module.computations() {
            for id in module.instructions(c) {
                f(self, id, module.instr(id));
            }
        }
    }

    /// The computations that an `async-start` wraps.
    fn is_async_computation(&self, c: ComputationId) -> bool {
        self.callers[c.index()].iter().any(|&i| self.module.instr(i).opcode == Opcode::AsyncStart)
    }

    /// The `channel_id` of an instruction; 0 is how older text says there is none.
    fn channel(&self, id: InstrId) -> Option<i64> {
        self.module.instr(id).attrs.int(AttrKey::ChannelId).filter(|&c| c != 0)
    }
}

/// `1 operand`, `2 operands`.
fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("{n} {noun}") } else { format!("{n} {noun}s") }
}
