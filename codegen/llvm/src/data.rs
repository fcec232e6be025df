//! Data of an object: constants, tables of them, and the visibility of their symbols.

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, GlobalValue};
use inkwell::{AddressSpace, GlobalVisibility};

use super::function::enum_attribute;
use super::{Emit, Prim, Target, Value};

/// Emits data into a module.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a, 'ctx> {
    /// Owns the types.
    pub context: &'ctx Context,
    /// Gets the data.
    pub module: &'a Module<'ctx>,
}

impl<'ctx> Data<'_, 'ctx> {
    fn global(&self, value: &dyn BasicValue<'ctx>, name: &str, align: u32) -> GlobalValue<'ctx> {
        let value = value.as_basic_value_enum();
        let global = self.module.add_global(value.get_type(), None, name);
        global.set_initializer(&value);
        global.set_alignment(align);
        global.set_linkage(Linkage::Internal);
        global.set_constant(true);
        global
    }

    /// Read-only bytes with private linkage.
    pub fn bytes(&self, name: &str, bytes: &[u8], align: u32) -> Value<'ctx> {
        self.global(&self.context.const_string(bytes, false), name, align).as_pointer_value().into()
    }

    /// Read-only bytes with an exported symbol.
    pub fn public_bytes(&self, name: &str, bytes: &[u8], align: u32) {
        let global = self.global(&self.context.const_string(bytes, false), name, align);
        global.set_linkage(Linkage::External);
    }

    /// A string that ends with a zero.
    pub fn string(&self, text: &str) -> Value<'ctx> {
        let global = self.global(&self.context.const_string(text.as_bytes(), true), ".string", 1);
        global.set_linkage(Linkage::Private);
        global.set_unnamed_address(inkwell::values::UnnamedAddress::Global);
        global.as_pointer_value().into()
    }

    /// A number of 64 bits.
    pub fn number(&self, number: u64) -> Value<'ctx> {
        self.context.i64_type().const_int(number, false).into()
    }

    /// No address.
    pub fn null(&self) -> Value<'ctx> {
        self.context.ptr_type(AddressSpace::default()).const_null().into()
    }

    /// Consecutive constants.
    pub fn structure(&self, fields: &[Value<'ctx>]) -> Value<'ctx> {
        self.context.const_struct(fields, false).into()
    }

    /// A table of those, as its address; null if it is empty.
    pub fn table(&self, name: &str, rows: &[Value<'ctx>]) -> Value<'ctx> {
        if rows.is_empty() {
            return self.null();
        }
        self.global(&self.context.const_struct(rows, false), name, 8).as_pointer_value().into()
    }

    /// A structure with an exported symbol.
    pub fn public(&self, name: &str, fields: &[Value<'ctx>]) {
        let global = self.global(&self.context.const_struct(fields, false), name, 8);
        global.set_linkage(Linkage::External);
    }

    /// A structure that is written to at run time.
    pub fn variable(&self, name: &str, fields: &[Value<'ctx>]) -> Value<'ctx> {
        let global = self.global(&self.context.const_struct(fields, false), name, 8);
        global.set_constant(false);
        global.as_pointer_value().into()
    }

    /// A private function that is not inlined.
    pub fn keep_apart(&self, function: FunctionValue<'ctx>) {
        function.set_linkage(Linkage::Internal);
        function.add_attribute(AttributeLoc::Function, enum_attribute(self.context, "noinline"));
    }

    /// Has the pass `asan` check the accesses of all functions.
    pub fn sanitize(&self) {
        for function in self.module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
            function.add_attribute(AttributeLoc::Function, enum_attribute(self.context, "sanitize_address"));
        }
    }

    /// A function that is declared, or begun: with these parameters, and a result of 32 bits or none.
    /// `public`: exported.
    pub fn function(
        &self,
        name: &str,
        parameters: &[Prim],
        result: bool,
        public: bool,
    ) -> FunctionValue<'ctx> {
        let types: Vec<_> = parameters.iter().map(|p| p.lane_type(self.context).into()).collect();
        let ty = match result {
            true => self.context.i32_type().fn_type(&types, false),
            false => self.context.void_type().fn_type(&types, false),
        };
        let linkage = if public { Linkage::External } else { Linkage::Internal };
        let function = self.module.add_function(name, ty, Some(linkage));
        function.add_attribute(AttributeLoc::Function, enum_attribute(self.context, "nounwind"));
        function.as_global_value().set_visibility(GlobalVisibility::Default);
        function
    }
}

impl Prim {
    /// The type of a parameter.
    pub fn lane_type_in<'ctx>(self, data: Data<'_, 'ctx>) -> inkwell::types::BasicMetadataTypeEnum<'ctx> {
        self.lane_type(data.context).into()
    }
}

impl<'a, 'ctx> Emit<'a, 'ctx> {
    /// Starts the body of a function, on one lane: returns it and its parameters.
    pub fn body(
        data: Data<'a, 'ctx>,
        builder: &'a inkwell::builder::Builder<'ctx>,
        target: &Target,
        function: FunctionValue<'ctx>,
    ) -> (Self, Vec<Value<'ctx>>) {
        let Data { context, module } = data;
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let x86 = target.is_x86();
        let e = Self {
            context,
            module,
            builder,
            function,
            lanes: 1,
            avx512: false,
            vnni: false,
            gpu: false,
            x86,
            lines: None,
        };
        (e, function.get_params())
    }

    /// The address of a function.
    pub fn function_address(&self, function: FunctionValue<'ctx>) -> Value<'ctx> {
        BasicValueEnum::PointerValue(function.as_global_value().as_pointer_value())
    }
}
