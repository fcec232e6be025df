//! HLO text from the IR.
//!
//! [`print_module`] with [`PrintOptions::source`] gives back the text that a module was read from, byte for
//! byte if a printer of XLA's wrote it. The order and spelling of everything are XLA's (`Print` in
//! `xla/hlo/ir/hlo_module.cc`, `hlo_computation.cc`, `hlo_instruction.cc`); instructions come in the order of
//! the module. The other presets follow `xla/hlo/ir/hlo_print_options.h`; they too leave out what says only
//! what is assumed without it.
//!
//! Printing never fails and never panics, also on modules that do not verify: it is what diagnostics are made
//! with.

mod attrs;
mod instruction;
mod literal;
mod metadata;
mod module;
mod nested;
mod normalize;
mod number;
mod shape;
mod sharding;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use rustc_hash::FxHashMap;

use self::instruction::AsyncSugar;
pub use self::nested::nested_instructions;
pub use self::shape::ShapeStyle;
use self::text::Text;
use crate::ids::{ComputationId, InstrId};
use crate::literal::Literal;
use crate::module::{Module, TextStyle};
use crate::shape::{ArrayShape, Shape};

/// A module's or pass's name in the name of a file, as XLA's dumps have it: other characters than ASCII
/// letters, digits, `-`, `.` and `_` become `_`.
pub fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

/// How computations that an instruction calls are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subcomputations {
    /// `to_apply=%add`
    Names,
    /// The whole body in place, as far as [`MAX_NESTED_BODIES`] and [`MAX_NESTED_TEXT`] allow.
    Bodies,
}

/// Which names are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Names {
    /// The module's own.
    Given,
    /// `tmp_0`, `tmp_1`, ... for the instructions of each computation.
    CanonicalInstructions,
    /// Those, `c_0`, `c_1`, ... for computations, and none for the module. An elided constant still shows its
    /// name, because its value follows from it.
    Canonical,
}

/// Bodies nest no deeper than this in [`Subcomputations::Bodies`]; inner ones are names.
pub const MAX_NESTED_BODIES: usize = 64;

/// After this much text bodies are names: one called twice at every level would double the text with each
/// level.
pub const MAX_NESTED_TEXT: usize = 1 << 28;

/// What to print and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// The `HloModule` line and the tables of source locations.
    pub header: bool,
    /// `%` before names.
    pub percent: bool,
    /// The shapes of operands.
    pub operand_shapes: bool,
    /// `/*index=5*/` before every fifth operand.
    pub operand_indices: bool,
    /// `(p: f32[2]) -> f32[2]` of computations.
    pub program_shape: bool,
    /// The layouts of results and operands. (Those in `entry_computation_layout` are always there.)
    pub layouts: bool,
    /// `} // name` after computations of more than five instructions.
    pub name_after_brace: bool,
    /// `%t#0` instead of get-tuple-elements that carry nothing else.
    pub compact_gte: bool,
    /// `negate-start(...)` instead of an `async-start` of a computation of one instruction.
    pub async_sugar: bool,
    /// Leave out constants of more than this many elements, and all tuples, as XLA does with 10.
    pub elide: Option<usize>,
    /// `metadata`, and the tables that it refers to.
    pub metadata: bool,
    /// `backend_config`.
    pub backend_config: bool,
    /// `control-predecessors`.
    pub control_predecessors: bool,
    /// Called computations.
    pub subcomputations: Subcomputations,
    /// Names.
    pub names: Names,
    /// As XLA does after its own parser: attributes with a value that is assumed without them are left out,
    /// some that are assumed are added, and spellings of the same are made one.
    pub normalize: bool,
    /// End with an empty line.
    pub final_blank_line: bool,
}

impl PrintOptions {
    /// XLA's default, the long form of dumps, with constants in full.
    pub const LONG: PrintOptions = PrintOptions {
        header: true,
        percent: true,
        operand_shapes: false,
        operand_indices: true,
        program_shape: true,
        layouts: true,
        name_after_brace: false,
        compact_gte: false,
        async_sugar: true,
        elide: None,
        metadata: true,
        backend_config: true,
        control_predecessors: true,
        subcomputations: Subcomputations::Names,
        names: Names::Given,
        normalize: true,
        final_blank_line: true,
    };

    /// XLA's `ShortParsable`: what tests and bug reports show.
    pub const SHORT_PARSABLE: PrintOptions = PrintOptions {
        percent: false,
        operand_indices: false,
        program_shape: false,
        metadata: false,
        control_predecessors: false,
        ..Self::LONG
    };

    /// XLA's `Canonical`: equal for modules that differ only in names of instructions and the like.
    pub const CANONICAL: PrintOptions = PrintOptions {
        operand_shapes: true,
        backend_config: false,
        elide: Some(10),
        subcomputations: Subcomputations::Bodies,
        names: Names::CanonicalInstructions,
        ..Self::SHORT_PARSABLE
    };

    /// The style of the text that the module was read from, nothing left out or normalized.
    pub fn source(module: &Module) -> Self {
        Self::with_style(module.text_style)
    }

    /// The same for a given style.
    pub const fn with_style(style: TextStyle) -> Self {
        // Exhaustive, so that a new field is not forgotten here.
        let TextStyle {
            header,
            percent,
            operand_shapes,
            operand_indices,
            program_shape,
            layouts,
            name_after_brace,
            compact_gte,
            async_sugar,
            final_blank_line,
        } = style;
        PrintOptions {
            header,
            percent,
            operand_shapes,
            operand_indices,
            program_shape,
            layouts,
            name_after_brace,
            compact_gte,
            async_sugar,
            final_blank_line,
            normalize: false,
            ..Self::LONG
        }
    }

    /// With constants of more than `limit` elements left out.
    #[must_use]
    pub const fn eliding(self, limit: usize) -> Self {
        Self { elide: Some(limit), ..self }
    }
}

/// A module as text.
pub fn print_module(module: &Module, options: &PrintOptions) -> String {
    let mut text = Text::new();
    // A guess, to grow seldom.
    text.reserve(module.instruction_capacity() * 128);
    let mut printer = Printer::new(module, options, text);
    printer.write_module();
    printer.text.into_string()
}

/// Writes a module as text to `sink` in pieces of about 64 KiB; a constant of any size needs no more memory
/// than that.
///
/// # Errors
/// The sink's.
pub fn write_module(module: &Module, options: &PrintOptions, sink: &mut dyn fmt::Write) -> fmt::Result {
    let mut printer = Printer::new(module, options, Text::to_sink(sink));
    printer.write_module();
    printer.text.finish()
}

/// A computation as text, from its name to its closing brace.
pub fn print_computation(module: &Module, computation: ComputationId, options: &PrintOptions) -> String {
    let mut printer = Printer::new(module, options, Text::new());
    printer.write_computation(computation, module::Context::Module);
    printer.text.into_string()
}

/// An instruction as text on one line, without `ROOT`.
pub fn print_instruction(module: &Module, instruction: InstrId, options: &PrintOptions) -> String {
    let mut printer = Printer::new(module, options, Text::new());
    printer.write_instruction(instruction);
    printer.text.into_string()
}

/// A literal as text on one line.
pub fn print_literal(literal: &Literal) -> String {
    let mut text = Text::new();
    literal::write_literal(&mut text, literal);
    text.into_string()
}

/// A shape as text.
pub fn print_shape(shape: &Shape, style: ShapeStyle) -> String {
    let mut text = Text::new();
    shape::write_shape(&mut text, shape, style);
    text.into_string()
}

/// The shape of an array as text.
pub fn print_array_shape(shape: &ArrayShape, style: ShapeStyle) -> String {
    let mut text = Text::new();
    shape::write_array_shape(&mut text, shape, style);
    text.into_string()
}

/// A sharding as text, with its braces and without metadata.
pub fn print_sharding(sharding: &crate::attrs::Sharding) -> String {
    let mut text = Text::new();
    sharding::write_sharding(&mut text, sharding, false);
    text.into_string()
}

/// What printing a module carries around.
struct Printer<'m> {
    module: &'m Module,
    options: PrintOptions,
    text: Text<'m>,
    /// Computations that surround the one being printed, for indentation and the limit on nesting.
    nesting: usize,
    /// Which async operations are printed as what they wrap.
    sugar: AsyncSugar,
    /// Canonical numbers of instructions within their computations, and of computations; empty with
    /// [`Names::Given`].
    instruction_numbers: Vec<u32>,
    computation_numbers: Vec<u32>,
    /// Those whose ordinal must be said.
    moved_rng: FxHashMap<InstrId, i64>,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, options: &PrintOptions, text: Text<'m>) -> Self {
        let mut printer = Self {
            module,
            options: *options,
            text,
            nesting: 0,
            sugar: AsyncSugar::default(),
            instruction_numbers: Vec::new(),
            computation_numbers: Vec::new(),
            moved_rng: crate::rng_ordinal::moved(module),
        };
        if options.async_sugar {
            printer.sugar = AsyncSugar::of(module, !options.normalize);
        }
        if options.names != Names::Given {
            printer.number();
        }
        printer
    }

    fn number(&mut self) {
        self.instruction_numbers.resize(self.module.instruction_capacity(), 0);
        self.computation_numbers.resize(self.module.computation_capacity(), 0);
        for (n, &c) in self.module.computations().iter().enumerate() {
            self.computation_numbers[c.index()] = n as u32;
            for (n, i) in self.module.instructions(c).enumerate() {
                self.instruction_numbers[i.index()] = n as u32;
            }
        }
    }

    fn shape_style(&self) -> ShapeStyle {
        if self.options.layouts { ShapeStyle::WithLayout } else { ShapeStyle::WithoutLayout }
    }

    #[inline]
    fn write_instruction_name(&mut self, id: InstrId) {
        if self.options.percent {
            self.text.byte(b'%');
        }
        match self.options.names {
            Names::Given => self.text.str(&self.module.instr(id).name),
            Names::CanonicalInstructions | Names::Canonical => {
                self.text.str("tmp_");
                self.text.uint(u64::from(self.instruction_numbers[id.index()]));
            }
        }
    }

    fn write_computation_name(&mut self, id: ComputationId) {
        if self.options.percent {
            self.text.byte(b'%');
        }
        match self.options.names {
            Names::Given | Names::CanonicalInstructions => self.text.str(&self.module.computation(id).name),
            Names::Canonical => {
                self.text.str("c_");
                self.text.uint(u64::from(self.computation_numbers[id.index()]));
            }
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.nesting {
            self.text.str("  ");
        }
    }
}
