//! Operands: what each one of an instruction is, checked against the form that the instruction matches.

use super::function::{Body, Local};
use super::{Check, Global, Lowering};
use crate::diag::Span;
use crate::ir::{Address, Constant, Op, Pred, PredSrc, Reg, Space, Special, Src};
use crate::lex::{Float, float, integer};
use crate::syntax::{Instruction, Operand, OperandKind, Word};
use crate::table::{Kind, Matched, Mismatch, What, lookup};
use crate::types::{Class, Type};

/// An operand after its check.
#[derive(Clone)]
pub(crate) enum Arg {
    Reg(Reg),
    Src(Src),
    Pair(Option<Pred>, Option<Pred>),
    PredSrc(PredSrc),
    /// The address, and the space that its variable says.
    Address(Address, Option<Space>),
    Label(u32),
    Immediate(u64),
    /// Registers of a vector; `None` is `_`.
    Regs(Vec<Option<Reg>>),
    Srcs(Vec<Src>),
    /// Lowering looks at the operand itself.
    Free,
}

/// An instruction whose form and operands are checked.
pub(crate) struct Checked<'i, 'a> {
    pub(crate) i: &'i Instruction<'a>,
    pub(crate) mods: Vec<&'a str>,
    pub(crate) types: Vec<Type>,
    pub(crate) args: Vec<Arg>,
}

impl Checked<'_, '_> {
    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.mods.contains(&modifier)
    }

    pub(crate) fn ty(&self, i: usize) -> Type {
        self.types.get(i).copied().unwrap_or(Type::B32)
    }

    pub(crate) fn reg(&self, i: usize) -> Reg {
        match self.args.get(i) {
            Some(Arg::Reg(r)) => *r,
            _ => Reg(0),
        }
    }

    pub(crate) fn src(&self, i: usize) -> Src {
        match self.args.get(i) {
            Some(Arg::Src(s)) => *s,
            _ => Src::Reg(Reg(0)),
        }
    }

    pub(crate) fn try_src(&self, i: usize) -> Option<Src> {
        match self.args.get(i) {
            Some(Arg::Src(s)) => Some(*s),
            _ => None,
        }
    }

    pub(crate) fn pred(&self, i: usize) -> Pred {
        match self.args.get(i) {
            Some(Arg::Pair(Some(p), _)) => *p,
            _ => Pred(0),
        }
    }

    pub(crate) fn pred_src(&self, i: usize) -> PredSrc {
        match self.args.get(i) {
            Some(Arg::PredSrc(p)) => *p,
            _ => PredSrc::Const(true),
        }
    }

    pub(crate) fn immediate(&self, i: usize) -> u64 {
        match self.args.get(i) {
            Some(Arg::Immediate(v)) => *v,
            _ => 0,
        }
    }

    pub(crate) fn regs(&self, i: usize) -> Vec<Option<Reg>> {
        match self.args.get(i) {
            Some(Arg::Regs(r)) => r.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn srcs(&self, i: usize) -> Vec<Src> {
        match self.args.get(i) {
            Some(Arg::Srcs(s)) => s.clone(),
            _ => Vec::new(),
        }
    }
}

impl<'a> Lowering<'a> {
    /// Checks an instruction against the table and builds it.
    pub(crate) fn instruction(&mut self, b: &mut Body<'a>, i: &Instruction<'a>) -> Check<()> {
        let mods: Vec<&'a str> = i.modifiers.iter().map(|w| w.text).collect();
        let full =
            || std::iter::once(i.opcode.text).chain(mods.iter().copied()).collect::<Vec<_>>().join(".");
        let Matched { form, types } = match lookup(i.opcode.text, &mods, i.operands.len()) {
            Ok(m) => m,
            Err(Mismatch::Opcode) => {
                return self.fault(i.opcode.span, "X0101", format!("no instruction `{}` is known", full()));
            }
            Err(Mismatch::Modifier(at)) => {
                let what = format!("`{}` is no modifier or type of `{}`", mods[at], i.opcode.text);
                return self.fault(i.modifiers[at].span, "X0102", what);
            }
            Err(Mismatch::Combination) => {
                let what = format!(
                    "`{}` is no form of `{}`: its modifiers and types do not go together, or some are missing",
                    full(),
                    i.opcode.text
                );
                return self.fault(i.opcode.span, "X0102", what);
            }
        };
        if self.module.arch < form.arch {
            let what = format!(
                "`{}` needs `.target sm_{}` or higher, the module has sm_{}",
                full(),
                form.arch,
                self.module.arch
            );
            return self.fault(i.opcode.span, "X0102", what);
        }
        let least = form.operands.iter().filter(|k| !k.optional).count();
        if i.operands.len() < least || i.operands.len() > form.operands.len() {
            let most = form.operands.len();
            let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let what = format!("`{}` takes {range} operands, found {}", full(), i.operands.len());
            return self.fault(i.opcode.span, "X0103", what);
        }
        let mut args = Vec::with_capacity(i.operands.len());
        for (kind, operand) in form.operands.iter().zip(&i.operands) {
            args.push(self.operand(b, *kind, operand, &types)?);
        }
        let c = Checked { i, mods, types, args };
        self.build(b, &c)
    }

    fn build(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        match c.i.opcode.text {
            "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "discard" | "applypriority"
            | "cp" | "ldmatrix" | "stmatrix" | "mbarrier" | "membar" | "fence" | "alloca" | "stacksave"
            | "stackrestore" => self.memory(b, c),
            "mov" | "cvta" | "isspacep" | "selp" | "slct" | "set" | "setp" | "testp" | "cvt" | "mapa"
            | "getctarank" => self.data(b, c),
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "pmevent" | "nanosleep" | "bar"
            | "barrier" | "vote" | "match" | "activemask" | "redux" | "elect" | "griddepcontrol" | "shfl"
            | "movmatrix" | "mma" | "setmaxnreg" => self.control(b, c),
            _ => self.arithmetic(b, c),
        }
    }

    fn operand(&mut self, b: &mut Body<'a>, kind: Kind, o: &Operand<'a>, types: &[Type]) -> Check<Arg> {
        let ty = |i: u8| types.get(usize::from(i)).copied().unwrap_or(Type::B32);
        Ok(match kind.what {
            What::Destination(i) => Arg::Reg(self.destination(b, o, ty(i), false)?),
            What::Source(i) => Arg::Src(self.source(b, o, ty(i), false)?),
            What::WideDestination(i) => Arg::Reg(self.destination(b, o, wide(ty(i)), false)?),
            What::WideSource(i) => Arg::Src(self.source(b, o, wide(ty(i)), false)?),
            What::LooseDestination(i) => Arg::Reg(self.destination(b, o, ty(i), true)?),
            What::LooseSource(i) => Arg::Src(self.source(b, o, ty(i), true)?),
            What::FixedDestination(t) => Arg::Reg(self.destination(b, o, t, false)?),
            What::FixedSource(t) => Arg::Src(self.source(b, o, t, false)?),
            What::VectorDestination(i) => {
                let mut regs = Vec::new();
                for e in elements(o) {
                    regs.push(if is_sink(e) { None } else { Some(self.destination(b, e, ty(i), true)?) });
                }
                Arg::Regs(regs)
            }
            What::VectorSource(i) => {
                let mut srcs = Vec::new();
                for e in elements(o) {
                    srcs.push(self.source(b, e, ty(i), true)?);
                }
                Arg::Srcs(srcs)
            }
            What::Predicate | What::PredicatePair => match &o.kind {
                OperandKind::Pair(p, q) if kind.what == What::PredicatePair => {
                    Arg::Pair(self.pred_destination(b, p)?, self.pred_destination(b, q)?)
                }
                _ => Arg::Pair(self.pred_destination(b, o)?, None),
            },
            What::SourcePredicate => Arg::PredSrc(self.pred_source(b, o)?),
            What::Address => {
                let (a, s) = self.address(b, o)?;
                Arg::Address(a, s)
            }
            What::Label => match &o.kind {
                OperandKind::Name(n, None) => match self.local(b, *n)? {
                    Local::Label(id) => Arg::Label(id),
                    _ => return self.fault(o.span, "X0103", format!("`{}` is no label", n.text)),
                },
                _ => return self.fault(o.span, "X0103", "expected a label"),
            },
            What::Immediate => match literal(o) {
                Some(v) => Arg::Immediate(v),
                None => return self.fault(o.span, "X0103", "expected an integer literal"),
            },
            What::Registers | What::Free => Arg::Free,
        })
    }

    /// A register that is written. `_` gets one that nothing reads.
    pub(crate) fn destination(
        &mut self,
        b: &mut Body<'a>,
        o: &Operand<'a>,
        want: Type,
        wider: bool,
    ) -> Check<Reg> {
        if is_sink(o) {
            return Ok(b.temporary());
        }
        let OperandKind::Name(n, None) = &o.kind else {
            return self.fault(o.span, "X0103", format!("expected a register of type `.{}`", want.name()));
        };
        match self.local(b, *n)? {
            Local::Reg(ty, reg) => {
                self.check_type(o.span, n.text, ty, want, wider)?;
                Ok(reg)
            }
            _ => {
                self.fault(o.span, "X0103", format!("`{}` is no register of type `.{}`", n.text, want.name()))
            }
        }
    }

    fn check_type(&mut self, span: Span, name: &str, ty: Type, want: Type, wider: bool) -> Check<()> {
        let fits = if wider && ty.bits() > want.bits() {
            // A wider register holds a narrower value of memory or of a conversion, extended.
            want.class() != Class::Float || ty.class() == Class::Bits
        } else {
            ty.bits() == want.bits() && (ty.agrees(want) || narrow_float(ty, want))
        };
        if fits {
            return Ok(());
        }
        self.fault(
            span,
            "X0103",
            format!("`{name}` has type `.{}`; the instruction needs `.{}`", ty.name(), want.name()),
        )
    }

    /// A register, literal, special register or name of a variable that is read.
    pub(crate) fn source(
        &mut self,
        b: &mut Body<'a>,
        o: &Operand<'a>,
        want: Type,
        wider: bool,
    ) -> Check<Src> {
        match &o.kind {
            OperandKind::Name(n, component) => {
                if let Some(s) = special(n.text, component.map_or("", |c| c.text)) {
                    let d = b.temporary();
                    let guard = b.guard.take();
                    b.push(Op::Special { d, which: s });
                    b.guard = guard;
                    return Ok(Src::Reg(d));
                }
                if n.text == "WARP_SZ" {
                    return Ok(self.value(32));
                }
                if component.is_some() {
                    return self.fault(o.span, "X0103", format!("`{}` has no components", n.text));
                }
                self.named_source(b, *n, o.span, want, wider)
            }
            OperandKind::Offset(n, signs, number) => {
                let Some(offset) = signed(signs, number.text) else {
                    return self.fault(number.span, "X0103", "an offset is an integer");
                };
                match b.lookup(n.text) {
                    Some(Local::Frame(at, ..)) => {
                        let Ok(at) = u32::try_from(i64::from(at) + offset as i64) else {
                            return self.fault(number.span, "X0103", "the offset is beyond the frame");
                        };
                        Ok(b.frame_address(at))
                    }
                    Some(Local::KernelParam(at)) => Ok(self.value(u64::from(at).wrapping_add(offset))),
                    Some(Local::Variable(v)) => Ok(self.constant(Constant::Variable(v, offset as i64))),
                    Some(_) => self.fault(o.span, "X0103", format!("`{}` has no address", n.text)),
                    None => match self.names.get(n.text) {
                        Some(&Global::Variable(v)) => Ok(self.constant(Constant::Variable(v, offset as i64))),
                        Some(Global::Function(_)) | None => {
                            self.fault(n.span, "X0104", format!("`{}` is not declared", n.text))
                        }
                    },
                }
            }
            OperandKind::Number(signs, number) => self.literal_source(signs, *number, o.span, want),
            OperandKind::Not(_)
            | OperandKind::Pair(..)
            | OperandKind::Vector(_)
            | OperandKind::Address(_)
            | OperandKind::List(_) => self.fault(
                o.span,
                "X0103",
                format!("expected a register or literal of type `.{}`", want.name()),
            ),
        }
    }

    fn named_source(
        &mut self,
        b: &mut Body<'a>,
        n: Word<'a>,
        span: Span,
        want: Type,
        wider: bool,
    ) -> Check<Src> {
        let meaning = match b.lookup(n.text) {
            Some(l) => l,
            None => match self.names.get(n.text) {
                Some(&Global::Variable(v)) => Local::Variable(v),
                Some(&Global::Function(f)) => return Ok(self.constant(Constant::Function(f))),
                None => self.local(b, n)?,
            },
        };
        match meaning {
            Local::Reg(ty, reg) => {
                self.check_type(span, n.text, ty, want, wider)?;
                Ok(Src::Reg(reg))
            }
            Local::Variable(v) => Ok(self.constant(Constant::Variable(v, 0))),
            Local::Frame(offset, ..) => Ok(b.frame_address(offset)),
            Local::KernelParam(offset) => Ok(self.value(u64::from(offset))),
            Local::Pred(_) | Local::Range(..) | Local::Label(_) | Local::Targets(_) | Local::Prototype => {
                self.fault(span, "X0103", format!("`{}` is no source of type `.{}`", n.text, want.name()))
            }
        }
    }

    fn literal_source(&mut self, signs: &[Word<'a>], number: Word<'a>, span: Span, want: Type) -> Check<Src> {
        let mask = if want.bits() >= 64 { u64::MAX } else { (1 << want.bits()) - 1 };
        if let Some(f) = float(number.text) {
            let bits = match (f, want) {
                (Float::Single(x), Type::F64) => f64::from(f32::from_bits(x)).to_bits(),
                (Float::Double(x), Type::F32) => u64::from((f64::from_bits(x) as f32).to_bits()),
                (Float::Single(x), _) if want.bits() == 32 => u64::from(x),
                (Float::Double(x), _) if want.bits() == 64 => x,
                _ => {
                    return self.fault(
                        span,
                        "X0103",
                        format!("`{}` is no literal of type `.{}`", number.text, want.name()),
                    );
                }
            };
            let bits = match signs {
                [] => bits,
                [s] if s.text == "-" => bits ^ (1 << (want.bits() - 1)),
                _ => return self.fault(span, "X0103", "a floating-point literal has one sign"),
            };
            return Ok(self.value(bits));
        }
        let Some(v) = signed(signs, number.text) else {
            return self.fault(
                span,
                "X0103",
                format!("`{}` is no literal, or larger than 64 bits", number.text),
            );
        };
        if want == Type::F32 || want == Type::F64 {
            return self.fault(
                span,
                "X0103",
                format!("an integer literal where type `.{}` is needed", want.name()),
            );
        }
        Ok(self.value(v & mask))
    }

    pub(crate) fn pred_destination(&mut self, b: &mut Body<'a>, o: &Operand<'a>) -> Check<Option<Pred>> {
        match &o.kind {
            OperandKind::Name(n, None) if n.text == "_" => Ok(None),
            OperandKind::Name(n, None) => match self.local(b, *n)? {
                Local::Pred(p) => Ok(Some(p)),
                _ => self.fault(o.span, "X0103", format!("`{}` is no predicate register", n.text)),
            },
            _ => self.fault(o.span, "X0103", "expected a predicate register"),
        }
    }

    pub(crate) fn pred_source(&mut self, b: &mut Body<'a>, o: &Operand<'a>) -> Check<PredSrc> {
        let (name, negated) = match &o.kind {
            OperandKind::Name(n, None) => (*n, false),
            OperandKind::Not(n) => (*n, true),
            _ => match literal(o) {
                Some(v) => return Ok(PredSrc::Const(v != 0)),
                None => return self.fault(o.span, "X0103", "expected a predicate"),
            },
        };
        match self.local(b, name)? {
            Local::Pred(p) => Ok(PredSrc::Reg(p, negated)),
            _ => self.fault(o.span, "X0103", format!("`{}` is no predicate register", name.text)),
        }
    }

    /// `[base+offset]`.
    pub(crate) fn address(&mut self, b: &mut Body<'a>, o: &Operand<'a>) -> Check<(Address, Option<Space>)> {
        let OperandKind::Address(list) = &o.kind else {
            return self.fault(o.span, "X0103", "expected an address `[...]`");
        };
        let [inner] = list.as_slice() else { return self.fault(o.span, "X0108", "addresses of tensors") };
        let (name, offset) = match &inner.kind {
            OperandKind::Name(n, None) => (*n, 0),
            OperandKind::Offset(n, signs, number) => match signed(signs, number.text) {
                Some(v) => (*n, v as i64),
                None => return self.fault(number.span, "X0103", "an offset is an integer"),
            },
            OperandKind::Number(..) => match literal(inner) {
                Some(v) => return Ok((Address { base: self.value(v), offset: 0, narrow: false }, None)),
                None => return self.fault(inner.span, "X0103", "an address is an integer"),
            },
            _ => return self.fault(inner.span, "X0103", "expected a register or a variable in the address"),
        };
        let meaning = match b.lookup(name.text) {
            Some(l) => l,
            None => match self.names.get(name.text) {
                Some(&Global::Variable(v)) => Local::Variable(v),
                Some(Global::Function(_)) => {
                    return self.fault(name.span, "X0103", format!("`{}` is a function", name.text));
                }
                None => self.local(b, name)?,
            },
        };
        Ok(match meaning {
            Local::Reg(ty, reg) => {
                if ty.class() == Class::Float || ty.bits() < 32 || ty.bits() > 64 {
                    return self.fault(
                        name.span,
                        "X0103",
                        format!("`{}` of type `.{}` is no address", name.text, ty.name()),
                    );
                }
                (Address { base: Src::Reg(reg), offset, narrow: ty.bits() == 32 }, None)
            }
            Local::Variable(v) => {
                let space = self.module.variables[v as usize].space;
                (
                    Address { base: self.constant(Constant::Variable(v, 0)), offset, narrow: false },
                    Some(space),
                )
            }
            Local::Frame(at, ..) => {
                (Address { base: b.frame_address(at), offset, narrow: false }, Some(Space::Local))
            }
            Local::KernelParam(at) => {
                (Address { base: self.value(u64::from(at)), offset, narrow: false }, Some(Space::Param))
            }
            Local::Pred(_) | Local::Range(..) | Local::Label(_) | Local::Targets(_) | Local::Prototype => {
                return self.fault(name.span, "X0103", format!("`{}` is no address", name.text));
            }
        })
    }

    /// The registers of a vector operand, or the one register.
    pub(crate) fn registers(
        &mut self,
        b: &mut Body<'a>,
        o: &Operand<'a>,
        want: Type,
        count: usize,
    ) -> Check<Vec<Reg>> {
        self.count(o, count)?;
        let mut regs = Vec::new();
        for e in elements(o) {
            regs.push(self.destination(b, e, want, false)?);
        }
        Ok(regs)
    }

    /// The sources of a vector operand, or the one source.
    pub(crate) fn sources(
        &mut self,
        b: &mut Body<'a>,
        o: &Operand<'a>,
        want: Type,
        count: usize,
    ) -> Check<Vec<Src>> {
        self.count(o, count)?;
        let mut srcs = Vec::new();
        for e in elements(o) {
            srcs.push(self.source(b, e, want, false)?);
        }
        Ok(srcs)
    }

    fn count(&mut self, o: &Operand<'a>, count: usize) -> Check<()> {
        let found = elements(o).len();
        if found == count {
            Ok(())
        } else {
            self.fault(o.span, "X0103", format!("expected {count} registers, found {found}"))
        }
    }
}

/// Packed and narrow formats live in registers of bits, or of the unpacked format's name.
fn narrow_float(ty: Type, want: Type) -> bool {
    matches!(
        (ty, want),
        (Type::F32, Type::Tf32) | (Type::U32 | Type::S32, Type::F16x2 | Type::Bf16x2 | Type::Tf32)
    ) || matches!((ty, want), (Type::U16 | Type::S16, Type::Bf16 | Type::E4m3x2 | Type::E5m2x2))
}

fn wide(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        other => other,
    }
}

/// The elements of a vector operand, or the operand.
pub(crate) fn elements<'o, 'a>(o: &'o Operand<'a>) -> &'o [Operand<'a>] {
    match &o.kind {
        OperandKind::Vector(list) => list,
        _ => std::slice::from_ref(o),
    }
}

pub(crate) fn is_sink(o: &Operand<'_>) -> bool {
    matches!(&o.kind, OperandKind::Name(n, None) if n.text == "_")
}

/// The value of a signed integer literal.
pub(crate) fn literal(o: &Operand<'_>) -> Option<u64> {
    match &o.kind {
        OperandKind::Number(signs, n) => signed(signs, n.text),
        _ => None,
    }
}

fn signed(signs: &[Word<'_>], number: &str) -> Option<u64> {
    let mut v = integer(number)?;
    for s in signs.iter().rev() {
        v = match s.text {
            "-" => v.wrapping_neg(),
            "~" => !v,
            _ => v,
        };
    }
    Some(v)
}

/// The special register of a name and component.
pub(crate) fn special(name: &str, component: &str) -> Option<Special> {
    let axis = match component {
        ".x" => 0,
        ".y" => 1,
        ".z" => 2,
        _ => 3,
    };
    let vector = |s: fn(u8) -> Special| (axis < 3).then(|| s(axis));
    let scalar = |s: Special| component.is_empty().then_some(s);
    match name {
        "%tid" => vector(Special::Tid),
        "%ntid" => vector(Special::Ntid),
        "%ctaid" => vector(Special::Ctaid),
        "%nctaid" => vector(Special::Nctaid),
        "%cluster_ctaid" => vector(Special::ClusterCtaid),
        "%cluster_nctaid" => vector(Special::ClusterNctaid),
        "%clusterid" => vector(Special::Clusterid),
        "%nclusterid" => vector(Special::Nclusterid),
        "%cluster_ctarank" => scalar(Special::ClusterCtarank),
        "%cluster_nctarank" => scalar(Special::ClusterNctarank),
        "%laneid" => scalar(Special::Laneid),
        "%warpid" => scalar(Special::Warpid),
        "%nwarpid" => scalar(Special::Nwarpid),
        "%smid" => scalar(Special::Smid),
        "%nsmid" => scalar(Special::Nsmid),
        "%gridid" => scalar(Special::Gridid),
        "%lanemask_eq" => scalar(Special::LanemaskEq),
        "%lanemask_le" => scalar(Special::LanemaskLe),
        "%lanemask_lt" => scalar(Special::LanemaskLt),
        "%lanemask_ge" => scalar(Special::LanemaskGe),
        "%lanemask_gt" => scalar(Special::LanemaskGt),
        "%clock" => scalar(Special::Clock),
        "%clock_hi" => scalar(Special::ClockHi),
        "%clock64" => scalar(Special::Clock64),
        "%globaltimer" => scalar(Special::Globaltimer),
        "%dynamic_smem_size" => scalar(Special::DynamicSmemSize),
        "%total_smem_size" => scalar(Special::TotalSmemSize),
        "%is_explicit_cluster" => scalar(Special::Zero),
        _ => None,
    }
}
