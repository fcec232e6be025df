//! Proves an assignment on some executions of a program: executes it symbolically as the runtime would, with
//! names of values instead of bytes, and checks that every reader finds what it expects. It knows what
//! instructions mean and what the assignment says, and nothing of how that was found.

use std::collections::BTreeMap;

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

use super::in_place::{self, Sharing};
use super::values::{alias_of, array_leaves};
use super::{AllocationKind, Assigned, Questions, Slice, When};

/// The control flow of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Path {
    /// The number of iterations of each loop.
    rounds: u32,
    /// Successive conditionals take branches `branch`, `branch + 1`, and so on.
    branch: u32,
    /// The maximum number of instructions that are executed.
    steps: u64,
}

/// Executes the program a few times, so that every branch runs and loops run zero, one, two and three
/// iterations. Errors: what is wrong, in words.
pub fn check(module: &Module, assigned: &Assigned, questions: &Questions<'_>) -> Result<(), String> {
    for (rounds, branch) in [(1, 0), (0, 0), (2, 1), (3, 2), (2, 3), (3, 4), (1, 5), (1, 6)] {
        check_path(module, assigned, questions, Path { rounds, branch, steps: 200_000 })?;
    }
    Ok(())
}

/// One symbolic execution.
fn check_path(
    module: &Module,
    assigned: &Assigned,
    questions: &Questions<'_>,
    path: Path,
) -> Result<(), String> {
    let env = FxHashMap::default();
    let memory = BTreeMap::new();
    let (next, steps, branch) = (0, path.steps, path.branch);
    let mut run = Run { module, assigned, questions, memory, env, next, steps, path, branch, depth: 0 };
    run.program()
}

/// The name of an array: no two computed arrays share one.
type Token = u64;

struct Run<'a> {
    module: &'a Module,
    assigned: &'a Assigned,
    questions: &'a Questions<'a>,
    /// Which bytes hold what: (allocation, offset) of the first byte to the end and the token.
    memory: BTreeMap<(u32, u64), (u64, Token)>,
    env: FxHashMap<InstrId, Vec<Token>>,
    next: Token,
    steps: u64,
    path: Path,
    branch: u32,
    depth: u32,
}

impl Run<'_> {
    fn fresh(&mut self) -> Token {
        self.next += 1;
        self.next
    }

    fn program(&mut self) -> Result<(), String> {
        let entry = self.module.entry();
        for (i, allocation) in self.assigned.assignment.allocations.iter().enumerate() {
            if let AllocationKind::Constant { index } = allocation.kind {
                let (id, leaf) = self.assigned.constants[index as usize];
                let token = self.fresh();
                self.env.entry(id).or_default().resize(leaf as usize + 1, 0);
                self.env.entry(id).or_default()[leaf as usize] = token;
                self.put(Slice { allocation: i as u32, offset: 0, bytes: allocation.bytes }, token);
            }
        }
        let mut leaf = 0;
        for p in self.module.computation(entry).parameters().iter().flatten() {
            let mut tokens = Vec::new();
            for _ in 0..array_leaves(&self.module.instr(*p).shape) {
                let token = self.fresh();
                tokens.push(token);
                let of_leaf = |kind| matches!(kind, AllocationKind::Parameter { leaf: l, .. } if l == leaf);
                let at = self.assigned.assignment.allocations.iter().position(|a| of_leaf(a.kind));
                let at = at.ok_or_else(|| format!("leaf {leaf} of the parameters has no allocation"))?;
                let bytes = self.assigned.assignment.allocations[at].bytes;
                self.put(Slice { allocation: at as u32, offset: 0, bytes }, token);
                leaf += 1;
            }
            self.env.insert(*p, tokens);
        }
        if !self.computation(entry)? {
            return Ok(());
        }
        self.copies(When::AtEnd)?;
        let root = self.module.root(entry);
        let tokens = self.tokens(root);
        if tokens.len() != self.assigned.assignment.results.len() {
            return Err(format!("{} results of {}", self.assigned.assignment.results.len(), tokens.len()));
        }
        for (leaf, token) in tokens.into_iter().enumerate() {
            self.expect(self.assigned.assignment.results[leaf], token, root, "the result")?;
        }
        Ok(())
    }

    fn tokens(&self, id: InstrId) -> Vec<Token> {
        self.env.get(&id).cloned().unwrap_or_default()
    }

    fn put(&mut self, slice: Slice, token: Token) {
        if slice.bytes == 0 {
            return;
        }
        let (from, to) = (slice.offset, slice.offset + slice.bytes);
        let first = (slice.allocation, from);
        // An older array that reaches into the slice is torn; one that begins in it is gone, except for its
        // tail, which may not be read either.
        if let Some((&key, &(end, _))) = self.memory.range(..first).next_back()
            && key.0 == slice.allocation
            && end > from
        {
            self.memory.remove(&key);
        }
        let inside: Vec<(u32, u64)> =
            self.memory.range(first..(slice.allocation, to)).map(|(&k, _)| k).collect();
        for key in inside {
            self.memory.remove(&key);
        }
        self.memory.insert(first, (to, token));
    }

    /// A write by an instruction or a copy.
    fn write(&mut self, slice: Slice, token: Token, by: InstrId) -> Result<(), String> {
        if slice.bytes == 0 {
            return Ok(());
        }
        let name = &self.module.instr(by).name;
        let allocations = &self.assigned.assignment.allocations;
        let Some(allocation) = allocations.get(slice.allocation as usize) else {
            return Err(format!("`{name}` writes to {slice:?}, of which there is no allocation"));
        };
        if !slice.offset.is_multiple_of(64) || slice.offset + slice.bytes > allocation.bytes {
            return Err(format!("`{name}` writes to {slice:?} of {allocation:?}"));
        }
        match allocation.kind {
            AllocationKind::Parameter { donated: false, .. } | AllocationKind::Constant { .. } => {
                return Err(format!("`{name}` writes to {allocation:?}, which it may not"));
            }
            AllocationKind::Parameter { donated: true, .. }
            | AllocationKind::Result { .. }
            | AllocationKind::Arena
            | AllocationKind::Frame => {}
        }
        self.put(slice, token);
        Ok(())
    }

    fn expect(&self, slice: Slice, token: Token, by: InstrId, what: &str) -> Result<(), String> {
        if slice.bytes == 0 {
            return Ok(());
        }
        let end = slice.offset + slice.bytes;
        match self.memory.get(&(slice.allocation, slice.offset)) {
            Some(&(to, t)) if to == end && t == token => Ok(()),
            found => {
                let name = &self.module.instr(by).name;
                Err(format!(
                    "`{name}`: {what} is not at {slice:?}: value {token} is expected, found {found:?}; {:?}",
                    self.path
                ))
            }
        }
    }

    fn copies(&mut self, when: When) -> Result<(), String> {
        let by = match when {
            When::Before(id) | When::AfterBody(id) | When::AfterBranch(id, _) => id,
            When::AtEnd => self.module.root(self.module.entry()),
        };
        for copy in self.assigned.copies(when).to_vec() {
            let (from, to) = (copy.from, copy.to);
            if from.bytes != to.bytes || overlap(from, to) {
                return Err(format!("{copy:?} at {when:?}"));
            }
            // A copy from uninitialized memory copies something that no reader expects.
            let token = match self.memory.get(&(from.allocation, from.offset)) {
                Some(&(end, t)) if end == from.offset + from.bytes => t,
                _ => self.fresh(),
            };
            self.write(to, token, by)?;
        }
        Ok(())
    }

    /// False: too many steps.
    fn computation(&mut self, c: ComputationId) -> Result<bool, String> {
        if self.depth > 100 {
            return Ok(false);
        }
        self.depth += 1;
        for id in self.module.instructions(c) {
            if self.steps == 0 || !self.instruction(id)? {
                return Ok(false);
            }
            self.steps -= 1;
        }
        self.depth -= 1;
        Ok(true)
    }

    fn bind(&mut self, c: ComputationId, arguments: Vec<Vec<Token>>) {
        let parameters = self.module.computation(c).parameters().to_vec();
        for (p, tokens) in parameters.into_iter().zip(arguments) {
            if let Some(p) = p {
                self.env.insert(p, tokens);
            }
        }
    }

    /// Whether a value is stored where the assignment says.
    fn all_there(&self, id: InstrId, tokens: &[Token], what: &str) -> Result<(), String> {
        let slices: Vec<Slice> = self.assigned.slices_of(id).collect();
        if slices.len() != tokens.len() {
            return Err(format!("`{}` has {} leaves", self.module.instr(id).name, slices.len()));
        }
        slices.into_iter().zip(tokens).try_for_each(|(s, &t)| self.expect(s, t, id, what))
    }

    fn instruction(&mut self, id: InstrId) -> Result<bool, String> {
        let module = self.module;
        let instr = module.instr(id);
        let operands: Vec<Vec<Token>> = instr.operands().iter().map(|&o| self.tokens(o)).collect();
        let tokens = match instr.opcode {
            Opcode::Parameter | Opcode::Constant => return Ok(true),
            Opcode::Tuple => operands.concat(),
            Opcode::GetTupleElement => {
                let index = instr.attrs.int(AttrKey::Index).unwrap_or(0) as usize;
                let parts = module.instr(instr.operands()[0]).shape.as_tuple().unwrap_or_default();
                let first: usize = parts[..index].iter().map(array_leaves).sum();
                operands[0][first..first + array_leaves(&parts[index])].to_vec()
            }
            Opcode::While | Opcode::Conditional | Opcode::Call if !(self.questions.whole)(id) => {
                return self.control(id, operands);
            }
            _ if alias_of(module, id).is_some() => operands[0].clone(),
            _ => self.execute(id, &operands)?,
        };
        self.env.insert(id, tokens);
        Ok(true)
    }

    fn control(&mut self, id: InstrId, operands: Vec<Vec<Token>>) -> Result<bool, String> {
        let module = self.module;
        let called = super::order::control(module, id);
        let tokens = match module.instr(id).opcode {
            Opcode::While => {
                let mut tokens = operands[0].clone();
                self.all_there(module.instr(id).operands()[0], &tokens, "the operand")?;
                self.copies(When::Before(id))?;
                self.all_there(id, &tokens, "the first state")?;
                for round in 0..=self.path.rounds {
                    self.bind(called[0], vec![tokens.clone()]);
                    if !self.computation(called[0])? {
                        return Ok(false);
                    }
                    let condition = module.root(called[0]);
                    self.all_there(condition, &self.tokens(condition), "the condition")?;
                    if round == self.path.rounds {
                        break;
                    }
                    self.bind(called[1], vec![tokens.clone()]);
                    if !self.computation(called[1])? {
                        return Ok(false);
                    }
                    let next = module.root(called[1]);
                    tokens = self.tokens(next);
                    self.all_there(next, &tokens, "what the body leaves")?;
                    self.copies(When::AfterBody(id))?;
                    self.all_there(id, &tokens, "the next state")?;
                }
                tokens
            }
            Opcode::Conditional => {
                self.all_there(module.instr(id).operands()[0], &operands[0], "the selector")?;
                let n = self.branch as usize % called.len();
                self.branch += 1;
                self.bind(called[n], vec![operands[n + 1].clone()]);
                if !self.computation(called[n])? {
                    return Ok(false);
                }
                let root = module.root(called[n]);
                let tokens = self.tokens(root);
                self.all_there(root, &tokens, "what a branch leaves")?;
                self.copies(When::AfterBranch(id, n as u32))?;
                self.all_there(id, &tokens, "the result")?;
                tokens
            }
            _ => {
                self.bind(called[0], operands);
                if !self.computation(called[0])? {
                    return Ok(false);
                }
                self.tokens(module.root(called[0]))
            }
        };
        self.env.insert(id, tokens);
        Ok(true)
    }

    fn execute(&mut self, id: InstrId, operands: &[Vec<Token>]) -> Result<Vec<Token>, String> {
        let module = self.module;
        let name = &module.instr(id).name;
        for (&o, tokens) in module.instr(id).operands().iter().zip(operands) {
            let slices: Vec<Slice> = self.assigned.slices_of(o).collect();
            for (slice, &token) in slices.into_iter().zip(tokens) {
                self.expect(slice, token, id, "an operand")?;
            }
        }
        self.copies(When::Before(id))?;
        let arguments = self.assigned.arguments(module, id);
        let read = operands.concat();
        if arguments.len() != read.len() + array_leaves(&module.instr(id).shape) {
            return Err(format!("`{name}` has {} arguments", arguments.len()));
        }
        let (reads, writes) = arguments.split_at(read.len());
        for (&slice, &token) in reads.iter().zip(&read) {
            self.expect(slice, token, id, "an argument")?;
        }
        let pairs = in_place::pairs(module, id, (self.questions.epilogue_in_place)(id));
        let slots: Vec<(u32, u32)> = (operands.iter().enumerate())
            .flat_map(|(slot, leaves)| (0..leaves.len()).map(move |l| (slot as u32, l as u32)))
            .collect();
        for (result, &w) in writes.iter().enumerate() {
            for (&r, &(slot, leaf)) in reads.iter().zip(&slots) {
                let pair =
                    pairs.iter().find(|p| p.slot == slot && p.leaf == leaf && p.result == result as u32);
                if overlap(w, r) && (pair.is_none() || w != r) {
                    return Err(format!("`{name}` writes {w:?} over operand {slot} at {r:?}"));
                }
                if w != r && w.bytes > 0 && pair.is_some_and(|p| p.sharing == Sharing::Must) {
                    return Err(format!("`{name}` does not change operand {slot} in its place"));
                }
            }
            if writes[..result].iter().any(|&other| overlap(w, other)) {
                return Err(format!("two results of `{name}` lie at {w:?}"));
            }
        }
        let scratch = (self.questions.scratch)(id);
        if scratch > 0 {
            let slice =
                self.assigned.scratch_of(id).ok_or_else(|| format!("`{name}` has no scratch memory"))?;
            if slice.bytes < scratch || arguments.iter().any(|&a| overlap(a, slice)) {
                return Err(format!("`{name}` has scratch memory at {slice:?}"));
            }
            let token = self.fresh();
            self.write(slice, token, id)?;
        }
        let mut tokens = Vec::new();
        for &w in writes {
            let token = self.fresh();
            self.write(w, token, id)?;
            tokens.push(token);
        }
        Ok(tokens)
    }
}

fn overlap(a: Slice, b: Slice) -> bool {
    a.allocation == b.allocation && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}
