//! Types, constants and operations on lanes.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    IntValue, PointerValue, ValueKind, VectorValue,
};
use inkwell::{AddressSpace, FloatPredicate, IntPredicate};

use super::{Error, Lines, Result};

/// A value of a function: a scalar, or a vector of lanes.
pub type Value<'ctx> = BasicValueEnum<'ctx>;

/// The type of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Prim {
    /// A Boolean.
    I1,
    /// 8 bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// 128 bits.
    I128,
    /// IEEE binary16: only to be converted from and to by the hardware.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// An address.
    Ptr,
}

impl Prim {
    /// Width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Prim::I1 => 1,
            Prim::I8 => 8,
            Prim::I16 | Prim::F16 => 16,
            Prim::I32 | Prim::F32 => 32,
            Prim::I64 | Prim::F64 | Prim::Ptr => 64,
            Prim::I128 => 128,
        }
    }

    /// Bytes in memory.
    pub const fn bytes(self) -> u64 {
        (self.bits() as u64).div_ceil(8)
    }

    /// The integer of that many bits (1, 8, 16, 32, 64 or 128).
    ///
    /// # Panics
    /// If there is none.
    pub fn int(bits: u32) -> Prim {
        match bits {
            1 => Prim::I1,
            8 => Prim::I8,
            16 => Prim::I16,
            32 => Prim::I32,
            64 => Prim::I64,
            128 => Prim::I128,
            _ => panic!("invariant: integers of LLVM have 1, 8, 16, 32, 64 or 128 bits here, not {bits}"),
        }
    }

    /// LLVM's type of it.
    pub(super) fn lane_type(self, context: &Context) -> BasicTypeEnum<'_> {
        match self {
            Prim::I1 => context.bool_type().into(),
            Prim::I8 => context.i8_type().into(),
            Prim::I16 => context.i16_type().into(),
            Prim::I32 => context.i32_type().into(),
            Prim::I64 => context.i64_type().into(),
            Prim::I128 => context.i128_type().into(),
            Prim::F16 => context.f16_type().into(),
            Prim::F32 => context.f32_type().into(),
            Prim::F64 => context.f64_type().into(),
            Prim::Ptr => context.ptr_type(AddressSpace::default()).into(),
        }
    }

    /// Whether it is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, Prim::F16 | Prim::F32 | Prim::F64)
    }
}

/// A function that is being built, at the builder's position, on a number of lanes.
#[derive(Clone, Copy, Debug)]
pub struct Emit<'a, 'ctx> {
    /// Owns the types.
    pub context: &'ctx Context,
    /// Owns the function.
    pub module: &'a Module<'ctx>,
    /// Appends instructions.
    pub builder: &'a Builder<'ctx>,
    /// The function.
    pub function: FunctionValue<'ctx>,
    /// The number of lanes of constants and casts; 1: scalars.
    pub lanes: u32,
    /// Whether the target has AVX-512.
    pub avx512: bool,
    /// Whether it has AVX-512 VNNI as well.
    pub vnni: bool,
    /// Whether the target is a GPU: no host function can be called, and vectors exist in memory accesses
    /// only.
    pub gpu: bool,
    /// Whether it is x86-64, whose intrinsics may then be used.
    pub x86: bool,
    /// The lines of the program's text, if debuggers are told of them.
    pub lines: Option<&'a Lines<'ctx>>,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $opcode:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
            Ok(self.builder.build_binop(InstructionOpcode::$opcode, a, b, "")?)
        }
    )*};
}

macro_rules! casts {
    ($($(#[$doc:meta])* $name:ident $opcode:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self, x: Value<'ctx>, to: Prim) -> Result<Value<'ctx>> {
            self.cast(InstructionOpcode::$opcode, x, to)
        }
    )*};
}

/// Types.
impl<'a, 'ctx> Emit<'a, 'ctx> {
    /// The same position, on that many lanes.
    #[must_use]
    pub fn with_lanes(&self, lanes: u32) -> Self {
        Self { lanes, ..*self }
    }

    /// The same position, on scalars.
    #[must_use]
    pub fn scalar(&self) -> Self {
        self.with_lanes(1)
    }

    /// The type of one lane.
    pub fn lane_type(&self, prim: Prim) -> BasicTypeEnum<'ctx> {
        prim.lane_type(self.context)
    }

    /// The type of all lanes: a scalar type if there is one lane.
    pub fn ty(&self, prim: Prim) -> BasicTypeEnum<'ctx> {
        if self.lanes == 1 { self.lane_type(prim) } else { self.vector_type(prim, self.lanes).into() }
    }

    /// A vector type.
    pub fn vector_type(&self, prim: Prim, lanes: u32) -> VectorType<'ctx> {
        match self.lane_type(prim) {
            BasicTypeEnum::IntType(t) => t.vec_type(lanes),
            BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
            BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
            BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_) => {
                unreachable!("invariant: lanes are numbers or pointers")
            }
        }
    }

    /// The type of a value with as many lanes as it has, whatever [`Emit::lanes`] is.
    pub fn lanes_of(&self, x: Value<'ctx>) -> u32 {
        match x {
            BasicValueEnum::VectorValue(v) => v.get_type().get_size(),
            BasicValueEnum::IntValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::ScalableVectorValue(_) => 1,
        }
    }

    /// What the lanes of a value hold.
    ///
    /// # Panics
    /// If the value is an aggregate or of a type that is no [`Prim`].
    pub fn prim_of(&self, x: Value<'ctx>) -> Prim {
        let lane = match x.get_type() {
            BasicTypeEnum::VectorType(t) => t.get_element_type(),
            other => other,
        };
        match lane {
            BasicTypeEnum::IntType(t) => Prim::int(t.get_bit_width()),
            BasicTypeEnum::FloatType(t) => match t.get_bit_width() {
                16 => Prim::F16,
                32 => Prim::F32,
                _ => Prim::F64,
            },
            BasicTypeEnum::PointerType(_) => Prim::Ptr,
            BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_) => panic!("invariant: lanes are numbers or pointers"),
        }
    }
}

/// Constants: on all lanes.
impl<'ctx> Emit<'_, 'ctx> {
    /// An integer, by its low bits.
    pub fn int(&self, prim: Prim, bits: u64) -> Value<'ctx> {
        let lane = match self.lane_type(prim) {
            BasicTypeEnum::IntType(t) => t.const_int(bits, false),
            _ => unreachable!("invariant: an integer type"),
        };
        self.splat_constant(lane.into())
    }

    /// An `i32`.
    pub fn i32(&self, x: i32) -> Value<'ctx> {
        self.int(Prim::I32, u64::from(x.cast_unsigned()))
    }

    /// An `i64`.
    pub fn i64(&self, x: i64) -> Value<'ctx> {
        self.int(Prim::I64, x.cast_unsigned())
    }

    /// A truth value.
    pub fn bool(&self, x: bool) -> Value<'ctx> {
        self.int(Prim::I1, u64::from(x))
    }

    /// An `f32`.
    pub fn f32(&self, x: f32) -> Value<'ctx> {
        self.splat_constant(self.context.f32_type().const_float(f64::from(x)).into())
    }

    /// An `f64`.
    pub fn f64(&self, x: f64) -> Value<'ctx> {
        self.splat_constant(self.context.f64_type().const_float(x).into())
    }

    /// A float, rounded to the type.
    pub fn float(&self, prim: Prim, x: f64) -> Value<'ctx> {
        let lane = match self.lane_type(prim) {
            BasicTypeEnum::FloatType(t) => t.const_float(x),
            _ => unreachable!("invariant: a float type"),
        };
        self.splat_constant(lane.into())
    }

    /// A vector of given integers, one per lane.
    pub fn int_lanes(&self, prim: Prim, lanes: &[u64]) -> Value<'ctx> {
        match self.lane_type(prim) {
            BasicTypeEnum::IntType(t) => {
                let lanes: Vec<IntValue<'_>> = lanes.iter().map(|&x| t.const_int(x, false)).collect();
                VectorType::const_vector(&lanes).into()
            }
            _ => unreachable!("invariant: an integer type"),
        }
    }

    /// 0, 1, 2, ... on the lanes (0 on a scalar).
    pub fn lane_numbers(&self, prim: Prim) -> Value<'ctx> {
        if self.lanes == 1 {
            return self.int(prim, 0);
        }
        self.int_lanes(prim, &(0..u64::from(self.lanes)).collect::<Vec<_>>())
    }

    /// An undefined value.
    pub fn poison(&self, prim: Prim) -> Value<'ctx> {
        match self.ty(prim) {
            BasicTypeEnum::IntType(t) => t.get_poison().into(),
            BasicTypeEnum::FloatType(t) => t.get_poison().into(),
            BasicTypeEnum::PointerType(t) => t.get_poison().into(),
            BasicTypeEnum::VectorType(t) => t.get_poison().into(),
            BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::ScalableVectorType(_) => {
                unreachable!("invariant: lanes are numbers or pointers")
            }
        }
    }

    fn splat_constant(&self, lane: Value<'ctx>) -> Value<'ctx> {
        if self.lanes == 1 {
            return lane;
        }
        let n = self.lanes as usize;
        match lane {
            BasicValueEnum::IntValue(x) => VectorType::const_vector(&vec![x; n]).into(),
            BasicValueEnum::FloatValue(x) => VectorType::const_vector(&vec![x; n]).into(),
            BasicValueEnum::PointerValue(x) => VectorType::const_vector(&vec![x; n]).into(),
            BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_) => {
                unreachable!("invariant: lanes are numbers or pointers")
            }
        }
    }
}

/// Operations.
impl<'ctx> Emit<'_, 'ctx> {
    binary! {
        /// Integer sum, modulo.
        add Add;
        /// Integer difference, modulo.
        sub Sub;
        /// Integer product, modulo.
        mul Mul;
        /// Unsigned quotient; by 0 undefined behaviour.
        udiv UDiv;
        /// Signed quotient; by 0 and of MIN by -1 undefined behaviour.
        sdiv SDiv;
        /// Unsigned remainder; by 0 undefined behaviour.
        urem URem;
        /// Signed remainder; by 0 and of MIN by -1 undefined behaviour.
        srem SRem;
        /// Bitwise and.
        and And;
        /// Bitwise or.
        or Or;
        /// Bitwise exclusive or.
        xor Xor;
        /// Shift left; by the width or more poison.
        shl Shl;
        /// Shift right filling zeros; by the width or more poison.
        lshr LShr;
        /// Shift right filling the sign; by the width or more poison.
        ashr AShr;
        /// Float sum.
        fadd FAdd;
        /// Float difference.
        fsub FSub;
        /// Float product.
        fmul FMul;
        /// Float quotient.
        fdiv FDiv;
    }

    casts! {
        /// Integer to a narrower one.
        trunc Trunc;
        /// Integer to a wider one, filling zeros.
        zext ZExt;
        /// Integer to a wider one, filling the sign.
        sext SExt;
        /// Float to a narrower one, rounded to nearest even.
        fptrunc FPTrunc;
        /// Float to a wider one.
        fpext FPExt;
        /// Float to signed integer, truncated; out of range poison.
        fptosi FPToSI;
        /// Float to unsigned integer, truncated; out of range poison.
        fptoui FPToUI;
        /// Signed integer to float, rounded to nearest even.
        sitofp SIToFP;
        /// Unsigned integer to float, rounded to nearest even.
        uitofp UIToFP;
        /// A bitcast of each lane.
        bitcast BitCast;
    }

    fn cast(&self, opcode: InstructionOpcode, x: Value<'ctx>, to: Prim) -> Result<Value<'ctx>> {
        let ty = self.with_lanes(self.lanes_of(x)).ty(to);
        if x.get_type() == ty {
            return Ok(x);
        }
        Ok(self.builder.build_cast(opcode, x, ty, "")?)
    }

    /// A bitcast to another type of the same total width: for changes of the number of lanes.
    pub fn bitcast_to(&self, x: Value<'ctx>, ty: BasicTypeEnum<'ctx>) -> Result<Value<'ctx>> {
        Ok(self.builder.build_cast(InstructionOpcode::BitCast, x, ty, "")?)
    }

    /// An integer of another width: truncated, or extended by its sign or by zeros.
    pub fn resize(&self, x: Value<'ctx>, to: Prim, signed: bool) -> Result<Value<'ctx>> {
        let from = self.prim_of(x).bits();
        if from > to.bits() {
            self.trunc(x, to)
        } else if signed {
            self.sext(x, to)
        } else {
            self.zext(x, to)
        }
    }

    /// `0 - x`.
    pub fn neg(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        let zero = self.with_lanes(self.lanes_of(x)).int(self.prim_of(x), 0);
        self.sub(zero, x)
    }

    /// Bitwise complement.
    pub fn not(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        let ones = self.with_lanes(self.lanes_of(x)).int(self.prim_of(x), u64::MAX);
        self.xor(x, ones)
    }

    /// A float with the sign bit flipped.
    pub fn fneg(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        Ok(match x {
            BasicValueEnum::FloatValue(x) => self.builder.build_float_neg(x, "")?.into(),
            BasicValueEnum::VectorValue(x) => self.builder.build_float_neg(x, "")?.into(),
            _ => return Err(Error::Llvm("negation of what is no float".into())),
        })
    }

    /// `a * b + c` with one rounding: only where the exact sum is asked for, never as an optimization of
    /// exact operations.
    pub fn fma(&self, a: Value<'ctx>, b: Value<'ctx>, c: Value<'ctx>) -> Result<Value<'ctx>> {
        self.intrinsic("llvm.fma", &[a.get_type()], &[a, b, c])
    }

    /// Comparison of integers or addresses.
    pub fn icmp(&self, predicate: IntPredicate, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        Ok(match (a, b) {
            (BasicValueEnum::IntValue(a), BasicValueEnum::IntValue(b)) => {
                self.builder.build_int_compare(predicate, a, b, "")?.into()
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                self.builder.build_int_compare(predicate, a, b, "")?.into()
            }
            (BasicValueEnum::PointerValue(a), BasicValueEnum::PointerValue(b)) => {
                self.builder.build_int_compare(predicate, a, b, "")?.into()
            }
            _ => return Err(Error::Llvm("comparison of a scalar and a vector".into())),
        })
    }

    /// Comparison of floats.
    pub fn fcmp(&self, predicate: FloatPredicate, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        Ok(match (a, b) {
            (BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)) => {
                self.builder.build_float_compare(predicate, a, b, "")?.into()
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                self.builder.build_float_compare(predicate, a, b, "")?.into()
            }
            _ => return Err(Error::Llvm("comparison of a scalar and a vector".into())),
        })
    }

    /// Whether any lane of a truth value is set.
    pub fn any(&self, mask: Value<'ctx>) -> Result<Value<'ctx>> {
        match self.lanes_of(mask) {
            1 => Ok(mask),
            _ => self.intrinsic("llvm.vector.reduce.or", &[mask.get_type()], &[mask]),
        }
    }

    /// `a` where the `i1` (of each lane, or one for all) is set, else `b`.
    pub fn select(&self, condition: Value<'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
        Ok(match condition {
            BasicValueEnum::IntValue(c) => self.builder.build_select(c, a, b, "")?,
            BasicValueEnum::VectorValue(c) => self.builder.build_select(c, a, b, "")?,
            _ => return Err(Error::Llvm("selection by what is no truth value".into())),
        })
    }

    /// A call of an intrinsic ("llvm.fma") of these overload types.
    pub fn intrinsic(
        &self,
        name: &str,
        overload: &[BasicTypeEnum<'ctx>],
        arguments: &[Value<'ctx>],
    ) -> Result<Value<'ctx>> {
        self.result_of(self.intrinsic_call(name, overload, arguments)?)
    }

    /// A call of an intrinsic, which may have no value.
    pub fn intrinsic_call(
        &self,
        name: &str,
        overload: &[BasicTypeEnum<'ctx>],
        arguments: &[Value<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let function = Intrinsic::find(name)
            .and_then(|i| i.get_declaration(self.module, overload))
            .ok_or_else(|| Error::Llvm(format!("no intrinsic {name}")))?;
        self.call(function, arguments)
    }

    /// A call.
    pub fn call(
        &self,
        function: FunctionValue<'ctx>,
        arguments: &[Value<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> = arguments.iter().map(|&a| a.into()).collect();
        Ok(self.builder.build_call(function, &arguments, "")?)
    }

    /// The value of a call.
    pub(super) fn result_of(&self, call: CallSiteValue<'ctx>) -> Result<Value<'ctx>> {
        match call.try_as_basic_value() {
            ValueKind::Basic(value) => Ok(value),
            ValueKind::Instruction(_) => {
                Err(Error::Llvm("a call without a value where one is needed".into()))
            }
        }
    }

    /// A call of a function of the runtime, on scalars: a symbol that the loader resolves
    /// (`hlo_codegen::runtime::functions`).
    pub fn external(&self, symbol: &str, result: Prim, arguments: &[Value<'ctx>]) -> Result<Value<'ctx>> {
        self.result_of(self.external_call(symbol, Some(result), arguments)?)
    }

    /// [`Emit::external`] of a function that may have no result.
    pub fn external_call(
        &self,
        symbol: &str,
        result: Option<Prim>,
        arguments: &[Value<'ctx>],
    ) -> Result<CallSiteValue<'ctx>> {
        let function = self.module.get_function(symbol).unwrap_or_else(|| {
            let types: Vec<BasicMetadataTypeEnum<'ctx>> =
                arguments.iter().map(|a| a.get_type().into()).collect();
            let ty = match result {
                Some(prim) => self.lane_type(prim).fn_type(&types, false),
                None => self.context.void_type().fn_type(&types, false),
            };
            self.module.add_function(symbol, ty, None)
        });
        self.call(function, arguments)
    }

    /// A scalar broadcast to all lanes; vectors stay.
    pub fn splat(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        if self.lanes == 1 || self.lanes_of(x) == self.lanes {
            return Ok(x);
        }
        let poison = self.poison(self.prim_of(x));
        let first = self.insert(poison, x, 0)?;
        self.shuffle(first, poison, &vec![0; self.lanes as usize])
    }

    /// A lane of a vector; a scalar itself.
    pub fn extract(&self, x: Value<'ctx>, lane: u32) -> Result<Value<'ctx>> {
        match x {
            BasicValueEnum::VectorValue(v) => {
                let index = self.context.i32_type().const_int(u64::from(lane), false);
                Ok(self.builder.build_extract_element(v, index, "")?)
            }
            scalar => Ok(scalar),
        }
    }

    /// A vector with one lane replaced; for a scalar the replacement.
    pub fn insert(&self, x: Value<'ctx>, element: Value<'ctx>, lane: u32) -> Result<Value<'ctx>> {
        match x {
            BasicValueEnum::VectorValue(v) => {
                let index = self.context.i32_type().const_int(u64::from(lane), false);
                Ok(self.builder.build_insert_element(v, element, index, "")?.into())
            }
            _ => Ok(element),
        }
    }

    /// A shuffle: the lanes of `a`, then `b`, by these numbers.
    pub fn shuffle(&self, a: Value<'ctx>, b: Value<'ctx>, lanes: &[u32]) -> Result<Value<'ctx>> {
        let mask: Vec<u64> = lanes.iter().map(|&l| u64::from(l)).collect();
        let mask = self.vector(self.int_lanes(Prim::I32, &mask))?;
        Ok(self.builder.build_shuffle_vector(self.vector(a)?, self.vector(b)?, mask, "")?.into())
    }

    /// The value of a chain or tree of shuffles after `depth` of them: every second one is fenced. LLVM's
    /// combination of shuffles visits all that a shuffle is made of, in time exponential in the depth, and
    /// finds nothing beyond two.
    pub fn after_shuffles(&self, x: Value<'ctx>, depth: u32) -> Result<Value<'ctx>> {
        if depth > 0 && depth.is_multiple_of(2) { self.fenced(x) } else { Ok(x) }
    }

    /// The same value behind an optimization fence, across which LLVM combines nothing. No instruction.
    pub fn fenced(&self, x: Value<'ctx>) -> Result<Value<'ctx>> {
        let ty = x.get_type();
        let BasicTypeEnum::VectorType(vector) = ty else { return Ok(x) };
        let prim = self.prim_of(x);
        let bits = prim.bits() * vector.get_size();
        // LLVM's fence is for floats, and vectors of 128 bits and more are in registers.
        let float = match prim {
            Prim::F32 | Prim::F64 => ty,
            _ if bits.is_multiple_of(128) => self.context.f32_type().vec_type(bits / 32).into(),
            _ => return Ok(x),
        };
        let fenced = self.intrinsic("llvm.arithmetic.fence", &[float], &[self.bitcast_to(x, float)?])?;
        self.bitcast_to(fenced, ty)
    }

    /// As the vector that it must be.
    pub fn vector(&self, x: Value<'ctx>) -> Result<VectorValue<'ctx>> {
        match x {
            BasicValueEnum::VectorValue(v) => Ok(v),
            _ => Err(Error::Llvm("a scalar where a vector is needed".into())),
        }
    }

    /// As the scalar integer that it must be.
    pub fn scalar_int(&self, x: Value<'ctx>) -> Result<IntValue<'ctx>> {
        match x {
            BasicValueEnum::IntValue(v) => Ok(v),
            _ => Err(Error::Llvm("no scalar integer where one is needed".into())),
        }
    }

    /// As the address that it must be.
    pub fn pointer(&self, x: Value<'ctx>) -> Result<PointerValue<'ctx>> {
        match x {
            BasicValueEnum::PointerValue(v) => Ok(v),
            _ => Err(Error::Llvm("no address where one is needed".into())),
        }
    }

    /// Calls a scalar function for each lane and joins the results: for what has no vector form.
    pub fn each_lane(
        &self,
        operands: &[Value<'ctx>],
        result: Prim,
        mut f: impl FnMut(&Self, &[Value<'ctx>]) -> Result<Value<'ctx>>,
    ) -> Result<Value<'ctx>> {
        if self.lanes == 1 {
            return f(self, operands);
        }
        let one = self.scalar();
        let mut all = self.poison(result);
        for lane in 0..self.lanes {
            let operands = operands.iter().map(|&x| self.extract(x, lane)).collect::<Result<Vec<_>>>()?;
            let value = f(&one, &operands)?;
            all = self.insert(all, value, lane)?;
        }
        Ok(all)
    }

    /// Whether the value is a constant of the module.
    pub fn is_constant(&self, x: Value<'ctx>) -> bool {
        match x {
            BasicValueEnum::IntValue(v) => v.is_const(),
            BasicValueEnum::FloatValue(v) => v.is_const(),
            BasicValueEnum::PointerValue(v) => v.is_const(),
            BasicValueEnum::VectorValue(v) => v.is_const(),
            BasicValueEnum::ArrayValue(v) => v.is_const(),
            BasicValueEnum::StructValue(v) => v.is_const(),
            BasicValueEnum::ScalableVectorValue(v) => v.is_const(),
        }
    }

    /// Metadata on an instruction that made a value.
    pub(super) fn annotate(
        &self,
        x: &impl BasicValue<'ctx>,
        kind: &str,
        node: &[BasicMetadataValueEnum<'ctx>],
    ) -> Result<()> {
        if let Some(instruction) = x.as_instruction_value() {
            instruction.set_metadata(self.context.metadata_node(node), self.context.get_kind_id(kind))?;
        }
        Ok(())
    }
}
