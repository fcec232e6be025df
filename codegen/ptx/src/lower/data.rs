//! Movement, selection, comparison and conversion.

use super::operand::{Checked, elements, is_sink, special};
use super::{Check, Global, Lowering, space_of};
use crate::ir::{Compare, Comparison, Conversion, Logic, Op, Round, Space, Src, Testp};
use crate::lower::function::{Body, Local};
use crate::syntax::{Operand, OperandKind};
use crate::types::{Class, Type};

/// The relation of a modifier.
pub(crate) fn compare(name: &str) -> Option<Compare> {
    Some(match name {
        "eq" => Compare::Eq,
        "ne" => Compare::Ne,
        "lt" | "lo" => Compare::Lt,
        "le" | "ls" => Compare::Le,
        "gt" | "hi" => Compare::Gt,
        "ge" | "hs" => Compare::Ge,
        "equ" => Compare::Equ,
        "neu" => Compare::Neu,
        "ltu" => Compare::Ltu,
        "leu" => Compare::Leu,
        "gtu" => Compare::Gtu,
        "geu" => Compare::Geu,
        "num" => Compare::Num,
        "nan" => Compare::Nan,
        _ => return None,
    })
}

pub(crate) fn logic(mods: &[&str]) -> Option<Logic> {
    mods.iter().find_map(|m| match *m {
        "and" => Some(Logic::And),
        "or" => Some(Logic::Or),
        "xor" => Some(Logic::Xor),
        _ => None,
    })
}

pub(crate) fn rounding(mods: &[&str]) -> Option<Round> {
    mods.iter().find_map(|m| match *m {
        "rn" | "rni" => Some(Round::Nearest),
        "rna" => Some(Round::NearestAway),
        "rz" | "rzi" => Some(Round::Zero),
        "rm" | "rmi" => Some(Round::Down),
        "rp" | "rpi" => Some(Round::Up),
        _ => None,
    })
}

impl<'a> Lowering<'a> {
    pub(crate) fn data(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let op = match c.i.opcode.text {
            "mov" => return self.mov(b, c),
            "cvta" => {
                let space = c.mods.iter().find_map(|m| space_of(m)).unwrap_or(Space::Global);
                let (to, bits) = (c.has("to"), c.ty(0).bits());
                let s = if to { c.src(1) } else { self.source(b, &c.i.operands[1], c.ty(0), false)? };
                Op::Cvta { d: c.reg(0), s, space, to, bits }
            }
            "isspacep" => {
                let space = c.mods.iter().find_map(|m| space_of(m)).unwrap_or(Space::Global);
                Op::Isspacep { d: c.pred(0), s: c.src(1), space }
            }
            "mapa" | "getctarank" => Op::Unsupported(c.i.opcode.text.to_owned()),
            "selp" => {
                Op::Selp { bits: c.ty(0).bits(), d: c.reg(0), a: c.src(1), b: c.src(2), c: c.pred_src(3) }
            }
            "slct" => {
                let float = c.ty(1) == Type::F32;
                Op::Slct { float, ftz: c.has("ftz"), d: c.reg(0), a: c.src(1), b: c.src(2), c: c.src(3) }
            }
            "testp" => {
                let classes = [
                    ("finite", Testp::Finite),
                    ("infinite", Testp::Infinite),
                    ("number", Testp::Number),
                    ("notanumber", Testp::NotANumber),
                    ("normal", Testp::Normal),
                ];
                let class = classes.iter().find(|x| c.has(x.0)).map_or(Testp::Subnormal, |x| x.1);
                Op::Testp { d: c.pred(0), class, bits: c.ty(0).bits(), a: c.src(1) }
            }
            "setp" => {
                let (p, q) = match c.args.first() {
                    Some(super::operand::Arg::Pair(p, q)) => (*p, *q),
                    _ => (None, None),
                };
                let cmp = self.comparison(c, c.ty(0), 3)?;
                Op::Setp { cmp, p, q, a: c.src(1), b: c.src(2) }
            }
            "set" => {
                let cmp = self.comparison(c, c.ty(1), 3)?;
                Op::Set { cmp, to: c.ty(0), d: c.reg(0), a: c.src(1), b: c.src(2) }
            }
            _ => return self.convert(b, c),
        };
        b.push(op);
        Ok(())
    }

    fn comparison(&mut self, c: &Checked<'_, 'a>, ty: Type, combined: usize) -> Check<Comparison> {
        let Some(relation) = c.mods.iter().find_map(|m| compare(m)) else {
            return self.fault(c.i.opcode.span, "X0102", "the comparison is missing");
        };
        let unsigned_only = ["lo", "ls", "hi", "hs"].iter().any(|m| c.has(m));
        let ordered = !matches!(relation, Compare::Eq | Compare::Ne);
        let wrong = match ty.class() {
            Class::Bits => ordered && ty != Type::F32,
            Class::Signed | Class::Float => unsigned_only,
            Class::Unsigned | Class::Predicate => false,
        };
        if wrong {
            return self.fault(
                c.i.opcode.span,
                "X0102",
                format!("no such comparison of type `.{}`", ty.name()),
            );
        }
        let combine = logic(&c.mods).map(|l| (l, c.pred_src(combined)));
        Ok(Comparison { compare: relation, ty, ftz: c.has("ftz"), combine })
    }

    fn mov(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let ty = c.ty(0);
        let [d, s] = c.i.operands.as_slice() else {
            return self.fault(c.i.opcode.span, "X0103", "`mov` takes two operands");
        };
        if ty == Type::Pred {
            b.push(Op::MovPred { d: c.pred(0), s: c.pred_src(1) });
            return Ok(());
        }
        if ty == Type::B128 {
            b.push(Op::Unsupported("mov.b128".into()));
            return Ok(());
        }
        let part = |count: usize| match ty.bits() / count as u32 {
            8 => Some(Type::B8),
            16 => Some(Type::B16),
            32 => Some(Type::B32),
            _ => None,
        };
        match (&d.kind, &s.kind) {
            (OperandKind::Vector(parts), _) => {
                let Some(element) = part(parts.len().max(1)) else {
                    return self.fault(d.span, "X0103", format!("{} parts of `.{}`", parts.len(), ty.name()));
                };
                let mut regs = Vec::new();
                for p in parts {
                    regs.push(if is_sink(p) {
                        None
                    } else {
                        Some(self.destination(b, p, element, element == Type::B8)?)
                    });
                }
                let s = self.source(b, s, ty, false)?;
                b.push(Op::Unpack { parts: regs.into(), s, bits: element.bits() });
            }
            (_, OperandKind::Vector(parts)) => {
                let Some(element) = part(parts.len().max(1)) else {
                    return self.fault(s.span, "X0103", format!("{} parts of `.{}`", parts.len(), ty.name()));
                };
                let d = self.destination(b, d, ty, false)?;
                let mut srcs = Vec::new();
                for p in parts {
                    srcs.push(self.source(b, p, element, element == Type::B8)?);
                }
                b.push(Op::Pack { d, parts: srcs.into(), bits: element.bits() });
            }
            _ => {
                let d = self.destination(b, d, ty, false)?;
                let op = match &s.kind {
                    OperandKind::Name(n, component) => {
                        match special(n.text, component.map_or("", |c| c.text)) {
                            Some(which) => Some(Op::Special { d, which }),
                            None => self.frame_source(b, s, d),
                        }
                    }
                    _ => None,
                };
                let op = match op {
                    Some(op) => op,
                    None => Op::Mov { d, s: self.source(b, s, ty, false)? },
                };
                b.push(op);
            }
        }
        Ok(())
    }

    /// `mov` of the address of a variable of the frame.
    fn frame_source(&mut self, b: &Body<'a>, s: &Operand<'a>, d: crate::ir::Reg) -> Option<Op> {
        let OperandKind::Name(n, None) = &s.kind else { return None };
        match b.lookup(n.text) {
            Some(Local::Frame(offset, ..)) => Some(Op::FrameAddress { d, offset }),
            _ => None,
        }
    }

    fn convert(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let (to, from) = (c.ty(0), c.ty(1));
        if c.has("pack") {
            let low = c.try_src(3);
            if (c.i.operands.len() == 4) != (c.types.len() == 3) {
                return self.fault(c.i.opcode.span, "X0103", "`cvt.pack` of 8-bit types takes three sources");
            }
            b.push(Op::CvtPack { to, d: c.reg(0), a: c.src(1), b: c.src(2), c: low });
            return Ok(());
        }
        if c.has("rs") {
            b.push(Op::Unsupported("cvt.rs".into()));
            return Ok(());
        }
        let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|m| c.has(m));
        let conversion = Conversion {
            to,
            from,
            round: rounding(&c.mods).unwrap_or(Round::Nearest),
            integral,
            ftz: c.has("ftz"),
            sat: c.has("sat"),
            satfinite: c.has("satfinite"),
            relu: c.has("relu"),
        };
        let floats = (to.class() == Class::Float, from.class() == Class::Float);
        let rounds = ["rn", "rz", "rm", "rp", "rna"].iter().any(|m| c.has(m));
        let packed = |t: Type| t.name().ends_with("x2");
        if !packed(to) && !packed(from) {
            // What needs which rounding: the ISA's table of `cvt`.
            let wrong = match floats {
                (true, false) => (!rounds).then_some("a floating-point rounding"),
                (false, true) => (!integral).then_some("an integer rounding"),
                (true, true) if to.bits() < from.bits() || to == Type::Tf32 => {
                    (!rounds).then_some("a floating-point rounding")
                }
                (false, false) => (rounds || integral).then_some("no rounding"),
                (true, true) => None,
            };
            if let Some(needs) = wrong {
                let what =
                    format!("the conversion from `.{}` to `.{}` takes {needs}", from.name(), to.name());
                return self.fault(c.i.opcode.span, "X0102", what);
            }
            if let Some(what) = self.illegal_conversion(c, to, from) {
                return self.fault(c.i.opcode.span, "X0102", what);
            }
        }
        let op = match to {
            // Two sources, packed.
            _ if packed(to) && !packed(from) && !matches!(to, Type::E2m1x2 | Type::E2m3x2 | Type::E3m2x2) => {
                Op::CvtPacked { conversion, d: c.reg(0), a: c.src(1), b: c.src(2) }
            }
            Type::E2m1x2 | Type::E2m3x2 | Type::E3m2x2 => {
                // The register of four-bit pairs is a `.b8`, which 16-bit registers hold.
                let d = self.destination(b, &c.i.operands[0], Type::B16, to == Type::E2m1x2)?;
                Op::CvtPacked { conversion, d, a: c.src(1), b: c.src(2) }
            }
            Type::F16x2 => {
                let a = self.source(b, &c.i.operands[1], Type::B16, false)?;
                Op::Cvt { conversion, d: c.reg(0), a }
            }
            _ => Op::Cvt { conversion, d: c.reg(0), a: c.src(1) },
        };
        b.push(op);
        Ok(())
    }

    /// Why the modifiers of a scalar conversion do not go with its types: what ptxas refuses.
    fn illegal_conversion(&self, c: &Checked<'_, 'a>, to: Type, from: Type) -> Option<String> {
        let both = |t: Type| to == t || from == t;
        let between = format!("from `.{}` to `.{}`", from.name(), to.name());
        let is_float = |t: Type| t.class() == Class::Float;
        if both(Type::Bf16) && [to, from].iter().any(|t| !is_float(*t) && t.bits() == 8) {
            return Some(format!("there is no conversion {between}"));
        }
        if c.has("sat") {
            if both(Type::Bf16) {
                return Some(format!("`.sat` does not go with conversions {between}"));
            }
            // Every value of the source is one of the destination: nothing to clamp.
            let holds = match (to.is_signed(), from.is_signed()) {
                (true, false) => to.bits() > from.bits(),
                (false, true) => false,
                (true, true) | (false, false) => to.bits() >= from.bits(),
            };
            if !is_float(to) && !is_float(from) && holds {
                return Some(format!("`.sat` has no effect on conversions {between} and is not allowed"));
            }
        }
        for modifier in ["relu", "satfinite"].into_iter().filter(|m| c.has(m)) {
            if c.has("ftz") || c.has("sat") {
                return Some(format!("`.{modifier}` does not go with `.ftz` and `.sat`"));
            }
            if c.has("rm") || c.has("rp") {
                return Some(format!("`.{modifier}` goes with the roundings `.rn` and `.rz`"));
            }
        }
        if to == Type::Tf32 && c.has("rna") && c.has("relu") {
            return Some("`.relu` does not go with `.rna.tf32`".to_owned());
        }
        if to == Type::Tf32 && c.has("satfinite") && !c.has("rna") && self.module.arch < 100 {
            return Some(
                "`.satfinite` of `.rn.tf32` and `.rz.tf32` needs `.target sm_100` or higher".to_owned(),
            );
        }
        None
    }

    /// What a name of a callee means: a function, or a register that holds one.
    pub(crate) fn callee(&mut self, b: &mut Body<'a>, o: &Operand<'a>) -> Check<crate::ir::Callee> {
        use crate::ir::Callee;
        let OperandKind::Name(n, None) = &o.kind else {
            return self.fault(o.span, "X0107", "expected a function");
        };
        if let Some(&Global::Function(f)) = self.names.get(n.text) {
            return Ok(Callee::Direct(f));
        }
        match self.local(b, *n)? {
            Local::Reg(ty, reg) if ty.bits() >= 32 => Ok(Callee::Indirect(Src::Reg(reg))),
            _ => self.fault(o.span, "X0107", format!("`{}` is no function", n.text)),
        }
    }
}

/// The registers of a `d|p` operand.
pub(crate) fn pair<'o, 'a>(o: &'o Operand<'a>) -> (&'o Operand<'a>, Option<&'o Operand<'a>>) {
    match &o.kind {
        OperandKind::Pair(d, p) => (d, Some(p)),
        _ => (o, elements(o).get(1)),
    }
}
