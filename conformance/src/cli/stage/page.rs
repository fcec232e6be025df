//! The optimized program as a page for a browser: instructions with links between operands and users, how
//! each is lowered and where its result is stored; fusions unfold; a map of memory over the program's events.
//!
//! **Invariants:** the page needs nothing beside itself; what comes from the program is text, never markup.

use std::fmt::Write;

use hlo::print::PrintOptions;
use hlo::print::{ShapeStyle, print_instruction, print_shape};
use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_opt::buffers::{Assigned, Placed, placed, title};
use rustc_hash::{FxHashMap, FxHashSet};

use hlo_triage::report::{self, html::escape};

/// Larger maps are not drawn: browsers take no more.
const MAX_DRAWN: usize = 20_000;

/// Width and height of a map of memory in pixels.
const MAP: (f64, f64) = (1100.0, 360.0);

const HEAD: &str = "<!doctype html>\n<html><head><meta charset=\"utf-8\">\n<style>
body{font:13px/1.45 ui-monospace,monospace;margin:1.5em;color:#222;background:#fff}
h1{font-size:1.3em}h2{font-size:1.1em;margin-top:1.6em}
table{border-collapse:collapse}td,th{padding:1px .8em 1px 0;text-align:left;vertical-align:top;white-space:nowrap}
th{color:#777;font-weight:normal;border-bottom:1px solid #ccc}
a{color:#06c;text-decoration:none}a:hover{text-decoration:underline}
tr:target,rect:target{background:#ffd;fill:#fc3}
details{margin-left:1em}summary{cursor:pointer;color:#777}
.n{text-align:right}.g{color:#777}pre{margin:.2em 0 .2em 1em;white-space:pre-wrap}
svg{border:1px solid #ccc;background:#fafafa}rect{stroke:#fff;stroke-width:.5}
</style>\n";

/// The page of a lowered module whose buffers are assigned; `lowered` says how instructions are.
pub(super) fn page(module: &Module, assigned: &Assigned, lowered: &FxHashMap<InstrId, String>) -> String {
    let mut out = String::from(HEAD);
    let name = escape(&module.name);
    let a = &assigned.assignment;
    let placed = placed(module, assigned);
    let _ = write!(
        out,
        "<title>{name}</title></head><body>\n<h1>{name}</h1>\n<p>peak {} (at least {} for any assignment), temporaries {}</p>\n",
        report::bytes(a.peak_bytes),
        report::bytes(a.lower_bound_bytes),
        report::bytes(
            placed.iter().filter(|p| is_arena(assigned, p)).map(|p| p.offset + p.bytes).max().unwrap_or(0)
        ),
    );
    let mut seen = FxHashSet::default();
    let mut stack = vec![module.entry()];
    while let Some(computation) = stack.pop() {
        if !seen.insert(computation) {
            continue;
        }
        let _ = writeln!(
            out,
            "<h2 id=\"c{}\">{}</h2>",
            computation.index(),
            escape(&module.computation(computation).name)
        );
        table(module, computation, assigned, lowered, &mut out);
        let mut below = Vec::new();
        for id in module.instructions(computation) {
            let instr = module.instr(id);
            if matches!(instr.opcode, Opcode::While | Opcode::Conditional | Opcode::Call) {
                below.extend(instr.attrs.called_computations());
            }
        }
        stack.extend(below.into_iter().rev());
    }
    let _ = writeln!(
        out,
        "<h2>Memory</h2>\n<p class=\"g\">events from left to right, addresses from top to bottom</p>"
    );
    for (number, allocation) in (0..).zip(&a.allocations) {
        let first = placed.partition_point(|p| p.allocation < number);
        let here = &placed[first..first + placed[first..].partition_point(|p| p.allocation == number)];
        let heading = format!("{}, {}", title(assigned, number), report::bytes(allocation.bytes));
        let open = if here.first().is_some_and(|p| is_arena(assigned, p)) { " open" } else { "" };
        let _ = writeln!(out, "<details{open}><summary>{}</summary>", escape(&heading));
        map(here, allocation.bytes, &mut out);
        let _ = writeln!(out, "</details>");
    }
    out.push_str("</body></html>\n");
    out
}

fn is_arena(assigned: &Assigned, placed: &Placed) -> bool {
    let kind = assigned.assignment.allocations.get(placed.allocation as usize).map(|a| a.kind);
    kind == Some(hlo_opt::buffers::AllocationKind::Arena)
}

/// The instructions of a computation.
fn table(
    module: &Module,
    computation: ComputationId,
    assigned: &Assigned,
    lowered: &FxHashMap<InstrId, String>,
    out: &mut String,
) {
    out.push_str("<table><tr><th>instruction<th>opcode<th>shape<th>operands<th>users<th>by<th>place</tr>\n");
    for id in module.instructions(computation) {
        let instr = module.instr(id);
        let kind = instr.attrs.fusion_kind().map(|k| format!(" {}", k.text())).unwrap_or_default();
        let links = |ids: &mut dyn Iterator<Item = InstrId>| {
            ids.map(|i| link(module, i)).collect::<Vec<_>>().join(" ")
        };
        let mut slices: Vec<String> = assigned
            .slices_of(id)
            .filter(|s| s.bytes > 0)
            .take(4)
            .map(|s| format!("{} + {}", title(assigned, s.allocation), report::grouped(s.offset)))
            .collect();
        if assigned.slices_of(id).len() > 4 {
            slices.push("...".to_owned());
        }
        let _ = writeln!(
            out,
            "<tr id=\"i{}\"><td>{}{}<td>{}{kind}<td>{}<td>{}<td>{}<td class=\"g\">{}<td class=\"g\">{}</tr>",
            id.index(),
            if module.root(computation) == id { "<b>ROOT</b> " } else { "" },
            escape(&instr.name),
            instr.opcode.name(),
            escape(&print_shape(&instr.shape.without_layout(), ShapeStyle::WithoutLayout)),
            links(&mut instr.operands().iter().copied()),
            links(&mut module.users(id).iter().map(|u| u.user)),
            lowered.get(&id).map_or("", String::as_str),
            escape(&slices.join(", ")),
        );
        let inside: Vec<ComputationId> = match instr.opcode {
            Opcode::While | Opcode::Conditional | Opcode::Call => Vec::new(),
            _ => instr.attrs.called_computations().to_vec(),
        };
        for inner in inside {
            let _ = write!(
                out,
                "<tr><td colspan=7><details><summary>{}</summary><pre>",
                escape(&module.computation(inner).name)
            );
            for id in module.instructions(inner) {
                let _ = writeln!(
                    out,
                    "{}",
                    escape(&print_instruction(module, id, &PrintOptions::source(module)))
                );
            }
            out.push_str("</pre></details></tr>\n");
        }
    }
    out.push_str("</table>\n");
}

fn link(module: &Module, id: InstrId) -> String {
    format!("<a href=\"#i{}\">{}</a>", id.index(), escape(&module.instr(id).name))
}

/// The contents of an allocation over time.
fn map(placed: &[Placed], bytes: u64, out: &mut String) {
    if placed.len() > MAX_DRAWN || bytes == 0 {
        let _ =
            writeln!(out, "<p class=\"g\">{} values: not drawn</p>", report::grouped(placed.len() as u64));
        return;
    }
    let end = placed.iter().map(|p| p.to).max().unwrap_or(1).max(1);
    let (x, y) = (MAP.0 / f64::from(end), MAP.1 / bytes as f64);
    let _ = writeln!(out, "<svg width=\"{}\" height=\"{}\">", MAP.0, MAP.1);
    for (i, p) in placed.iter().enumerate() {
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"hsl({} 55% 62%)\"><title>{}\n{} at {}, events {}..{}</title></rect>",
            f64::from(p.from) * x,
            p.offset as f64 * y,
            (f64::from(p.to.saturating_sub(p.from)) * x).max(1.0),
            (p.bytes as f64 * y).max(0.5),
            i * 47 % 360,
            escape(&p.name),
            report::bytes(p.bytes),
            report::grouped(p.offset),
            p.from,
            p.to
        );
    }
    out.push_str("</svg>\n");
}
