//! How an object says which operations of the library it calls.
//!
//! A line with the version, one with the number of operations, one for each with the names of its computation
//! and its instruction and the bytes of scratch memory that it has, then the module as text, without the
//! values of its larger constants: operations are made of shapes and attributes.
//!
//! An operation is decided by the machine on which it is executed, which may have other vectors than those
//! that the object was compiled for: it may need more scratch memory than it has there, and packs constant
//! operands itself.

use std::fmt::Write;
use std::sync::OnceLock;

use hlo::print::{PrintOptions, print_module};
use hlo::{InstrId, Module, Opcode};
use hlo_codegen::plan::lower::{Lowering, decide};
use hlo_codegen::runtime::arena::Memory;
use hlo_library::LibraryCall;
use hlo_library_base::PREPARED_OPERAND;
use hlo_library_base::pool::Pool;

const FIRST: &str = "hlo-ahead 2";

/// An operation as an object has it.
#[derive(Debug)]
pub struct Described {
    /// As this machine executes it.
    pub call: LibraryCall,
    /// Bytes of scratch memory that the object has for it.
    pub scratch_bytes: u64,
    /// Whether [`PREPARED_OPERAND`] is a constant of the program.
    pub constant: bool,
    /// That operand in packed form, once a call needed it. `None`: calls do without.
    packed: OnceLock<Option<Memory>>,
}

impl Described {
    /// The packed form of a constant operand, which the first call makes; null: none is worth it, or there is
    /// no memory for it.
    ///
    /// # Safety
    /// The arguments are those of a call of the operation.
    pub(crate) unsafe fn prepared(&self, arguments: &[*mut u8]) -> *const u8 {
        let pack = || {
            let known: Vec<bool> = (0..arguments.len()).map(|n| n == PREPARED_OPERAND).collect();
            let memory = Memory::new(self.call.prepared_bytes(&known)?).ok()?;
            let operands: Vec<*const u8> = arguments.iter().map(|a| a.cast_const()).collect();
            // On this thread alone: those of the caller's pool may be waiting for this very operand.
            let pool = Pool::new(1);
            // SAFETY: the caller's word; there are as many bytes as were asked for, and what is constant has
            // the same bytes in each call.
            unsafe { self.call.prepare(&operands, memory.start(), &pool) };
            Some(memory)
        };
        if !self.constant {
            return std::ptr::null();
        }
        self.packed.get_or_init(pack).as_ref().map_or(std::ptr::null(), |memory| memory.start().cast_const())
    }
}

/// Constants of more elements are left out.
const FEW: usize = 10;

/// The description of operations of a module.
pub fn of(module: &Module, operations: &[InstrId]) -> String {
    let mut text = format!("{FIRST}\n{}\n", operations.len());
    for &id in operations {
        let instr = module.instr(id);
        let bytes = operation(module, id).map_or(0, |call| call.scratch_bytes());
        let _ = writeln!(text, "{}\t{}\t{bytes}", module.computation(instr.parent()).name, instr.name);
    }
    let print = PrintOptions { normalize: false, ..PrintOptions::LONG }.eliding(FEW);
    text.push_str(&print_module(module, &print));
    text
}

/// The operation of the library that executes an instruction of a fused and scheduled module.
pub fn operation(module: &Module, id: InstrId) -> Option<LibraryCall> {
    Some(called(module, id)?.0)
}

/// The same, and whether its [`PREPARED_OPERAND`] is a constant.
fn called(module: &Module, id: InstrId) -> Option<(LibraryCall, bool)> {
    let operands = module.instr(id).operands();
    let is_constant = |operand: Option<&InstrId>| {
        operand.is_some_and(|&operand| module.instr(operand).opcode == Opcode::Constant)
    };
    match decide(module, id, false) {
        Ok(Lowering::Library(library)) => Some((*library, is_constant(operands.get(PREPARED_OPERAND)))),
        Ok(Lowering::Hero(hero)) => {
            let operand = hero.operands.get(PREPARED_OPERAND).and_then(|&n| operands.get(n));
            Some((hero.library, is_constant(operand)))
        }
        Ok(
            Lowering::Nothing
            | Lowering::Kernel(_)
            | Lowering::Copy
            | Lowering::While
            | Lowering::Conditional
            | Lowering::Call
            | Lowering::Interpret,
        )
        | Err(_) => None,
    }
}

/// The operations that a description names, in order. Errors: what is wrong with it.
pub fn operations(text: &str) -> Result<Vec<Described>, String> {
    let mut rest = text;
    let mut line = || {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        Some(line)
    };
    if line() != Some(FIRST) {
        return Err("it does not begin as a description does".to_owned());
    }
    let count = line().and_then(|n| n.parse::<usize>().ok()).ok_or("it has no number of operations")?;
    let mut names = Vec::new();
    for _ in 0..count {
        let (computation, rest) =
            line().and_then(|l| l.split_once('\t')).ok_or("an operation has no name")?;
        let (instr, bytes) = rest.split_once('\t').ok_or("an operation has no scratch memory")?;
        let bytes = bytes.parse::<u64>().map_err(|_| "scratch memory that is no number of bytes")?;
        names.push((computation, instr, bytes));
    }
    let module = hlo_parser::parse_module(rest, &hlo_parser::ParseOptions::default()).module;
    let module = module.ok_or("its module does not parse")?;
    if hlo::verify::verify(&module).has_errors() {
        return Err("its module does not verify".to_owned());
    }
    let find = |(computation, instr, scratch_bytes): (&str, &str, u64)| {
        let same = |c: &&hlo::ComputationId| &*module.computation(**c).name == computation;
        let computation = *module.computations().iter().find(same)?;
        let id = module.instructions(computation).find(|&id| &*module.instr(id).name == instr)?;
        let (call, constant) = called(&module, id)?;
        Some(Described { call, scratch_bytes, constant, packed: OnceLock::new() })
    };
    let made = names.into_iter().map(|name| find(name).ok_or(format!("there is no operation {}", name.1)));
    made.collect()
}
