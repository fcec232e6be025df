//! Compiled programs step by step: what their steps leave is seen, judged, and replaced.

use std::sync::{Arc, Mutex};

use hlo::{AttrKey, Diagnostic, Module, Opcode};
use hlo_engines::engine::{self, Engine, Executable, Form, Inputs, InterpreterEngine, Outcome, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_generate::generate::inputs;
use hlo_interp::observe::{Call, Site};
use hlo_interp::{Devices, Flow, Observer, Tensor, Value};
use hlo_triage::differential::{Difference, Kind, Settings, Subject, differ};
use hlo_triage::isolate::{self, Origin};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, hlo, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    if engine::by_name("cpu").is_err() {
        return Vec::new();
    }
    vec![
        function("steps/what is seen is what the interpreter computes", seen),
        function("steps/every step is judged by itself", judged),
        function("steps/a wrong step is found", found),
        function("steps/isolation names them", isolated),
        function("steps/a wrong step is the emission's fault or not", origins),
    ]
}

/// A loop that amplifies what rounding leaves, around a branch; a nested loop whose state exchanges several
/// arrays; calls.
const PROGRAM: &str = "HloModule steps

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

chaos {
  a = f32[40,40] parameter(0)
  k = f32[] constant(60)
  kb = f32[40,40] broadcast(k), dimensions={}
  d = f32[40,40] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = f32[40,40] multiply(d, kb)
  ROOT s = f32[40,40] sine(m)
}

quiet {
  a = f32[40,40] parameter(0)
  ROOT c = f32[40,40] cosine(a)
}

inner_condition {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

inner_body {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40,40] get-tuple-element(s), index=1
  y = f32[40,40] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = f32[40,40] call(x), to_apply=chaos
  t = f32[40,40] transpose(y), dimensions={1,0}
  ROOT r = (s32[], f32[40,40], f32[40,40]) tuple(j, t, z)
}

condition {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40,40] get-tuple-element(s), index=1
  y = f32[40,40] get-tuple-element(s), index=2
  one = s32[] constant(1)
  two = s32[] constant(2)
  j = s32[] add(i, one)
  odd = s32[] remainder(i, two)
  z = f32[40,40] conditional(odd, x, y), branch_computations={chaos, quiet}
  zero = s32[] constant(0)
  start = (s32[], f32[40,40], f32[40,40]) tuple(zero, z, x)
  w = (s32[], f32[40,40], f32[40,40]) while(start), condition=inner_condition, body=inner_body
  p = f32[40,40] get-tuple-element(w), index=1
  q = f32[40,40] get-tuple-element(w), index=2
  ROOT r = (s32[], f32[40,40], f32[40,40]) tuple(j, q, p)
}

ENTRY e {
  a = f32[40,40] parameter(0)
  b = f32[40,40] parameter(1)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  s = (s32[], f32[40,40], f32[40,40]) tuple(zero, a, b)
  w = (s32[], f32[40,40], f32[40,40]) while(s), condition=condition, body=body
  x = f32[40,40] get-tuple-element(w), index=1
  y = f32[40,40] get-tuple-element(w), index=2
  n = f32[40] reduce(x, none), dimensions={0}, to_apply=add
  ROOT r = (f32[40], f32[40,40]) tuple(n, y)
}
";

/// A loop whose result nothing reads, in a loop.
const UNREAD: &str = "HloModule unread

never {
  x = f32[] parameter(0)
  ROOT c = pred[] convert(x)
}

same {
  ROOT x = f32[] parameter(0)
}

condition {
  s = (f32[], f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=2
  one = f32[] constant(1)
  ROOT c = pred[] compare(x, one), direction=LT
}

body {
  s = (f32[], f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(s), index=0
  zero = f32[] constant(0)
  b = f32[] get-tuple-element(s), index=1
  w = f32[] while(zero), condition=never, body=same
  t = (f32[], f32[]) tuple(b, w)
  c = f32[] get-tuple-element(t), index=0
  one = f32[] constant(1)
  ROOT r = (f32[], f32[], f32[]) tuple(a, c, one)
}

ENTRY e {
  p = f32[] parameter(0)
  zero = f32[] constant(0)
  s = (f32[], f32[], f32[]) tuple(p, p, zero)
  ROOT w = (f32[], f32[], f32[]) while(s), condition=condition, body=body
}
";

/// A branch whose second result nothing reads; its memory is another's by then.
const UNREAD_PART: &str = "HloModule unread_part

order {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=LT
}

zeros {
  s = (f32[1], f32[3]) parameter(0)
  x = f32[1] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  n = s32[2,3] broadcast(zero), dimensions={}
  ROOT r = (s32[2,3], f32[1]) tuple(n, x)
}

ones {
  s = (f32[1], f32[3]) parameter(0)
  x = f32[1] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[2,3] broadcast(one), dimensions={}
  ROOT r = (s32[2,3], f32[1]) tuple(n, x)
}

ENTRY e {
  p = s32[] parameter(0)
  x = f32[1] parameter(1)
  y = f32[3] parameter(2)
  z = f32[1,3] parameter(3)
  sorted = f32[1] sort(x), dimensions={0}, to_apply=order
  n = f32[1,3] negate(z)
  s = (f32[1], f32[3]) tuple(sorted, y)
  c = (s32[2,3], f32[1]) conditional(p, s, s), branch_computations={zeros, ones}
  first = s32[2,3] get-tuple-element(c), index=0
  part = f32[1,1] dynamic-slice(n, p, p), dynamic_slice_sizes={1,1}
  ROOT r = (s32[2,3], f32[1,1]) tuple(first, part)
}
";

const LEVELS: [&str; 2] = ["cpu:O0", "cpu:O2"];

fn module(text: &str) -> Module {
    let (module, found) = parse_text(text);
    assert!(!found.has_errors(), "{found:?}");
    module.unwrap()
}

/// Name, calls, execution, value.
type Seen = (String, Vec<Call>, u64, Value);

/// Keeps what it is shown of some instructions.
#[derive(Debug)]
struct Kept {
    wanted: Vec<bool>,
    all: Mutex<Vec<Seen>>,
}

impl Observer for Kept {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if self.wanted[site.id.index()] {
            let one = (site.instr().name.to_string(), site.calls().collect(), site.execution, result.clone());
            self.all.lock().unwrap().push(one);
        }
        Flow::Continue
    }
}

/// The steps of a compiled program are those of the interpreter on the lowered one: the same executions in
/// the same order, with nearly the same values.
fn seen() {
    // Four iterations of three, with at least two steps each; an iteration, and the conditions.
    seen_of(PROGRAM, 4 * 3 * 2, false);
    seen_of(UNREAD, 2, true);
    seen_of(UNREAD_PART, 2, true);
}

/// `exact`: with the same values.
fn seen_of(text: &str, least: usize, exact: bool) {
    let module = module(text);
    let arguments = inputs(&module, 1);
    let options = RunOptions { devices: Devices::ONE, ..RunOptions::default() };
    for level in LEVELS {
        let engine = engine::by_name(level).unwrap();
        let executable = engine.compile(&module).unwrap();
        let watched = executable.watched().unwrap();
        let form = watched.form().unwrap();
        let wanted: Vec<bool> = form.origins(form.module).iter().map(Option::is_some).collect();
        let run = |executable: &dyn Executable| {
            let kept = Arc::new(Kept { wanted: wanted.clone(), all: Mutex::default() });
            let given = Inputs::new(form.module, &arguments).unwrap();
            let outcome = executable.run(given, &options, Some(kept.clone()));
            assert!(outcome.into_results().is_ok());
            std::mem::take(&mut *kept.all.lock().unwrap())
        };
        let interpreted = InterpreterEngine.compile(form.module).unwrap();
        let (here, there) = (run(&*watched), run(&*interpreted));
        assert!(here.len() > least || level != "cpu:O0", "{level}: {} executions", here.len());
        assert_eq!(here.len(), there.len(), "{level}");
        for (a, b) in here.iter().zip(&there) {
            assert_eq!((&a.0, &a.1, a.2), (&b.0, &b.1, b.2), "{level}");
            let shapes = |v: &Value| v.arrays().iter().map(|t| t.dims().to_vec()).collect::<Vec<_>>();
            assert_eq!(shapes(&a.3), shapes(&b.3), "{level}: {}", a.0);
            let bits = |v: &Value| v.arrays().iter().map(|t| t.buffer().clone()).collect::<Vec<_>>();
            assert!(!exact || bits(&a.3) == bits(&b.3), "{level}: {} is {:?}, not {:?}", a.0, a.3, b.3);
        }
    }
}

fn difference(engine: &dyn Engine) -> Difference {
    let module = module(PROGRAM);
    let arguments = inputs(&module, 1);
    let run = RunOptions { devices: Devices::ONE, ..RunOptions::default() };
    let settings = Settings { run, ..Settings::default() };
    differ(&InterpreterEngine, engine, &Subject::new(&module, &arguments), &settings)
}

/// What the whole program leaves open its steps decide.
fn judged() {
    for level in LEVELS {
        let found = difference(&*engine::by_name(level).unwrap());
        assert_eq!(found.kind, Kind::Explained, "{level}: {found:?}");
        assert!(
            found.replayed() && found.tally.explained > 1000 && found.tally.undecided == 0,
            "{level}: {found:?}"
        );
    }
}

/// A compiler whose every sine is slightly too large where it is watched, as if its code were wrong.
struct Wrong(Arc<dyn Engine>, Option<Arc<dyn Engine>>);

impl Engine for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn evaluated(&self) -> Option<Arc<dyn Engine>> {
        self.1.clone()
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        self.0.supports(module, devices)
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(WrongExecutable(self.0.compile(module)?)))
    }
}

struct WrongExecutable<'m>(Box<dyn Executable + 'm>);

impl Executable for WrongExecutable<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        let observer = observer.map(|inner| Arc::new(Larger(inner)) as Arc<dyn Observer>);
        self.0.run(inputs, options, observer)
    }

    fn form(&self) -> Option<Form<'_>> {
        self.0.form()
    }

    fn watched(&self) -> Option<Box<dyn Executable + '_>> {
        self.0.watched().map(|w| Box::new(WrongExecutable(w)) as Box<dyn Executable + '_>)
    }
}

/// Shows another observer sines that are larger by 2^-8.
#[derive(Debug)]
struct Larger(Arc<dyn Observer>);

impl Observer for Larger {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let computes = |module: &Module| {
            let called = module.instr(site.id).attrs.computation(AttrKey::Calls);
            let root = called.map_or(site.id, |c| module.root(c));
            module.instr(root).opcode == Opcode::Sine
        };
        if !computes(site.module) {
            return self.0.leave(site, result);
        }
        let array = result.expect_array();
        let hlo::Buffer::F32(numbers) = array.buffer() else { panic!("{result:?}") };
        let larger = numbers.iter().map(|x| x * (1.0 + 2f32.powi(-8))).collect();
        self.0.leave(site, &Tensor::new(array.dims(), hlo::Buffer::F32(larger)).into())
    }
}

/// Errors far below what the program amplifies rounding to are seen at the step that makes them.
fn found() {
    for level in LEVELS {
        let found = difference(&Wrong(engine::by_name(level).unwrap(), None));
        let blamed = found.blamed.map(|kind| kind.opcode);
        assert_eq!((found.kind, blamed), (Kind::Wrong, Some(Opcode::Sine)), "{level}: {found:?}");
    }
}

/// A step that is right where its kernel is evaluated was emitted wrongly; one that is wrong there too was
/// lowered so.
fn origins() {
    let module = module(PROGRAM);
    let arguments = inputs(&module, 1);
    let run = RunOptions { devices: Devices::ONE, ..RunOptions::default() };
    let settings = Settings { run, ..Settings::default() };
    let options = isolate::Options { settings, only: vec!["kb".to_owned()], ..isolate::Options::default() };
    let origin = |engine: &dyn Engine| {
        let subject = Subject::new(&module, &arguments);
        isolate::isolate(&subject, engine, &options, &mut |_, _| {}).unwrap().origin
    };
    let cpu = || engine::by_name("cpu:O0").unwrap();
    let evaluated = cpu().evaluated().unwrap();
    assert_eq!(evaluated.name(), "cpu:scalar+O0");
    assert!(evaluated.evaluated().is_none());
    assert_eq!(origin(&Wrong(cpu(), Some(evaluated.clone()))), Some(Origin::Emission));
    let both = Arc::new(Wrong(evaluated, None));
    assert_eq!(origin(&Wrong(cpu(), Some(both))), Some(Origin::Lowering));
    assert_eq!(origin(&Wrong(cpu(), None)), None);
    assert_eq!(origin(&*cpu()), None);
}

/// A program that amplifies rounding: what its instructions and its steps do is right, so nothing diverges.
fn isolated() {
    let d = Dir::new();
    let o = hlo(&["isolate", &d.file("steps.hlo", PROGRAM), "--platform", "cpu"]);
    ends(&o, 0);
    let text = out(&o);
    let line = text.lines().find(|l| l.starts_with("  steps    cpu: ")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains(" executions of its steps compared") && line.contains(" 0 wrong, 0 undecided"),
        "{text}"
    );
}
