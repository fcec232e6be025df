//! Addresses, loads and stores. Offsets are in bytes.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::core::LLVMBuildGEP2;
use inkwell::module::Linkage;
use inkwell::types::{AsTypeRef, BasicType};
use inkwell::values::{
    AsValueRef, BasicValue, BasicValueEnum, CallSiteValue, InstructionValue, PointerValue,
};
use inkwell::{AtomicOrdering, values::UnnamedAddress};

use super::{Emit, Prim, Result, Value};

/// The maximum alignment that streaming stores require, in bytes: the widest register.
pub const REGISTER: u32 = 64;
/// The size of a register of AVX, in bytes.
const AVX_REGISTER: u32 = 32;

impl<'ctx> Emit<'_, 'ctx> {
    /// `base + offset`: a scalar address and a scalar `i64` offset in bytes, or a vector of addresses for a
    /// vector of offsets.
    pub fn address(&self, base: Value<'ctx>, offset: Value<'ctx>) -> Result<Value<'ctx>> {
        let (byte, mut index) = (self.context.i8_type(), offset.as_value_ref());
        let (builder, ty, base) =
            (self.builder.as_mut_ptr(), byte.as_type_ref(), self.pointer(base)?.as_value_ref());
        // SAFETY: builder, type and values are alive and of one context; there is one index. Whether the
        // address is in bounds is a matter of the code that is made: without `inbounds`, forming an address
        // has no undefined behaviour.
        Ok(unsafe { Value::new(LLVMBuildGEP2(builder, ty, base, &raw mut index, 1, c"".as_ptr())) })
    }

    /// The address a constant number of bytes further.
    pub fn address_at(&self, base: Value<'ctx>, bytes: u64) -> Result<Value<'ctx>> {
        if bytes == 0 {
            return Ok(base);
        }
        self.address(base, self.scalar().int(Prim::I64, bytes))
    }

    /// The difference of two addresses in bytes: a scalar `i64`.
    pub fn distance(&self, address: Value<'ctx>, from: Value<'ctx>) -> Result<Value<'ctx>> {
        let scalar = self.scalar();
        let integer = |x| -> Result<Value<'ctx>> {
            let bits = self.context.i64_type();
            Ok(self.builder.build_ptr_to_int(self.pointer(x)?, bits, "")?.into())
        };
        scalar.sub(integer(address)?, integer(from)?)
    }

    /// Loads all lanes from contiguous elements. `align` is the known alignment of the address, in bytes.
    pub fn load(&self, prim: Prim, address: Value<'ctx>, align: u32) -> Result<Value<'ctx>> {
        let value = self.builder.build_load(self.ty(prim), self.pointer(address)?, "")?;
        if let Some(load) = value.as_instruction_value() {
            load.set_alignment(align)?;
        }
        Ok(value)
    }

    /// [`Emit::load`] from memory that nothing writes while the function runs.
    pub fn load_invariant(&self, prim: Prim, address: Value<'ctx>, align: u32) -> Result<Value<'ctx>> {
        let value = self.load(prim, address, align)?;
        self.annotate(&value, "invariant.load", &[])?;
        Ok(value)
    }

    /// [`Emit::float`], as an operand in memory where a vector is a register of AVX: instructions of AVX2
    /// broadcast no operand, and in a loop with more constants than there are registers LLVM would broadcast
    /// each anew into one. It does not see that this is a constant.
    pub fn float_in_memory(&self, prim: Prim, x: f64) -> Result<Value<'ctx>> {
        let constant = self.float(prim, x);
        if !self.x86 || self.avx512 || prim.bits() * self.lanes != 8 * AVX_REGISTER {
            return Ok(constant);
        }
        let name = format!("{prim:?}.{:x}", x.to_bits());
        let global = self.module.get_global(&name).unwrap_or_else(|| {
            let global = self.module.add_global(self.ty(prim), None, &name);
            global.set_initializer(&constant);
            global.set_alignment(AVX_REGISTER);
            global.set_linkage(Linkage::Private);
            global.set_unnamed_address(UnnamedAddress::Global);
            global.set_constant(true);
            global.set_externally_initialized(true);
            global
        });
        self.load_invariant(prim, global.as_pointer_value().into(), AVX_REGISTER)
    }

    /// Stores all lanes of a value to contiguous elements.
    pub fn store(
        &self,
        value: Value<'ctx>,
        address: Value<'ctx>,
        align: u32,
    ) -> Result<InstructionValue<'ctx>> {
        let store = self.builder.build_store(self.pointer(address)?, value)?;
        store.set_alignment(align)?;
        Ok(store)
    }

    /// Non-temporal (streaming) stores: the address must be aligned to the whole vector, or to [`REGISTER`]
    /// bytes where that is less, and [`Emit::fence`] must follow before anything else reads.
    pub fn store_streaming(&self, value: Value<'ctx>, address: Value<'ctx>) -> Result<()> {
        let bytes = self.prim_of(value).bytes() * u64::from(self.lanes_of(value));
        let store =
            self.store(value, address, u32::try_from(bytes).map_or(REGISTER, |bytes| bytes.min(REGISTER)))?;
        let one = self.context.i32_type().const_int(1, false);
        let node = self.context.metadata_node(&[one.into()]);
        store.set_metadata(node, self.context.get_kind_id("nontemporal"))?;
        Ok(())
    }

    /// Orders streaming stores before everything that follows (`sfence`).
    pub fn fence(&self) -> Result<()> {
        if self.x86 {
            self.intrinsic_call("llvm.x86.sse.sfence", &[], &[])?;
        } else {
            self.builder.build_fence(AtomicOrdering::SequentiallyConsistent, false, "")?;
        }
        Ok(())
    }

    /// A masked load: the lanes whose `i1` is set, the others from `otherwise`; memory of the others is not
    /// accessed.
    pub fn load_masked(
        &self,
        address: Value<'ctx>,
        align: u32,
        mask: Value<'ctx>,
        otherwise: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        if let Some(lane) = lone_lane(mask) {
            let one = self.scalar().load(
                self.prim_of(otherwise),
                self.lane_address(otherwise, address, lane)?,
                align,
            )?;
            return self.insert(otherwise, one, lane);
        }
        let call = self.intrinsic_call(
            "llvm.masked.load",
            &[otherwise.get_type(), address.get_type()],
            &[address, mask, otherwise],
        )?;
        self.align_call(call, 0, align);
        self.result_of(call)
    }

    /// A masked store.
    pub fn store_masked(
        &self,
        value: Value<'ctx>,
        address: Value<'ctx>,
        align: u32,
        mask: Value<'ctx>,
    ) -> Result<()> {
        if let Some(lane) = lone_lane(mask) {
            let one = self.extract(value, lane)?;
            self.store(one, self.lane_address(value, address, lane)?, align)?;
            return Ok(());
        }
        let call = self.intrinsic_call(
            "llvm.masked.store",
            &[value.get_type(), address.get_type()],
            &[value, address, mask],
        )?;
        self.align_call(call, 1, align);
        Ok(())
    }

    /// The address of a lane of a vector at an address.
    fn lane_address(&self, vector: Value<'ctx>, address: Value<'ctx>, lane: u32) -> Result<Value<'ctx>> {
        self.address_at(address, self.prim_of(vector).bytes() * u64::from(lane))
    }

    /// A gather: each lane from an address of its own (a vector of them), where its `i1` is set; the others
    /// from `otherwise`.
    pub fn gather(
        &self,
        addresses: Value<'ctx>,
        align: u32,
        mask: Value<'ctx>,
        otherwise: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let call = self.intrinsic_call(
            "llvm.masked.gather",
            &[otherwise.get_type(), addresses.get_type()],
            &[addresses, mask, otherwise],
        )?;
        self.align_call(call, 0, align);
        self.result_of(call)
    }

    /// A scatter: each lane to an address of its own where its `i1` is set; of equal addresses the last lane
    /// wins.
    pub fn scatter(
        &self,
        value: Value<'ctx>,
        addresses: Value<'ctx>,
        align: u32,
        mask: Value<'ctx>,
    ) -> Result<()> {
        let call = self.intrinsic_call(
            "llvm.masked.scatter",
            &[value.get_type(), addresses.get_type()],
            &[value, addresses, mask],
        )?;
        self.align_call(call, 1, align);
        Ok(())
    }

    /// Declares the alignment of the address among the arguments of a call.
    fn align_call(&self, call: CallSiteValue<'ctx>, argument: u32, align: u32) {
        let kind = Attribute::get_named_enum_kind_id("align");
        call.add_attribute(
            AttributeLoc::Param(argument),
            self.context.create_enum_attribute(kind, u64::from(align)),
        );
    }

    /// Prefetches that many bytes from an address on, for reading: one prefetch per cache line. A GPU hides
    /// latency by other threads instead.
    pub fn prefetch(&self, address: Value<'ctx>, bytes: u64) -> Result<()> {
        self.prefetch_as(address, bytes, 3)
    }

    /// The same into the L2 cache only.
    pub fn prefetch_far(&self, address: Value<'ctx>, bytes: u64) -> Result<()> {
        self.prefetch_as(address, bytes, 2)
    }

    fn prefetch_as(&self, address: Value<'ctx>, bytes: u64, locality: i32) -> Result<()> {
        const LINE: usize = 64;
        if self.gpu {
            return Ok(());
        }
        let e = self.scalar();
        let [read, locality, data] = [0, locality, 1].map(|how| e.i32(how));
        for line in (0..bytes).step_by(LINE) {
            let line = self.address_at(address, line)?;
            self.intrinsic_call("llvm.prefetch", &[line.get_type()], &[line, read, locality, data])?;
        }
        Ok(())
    }

    /// Copies bytes between disjoint memory; the size is an `i64`.
    pub fn copy_bytes(
        &self,
        to: Value<'ctx>,
        from: Value<'ctx>,
        align: u32,
        bytes: Value<'ctx>,
    ) -> Result<()> {
        let (to, from) = (self.pointer(to)?, self.pointer(from)?);
        let result = self.builder.build_memcpy(to, align, from, align, self.scalar_int(bytes)?);
        result.map_err(|e| super::Error::Llvm(e.to_string()))?;
        Ok(())
    }

    /// A stack buffer of that many elements, aligned to 64 bytes, for the whole call of the function.
    pub fn stack(&self, prim: Prim, elements: u32) -> Result<PointerValue<'ctx>> {
        let here = self.builder.get_insert_block();
        let entry = self.function.get_first_basic_block();
        if let Some(entry) = entry {
            match entry.get_first_instruction() {
                Some(first) => self.builder.position_before(&first),
                None => self.builder.position_at_end(entry),
            }
        }
        let storage = self.builder.build_alloca(self.lane_type(prim).array_type(elements), "")?;
        if let Some(alloca) = storage.as_instruction_value() {
            alloca.set_alignment(64)?;
        }
        if let Some(here) = here {
            self.resume(here);
        }
        Ok(storage)
    }
}

/// The only lane of a constant mask that is set. LLVM 22 for x86 makes one access of such masked ones, of the
/// lane's width after it was widened: eight bytes for the last of some bytes that are converted from or to
/// eight-byte numbers. So they are not given to it.
fn lone_lane(mask: Value<'_>) -> Option<u32> {
    let BasicValueEnum::VectorValue(mask) = mask else { return None };
    if !mask.is_const() {
        return None;
    }
    let set = |lane: &u32| {
        let index = mask.get_type().get_context().i32_type().const_int(u64::from(*lane), false);
        let element = mask.const_extract_element(index);
        element.is_int_value() && element.into_int_value().get_zero_extended_constant() == Some(1)
    };
    let lanes = mask.get_type().get_size();
    let mut all = (0..lanes).filter(set);
    let lane = all.next()?;
    all.next().is_none().then_some(lane)
}
