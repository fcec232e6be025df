//! Which instruction of the optimized module each launch of the launch list executes.
//!
//! XLA emits thunks in the order of the schedule, and a scheduled module's text is that order: both are
//! walked side by side.
//! **Invariant:** each thunk belongs to one instruction; a list with thunks left over, or without some that
//! instructions need, is refused.

use hlo::{AttrKey, ComputationId, InstrId, Module, Opcode, Shape};

use super::thunks::{KernelLaunch, Thunk};

/// The thunks of an instruction that launches kernels.
#[derive(Clone, Debug)]
pub(super) struct Kernels {
    /// In their order: a large sort launches several.
    pub(super) launches: Vec<KernelLaunch>,
}

/// That list and module do not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Misfit {
    /// Line of the launch list; 0 behind its end.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) message: String,
}

/// By instruction (by [`InstrId::index`]) the kernels that it launches. Errors: the first thunk that fits no
/// instruction.
pub(super) fn assign(module: &Module, thunks: &[Thunk]) -> Result<Vec<Option<Kernels>>, Misfit> {
    let mut walk = Walk { module, kernels: vec![None; module.instruction_capacity()], calls: 0 };
    walk.computation(module.entry(), thunks)?;
    Ok(walk.kernels)
}

struct Walk<'a> {
    module: &'a Module,
    kernels: Vec<Option<Kernels>>,
    /// Calls on the way to where the walk is.
    calls: usize,
}

/// The maximum number of calls one in another, which XLA inlines.
const MAX_CALLS: usize = 100;

impl Walk<'_> {
    fn computation(&mut self, computation: ComputationId, thunks: &[Thunk]) -> Result<(), Misfit> {
        let mut rest = thunks.iter().peekable();
        self.instructions(computation, &mut rest)?;
        match rest.next() {
            None => Ok(()),
            Some(left) => {
                let name = left.launch.as_ref().map(|l| format!(" of `{}`", l.kernel)).unwrap_or_default();
                let of = &self.module.computation(computation).name;
                Err(Misfit {
                    line: left.line,
                    message: format!("{}{name}: no instruction of `{of}` is left for it", left.kind),
                })
            }
        }
    }

    fn instructions<'t>(
        &mut self,
        computation: ComputationId,
        rest: &mut std::iter::Peekable<std::slice::Iter<'t, Thunk>>,
    ) -> Result<(), Misfit> {
        let module = self.module;
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            if executes_nothing(module, id) {
                continue;
            }
            if instr.opcode == Opcode::Call {
                self.calls += 1;
                if self.calls > MAX_CALLS {
                    let message = format!("`{}`: calls are nested more than {MAX_CALLS} deep", instr.name);
                    return Err(Misfit { line: 0, message });
                }
                if let Some(called) = instr.attrs.called_computations().first() {
                    self.instructions(*called, rest)?;
                }
                self.calls -= 1;
                continue;
            }
            let missing = |found: Option<&Thunk>| {
                let found = found.map_or("the list ends".to_owned(), |t| format!("there is {}", t.kind));
                let (name, opcode) = (&instr.name, instr.opcode.name());
                format!("`{name}` ({opcode}) needs a thunk: {found}")
            };
            let Some(&thunk) = rest.peek() else {
                return Err(Misfit { line: 0, message: missing(None) });
            };
            let takes = |kind: &str| {
                (thunk.kind == kind)
                    .then_some(())
                    .ok_or_else(|| Misfit { line: thunk.line, message: missing(Some(thunk)) })
            };
            match instr.opcode {
                Opcode::While => {
                    takes("kWhile")?;
                    rest.next();
                    for (key, section) in [(AttrKey::Condition, "condition"), (AttrKey::Body, "body")] {
                        let called = instr.attrs.computation(key);
                        if let Some(called) = called {
                            self.section(thunk, called, section)?;
                        }
                    }
                }
                Opcode::Conditional => {
                    takes("kConditional")?;
                    rest.next();
                    // By order, not by name: XLA writes `false_branch:` above the thunks of the computation
                    // that runs if the predicate is true.
                    for (i, called) in instr.attrs.called_computations().into_iter().enumerate() {
                        let section = thunk.sections.get(i).map_or(&[][..], |(_, thunks)| thunks);
                        self.part(thunk, called, section)?;
                    }
                }
                Opcode::AsyncStart => {
                    rest.next();
                    let inner =
                        thunk.sections.iter().find(|(name, _)| name.is_empty()).map(|(_, inner)| &inner[..]);
                    let called = instr.attrs.called_computations();
                    // Of arrays without elements XLA writes thunks for what executes nothing.
                    if let (Some(inner), Some(&called)) = (inner, called.first())
                        && !is_empty(&instr.shape)
                    {
                        self.computation(called, inner)?;
                    }
                }
                _single => self.single(id, rest),
            }
        }
        Ok(())
    }

    fn section(&mut self, thunk: &Thunk, called: ComputationId, name: &str) -> Result<(), Misfit> {
        let section = thunk.sections.iter().find(|(section, _)| section == name);
        self.part(thunk, called, section.map_or(&[], |(_, thunks)| thunks))
    }

    /// A computation with its own thunks, which belong to `thunk`.
    fn part(&mut self, thunk: &Thunk, called: ComputationId, thunks: &[Thunk]) -> Result<(), Misfit> {
        self.computation(called, thunks).map_err(|misfit| match misfit.line {
            0 => Misfit { line: thunk.line, ..misfit },
            _ => misfit,
        })
    }

    /// An instruction without computations that the host executes: its kernels, a copy, a call to a library.
    fn single<'t>(&mut self, id: InstrId, rest: &mut std::iter::Peekable<std::slice::Iter<'t, Thunk>>) {
        let mut launches: Vec<KernelLaunch> = Vec::new();
        // A sort copies what it sorts to where the result is, then works there, in as many launches as it
        // needs.
        if sorts(self.module, id) {
            while rest.next_if(|t| t.kind == "kCopy").is_some() {}
        }
        while rest.next_if(|t| matches!(&*t.kind, "kMemset32BitValue" | "kMemzero" | "kMemset")).is_some() {}
        while let Some(thunk) = rest.next_if(|t| match (&t.launch, launches.first()) {
            (_, None) => true,
            (Some(next), Some(first)) => sorts(self.module, id) && continues(&first.kernel, &next.kernel),
            (None, Some(_)) => false,
        }) {
            match &thunk.launch {
                Some(launch) => launches.push(launch.clone()),
                None => return,
            }
        }
        if !launches.is_empty() {
            self.kernels[id.index()] = Some(Kernels { launches });
        }
    }
}

/// Whether a kernel is a later launch of the same sort: `sort_6_1__3` after `sort_6_1`.
fn continues(first: &str, next: &str) -> bool {
    let number = next.strip_prefix(first).and_then(|rest| rest.strip_prefix("__"));
    number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether an instruction is a sort, or a fusion with one.
pub(super) fn sorts(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match (instr.opcode, instr.attrs.computation(AttrKey::Calls)) {
        (Opcode::Sort, _) => true,
        (Opcode::Fusion, Some(fused)) => {
            module.instructions(fused).any(|id| module.instr(id).opcode == Opcode::Sort)
        }
        (_, _) => false,
    }
}

/// Whether XLA:GPU has no thunk for an instruction: it gives other names to what is there, or has no elements
/// (of which copies, asynchronous computations and collectives have one).
fn executes_nothing(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let names_only = matches!(
        instr.opcode,
        Opcode::Parameter
            | Opcode::Constant
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::OptBarrier
            | Opcode::AfterAll
            | Opcode::AddDependency
            | Opcode::Domain
    );
    let works = matches!(
        instr.opcode,
        Opcode::While
            | Opcode::Conditional
            | Opcode::Call
            | Opcode::CustomCall
            | Opcode::Copy
            | Opcode::AsyncStart
            | Opcode::AsyncDone
    ) || instr.opcode.flags().collective;
    names_only || !works && is_empty(&instr.shape)
}

/// Whether a value has no elements.
fn is_empty(shape: &Shape) -> bool {
    shape.leaves().into_iter().all(|l| l.as_array().is_some_and(|a| a.elements() == 0))
}

#[cfg(test)]
mod tests {
    use super::super::thunks::parse;
    use super::*;

    const PROGRAM: &str = "\
HloModule m, is_scheduled=true

%f (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p)
}

%body (s: (s32[], f32[4])) -> (s32[], f32[4]) {
  %s = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4]{0} get-tuple-element(%s), index=1
  %k = f32[4]{0} fusion(%x), kind=kLoop, calls=%f
  ROOT %t = (s32[], f32[4]{0}) tuple(%i, %k)
}

%condition (s.1: (s32[], f32[4])) -> pred[] {
  %s.1 = (s32[], f32[4]{0}) parameter(0)
  ROOT %c = pred[] constant(false)
}

ENTRY %main (a: s32[], b: f32[4]) -> (s32[], f32[4]) {
  %a = s32[] parameter(0)
  %b = f32[4]{0} parameter(1)
  %k.1 = f32[4]{0} fusion(%b), kind=kLoop, calls=%f
  %t.1 = (s32[], f32[4]{0}) tuple(%a, %k.1)
  ROOT %w = (s32[], f32[4]{0}) while(%t.1), condition=%condition, body=%body
}
";

    const LIST: &str = "\
001: kCustomKernel [source | next=002 (1)] k_1 grid: [1, 1, 1] threads: [4, 1, 1]  shared_memory: 0 bytes
002: kWhile [prev=001 (1) | sink]
condition:
    No thunks.  body:
    003: kCustomKernel [source | sink] k grid: [1, 1, 1] threads: [4, 1, 1]  shared_memory: 0 bytes
";

    fn assigned(list: &str) -> Result<Vec<(String, String)>, Misfit> {
        let module = hlo_parser::parse_module(PROGRAM, &hlo_parser::ParseOptions::default()).module.unwrap();
        let kernels = assign(&module, &parse(list).unwrap())?;
        let all = module.computations().iter().flat_map(|&c| module.instructions(c));
        let named = all.filter_map(|id| {
            let kernels = kernels[id.index()].as_ref()?;
            Some((module.instr(id).name.to_string(), kernels.launches[0].kernel.clone()))
        });
        Ok(named.collect())
    }

    #[test]
    fn launches_belong_to_instructions_in_order() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(assigned(LIST).unwrap(), [pair("k", "k"), pair("k.1", "k_1")]);
    }

    #[test]
    fn an_asynchronous_computation_without_elements_has_its_thunks() {
        const ASYNC: &str = "\
HloModule m, is_scheduled=true

%exchange (p: u16[0]) -> u16[0] {
  %p = u16[0]{0} parameter(0)
  ROOT %a = u16[0]{0} all-to-all(%p), dimensions={0}
}

%f (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%q)
}

ENTRY %main (x: u16[0], y: f32[4]) -> f32[4] {
  %x = u16[0]{0} parameter(0)
  %start = ((u16[0]{0}), u16[0]{0}) async-start(%x), calls=%exchange
  %y = f32[4]{0} parameter(1)
  ROOT %k = f32[4]{0} fusion(%y), kind=kLoop, calls=%f
  %done = u16[0]{0} async-done(%start)
}
";
        const THUNKS: &str = "\
001: kAsyncStart   [source       | sink        ] stream=communication_stream[0], async_id=1
    002: kCopy [source | sink] kCopy
003: kCustomKernel [source | sink] k grid: [1, 1, 1] threads: [4, 1, 1]  shared_memory: 0 bytes
004: kAsyncDone    [source       | sink        ] async_id=1
";
        let module = hlo_parser::parse_module(ASYNC, &hlo_parser::ParseOptions::default()).module.unwrap();
        let kernels = assign(&module, &parse(THUNKS).unwrap()).unwrap();
        let launched = kernels.iter().flatten().map(|k| &*k.launches[0].kernel).collect::<Vec<_>>();
        assert_eq!(launched, ["k"]);
    }

    /// On one device a collective is a copy, and XLA writes it even if there is nothing to copy.
    #[test]
    fn collectives_of_empty_arrays_have_thunks() {
        const EMPTY: &str = "\
HloModule m, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (x: f32[0,4]) -> (f32[0,4], f32[0,4]) {
  %x = f32[0,4]{1,0} parameter(0)
  %b = f32[0,4]{1,0} collective-broadcast(%x), replica_groups={{0}}
  %r = f32[0,4]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0}}, use_global_device_ids=true, to_apply=%add
  %n = f32[0,4]{1,0} negate(%r)
  ROOT %t = (f32[0,4]{1,0}, f32[0,4]{1,0}) tuple(%b, %n)
}
";
        const THUNKS: &str = "\
001: kCopy         [source       | next=002 (1)] kCopy
002: kCopy         [prev=001 (1) | sink        ] kCopy
";
        let module = hlo_parser::parse_module(EMPTY, &hlo_parser::ParseOptions::default()).module.unwrap();
        assert!(assign(&module, &parse(THUNKS).unwrap()).is_ok());
        let short = THUNKS.lines().next().unwrap();
        assert_eq!(
            assign(&module, &parse(short).unwrap()).unwrap_err().message,
            "`r` (all-reduce) needs a thunk: the list ends"
        );
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let lines: Vec<&str> = LIST.lines().collect();
        let list = |which: &[usize]| which.iter().map(|&i| format!("{}\n", lines[i])).collect::<String>();
        for (which, line, part) in [
            (&[1, 2, 3, 4][..], 0, "`w` (while) needs a thunk: the list ends"),
            (&[0][..], 0, "`w` (while) needs a thunk: the list ends"),
            (&[0, 1, 2, 3][..], 2, "`k` (fusion) needs a thunk: the list ends"),
            (&[0, 0, 1, 2, 3, 4][..], 2, "`w` (while) needs a thunk: there is kCustomKernel"),
            (&[0, 1, 2, 3, 4, 0][..], 6, "kCustomKernel of `k_1`: no instruction of `main` is left for it"),
        ] {
            let misfit = assigned(&list(which)).unwrap_err();
            assert_eq!((misfit.line, &*misfit.message), (line, part), "{which:?}");
        }
    }
}
