//! Arity, attributes, sizes, layouts, and the declared shape against the inferred one.

use super::{Verifier, count};
use crate::attrs::{AttrKey, AttrValue};
use crate::diag::{Diagnostic, codes};
use crate::ids::InstrId;
use crate::infer;
use crate::literal::ConstantValue;
use crate::module::Instruction;
use crate::opcode::{Arity, Opcode};
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// Which instructions to look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All.
    Everything,
    /// Those whose operands come before them: after structural errors, the others have been reported.
    OnlySoundOperands,
}

pub(super) fn check(v: &mut Verifier<'_>, scope: Scope) {
    v.for_each(|v, id, instr| {
        if scope == Scope::OnlySoundOperands {
            let sound = |o: &InstrId| v.position[o.index()] < v.position[id.index()];
            let calls = instr.attrs.called_computations();
            if !instr.operands().iter().all(sound) || !calls.is_empty() {
                return;
            }
        }
        let sized = size_and_layout(v, id, &instr.shape);
        let complete = arity(v, id, instr) & required_attributes(v, id, instr);
        if sized && complete {
            inferred(v, instr);
            literal(v, id, instr);
            if !v.options.allow_mixed_precision {
                mixed_precision(v, id, instr);
            }
            if v.options.layout_sensitive {
                layout_kept(v, id, instr);
            }
        }
    });
}

fn arity(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) -> bool {
    let n = instr.operands().len();
    let arity = instr.opcode.arity();
    if arity.accepts(n) {
        return true;
    }
    let takes = match arity {
        Arity::Exactly(k) => format!("exactly {}", count(k, "operand")),
        Arity::AtLeast(k) => format!("at least {}", count(k, "operand")),
    };
    v.report(id, codes::WRONG_ARITY, format!("has {}", count(n, "operand")), |d| {
        d.label(format!("takes {takes}"))
    });
    false
}

fn required_attributes(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) -> bool {
    let mut complete = true;
    for slot in instr.opcode.attrs().iter().filter(|s| s.required) {
        if instr.attrs.get(slot.key).is_none() {
            complete = false;
            v.error(id, codes::MISSING_ATTRIBUTE, format!("the attribute `{}` is missing", slot.key.text()));
        }
    }
    for (key, _) in instr.attrs.iter() {
        let known = instr.opcode.attrs().iter().any(|s| s.key == key) || crate::attrs::COMMON.contains(&key);
        if !known {
            complete = false;
            v.error(id, codes::UNKNOWN_ATTRIBUTE, format!("takes no attribute `{}`", key.text()));
        }
    }
    complete
}

/// Sizes that fit, layouts of the right rank.
pub(super) fn size_and_layout(v: &mut Verifier<'_>, id: InstrId, shape: &Shape) -> bool {
    let mut ok = true;
    let mut leaves = Vec::new();
    shape.for_each_leaf(&mut |leaf| match leaf {
        Shape::Array(a) => leaves.push(a.clone()),
        Shape::Buffer(inner) => leaves.extend(inner.as_array().cloned()),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => {}
    });
    for a in leaves {
        let unbounded = a.dims.contains(&UNBOUNDED);
        if unbounded && !v.options.allow_unbounded {
            ok = false;
            v.error(id, codes::UNBOUNDED_DIMENSION, format!("the shape {a} has an unbounded dimension"));
        } else if !unbounded && Shape::Array(a.clone()).checked_bytes().is_none() {
            ok = false;
            v.error(id, codes::SHAPE_TOO_LARGE, format!("the size of {a} does not fit into 63 bits"));
        }
        ok &= layout(v, id, &a);
    }
    if ok && shape.checked_bytes().is_none() && !v.options.allow_unbounded {
        ok = false;
        v.error(id, codes::SHAPE_TOO_LARGE, format!("the size of {shape} does not fit into 63 bits"));
    }
    ok
}

fn layout(v: &mut Verifier<'_>, id: InstrId, a: &ArrayShape) -> bool {
    let Some(layout) = &a.layout else { return true };
    if layout.minor_to_major.is_empty() && a.rank() > 0 && layout.dim_levels.is_empty() {
        return true; // Only tiles or a memory space are given: the order is the default one.
    }
    let mut seen = vec![false; a.rank()];
    let permutation = layout.minor_to_major.len() == a.rank()
        && layout.minor_to_major.iter().all(|&d| {
            usize::try_from(d).ok().and_then(|d| seen.get_mut(d)).is_some_and(|s| !std::mem::replace(s, true))
        });
    if !permutation {
        let message = format!("the layout of {a} does not order its {}", count(a.rank(), "dimension"));
        v.error(id, codes::LAYOUT_RANK, message);
    }
    permutation
}

fn inferred(v: &mut Verifier<'_>, instr: &Instruction) {
    let module = v.module;
    let operands: Vec<&Shape> = instr.operands().iter().map(|&o| &module.instr(o).shape).collect();
    if let Err(e) = infer::check(module, instr.opcode, &operands, &instr.attrs, &instr.shape) {
        // The message begins with the opcode already.
        let mut d = Diagnostic::error(e.code, instr.span, e.message).label(e.label);
        for (operand, label) in e.operands {
            if let Some(&o) = instr.operands().get(operand) {
                d = d.related(module.instr(o).span, label);
            }
        }
        d = e.notes.into_iter().fold(d, Diagnostic::note);
        if instr.span.is_none() {
            d = d.note(format!("in instruction %{}", instr.name));
        }
        v.diagnostics.push(d);
    }
}

fn literal(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    if instr.opcode != Opcode::Constant {
        return;
    }
    if let Some(AttrValue::Literal(ConstantValue::Given(literal))) = instr.attrs.get(AttrKey::ConstantValue)
        && !literal.shape().compatible(&instr.shape)
    {
        let message =
            format!("the literal is of shape {}, the instruction of {}", literal.shape(), instr.shape);
        v.error(id, codes::LITERAL_SHAPE, message);
    }
}

/// Opcodes whose operands may be floats of different types even where mixed precision is not allowed.
fn may_mix(opcode: Opcode) -> bool {
    use Opcode::{
        AllReduce, AllReduceStart, AsyncDone, AsyncStart, AsyncUpdate, Call, CollectivePermuteStart,
        Conditional, Constant, Convolution, CopyDone, CopyStart, CustomCall, Domain, Dot, Fusion,
        GetTupleElement, Infeed, OptBarrier, Outfeed, Parameter, RaggedDot, Recv, RecvDone, Reduce,
        ReducePrecision, ReduceScatter, ReduceWindow, ScaledDot, Send, SendDone, Sort, Tuple, While,
    };
    matches!(
        opcode,
        AllReduce
            | AllReduceStart
            | AsyncDone
            | AsyncStart
            | AsyncUpdate
            | Call
            | CollectivePermuteStart
            | Conditional
            | Constant
            | Convolution
            | CopyDone
            | CopyStart
            | CustomCall
            | Domain
            | Dot
            | Fusion
            | GetTupleElement
            | Infeed
            | OptBarrier
            | Outfeed
            | Parameter
            | RaggedDot
            | Recv
            | RecvDone
            | Reduce
            | ReducePrecision
            | ReduceScatter
            | ReduceWindow
            | ScaledDot
            | Send
            | SendDone
            | Sort
            | Tuple
            | While
    )
}

fn mixed_precision(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    if may_mix(instr.opcode) {
        return;
    }
    let mut seen = None;
    for &operand in instr.operands() {
        for leaf in v.module.instr(operand).shape.leaves() {
            let Some(ty) = leaf.element_type().filter(|t| t.is_float()) else { continue };
            let first = *seen.get_or_insert(ty);
            if first != ty {
                v.error(id, codes::MIXED_PRECISION, format!("operands are of type {first} and of type {ty}"));
                return;
            }
        }
    }
}

/// Opcodes that may give their result another layout than their operands have.
fn may_change_layout(opcode: Opcode) -> bool {
    use Opcode::{
        AllGather, AllToAll, AsyncDone, AsyncStart, AsyncUpdate, Bitcast, BitcastConvert, Broadcast, Call,
        Concatenate, Conditional, Constant, Convolution, Copy, CopyDone, CopyStart, CustomCall, Dot,
        DynamicReshape, Fft, Fusion, Gather, GetTupleElement, Infeed, Iota, Outfeed, Parameter, RaggedDot,
        Recv, RecvDone, Reduce, ReduceWindow, Reshape, Rng, RngBitGenerator, ScaledDot, Scatter, Send,
        SendDone, Transpose, Tuple, While,
    };
    matches!(
        opcode,
        AllGather
            | AllToAll
            | AsyncDone
            | AsyncStart
            | AsyncUpdate
            | Bitcast
            | BitcastConvert
            | Broadcast
            | Call
            | Concatenate
            | Conditional
            | Constant
            | Convolution
            | Copy
            | CopyDone
            | CopyStart
            | CustomCall
            | Dot
            | DynamicReshape
            | Fft
            | Fusion
            | Gather
            | GetTupleElement
            | Infeed
            | Iota
            | Outfeed
            | Parameter
            | RaggedDot
            | Recv
            | RecvDone
            | Reduce
            | ReduceWindow
            | Reshape
            | Rng
            | RngBitGenerator
            | ScaledDot
            | Scatter
            | Send
            | SendDone
            | Transpose
            | Tuple
            | While
    )
}

fn layout_kept(v: &mut Verifier<'_>, id: InstrId, instr: &Instruction) {
    if may_change_layout(instr.opcode) {
        return;
    }
    let Some(Shape::Array(result)) = Some(&instr.shape) else { return };
    let Some(layout) = &result.layout else { return };
    for (n, &operand) in instr.operands().iter().enumerate() {
        let Some(a) = v.module.instr(operand).shape.as_array() else { continue };
        let Some(other) = a.layout.as_ref().filter(|_| a.rank() == result.rank()) else { continue };
        if other.minor_to_major != layout.minor_to_major {
            let message = format!("the result is laid out as {result}, operand {n} as {a}");
            v.error(id, codes::LAYOUT_CHANGED, message);
        }
    }
}
