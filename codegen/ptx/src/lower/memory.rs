//! Loads, stores, atomics, asynchronous copies, matrices in shared memory, mbarriers and fences.

use super::function::Body;
use super::operand::{Arg, Checked, elements};
use super::{Check, Lowering, space_of};
use crate::ir::{Address, AtomOp, MbarrierOp, Op, Order, Scope, Space, Strength};
use crate::types::Type;

fn scope_of(mods: &[&str]) -> Option<Scope> {
    mods.iter().find_map(|m| match *m {
        "cta" | "cluster" => Some(Scope::Block),
        "gpu" | "gl" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    })
}

fn vector_of(mods: &[&str]) -> usize {
    mods.iter()
        .find_map(|m| match *m {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
}

impl<'a> Lowering<'a> {
    /// The space and address of operand `at`.
    fn space_and_address(&mut self, b: &Body<'a>, c: &Checked<'_, 'a>, at: usize) -> Check<(Space, Address)> {
        let Some(Arg::Address(address, variable)) = c.args.get(at).cloned() else {
            return self.fault(c.i.opcode.span, "X0103", "expected an address");
        };
        let stated = c.mods.iter().find_map(|m| space_of(m)).unwrap_or(Space::Generic);
        let space = match (stated, variable) {
            // A parameter of a function is stored in its frame; of a kernel in the parameter space.
            (Space::Param, Some(s @ (Space::Local | Space::Param))) => s,
            (Space::Param, None) => b.param_space(),
            (s, None) => s,
            (Space::Generic, Some(s)) => s,
            (s, Some(v)) if s == v => s,
            (s, Some(v)) => {
                let what =
                    format!("the variable is in `.{}`, the instruction accesses `.{}`", v.name(), s.name());
                return self.fault(c.i.opcode.span, "X0103", what);
            }
        };
        Ok((space, address))
    }

    pub(crate) fn memory(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let name = c.i.opcode.text;
        let op = match name {
            "ld" | "ldu" | "st" => return self.load_store(b, c),
            "atom" | "red" => return self.atomic(b, c),
            "prefetch" | "prefetchu" | "discard" | "applypriority" => Op::Nop,
            "membar" | "fence" => match scope_of(&c.mods) {
                Some(scope) if !c.has("proxy") && !c.has("mbarrier_init") => Op::Fence { scope },
                _ => Op::Nop,
            },
            "cp" => return self.copy(b, c),
            "ldmatrix" | "stmatrix" => {
                let count = ["x1", "x2", "x4"].iter().zip([1, 2, 4]).find(|x| c.has(x.0)).map_or(1, |x| x.1);
                let load = name == "ldmatrix";
                let (_, address) = self.space_and_address(b, c, usize::from(load))?;
                let trans = c.has("trans");
                if load {
                    let d = self.registers(b, &c.i.operands[0], Type::B32, count)?;
                    Op::LdMatrix { d: d.into(), trans, address }
                } else {
                    let s = self.sources(b, &c.i.operands[1], Type::B32, count)?;
                    Op::StMatrix { s: s.into(), trans, address }
                }
            }
            "mbarrier" => return self.mbarrier(b, c),
            other => Op::Unsupported(other.to_owned()),
        };
        b.push(op);
        Ok(())
    }

    fn load_store(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let load = c.i.opcode.text != "st";
        let (at, data) = if load { (1, 0) } else { (0, 1) };
        let ty = c.ty(0);
        let (space, address) = self.space_and_address(b, c, at)?;
        let space = if c.i.opcode.text == "ldu" && space == Space::Generic { Space::Global } else { space };
        let (count, found) = (vector_of(&c.mods), elements(&c.i.operands[data]).len());
        if count != found {
            return self.fault(
                c.i.operands[data].span,
                "X0103",
                format!("expected {count} registers, found {found}"),
            );
        }
        if count as u32 * ty.bits() > 256 {
            return self.fault(c.i.opcode.span, "X0102", "a vector has at most 256 bits");
        }
        if ty == Type::B128 {
            b.push(Op::Unsupported(format!("{}.b128", c.i.opcode.text)));
            return Ok(());
        }
        let order = if c.has("acquire") {
            Order::Acquire
        } else if c.has("release") {
            Order::Release
        } else {
            Order::Relaxed
        };
        let strong = ["volatile", "relaxed", "acquire", "release", "mmio"].iter().any(|m| c.has(m));
        let strength = if strong {
            Strength::Strong(scope_of(&c.mods).unwrap_or(Scope::Sys), order)
        } else {
            Strength::Weak
        };
        if load {
            let used = b.used_bytes.take().unwrap_or(u32::MAX);
            b.push(Op::Ld { space, ty, strength, nc: c.has("nc"), used, d: c.regs(0).into(), address });
        } else {
            if matches!(space, Space::Const | Space::Param) {
                return self.fault(c.i.opcode.span, "X0102", format!("`.{}` is not written", space.name()));
            }
            b.push(Op::St { space, ty, strength, s: c.srcs(1).into(), address });
        }
        Ok(())
    }

    fn atomic(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let returns = c.i.opcode.text == "atom";
        let at = usize::from(returns);
        let ty = c.ty(0);
        let (space, address) = self.space_and_address(b, c, at)?;
        if ty == Type::B128 {
            b.push(Op::Unsupported(format!("{}.b128", c.i.opcode.text)));
            return Ok(());
        }
        let table = [
            ("and", AtomOp::And),
            ("or", AtomOp::Or),
            ("xor", AtomOp::Xor),
            ("exch", AtomOp::Exch),
            ("cas", AtomOp::Cas),
            ("add", AtomOp::Add),
            ("inc", AtomOp::Inc),
            ("dec", AtomOp::Dec),
            ("min", AtomOp::Min),
            ("max", AtomOp::Max),
        ];
        let Some(op) = table.iter().find(|t| c.has(t.0)).map(|t| t.1) else {
            return self.fault(c.i.opcode.span, "X0102", "the operation is missing");
        };
        let order = if c.has("acq_rel") {
            Order::AcqRel
        } else if c.has("acquire") {
            Order::Acquire
        } else if c.has("release") {
            Order::Release
        } else {
            Order::Relaxed
        };
        let scope = scope_of(&c.mods).unwrap_or(Scope::Gpu);
        let count = vector_of(&c.mods);
        let (d, value, third) = if count > 1 {
            let d = if returns { self.registers(b, &c.i.operands[0], ty, count)? } else { Vec::new() };
            (d.into_iter().map(Some).collect(), self.sources(b, &c.i.operands[at + 1], ty, count)?, None)
        } else {
            let d = if returns { vec![Some(c.reg(0))] } else { Vec::new() };
            let third = if op == AtomOp::Cas { c.try_src(at + 2) } else { None };
            (d, vec![c.src(at + 1)], third)
        };
        b.push(Op::Atom { op, space, ty, scope, order, d: d.into(), address, b: value.into(), c: third });
        Ok(())
    }

    fn copy(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        let op = if c.has("commit_group") {
            Op::CpAsyncCommit
        } else if c.has("wait_all") {
            Op::CpAsyncWait { pending: 0 }
        } else if c.has("wait_group") {
            Op::CpAsyncWait { pending: c.immediate(0).min(u64::from(u32::MAX)) as u32 }
        } else if c.has("mbarrier") {
            let (space, address) = self.space_and_address(b, c, 0)?;
            Op::Mbarrier { op: MbarrierOp::CopyArrive(c.has("noinc")), space, address }
        } else {
            let (Some(Arg::Address(shared, _)), Some(Arg::Address(global, _))) =
                (c.args.first().cloned(), c.args.get(1).cloned())
            else {
                return self.fault(c.i.opcode.span, "X0103", "expected two addresses");
            };
            let bytes = c.immediate(2);
            let legal: &[u64] = if c.has("cg") { &[16] } else { &[4, 8, 16] };
            if !legal.contains(&bytes) {
                return self.fault(
                    c.i.operands[2].span,
                    "X0103",
                    format!("`cp.async` does not copy {bytes} bytes"),
                );
            }
            let (mut source_bytes, mut ignore) = (None, None);
            if let Some(o) = c.i.operands.get(3)
                && !(c.has("L2::cache_hint") && c.i.operands.len() == 4)
            {
                if is_predicate(self, b, o) {
                    ignore = Some(self.pred_source(b, o)?);
                } else {
                    source_bytes = Some(self.source(b, o, Type::U32, false)?);
                }
            }
            Op::CpAsync { shared, global, bytes: bytes as u32, source_bytes, ignore }
        };
        b.push(op);
        Ok(())
    }

    fn mbarrier(&mut self, b: &mut Body<'a>, c: &Checked<'_, 'a>) -> Check<()> {
        if c.has("pending_count") {
            b.push(Op::PendingCount { d: c.reg(0), a: c.src(1) });
            return Ok(());
        }
        let at = c.args.iter().position(|a| matches!(a, Arg::Address(..))).unwrap_or(0);
        let (space, address) = self.space_and_address(b, c, at)?;
        let op = if c.has("init") {
            MbarrierOp::Init(c.src(1))
        } else if c.has("inval") {
            MbarrierOp::Inval
        } else if c.has("arrive") || c.has("arrive_drop") {
            let o = &c.i.operands[0];
            let state = if super::operand::is_sink(o) {
                None
            } else {
                Some(self.destination(b, o, Type::B64, false)?)
            };
            MbarrierOp::Arrive {
                state,
                count: c.try_src(2),
                drop: c.has("arrive_drop"),
                expect_tx: c.has("expect_tx"),
                no_complete: c.has("noComplete"),
            }
        } else if c.has("expect_tx") {
            MbarrierOp::ExpectTx(c.src(1))
        } else if c.has("complete_tx") {
            MbarrierOp::CompleteTx(c.src(1))
        } else {
            MbarrierOp::Test {
                result: c.pred(0),
                state: c.src(2),
                parity: c.has("parity"),
                wait: c.has("try_wait"),
            }
        };
        b.push(Op::Mbarrier { op, space, address });
        Ok(())
    }
}

fn is_predicate<'a>(l: &mut Lowering<'a>, b: &mut Body<'a>, o: &crate::syntax::Operand<'a>) -> bool {
    use crate::syntax::OperandKind;
    match &o.kind {
        OperandKind::Not(_) => true,
        OperandKind::Name(n, None) => matches!(l.local(b, *n), Ok(super::function::Local::Pred(_))),
        _ => false,
    }
}
