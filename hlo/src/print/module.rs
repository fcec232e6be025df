//! The header of a module, and its computations, as text.

use super::Printer;
use super::metadata::{write_frontend_attributes, write_stack_tables};
use super::shape::{ShapeStyle, write_shape};
use super::{MAX_NESTED_BODIES, MAX_NESTED_TEXT, Names, Subcomputations};
use crate::attrs::AliasKind;
use crate::ids::ComputationId;
use crate::module::{ModuleHeader, PropagationFlags};

/// Where a computation is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// On its own.
    Module,
    /// On its own, as the entry.
    Entry,
    /// Instead of its name, without one.
    Nested,
}

impl Printer<'_> {
    /// Appends the module.
    pub(super) fn write_module(&mut self) {
        if self.options.header {
            self.write_header();
        }
        let module = self.module;
        let shown = module.computations().iter().filter(|&&c| !self.sugar.hides(c)).count();
        let mut printed = 0;
        for &c in module.computations() {
            if self.sugar.hides(c) {
                continue;
            }
            let entry = Some(c) == module.entry_or_none();
            self.write_computation(c, if entry { Context::Entry } else { Context::Module });
            printed += 1;
            self.text.str(if printed < shown || self.options.final_blank_line { "\n\n" } else { "\n" });
            self.text.checkpoint();
        }
    }

    fn write_header(&mut self) {
        let normalize = self.options.normalize;
        // Exhaustive, so that a new field is not forgotten here.
        let ModuleHeader {
            is_scheduled,
            input_output_alias,
            buffer_donor,
            alias_passthrough_params,
            entry_computation_layout,
            spmd_propagation_to_parameters,
            spmd_propagation_to_output,
            replica_count,
            num_partitions,
            frontend_attributes,
            origin_recovery_table,
            debug_attributes,
            custom,
        } = &self.module.header;
        let out = &mut self.text;
        out.str("HloModule ");
        if self.options.names != Names::Canonical {
            out.str(&self.module.name);
        }
        if let Some(scheduled) = is_scheduled
            && (*scheduled || !normalize)
        {
            out.str(", is_scheduled=");
            out.bool(*scheduled);
        }
        if !input_output_alias.is_empty() {
            out.str(", input_output_alias={ ");
            out.join(input_output_alias, ", ", |out, alias| {
                out.braced_ints(&alias.output_index);
                out.str(": (");
                out.int(alias.parameter);
                out.str(", ");
                out.braced_ints(&alias.parameter_index);
                if alias.kind_written || normalize {
                    out.str(match alias.kind {
                        AliasKind::May => ", may-alias",
                        AliasKind::Must => ", must-alias",
                    });
                }
                out.byte(b')');
            });
            out.str(" }");
        }
        if !buffer_donor.is_empty() {
            out.str(", buffer_donor={ ");
            out.join(buffer_donor, ", ", |out, donor| {
                out.byte(b'(');
                out.int(donor.parameter);
                out.str(", ");
                out.braced_ints(&donor.parameter_index);
                out.byte(b')');
            });
            out.str(" }");
        }
        if let Some(passthrough) = alias_passthrough_params
            && (*passthrough || !normalize)
        {
            out.str(", alias_passthrough_params=");
            out.bool(*passthrough);
        }
        if let Some(layout) = entry_computation_layout {
            out.str(", entry_computation_layout={(");
            out.indexed_list(&layout.parameters, |out, p| write_shape(out, p, ShapeStyle::WithLayout));
            out.str(")->");
            write_shape(out, &layout.result, ShapeStyle::WithLayout);
            out.byte(b'}');
        }
        for (key, flags) in [
            (", allow_spmd_sharding_propagation_to_parameters=", spmd_propagation_to_parameters),
            (", allow_spmd_sharding_propagation_to_output=", spmd_propagation_to_output),
        ] {
            let flags = match flags {
                None => continue,
                Some(PropagationFlags::All(flag)) if !normalize => {
                    out.str(key);
                    out.bool(*flag);
                    continue;
                }
                Some(PropagationFlags::All(flag)) => std::slice::from_ref(flag),
                Some(PropagationFlags::Each(flags)) => flags,
            };
            if !(normalize && flags == [false]) {
                out.str(key);
                out.byte(b'{');
                out.join(flags, ",", |out, &flag| out.bool(flag));
                out.byte(b'}');
            }
        }
        for (key, count) in [(", replica_count=", replica_count), (", num_partitions=", num_partitions)] {
            if let Some(count) = count
                && (*count != 1 || !normalize)
            {
                out.str(key);
                out.int(*count);
            }
        }
        if let Some(attributes) = frontend_attributes {
            out.str(", frontend_attributes=");
            write_frontend_attributes(out, attributes);
        }
        if let Some(table) = origin_recovery_table {
            out.str(", origin_recovery_table=");
            out.str(table);
            out.byte(b'\n');
        }
        if let Some(table) = debug_attributes {
            out.str(",\ndebug_attributes=");
            out.str(table);
        }
        for (key, value) in custom {
            out.str(", ");
            out.str(key);
            out.byte(b'=');
            out.str(value);
        }
        if self.options.metadata && !self.module.stack_tables.is_empty() {
            write_stack_tables(out, &self.module.stack_tables);
        }
        self.text.str("\n\n");
    }

    /// Appends a computation, up to its closing brace and what follows that on the line.
    pub(super) fn write_computation(&mut self, id: ComputationId, context: Context) {
        let computation = self.module.computation(id);
        self.indent();
        if context == Context::Entry {
            self.text.str("ENTRY ");
        }
        if context != Context::Nested {
            self.write_computation_name(id);
            self.text.byte(b' ');
        }
        if self.options.program_shape {
            self.write_program_shape(id);
        }
        self.text.str("{\n");
        self.nesting += 1;
        let root = computation.root();
        for instruction in self.module.instructions(id) {
            if self.options.compact_gte && self.is_compact_gte(instruction) {
                continue;
            }
            self.indent();
            if Some(instruction) == root {
                self.text.str("ROOT ");
            }
            self.write_instruction(instruction);
            self.text.byte(b'\n');
            self.text.checkpoint();
        }
        self.nesting -= 1;
        self.indent();
        self.text.byte(b'}');
        if let Some(thread) = &computation.execution_thread {
            self.text.str(", execution_thread=");
            self.text.quoted(thread);
        }
        if self.options.name_after_brace && computation.len() > 5 {
            self.text.str(" // ");
            self.text.str(&computation.name);
        }
    }

    /// Appends `(p: f32[2]) -> f32[2] `, without layouts or `%`.
    fn write_program_shape(&mut self, id: ComputationId) {
        let module = self.module;
        let computation = module.computation(id);
        self.text.byte(b'(');
        let mut first = true;
        for &p in computation.parameters().iter().flatten() {
            if !std::mem::take(&mut first) {
                self.text.str(", ");
            }
            match self.options.names {
                Names::Given => self.text.str(&module.instr(p).name),
                Names::CanonicalInstructions | Names::Canonical => {
                    self.text.str("tmp_");
                    self.text.uint(u64::from(self.instruction_numbers[p.index()]));
                }
            }
            self.text.str(": ");
            write_shape(&mut self.text, &module.instr(p).shape, ShapeStyle::WithoutLayout);
        }
        self.text.str(") -> ");
        if let Some(root) = computation.root() {
            write_shape(&mut self.text, &module.instr(root).shape, ShapeStyle::WithoutLayout);
        }
        self.text.byte(b' ');
    }

    /// Appends the computations that an attribute names: the names, or in [`Subcomputations::Bodies`] the
    /// bodies.
    pub(super) fn write_called(&mut self, called: &[ComputationId], braces: bool) {
        let bodies = self.options.subcomputations == Subcomputations::Bodies
            && self.nesting <= MAX_NESTED_BODIES
            && self.text.len() <= MAX_NESTED_TEXT;
        if braces {
            self.text.str(if bodies { "{\n" } else { "{" });
        }
        for (i, &c) in called.iter().enumerate() {
            if i > 0 {
                self.text.str(if bodies { ",\n" } else { ", " });
            }
            if bodies {
                if !braces {
                    self.text.byte(b'\n');
                }
                self.write_computation(c, Context::Nested);
            } else {
                self.write_computation_name(c);
            }
        }
        if braces {
            self.text.str(if bodies { "\n}" } else { "}" });
        }
    }
}
