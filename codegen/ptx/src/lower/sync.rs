//! Control flow, calls, barriers, and what the lanes of a warp do together.

use super::function::{Body, Local};
use super::operand::{Arg, Checked, is_sink, literal};
use super::{Check, Lowering};
use crate::ir::{BarrierOp, Call, Callee, Mma, Op, Passed, Redux, Round, Shuffle, Src, Vote};
use crate::lower::data::{pair, rounding};
use crate::syntax::{Operand, OperandKind};
use crate::types::Type;

impl<'a> Lowering<'a> {
    pub(crate) fn control(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let op = match c.i.opcode.text {
            "bra" => match c.args.first() {
                Some(&Arg::Label(target)) => Op::Bra { target },
                _ => return self.fault(c.i.opcode.span, "X0103", "expected a label"),
            },
            "brx" => {
                let o = &c.i.operands[1];
                let targets = match &o.kind {
                    OperandKind::Name(n, None) => match self.local(b, *n)? {
                        Local::Targets(t) => t,
                        _ => {
                            return self.fault(
                                o.span,
                                "X0103",
                                format!("`{}` is no list of targets", n.text),
                            );
                        }
                    },
                    _ => return self.fault(o.span, "X0103", "expected the name of a list of targets"),
                };
                if targets.is_empty() {
                    return self.fault(o.span, "X0103", "the list of targets is empty");
                }
                Op::BrxIdx { index: c.src(0), targets: targets.into() }
            }
            "call" => return self.call(b, c),
            "ret" => Op::Ret,
            "exit" => Op::Exit,
            "trap" => Op::Trap,
            "brkpt" | "pmevent" | "nanosleep" | "griddepcontrol" | "setmaxnreg" => Op::Nop,
            "bar" | "barrier" => return self.barrier(b, c),
            "vote" => {
                let members = c.try_src(2);
                if c.has("ballot") {
                    Op::Ballot { d: c.reg(0), a: c.pred_src(1), members }
                } else {
                    let mode = if c.has("all") {
                        Vote::All
                    } else if c.has("any") {
                        Vote::Any
                    } else {
                        Vote::Uni
                    };
                    Op::Vote { mode, d: c.pred(0), a: c.pred_src(1), members }
                }
            }
            "match" => {
                let bits = c.ty(0).bits();
                if c.has("all") {
                    let (d, p) = pair(&c.i.operands[0]);
                    let d = self.destination(b, d, Type::B32, false)?;
                    let p = match p {
                        Some(p) => self.pred_destination(b, p)?,
                        None => None,
                    };
                    Op::Match { all: true, d, p, bits, a: c.src(1), members: c.src(2) }
                } else {
                    Op::Match { all: false, d: c.reg(0), p: None, bits, a: c.src(1), members: c.src(2) }
                }
            }
            "activemask" => Op::Activemask { d: c.reg(0) },
            "redux" => {
                let table = [
                    ("add", Redux::Add),
                    ("min", Redux::Min),
                    ("max", Redux::Max),
                    ("and", Redux::And),
                    ("or", Redux::Or),
                    ("xor", Redux::Xor),
                ];
                let op = table.iter().find(|t| c.has(t.0)).map_or(Redux::Add, |t| t.1);
                let (abs, nan) = (c.has("abs"), c.has("NaN"));
                Op::Redux { op, ty: c.ty(0), abs, nan, d: c.reg(0), a: c.src(1), members: c.src(2) }
            }
            "elect" => {
                let (d, p) = pair(&c.i.operands[0]);
                let d = if is_sink(d) { None } else { Some(self.destination(b, d, Type::B32, false)?) };
                let Some(p) = p else { return self.fault(c.i.operands[0].span, "X0103", "expected `d|p`") };
                let p = self.pred_destination(b, p)?.unwrap_or_else(|| b.predicate());
                Op::Elect { d, p, members: c.src(1) }
            }
            "shfl" => {
                let (d, p) = pair(&c.i.operands[0]);
                let d = self.destination(b, d, Type::B32, false)?;
                let p = match p {
                    Some(p) => self.pred_destination(b, p)?,
                    None => None,
                };
                let mode = if c.has("up") {
                    Shuffle::Up
                } else if c.has("down") {
                    Shuffle::Down
                } else if c.has("bfly") {
                    Shuffle::Bfly
                } else {
                    Shuffle::Idx
                };
                Op::Shfl { mode, d, p, a: c.src(1), b: c.src(2), c: c.src(3), members: c.try_src(4) }
            }
            "movmatrix" => Op::MovMatrix { d: c.reg(0), a: c.src(1) },
            _ => return self.mma(b, c),
        };
        b.push(op);
        Ok(())
    }

    fn barrier(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        if c.has("warp") {
            b.push(Op::WarpSync { members: c.src(0) });
            return Ok(());
        }
        if c.has("cluster") {
            // A cluster of one block: its barrier is that of the block, on an identifier of its own.
            let op = if c.has("arrive") {
                Op::Nop
            } else {
                Op::Barrier {
                    op: BarrierOp::Sync,
                    id: self.value(16),
                    count: None,
                    aligned: c.has("aligned"),
                }
            };
            b.push(op);
            return Ok(());
        }
        let aligned = c.i.opcode.text == "bar" || c.has("aligned");
        let reduces = c.has("red");
        let at = usize::from(reduces);
        let id = c.src(at);
        if let Some(v) = literal(&c.i.operands[at])
            && v > 15
        {
            return self.fault(
                c.i.operands[at].span,
                "X0103",
                format!("barrier {v}: a block has barriers 0 to 15"),
            );
        }
        let mut count = if reduces { None } else { c.try_src(at + 1) };
        let op = if reduces {
            // bar.red d, a{, b}, {!}c
            let last = c.i.operands.len() - 1;
            if last == 3 {
                count = Some(self.source(b, &c.i.operands[2], Type::U32, false)?);
            }
            let q = self.pred_source(b, &c.i.operands[last])?;
            if c.has("popc") {
                BarrierOp::Popc(c.reg(0), q)
            } else {
                BarrierOp::Combine(c.pred(0), c.has("and"), q)
            }
        } else if c.has("arrive") {
            BarrierOp::Arrive
        } else {
            BarrierOp::Sync
        };
        if let Some(o) = c.i.operands.get(at + 1).filter(|_| count.is_some())
            && let Some(v) = literal(o)
            && (v == 0 || v % 32 != 0 || v > 1024)
        {
            return self.fault(
                o.span,
                "X0103",
                format!("{v} threads: a barrier counts a multiple of 32, at most 1024"),
            );
        }
        b.push(Op::Barrier { op, id, count, aligned });
        Ok(())
    }

    fn call(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let operands = &c.i.operands;
        // call {(results),} callee {, (arguments)} {, prototype or targets}
        let mut at = 0;
        let mut results: &[Operand<'a>] = &[];
        if let OperandKind::List(list) = &operands[0].kind {
            results = list;
            at = 1;
        }
        let Some(target) = operands.get(at) else {
            return self.fault(c.i.opcode.span, "X0107", "the callee is missing");
        };
        let mut arguments: &[Operand<'a>] = &[];
        if let Some(Operand { kind: OperandKind::List(list), .. }) = operands.get(at + 1) {
            arguments = list;
        }
        let callee = self.callee(b, target)?;
        let (mut passed, mut received) = (Vec::new(), Vec::new());
        for o in arguments {
            passed.push(self.passed(b, o, false)?);
        }
        for o in results {
            received.push(self.passed(b, o, true)?);
        }
        if let Callee::Direct(f) = callee {
            let function = &self.module.functions[f as usize];
            let (name, kernel, defined) = (function.name.clone(), function.is_kernel, function.is_defined);
            let (wants, gives) = (function.params.len(), function.returns.len());
            let is_library = matches!(name.as_str(), "vprintf" | "__assertfail" | "malloc" | "free");
            if kernel {
                return self.fault(target.span, "X0107", format!("`{name}` is a kernel"));
            }
            if passed.len() != wants || received.len() != gives {
                let what = format!(
                    "`{name}` has {wants} parameters and {gives} results, the call {} and {}",
                    passed.len(),
                    received.len()
                );
                return self.fault(c.i.opcode.span, "X0107", what);
            }
            if !defined {
                if is_library {
                    // Its result, where it has one, is not defined by this module.
                    b.push(Op::Unsupported(format!("call {name}")));
                } else {
                    b.push(Op::Unsupported(format!("call of `{name}`, which has no body")));
                }
                return Ok(());
            }
        }
        b.push(Op::Call(Box::new(Call { callee, arguments: passed, results: received })));
        Ok(())
    }

    fn passed(&mut self, b: &mut Body<'a>, o: &Operand<'a>, result: bool) -> Check<Passed> {
        if let OperandKind::Name(n, None) = &o.kind {
            match b.lookup(n.text) {
                Some(Local::Frame(offset, bytes, true)) => return Ok(Passed::Param(offset, bytes)),
                Some(Local::Frame(..)) => {
                    return self.fault(o.span, "X0107", "a local variable is not passed");
                }
                _ => {}
            }
            match self.local(b, *n)? {
                Local::Reg(_, reg) if result => return Ok(Passed::Result(reg)),
                Local::Reg(ty, reg) => return Ok(Passed::Value(Src::Reg(reg), ty.bytes())),
                _ => {}
            }
        }
        if let (Some(v), false) = (literal(o), result) {
            return Ok(Passed::Value(self.value(v), 8));
        }
        self.fault(o.span, "X0107", "expected a `.param` variable or a register")
    }

    fn mma(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let shape = c
            .mods
            .iter()
            .find(|m| m.starts_with('m') && m.contains('n') && m.contains('k'))
            .copied()
            .unwrap_or("");
        let mut dims = shape.split(['m', 'n', 'k']).filter_map(|p| p.parse::<u16>().ok());
        let (m, n, k) = (dims.next().unwrap_or(0), dims.next().unwrap_or(0), dims.next().unwrap_or(0));
        let (d, a, bt, ct) = (c.ty(0), c.ty(1), c.ty(2), c.ty(3));
        let layouts: Vec<bool> =
            c.mods.iter().filter(|m| **m == "row" || **m == "col").map(|m| *m == "col").collect();
        let volta = shape == "m8n8k4" && a == Type::F16;
        let illegal = match a {
            Type::Bf16 => k < 8 || bt != a,
            Type::Tf32 => k > 8 || bt != a,
            Type::F64 | Type::F16 | Type::B1 => bt != a,
            _ => false,
        };
        // f16 results go with f16 accumulators alone but in the shapes of Volta.
        if illegal || (!volta && d != ct) {
            return self.fault(
                c.i.opcode.span,
                "X0102",
                format!("`mma` has no shape {shape} of these types"),
            );
        }
        let shape = Mma {
            m: m as u8,
            n: n as u8,
            k,
            a,
            b: bt,
            c: ct,
            d,
            round: rounding(&c.mods).unwrap_or(Round::Nearest),
            satfinite: c.has("satfinite"),
            xor: c.has("xor"),
            transposed: if volta {
                (layouts == [true, true] || layouts == [true, false], layouts.get(1) == Some(&false))
            } else {
                (false, false)
            },
        };
        let per_lane = |elements: u32, ty: Type| {
            let bits = elements * ty.bits() / if volta { 8 } else { 32 };
            if ty == Type::F64 { (bits / 64) as usize } else { bits.div_ceil(32) as usize }
        };
        let (m, n, k) = (u32::from(m), u32::from(n), u32::from(k));
        let register = |ty: Type| match ty {
            Type::F64 => Type::F64,
            Type::F32 => Type::F32,
            _ => Type::B32,
        };
        let d = self.registers(b, &c.i.operands[0], register(d), per_lane(m * n, d))?;
        let a = self.sources(b, &c.i.operands[1], register(a), per_lane(m * k, a))?;
        let bs = self.sources(b, &c.i.operands[2], register(bt), per_lane(k * n, bt))?;
        let cs = self.sources(b, &c.i.operands[3], register(ct), per_lane(m * n, ct))?;
        if volta {
            b.push(Op::Unsupported("mma.m8n8k4.f16".into()));
            return Ok(());
        }
        b.push(Op::Mma { shape, d: d.into(), a: a.into(), b: bs.into(), c: cs.into() });
        Ok(())
    }
}
