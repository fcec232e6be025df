//! Integer, logic and floating-point arithmetic.

use super::data::{logic, rounding};
use super::operand::Checked;
use super::{Check, Lowering};
use crate::ir::{
    CarryOp, Float1, Float2, FloatMode, FloatType, Int1, Int2, Int3, Logic, Op, PrmtMode, Round, Src,
};
use crate::lower::function::Body;
use crate::types::{Class, Type};

/// The format and number of elements of a floating-point type that has arithmetic.
pub(crate) fn float_type(ty: Type) -> Option<(FloatType, u8)> {
    Some(match ty {
        Type::F16 => (FloatType::F16, 1),
        Type::F16x2 => (FloatType::F16, 2),
        Type::Bf16 => (FloatType::Bf16, 1),
        Type::Bf16x2 => (FloatType::Bf16, 2),
        Type::F32 | Type::Tf32 => (FloatType::F32, 1),
        Type::F32x2 => (FloatType::F32, 2),
        Type::F64 => (FloatType::F64, 1),
        _ => return None,
    })
}

impl<'a> Lowering<'a> {
    pub(crate) fn arithmetic(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let name = c.i.opcode.text;
        let ty = c.ty(0);
        if ty.class() == Class::Float {
            return self.floating(b, c);
        }
        let (bits, signed) = (ty.bits(), ty.is_signed());
        let (d, x, y, z) = (c.reg(0), c.src(1), c.src(2), c.src(3));
        let int1 = |op| Op::Int1 { op, bits, signed, d, a: x };
        let packed = matches!(ty, Type::U16x2 | Type::S16x2);
        let int2 = |op| Op::Int2 { op, bits: if packed { 16 } else { bits }, signed, packed, d, a: x, b: y };
        let int3 = |op| Op::Int3 { op, bits, signed, d, a: x, b: y, c: z };
        let carries = c.has("cc") || matches!(name, "addc" | "subc" | "madc");
        if carries {
            let op = match name {
                "add" | "addc" => CarryOp::Add,
                "sub" | "subc" => CarryOp::Sub,
                _ if c.has("lo") => CarryOp::MadLo,
                _ => CarryOp::MadHi,
            };
            let read = matches!(name, "addc" | "subc" | "madc");
            b.push(Op::Carry { op, bits, signed, read, write: c.has("cc"), d, a: x, b: y, c: z });
            return Ok(());
        }
        let (lo, wide, sat) = (c.has("lo"), c.has("wide"), c.has("sat"));
        if sat && name == "mad" && (!c.has("hi") || ty != Type::S32) {
            return self.fault(c.i.opcode.span, "X0102", "`.sat` goes with `mad.hi.s32` alone");
        }
        if ty == Type::Pred {
            let op = match name {
                "not" => match c.pred_src(1) {
                    crate::ir::PredSrc::Reg(p, n) => {
                        Op::MovPred { d: c.pred(0), s: crate::ir::PredSrc::Reg(p, !n) }
                    }
                    crate::ir::PredSrc::Const(v) => {
                        Op::MovPred { d: c.pred(0), s: crate::ir::PredSrc::Const(!v) }
                    }
                },
                _ => {
                    let logic = match name {
                        "and" => Logic::And,
                        "or" => Logic::Or,
                        _ => Logic::Xor,
                    };
                    Op::PredLogic { logic, d: c.pred(0), a: c.pred_src(1), b: c.pred_src(2) }
                }
            };
            b.push(op);
            return Ok(());
        }
        let op = match name {
            "add" => int2(if sat { Int2::AddSat } else { Int2::Add }),
            "sub" => int2(if sat { Int2::SubSat } else { Int2::Sub }),
            "mul" if wide => int2(Int2::MulWide),
            "mul" => int2(if lo { Int2::MulLo } else { Int2::MulHi }),
            "mul24" => int2(if lo { Int2::Mul24Lo } else { Int2::Mul24Hi }),
            "mad" if wide => int3(Int3::MadWide),
            "mad" if lo => int3(Int3::MadLo),
            "mad" => int3(if sat { Int3::MadHiSat } else { Int3::MadHi }),
            "mad24" if lo => int3(Int3::Mad24Lo),
            "mad24" => int3(if sat { Int3::Mad24HiSat } else { Int3::Mad24Hi }),
            "sad" => int3(Int3::Sad),
            "div" => int2(Int2::Div),
            "rem" => int2(Int2::Rem),
            "abs" => int1(Int1::Abs),
            "neg" => int1(Int1::Neg),
            "min" => int2(if c.has("relu") { Int2::MinRelu } else { Int2::Min }),
            "max" => int2(if c.has("relu") { Int2::MaxRelu } else { Int2::Max }),
            "popc" => int1(Int1::Popc),
            "clz" => int1(Int1::Clz),
            "brev" => int1(Int1::Brev),
            "bfind" => int1(if c.has("shiftamt") { Int1::BfindShift } else { Int1::Bfind }),
            "fns" => int3(Int3::Fns),
            "bfe" => int3(Int3::Bfe),
            "bfi" => Op::Bfi { bits, d, a: x, b: y, start: z, length: c.src(4) },
            "bmsk" => int2(if c.has("clamp") { Int2::BmskClamp } else { Int2::BmskWrap }),
            "szext" => int2(if c.has("clamp") { Int2::SzextClamp } else { Int2::SzextWrap }),
            "dp4a" => int3(Int3::Dp4a(signed, c.ty(1).is_signed())),
            "dp2a" => int3(Int3::Dp2a(signed, c.ty(1).is_signed(), lo)),
            "and" => int2(Int2::And),
            "or" => int2(Int2::Or),
            "xor" => int2(Int2::Xor),
            "not" => int1(Int1::Not),
            "cnot" => int1(Int1::Cnot),
            "shl" => int2(Int2::Shl),
            "shr" => int2(Int2::Shr),
            "shf" => int3(match (c.has("l"), c.has("clamp")) {
                (true, true) => Int3::ShfLeftClamp,
                (true, false) => Int3::ShfLeftWrap,
                (false, true) => Int3::ShfRightClamp,
                (false, false) => Int3::ShfRightWrap,
            }),
            "prmt" => int3(Int3::Prmt(
                [
                    ("f4e", PrmtMode::F4e),
                    ("b4e", PrmtMode::B4e),
                    ("rc8", PrmtMode::Rc8),
                    ("ecl", PrmtMode::Ecl),
                    ("ecr", PrmtMode::Ecr),
                    ("rc16", PrmtMode::Rc16),
                ]
                .iter()
                .find(|m| c.has(m.0))
                .map_or(PrmtMode::Default, |m| m.1),
            )),
            "lop3" => return self.lop3(b, c),
            other => Op::Unsupported(other.to_owned()),
        };
        b.push(op);
        Ok(())
    }

    fn lop3(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let lut = c.immediate(4);
        let Ok(lut) = u8::try_from(lut) else {
            return self.fault(c.i.operands[4].span, "X0103", "the table of `lop3` has 8 bits");
        };
        match logic(&c.mods) {
            None => b.push(Op::Int3 {
                op: Int3::Lop3(lut),
                bits: 32,
                signed: false,
                d: c.reg(0),
                a: c.src(1),
                b: c.src(2),
                c: c.src(3),
            }),
            Some(logic) => {
                let (d, p) = super::data::pair(&c.i.operands[0]);
                let Some(p) = p else { return self.fault(c.i.operands[0].span, "X0103", "expected `d|p`") };
                let d = if super::operand::is_sink(d) {
                    None
                } else {
                    Some(self.destination(b, d, Type::B32, false)?)
                };
                let p = self.pred_destination(b, p)?.unwrap_or_else(|| b.predicate());
                let q = c.pred_src(5);
                b.push(Op::Lop3Pred { lut, logic, d, p, a: c.src(1), b: c.src(2), c: c.src(3), q });
            }
        }
        Ok(())
    }

    /// The mode of an instruction whose type 0 is floating point.
    fn mode(&mut self, c: &Checked<'_, 'a>) -> Check<FloatMode> {
        let Some((ty, lanes)) = float_type(c.ty(0)) else {
            return self.fault(
                c.i.opcode.span,
                "X0102",
                format!("no arithmetic of type `.{}`", c.ty(0).name()),
            );
        };
        Ok(FloatMode {
            ty,
            lanes,
            round: rounding(&c.mods).unwrap_or(Round::Nearest),
            ftz: c.has("ftz"),
            sat: c.has("sat"),
            relu: c.has("relu"),
            nan: c.has("NaN"),
            abs: c.has("abs"),
            xorsign: c.has("xorsign"),
        })
    }

    fn floating(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let mode = self.mode(c)?;
        let (d, x, y, z) = (c.reg(0), c.src(1), c.src(2), c.src(3));
        let approx = c.has("approx");
        if c.has("oob") {
            b.push(Op::Unsupported(format!("{}.oob", c.i.opcode.text)));
            return Ok(());
        }
        // The forms with narrower operands convert them first, which is exact.
        let mut widen = |s: Src| match c.types.get(1) {
            Some(&t) if t != c.ty(0) => match float_type(t) {
                Some((from, _)) => {
                    let d = b.temporary();
                    b.push(Op::Widen { from, d, a: s });
                    Src::Reg(d)
                }
                None => s,
            },
            _ => s,
        };
        let op = match c.i.opcode.text {
            "add" => Op::Float2 { op: Float2::Add, mode, d, a: widen(x), b: y },
            "sub" => Op::Float2 { op: Float2::Sub, mode, d, a: widen(x), b: y },
            "mul" => Op::Float2 { op: Float2::Mul, mode, d, a: x, b: y },
            "fma" | "mad" => Op::Fma { mode, d, a: widen(x), b: widen(y), c: z },
            "div" if approx => Op::Float2 { op: Float2::DivApprox, mode, d, a: x, b: y },
            "div" if c.has("full") => Op::Float2 { op: Float2::DivFull, mode, d, a: x, b: y },
            "div" => Op::Float2 { op: Float2::Div, mode, d, a: x, b: y },
            "min" | "max" => {
                let op = if c.i.opcode.text == "min" { Float2::Min } else { Float2::Max };
                if c.i.operands.len() == 4 {
                    let t = b.temporary();
                    b.push(Op::Float2 { op, mode, d: t, a: x, b: y });
                    Op::Float2 { op, mode, d, a: Src::Reg(t), b: z }
                } else {
                    Op::Float2 { op, mode, d, a: x, b: y }
                }
            }
            "copysign" => Op::Float2 { op: Float2::Copysign, mode, d, a: x, b: y },
            "abs" => Op::Float1 { op: Float1::Abs, mode, d, a: x },
            "neg" => Op::Float1 { op: Float1::Neg, mode, d, a: x },
            "rcp" if approx && mode.ty == FloatType::F64 => {
                Op::Float1 { op: Float1::RcpApproxFtz64, mode, d, a: x }
            }
            "rcp" if approx => Op::Float1 { op: Float1::RcpApprox, mode, d, a: x },
            "rcp" => Op::Float1 { op: Float1::Rcp, mode, d, a: x },
            "sqrt" if approx => Op::Float1 { op: Float1::SqrtApprox, mode, d, a: x },
            "sqrt" => Op::Float1 { op: Float1::Sqrt, mode, d, a: x },
            "rsqrt" if mode.ty == FloatType::F64 && mode.ftz => {
                Op::Float1 { op: Float1::RsqrtApproxFtz64, mode, d, a: x }
            }
            "rsqrt" => Op::Float1 { op: Float1::RsqrtApprox, mode, d, a: x },
            "sin" => Op::Float1 { op: Float1::Sin, mode, d, a: x },
            "cos" => Op::Float1 { op: Float1::Cos, mode, d, a: x },
            "lg2" => Op::Float1 { op: Float1::Lg2, mode, d, a: x },
            "ex2" => Op::Float1 { op: Float1::Ex2, mode, d, a: x },
            "tanh" => Op::Float1 { op: Float1::Tanh, mode, d, a: x },
            other => Op::Unsupported(other.to_owned()),
        };
        b.push(op);
        Ok(())
    }
}
