//! Seeded faults: passes that are wrong in a way in which compilers were.

use hlo_codegen::passes::Pass;

/// A wrong pass, and what it is modelled on.
#[derive(Debug)]
pub struct Fault {
    /// The pass; its name is that of the engine `faulty:NAME`.
    pub pass: Box<dyn Pass>,
    /// The issue, pull request or commit.
    pub source: &'static str,
}

impl Fault {
    /// The pass.
    pub fn pass(&self) -> &dyn Pass {
        &*self.pass
    }
}

/// All faults.
pub fn all() -> Vec<Fault> {
    Vec::new()
}

/// The pass of a fault.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    all().into_iter().find(|f| f.pass.name() == name).map(|f| f.pass)
}
