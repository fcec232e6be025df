//! Programs for Graphviz: a cluster for each computation, dotted edges from calls to their callees.

use std::fmt::Write as _;

use super::{Family, Picture, cost_text};
use hlo_triage::report::html::shorten;

/// The longest shape in a node.
const MAX_SHAPE_CHARS: usize = 80;

/// The picture.
pub fn write(picture: &Picture<'_>) -> String {
    let module = picture.module;
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quoted(&module.name));
    out.push_str("  rankdir=TB; compound=true; fontname=\"sans-serif\";\n");
    out.push_str("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n");
    for drawn in &picture.computations {
        let _ = writeln!(
            out,
            "  subgraph cluster_{} {{\n    label={};",
            drawn.id.index(),
            quoted(&module.computation(drawn.id).name)
        );
        let root = module.computation(drawn.id).root();
        for &id in &drawn.instructions {
            let instr = module.instr(id);
            let shape = shorten(&instr.shape.to_string(), MAX_SHAPE_CHARS);
            let label = format!("{}\n{}\n{shape}", instr.name, instr.opcode);
            let cost = picture.costs.get(&id).map(cost_text).unwrap_or_default();
            let _ = writeln!(
                out,
                "    i{} [label={}, tooltip={}, fillcolor=\"{}\"{}];",
                id.index(),
                quoted(&label),
                quoted(&cost),
                color(Family::of(instr.opcode)),
                if root == Some(id) { ", penwidth=2" } else { "" }
            );
        }
        out.push_str("  }\n");
    }
    for drawn in &picture.computations {
        for &(from, to) in &drawn.edges {
            let (from, to) = (drawn.instructions[from], drawn.instructions[to]);
            let _ = writeln!(out, "  i{} -> i{};", from.index(), to.index());
        }
        for &id in &drawn.instructions {
            for callee in module.instr(id).attrs.called_computations() {
                if let Some(root) = module.computation(callee).root() {
                    let _ = writeln!(
                        out,
                        "  i{} -> i{} [style=dotted, lhead=cluster_{}, constraint=false];",
                        id.index(),
                        root.index(),
                        callee.index()
                    );
                }
            }
        }
    }
    out.push_str("}\n");
    out
}

/// A light colour of a family, the same in all pictures.
pub(super) fn color(family: Family) -> &'static str {
    match family {
        Family::Source => "#fff4d1",
        Family::Elementwise => "#ffe4d6",
        Family::Contraction => "#cfe0fb",
        Family::Reduction => "#e3d5f7",
        Family::Movement => "#d7efd9",
        Family::Name => "#eeeeee",
        Family::Control => "#d3ecef",
        Family::Collective => "#fbd5e3",
    }
}

/// A quoted ID: quotes and backslashes are escaped, line ends are `\n`, control characters are replaced.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
