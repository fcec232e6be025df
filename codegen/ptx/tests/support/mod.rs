//! What XLA:GPU wrote of a program, read as far as running its kernels needs: the launch list, the buffer
//! assignment, and which instruction reads and writes which buffers.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::print_stderr, reason = "a test says that it skips")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use hlo_ptx::{Launch, Loaded, Memory, Options, Outcome};

/// The folder of a group of the corpus, where there is one.
pub(crate) fn corpus(group: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus").join(group);
    if !root.is_dir() {
        eprintln!("skipped: no ../shared/corpus/{group}");
        return None;
    }
    Some(root)
}

/// An array of an npz file: its bytes.
pub(crate) fn arrays(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(file) = std::fs::File::open(path) else { return BTreeMap::new() };
    let mut zip = zip::ZipArchive::new(file).unwrap();
    let mut out = BTreeMap::new();
    for i in 0..zip.len() {
        let mut entry = zip.by_index(i).unwrap();
        let name = entry.name().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        // \x93NUMPY, version, length of the header, header, data in C order.
        let (length, start) = if bytes[6] == 1 {
            (u16::from_le_bytes([bytes[8], bytes[9]]) as usize, 10)
        } else {
            (u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize, 12)
        };
        assert!(String::from_utf8_lossy(&bytes[start..start + length]).contains("'fortran_order': False"));
        out.insert(name, bytes[start + length..].to_vec());
    }
    out
}

/// One line of the launch list.
#[derive(Clone, Debug)]
pub(crate) struct Thunk {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u64,
}

pub(crate) fn thunks(text: &str) -> Vec<Thunk> {
    let dims = |s: &str, key: &str| -> [u32; 3] {
        let Some(at) = s.find(key) else { return [1; 3] };
        let inner = &s[at + key.len()..];
        let inner = &inner[inner.find('[').unwrap() + 1..inner.find(']').unwrap()];
        let v: Vec<u32> = inner.split(',').map(|x| x.trim().parse().unwrap()).collect();
        [v[0], v[1], v[2]]
    };
    text.lines()
        .filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        .map(|l| {
            let rest = l.split_once(": ").unwrap().1.trim_start();
            let kind = rest.split([' ', '[']).next().unwrap().to_owned();
            let after = rest.split_once("] ").map_or("", |x| x.1);
            let name = after.split_whitespace().next().unwrap_or("").to_owned();
            let shared = after
                .split_once("shared_memory: ")
                .map_or(0, |x| x.1.split(' ').next().unwrap().parse().unwrap());
            Thunk { kind, name, grid: dims(after, "grid:"), block: dims(after, "threads:"), shared }
        })
        .collect()
}

/// An instruction of the entry computation.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) name: String,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<String>,
    /// Of a parameter its number, of get-tuple-element its index.
    pub(crate) index: usize,
    /// Leaves of the shape: 1, or of a tuple their number.
    pub(crate) leaves: usize,
    pub(crate) is_tuple: bool,
    pub(crate) root: bool,
    /// Shape and text between the parentheses, of constants.
    pub(crate) text: String,
}

fn balanced(s: &str) -> usize {
    let mut depth = 0;
    for (i, c) in s.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth -= 1;
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    s.len()
}

fn split_top(s: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in s.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(s[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !s[start..].trim().is_empty() {
        out.push(s[start..].trim());
    }
    out
}

pub(crate) fn entry(text: &str) -> Vec<Instruction> {
    let start = text.find("\nENTRY").unwrap();
    let mut out = Vec::new();
    for line in text[start + 1..].lines().skip(1) {
        let line = line.trim();
        if line == "}" {
            break;
        }
        let root = line.starts_with("ROOT ");
        let line = line.trim_start_matches("ROOT ");
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        let is_tuple = rest.starts_with('(');
        let end = if is_tuple { balanced(rest) + 1 } else { rest.find(' ').unwrap() };
        let (shape, rest) = (&rest[..end], rest[end..].trim_start());
        let open = rest.find('(').unwrap();
        let close = open + balanced(&rest[open..]);
        let inner = &rest[open + 1..close];
        let opcode = rest[..open].to_owned();
        let operands =
            split_top(inner).iter().filter_map(|o| o.rfind('%').map(|at| o[at + 1..].to_owned())).collect();
        let index = if opcode == "parameter" {
            inner.parse().unwrap()
        } else {
            rest.split_once("index=")
                .map_or(0, |x| x.1.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap_or(0))
        };
        let leaves = if is_tuple { split_top(&shape[1..shape.len() - 1]).len() } else { 1 };
        out.push(Instruction {
            name: name.trim_start_matches('%').to_owned(),
            opcode,
            operands,
            index,
            leaves,
            is_tuple,
            root,
            text: format!("{shape} {inner}"),
        });
    }
    out
}

/// Allocations by number: size; and values by name: allocation, offset, size.
pub(crate) struct Buffers {
    pub(crate) allocations: BTreeMap<usize, u64>,
    pub(crate) values: BTreeMap<String, (usize, u64, u64)>,
}

pub(crate) fn buffers(text: &str) -> Buffers {
    let (mut allocations, mut values, mut current) = (BTreeMap::new(), BTreeMap::new(), 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("allocation ") {
            let (n, rest) = rest.split_once(": size ").unwrap();
            current = n.parse().unwrap();
            allocations.insert(current, rest.split(',').next().unwrap().parse().unwrap());
        } else if let Some(rest) = line.trim().strip_prefix("value: <") {
            let (value, rest) = rest.split_once('>').unwrap();
            let name = value.split_whitespace().nth(1).unwrap().to_owned();
            let number = |key: &str| -> u64 {
                rest.split_once(key).unwrap().1.split([',', ')']).next().unwrap().parse().unwrap()
            };
            values.insert(name, (current, number("offset="), number("size=")));
        }
    }
    Buffers { allocations, values }
}

/// A program of the corpus that consists of kernels and copies.
pub(crate) struct Program {
    pub(crate) thunks: Vec<Thunk>,
    pub(crate) entry: Vec<Instruction>,
    pub(crate) buffers: Buffers,
    pub(crate) modules: Vec<(PathBuf, String)>,
}

pub(crate) enum Ran {
    Results(Vec<Vec<u8>>, Vec<Outcome>),
    /// It has steps that are no kernels and copies, or is too large.
    Other(String),
    Failed(String),
}

pub(crate) fn program(folder: &Path) -> Option<Program> {
    let read = |suffix: &str| {
        std::fs::read_dir(folder).ok()?.find_map(|f| {
            let f = f.ok()?.path();
            f.to_string_lossy().ends_with(suffix).then(|| std::fs::read_to_string(f).unwrap())
        })
    };
    let mut modules = Vec::new();
    for f in std::fs::read_dir(folder).ok()? {
        let f = f.ok()?.path();
        if f.extension().is_some_and(|e| e == "ptx") {
            let text = std::fs::read_to_string(&f).unwrap();
            modules.push((f, text));
        }
    }
    modules.sort();
    Some(Program {
        thunks: thunks(&read("thunk_sequence.txt")?),
        entry: entry(&read("after_optimizations.txt")?),
        buffers: buffers(&read("buffer-assignment.txt")?),
        modules,
    })
}

impl Program {
    fn get(&self, name: &str) -> Option<&Instruction> {
        self.entry.iter().find(|i| i.name == name)
    }

    /// The names of the values that a reference (`%x`, `%x#1`) means, leaf by leaf.
    pub(crate) fn leaves(&self, reference: &str) -> Vec<String> {
        if let Some((name, index)) = reference.split_once('#') {
            return vec![self.leaves(name)[index.parse::<usize>().unwrap()].clone()];
        }
        let Some(i) = self.get(reference) else { return vec![reference.to_owned()] };
        match i.opcode.as_str() {
            "tuple" => i.operands.iter().flat_map(|o| self.leaves(o)).collect(),
            "bitcast" | "optimization-barrier" => self.leaves(&i.operands[0]),
            "get-tuple-element" => vec![self.leaves(&i.operands[0])[i.index].clone()],
            _ if i.is_tuple => (0..i.leaves).map(|n| format!("{}{{{n}}}", i.name)).collect(),
            _ => vec![i.name.clone()],
        }
    }

    /// Runs the program on its inputs. `edit` may change a module's text.
    pub(crate) fn run(&self, inputs: &[Vec<u8>], options: &Options, edit: &dyn Fn(&str) -> String) -> Ran {
        if let Some(t) = self.thunks.iter().find(|t| t.kind != "kCustomKernel" && t.kind != "kCopy") {
            return Ran::Other(t.kind.clone());
        }
        let mut memory = Memory::default();
        let mut loaded: Vec<Loaded> = Vec::new();
        for (path, text) in &self.modules {
            match hlo_ptx::lower::module(&edit(text)) {
                Ok(m) => loaded.push(memory.load(m).unwrap()),
                Err(d) => return Ran::Failed(format!("{}: {}", path.display(), d[0])),
            }
        }
        let mut base = BTreeMap::new();
        for (&n, &size) in &self.buffers.allocations {
            match memory.allocate(&format!("allocation {n}"), size) {
                Ok(a) => base.insert(n, a),
                Err(e) => return Ran::Other(e.to_string()),
            };
        }
        let buffer_of = |name: &str| -> Option<(u64, u64)> {
            let symbol = format!("buffer_for_{}", name.replace('.', "_"));
            if let Some(s) = loaded.iter().find_map(|l| l.symbol(&symbol)) {
                return Some((s.0, self.buffers.values.get(name).map_or(s.1, |v| v.2)));
            }
            let (n, offset, size) =
                self.buffers.values.get(name).or_else(|| self.buffers.values.get(&format!("{name}{{}}")))?;
            Some((base[n] + offset, *size))
        };
        for i in self.entry.iter().filter(|i| i.opcode == "parameter") {
            let Some((at, size)) = buffer_of(&i.name) else { continue };
            let Some(data) = inputs.get(i.index) else { return Ran::Other("no input".into()) };
            if data.len() as u64 != size {
                return Ran::Other("a parameter of packed elements".into());
            }
            memory.write(at, data).unwrap();
        }
        // XLA's runtime fills constants that the module only reserves.
        for i in self.entry.iter().filter(|i| i.opcode == "constant") {
            let (Some((at, size)), Some(data)) = (buffer_of(&i.name), constant(&i.text)) else { continue };
            if data.len() as u64 == size {
                memory.write(at, &data).unwrap();
            }
        }
        let mut outcomes = Vec::new();
        let mut done = std::collections::BTreeSet::new();
        let mut copies = self.entry.iter().filter(|i| i.opcode == "copy");
        for t in &self.thunks {
            if t.kind == "kCopy" {
                let Some(i) = copies.next() else { return Ran::Other("a copy without instruction".into()) };
                let (from, to) = (buffer_of(&self.leaves(&i.operands[0])[0]), buffer_of(&i.name));
                let (Some((from, bytes)), Some((to, _))) = (from, to) else {
                    return Ran::Other("a copy without buffer".into());
                };
                if bytes > 0 {
                    let data = memory.read(from, bytes).unwrap().to_vec();
                    memory.write(to, &data).unwrap();
                }
                continue;
            }
            // Kernels are launched in the order of their instructions, and a kernel may serve several of
            // them.
            let quiet = ["parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy"];
            let stem = |n: &str| n.replace(['.', '-'], "_");
            let related = |i: &&Instruction| {
                !quiet.contains(&i.opcode.as_str())
                    && (stem(&i.name) == t.name || same_stem(&stem(&i.name), &t.name))
            };
            let Some(i) = self
                .entry
                .iter()
                .filter(related)
                .find(|i| !done.contains(&i.name))
                .or_else(|| self.entry.iter().rfind(related))
            else {
                return Ran::Other(format!("no instruction of {}", t.name));
            };
            done.insert(i.name.clone());
            let Some(l) = loaded.iter().find(|l| l.module.kernel(&t.name).is_some()) else {
                return Ran::Other(format!("no kernel {}", t.name));
            };
            let params = l.module.functions[l.module.kernel(&t.name).unwrap()].params.len();
            let operands: Vec<String> = i.operands.iter().flat_map(|o| self.leaves(o)).collect();
            let results = self.leaves(&i.name);
            let names: Vec<String> =
                if params == results.len() && !operands.is_empty() && params < operands.len() + results.len()
                {
                    results
                } else {
                    operands.into_iter().chain(results).collect()
                };
            if names.len() != params {
                return Ran::Other(format!("{} has {params} parameters for {names:?}", t.name));
            }
            let mut arguments = Vec::new();
            for n in &names {
                match buffer_of(n) {
                    Some((a, _)) => arguments.push(a),
                    None => return Ran::Other(format!("no buffer of {n}")),
                }
            }
            let launch = Launch::new(t.grid, t.block, t.shared, &arguments);
            match hlo_ptx::launch(l, &t.name, &launch, &mut memory, options) {
                Ok(o) => outcomes.push(o),
                Err(f) => return Ran::Failed(f.to_string()),
            }
        }
        let root = self.entry.iter().find(|i| i.root).unwrap();
        let mut results = Vec::new();
        for leaf in self.leaves(&root.name) {
            let Some((at, size)) = buffer_of(&leaf) else {
                return Ran::Other(format!("no buffer of the result {leaf}"));
            };
            results.push(if size == 0 { Vec::new() } else { memory.read(at, size).unwrap().to_vec() });
        }
        Ran::Results(results, outcomes)
    }
}

/// Whether two names are of one family: `loop_add_fusion_1` and `loop_add_fusion`.
fn same_stem(a: &str, b: &str) -> bool {
    let stem = |s: &str| s.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned();
    stem(a) == stem(b)
}

/// The bytes of a constant's text: its shape, and literals between braces.
fn constant(text: &str) -> Option<Vec<u8>> {
    let (shape, values) = text.split_once(' ')?;
    let ty = shape.split('[').next()?;
    let mut out = Vec::new();
    for v in values.split(|c: char| "{}, ".contains(c)).filter(|v| !v.is_empty()) {
        let f = || match v {
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            "nan" => Some(f64::NAN),
            v => v.parse::<f64>().ok(),
        };
        match ty {
            "s32" => out.extend(v.parse::<i32>().ok()?.to_le_bytes()),
            "u32" => out.extend(v.parse::<u32>().ok()?.to_le_bytes()),
            "s64" => out.extend(v.parse::<i64>().ok()?.to_le_bytes()),
            "s8" | "u8" => out.push(v.parse::<i16>().ok()? as u8),
            "pred" => out.push(u8::from(v == "true" || v == "1")),
            "f32" => out.extend((f()? as f32).to_le_bytes()),
            "f64" => out.extend(f()?.to_le_bytes()),
            _ => return None,
        }
    }
    Some(out)
}

/// The elements of an array as numbers; complex ones are two.
pub(crate) fn numbers(ty: &str, bytes: &[u8]) -> Option<Vec<f64>> {
    let each = |n: usize, f: &dyn Fn(&[u8]) -> f64| bytes.chunks(n).map(f).collect::<Vec<f64>>();
    Some(match ty {
        "f32" | "c64" => each(4, &|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))),
        "f64" | "c128" => each(8, &|b| f64::from_le_bytes(b.try_into().unwrap())),
        "f16" => each(2, &|b| half::f16::from_le_bytes(b.try_into().unwrap()).to_f64()),
        "bf16" => each(2, &|b| half::bf16::from_le_bytes(b.try_into().unwrap()).to_f64()),
        "s8" => each(1, &|b| f64::from(b[0] as i8)),
        "u8" | "pred" => each(1, &|b| f64::from(b[0])),
        "s16" => each(2, &|b| f64::from(i16::from_le_bytes(b.try_into().unwrap()))),
        "u16" => each(2, &|b| f64::from(u16::from_le_bytes(b.try_into().unwrap()))),
        "s32" => each(4, &|b| f64::from(i32::from_le_bytes(b.try_into().unwrap()))),
        "u32" => each(4, &|b| f64::from(u32::from_le_bytes(b.try_into().unwrap()))),
        _ => return None,
    })
}

/// Whether a result passes the check of case.json; `Err` says where not.
pub(crate) fn check(result: &serde_json::Value, got: &[u8], want: &[u8]) -> Result<(), String> {
    let ty = result["type"].as_str().unwrap();
    if got == want {
        return Ok(());
    }
    if got.len() != want.len() {
        return Err(format!("{} bytes, expected {}", got.len(), want.len()));
    }
    let (Some(g), Some(w)) = (numbers(ty, got), numbers(ty, want)) else {
        return Err(format!("bytes of {ty} differ"));
    };
    let c = &result["check"];
    let n = |k: &str| c[k].as_f64().unwrap_or(0.0);
    for (i, (g, w)) in g.iter().zip(&w).enumerate() {
        if g == w || g.is_nan() && w.is_nan() {
            continue;
        }
        let d = (g - w).abs();
        let ok = match c["kind"].as_str().unwrap() {
            "close" => d <= n("abs") || d <= n("rel") * w.abs(),
            "abs" => d <= n("atol"),
            "ulp" => {
                let unit = match ty {
                    "f16" => 2f64.powi(-10),
                    "bf16" => 2f64.powi(-7),
                    "f64" | "c128" => 2f64.powi(-52),
                    _ => 2f64.powi(-23),
                };
                d <= n("max_ulp") * unit * w.abs()
            }
            _ => false,
        };
        if !ok {
            return Err(format!("element {i}: {g:e}, expected {w:e}"));
        }
    }
    Ok(())
}

/// The bytes of the leaves of a shape, with their element types.
pub(crate) fn leaves_of(shape: &str) -> Vec<(String, u64)> {
    let shape = shape.trim();
    if let Some(inner) = shape.strip_prefix('(') {
        let inner = &inner[..inner.rfind(')').unwrap_or(inner.len())];
        return split_top(inner)
            .into_iter()
            .flat_map(|s| leaves_of(s.rsplit("*/").next().unwrap_or(s)))
            .collect();
    }
    let Some((ty, rest)) = shape.split_once('[') else { return Vec::new() };
    let dims = rest.split(']').next().unwrap_or("");
    let count: u64 =
        dims.split(',').filter(|d| !d.is_empty()).map(|d| d.trim().parse::<u64>().unwrap_or(1)).product();
    let bits: u64 = match ty {
        "s4" | "u4" => 4,
        "pred" | "s8" | "u8" => 8,
        "f16" | "bf16" | "s16" | "u16" => 16,
        "f64" | "s64" | "u64" | "c64" => 64,
        "c128" => 128,
        t if t.starts_with("f8") => 8,
        _ => 32,
    };
    vec![(ty.to_owned(), (count * bits).div_ceil(8))]
}

/// The shape of every instruction of a module's text, by name, and the operands of those that may be kernels.
pub(crate) fn shapes(text: &str) -> BTreeMap<String, (String, String, Vec<String>)> {
    let mut out = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches("ROOT ");
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        let Some(name) = name.strip_prefix('%') else { continue };
        let end =
            if rest.starts_with('(') { balanced(rest) + 1 } else { rest.find(' ').unwrap_or(rest.len()) };
        let (shape, rest) = (&rest[..end.min(rest.len())], rest[end.min(rest.len())..].trim_start());
        let Some(open) = rest.find('(') else { continue };
        let close = open + balanced(&rest[open..]);
        let operands = split_top(&rest[open + 1..close.min(rest.len())])
            .iter()
            .filter_map(|o| o.rfind('%').map(|at| o[at + 1..].to_owned()))
            .collect();
        out.insert(name.to_owned(), (shape.to_owned(), rest[..open].to_owned(), operands));
    }
    out
}

/// Plausible contents of a buffer of an element type: small numbers, small indices.
pub(crate) fn contents(ty: &str, bytes: u64) -> Vec<u8> {
    let n = bytes as usize;
    let mut out = Vec::with_capacity(n + 8);
    let mut i = 0_u32;
    while out.len() < n {
        match ty {
            "f32" | "c64" => out.extend(((i % 7) as f32 * 0.25).to_le_bytes()),
            "f64" | "c128" => out.extend((f64::from(i % 7) * 0.25).to_le_bytes()),
            "f16" => out.extend(half::f16::from_f32((i % 7) as f32 * 0.25).to_le_bytes()),
            "bf16" => out.extend(half::bf16::from_f32((i % 7) as f32 * 0.25).to_le_bytes()),
            "s16" | "u16" => out.extend(((i % 3) as u16).to_le_bytes()),
            "s64" | "u64" => out.extend(u64::from(i % 3).to_le_bytes()),
            "s32" | "u32" => out.extend((i % 3).to_le_bytes()),
            _ => out.push((i % 2) as u8),
        }
        i += 1;
    }
    out.truncate(n);
    out
}
