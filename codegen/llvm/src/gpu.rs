//! Kernels of a GPU (NVPTX): their parameters, the thread that runs, and what threads do together.
//!
//! **Invariants:** pointers are never generic: arrays are in global memory (address space 1), what the
//! threads of a block share in shared memory (3), so accesses are `ld.global` and `ld.shared`. Atomic
//! operations and fences name a scope; without one LLVM takes the whole system.

use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::core::{LLVMGetSyncScopeID, LLVMSetAtomicSyncScopeID};
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{AsValueRef, BasicValueEnum, InstructionOpcode, InstructionValue, PointerValue};
use inkwell::{AddressSpace, AtomicOrdering, AtomicRMWBinOp};

use super::function::{NO_IMPLICIT_FLOAT, NO_JUMP_TABLES, enum_attribute};
use super::{Emit, Error, Prim, Result, Target, Value};

/// `ptx_kernel`
const KERNEL_CONVENTION: u32 = 71;

/// Where memory is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// Of the device.
    Global,
    /// Of a block.
    Shared,
}

impl Space {
    /// LLVM's number of it for NVPTX.
    pub fn address_space(self) -> AddressSpace {
        AddressSpace::from(match self {
            Space::Global => 1,
            Space::Shared => 3,
        })
    }
}

/// A parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// The address of an array in global memory.
    Array {
        /// What the address is a multiple of, in bytes.
        align: u32,
        /// The kernel does not write it.
        is_read_only: bool,
        /// No other parameter's accesses touch what this one's write, or this one is read only and nothing
        /// writes it.
        is_no_alias: bool,
    },
    /// A scalar.
    Scalar(Prim),
}

/// An axis of the grid and of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// The one whose index changes first.
    X,
    /// The second.
    Y,
    /// The last.
    Z,
}

/// Special registers: what the running thread is. All are `i32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Special {
    /// Index of the thread in its block.
    Tid(Axis),
    /// Threads of a block.
    Ntid(Axis),
    /// Index of the block in the grid.
    Ctaid(Axis),
    /// Blocks of the grid.
    Nctaid(Axis),
    /// Index of the lane in its warp.
    LaneId,
}

/// Which lane's value each lane of a warp takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// That of the lane `n` above; where there is none its own.
    Down,
    /// That of the lane `n` below; where there is none its own.
    Up,
    /// That of the lane whose number differs in the bits of `n`.
    Bfly,
    /// That of lane `n`.
    Idx,
}

/// Among whom atomic operations and fences order. LLVM may take a wider one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// The threads of a block (`.cta`).
    Block,
    /// The threads of the device (`.gpu`).
    Device,
}

/// What an atomic operation on integers of 32 or 64 bits does with memory and its operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Atomic {
    /// Sum.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The greater signed one.
    Max,
    /// The lesser signed one.
    Min,
    /// The greater unsigned one.
    UMax,
    /// The lesser unsigned one.
    UMin,
    /// The operand.
    Exchange,
}

impl<'a, 'ctx> Emit<'a, 'ctx> {
    /// Begins a kernel of a GPU of this symbol, for blocks of at most that many threads: gives it, on one
    /// lane and with the builder at its beginning, and its parameters.
    pub fn gpu_kernel(
        context: &'ctx Context,
        module: &'a Module<'ctx>,
        builder: &'a Builder<'ctx>,
        target: &Target,
        symbol: &str,
        parameters: &[Parameter],
        max_threads: u32,
    ) -> Result<(Self, Vec<Value<'ctx>>)> {
        if !target.is_nvptx() {
            return Err(Error::Target(format!("{} is no GPU", target.describe())));
        }
        let types: Vec<BasicMetadataTypeEnum<'ctx>> = parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Array { .. } => context.ptr_type(Space::Global.address_space()).into(),
                Parameter::Scalar(prim) => prim.lane_type(context).into(),
            })
            .collect();
        let function = module.add_function(symbol, context.void_type().fn_type(&types, false), None);
        function.set_call_conventions(KERNEL_CONVENTION);
        function.add_attribute(AttributeLoc::Function, enum_attribute(context, "nounwind"));
        function.add_attribute(AttributeLoc::Function, enum_attribute(context, NO_IMPLICIT_FLOAT));
        let attribute = |key, value: &str| {
            function.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, value));
        };
        attribute(NO_JUMP_TABLES, "true");
        attribute("nvvm.maxntid", &max_threads.to_string());
        for (i, parameter) in (0u32..).zip(parameters) {
            let Parameter::Array { align, is_read_only, is_no_alias } = *parameter else { continue };
            let location = AttributeLoc::Param(i);
            let kind = inkwell::attributes::Attribute::get_named_enum_kind_id("align");
            function.add_attribute(location, context.create_enum_attribute(kind, u64::from(align)));
            if is_read_only {
                function.add_attribute(location, enum_attribute(context, "readonly"));
            }
            if is_no_alias {
                function.add_attribute(location, enum_attribute(context, "noalias"));
            }
        }
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let e = Self {
            context,
            module,
            builder,
            function,
            lanes: 1,
            avx512: false,
            vnni: false,
            gpu: true,
            x86: false,
            lines: None,
        };
        Ok((e, function.get_params()))
    }

    /// All lanes of a warp, as a mask.
    pub fn full_warp(&self) -> Value<'ctx> {
        self.scalar().i32(-1)
    }

    /// A special register.
    pub fn special(&self, register: Special) -> Result<Value<'ctx>> {
        let axis = |axis| match axis {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        };
        let name = match register {
            Special::Tid(a) => format!("tid.{}", axis(a)),
            Special::Ntid(a) => format!("ntid.{}", axis(a)),
            Special::Ctaid(a) => format!("ctaid.{}", axis(a)),
            Special::Nctaid(a) => format!("nctaid.{}", axis(a)),
            Special::LaneId => "laneid".to_owned(),
        };
        self.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[], &[])
    }

    /// Waits for all threads of the block, and orders what they did to memory.
    pub fn barrier(&self) -> Result<()> {
        let e = self.scalar();
        self.intrinsic_call("llvm.nvvm.barrier.cta.sync.aligned.all", &[], &[e.i32(0)])?;
        Ok(())
    }

    /// Orders accesses to memory of this thread for those of a scope.
    pub fn gpu_fence(&self, scope: Scope) -> Result<()> {
        let fence = self.builder.build_fence(AtomicOrdering::AcquireRelease, false, "")?;
        self.set_scope(fence, scope);
        Ok(())
    }

    /// A scalar of up to 64 bits of another lane of the warp, which all lanes of the mask reach together. `n`
    /// is an `i32`, and the mask one too.
    pub fn shuffle_sync(
        &self,
        mask: Value<'ctx>,
        how: Shuffle,
        x: Value<'ctx>,
        n: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let e = self.scalar();
        let (name, clamp) = match how {
            Shuffle::Down => ("down", 31),
            Shuffle::Up => ("up", 0),
            Shuffle::Bfly => ("bfly", 31),
            Shuffle::Idx => ("idx", 31),
        };
        let name = format!("llvm.nvvm.shfl.sync.{name}.i32");
        let word = |x: Value<'ctx>| e.intrinsic(&name, &[], &[mask, x, n, e.i32(clamp)]);
        let prim = e.prim_of(x);
        let bits = if prim.is_float() { e.bitcast(x, Prim::int(prim.bits()))? } else { x };
        let moved = match prim.bits() {
            32 => word(bits)?,
            64 => {
                let low = e.zext(word(e.trunc(bits, Prim::I32)?)?, Prim::I64)?;
                let high = e.trunc(e.lshr(bits, e.i64(32))?, Prim::I32)?;
                e.or(low, e.shl(e.zext(word(high)?, Prim::I64)?, e.i64(32))?)?
            }
            1 | 8 | 16 => e.trunc(word(e.zext(bits, Prim::I32)?)?, e.prim_of(bits))?,
            _ => return Err(Error::Llvm("a shuffle of more than 64 bits".into())),
        };
        if prim.is_float() { e.bitcast(moved, prim) } else { Ok(moved) }
    }

    /// The index of the thread in a grid of one axis: `ctaid.x * ntid.x + tid.x`, an `i64`.
    pub fn global_thread(&self) -> Result<Value<'ctx>> {
        let e = self.scalar();
        let wide = |register| e.zext(e.special(register)?, Prim::I64);
        let first = e.mul(wide(Special::Ctaid(Axis::X))?, wide(Special::Ntid(Axis::X))?)?;
        e.add(first, wide(Special::Tid(Axis::X))?)
    }

    /// `f32` rounded to `bf16`, as patterns of 16 bits: from sm_80 on one instruction, of two lanes.
    pub fn to_bf16(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        let ty = self.context.bf16_type();
        let ty: BasicTypeEnum<'ctx> = match self.lanes_of(x) {
            1 => ty.into(),
            lanes => ty.vec_type(lanes).into(),
        };
        let rounded = self.builder.build_cast(InstructionOpcode::FPTrunc, x, ty, "")?;
        self.bitcast_to(rounded, self.with_lanes(self.lanes_of(x)).ty(Prim::I16))
    }

    /// The lanes among those of the mask where an `i1` is set, as bits of an `i32`.
    pub fn ballot_sync(&self, mask: Value<'ctx>, x: Value<'ctx>) -> Result<Value<'ctx>> {
        self.intrinsic("llvm.nvvm.vote.ballot.sync", &[], &[mask, x])
    }

    /// Shared memory of a block for that many elements, aligned to that many bytes. One name is one array.
    pub fn shared_array(
        &self,
        name: &str,
        prim: Prim,
        elements: u32,
        align: u32,
    ) -> Result<PointerValue<'ctx>> {
        if let Some(there) = self.module.get_global(name) {
            return Ok(there.as_pointer_value());
        }
        let ty = self.lane_type(prim).array_type(elements);
        let global = self.module.add_global(ty, Some(Space::Shared.address_space()), name);
        global.set_linkage(Linkage::Internal);
        global.set_initializer(&ty.get_poison());
        global.set_alignment(align);
        Ok(global.as_pointer_value())
    }

    /// The shared memory of a block whose size the launch says, aligned to that many bytes. All of this name
    /// are one.
    pub fn dynamic_shared(&self, name: &str, align: u32) -> Result<PointerValue<'ctx>> {
        if let Some(there) = self.module.get_global(name) {
            return Ok(there.as_pointer_value());
        }
        let ty = self.context.i8_type().array_type(0);
        let global = self.module.add_global(ty, Some(Space::Shared.address_space()), name);
        global.set_linkage(Linkage::External);
        global.set_alignment(align);
        Ok(global.as_pointer_value())
    }

    /// A table in constant storage: integers of a type, read by [`Emit::load_invariant`]. One name is one
    /// table.
    pub fn constant_table(&self, name: &str, prim: Prim, values: &[u64]) -> Result<PointerValue<'ctx>> {
        if let Some(there) = self.module.get_global(name) {
            return Ok(there.as_pointer_value());
        }
        let BasicTypeEnum::IntType(ty) = self.lane_type(prim) else {
            return Err(Error::Llvm("a table of what is no integer".into()));
        };
        let lanes: Vec<_> = values.iter().map(|&x| ty.const_int(x, false)).collect();
        let all = ty.const_array(&lanes);
        let global = self.module.add_global(all.get_type(), Some(Space::Global.address_space()), name);
        global.set_linkage(Linkage::Internal);
        global.set_constant(true);
        global.set_initializer(&all);
        global.set_alignment(u32::try_from(prim.bytes()).unwrap_or(1));
        Ok(global.as_pointer_value())
    }

    /// An atomic operation, relaxed, on an integer of 32 or 64 bits; gives what was in memory.
    pub fn atomic(
        &self,
        op: Atomic,
        address: Value<'ctx>,
        x: Value<'ctx>,
        scope: Scope,
    ) -> Result<Value<'ctx>> {
        let op = match op {
            Atomic::Add => AtomicRMWBinOp::Add,
            Atomic::And => AtomicRMWBinOp::And,
            Atomic::Or => AtomicRMWBinOp::Or,
            Atomic::Xor => AtomicRMWBinOp::Xor,
            Atomic::Max => AtomicRMWBinOp::Max,
            Atomic::Min => AtomicRMWBinOp::Min,
            Atomic::UMax => AtomicRMWBinOp::UMax,
            Atomic::UMin => AtomicRMWBinOp::UMin,
            Atomic::Exchange => AtomicRMWBinOp::Xchg,
        };
        let (address, x) = (self.pointer(address)?, self.scalar_int(x)?);
        let old = self.builder.build_atomicrmw(op, address, x, AtomicOrdering::Monotonic)?;
        self.scope_of_value(old.into(), scope);
        Ok(old.into())
    }

    /// Compare and swap, relaxed, of an integer of 32 or 64 bits: gives what was in memory, which was
    /// replaced if it was `expected`.
    pub fn compare_and_swap(
        &self,
        address: Value<'ctx>,
        expected: Value<'ctx>,
        desired: Value<'ctx>,
        scope: Scope,
    ) -> Result<Value<'ctx>> {
        let order = AtomicOrdering::Monotonic;
        let (address, expected, desired) =
            (self.pointer(address)?, self.scalar_int(expected)?, self.scalar_int(desired)?);
        let both = self.builder.build_cmpxchg(address, expected, desired, order, order)?;
        self.scope_of_value(both.into(), scope);
        Ok(self.builder.build_extract_value(both, 0, "")?)
    }

    fn scope_of_value(&self, x: BasicValueEnum<'ctx>, scope: Scope) {
        use inkwell::values::BasicValue;
        if let Some(instruction) = x.as_instruction_value() {
            self.set_scope(instruction, scope);
        }
    }

    fn set_scope(&self, instruction: InstructionValue<'ctx>, scope: Scope) {
        let name = match scope {
            Scope::Block => "block",
            Scope::Device => "device",
        };
        // SAFETY: the context is alive, the name is as long as it says, and the instruction is an atomic one
        // or a fence.
        unsafe {
            let id = LLVMGetSyncScopeID(self.context.as_ctx_ref(), name.as_ptr().cast(), name.len());
            LLVMSetAtomicSyncScopeID(instruction.as_value_ref(), id);
        }
    }
}
