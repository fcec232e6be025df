//! Contexts and kernel functions.

use std::cell::RefCell;
use std::ffi::CStr;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::{Linkage, Module};

use super::{Emit, Prim, Result, Target, Value};

thread_local! {
    /// What LLVM complained of on this thread since it was last asked.
    static COMPLAINT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A context whose errors are kept for [`take_complaint`]; by default LLVM ends the process.
pub fn new_context() -> Context {
    let context = Context::create();
    // SAFETY: the context is alive, and the handler is a function that needs no data of its own.
    unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(note), std::ptr::null_mut()) };
    context
}

extern "C" fn note(info: LLVMDiagnosticInfoRef, _: *mut std::ffi::c_void) {
    // SAFETY: LLVM calls this with a diagnostic that is alive until it returns; the description is a string
    // that is ours to dispose of.
    let text = unsafe {
        if LLVMGetDiagInfoSeverity(info) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let description = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(description).to_string_lossy().into_owned();
        LLVMDisposeMessage(description);
        text
    };
    COMPLAINT.with(|c| *c.borrow_mut() = Some(text));
}

/// The last error that LLVM reported on this thread.
pub(super) fn take_complaint() -> Option<String> {
    COMPLAINT.with(|c| c.borrow_mut().take())
}

/// PTX has `brx.idx` for them, which few tools know; chains of branches cost little more.
pub(super) const NO_JUMP_TABLES: &str = "no-jump-tables";

/// Without it LLVM makes floating-point negations and magnitudes of operations on sign bits, which on a GPU
/// keep no payload of a NaN.
pub(super) const NO_IMPLICIT_FLOAT: &str = "noimplicitfloat";

/// How wide vectors are to be.
const WIDTHS: [&str; 2] = ["prefer-vector-width", "min-legal-vector-width"];

impl<'a, 'ctx> Emit<'a, 'ctx> {
    /// Begins a kernel function of this symbol ([`hlo_library_base::KernelFn`]): gives it, on one lane and
    /// with the builder at its beginning, and its parameters: the address of the arguments, and the first and
    /// last unit (`i64`).
    pub fn kernel(
        context: &'ctx Context,
        module: &'a Module<'ctx>,
        builder: &'a Builder<'ctx>,
        target: &Target,
        symbol: &str,
    ) -> Result<(Self, [Value<'ctx>; 3])> {
        let pointer = context.ptr_type(inkwell::AddressSpace::default());
        let unit = context.i64_type();
        let ty = context.void_type().fn_type(&[pointer.into(), unit.into(), unit.into()], false);
        let function = module.add_function(symbol, ty, None);
        function.add_attribute(AttributeLoc::Function, enum_attribute(context, "nounwind"));
        // Vectors as wide as the target has: some processors are tuned to halve them otherwise.
        let bits = (target.vector_bytes() * 8).to_string();
        for key in WIDTHS {
            function.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, &bits));
        }
        function.add_attribute(AttributeLoc::Param(0), enum_attribute(context, "noalias"));
        function.add_attribute(AttributeLoc::Param(0), enum_attribute(context, "readonly"));
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let avx512 = target.vector_bytes() == 64;
        let vnni = avx512 && target.has("avx512vnni");
        let x86 = target.is_x86();
        let e =
            Self { context, module, builder, function, lanes: 1, avx512, vnni, gpu: false, x86, lines: None };
        let parameters = function.get_params();
        match parameters[..] {
            [a, b, c] => Ok((e, [a, b, c])),
            _ => Err(super::Error::Llvm("a kernel has three parameters".into())),
        }
    }

    /// What a body makes of arguments, all of the type of the first, by a function that kernels of the module
    /// share: for long code that is needed often, or rarely run. The name says what the body is.
    pub fn outlined(
        &self,
        name: &str,
        results: usize,
        arguments: &[Value<'ctx>],
        body: impl FnOnce(&Self, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let ty = arguments[0].get_type();
        let symbol = format!("{name}.{}", self.lanes_of(arguments[0]));
        let function = match self.module.get_function(&symbol) {
            Some(function) => function,
            None => {
                let result = self.context.struct_type(&vec![ty; results], false);
                let parameters: Vec<_> = arguments.iter().map(|a| a.get_type().into()).collect();
                let linkage = Some(Linkage::Internal);
                let function = self.module.add_function(&symbol, result.fn_type(&parameters, false), linkage);
                function.add_attribute(AttributeLoc::Function, enum_attribute(self.context, "nounwind"));
                if self.gpu {
                    function.add_attribute(
                        AttributeLoc::Function,
                        enum_attribute(self.context, NO_IMPLICIT_FLOAT),
                    );
                }
                for key in WIDTHS.into_iter().chain([NO_JUMP_TABLES]) {
                    if let Some(width) = self.function.get_string_attribute(AttributeLoc::Function, key) {
                        function.add_attribute(AttributeLoc::Function, width);
                    }
                }
                let here = self.builder.get_insert_block();
                self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
                self.apart(|| {
                    let values = body(&Self { function, ..*self }, &function.get_params())?;
                    self.builder.build_aggregate_return(&values)?;
                    Ok(())
                })?;
                if let Some(here) = here {
                    self.resume(here);
                }
                function
            }
        };
        let all = self.result_of(self.call(function, arguments)?)?.into_struct_value();
        (0..results as u32).map(|i| Ok(self.builder.build_extract_value(all, i, "")?)).collect()
    }

    /// Argument `index` of a kernel: the address of an array.
    pub fn argument(&self, arguments: Value<'ctx>, index: usize) -> Result<Value<'ctx>> {
        let slot = self.address_at(arguments, 8 * index as u64)?;
        self.scalar().load_invariant(Prim::Ptr, slot, 8)
    }
}

pub(super) fn enum_attribute(context: &Context, name: &str) -> Attribute {
    context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0)
}
