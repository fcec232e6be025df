//! Debugging information (DWARF): which line of the program's text machine code comes from.
//!
//! A kernel is a function of the name of its instruction, at the line of that; inside of it each elementwise
//! operation has the line of its own instruction. **Invariant:** it changes no instruction of the code.

use hlo::Span;
use hlo::span::LineIndex;
use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DIFlags, DIFlagsConstants, DILocation, DISubprogram, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder,
};
use inkwell::module::FlagBehavior;
use inkwell::values::FunctionValue;

use super::{Data, Emit, Result};

/// The version of the information that modules carry.
const VERSION: u64 = 3;
const DWARF: u64 = 4;

/// Locations in the source text, as debuggers see them.
#[derive(Debug)]
pub struct Lines<'ctx> {
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    file: DIFile<'ctx>,
    context: &'ctx inkwell::context::Context,
    index: LineIndex,
    text: String,
}

impl<'ctx> Lines<'ctx> {
    /// Of a module made from the text of a file.
    pub fn new(data: Data<'_, 'ctx>, file: &str, text: &str) -> Self {
        let Data { context, module } = data;
        let number = |n| context.i32_type().const_int(n, false);
        module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, number(VERSION));
        module.add_basic_value_flag("Dwarf Version", FlagBehavior::Warning, number(DWARF));
        let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
        let (builder, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C,
            name,
            folder,
            "hlo",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::Full,
            0,
            false,
            true,
            "",
            "",
        );
        let file = unit.get_file();
        Self { builder, unit, file, context, index: LineIndex::new(text), text: text.to_owned() }
    }

    fn line(&self, span: Span) -> (u32, u32) {
        if span.is_none() { (0, 0) } else { self.index.line_column(&self.text, span.start) }
    }

    fn at(&self, span: Span, scope: DISubprogram<'ctx>) -> DILocation<'ctx> {
        let (line, column) = self.line(span);
        self.builder.create_debug_location(self.context, line, column, scope.as_debug_info_scope(), None)
    }

    /// Says what a function is: gives its name and its line to debuggers, and to those of its instructions
    /// that have no location yet.
    pub fn begin(&self, function: FunctionValue<'ctx>, name: &str, span: Span) {
        let (line, _) = self.line(span);
        let ty = self.builder.create_subroutine_type(self.file, None, &[], DIFlags::PUBLIC);
        let symbol = function.get_name().to_string_lossy().into_owned();
        let scope = self.unit.as_debug_info_scope();
        let subprogram = self.builder.create_function(
            scope,
            name,
            Some(&symbol),
            self.file,
            line,
            ty,
            true,
            true,
            line,
            DIFlags::PUBLIC,
            true,
        );
        function.set_subprogram(subprogram);
    }

    /// Gives the line of the function to instructions that have none.
    pub fn end(&self, function: FunctionValue<'ctx>, span: Span) {
        let Some(scope) = function.get_subprogram() else { return };
        let location = self.at(span, scope);
        for block in function.get_basic_block_iter() {
            for instruction in block.get_instructions().filter(|i| i.get_debug_location().is_none()) {
                instruction.set_debug_location(Some(location));
            }
        }
    }

    /// Ends the information of the module.
    pub fn finish(&self) {
        self.builder.finalize();
    }
}

impl<'ctx> Emit<'_, 'ctx> {
    /// Sets the source location of what is emitted.
    pub fn at_span<T>(&self, span: Span, emit: impl FnOnce() -> Result<T>) -> Result<T> {
        let (Some(lines), Some(scope)) = (self.lines, self.function.get_subprogram()) else { return emit() };
        if span.is_none() {
            return emit();
        }
        let before = self.builder.get_current_debug_location();
        self.builder.set_current_debug_location(lines.at(span, scope));
        let emitted = emit();
        self.go_on_at(before);
        emitted
    }

    /// What is emitted belongs to another function.
    pub(super) fn apart<T>(&self, emit: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.builder.get_current_debug_location();
        self.builder.unset_current_debug_location();
        let emitted = emit();
        self.go_on_at(before);
        emitted
    }

    fn go_on_at(&self, location: Option<DILocation<'ctx>>) {
        match location {
            Some(location) => self.builder.set_current_debug_location(location),
            None => self.builder.unset_current_debug_location(),
        }
    }
}
