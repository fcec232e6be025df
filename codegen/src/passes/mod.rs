//! Passes: rewritings of a module, and running them one after the other.
//!
//! **Invariants:** what a pass leaves verifies if what it was given did; a pass asks [`Fuel::take`] before each application, so
//! that a run can end after any number of them and the first bad one can be found by bisection; the instruction that takes
//! the place of another takes its name and span ([`replace`]), so that results and diagnostics lead back to the text.
//!
//! | pass | does |
//! |---|---|

pub mod edit;

use std::fmt;

use hlo::diag::Diagnostics;
use hlo::{InstrId, Module};

/// A rewriting of modules.
pub trait Pass: fmt::Debug + Send + Sync {
    /// What people call it, in the style of XLA: `algebraic-simplifier`.
    fn name(&self) -> &str;

    /// One sentence that says what it does.
    fn doc(&self) -> &str;

    /// Rewrites the module wherever it applies and `fuel` lasts. Returns how often it did.
    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64;
}

/// How many applications of passes are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuel {
    left: Option<u64>,
    taken: u64,
}

impl Fuel {
    /// Without an end.
    pub const UNLIMITED: Fuel = Fuel { left: None, taken: 0 };

    /// For `n` applications.
    pub fn new(n: u64) -> Fuel {
        Fuel { left: Some(n), taken: 0 }
    }

    /// Pays for one application. False: there is none left, the rewriting must not be done.
    #[must_use]
    pub fn take(&mut self) -> bool {
        match &mut self.left {
            Some(0) => return false,
            Some(n) => *n -= 1,
            None => {}
        }
        self.taken += 1;
        true
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == Some(0)
    }

    /// How many were paid for.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// What a pass did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRun {
    /// Its name.
    pub pass: String,
    /// How often it was applied.
    pub applications: u64,
}

/// What was wrong with the module that a pass left.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The pass.
    pub pass: String,
    /// What the verifier says.
    pub diagnostics: Diagnostics,
}

/// Passes in order.
#[derive(Debug, Default)]
pub struct Pipeline {
    passes: Vec<(Box<dyn Pass>, Option<u64>)>,
    verify: bool,
}

impl Pipeline {
    /// No passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// With another pass at the end, which is applied at most `fuel` times.
    #[must_use]
    pub fn then(mut self, pass: Box<dyn Pass>, fuel: Option<u64>) -> Self {
        self.passes.push((pass, fuel));
        self
    }

    /// With the verifier after every pass.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.verify = true;
        self
    }

    /// The passes.
    pub fn passes(&self) -> impl ExactSizeIterator<Item = &dyn Pass> {
        self.passes.iter().map(|(pass, _)| &**pass)
    }

    /// Runs all passes; `fuel` is for all of them together. Errors: the first pass whose module does not verify, if that is checked.
    pub fn run(&self, module: &mut Module, fuel: &mut Fuel) -> Result<Vec<PassRun>, Broken> {
        let mut ran = Vec::with_capacity(self.passes.len());
        for (pass, limit) in &self.passes {
            // A pass draws on its own fuel and on that of all.
            let limit = [*limit, fuel.left].into_iter().flatten().min();
            let mut own = limit.map_or(Fuel::UNLIMITED, Fuel::new);
            let applications = pass.run(module, &mut own);
            debug_assert_eq!(applications, own.taken(), "{} counts otherwise than its fuel", pass.name());
            fuel.left = fuel.left.map(|n| n - own.taken());
            fuel.taken += own.taken();
            ran.push(PassRun { pass: pass.name().to_owned(), applications });
            if self.verify {
                let diagnostics = hlo::verify::verify(module);
                if !diagnostics.is_empty() {
                    return Err(Broken { pass: pass.name().to_owned(), diagnostics });
                }
            }
        }
        Ok(ran)
    }
}

/// All passes, in the order of their names.
pub fn all() -> Vec<Box<dyn Pass>> {
    Vec::new()
}

/// The pass of a name.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    all().into_iter().find(|p| p.name() == name)
}

/// Puts `new` in the place of `old`, in every operand and as root, with its name and span. `old` is removed unless something
/// keeps it (a parameter, a side effect).
pub fn replace(module: &mut Module, old: InstrId, new: InstrId) {
    if old == new {
        return;
    }
    module.replace_all_uses(old, new);
    let (name, span) = (module.instr(old).name.clone(), module.instr(old).span);
    let opcode = module.instr(old).opcode;
    let kept = opcode == hlo::Opcode::Parameter || opcode.flags().side_effect;
    if kept {
        module.instr_mut(new).span = span;
        return;
    }
    module.remove(old);
    let new = module.instr_mut(new);
    (new.name, new.span) = (name, span);
}

/// Puts what `make` builds out of `old` in its place everywhere but in what was built: the new instruction takes name and span, and `old`
/// another name. Nothing happens if `make` gives `None`.
pub fn wrap(
    module: &mut Module,
    old: InstrId,
    make: impl FnOnce(&mut Module) -> Option<InstrId>,
) -> Option<InstrId> {
    let users = module.users(old).to_vec();
    let parent = module.instr(old).parent();
    let was_root = module.root(parent) == old;
    let new = make(module)?;
    for u in users {
        module.set_operand(u.user, u.operand as usize, new);
    }
    if was_root {
        module.set_root(parent, new);
    }
    let (name, span) = (module.instr(old).name.clone(), module.instr(old).span);
    let other = module.unique_name(&name);
    module.instr_mut(old).name = other;
    let new_instr = module.instr_mut(new);
    (new_instr.name, new_instr.span) = (name, span);
    Some(new)
}
