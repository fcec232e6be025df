//! Which family converts an instruction.

use hlo::{ElementType, Instruction, Opcode, Shape};

use super::cx::{Export, Exporter, Leaves};

impl Exporter<'_> {
    /// Converts an instruction; its leaves.
    pub(super) fn instruction(&mut self, i: &Instruction) -> Export<Leaves> {
        use Opcode as O;
        self.one_precision(i)?;
        match i.opcode {
            O::Parameter => self.refuse("is not among the parameters of its computation"),
            O::Constant => self.constant(i),

            O::Abs => self.elementwise(i, "abs"),
            O::Cbrt => self.elementwise(i, "cbrt"),
            O::Ceil => self.elementwise(i, "ceil"),
            O::Cosine => self.elementwise(i, "cosine"),
            O::CountLeadingZeros => self.elementwise(i, "count_leading_zeros"),
            O::Exponential => self.elementwise(i, "exponential"),
            O::ExponentialMinusOne => self.elementwise(i, "exponential_minus_one"),
            O::Floor => self.elementwise(i, "floor"),
            O::Imag => self.elementwise(i, "imag"),
            O::IsFinite => self.elementwise(i, "is_finite"),
            O::Log => self.elementwise(i, "log"),
            O::LogPlusOne => self.elementwise(i, "log_plus_one"),
            O::Logistic => self.elementwise(i, "logistic"),
            O::Negate => self.elementwise(i, "negate"),
            O::Not => self.elementwise(i, "not"),
            O::Popcnt => self.elementwise(i, "popcnt"),
            O::Real => self.elementwise(i, "real"),
            O::RoundNearestAfz => self.elementwise(i, "round_nearest_afz"),
            O::RoundNearestEven => self.elementwise(i, "round_nearest_even"),
            O::Rsqrt => self.elementwise(i, "rsqrt"),
            O::Sign => self.elementwise(i, "sign"),
            O::Sine => self.elementwise(i, "sine"),
            O::Sqrt => self.elementwise(i, "sqrt"),
            O::Tan => self.elementwise(i, "tan"),
            O::Tanh => self.elementwise(i, "tanh"),
            O::Add => self.elementwise(i, "add"),
            O::And => self.elementwise(i, "and"),
            O::Atan2 => self.elementwise(i, "atan2"),
            O::Complex => self.elementwise(i, "complex"),
            O::Divide => self.elementwise(i, "divide"),
            O::Maximum => self.elementwise(i, "maximum"),
            O::Minimum => self.elementwise(i, "minimum"),
            O::Multiply => self.elementwise(i, "multiply"),
            O::Or => self.elementwise(i, "or"),
            O::Power => self.elementwise(i, "power"),
            O::Remainder => self.elementwise(i, "remainder"),
            O::ShiftLeft => self.elementwise(i, "shift_left"),
            O::ShiftRightArithmetic => self.elementwise(i, "shift_right_arithmetic"),
            O::ShiftRightLogical => self.elementwise(i, "shift_right_logical"),
            O::Subtract => self.elementwise(i, "subtract"),
            O::Xor => self.elementwise(i, "xor"),
            O::Clamp => self.elementwise(i, "clamp"),
            O::Select => self.elementwise(i, "select"),
            // CHLO's operations, as the calls that stand for them in portable artifacts.
            O::Acos => self.chlo_call(i, "mhlo.acos"),
            O::Acosh => self.chlo_call(i, "mhlo.acosh"),
            O::Asin => self.chlo_call(i, "mhlo.asin"),
            O::Asinh => self.chlo_call(i, "mhlo.asinh"),
            O::Atanh => self.chlo_call(i, "mhlo.atanh"),
            O::Cosh => self.chlo_call(i, "mhlo.cosh"),
            O::Sinh => self.chlo_call(i, "mhlo.sinh"),
            O::Erf => self.chlo_call(i, "mhlo.erf"),
            O::Mulhi => self.chlo_call(i, "mhlo.mulhi"),
            O::Topk => self.top_k(i),
            O::Compare => self.compare(i),
            O::Convert => self.convert(i),
            O::ReducePrecision => self.reduce_precision(i),
            O::StochasticConvert => self.refuse("StableHLO has no rounding by random bits"),

            O::Bitcast => self.bitcast(i),
            O::BitcastConvert => self.bitcast_convert(i),
            O::Broadcast => self.broadcast(i),
            O::Concatenate => self.concatenate(i),
            // The leaves of the operand: what they say of layouts, domains and partitions changes no value.
            O::Copy | O::Domain => Ok(self.operands(i)),
            O::DynamicReshape => self.dynamic_reshape(i),
            O::GetDimensionSize => self.dimension_size(i, "get_dimension_size"),
            O::SetDimensionSize => self.dimension_size(i, "set_dimension_size"),
            O::Iota => self.iota(i),
            O::Pad => self.pad(i),
            O::Reshape => self.reshape(i),
            O::Reverse => self.reverse(i),
            O::Slice => self.slice(i),
            O::Transpose => self.transpose(i),

            O::DynamicSlice => self.dynamic_slice(i),
            O::DynamicUpdateSlice => self.dynamic_update_slice(i),
            O::Gather => self.gather(i),
            O::Scatter => self.scatter(i),

            O::Convolution => self.convolution(i),
            O::Dot => self.dot(i),
            O::RaggedDot => self.ragged_dot(i),
            O::ScaledDot => self.refuse("StableHLO has no contraction of operands that are scaled in blocks"),

            O::Map => self.map(i),
            O::Reduce => self.reduce(i),
            O::ReduceWindow => self.reduce_window(i),
            O::Scan => self.refuse("StableHLO has no scan"),
            O::SelectAndScatter => self.select_and_scatter(i),
            O::Sort => self.sort(i),

            O::BatchNormGrad => self.batch_norm(i, "stablehlo.batch_norm_grad"),
            O::BatchNormInference => self.batch_norm(i, "stablehlo.batch_norm_inference"),
            O::BatchNormTraining => self.batch_norm(i, "stablehlo.batch_norm_training"),
            O::Cholesky => self.cholesky(i),
            O::Fft => self.fft(i),
            O::TriangularSolve => self.triangular_solve(i),
            O::Rng => self.rng(i),
            O::RngBitGenerator => self.rng_bit_generator(i),
            O::RngGetAndUpdateState => self.refuse("StableHLO has no counter that programs share"),

            O::AddDependency => self.add_dependency(i),
            O::AfterAll => self.after_all(i),
            O::OptBarrier => self.optimization_barrier(i),
            O::Call => self.call(i),
            O::Fusion => self.fusion(i),
            O::Conditional => self.conditional(i),
            O::While => self.while_loop(i),
            O::GetTupleElement => self.get_tuple_element(i),
            O::Tuple => Ok(self.operands(i)),
            O::CustomCall => self.custom_call(i),
            // Started and done at once.
            O::AsyncStart => self.async_start(i),
            O::AsyncUpdate => self.async_update(i),
            O::AsyncDone => self.async_done(i),
            O::CopyStart => self.copy_start(i),
            O::CopyDone | O::AllReduceDone => self.first_part(i),
            O::AllGatherDone | O::CollectivePermuteDone => self.second_part(i),

            O::Infeed => self.infeed(i),
            O::Outfeed => self.outfeed(i),
            O::Recv => self.recv(i),
            O::RecvDone => self.recv_done(i),
            O::Send => self.send(i),
            O::SendDone => self.send_done(i),

            O::AllGather => self.all_gather(i),
            O::AllGatherStart => self.all_gather_start(i),
            O::AllReduce | O::AllReduceStart => self.all_reduce(i),
            O::AllToAll => self.all_to_all(i),
            O::CollectiveBroadcast => self.collective_broadcast(i),
            O::CollectivePermute => self.collective_permute(i),
            O::CollectivePermuteStart => self.collective_permute_start(i),
            O::CollectiveReduce => self.collective_reduce(i),
            O::RaggedAllToAll => self.refuse("StableHLO has no exchange of blocks of run-time sizes"),
            O::ReduceScatter => self.reduce_scatter(i),
            O::PartitionId => self.whole("stablehlo.partition_id", &[], &[]),
            O::ReplicaId => self.whole("stablehlo.replica_id", &[], &[]),
        }
    }

    /// That an operation does not mix floats of several formats, which HLO's verifier lets through and
    /// StableHLO's does not: what it computes is rounded once, to the format of the result, so that
    /// conversions around it would compute something else.
    fn one_precision(&self, i: &Instruction) -> Export<()> {
        use Opcode as O;
        let all: Vec<&Shape> = i.operands().iter().map(|&o| &self.hlo.instr(o).shape).collect();
        let own = i.shape.leaves();
        // What belongs together: of folds an array, its initial value and its result.
        let groups: Vec<Vec<&Shape>> = match i.opcode {
            O::Compare | O::IsFinite => vec![all],
            O::Reduce | O::ReduceWindow | O::Scatter => {
                let n = if i.opcode == O::Scatter { all.len() / 2 } else { own.len() };
                let second = if i.opcode == O::Scatter { n + 1 } else { n };
                (0..own.len())
                    .map(|k| {
                        [all.get(k), all.get(second + k), own.get(k)].into_iter().flatten().copied().collect()
                    })
                    .collect()
            }
            O::Convert | O::StochasticConvert => return Ok(()),
            O::Broadcast
            | O::Concatenate
            | O::DynamicUpdateSlice
            | O::DynamicSlice
            | O::Gather
            | O::Pad
            | O::Reshape
            | O::DynamicReshape
            | O::Reverse
            | O::Slice
            | O::Transpose
            | O::Copy
            | O::SelectAndScatter
            | O::BatchNormGrad
            | O::BatchNormInference
            | O::BatchNormTraining
            | O::Cholesky
            | O::TriangularSolve
            | O::Fft
            | O::AllReduce
            | O::ReduceScatter
            | O::AllGather
            | O::AllToAll
            | O::CollectivePermute
            | O::CollectiveBroadcast
            | O::SetDimensionSize => vec![all.into_iter().chain(own).collect()],
            // Of others each value has a type of its own.
            opcode => match opcode.is_elementwise() {
                true => vec![all.into_iter().chain(own).collect()],
                false => return Ok(()),
            },
        };
        for group in groups {
            let mut first: Option<ElementType> = None;
            for shape in group {
                let element = match shape.element_type().map(ElementType::real_part) {
                    Some(e) if e.is_float() => e,
                    Some(_) | None => continue,
                };
                match first {
                    Some(other) if other != element => {
                        return self.refuse(&format!("mixes elements of types {other} and {element}"));
                    }
                    Some(_) | None => first = Some(element),
                }
            }
        }
        Ok(())
    }
}
