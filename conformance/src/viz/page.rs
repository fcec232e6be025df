//! The page with the viewer: the program as data, laid out, and a script that draws it on a canvas.
//!
//! **Invariants:** the page is self-contained, and its policy forbids the browser to load anything; what
//! comes from the program is one JSON text that cannot end an element, and is shown as text alone.

use serde::Serialize;

use super::memory::{Point, estimate, thinned};
use super::{Family, Picture};
use hlo_triage::report::graph::{NODE_HEIGHT, NODE_WIDTH};
use hlo_triage::report::html::{escape, shorten};

const SCRIPT: &str = include_str!("viewer.js");
const STYLE: &str = include_str!("viewer.css");
const BODY: &str = include_str!("viewer.html");

/// The maximum number of points of the curve of memory.
const MAX_POINTS: usize = 4000;
/// The longest shape that is written.
const MAX_SHAPE_CHARS: usize = 400;

#[derive(Serialize)]
struct Data<'a> {
    file: &'a str,
    module: &'a str,
    node: (f64, f64),
    opcodes: Vec<String>,
    /// For each opcode the number of its family.
    family: Vec<usize>,
    families: Vec<&'static str>,
    shapes: Vec<String>,
    /// The entry first.
    computations: Vec<Computation<'a>>,
    instructions: Vec<Instruction<'a>>,
    memory: Memory,
    /// Microseconds of a whole run, if there was one.
    total_us: Option<f64>,
}

#[derive(Serialize)]
struct Computation<'a> {
    name: &'a str,
    /// Numbers of its instructions, in the order of the text.
    first: usize,
    count: usize,
    root: Option<usize>,
    /// Positions from `first`; from `count` on bends.
    rows: Vec<Vec<usize>>,
    x: Vec<i64>,
    /// From, to, bends.
    edges: Vec<Vec<usize>>,
}

/// A record of few bytes: a page has many.
#[derive(Serialize)]
struct Instruction<'a>(
    // Name.
    &'a str,
    // Opcode, shape.
    usize,
    usize,
    // Operands, by number.
    Vec<usize>,
    // Called computations, by number.
    Vec<usize>,
    // Attributes.
    String,
    // Operations, bytes, executions as estimated.
    u64,
    u64,
    Option<u64>,
    // Executions and microseconds as measured.
    Option<(u64, f64)>,
    // Where it comes from.
    String,
);

#[derive(Serialize)]
struct Memory {
    measured: bool,
    /// Instruction and bytes.
    points: Vec<(usize, u64)>,
}

/// The page.
///
/// # Panics
/// Never: what is written has no maps with keys that JSON cannot have.
pub fn write(picture: &Picture<'_>) -> String {
    let json = serde_json::to_string(&data(picture)).expect("records, lists, numbers and text are JSON");
    let title = format!("{}: {}", picture.module.name, picture.file);
    let mut out = String::with_capacity(json.len() + SCRIPT.len() + STYLE.len() + BODY.len() + 1024);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n",
    );
    out.push_str(&format!(
        "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{BODY}",
        escape(&title)
    ));
    out.push_str("<script type=\"application/json\" id=\"data\">");
    in_script(&json, &mut out);
    out.push_str("</script>\n<script>\n");
    out.push_str(SCRIPT);
    out.push_str("</script>\n</body>\n</html>\n");
    out
}

/// JSON as it may stand in a script element: nothing in it looks like markup, and it reads back the same.
fn in_script(json: &str, out: &mut String) {
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            '\u{7f}' => out.push_str("\\u007f"),
            c => out.push(c),
        }
    }
}

fn data<'a>(picture: &'a Picture<'_>) -> Data<'a> {
    let module = picture.module;
    // Ids have gaps where something was removed; records are numbered without.
    let mut number = vec![usize::MAX; module.instruction_capacity()];
    let mut computation_number = vec![usize::MAX; module.computation_capacity()];
    let mut next = 0;
    for (c, drawn) in picture.computations.iter().enumerate() {
        computation_number[drawn.id.index()] = c;
        for id in &drawn.instructions {
            number[id.index()] = next;
            next += 1;
        }
    }
    let mut opcodes = Table::default();
    let mut families = Vec::new();
    let mut shapes = Table::default();
    let mut instructions = Vec::with_capacity(next);
    for &id in picture.computations.iter().flat_map(|d| &d.instructions) {
        let instr = module.instr(id);
        let opcode = opcodes.number(instr.opcode.name());
        if opcode == families.len() {
            families.push(Family::of(instr.opcode) as usize);
        }
        let cost = picture.costs.get(&id);
        let spent = picture.profile.as_ref().and_then(|p| p.spent.get(&id));
        instructions.push(Instruction(
            &instr.name,
            opcode,
            shapes.number(&shorten(&instr.shape.to_string(), MAX_SHAPE_CHARS)),
            instr.operands().iter().map(|o| number[o.index()]).filter(|&n| n != usize::MAX).collect(),
            instr.attrs.called_computations().iter().map(|c| computation_number[c.index()]).collect(),
            picture.attributes(id),
            cost.map_or(0, |c| c.operations),
            cost.map_or(0, |c| c.bytes),
            cost.and_then(|c| c.executions),
            spent.map(|s| (s.executions, microseconds(s.time))),
            origin(picture, id),
        ));
    }
    let computations = picture.computations.iter().map(|drawn| {
        let layered = &drawn.layered;
        let first = drawn.instructions.first().map_or(0, |id| number[id.index()]);
        let edges = drawn.edges.iter().zip(&layered.bends);
        Computation {
            name: &module.computation(drawn.id).name,
            first,
            count: drawn.instructions.len(),
            root: module.computation(drawn.id).root().map(|r| number[r.index()]),
            rows: layered.rows.clone(),
            x: layered.x.iter().map(|x| x.round() as i64).collect(),
            edges: edges.map(|(&(f, t), bends)| [&[f, t], &bends[..]].concat()).collect(),
        }
    });
    let measured = picture.profile.as_ref().map(|p| &p.memory).filter(|m| !m.is_empty());
    let points = measured.map_or_else(|| estimate(module), Clone::clone);
    let points = thinned(&points, MAX_POINTS);
    let point = |p: &Point| (number[p.after.index()], p.bytes);
    Data {
        file: picture.file,
        module: &module.name,
        node: (NODE_WIDTH, NODE_HEIGHT),
        computations: computations.collect(),
        instructions,
        opcodes: opcodes.rows,
        family: families,
        families: Family::ALL.iter().map(|f| f.name()).collect(),
        shapes: shapes.rows,
        memory: Memory { measured: measured.is_some(), points: points.iter().map(point).collect() },
        total_us: picture.profile.as_ref().map(|p| microseconds(p.total)),
    }
}

fn microseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// `jit(f)/add, model.py:12`, as far as the metadata says.
fn origin(picture: &Picture<'_>, id: hlo::InstrId) -> String {
    let Some(metadata) = picture.module.instr(id).attrs.metadata() else { return String::new() };
    let mut parts = Vec::new();
    if let Some(name) = metadata.op_name.as_ref().filter(|n| !n.is_empty()) {
        parts.push(name.to_string());
    }
    if let Some(file) = metadata.source_file.as_ref().filter(|f| !f.is_empty()) {
        let line = metadata.source_line.map_or_else(String::new, |l| format!(":{l}"));
        parts.push(format!("{file}{line}"));
    }
    shorten(&parts.join(", "), MAX_SHAPE_CHARS)
}

/// Texts and the numbers that stand for them.
#[derive(Default)]
struct Table {
    rows: Vec<String>,
    numbers: rustc_hash::FxHashMap<String, usize>,
}

impl Table {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&n) = self.numbers.get(text) {
            return n;
        }
        let n = self.rows.len();
        self.rows.push(text.to_owned());
        self.numbers.insert(text.to_owned(), n);
        n
    }
}
