//! Bodies of functions: scopes, declarations, labels, and the instructions in their order.

use rustc_hash::FxHashMap;

use super::{Check, Global, Lowering, cfg};
use crate::ir::{Function, Inst, Op, Param, Pred, Reg, Space, Src};
use crate::lex::integer;
use crate::syntax::{self, Directive, Instruction, Statement, Word};
use crate::types::Type;

/// What a name of a function means.
#[derive(Clone)]
pub(crate) enum Local {
    Reg(Type, Reg),
    Pred(Pred),
    /// A range `%r<5>`: its type and count; registers are made when they are first named.
    Range(Type, u64),
    /// A variable of the frame: offset and bytes. `true`: declared `.param`.
    Frame(u32, u32, bool),
    /// A parameter of a kernel: its offset.
    KernelParam(u32),
    /// A variable of the module that the function declares.
    Variable(u32),
    Label(u32),
    /// `.branchtargets`
    Targets(Vec<u32>),
    /// `.callprototype`, `.calltargets`
    Prototype,
}

/// A function that is being lowered.
pub(crate) struct Body<'a> {
    pub(crate) index: u32,
    pub(crate) function: Function,
    pub(crate) scopes: Vec<FxHashMap<&'a str, Local>>,
    /// For each label the instruction behind it, and where it is first used.
    labels: Vec<u32>,
    pub(crate) line: u32,
    pub(crate) guard: Option<(Pred, bool)>,
    /// Of the next load, by a pragma: the bytes that are used.
    pub(crate) used_bytes: Option<u32>,
}

const UNPLACED: u32 = u32::MAX;
/// The frame of a function may have this many bytes.
const MAX_FRAME_BYTES: u32 = 1 << 24;

impl<'a> Lowering<'a> {
    pub(crate) fn header_directives(&mut self, f: &syntax::Function<'a>, function: &mut Function) {
        for d in &f.directives {
            let numbers: Vec<Option<u64>> =
                d.arguments.iter().filter(|w| w.text != ",").map(|w| integer(w.text)).collect();
            let mut dims = [1_u32; 3];
            let fits = numbers.len() <= 3 && numbers.iter().all(|n| n.is_some_and(|n| n > 0 && n < 1 << 31));
            for (slot, n) in dims.iter_mut().zip(&numbers) {
                *slot = n.unwrap_or(1) as u32;
            }
            match d.name.text {
                ".reqntid" | ".maxntid" | ".reqnctapercluster" if !fits || numbers.is_empty() => {
                    self.sink.report(
                        d.name.span,
                        "X0106",
                        format!("`{}` takes one to three sizes", d.name.text),
                    );
                }
                ".reqntid" => function.reqntid = Some(dims),
                ".maxntid" => function.maxntid = Some(dims),
                ".reqnctapercluster" if dims != [1, 1, 1] => {
                    self.sink.report(d.name.span, "X0108", "clusters of more than one block");
                }
                _ => {}
            }
        }
    }

    pub(crate) fn function(&mut self, f: &syntax::Function<'a>) {
        let Some(Global::Function(index)) = self.names.get(f.name.text).copied() else { return };
        let mut function = self.module.functions[index as usize].clone();
        let mut scope = FxHashMap::default();
        let parameters = self.parameters(f.parameters.as_deref().unwrap_or(&[]), true);
        let returns = self.parameters(f.returns.as_deref().unwrap_or(&[]), true);
        let (Ok(parameters), Ok(returns)) = (parameters, returns) else { return };
        let Some(body) = &f.body else { return };
        if !function.code.is_empty() {
            return;
        }
        (function.params, function.returns) = (parameters, returns);
        if function.is_kernel {
            for p in &function.params {
                scope.insert(name_of(f, &p.name), Local::KernelParam(p.offset));
            }
            if f.returns.is_some() {
                self.sink.report(f.name.span, "X0106", "a kernel returns nothing");
            }
        } else {
            // Parameters of a function are in its frame; those in registers get one each.
            let (declared, returned) =
                (f.parameters.as_deref().unwrap_or(&[]), f.returns.as_deref().unwrap_or(&[]));
            let mut params = std::mem::take(&mut function.params);
            for (p, v) in params.iter_mut().zip(declared) {
                self.place_parameter(&mut function, &mut scope, p, v);
            }
            let mut results = std::mem::take(&mut function.returns);
            for (p, v) in results.iter_mut().zip(returned) {
                self.place_parameter(&mut function, &mut scope, p, v);
            }
            (function.params, function.returns) = (params, results);
        }
        let mut b = Body {
            index,
            function,
            scopes: vec![scope],
            labels: Vec::new(),
            line: 0,
            guard: None,
            used_bytes: None,
        };
        self.block(&mut b, body);
        // A body that runs off its end returns.
        b.line = b.function.code.last().map_or(b.function.line, |i| i.line);
        b.guard = None;
        b.push(Op::Ret);
        let labels = std::mem::take(&mut b.labels);
        let resolve = |l: &mut u32| *l = labels.get(*l as usize).copied().unwrap_or(0);
        for inst in &mut b.function.code {
            if let Op::Bra { target } = &mut inst.op {
                resolve(target);
            } else if let Op::BrxIdx { targets, .. } = &mut inst.op {
                targets.iter_mut().for_each(resolve);
            }
        }
        b.function.reconverge = cfg::reconvergence(&b.function.code);
        self.module.functions[index as usize] = b.function;
    }

    fn place_parameter(
        &mut self,
        function: &mut Function,
        scope: &mut FxHashMap<&'a str, Local>,
        p: &mut Param,
        v: &syntax::Variable<'a>,
    ) {
        let Some(n) = v.names.first() else { return };
        if v.space.text == ".reg" {
            let Ok(layout) = self.layout(v, n) else { return };
            let reg = Reg(function.registers);
            function.registers += 1;
            p.register = Some(reg);
            scope.insert(n.name.text, Local::Reg(layout.ty, reg));
        } else {
            p.offset = function.frame_bytes.next_multiple_of(p.align.max(8));
            function.frame_bytes = p.offset + p.bytes;
            scope.insert(n.name.text, Local::Frame(p.offset, p.bytes, true));
        }
    }

    fn block(&mut self, b: &mut Body<'a>, body: &[Statement<'a>]) {
        // Labels may be used before they stand.
        for s in body {
            if let Statement::Label(l) = s {
                let id = b.labels.len() as u32;
                b.labels.push(UNPLACED);
                self.define(b, *l, Local::Label(id));
            }
        }
        for s in body {
            if let Statement::Named(l, d) = s {
                let _ = self.named(b, *l, d);
            }
        }
        for s in body {
            if self.sink.is_full() {
                return;
            }
            match s {
                Statement::Label(l) => {
                    if let Some(Local::Label(id)) = b.lookup(l.text) {
                        b.labels[id as usize] = b.function.code.len() as u32;
                    }
                }
                Statement::Variable(v) => {
                    let _ = self.local_variable(b, v);
                }
                Statement::Directive(d) => {
                    let text = d.arguments.first().map_or("", |w| w.text.trim_matches('"'));
                    if let Some(mask) = text.strip_prefix("used_bytes_mask ") {
                        b.used_bytes = integer(mask.trim()).map(|m| m as u32);
                    }
                }
                Statement::Named(..) => {}
                Statement::Block(inner) => {
                    b.scopes.push(FxHashMap::default());
                    self.block(b, inner);
                    b.scopes.pop();
                }
                Statement::Instruction(i) => {
                    b.line = self.line(i.span);
                    // Reported; the next instruction is looked at all the same.
                    let _ = self.guarded(b, i);
                }
            }
        }
    }

    fn guarded(&mut self, b: &mut Body<'a>, i: &Instruction<'a>) -> Check<()> {
        b.guard = None;
        if let Some((negated, p)) = i.guard {
            match self.local(b, p)? {
                Local::Pred(pred) => b.guard = Some((pred, negated)),
                _ => {
                    return self.fault(
                        p.span,
                        "X0103",
                        format!("the guard `{}` is no predicate register", p.text),
                    );
                }
            }
        }
        self.instruction(b, i)
    }

    fn define(&mut self, b: &mut Body<'a>, name: Word<'a>, meaning: Local) {
        let Some(scope) = b.scopes.last_mut() else { return };
        if scope.insert(name.text, meaning).is_some() {
            self.sink.report(name.span, "X0105", format!("`{}` is declared twice in one scope", name.text));
        }
    }

    fn named(&mut self, b: &mut Body<'a>, label: Word<'a>, d: &Directive<'a>) -> Check<()> {
        let meaning = if d.name.text == ".branchtargets" {
            let mut targets = Vec::new();
            for w in d.arguments.iter().filter(|w| w.text != "," && w.text != ";") {
                match b.lookup(w.text) {
                    Some(Local::Label(id)) => targets.push(id),
                    _ => return self.fault(w.span, "X0104", format!("no label `{}`", w.text)),
                }
            }
            Local::Targets(targets)
        } else {
            Local::Prototype
        };
        self.define(b, label, meaning);
        Ok(())
    }

    fn local_variable(&mut self, b: &mut Body<'a>, v: &syntax::Variable<'a>) -> Check<()> {
        for n in &v.names {
            let meaning = match v.space.text {
                ".reg" => {
                    let layout = self.layout(v, n)?;
                    if layout.vector > 1 || !n.dimensions.is_empty() {
                        return self.fault(n.name.span, "X0108", "registers of vector type");
                    }
                    match n.count {
                        Some(c) => match integer(c.text) {
                            Some(count) => Local::Range(layout.ty, count),
                            None => {
                                return self.fault(c.span, "X0106", "a number of registers is an integer");
                            }
                        },
                        None => b.register(layout.ty),
                    }
                }
                ".local" | ".param" => {
                    let layout = self.layout(v, n)?;
                    if layout.ty == Type::Pred || n.count.is_some() || n.initial.is_some() {
                        return self.fault(n.name.span, "X0106", "no such variable in this space");
                    }
                    let offset = b.function.frame_bytes.next_multiple_of(layout.align.max(1));
                    let end = u64::from(offset) + layout.bytes;
                    if end > u64::from(MAX_FRAME_BYTES) {
                        return self.fault(
                            n.name.span,
                            "X0003",
                            format!("a frame may have {MAX_FRAME_BYTES} bytes"),
                        );
                    }
                    b.function.frame_bytes = end as u32;
                    Local::Frame(offset, layout.bytes as u32, v.space.text == ".param")
                }
                ".shared" | ".global" | ".const" => Local::Variable(self.variable(v, n, Some(b.index))?),
                _ => return self.fault(v.space.span, "X0108", format!("variables in `{}`", v.space.text)),
            };
            self.define(b, n.name, meaning);
        }
        Ok(())
    }

    /// What a name means in the function.
    pub(crate) fn local(&mut self, b: &mut Body<'a>, name: Word<'a>) -> Check<Local> {
        match b.lookup(name.text) {
            Some(l) => Ok(l),
            None => match b.numbered(name.text) {
                Some(l) => Ok(l),
                None => self.fault(name.span, "X0104", format!("`{}` is not declared", name.text)),
            },
        }
    }
}

/// The name in the tree, which lives as long as the text.
fn name_of<'a>(f: &syntax::Function<'a>, name: &str) -> &'a str {
    let all = f.parameters.as_deref().unwrap_or(&[]);
    all.iter().flat_map(|v| &v.names).map(|n| n.name.text).find(|t| *t == name).unwrap_or("")
}

impl<'a> Body<'a> {
    pub(crate) fn push(&mut self, op: Op) {
        self.function.code.push(Inst { op, guard: self.guard, line: self.line });
    }

    /// A new register of a type.
    fn register(&mut self, ty: Type) -> Local {
        if ty == Type::Pred { Local::Pred(self.predicate()) } else { Local::Reg(ty, self.temporary()) }
    }

    pub(crate) fn temporary(&mut self) -> Reg {
        self.function.registers += 1;
        Reg(self.function.registers - 1)
    }

    pub(crate) fn predicate(&mut self) -> Pred {
        self.function.predicates += 1;
        Pred(self.function.predicates - 1)
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<Local> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).filter(|l| !matches!(l, Local::Range(..))).cloned()
    }

    /// A register of a range: `%r12` of `%r<20>`.
    fn numbered(&mut self, name: &'a str) -> Option<Local> {
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // `%r1` of `%r<2>`, and `%x12` of `%x1<5>` too: the longest declared prefix counts.
        // A number has at most 20 digits.
        for split in digits.max(name.len().saturating_sub(20))..name.len() {
            let (prefix, number) = name.split_at(split);
            if number.len() > 1 && number.starts_with('0') {
                continue;
            }
            let Ok(number) = number.parse::<u64>() else { continue };
            for depth in (0..self.scopes.len()).rev() {
                if let Some(&Local::Range(ty, count)) = self.scopes[depth].get(prefix) {
                    if number >= count {
                        return None;
                    }
                    let made = self.register(ty);
                    self.scopes[depth].insert(name, made.clone());
                    return Some(made);
                }
            }
        }
        None
    }

    /// A source that holds the address in local space of an offset in the frame.
    pub(crate) fn frame_address(&mut self, offset: u32) -> Src {
        let d = self.temporary();
        let guard = self.guard.take();
        self.push(Op::FrameAddress { d, offset });
        self.guard = guard;
        Src::Reg(d)
    }

    /// Whether addresses of `.param` are addresses of the frame here.
    pub(crate) fn param_space(&self) -> Space {
        if self.function.is_kernel { Space::Param } else { Space::Local }
    }
}
