//! Objects that C, C++ and Rust programs link with. What is missing on the machine (a C compiler, a cross
//! compiler, the run-time library) is said, and skipped.

use std::ffi::c_void;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use hlo_ahead::threads::{self, ThreadPool, Work};
use hlo_client::ahead::{self, Ahead, Class, Config, Form, Options};
use hlo_client::{Client, Code, CompileOptions, Configuration, Isa, VerifiedModule, bytes_of, tuning};

/// A program of kernels alone.
pub(crate) const PLAIN: &str = "HloModule plain
ENTRY e { x = f32[2,3] parameter(0)  y = f32[2,3] parameter(1)  t = f32[2,3] tanh(x)  sum = f32[2,3] add(t, y)
  zero = f32[] constant(0)  all = f32[] reduce(sum, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[2,3], f32[]) tuple(sum, all) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }";

/// A program with state and a constant result.
pub(crate) const STATE: &str = "HloModule state, input_output_alias={ {1}: (2, {}, may-alias) }
ENTRY e { x = f32[2,3] parameter(0)  y = f32[2,3] parameter(1)  n = s32[] parameter(2)  scale = f32[] parameter(3)
  s = f32[2,3] broadcast(scale), dimensions={}  p = f32[2,3] multiply(x, s)  sum = f32[2,3] add(p, y)
  one = s32[] constant(1)  next = s32[] add(n, one)  answer = f32[] constant(42)
  ROOT r = (f32[2,3], s32[], f32[]) tuple(sum, next, answer) }";

const STATE_NAMES: &str =
    "feed { id { node_name: \"x\" } shape { dim { size: 2 } dim { size: 3 } } name: \"x\" type: DT_FLOAT }
feed { id { node_name: \"y\" } }
variable { node_name: \"n\" name: \"steps\" type: DT_INT32 }
variable { node_name: \"scale\" readonly: true }
fetch { id { node_name: \"sum\" } name: \"y\" }";

/// A program of a loop and a branch around kernels.
pub(crate) const CONTROL: &str = "HloModule control
body { s = (s32[], f32[500]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[500] get-tuple-element(s), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)  c = f32[] constant(1.5)  cs = f32[500] broadcast(c), dimensions={}
  r = f32[500] reverse(x), dimensions={0}  y = f32[500] multiply(r, cs)  z = f32[500] add(x, y)  ROOT t = (s32[], f32[500]) tuple(j, z) }
condition { s = (s32[], f32[500]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(9)  ROOT l = pred[] compare(i, n), direction=LT }
yes { x = f32[500] parameter(0)  ROOT y = f32[500] exponential(x) }
no { x = f32[500] parameter(0)  ROOT y = f32[500] negate(x) }
other { x = f32[500] parameter(0)  ROOT y = f32[500] logistic(x) }
ENTRY e { x = f32[500] parameter(0)  k = s32[] parameter(1)  zero = s32[] constant(0)  s = (s32[], f32[500]) tuple(zero, x)
  w = (s32[], f32[500]) while(s), condition=condition, body=body  y = f32[500] get-tuple-element(w), index=1
  b = f32[500] conditional(k, x, x, x), branch_computations={yes, no, other}
  ROOT t = (f32[500], f32[500]) tuple(y, b) }";

/// A folder of a test.
pub(crate) struct Dir(pub(crate) tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub(crate) fn source(&self, name: &str) -> PathBuf {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ahead").join(name);
        self.file(name, std::fs::read(from).unwrap())
    }

    /// Writes object and header.
    pub(crate) fn object(&self, name: &str, made: &Ahead) -> PathBuf {
        self.file(&format!("{name}.h"), made.header());
        self.file(&format!("{name}.o"), &made.object.bytes)
    }
}

pub(crate) fn skipped(why: &str) {
    #[expect(clippy::print_stderr, reason = "says what it skips")]
    {
        eprintln!("skipped: {why}");
    }
}

pub(crate) fn has(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        skipped(&format!("there is no {tool}"));
    }
    there
}

/// The run-time library, where `make test-ahead` has built it.
pub(crate) fn library() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let found = folder.join("libhlo_ahead.a");
    if !found.exists() {
        skipped("there is no libhlo_ahead.a: make test-ahead");
        return None;
    }
    Some(found)
}

pub(crate) fn options(entry: &str) -> Options {
    Options { entry: entry.to_owned(), opt_level: 2, ..Options::default() }
}

fn model() -> Options {
    let class = Some(Class::parse("::demo::inner::Model").unwrap());
    Options { class, profile: true, ..options("model") }
}

pub(crate) fn program(text: &str) -> VerifiedModule {
    VerifiedModule::parse(text).unwrap()
}

pub(crate) fn made(text: &str, names: &str, options: &Options) -> Ahead {
    ahead::compile(&program(text), &Config::parse(names, Form::Pbtxt).unwrap(), options).unwrap()
}

fn refused(text: &str, names: &str, options: &Options) -> hlo_client::Error {
    let config = Config::parse(names, Form::Pbtxt).unwrap();
    ahead::compile(&program(text), &config, options).unwrap_err()
}

/// Runs a command in a folder, and gives what it printed. It has to succeed.
pub(crate) fn ran(folder: &Dir, command: &str, words: &[&str]) -> String {
    let out = Command::new(command).args(words).current_dir(folder.0.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{command} {words:?}\n{said}{}", String::from_utf8_lossy(&out.stderr));
    said
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-O1"];

pub(crate) fn c(folder: &Dir, words: &[&str]) -> String {
    ran(folder, "cc", &[&["-std=c11"], &WARNINGS[..], words].concat())
}

fn cpp(folder: &Dir, standard: &str, words: &[&str]) -> String {
    ran(folder, "c++", &[&[standard], &WARNINGS[..], words].concat())
}

#[test]
fn a_c_program_links_with_an_object_and_nothing_else() {
    let made = made(PLAIN, "feed { id { node_name: \"y\" } name: \"y\" }", &options("plain"));
    assert!(made.object.library_calls.is_empty(), "{:?}", made.object.library_calls);
    let known = ["memcpy", "memmove", "memset"];
    assert!(made.object.needs.iter().all(|n| known.contains(&n.as_str())), "{:?}", made.object.needs);
    if !has("cc") {
        return;
    }
    let d = Dir::new();
    d.object("plain", &made);
    d.source("plain.c");
    c(&d, &["plain.c", "plain.o", "-o", "plain"]);
    let said = ran(&d, "./plain", &[]);
    assert!(
        said.starts_with(
            "plain abi 2: 2 arguments, 2 results\nargument x f32 rank 2 bytes 24\nargument y f32"
        ),
        "{said}"
    );
    assert!(said.ends_with("ok\n"), "{said}");
    // The header is C99 by itself.
    d.file("only.c", "#include \"plain.h\"\n#include \"plain.h\"\nint main(void) { return 0; }\n");
    ran(&d, "cc", &["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-c", "only.c"]);
}

#[test]
fn a_class_has_the_surface_of_tfcompile() {
    let made = made(STATE, STATE_NAMES, &model());
    if !has("c++") {
        return;
    }
    let d = Dir::new();
    d.object("model", &made);
    d.source("class.cc");
    for standard in ["-std=c++11", "-std=c++20"] {
        cpp(&d, standard, &["class.cc", "model.o", "-o", "class"]);
        assert_eq!(ran(&d, "./class", &[]), "ok\n");
    }
    d.source("bounds.cc");
    cpp(&d, "-std=c++11", &["bounds.cc", "model.o", "-o", "bounds"]);
    let out = Command::new(d.path("bounds")).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("out of bounds: dim1 < size_t(3)"), "{said}");
    cpp(&d, "-std=c++11", &["-DHLO_AHEAD_NO_CHECKS", "bounds.cc", "model.o", "-o", "unchecked"]);
    ran(&d, "./unchecked", &[]);
}

#[test]
fn a_rust_module_owns_its_buffers() {
    let made = made(STATE, STATE_NAMES, &model());
    if !has("rustc") {
        return;
    }
    let d = Dir::new();
    d.object("model", &made);
    d.file("model.rs", made.rust());
    d.source("use.rs");
    ran(&d, "rustc", &["--edition", "2021", "-Dwarnings", "-Clink-arg=model.o", "use.rs", "-o", "use"]);
    assert_eq!(ran(&d, "./use", &[]), "ok\n");
}

#[test]
fn several_objects_link_into_one_program() {
    if !has("cc") {
        return;
    }
    let d = Dir::new();
    for name in ["one", "two"] {
        d.object(name, &made(PLAIN, "", &options(name)));
    }
    let main = "#include \"one.h\"\n#include \"two.h\"\nint main(void) { return one_descriptor.argument_count == two_descriptor.argument_count ? 0 : 1; }\n";
    d.file("main.c", main);
    c(&d, &["main.c", "one.o", "two.o", "-o", "main"]);
    ran(&d, "./main", &[]);
}

#[test]
fn two_compilations_give_the_same_bytes() {
    for text in [PLAIN, STATE, CONTROL] {
        let all = |options: &Options| {
            let made = made(text, "", options);
            (made.object.bytes.clone(), made.header(), made.rust())
        };
        let first = all(&model());
        // On another thread, which has other targets and contexts.
        let again = std::thread::scope(|scope| scope.spawn(|| all(&model())).join().unwrap());
        assert!(first == again, "bytes differ");
        let other = all(&Options { opt_level: 3, ..model() });
        assert!(first.2 == other.2, "the module depends on more than the interface");
    }
    // The default processor is one of a name, not the one that this is.
    assert!(made(PLAIN, "", &options("p")).object.target.starts_with(if cfg!(target_arch = "x86_64") {
        "x86-64-v3"
    } else {
        "generic"
    }));
}

/// Programs of library calls whose scratch memory depends on vectors and microarchitecture where they are
/// decided by those: products, a convolution, a sort, windows.
/// With the bytes of temporaries of an object for the processor of the fewest features, on any machine: of the
/// first the packed kernel, 32 features of 16 channels and 3 taps.
const CALLS: [(&str, u64); 6] = [
    ("HloModule convolution
ENTRY e { x = f32[1,40,16] parameter(0)  w = f32[32,16,3] parameter(1)
  ROOT c = f32[1,38,32] convolution(x, w), window={size=3}, dim_labels=b0f_oi0->b0f }", 6144),
    ("HloModule image
ENTRY e { x = f32[2,16,16,8] parameter(0)  w = f32[3,3,8,24] parameter(1)
  ROOT c = f32[2,16,16,24] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }", 0),
    ("HloModule bytes
ENTRY e { x = s8[2,9,9,32] parameter(0)  w = s8[3,3,32,32] parameter(1)
  ROOT c = s32[2,7,7,32] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f }", 0),
    ("HloModule product
ENTRY e { x = bf16[300,2000] parameter(0)  y = bf16[2000,130] parameter(1)
  ROOT d = f32[300,130] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0),
    ("HloModule few
ENTRY e { x = s8[5,3000] parameter(0)  y = s8[4000,3000] parameter(1)
  ROOT d = s32[5,4000] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1} }", 0),
    ("HloModule sorted
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[40,3000] parameter(0)  s = f32[40,3000] sort(x), dimensions={1}, to_apply=less  zero = f32[] constant(0)
  w = f32[40,2991] reduce-window(s, zero), window={size=1x10}, to_apply=add  r = f32[40] reduce(w, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[40,3000], f32[40,2991], f32[40]) tuple(s, w, r) }", 0),
];

/// Whatever vectors and microarchitecture the machine has that compiles, an object for a processor of a name
/// is the same; one for the machine's own is not.
#[test]
fn machines_make_the_same_bytes() {
    let machines = [
        Configuration::default(),
        Configuration::new(Some(Isa::Avx2), None, NonZeroU32::MIN),
        Configuration::new(Some(Isa::Avx2), tuning::by_name("zen4"), NonZeroU32::MIN),
        Configuration::new(None, tuning::by_name("golden-cove"), NonZeroU32::MIN),
    ];
    let texts =
        CALLS.map(|call| call.0.to_owned()).into_iter().chain([PLAIN, STATE, CONTROL].map(str::to_owned));
    let (mut calls, mut differing) = (0, 0);
    for text in texts.chain(corpus(14).into_iter().map(|named| named.1)) {
        let Ok(program) = VerifiedModule::parse(&text) else { continue };
        let on = |machine: Configuration, options: &Options| {
            let compile = || ahead::compile(&program, &Config::default(), options);
            let made = machine.with(compile);
            made.ok().map(|made| {
                (made.object.bytes.clone(), made.header(), made.rust(), made.object.temporary_bytes)
            })
        };
        let targets: [(&str, &str); 3] = [("", ""), ("", "x86-64-v4"), ("aarch64-linux-gnu", "")];
        for (triple, cpu) in targets {
            let to = Options { triple: triple.into(), cpu: cpu.into(), ..options("p") };
            let Some(first) = on(machines[0], &to) else { continue };
            calls += 1;
            for &machine in &machines[1..] {
                assert!(on(machine, &to).as_ref() == Some(&first), "{machine:?} {cpu} {triple}\n{text}");
            }
        }
        let to = Options { cpu: "native".into(), ..options("p") };
        let own = on(machines[0], &to);
        differing += usize::from(machines[1..].iter().any(|&machine| on(machine, &to) != own));
    }
    assert!(calls >= 45, "{calls} objects");
    if Configuration::default().features().avx512 {
        assert!(differing > 0, "no object depends on the machine that it is for");
    }
    if cfg!(target_arch = "x86_64") {
        let bytes = |(text, _)| made(text, "", &options("p")).object.temporary_bytes;
        assert_eq!(CALLS.map(bytes), CALLS.map(|call| call.1));
    }
}

#[test]
fn configurations_that_contradict_the_program_are_errors_with_the_field() {
    for (names, says) in [
        (
            "feed { id { node_name: \"z\" } }",
            "feed[0].id.node_name (line 1): the program has no parameter `z`: there are x, y, n, scale",
        ),
        (
            "feed { id { node_name: \"x\" output_index: 1 } }",
            "feed[0].id.output_index (line 1): `x` has 1 arrays, and none of number 1",
        ),
        (
            "feed { id { node_name: \"x\" } shape { dim { size: 3 } } }",
            "feed[0].shape (line 1): [3], but `x` is f32[2,3]",
        ),
        (
            "feed { id { node_name: \"x\" } type: DT_INT32 }",
            "feed[0].type (line 1): DT_INT32, but `x` is f32[2,3]",
        ),
        (
            "feed { id { node_name: \"x\" } type: DT_FLAOT }",
            "feed[0].type (line 1): `DT_FLAOT` is no element type",
        ),
        (
            "feed { id { node_name: \"x\" } }\nfeed { id { node_name: \"x\" } }",
            "feed[1].id.node_name (line 2): array 0 of `x` was named before",
        ),
        (
            "feed { id { node_name: \"x\" } name: \"a\" }\nfeed { id { node_name: \"y\" } name: \"a\" }",
            "feed[1].name (line 2): `a` is the name of another one",
        ),
        (
            "feed { id { node_name: \"x\" } name: \"a b\" }",
            "feed[0].name (line 1): `a b` is no identifier of C",
        ),
        (
            "fetch { id { node_name: \"x\" } }",
            "fetch[0].id.node_name (line 1): the program has no result `x`: there are r, sum, next, answer",
        ),
        (
            "fetch { id { node_name: \"r\" output_index: 3 } }",
            "fetch[0].id.output_index (line 1): `r` has 3 arrays",
        ),
        (
            "variable { node_name: \"n\" readonly: true }",
            "variable[0].readonly (line 1): the program updates `n`",
        ),
        (
            "variable { node_name: \"scale\" }",
            "variable[0].readonly (line 1): the program does not update `scale`",
        ),
        (
            "feed { id { node_name: \"n\" } }\nvariable { node_name: \"n\" }",
            "variable[0].node_name (line 2): array 0 of `n` was named before",
        ),
    ] {
        let error = refused(STATE, names, &options("m"));
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains(says), "{names}: {error}");
        assert!(error.is_caused_by::<ahead::ConfigError>());
    }
}

#[test]
fn targets_and_names_that_are_not_known_are_errors() {
    let to = |triple: &str, cpu: &str, features: &str| Options {
        triple: triple.into(),
        cpu: cpu.into(),
        features: features.into(),
        ..options("m")
    };
    for (options, says) in [
        (
            to("riscv64-linux-gnu", "", ""),
            "objects are made for x86_64, aarch64, not for \"riscv64-linux-gnu\"",
        ),
        (to("x86_64-apple-darwin", "", ""), "objects are ELF"),
        (to("x86_64-pc-windows-msvc", "", ""), "objects are ELF"),
        (to("aarch64-linux-gnu", "x86-64-v3", ""), "unknown processor \"x86-64-v3\" of aarch64"),
        (to("x86_64-linux-gnu", "i386", ""), "unknown processor \"i386\""),
        (to("x86_64-linux-gnu", "", "+nonsense"), "unknown feature \"nonsense\""),
        (to("x86_64-linux-gnu", "", "-fma"), "generated code needs \"fma\""),
        (to("x86_64-linux-gnu", "", "fma"), "begins with neither"),
        (Options { entry: "a b".into(), ..options("") }, "\"a b\" is no entry point"),
    ] {
        let error = refused(PLAIN, "", &options);
        assert!(error.code() == Code::InvalidArgument && error.to_string().contains(says), "{error}");
    }
    assert!(Class::parse("ns::").is_err() && Class::parse("a b").is_err() && Class::parse("").is_err());
}

#[test]
fn what_the_interpreter_executes_is_refused_by_name() {
    let rng = "HloModule m\nENTRY e { a = f32[] constant(0)  b = f32[] constant(1)  ROOT r = f32[4] rng(a, b), distribution=rng_uniform }";
    let dynamic = "HloModule m\nENTRY e { x = f32[<=4] parameter(0)  ROOT y = f32[<=4] negate(x) }";
    for (text, says) in [(rng, "`rng`: the interpreter executes it"), (dynamic, "known only at run time")] {
        let error = refused(text, "", &options("m"));
        assert!(error.code() == Code::Unimplemented && error.to_string().contains(says), "{error}");
    }
}

/// Values for an argument, which follow from its number and shape: small, of either sign, and never all the
/// same.
pub(crate) fn values(number: usize, array: &hlo_ahead::compile::Array) -> Vec<u8> {
    let shape = hlo::ArrayShape::new(array.element_type, &array.dims);
    let literal =
        hlo::elided::elided_literal(&format!("argument{number}"), &hlo::Shape::Array(shape)).unwrap();
    bytes_of(&literal.as_array().unwrap().buffer).to_vec()
}

/// What the client computes of the same.
fn expected(text: &str, cpu: &str, arrays: &[hlo_ahead::compile::Array]) -> Vec<u8> {
    let client = Client::cpu(hlo_client::ClientOptions { threads: 1, ..Default::default() }).unwrap();
    let to = CompileOptions { cpu: cpu.to_owned(), ..CompileOptions::default() };
    computed(&client, text, &to, arrays)
}

/// The bytes of all results of a program on a client, given [`values`].
pub(crate) fn computed(
    client: &Client,
    text: &str,
    to: &CompileOptions,
    arrays: &[hlo_ahead::compile::Array],
) -> Vec<u8> {
    let executable = client.compile(&program(text), to).unwrap();
    let arguments: Vec<hlo_client::Buffer> = arrays
        .iter()
        .enumerate()
        .map(|(n, a)| {
            client.buffer_from_bytes(hlo::ArrayShape::new(a.element_type, &a.dims), &values(n, a)).unwrap()
        })
        .collect();
    let results = executable.execute(&arguments.iter().collect::<Vec<_>>()).unwrap();
    results.iter().flat_map(|r| bytes_of(&r.to_literal().unwrap().buffer).to_vec()).collect()
}

/// Links programs with the runner by a compiler, runs them by another program if that is given, and gives the
/// results of all.
pub(crate) fn run_all(
    d: &Dir,
    all: &[(String, Ahead)],
    cc: &str,
    by: Option<&str>,
    library: Option<&Path>,
) -> Vec<u8> {
    let (mut header, mut rows) = (String::new(), String::new());
    let mut words: Vec<String> = ["-std=c11", "-O1", "-static", "runner.c"].map(String::from).to_vec();
    let mut input = Vec::new();
    for (name, made) in all {
        d.object(name, made);
        header += &format!("#include \"{name}.h\"\n");
        rows += &format!("  {{&{name}_descriptor, {name}_run}},\n");
        words.push(format!("{name}.o"));
        for (n, argument) in made.object.arguments.iter().enumerate() {
            input.extend(values(n, argument));
        }
    }
    header += &format!(
        "static const struct {{ const hlo_ahead_descriptor *descriptor; int32_t (*run)(void *const *, void *const *, void *, const hlo_ahead_run_options *); }} programs[] = {{\n{rows}}};\n"
    );
    d.file("programs.h", header);
    d.source("runner.c");
    d.file("in", input);
    words.extend(library.map(|l| l.display().to_string()));
    words.extend(["-lm", "-o", "runner"].map(String::from));
    ran(d, cc, &words.iter().map(String::as_str).collect::<Vec<_>>());
    match by {
        Some(by) => ran(d, by, &["./runner", "in", "out"]),
        None => ran(d, "./runner", &["in", "out"]),
    };
    std::fs::read(d.path("out")).unwrap()
}

/// Recorded programs and filetests, a sample of about this size, evenly over all of them.
fn corpus(count: usize) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut found = Vec::new();
    let mut pending =
        vec![root.join("corpus/jax"), root.join("filetests/ops"), root.join("filetests/regress")];
    while let Some(folder) = pending.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "hlo")
                && path.metadata().is_ok_and(|m| m.len() < 20_000)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    let stride = (found.len() / count).max(1);
    let some = found.into_iter().step_by(stride);
    some.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn objects_compute_what_the_client_computes() {
    let library = library();
    if !has("cc") || !cfg!(target_arch = "x86_64") {
        return;
    }
    let mut all = Vec::new();
    let mut wanted = Vec::new();
    let mut texts: Vec<(String, String)> =
        [PLAIN, CONTROL].map(|text| (String::new(), text.to_owned())).to_vec();
    texts.extend(corpus(200));
    let mut calls = 0;
    for (path, text) in texts {
        // Files with several programs, and such as do not verify.
        let Ok(program) = VerifiedModule::parse(&text) else { continue };
        let to = Options { cpu: "native".into(), ..options(&format!("p{}", all.len())) };
        let made = match ahead::compile(&program, &Config::default(), &to) {
            Ok(made) => made,
            Err(error) if error.code() == Code::Unimplemented => continue,
            Err(error) => panic!("{path}: {error}"),
        };
        if made.object.needs.iter().any(|n| n.starts_with("hlo_")) {
            if library.is_none() {
                continue;
            }
            calls += 1;
        }
        let results = expected(&text, "native", &made.object.arguments);
        wanted.push((path, results));
        all.push((to.entry, made));
    }
    assert!(all.len() >= 40, "{} programs", all.len());
    if library.is_some() {
        assert!(calls >= 5, "{calls} programs call the library");
    }
    let d = Dir::new();
    let out = run_all(&d, &all, "cc", None, library.as_deref());
    let mut rest = &out[..];
    for ((path, results), (name, _)) in wanted.iter().zip(&all) {
        let (got, after) = rest.split_at(results.len());
        assert!(got == results, "{name} {path}: other bits");
        rest = after;
    }
    assert!(rest.is_empty());
}

/// Aligned memory of this many bytes.
fn aligned_memory(bytes: u64) -> hlo_codegen::runtime::arena::Memory {
    hlo_codegen::runtime::arena::Memory::new(bytes.max(1)).unwrap()
}

/// Loads an object into this process, with the library's functions that it calls, and gives its results.
fn run_here(entry: &str, made: &Ahead, pool: *const ThreadPool) -> Vec<u8> {
    type Run = unsafe extern "C" fn(*const *mut u8, *const *mut u8, *mut u8, *const [usize; 3]) -> i32;
    use hlo_ahead::compile::Aliasing;
    use hlo_codegen::runtime::object::{Code as Loaded, External, externals};
    let find = |name: &str| match name {
        "hlo_ahead_prepare" => Some(External::new(hlo_ahead::calls::hlo_ahead_prepare as *const ())),
        "hlo_ahead_call" => Some(External::new(hlo_ahead::calls::hlo_ahead_call as *const ())),
        other => externals(other),
    };
    let code = Loaded::load(&made.object.bytes, &find).unwrap();
    let run = code.symbol(&format!("{entry}_run")).unwrap();
    // SAFETY: the entry point of an object is such a function, and `code` keeps it.
    let run = unsafe { std::mem::transmute::<*const u8, Run>(run) };
    let mut arguments: Vec<_> = made.object.arguments.iter().map(|a| aligned_memory(a.bytes)).collect();
    for (n, (memory, array)) in arguments.iter_mut().zip(&made.object.arguments).enumerate() {
        let bytes = values(n, array);
        memory.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
    }
    let results: Vec<_> = made.object.results.iter().map(|r| aligned_memory(r.bytes)).collect();
    let temporaries = aligned_memory(made.object.temporary_bytes);
    let starts =
        |all: &[hlo_codegen::runtime::arena::Memory]| all.iter().map(|m| m.start()).collect::<Vec<_>>();
    let (given, gives) = (starts(&arguments), starts(&results));
    // The size of the options, the pool, where cycles are counted.
    let options = [size_of::<[usize; 3]>(), pool as usize, 0];
    // SAFETY: memory of the sizes that the object's tables say, aligned to 64 bytes, alive until it returns.
    let status = unsafe { run(given.as_ptr(), gives.as_ptr(), temporaries.start(), &raw const options) };
    assert_eq!(status, 0, "{entry}");
    let leaf = |(n, r): (usize, &hlo_ahead::compile::Array)| {
        let memory = match r.aliasing {
            Aliasing::Argument(argument) => &arguments[argument as usize],
            Aliasing::Own | Aliasing::Read | Aliasing::Overwritten => &results[n],
        };
        memory.bytes()[..r.bytes as usize].to_vec()
    };
    made.object.results.iter().enumerate().flat_map(leaf).collect()
}

#[test]
fn library_calls_compute_what_the_client_computes() {
    let mut calls = std::collections::BTreeSet::new();
    for (path, text) in corpus(400) {
        // Files with several programs, and such as do not verify.
        let Ok(program) = VerifiedModule::parse(&text) else { continue };
        let to = Options { cpu: "native".into(), ..options("p") };
        let made = match ahead::compile(&program, &Config::default(), &to) {
            Ok(made) => made,
            Err(error) if error.code() == Code::Unimplemented => continue,
            Err(error) => panic!("{path}: {error}"),
        };
        if made.object.needs.iter().any(|n| n.starts_with("hlo_")) {
            assert!(
                run_here("p", &made, std::ptr::null()) == expected(&text, "native", &made.object.arguments),
                "{path}: other bits"
            );
            calls.insert(path);
        }
    }
    assert!(calls.len() >= 25, "{} programs call the library", calls.len());
}

/// Chunks that [`backwards`] did.
static CHUNKS: AtomicU64 = AtomicU64::new(0);

/// A pool of the caller's thread that begins with the last chunk.
unsafe extern "C" fn backwards(_: *mut c_void, chunks: u64, work: Work, job: *mut c_void) {
    for n in (0..chunks).rev() {
        CHUNKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: each chunk of the job once, before this returns.
        unsafe { work(job, n) };
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    const WIDE: &str = "HloModule wide
        ENTRY e { x = f32[1000,1000] parameter(0)  y = f32[1000,300] parameter(1)  e = f32[1000,1000] exponential(x)
          ROOT d = f32[1000,300] dot(e, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
    let made = made(WIDE, "", &options("wide"));
    assert!(!made.object.library_calls.is_empty());
    let alone = run_here("wide", &made, std::ptr::null());
    let own = threads::hlo_ahead_thread_pool_create(3);
    assert!(alone == run_here("wide", &made, own), "threads of the library");
    // SAFETY: made above, given back once, and no run uses it.
    unsafe { threads::hlo_ahead_thread_pool_destroy(own) };
    let lent = ThreadPool { threads: 4, run: backwards, context: std::ptr::null_mut() };
    assert!(alone == run_here("wide", &made, &raw const lent), "threads of somebody else");
    assert!(CHUNKS.load(Ordering::Relaxed) > 4, "{CHUNKS:?} chunks");
}

#[test]
fn a_training_step_trains_from_cpp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bench/mnist_mlp_train_step.hlo");
    let Ok(text) = std::fs::read_to_string(&path) else {
        skipped("there is no ../shared/bench");
        return;
    };
    let names = "feed { id { node_name: \"xs_0__0__0_.1\" } name: \"w0\" } feed { id { node_name: \"xs_0__1__0_.1\" } name: \"w1\" }
        feed { id { node_name: \"xs_0__2__0_.1\" } name: \"w2\" } feed { id { node_name: \"xs_1_.1\" } name: \"images\" }
        feed { id { node_name: \"xs_2_.1\" } name: \"labels\" }";
    let root = program(&text);
    let root = root.module();
    let loss = format!(
        "fetch {{ id {{ node_name: \"{}\" }} name: \"loss\" }}",
        root.instr(root.root(root.entry())).name
    );
    let to = Options { class: Some(Class::parse("demo::Train").unwrap()), ..options("train") };
    let made = made(&text, &(names.to_owned() + &loss), &to);
    assert!(!made.object.library_calls.is_empty());
    let (Some(library), true) = (library(), has("c++")) else { return };
    let d = Dir::new();
    d.object("train", &made);
    d.source("train.cc");
    cpp(&d, "-std=c++11", &["train.cc", "train.o", library.to_str().unwrap(), "-lm", "-o", "train"]);
    let said = ran(&d, "./train", &[]);
    assert!(said.ends_with("ok\n"), "{said}");
}

#[test]
fn debuggers_find_the_lines_of_instructions() {
    let source =
        hlo_ahead::compile::Source { file: "/programs/plain.hlo".into(), text: PLAIN.into(), split: None };
    let with = made(PLAIN, "", &Options { debug: Some(source), ..options("plain") });
    let without = made(PLAIN, "", &options("plain"));
    assert!(with.object.bytes.len() > without.object.bytes.len());
    if !has("objdump") {
        return;
    }
    let d = Dir::new();
    d.object("plain", &with);
    let lines = ran(&d, "objdump", &["--dwarf=decodedline", "plain.o"]);
    assert!(lines.contains("plain.hlo") && lines.contains("  2  "), "{lines}");
    let info = ran(&d, "objdump", &["--dwarf=info", "plain.o"]);
    assert!(info.contains("DW_TAG_subprogram") && info.contains("plain."), "{info}");
}

#[test]
fn debugging_information_is_split_off_the_object() {
    let d = Dir::new();
    let text =
        || hlo_ahead::compile::Source { file: "/programs/plain.hlo".into(), text: PLAIN.into(), split: None };
    let name = d.path("plain.dwo").display().to_string();
    let source = hlo_ahead::compile::Source { split: Some(name.clone()), ..text() };
    let of = |source| made(PLAIN, "", &Options { debug: Some(source), ..options("plain") }).object;
    let (whole, split) = (of(text()), of(source.clone()));
    let dwarf = split.dwarf.clone().expect("it was asked for");
    assert!(whole.dwarf.is_none() && split.bytes != whole.bytes);
    let again = of(source);
    assert!(again.bytes == split.bytes && again.dwarf.as_ref() == Some(&dwarf));
    if !has("objdump") {
        return;
    }
    d.file("plain.o", split.bytes);
    // Where the other file is there, it is shown as well.
    let info = ran(&d, "objdump", &["--dwarf=info", "plain.o"]);
    assert!(info.contains(&name) && !info.contains("DW_TAG_subprogram"), "{info}");
    d.file("plain.dwo", dwarf);
    let info = ran(&d, "objdump", &["--dwarf=info", "plain.dwo"]);
    assert!(info.contains("DW_TAG_subprogram") && info.contains("plain."), "{info}");
    let lines = ran(&d, "objdump", &["--dwarf=decodedline", "plain.o"]);
    assert!(lines.contains("plain.hlo") && lines.contains("  2  "), "{lines}");
    if !has("gdb") || !has("cc") {
        skipped("a debugger that reads the file");
        return;
    }
    ran(&d, "cc", &["-shared", "plain.o", "-o", "plain.so"]);
    let listed = ran(&d, "gdb", &["-batch", "-nx", "-ex", "info functions plain", "plain.so"]);
    assert!(listed.contains("plain.hlo:"), "{listed}");
}

#[test]
fn sanitized_objects_find_arrays_that_are_too_small() {
    let made = made(PLAIN, "", &Options { sanitize: true, ..options("plain") });
    assert!(made.object.needs.iter().any(|n| n.starts_with("__asan_")), "{:?}", made.object.needs);
    if !has("cc") {
        return;
    }
    let d = Dir::new();
    d.object("plain", &made);
    d.file(
        "small.c",
        "#define _POSIX_C_SOURCE 200809L\n#include <stdlib.h>\n#include \"plain.h\"\nstatic void *of(size_t bytes) { void *p = 0; if (posix_memalign(&p, 64, bytes)) abort(); return p; }
        int main(int n, char **w) { (void)w; float *x = of(24), *y = of(24); void *in[] = {x, y}, *out[] = {of(n > 1 ? 24 : 4), of(4)};
        for (int i = 0; i < 6; ++i) x[i] = y[i] = 1; return plain_run(in, out, of(PLAIN_TEMPORARY_BYTES + 64), 0); }\n",
    );
    let linked = Command::new("cc")
        .args(["-fsanitize=address", "small.c", "plain.o", "-o", "small"])
        .current_dir(d.0.path())
        .output();
    if !linked.is_ok_and(|o| o.status.success()) {
        skipped("the C compiler has no AddressSanitizer");
        return;
    }
    let run = |words: &[&str]| {
        Command::new(d.path("small")).args(words).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap()
    };
    let fine = run(&["fits"]);
    assert!(fine.status.success(), "{}", String::from_utf8_lossy(&fine.stderr));
    let small = run(&[]);
    let said = String::from_utf8_lossy(&small.stderr).into_owned();
    assert!(
        !small.status.success() && said.contains("heap-buffer-overflow") && said.contains("plain."),
        "{said}"
    );
}

#[test]
fn data_objects_have_their_symbols() {
    let bytes = ahead::data_object(&options("m"), &[("m_metadata".into(), b"{\"a\":1}".to_vec())]).unwrap();
    assert_eq!(&bytes[..4], b"\x7fELF");
    assert!(bytes.windows(7).any(|w| w == b"{\"a\":1}") && bytes.windows(10).any(|w| w == b"m_metadata"));
}
