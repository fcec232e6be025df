//! Steps that are aimed at a pair of an opcode and an element type.
//!
//! A step picks a pair, sets it as what is wanted and calls the family of the opcode. While something is
//! wanted, the first of a family's choices that decide are not left to chance: [`Generator::opcode`] gives
//! the opcode, [`Generator::element_type`], [`Generator::type_of`] and [`Generator::value`] give the type.
//! Computations inside are made without it.

use std::sync::LazyLock;

use hlo::{ElementType, InstrId, Opcode};

use super::body::Body;
use super::{
    Family, Generator, Limits, collective, contraction, control, dynamic, elementwise, fusions, indexing,
    library, linear, movement, reduction, structure, transfer,
};
use crate::legal::{Key, Legal};

/// An opcode and what it is used on.
pub type Pair = (Opcode, Key);

/// The target of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) opcode: Opcode,
    /// The type that the pair is counted by.
    pub(super) ty: Option<ElementType>,
    /// Of an opcode that is counted by two types, that of the result.
    pub(super) to: Option<ElementType>,
}

impl From<Pair> for Want {
    fn from((opcode, key): Pair) -> Self {
        let (ty, to) = match key {
            Key::Nothing => (None, None),
            Key::On(ty) => (Some(ty), None),
            Key::FromTo(from, to) => (Some(from), Some(to)),
        };
        Self { opcode, ty, to }
    }
}

/// The legal keys of each opcode, in the order of the opcodes.
static TABLE: LazyLock<Vec<(Opcode, Vec<Key>)>> = LazyLock::new(|| {
    let legal = Legal::table();
    Opcode::ALL.iter().map(|&o| (o, legal.keys(o).to_vec())).collect()
});

/// Whether programs of these limits may hold an opcode.
fn allowed(opcode: Opcode, limits: Limits) -> bool {
    let transfer = matches!(
        opcode,
        Opcode::Infeed | Opcode::Outfeed | Opcode::Recv | Opcode::RecvDone | Opcode::Send | Opcode::SendDone
    );
    let open = matches!(opcode, Opcode::Rng | Opcode::RngGetAndUpdateState);
    (limits.transfers || !transfer) && (limits.open_random || !open)
}

/// The pairs that programs of these limits can hold: the legal ones of all opcodes that are allowed.
pub fn fuzzable(limits: Limits) -> Vec<Pair> {
    let rows = TABLE.iter().filter(|(opcode, _)| allowed(*opcode, limits));
    rows.flat_map(|(opcode, keys)| keys.iter().map(|&key| (*opcode, key))).collect()
}

impl Generator<'_> {
    /// A step towards a pair: of those that were asked for, or any.
    pub(super) fn aimed(&mut self, body: &mut Body) -> Option<InstrId> {
        let pair = if self.aims.is_empty() {
            // The two that have most pairs are picked for themselves, too.
            let row = if self.choices.chance(90) {
                self.choices.pick(&[Opcode::Convert, Opcode::BitcastConvert]) as usize
            } else {
                self.choices.below(TABLE.len())
            };
            let (opcode, keys) = &TABLE[row];
            (*opcode, self.choices.pick(keys))
        } else {
            self.choices.pick(self.aims)
        };
        if !allowed(pair.0, self.limits) {
            return None;
        }
        let before = self.want.replace(pair.into());
        let made = family_of(pair.0)(self, body);
        self.want = before;
        made
    }

    /// Makes something without regard to what is wanted.
    pub(super) fn freely<R>(&mut self, make: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.want.take();
        let made = make(self);
        self.want = before;
        made
    }

    /// The opcode that is wanted, if it is among these; else one of them.
    pub(super) fn opcode(&mut self, of: &[Opcode]) -> Opcode {
        match self.want {
            Some(want) if of.contains(&want.opcode) => want.opcode,
            Some(_) | None => self.choices.pick(of),
        }
    }

    /// Whether this opcode is wanted, or nothing is and chance says so.
    pub(super) fn either(&mut self, opcode: Opcode, odds: u8) -> bool {
        match self.want {
            Some(want) => want.opcode == opcode,
            None => self.choices.chance(odds),
        }
    }

    /// The type that is wanted; else one of these.
    pub(super) fn type_of(&mut self, of: &[ElementType]) -> ElementType {
        match self.want.and_then(|w| w.ty) {
            Some(ty) => ty,
            None => self.choices.pick(of),
        }
    }
}

/// The family that makes an opcode.
fn family_of(opcode: Opcode) -> Family {
    match opcode {
        Opcode::Abs
        | Opcode::Acos
        | Opcode::Acosh
        | Opcode::Asin
        | Opcode::Asinh
        | Opcode::Atanh
        | Opcode::Cbrt
        | Opcode::Ceil
        | Opcode::Cosine
        | Opcode::Cosh
        | Opcode::CountLeadingZeros
        | Opcode::Erf
        | Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Floor
        | Opcode::Imag
        | Opcode::IsFinite
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Negate
        | Opcode::Not
        | Opcode::Popcnt
        | Opcode::Real
        | Opcode::RoundNearestAfz
        | Opcode::RoundNearestEven
        | Opcode::Rsqrt
        | Opcode::Sign
        | Opcode::Sine
        | Opcode::Sinh
        | Opcode::Sqrt
        | Opcode::Tan
        | Opcode::Tanh => elementwise::unary,
        Opcode::Add
        | Opcode::And
        | Opcode::Atan2
        | Opcode::Divide
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Mulhi
        | Opcode::Multiply
        | Opcode::Or
        | Opcode::Power
        | Opcode::Remainder
        | Opcode::ShiftLeft
        | Opcode::ShiftRightArithmetic
        | Opcode::ShiftRightLogical
        | Opcode::Subtract
        | Opcode::Xor => elementwise::binary,
        Opcode::Convert => elementwise::convert,
        Opcode::BitcastConvert => elementwise::bitcast_convert,
        Opcode::Compare => elementwise::compare,
        Opcode::Select => elementwise::select,
        Opcode::Clamp => elementwise::clamp,
        Opcode::ReducePrecision => elementwise::reduce_precision,
        Opcode::Complex => elementwise::complex,
        Opcode::StochasticConvert => elementwise::stochastic_convert,
        Opcode::Bitcast
        | Opcode::Broadcast
        | Opcode::Copy
        | Opcode::Reshape
        | Opcode::Reverse
        | Opcode::Transpose => movement::reshape_like,
        Opcode::Slice => movement::cut,
        Opcode::Concatenate => movement::concatenate,
        Opcode::Pad => movement::pad,
        Opcode::DynamicSlice => movement::dynamic_slice,
        Opcode::DynamicUpdateSlice => movement::dynamic_update_slice,
        Opcode::DynamicReshape | Opcode::GetDimensionSize | Opcode::SetDimensionSize => dynamic::sizes,
        Opcode::Gather => indexing::gather,
        Opcode::Scatter => indexing::scatter,
        Opcode::Iota => structure::iota,
        Opcode::Constant => structure::constant,
        Opcode::Parameter => structure::parameter,
        Opcode::Tuple | Opcode::GetTupleElement => structure::nested_tuple,
        Opcode::OptBarrier => structure::barrier,
        Opcode::AddDependency | Opcode::AfterAll => structure::dependency,
        Opcode::CopyStart | Opcode::CopyDone => structure::copy_async,
        Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone => structure::async_chain,
        Opcode::Domain => structure::domain,
        Opcode::Convolution => contraction::convolution,
        Opcode::Dot => contraction::dot,
        Opcode::RaggedDot => contraction::ragged_dot,
        Opcode::ScaledDot => contraction::scaled_dot,
        Opcode::Map => reduction::map,
        Opcode::Reduce => reduction::reduce,
        Opcode::ReduceWindow => reduction::reduce_window,
        Opcode::Scan => reduction::scan,
        Opcode::SelectAndScatter => reduction::select_and_scatter,
        Opcode::Sort => reduction::sort,
        Opcode::Topk => reduction::topk,
        Opcode::BatchNormGrad | Opcode::BatchNormInference | Opcode::BatchNormTraining => linear::batch_norm,
        Opcode::Cholesky => linear::cholesky,
        Opcode::Fft => linear::fft,
        Opcode::TriangularSolve => linear::triangular_solve,
        Opcode::Rng | Opcode::RngGetAndUpdateState => linear::random,
        Opcode::RngBitGenerator => linear::random_bits,
        Opcode::Call => control::call,
        Opcode::Conditional => control::conditional,
        Opcode::While => control::while_loop,
        Opcode::Fusion => fusions::fusion,
        Opcode::CustomCall => library::custom_call,
        Opcode::Infeed
        | Opcode::Outfeed
        | Opcode::Recv
        | Opcode::RecvDone
        | Opcode::Send
        | Opcode::SendDone => transfer::transfer,
        Opcode::AllGather
        | Opcode::AllGatherStart
        | Opcode::AllGatherDone
        | Opcode::AllReduce
        | Opcode::AllReduceStart
        | Opcode::AllReduceDone
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectivePermuteStart
        | Opcode::CollectivePermuteDone
        | Opcode::CollectiveReduce
        | Opcode::RaggedAllToAll
        | Opcode::ReduceScatter
        | Opcode::PartitionId
        | Opcode::ReplicaId => collective::collective,
    }
}
