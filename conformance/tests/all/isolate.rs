//! Replay in place and instructions alone, against engines that are wrong at a known instruction: the
//! interpreter after passes that spoil one instruction, in one iteration, in a fusion, on one device, or only
//! beside another.

use hlo::attrs::Direction;
use hlo::builder::ComputationBuilder;
use hlo::{ArrayLiteral, AttrKey, AttrValue, Buffer, ComputationId, InstrId, Literal, Module, Opcode};
use hlo_engines::engine::passes::PassesEngine;
use hlo_engines::engine::{Allowances, Engine, InterpreterEngine, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_execution::verdict::Class;
use hlo_interp::Devices;
use hlo_opt::passes::{Fuel, Pass, Pipeline, wrap};
use hlo_triage::differential::{Settings, Subject, differ};
use hlo_triage::isolate::{Blame, Found, Options, Status, blame, isolate};
use hlo_triage::policy::Policy;
use hlo_triage::replay::{How, Replay, replay};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("isolate/a subtraction in an iteration of a loop", in_an_iteration),
        function("isolate/a subtraction in a fusion", in_a_fusion),
        function("isolate/a subtraction on one device", on_a_device),
        function("isolate/wrong only beside another", only_in_place),
        function("isolate/nothing diverges", nothing),
        function("isolate/operands in another order", operands),
        function("isolate/one iteration less", iterations),
        function("isolate/a result that no instruction shows", result),
        function("isolate/NaNs and zeros", nans_and_zeros),
        function("isolate/more values than memory", lockstep),
        function("isolate/every kind of instruction alone", alone_kinds),
        function("isolate/the command, its exit codes and its JSON", command),
        function("isolate/findings on disk", artifacts),
        function("isolate/the page is whole, escaped and by itself", page),
        function("isolate/seeded faults are blamed on their opcodes", faults),
        function("isolate/a page of thousands of instructions is bounded", large_page),
    ]
}

/// A wrong pass made of a closure that spoils one instruction.
struct Wrong {
    name: &'static str,
    /// Only where there is this one too.
    beside: &'static str,
    spoil: fn(&mut Module, InstrId),
}

impl std::fmt::Debug for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Pass for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn doc(&self) -> &str {
        "Spoils an instruction."
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        match named(module, self.name) {
            Some(id) if named(module, self.beside).is_some() && fuel.take() => {
                (self.spoil)(module, id);
                1
            }
            _ => 0,
        }
    }
}

fn named(module: &Module, name: &str) -> Option<InstrId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|&id| &*module.instr(id).name == name && module.instr(id).opcode != Opcode::Parameter).last()
}

fn wrong(name: &'static str, spoil: fn(&mut Module, InstrId)) -> PassesEngine {
    wrong_beside(name, name, spoil)
}

fn wrong_beside(name: &'static str, beside: &'static str, spoil: fn(&mut Module, InstrId)) -> PassesEngine {
    let pipeline = Pipeline::new().then(Box::new(Wrong { name, beside, spoil }), None).verified();
    PassesEngine::new("wrong".into(), pipeline, Allowances::STRICT)
}

fn to_add(module: &mut Module, id: InstrId) {
    module.instr_mut(id).opcode = Opcode::Add;
}

/// The sum where `this` equals `number`, the difference elsewhere.
fn to_add_where(
    module: &mut Module,
    id: InstrId,
    number: i32,
    this: impl FnOnce(&mut ComputationBuilder<'_>) -> InstrId,
) {
    let parent = module.instr(id).parent();
    let before = (module.computation(parent).len(), module.root(parent));
    let (a, b) = (module.instr(id).operands()[0], module.instr(id).operands()[1]);
    wrap(module, id, |module| {
        let mut build = ComputationBuilder::resume(module, parent);
        let this = this(&mut build);
        let number = build.constant(Literal::scalar(number));
        let number = match build.shape(this).element_type() {
            Some(ty) => build.convert(number, ty).ok()?,
            None => number,
        };
        let is = build.compare(Direction::Eq, this, number).ok()?;
        let sum = build.binary(Opcode::Add, a, b).ok()?;
        let dims = build.shape(sum).expect_array().dims.to_vec();
        let is = build.broadcast(is, &dims, &[]).ok()?;
        build.select(is, sum, id).ok()
    });
    in_order(module, parent, before, id);
}

/// Moves what was appended to a computation of `before` instructions to behind `id`, and makes `root` the
/// root again.
fn in_order(module: &mut Module, parent: ComputationId, (before, root): (usize, InstrId), id: InstrId) {
    module.set_root(parent, root);
    let made: Vec<InstrId> = module.instructions(parent).skip(before).collect();
    let mut last = id;
    for new in made {
        module.move_after(new, Some(last));
        last = new;
    }
}

fn floats(values: &[f32]) -> ArrayLiteral {
    ArrayLiteral::new([values.len() as i64].into_iter().collect(), Buffer::F32(values.to_vec())).unwrap()
}

fn module(text: &str) -> Module {
    let (module, found) = parse_text(text);
    assert!(!found.has_errors(), "{:?}", found.iter().map(|d| d.message.clone()).collect::<Vec<_>>());
    let module = module.unwrap();
    assert!(!hlo::verify::verify(&module).has_errors());
    module
}

fn settings(devices: i64) -> Settings {
    let run = RunOptions { devices: Devices::new(devices, 1).unwrap(), ..RunOptions::default() };
    Settings { run, ..Settings::default() }
}

fn replayed(engine: &dyn Engine, subject: &Subject<'_>, settings: &Settings) -> Replay {
    let executable = engine.compile(subject.module).map_err(|o| format!("{o:?}")).unwrap();
    replay(subject, &*executable, engine.allowances(), settings).map_err(|o| format!("{o:?}")).unwrap()
}

fn blamed(engine: &dyn Engine, subject: &Subject<'_>, settings: &Settings) -> Blame {
    let found = blame(subject, engine, settings).expect("somebody is to blame");
    let whole =
        isolate(subject, engine, &Options { settings: *settings, ..Options::default() }, &mut |_, _| {});
    let whole = whole.map_err(|o| format!("{o:?}")).unwrap();
    assert_eq!(whole.blame.as_ref(), Some(&found), "the library and the command agree");
    assert!(whole.diverges());
    found
}

const LOOP: &str = "HloModule loop

condition {
  p = (f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=1
  n = s32[] constant(5)
  ROOT more = pred[] compare(i, n), direction=LT
}

body {
  p = (f32[4], s32[]) parameter(0)
  x = f32[4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  half = f32[] constant(0.5)
  halves = f32[4] broadcast(half), dimensions={}
  less = f32[4] subtract(x, halves)
  twice = f32[4] multiply(less, less)
  next = s32[] add(i, one)
  ROOT r = (f32[4], s32[]) tuple(twice, next)
}

ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (f32[4], s32[]) tuple(x, zero)
  loop = (f32[4], s32[]) while(init), condition=condition, body=body
  ROOT y = f32[4] get-tuple-element(loop), index=0
}
";

fn in_an_iteration() {
    let m = module(LOOP);
    let inputs = [vec![floats(&[0.25, 0.5, 0.75, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let engine = wrong_beside("less", "i", |m, id| {
        let i = named(m, "i").unwrap();
        to_add_where(m, id, 2, |_| i);
    });
    let found = blamed(&engine, &subject, &settings(1));
    assert_eq!((found.location.opcode, &*found.location.name), (Opcode::Subtract, "less"));
    assert_eq!((found.location.iteration, found.location.execution, found.location.device), (Some(2), 2, 0));
    assert_eq!(found.location.describe_calls(), "loop[2]");
    assert_eq!((found.found, found.class), (Found::OnlyInPlace, Class::Wrong), "alone there is no loop");
    let replay = replayed(&engine, &subject, &settings(1));
    assert_eq!((replay.wrong, replay.undecided), (1, 0), "what follows from it is no divergence");
    assert_eq!(replay.divergences[0].how, How::Value);
    let worst = &replay.divergences[0].arrays[0].1.worst[0];
    assert_eq!(worst.error, Some(1.0), "the difference of a - 0.5 and a + 0.5");

    let always = wrong("less", to_add);
    let found = blamed(&always, &subject, &settings(1));
    assert_eq!((found.location.execution, found.found), (0, Found::Alone));
    assert_eq!(replayed(&always, &subject, &settings(1)).wrong, 5);
}

const FUSION: &str = "HloModule fused

inner {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  s = f32[4] subtract(a, b)
  ROOT n = f32[4] negate(s)
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  f = f32[4] fusion(x, y), kind=kLoop, calls=inner
  ROOT e = f32[4] abs(f)
}
";

fn in_a_fusion() {
    let m = module(FUSION);
    let inputs = [vec![floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[1.0, 1.0, 1.0, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let found = blamed(&wrong("s", to_add), &subject, &settings(1));
    assert_eq!((&*found.location.name, found.found), ("s", Found::Alone));
    assert_eq!(found.location.describe_calls(), "f");
    // The fusion is run alone as well, with what is in it.
    let options = Options { settings: settings(1), ..Options::default() };
    let all = isolate(&subject, &wrong("s", to_add), &options, &mut |_, _| {}).map_err(|_| ()).unwrap();
    let status = |name: &str| all.rows.iter().find(|r| &*r.name == name).unwrap().alone.name();
    assert_eq!(
        ["f", "s", "n", "e", "x"].map(status),
        ["FAILURE", "FAILURE", "SUCCESS", "SUCCESS", "SKIPPED"]
    );
}

fn operands() {
    let m = module(FUSION);
    let inputs = [vec![floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[1.0, 1.0, 1.0, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let swapped = wrong("f", |m, id| {
        let [a, b] = m.instr(id).operands() else { unreachable!() };
        let (a, b) = (*a, *b);
        m.set_operands(id, &[b, a]);
    });
    let found = blame(&subject, &swapped, &settings(1)).unwrap();
    assert_eq!((&*found.location.name, found.how), ("f", How::Operands));
}

fn on_a_device() {
    let m = module(
        "HloModule m, replica_count=3

ENTRY main {
  x = f32[4] parameter(0)
  id = u32[] replica-id()
  f = f32[] convert(id)
  b = f32[4] broadcast(f), dimensions={}
  s = f32[4] subtract(x, b)
  ROOT g = f32[12] all-gather(s), dimensions={0}, replica_groups={{0,1,2}}
}
",
    );
    let inputs = vec![vec![floats(&[1.0, 2.0, 3.0, 4.0])]; 3];
    let subject = Subject::new(&m, &inputs);
    let engine = wrong_beside("s", "id", |m, id| {
        let device = named(m, "id").unwrap();
        to_add_where(m, id, 1, |_| device);
    });
    let found = blamed(&engine, &subject, &settings(3));
    assert_eq!((&*found.location.name, found.location.device, found.found), ("s", 1, Found::OnlyInPlace));
    let replay = replayed(&engine, &subject, &settings(3));
    assert_eq!(replay.wrong, 1, "the gathered value was right again");
    let always = wrong("s", to_add);
    let found = blamed(&always, &subject, &settings(3));
    // Adding and subtracting zero are the same on device 0.
    assert_eq!((found.location.device, found.found), (1, Found::Alone));
}

fn only_in_place() {
    let m = module(
        "HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = f32[4] multiply(x, y)
  s = f32[4] subtract(p, x)
  ROOT n = f32[4] negate(s)
}
",
    );
    let inputs = [vec![floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[3.0, 5.0, 7.0, 9.0])]];
    let subject = Subject::new(&m, &inputs);
    // A rewriting of a product and a difference that is wrong.
    let engine = wrong_beside("s", "p", |m, id| {
        let p = m.instr(id).operands()[0];
        if m.instr(p).opcode == Opcode::Multiply {
            let (a, x) = (m.instr(p).operands()[1], m.instr(id).operands()[1]);
            m.set_operands(id, &[a, x]);
        }
    });
    let found = blamed(&engine, &subject, &settings(1));
    assert_eq!((&*found.location.name, found.found, found.class), ("s", Found::OnlyInPlace, Class::Wrong));
}

fn nothing() {
    for (text, args, name, copies) in [(LOOP, 1, "halves", 5), (FUSION, 2, "s", 1)] {
        let m = module(text);
        let inputs = [vec![floats(&[0.25, 0.5, 0.75, 1.0]); args]];
        let subject = Subject::new(&m, &inputs);
        // A pass that rewrites without changing what is computed.
        let right = wrong(name, |m, id| {
            let parent = m.instr(id).parent();
            let before = (m.computation(parent).len(), m.root(parent));
            let users = m.users(id).to_vec();
            let mut build = ComputationBuilder::resume(m, parent);
            let copy = build.unary(Opcode::Copy, id).unwrap();
            in_order(m, parent, before, id);
            users.iter().for_each(|u| m.set_operand(u.user, u.operand as usize, copy));
        });
        let replay = replayed(&right, &subject, &settings(1));
        assert!(replay.divergences.is_empty() && replay.compared > 0 && replay.ended.is_none());
        assert_eq!(
            (replay.class(), replay.unmatched),
            (Class::Same, copies),
            "the copy is nothing of the program's"
        );
        assert_eq!(blame(&subject, &right, &settings(1)), None);
        let options = Options { settings: settings(1), ..Options::default() };
        assert!(!isolate(&subject, &right, &options, &mut |_, _| {}).map_err(|_| ()).unwrap().diverges());
    }
}

fn iterations() {
    let m = module(LOOP);
    let inputs = [vec![floats(&[0.25, 0.5, 0.75, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    // The condition loses its names, so nothing in it is injected, and stops early.
    let engine = wrong("more", |m, id| {
        m.instr_mut(id).name = "renamed".into();
        let n = named(m, "n").unwrap();
        let literal = std::sync::Arc::new(Literal::scalar(4i32));
        m.instr_mut(n)
            .attrs
            .set(AttrKey::ConstantValue, AttrValue::Literal(hlo::ConstantValue::Given(literal)));
        m.instr_mut(n).name = "renamed_too".into();
    });
    let found = blame(&subject, &engine, &settings(1)).unwrap();
    assert_eq!(
        (found.location.opcode, found.how, found.location.iteration),
        (Opcode::While, How::Calls, Some(4))
    );
}

fn result() {
    let m = module(FUSION);
    let inputs = [vec![floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[1.0, 1.0, 1.0, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let engine = wrong("e", |m, id| {
        m.instr_mut(id).opcode = Opcode::Sign;
        m.instr_mut(id).name = "other".into();
    });
    let found = blame(&subject, &engine, &settings(1)).unwrap();
    assert_eq!((&*found.location.name, found.how, found.found), ("e", How::Result, Found::InPlace));
}

fn nans_and_zeros() {
    let text = |op: &str| {
        format!(
            "HloModule m\n\nENTRY main {{\n  x = f32[4] parameter(0)\n  s = f32[4] {op}\n  ROOT c = u32[4] bitcast-convert(s)\n}}\n"
        )
    };
    let inputs = [vec![floats(&[0.0, -0.0, f32::NAN, 1.0])]];
    // Another NaN is no difference, not even to what looks at its bits: the reference's is injected.
    let m = module(&text("copy(x)"));
    let subject = Subject::new(&m, &inputs);
    let nan = wrong("s", |m, id| m.instr_mut(id).opcode = Opcode::Abs);
    let replay = replayed(&nan, &subject, &settings(1));
    assert_eq!((replay.wrong, &*replay.divergences[0].location.name), (1, "s"), "-0 became 0");
    assert_eq!(replay.divergences[0].arrays[0].1.worst[0].index, [1]);
    let m = module(&text("abs(x)"));
    let inputs = [vec![floats(&[0.0, 2.0, -f32::NAN, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let copy = wrong("s", |m, id| m.instr_mut(id).opcode = Opcode::Copy);
    assert_eq!(replayed(&copy, &subject, &settings(1)).class(), Class::Same);
    let policy = Policy { nan_bits: true, ..Policy::default() };
    let strict = Settings { policy, ..settings(1) };
    assert_eq!(replayed(&copy, &subject, &strict).class(), Class::Wrong);
}

fn lockstep() {
    let m = module(LOOP);
    let inputs = [vec![floats(&[0.25, 0.5, 0.75, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let engine = wrong_beside("less", "i", |m, id| {
        let i = named(m, "i").unwrap();
        to_add_where(m, id, 3, |_| i);
    });
    let whole = replayed(&engine, &subject, &settings(1));
    let mut tight = settings(1);
    // Room for the values of two iterations, a quarter of it for those that wait.
    tight.run.limits.memory_bytes = 4 * 200;
    let parts = replayed(&engine, &subject, &tight);
    assert_eq!((whole.compared, whole.wrong), (parts.compared, parts.wrong));
    assert_eq!(parts.divergences[0].location, whole.divergences[0].location);
    // Too small a limit for any.
    tight.run.limits.memory_bytes = 60;
    let executable = engine.compile(&m).map_err(|_| ()).unwrap();
    assert!(replay(&subject, &*executable, Allowances::STRICT, &tight).is_err());
}

fn alone_kinds() {
    let m = module(
        "HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

branch {
  q = f32[4] parameter(0)
  ROOT m = f32[4] multiply(q, q)
}

other {
  q = f32[4] parameter(0)
  ROOT d = f32[4] add(q, q)
}

ENTRY main {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  o = f32[4] sort(x), dimensions={0}, to_apply=less
  t = pred[] constant(true)
  c = f32[4] conditional(t, x, x), true_computation=branch, false_computation=other
  p = (f32[], f32[4], f32[4]) tuple(r, o, c)
  g = f32[4] get-tuple-element(p), index=1
  k = token[] after-all()
  h = f32[4] add-dependency(g, k)
  ROOT out = (f32[4], f32[], f32[4]) tuple(h, r, c)
}
",
    );
    let inputs = [vec![floats(&[4.0, 2.0, 3.0, 1.0])]];
    let subject = Subject::new(&m, &inputs);
    let options = Options { settings: settings(1), ..Options::default() };
    let engine = wrong("o", |m, id| m.instr_mut(id).opcode = Opcode::Sort);
    let all = isolate(&subject, &engine, &options, &mut |_, _| {}).map_err(|_| ()).unwrap();
    let rows: Vec<(&str, String)> = all
        .rows
        .iter()
        .map(|r| match &r.alone {
            Status::Skipped(why) => (&*r.name, why.clone()),
            other => (&*r.name, other.name().to_owned()),
        })
        .collect();
    let expected = [
        ("x", "a parameter"),
        ("zero", "a constant"),
        ("r", "SUCCESS"),
        ("o", "SUCCESS"),
        ("t", "a constant"),
        ("q", "a parameter"),
        ("m", "SUCCESS"),
        ("c", "its instructions are run one by one"),
        ("p", "tuples only"),
        ("g", "tuples only"),
        ("k", "order only"),
        ("h", "order only"),
        ("out", "tuples only"),
    ];
    assert_eq!(rows, expected.map(|(n, s)| (n, s.to_owned())), "in the order of execution; `d` never runs");
}

fn command() {
    let d = Dir::new();
    let file = d.file("m.hlo", FUSION);
    // Wrong where both operands are 1: the sum instead of the difference.
    let bad = d.file("bad.hlo", FUSION.replace("f32[4] subtract(a, b)", "f32[4] add(a, b)"));
    let same = hlo(&["isolate", &file, "--platform", &format!("form:{file}")]);
    ends(&same, 0);
    assert!(out(&same).contains("8 executions compared with the interpreter's, 0 wrong"), "{}", out(&same));
    let npz = d.path("in.npz");
    let npz = npz.to_str().unwrap();
    ends(&hlo(&["run", &file, "--seed", "3", "--save-inputs", npz]), 0);
    let engine = format!("form:{bad}");
    let found = hlo(&["isolate", &file, "--platform", &engine, "--inputs", npz]);
    ends(&found, 1);
    assert!(out(&found).contains("subtract (inner.s) diverges in place"), "{}", out(&found));
    let json = hlo(&["isolate", &file, "--platform", &engine, "--inputs", npz, "--json"]);
    ends(&json, 1);
    let line = &json_lines(&json)[0];
    // The whole object, but for the values, which are the generator's, and the paths.
    let mut golden = line.clone();
    golden["file"] = "FILE".into();
    golden["engine"] = "ENGINE".into();
    golden["next"] = golden["next"].as_array().unwrap().len().into();
    let arrays = golden["replay"]["divergences"][0]["arrays"].take();
    golden["instructions"].as_array_mut().unwrap().retain(|r| r["name"] == "s" || r["name"] == "x");
    let expected = serde_json::json!({
        "file": "FILE", "ok": false, "exit": 1, "module": "fused", "reference": "interpreter", "engine": "ENGINE",
        "blame": {
            "name": "s", "computation": "inner", "opcode": "subtract", "execution": 0, "iteration": null, "device": 0,
            "calls": [{"name": "f", "opcode": "fusion", "iteration": 0}],
            "how": "value", "found": "in-place", "class": "wrong",
            "message": "subtract (inner.s) diverges in place (it cannot be run alone)"
        },
        "replay": {
            "compared": 8, "unmatched": 0, "explained": 0, "undecided": 0, "wrong": 1, "unjudged": 0, "ended": null,
            "divergences": [{
                "name": "s", "computation": "inner", "opcode": "subtract", "execution": 0, "iteration": null, "device": 0,
                "calls": [{"name": "f", "opcode": "fusion", "iteration": 0}],
                "how": "value", "message": "its value differs", "class": "wrong", "covers": [], "arrays": null
            }]
        },
        "instructions": [
            {"name": "x", "computation": "main", "opcode": "parameter", "executions": 1, "status": "SKIPPED",
             "reason": "the engine knows one program only", "execution": 0, "device": 0, "in_place": "same"},
            {"name": "s", "computation": "inner", "opcode": "subtract", "executions": 1, "status": "SKIPPED",
             "reason": "the engine knows one program only", "execution": 0, "device": 0, "in_place": "wrong"}
        ],
        "whole": "wrong result",
        "hidden": false,
        "next": 2
    });
    assert_eq!(golden, expected);
    let keys: Vec<&String> = arrays[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["array", "shape", "class", "elements", "worst", "common", "by_ulp", "by_bound"]);
    let keys: Vec<&String> = arrays[0]["worst"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["index", "expected", "actual", "error", "ulp", "bound", "hard_bound", "class"]);

    for (args, code, message) in [
        (&["isolate", &*file][..], 2, "which engine?"),
        (&["isolate", &file, "--platform", "interpreter", "--only", "ss"], 2, "did you mean `s`?"),
        (&["isolate", &file, "--platform", "interpreter", "--opcode", "negat"], 2, "did you mean `negate`?"),
        (&["isolate", &file, "--platform", "interpreter", "--allow", "al"], 2, "there is no liberty `al`"),
        (&["isolate", "none.hlo", "--platform", "interpreter"], 2, "cannot be read"),
        (&["isolate", &file, "--platform", "tpu"], 5, "not built into this program"),
    ] {
        let o = hlo(args);
        ends(&o, code);
        assert!(err(&o).contains(message), "{}", err(&o));
    }
    // Recorded results: a verdict over the whole program is all there is.
    let npz_out = d.path("out.npz");
    let npz_out = npz_out.to_str().unwrap();
    ends(&hlo(&["run", &bad, "--inputs", npz, "--output", npz_out]), 0);
    let o = hlo(&["isolate", &file, "--inputs", npz, "--platform", &format!("recorded:{npz_out}")]);
    ends(&o, 1);
    assert!(out(&o).contains("  whole    mismatch") && out(&o).contains("8 SKIPPED"), "{}", out(&o));
    // One instruction of another program at a time, and many at once.
    let exec = format!("exec:{} run --platform interpreter", env!("CARGO_BIN_EXE_hlo"));
    let exec = format!("{exec} {{module}} --inputs {{inputs}} --output {{output}}");
    for batch in ["1", "32"] {
        let o = hlo(&["isolate", &file, "--inputs", npz, "--platform", &exec, "--batch", batch]);
        ends(&o, 0);
        assert!(out(&o).contains("4 SUCCESS"), "{}", out(&o));
    }
}

fn artifacts() {
    use hlo_execution::verdict::Tally;
    use hlo_triage::artifact::{self, Artifact, Finding, Signature};
    use hlo_triage::differential::Kind;

    let d = Dir::new();
    let m = module(FUSION);
    let inputs = [vec![floats(&[1.0, 2.0, f32::NAN, -0.0]), floats(&[1.0, 1.0, 1.0, 1.0])]];
    let results = [vec![floats(&[0.0, 1.0, 2.0, 3.0])]];
    let finding = Finding {
        hlo_finding: artifact::VERSION,
        reference: "interpreter".into(),
        signature: Signature {
            kind: Kind::Wrong,
            opcode: Some("subtract".into()),
            code: None,
            engine: "faulty:x".into(),
        },
        policy: None,
        allow: Allowances::STRICT,
        replicas: 1,
        partitions: 1,
        accumulate_region: false,
        seed: 7,
        nan_bits: false,
        verdict: Tally { same: 1, explained: 0, undecided: 0, wrong: 3 },
        message: String::new(),
        origin: None,
    };
    let what = Artifact {
        module: &m,
        text: None,
        inputs: &inputs,
        expected: Some(&results),
        actual: None,
        finding: &finding,
        stablehlo: None,
    };
    let parent = d.path("findings");
    let first = artifact::save(&parent, "hlo-mismatch", &what).unwrap();
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("hlo-mismatch-") && name.len() == "hlo-mismatch-".len() + 6, "{name}");
    assert_eq!(artifact::save(&parent, "hlo-mismatch", &what).unwrap(), first, "the same again is the same");
    let other = Finding { seed: 8, ..finding.clone() };
    let second = artifact::save(&parent, "hlo-mismatch", &Artifact { finding: &other, ..what }).unwrap();
    assert_eq!(second.file_name().unwrap().to_str().unwrap(), format!("{name}-2"), "nothing is overwritten");
    assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 2, "no temporary folder is left");

    let loaded = artifact::load(&first, 1 << 20).unwrap();
    assert_eq!(loaded.finding.as_ref(), Some(&finding));
    assert!(hlo::modules_equal(&m, &loaded.program.module).is_ok());
    assert_eq!(loaded.inputs.as_deref(), Some(&inputs[..]));
    assert_eq!((loaded.expected.as_deref(), loaded.actual), (Some(&results[..]), None));
    let command = std::fs::read_to_string(second.join("command.txt")).unwrap();
    assert_eq!(command, format!("hlo run {name}-2\n"));

    // Recorded cases load as well; what is no finding says so.
    let case = d.file("case/case.json", r#"{"params": [], "results": []}"#);
    let folder = std::path::Path::new(&case).parent().unwrap();
    assert!(artifact::load(folder, 1 << 20).unwrap_err().message.ends_with("is a folder without module.hlo"));
    d.file("case/module.hlo", FUSION);
    assert!(artifact::load(folder, 1 << 20).unwrap().finding.is_none());
    std::fs::write(first.join("finding.json"), "{}").unwrap();
    assert!(artifact::load(&first, 1 << 20).unwrap_err().message.contains("missing field"));
}

/// Checks that a page is well-formed: every element closed, attributes quoted, no bare `&` or `<`; and that
/// it names nothing outside. Returns its text, entities replaced.
fn well_formed(page: &str) -> String {
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("a doctype");
    assert!(
        !body.contains("http") && !body.contains("url(") && !body.contains("<script"),
        "something from outside"
    );
    let entity = |text: &str| {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            out.push_str(&rest[..at]);
            let (name, after) =
                rest[at + 1..].split_once(';').unwrap_or_else(|| panic!("a bare & in {text}"));
            out.push(match name {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "#39" => '\'',
                other => panic!("&{other};"),
            });
            rest = after;
        }
        out + rest
    };
    let (mut open, mut text, mut rest) = (Vec::new(), String::new(), body);
    let mut ids = std::collections::BTreeSet::new();
    while let Some(at) = rest.find('<') {
        text.push_str(&entity(&rest[..at]));
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.to_owned()), "closed out of turn");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{name}>");
        while !attributes.trim().is_empty() {
            let (key, value) = attributes.trim_start().split_once("=\"").expect("a quoted attribute");
            let (value, after) = value.split_once('"').expect("a quoted attribute");
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
            entity(value);
            assert!(key != "id" || ids.insert(value.to_owned()), "two elements are called {value}");
            attributes = after;
        }
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    text
}

fn page_of(m: &Module, engine: &dyn Engine) -> String {
    let inputs: Vec<Vec<ArrayLiteral>> = vec![
        hlo_engines::inputs::parameter_arrays(m).iter().map(|_| floats(&[1.0, 2.0, 3.0, 4.0])).collect(),
    ];
    let subject = Subject::new(m, &inputs);
    let options = Options { settings: settings(1), ..Options::default() };
    let found = isolate(&subject, engine, &options, &mut |_, _| {}).map_err(|o| format!("{o:?}")).unwrap();
    let next = ["hlo reduce '<m>' && true".to_owned()];
    hlo_triage::report::html::Page { file: "a<b>&\"c\".hlo", module: m, found: &found, next: &next }.write()
}

fn page() {
    let mut m = module(FUSION);
    let evil = "<img src=\"x\" onerror='y'>&amp;\u{1}";
    let e = named(&m, "e").unwrap();
    m.instr_mut(e).name = evil.into();
    let page = page_of(&m, &wrong("s", to_add));
    let text = well_formed(&page);
    assert!(!page.contains("<img"));
    assert!(text.contains("<img src=\"x\" onerror='y'>&amp;\u{fffd}"), "the name is there, as text");
    for there in [
        "a<b>&\"c\".hlo",
        "diverges alone too",
        "Worst elements",
        "Errors in ulp",
        "hlo reduce '<m>' && true",
    ] {
        assert!(text.contains(there), "{there}");
    }
    let s = named(&m, "s").unwrap().index();
    assert!(
        page.contains(&format!("<g class=\"n wrong path blamed\" id=\"i{s}\">")),
        "the blamed instruction stands out"
    );
    // Hovering shows what is known of it.
    assert!(text.contains("in place: WRONG: 1 wrong, 0 undecided, 0 explained of 1"));
    let good = page_of(&m, &wrong("none", to_add));
    assert!(well_formed(&good).contains("nothing diverges") && !good.contains("blamed\""));
}

fn large_page() {
    let mut text = String::from("HloModule m\n\nENTRY main {\n  v0 = f32[4] parameter(0)\n");
    let n = 4000;
    for i in 1..n {
        let root = if i == n - 1 { "ROOT " } else { "" };
        text.push_str(&format!("  {root}v{i} = f32[4] subtract(v{}, v{})\n", i - 1, i / 2));
    }
    text.push_str("}\n");
    let m = module(&text);
    let page = page_of(&m, &wrong("v1234", to_add));
    well_formed(&page);
    assert!(page.contains("30 of 4,000 instructions") && page.contains("v1234"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

/// Each fault on its program, which has no inputs: the instruction that is blamed has an opcode that the
/// fault is about.
fn faults() {
    let (mut failures, mut blamed_faults) = (Vec::new(), 0);
    for fault in hlo_engines::faults::all() {
        let name = fault.pass().name().to_owned();
        let path = crate::crate_dir().join("faults").join(format!("{name}.hlo"));
        let m = module(&std::fs::read_to_string(path).unwrap());
        let engine = hlo_engines::engine::by_name(&format!("faulty:{name}")).map_err(|f| f.message).unwrap();
        let devices = hlo_engines::engine::devices::stated(&m, None, None).map_err(|f| f.message).unwrap();
        let inputs = vec![Vec::new(); devices.count() as usize];
        let settings =
            Settings { run: RunOptions { devices, ..RunOptions::default() }, ..Settings::default() };
        let subject = Subject::new(&m, &inputs);
        let plain = Settings { replay: false, ..settings };
        if !differ(&InterpreterEngine, &*engine, &subject, &plain).kind.is_failure() {
            // That a fault shows on its program is the faults' own test.
            continue;
        }
        blamed_faults += 1;
        match blame(&subject, &*engine, &settings) {
            Some(b) if fault.opcodes.is_empty() || fault.opcodes.contains(&b.location.opcode) => {}
            Some(b) => failures.push(format!("{name}: {} is blamed", b.location.opcode)),
            None => failures.push(format!("{name}: nobody is blamed")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(blamed_faults > 100, "only {blamed_faults} faults show");
}
