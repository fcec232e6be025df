//! Deduplication of structurally identical requests: the layers of a network ask for the same kernels again
//! and again, on other arrays.
//!
//! A kernel knows its arrays as arguments alone, so requests are identical if their computations are
//! structurally equal, names and metadata aside: shapes are those of parameters and roots. Code depends on
//! nothing outside of the computations that are compared.

use std::hash::{Hash, Hasher};

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHasher};

use hlo_codegen::kernel::Request;
use hlo_opt::passes::cse::same_attributes;
use hlo_opt::passes::facts::is_elided;

/// For each request the first identical one, itself if there is none.
pub fn first_identical(module: &Module, requests: &[Request]) -> Vec<usize> {
    let mut known: FxHashMap<u64, Vec<(usize, Structure)>> = FxHashMap::default();
    let mut firsts = Vec::with_capacity(requests.len());
    for (index, &request) in requests.iter().enumerate() {
        let first = Structure::of(module, request).map(|structure| {
            let others = known.entry(structure.hash).or_default();
            let found = others.iter().find(|other| structure.same(module, &other.1)).map(|other| other.0);
            found.unwrap_or_else(|| {
                others.push((index, structure));
                index
            })
        });
        firsts.push(first.unwrap_or(index));
    }
    firsts
}

/// The structure of a request: the instructions that the roots of its computations need, operands first. So
/// their order in the text does not count.
struct Structure {
    /// The kind of request, the number of parameters of each computation, and the index of the hero.
    form: Vec<usize>,
    instructions: Vec<InstrId>,
    /// Indices of operands in `instructions`.
    operands: Vec<usize>,
    hash: u64,
}

impl Structure {
    /// `None` where a computation is not determined by its text.
    fn of(module: &Module, request: Request) -> Option<Self> {
        let called = |id: InstrId, keys: &[AttrKey]| -> Vec<ComputationId> {
            keys.iter().filter_map(|&k| module.instr(id).attrs.computation(k)).collect()
        };
        let (kind, computations) = match request {
            Request::Fusion(id) => {
                let kind = module.instr(id).attrs.fusion_kind();
                (
                    1 + kind.map_or(0, |k| 1 + usize::from(*k == hlo::attrs::FusionKind::Custom)),
                    called(id, &[AttrKey::Calls]),
                )
            }
            Request::Epilogue { fusion: id, .. } => (4, called(id, &[AttrKey::Calls])),
            Request::Loop(id) => (5, called(id, &[AttrKey::Condition, AttrKey::Body])),
            Request::Map(computation) => (6, vec![computation]),
        };
        let mut structure =
            Self { form: vec![kind], instructions: Vec::new(), operands: Vec::new(), hash: 0 };
        let mut indices: FxHashMap<InstrId, usize> = FxHashMap::default();
        let mut hasher = FxHasher::default();
        for c in computations {
            let computation = module.computation(c);
            if computation.execution_thread.is_some() {
                return None;
            }
            structure.form.push(computation.parameters().len());
            let parameters = computation.parameters().iter().flatten().map(|&p| (p, false));
            let mut pending: Vec<(InstrId, bool)> =
                [(module.root(c), false)].into_iter().chain(parameters).collect();
            while let Some((id, ready)) = pending.pop() {
                if indices.contains_key(&id) {
                    continue;
                }
                let instr = module.instr(id);
                if !ready {
                    pending.push((id, true));
                    pending.extend(instr.operands().iter().rev().map(|&o| (o, false)));
                    continue;
                }
                let flags = instr.opcode.flags();
                if flags.side_effect || flags.collective || is_elided(module, id) {
                    return None;
                }
                indices.insert(id, structure.instructions.len());
                structure.instructions.push(id);
                structure.operands.extend(instr.operands().iter().map(|o| indices[o]));
                (instr.opcode, &instr.shape, instr.operands().len()).hash(&mut hasher);
            }
        }
        if let Request::Epilogue { hero, .. } = request {
            structure.form.push(*indices.get(&hero)?);
        }
        (&structure.form, &structure.operands).hash(&mut hasher);
        structure.hash = hasher.finish();
        Some(structure)
    }

    fn same(&self, module: &Module, other: &Self) -> bool {
        let identical = |(&x, &y): (&InstrId, &InstrId)| {
            let (x, y) = (module.instr(x), module.instr(y));
            x.opcode == y.opcode
                && x.shape == y.shape
                && (x.opcode != Opcode::Parameter || x.parameter_number() == y.parameter_number())
                && same_attributes(&x.attrs, &y.attrs)
        };
        self.form == other.form
            && self.operands == other.operands
            && self.instructions.len() == other.instructions.len()
            && self.instructions.iter().zip(&other.instructions).all(identical)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use hlo_codegen::runtime::executable::{Argument, Executable, LoadOptions, RunError, RunOptions};
    use hlo_library_base::pool::Pool;

    use crate::kernel_tests::parse;
    use crate::{Options, compile};

    fn program(text: &str) -> hlo_codegen::program::Program {
        let module = parse(text);
        compile(&module, &Options::default()).unwrap().program
    }

    fn load(text: &str) -> Executable {
        let options = LoadOptions { memory_bytes: 1 << 30, ..LoadOptions::new(Arc::new(Pool::new(1))) };
        Executable::load(program(text), &options).unwrap()
    }

    #[test]
    fn layers_share_their_code() {
        // Two sorts keep the three chains apart; two of these do the same, and one does something else.
        let text = "HloModule m\n\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\n\
            ENTRY e {\n  p = f32[40]{0} parameter(0)\n  x1 = f32[40]{0} multiply(p, p)\n  y1 = f32[40]{0} add(x1, p)\n  \
            s1 = f32[40]{0} sort(y1), dimensions={0}, to_apply=less\n  x2 = f32[40]{0} multiply(s1, s1)\n  y2 = f32[40]{0} add(x2, s1)\n  \
            s2 = f32[40]{0} sort(y2), dimensions={0}, to_apply=less\n  x3 = f32[40]{0} subtract(s2, p)\n  ROOT r = f32[40]{0} multiply(x3, s2)\n}\n";
        let program = program(text);
        let symbols: Vec<&str> =
            program.kernels.iter().flat_map(|k| &k.phases).map(|p| p.symbol.as_str()).collect();
        let mut distinct = symbols.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((symbols.len(), distinct.len()), (3, 2), "{symbols:?}");
        let names: Vec<&str> = program.kernels.iter().map(|k| k.name.as_str()).collect();
        assert_eq!(names.iter().filter(|n| n.starts_with('y')).count(), 2, "each has its name: {names:?}");
    }

    #[test]
    fn loops_of_one_kernel_end_at_limits() {
        let text = "HloModule m\n\nc {\n  t = (s64[], s64[]) parameter(0)\n  i = s64[] get-tuple-element(t), index=0\n  \
            n = s64[] get-tuple-element(t), index=1\n  ROOT l = pred[] compare(i, n), direction=LT\n}\n\n\
            b {\n  t = (s64[], s64[]) parameter(0)\n  i = s64[] get-tuple-element(t), index=0\n  n = s64[] get-tuple-element(t), index=1\n  \
            sq = s64[] multiply(i, i)\n  odd = s64[] or(sq, i)\n  one = s64[] constant(1)\n  bit = s64[] and(odd, one)\n  step = s64[] or(bit, one)\n  \
            next = s64[] add(i, step)\n  ROOT r = (s64[], s64[]) tuple(next, n)\n}\n\n\
            ENTRY e {\n  i = s64[] parameter(0)\n  n = s64[] parameter(1)\n  t = (s64[], s64[]) tuple(i, n)\n  ROOT w = (s64[], s64[]) while(t), condition=c, body=b\n}\n";
        let executable = load(text);
        assert_eq!(executable.steps().iter().filter(|s| s.kind == "kernel").count(), 1);
        let run = |start: i64, end: i64, options: RunOptions<'_>| {
            let (start, end) = (start.to_le_bytes(), end.to_le_bytes());
            let ran = executable.run(&mut [Argument::Borrowed(&start), Argument::Borrowed(&end)], &options);
            ran.map(|f| (i64::from_le_bytes(f.block(0).bytes().try_into().unwrap()), f.steps))
        };
        let fuel = |fuel| RunOptions { fuel: Some(fuel), ..RunOptions::default() };
        let (end, steps) = run(0, 3_000_000, RunOptions::default()).unwrap();
        assert_eq!(end, 3_000_000);
        assert!(steps >= 3_000_000, "iterations are steps: {steps}");
        assert_eq!(run(0, 3_000_000, fuel(steps)).unwrap(), (end, steps), "in pieces");
        assert!(matches!(run(0, 3_000_000, fuel(steps - 1)), Err(RunError::OutOfFuel(_))));
        assert_eq!(run(7, 5, fuel(100)).unwrap().0, 7, "no iteration");
        let deadline = RunOptions {
            deadline: Some(Instant::now() + Duration::from_millis(20)),
            ..RunOptions::default()
        };
        assert!(matches!(run(0, i64::MAX, deadline), Err(RunError::TimedOut)));
    }
}
