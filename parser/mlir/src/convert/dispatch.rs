//! Which family converts an operation.

use hlo::Opcode;

use super::CheckKind;
use super::cx::{Convert, Converter};
use crate::ir::{Attribute, Module, OpId};

/// The name of a check, `expect_eq`, whichever form it has.
fn check_name(m: &Module, op: OpId) -> Option<&str> {
    let name = m.op_name(op);
    if let Some(check) = name.strip_prefix("check.") {
        return Some(check);
    }
    if !matches!(name, "stablehlo.custom_call" | "mhlo.custom_call") {
        return None;
    }
    match m.attr(op, "call_target_name").map(|a| m.get_attribute(a)) {
        Some(Attribute::String { text, .. }) => text.strip_prefix("check."),
        _ => None,
    }
}

/// Whether an operation is a check.
pub(super) fn is_check(m: &Module, op: OpId) -> bool {
    check_name(m, op).is_some()
}

/// The tolerance of `expect_almost_eq`, unless it says another.
const TOLERANCE: f64 = 1e-4;

/// The tolerance of the custom call of that name.
const CUSTOM_CALL_TOLERANCE: f64 = 1e-3;

/// The maximum number of units in the last place of `check.expect_close` as a custom call.
const CLOSE_ULPS: u64 = 3;

impl Converter<'_> {
    /// How an operation compares, if it is a check that compares.
    pub(super) fn check_kind(&self, op: OpId) -> Convert<Option<CheckKind>> {
        let Some(name) = check_name(self.m, op) else { return Ok(None) };
        Ok(Some(match name {
            "expect_eq" | "expect_eq_const" => CheckKind::Equal,
            "eq" => CheckKind::Almost(TOLERANCE),
            "expect_serialized_eq" => CheckKind::Equal,
            "expect_almost_eq" if self.m.op_name(op).ends_with(".custom_call") => {
                CheckKind::Almost(CUSTOM_CALL_TOLERANCE)
            }
            "expect_almost_eq" | "expect_almost_eq_const" => {
                CheckKind::Almost(self.float(op, "tolerance").unwrap_or(TOLERANCE))
            }
            "expect_close" => {
                let ulps = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
                CheckKind::Close {
                    min: ulps(self.int_or(op, "min_ulp_difference", 0)?),
                    max: ulps(self.int_or(op, "max_ulp_difference", CLOSE_ULPS as i64)?),
                }
            }
            _ => return self.unsupported(op, "no check of this name is known"),
        }))
    }

    pub(super) fn operation(&mut self, op: OpId) -> Convert<()> {
        let full = self.m.op_name(op);
        if is_check(self.m, op) {
            // What is checked is a result of the program; that of the check itself is of no use.
            return Ok(());
        }
        if !self.m.op(op).regions.is_empty() {
            self.regions_of(op)?;
        }
        let Some((dialect, name)) = full.split_once('.') else {
            return self.unsupported(op, "no operation of StableHLO");
        };
        match dialect {
            "stablehlo" | "mhlo" => self.stablehlo(op, name),
            "chlo" => self.chlo(op, name),
            _ => match full {
                "func.call" => self.call(op, false),
                "arith.constant" => self.constant(op),
                "tensor.cast" => self.cast(op),
                "interpreter.print" => Ok(()),
                "interpreter.probe" => self.same(op),
                "interpreter.run_parallel" => self.run_parallel(op),
                "sdy.sharding_constraint" => self.sharding_constraint(op),
                "sdy.manual_computation" => self.manual_computation(op),
                "sdy.sharding_group" => self.sharding_group(op),
                _ => self.unsupported(op, "the dialect has no HLO"),
            },
        }
    }

    /// An operation of StableHLO by its name.
    pub(super) fn stablehlo(&mut self, op: OpId, name: &str) -> Convert<()> {
        use Opcode as O;
        if self.is_quantized(op) {
            return self.quantized_operation(op, name);
        }
        self.rules(op, name)?;
        match name {
            "constant" => self.constant(op),
            "abs" => self.unary(op, O::Abs),
            "cbrt" => self.cbrt(op),
            "ceil" => self.unary(op, O::Ceil),
            "convert" => self.convert(op),
            "cosine" => self.unary(op, O::Cosine),
            "count_leading_zeros" => self.unary(op, O::CountLeadingZeros),
            "erf" => self.unary(op, O::Erf),
            "exponential" => self.unary(op, O::Exponential),
            "exponential_minus_one" => self.unary(op, O::ExponentialMinusOne),
            "floor" => self.unary(op, O::Floor),
            "is_finite" => self.unary(op, O::IsFinite),
            "log" => self.unary(op, O::Log),
            "log_plus_one" => self.unary(op, O::LogPlusOne),
            "logistic" => self.unary(op, O::Logistic),
            "negate" => self.unary(op, O::Negate),
            "not" => self.unary(op, O::Not),
            "popcnt" => self.unary(op, O::Popcnt),
            "real" => self.part_of_complex(op, O::Real),
            "imag" => self.part_of_complex(op, O::Imag),
            "round_nearest_afz" => self.unary(op, O::RoundNearestAfz),
            "round_nearest_even" => self.unary(op, O::RoundNearestEven),
            "rsqrt" => self.unary(op, O::Rsqrt),
            "sign" => self.unary(op, O::Sign),
            "sine" => self.unary(op, O::Sine),
            "sqrt" => self.unary(op, O::Sqrt),
            "tan" => self.unary(op, O::Tan),
            "tanh" => self.unary(op, O::Tanh),
            // HLO's own, which MHLO has and StableHLO has not.
            "acos" => self.unary(op, O::Acos),
            "acosh" => self.unary(op, O::Acosh),
            "asin" => self.unary(op, O::Asin),
            "asinh" => self.unary(op, O::Asinh),
            "atanh" => self.unary(op, O::Atanh),
            "cosh" => self.unary(op, O::Cosh),
            "sinh" => self.unary(op, O::Sinh),
            "add" => self.binary(op, O::Add),
            "and" => self.binary(op, O::And),
            "atan2" => self.binary(op, O::Atan2),
            "complex" => self.binary(op, O::Complex),
            "divide" => self.binary(op, O::Divide),
            "maximum" => self.binary(op, O::Maximum),
            "minimum" => self.binary(op, O::Minimum),
            "multiply" => self.binary(op, O::Multiply),
            "or" => self.binary(op, O::Or),
            "power" => self.binary(op, O::Power),
            "remainder" => self.binary(op, O::Remainder),
            "shift_left" => self.binary(op, O::ShiftLeft),
            "shift_right_arithmetic" => self.binary(op, O::ShiftRightArithmetic),
            "shift_right_logical" => self.binary(op, O::ShiftRightLogical),
            "stochastic_convert" => self.binary(op, O::StochasticConvert),
            "subtract" => self.binary(op, O::Subtract),
            "xor" => self.binary(op, O::Xor),
            "compare" => self.compare(op),
            "clamp" => self.clamp(op),
            "select" => self.select(op),
            "reduce_precision" => self.reduce_precision(op),
            "copy" => self.unary(op, O::Copy),
            "bitcast" => self.unary(op, O::Bitcast),
            "bitcast_convert" => self.bitcast_convert(op),
            "iota" => self.iota(op),
            "broadcast" => self.broadcast(op),
            "broadcast_in_dim" => self.broadcast_in_dim(op),
            "concatenate" => self.concatenate(op),
            "pad" => self.pad(op),
            "reshape" => self.reshape(op),
            "reverse" => self.reverse(op),
            "slice" => self.slice(op),
            "transpose" => self.transpose(op),
            "get_dimension_size" => self.get_dimension_size(op),
            "set_dimension_size" => self.set_dimension_size(op),
            "dynamic_slice" => self.dynamic_slice(op),
            "dynamic_update_slice" => self.dynamic_update_slice(op),
            "gather" => self.gather(op),
            "torch_index_select" => self.torch_index_select(op),
            "scatter" => self.scatter(op),
            "dynamic_broadcast_in_dim"
            | "dynamic_reshape"
            | "dynamic_iota"
            | "dynamic_pad"
            | "dynamic_gather"
            | "dynamic_conv"
            | "real_dynamic_slice" => self.dynamic(op, name),
            "dot" => self.dot(op),
            "dot_general" => self.dot_general(op),
            "convolution" => self.convolution(op, None),
            "einsum" => self.einsum(op),
            "map" => self.map(op),
            "reduce" => self.reduce(op),
            "reduce_window" => self.reduce_window(op),
            "select_and_scatter" => self.select_and_scatter(op),
            "sort" => self.sort(op),
            "topk" => self.top_k(op),
            "batch_norm_training" => self.batch_norm(op, O::BatchNormTraining),
            "batch_norm_inference" => self.batch_norm(op, O::BatchNormInference),
            "batch_norm_grad" => self.batch_norm(op, O::BatchNormGrad),
            "cholesky" => self.cholesky(op),
            "triangular_solve" => self.triangular_solve(op),
            "fft" => self.fft(op),
            "rng" => self.rng(op),
            "rng_bit_generator" => self.rng_bit_generator(op),
            "while" => self.while_loop(op),
            "if" | "case" => self.branches(op),
            "tuple" => self.tuple_op(op),
            "get_tuple_element" => self.get_tuple_element(op),
            "optimization_barrier" => self.optimization_barrier(op),
            "composite" => self.call(op, true),
            "custom_call" => self.custom_call(op),
            "after_all" | "create_token" => self.after_all(op),
            "add_dependency" => self.add_dependency(op),
            "infeed" => self.infeed(op),
            "outfeed" => self.outfeed(op),
            "send" => self.send(op),
            "recv" => self.recv(op),
            "all_gather"
            | "all_reduce"
            | "all_to_all"
            | "collective_broadcast"
            | "collective_permute"
            | "collective_reduce"
            | "reduce_scatter" => self.collective(op, name),
            "async_start" => self.async_start(op),
            // What was started is done.
            "async_done" => self.same(op),
            "partition_id" => self.unary(op, O::PartitionId),
            "replica_id" => self.unary(op, O::ReplicaId),
            "cross-replica-sum" => self.unsupported(op, "it has no definition in the specification"),
            _ => self.unsupported(op, "no operation of this name has HLO"),
        }
    }

    /// The result is the operand.
    pub(super) fn same(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        self.bind_one(op, x)
    }
}
