//! Requests for the same code: layers of a network ask for the same kernels again and again, on other arrays.
//!
//! A kernel knows its arrays as arguments alone, so requests are the same where what they compute says the same, names and notes aside: shapes are
//! those of parameters and roots. Nothing that code is made of lies outside of the computations that are compared.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module};
use rustc_hash::FxHashMap;

use crate::kernel::Request;
use crate::passes::deduplicate::{alike, key};

/// For each request the first one that asks for the same, itself if there is none.
pub(super) fn firsts(module: &Module, requests: &[Request]) -> Vec<usize> {
    let mut known: FxHashMap<Vec<u64>, Vec<usize>> = FxHashMap::default();
    let mut firsts = Vec::with_capacity(requests.len());
    for (place, &request) in requests.iter().enumerate() {
        let keys: Option<Vec<u64>> = computations(module, request).iter().map(|&c| key(module, c)).collect();
        let first = keys.map(|keys| {
            let others = known.entry(keys).or_default();
            let found = others.iter().copied().find(|&other| same(module, request, requests[other]));
            found.unwrap_or_else(|| {
                others.push(place);
                place
            })
        });
        firsts.push(first.unwrap_or(place));
    }
    firsts
}

/// What a request is made of.
fn computations(module: &Module, request: Request) -> Vec<ComputationId> {
    let called = |id: InstrId, keys: &[AttrKey]| {
        keys.iter().filter_map(|&k| module.instr(id).attrs.computation(k)).collect()
    };
    match request {
        Request::Fusion(id) | Request::Epilogue { fusion: id, .. } => called(id, &[AttrKey::Calls]),
        Request::Loop(id) => called(id, &[AttrKey::Condition, AttrKey::Body]),
        Request::Map(computation) => vec![computation],
    }
}

fn same(module: &Module, a: Request, b: Request) -> bool {
    let place = |id: InstrId| module.instructions(module.instr(id).parent()).position(|i| i == id);
    let kind = |id: InstrId| module.instr(id).attrs.fusion_kind();
    let one_kind = match (a, b) {
        (Request::Fusion(x), Request::Fusion(y)) => kind(x) == kind(y),
        (Request::Epilogue { hero: x, fusion: f }, Request::Epilogue { hero: y, fusion: g }) => {
            kind(f) == kind(g) && place(x) == place(y)
        }
        (Request::Map(_), Request::Map(_)) | (Request::Loop(_), Request::Loop(_)) => true,
        (Request::Fusion(_) | Request::Epilogue { .. } | Request::Map(_) | Request::Loop(_), _) => false,
    };
    let (x, y) = (computations(module, a), computations(module, b));
    one_kind && x.len() == y.len() && x.iter().zip(&y).all(|(&c, &d)| c == d || alike(module, c, d))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use crate::cpu::{Options, compile};
    use crate::runtime::executable::{Argument, Executable, LoadOptions, RunError, RunOptions};
    use crate::runtime::kernel_tests::parse;
    use crate::runtime::pool::Pool;

    fn program(text: &str) -> crate::program::Program {
        let module = parse(text);
        compile(&module, &Options::default()).unwrap().program
    }

    fn load(text: &str) -> Executable {
        let options = LoadOptions { pool: Arc::new(Pool::new(1)), memory_bytes: 1 << 30 };
        Executable::load(program(text), &options).unwrap()
    }

    #[test]
    fn layers_share_their_code() {
        // Two sorts keep the three chains apart; of these two do the same and one does something else.
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
            ran.map(|f| (i64::from_le_bytes(f.results[0].bytes().try_into().unwrap()), f.steps))
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
