//! A finding as a page: the program as a graph with what each instruction did, and the text beside it.
//!
//! **Invariants:** the page needs nothing but itself (no script, no font, no link out); it is well-formed as
//! XML too; whatever comes from the program passes through [`escape`]. It is bounded: of a large computation
//! the surroundings of what diverges are drawn, the rest unfolds up to [`MAX_DRAWN`], and beyond [`MAX_PAGE`]
//! nodes computations are only named.

use std::collections::VecDeque;
use std::fmt::Write as _;

use hlo::{ComputationId, InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{NODE_HEIGHT, NODE_WIDTH, layout};
use super::{count, grouped, text};
use crate::isolate::{Isolation, Row, Status};
use crate::replay::Divergence;
use hlo_execution::verdict::{ArrayVerdict, Class};

/// A larger computation is drawn in part,
const MAX_WHOLE_NODES: usize = 160;
/// with this many nodes.
const MAX_NEAR_NODES: usize = 30;
/// The maximum number of nodes of a computation that unfold.
const MAX_DRAWN: usize = 3000;
/// Computations are unfolded as long as no more nodes than this have been drawn; those on the way of a
/// divergence always are.
const MAX_UNFOLDED_NODES: usize = 80;
/// Drawings are made smaller, to fit, as far as they can be read.
const MIN_SCALE: f64 = 0.62;
/// The maximum number of nodes of a page.
const MAX_PAGE: usize = 12_000;
/// The maximum number of rows of the table of instructions.
const MAX_ROWS: usize = 1500;
/// How deep computations are folded into each other.
const MAX_DEPTH: usize = 24;

/// Text as it may stand in elements and attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = "
:root { color-scheme: light dark; --bg:#fff; --fg:#1c2128; --dim:#667080; --line:#d4d9e0; --card:#f6f7f9; --node:#fff; --edge:#9aa4b1;
  --wrong:#c62828; --wrongbg:#fde7e7; --und:#a86400; --undbg:#fff3d6; --exp:#1565c0; --expbg:#e6f0fc; --ok:#2e7d32; --okbg:#e9f5ea; }
@media (prefers-color-scheme: dark) { :root { --bg:#14171c; --fg:#dfe4ea; --dim:#8f9aa8; --line:#333b46; --card:#1c2027; --node:#20262e; --edge:#5b6675;
  --wrong:#ff7b72; --wrongbg:#4a1d1f; --und:#e3b341; --undbg:#41330f; --exp:#79b8ff; --expbg:#14304f; --ok:#6fce7f; --okbg:#17351d; } }
* { box-sizing: border-box; }
body { margin:0; background:var(--bg); color:var(--fg); font:14px/1.45 system-ui, sans-serif; }
header { padding:14px 20px; border-bottom:1px solid var(--line); }
h1 { font-size:18px; margin:0 0 4px; } h2 { font-size:15px; margin:18px 0 6px; }
code, pre, td, th, svg text { font-family: ui-monospace, Menlo, Consolas, monospace; }
code, pre { font-size:12.5px; } pre { background:var(--card); padding:10px; white-space:pre-wrap; overflow-wrap:anywhere; border:1px solid var(--line); border-radius:6px; }
main { display:grid; grid-template-columns:minmax(0,3fr) minmax(360px,2fr); gap:20px; padding:0 20px 30px; align-items:start; }
@media (max-width:1000px) { main { grid-template-columns:minmax(0,1fr); } }
.badge { display:inline-block; padding:1px 9px; border-radius:10px; font-weight:600; font-size:12.5px; }
.wrong { color:var(--wrong); } .badge.wrong { background:var(--wrongbg); } .undecided { color:var(--und); } .badge.undecided { background:var(--undbg); }
.explained { color:var(--exp); } .badge.explained { background:var(--expbg); } .same { color:var(--ok); } .badge.same { background:var(--okbg); } .dim { color:var(--dim); }
.scroll { overflow:auto; max-height:80vh; background:var(--card); border:1px solid var(--line); border-radius:6px; }
details { margin:8px 0; padding-left:10px; border-left:2px solid var(--line); } details > details { margin-left:4px; }
summary { cursor:pointer; } details.on-path { border-left-color:var(--wrong); }
table { border-collapse:collapse; width:100%; font-size:12px; } th, td { text-align:left; padding:2px 8px 2px 0; border-bottom:1px solid var(--line); white-space:nowrap; }
td.num, th.num { text-align:right; } th { color:var(--dim); font-weight:500; } a { color:inherit; }
.bars { display:grid; grid-template-columns:max-content 1fr max-content; gap:3px 10px; align-items:center; font-size:12.5px; }
.bar { height:12px; background:var(--exp); border-radius:2px; min-width:2px; } .bar.bad { background:var(--wrong); }
svg { display:block; margin:0 auto; } svg.fit { max-width:100%; height:auto; } svg .box { fill:var(--node); stroke:var(--edge); } svg .name { fill:var(--fg); font-size:12px; } svg .what { fill:var(--dim); font-size:10.5px; }
svg .edge { fill:none; stroke:var(--edge); stroke-width:1.1; } svg .edge.path { stroke:var(--wrong); stroke-width:2.6; }
svg .n.wrong .box { fill:var(--wrongbg); stroke:var(--wrong); stroke-width:2; } svg .n.undecided .box { fill:var(--undbg); stroke:var(--und); stroke-width:2; }
svg .n.explained .box { fill:var(--expbg); stroke:var(--exp); } svg .n.same .box { fill:var(--okbg); stroke:var(--ok); } svg .n.path .box { stroke:var(--wrong); stroke-width:2.4; }
svg .n.blamed .box { stroke-width:4; } svg .n.dead { opacity:.45; } svg .n:hover .box { stroke-width:3; } svg .n:target .box { stroke:var(--fg); stroke-width:4; }
.legend span { margin-right:12px; }
";

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The file, as the person named it.
    pub file: &'a str,
    /// The program.
    pub module: &'a Module,
    /// What was found.
    pub found: &'a Isolation,
    /// Commands to go on with.
    pub next: &'a [String],
}

impl Page<'_> {
    /// The page.
    pub fn write(&self) -> String {
        let mut out = String::new();
        let Page { file, module, found, next } = *self;
        let title = format!("{file}: {}", found.engine);
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"/><title>{}</title>\n<style>{STYLE}</style></head>\n<body>\n",
            escape(&title)
        );
        let class = self.class();
        let _ = write!(
            out,
            "<header><h1>{} <span class=\"badge {}\">{}</span></h1>\n<div>{}, {} instructions; <code>{}</code> compared with the interpreter</div>\n",
            escape(file),
            css(class),
            if found.diverges() { "diverges" } else { "nothing diverges" },
            escape(&module.name),
            grouped(hlo_engines::frontend::instruction_count(module) as u64),
            escape(&found.engine)
        );
        if let Some(b) = &found.blame {
            let _ = writeln!(
                out,
                "<div>blame: <a href=\"#i{}\" class=\"{}\">{}</a></div>",
                b.location.id.index(),
                css(b.class),
                escape(&text::blame(b))
            );
        }
        out.push_str("</header>\n<main>\n<section>\n");
        Graphs::new(*self).write(&mut out);
        out.push_str("</section>\n<section>\n");
        self.details(&mut out);
        if !next.is_empty() {
            let _ = writeln!(out, "<h2>Next</h2>\n<pre>{}</pre>", escape(&next.join("\n")));
        }
        self.table(&mut out);
        out.push_str("</section>\n</main>\n</body>\n</html>\n");
        out
    }

    fn class(&self) -> Class {
        let found = self.found;
        match (&found.blame, &found.replay) {
            (Some(b), _) => b.class,
            (None, _) if found.diverges() => Class::Wrong,
            (None, Ok(r)) => r.class(),
            (None, Err(_)) => Class::Same,
        }
    }

    fn details(&self, out: &mut String) {
        match &self.found.replay {
            Ok(r) => {
                out.push_str("<h2>Replay in place</h2>\n<table><tr><th>executions</th><th class=\"num\">number</th></tr>\n");
                for (what, n, class) in [
                    ("compared", r.compared, ""),
                    ("wrong", r.wrong, "wrong"),
                    ("undecided", r.undecided, "undecided"),
                    ("explained by rounding", r.explained, "explained"),
                    ("not of the program", r.unmatched, "dim"),
                    ("too many to judge", r.unjudged, "undecided"),
                ] {
                    if n > 0 || what == "compared" || what == "wrong" {
                        let _ = writeln!(
                            out,
                            "<tr><td class=\"{class}\">{what}</td><td class=\"num\">{}</td></tr>",
                            grouped(n)
                        );
                    }
                }
                out.push_str("</table>\n");
                if let Some(d) = &r.ended {
                    let _ =
                        writeln!(out, "<p class=\"wrong\">ended without results: {}</p>", escape(&d.message));
                }
                if let Some(d) = r.first() {
                    out.push_str("<h2>First divergence</h2>\n");
                    self.divergence(out, d);
                }
            }
            Err(why) => {
                let _ = writeln!(out, "<h2>Replay in place</h2>\n<p class=\"dim\">none: {}</p>", escape(why));
                let d = &self.found.whole;
                let _ = writeln!(out, "<h2>The whole program: {}</h2>", escape(d.kind.describe()));
                d.arrays.iter().take(8).for_each(|(name, v)| verdict(out, name, v));
            }
        }
    }

    fn divergence(&self, out: &mut String, d: &Divergence) {
        let lost: Vec<String> = d.covers.iter().map(|&id| self.module.instr(id).name.to_string()).collect();
        let (heading, lines) = text::divergence(d, &lost);
        let _ = writeln!(
            out,
            "<p><a href=\"#i{}\"><b>{}</b></a></p>\n<pre>{}</pre>",
            d.location.id.index(),
            escape(&heading),
            escape(&lines.join("\n"))
        );
        for (i, v) in d.arrays.iter().take(8) {
            let name = if d.arrays.len() == 1 { String::new() } else { format!("array {i}") };
            verdict(out, &name, v);
        }
    }

    fn table(&self, out: &mut String) {
        let rows = &self.found.rows;
        let bad = |r: &&Row| class_of(r) >= Class::Undecided;
        let shown: Vec<&Row> = if rows.len() <= MAX_ROWS {
            rows.iter().collect()
        } else {
            let mut left = MAX_ROWS.saturating_sub(rows.iter().filter(bad).count());
            let mut keep = |r: &&Row| {
                if bad(r) {
                    return true;
                }
                left = left.saturating_sub(1);
                left > 0
            };
            rows.iter().filter(|r| keep(r)).take(2 * MAX_ROWS).collect()
        };
        let _ = writeln!(
            out,
            "<h2>Instructions</h2>\n<p class=\"dim\">{}</p>\n<div class=\"scroll\"><table>\n<tr><th>instruction</th><th>opcode</th><th class=\"num\">runs</th><th>alone</th><th>in place</th><th>why</th></tr>",
            escape(&text::totals(self.found))
        );
        for r in &shown {
            let alone = match &r.alone {
                Status::Success(c) => css(*c),
                Status::Failure(_) => "wrong",
                Status::Skipped(_) => "dim",
            };
            let _ = writeln!(
                out,
                "<tr><td><a href=\"#i{}\">{}</a></td><td>{}</td><td class=\"num\">{}</td><td class=\"{alone}\">{}</td><td class=\"{}\">{}</td><td>{}</td></tr>",
                r.id.index(),
                escape(&format!("{}.{}", r.computation, r.name)),
                r.opcode,
                count(r.executions),
                r.alone.name(),
                r.in_place.map_or("", css),
                r.in_place.map_or("", text::class),
                escape(&text::reason(r))
            );
        }
        out.push_str("</table></div>\n");
        if shown.len() < rows.len() {
            let _ = writeln!(
                out,
                "<p class=\"dim\">and {} more without a failure</p>",
                grouped((rows.len() - shown.len()) as u64)
            );
        }
    }
}

/// The worst elements and the histograms of an array.
fn verdict(out: &mut String, name: &str, v: &ArrayVerdict) {
    let _ = writeln!(
        out,
        "<h2>Worst elements {}</h2>\n<div class=\"scroll\"><table><tr><th>index</th><th class=\"num\">expected</th><th class=\"num\">actual</th><th class=\"num\">error</th><th class=\"num\">ulp</th><th class=\"num\">bound</th><th>class</th></tr>",
        escape(name)
    );
    for d in &v.worst {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"{}\">{}</td></tr>",
            text::index(&d.index),
            escape(&d.expected),
            escape(&d.actual),
            d.error.map_or_else(|| "none".into(), |e| format!("{e:.2e}")),
            d.ulp.map_or_else(|| "none".into(), grouped),
            d.bound.map_or_else(|| "unknown".into(), |b| format!("{b:.2e}")),
            css(d.class),
            text::class(d.class)
        );
    }
    out.push_str("</table></div>\n");
    if let Some(common) = v.common() {
        let _ = writeln!(out, "<p>{}</p>", escape(&common));
    }
    bars(out, "Errors in ulp", &ArrayVerdict::BUCKETS, &v.histogram, usize::MAX);
    bars(out, "Errors as multiples of the bound", &ArrayVerdict::MULTIPLES, &v.multiples, 3);
}

fn bars(out: &mut String, title: &str, names: &[&str], counts: &[u64], bad_from: usize) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let _ = writeln!(out, "<h2>{title}</h2>\n<div class=\"bars\">");
    for (i, (name, &n)) in names.iter().zip(counts).enumerate() {
        let bad = if i >= bad_from && n > 0 { " bad" } else { "" };
        let width = if n == 0 { 0.0 } else { (n as f64 / most as f64 * 100.0).max(1.0) };
        let bar = if n == 0 {
            String::new()
        } else {
            format!("<div class=\"bar{bad}\" style=\"width:{width:.1}%\"></div>")
        };
        let _ = writeln!(
            out,
            "<span class=\"dim\">{}</span><span>{bar}</span><span>{}</span>",
            escape(name),
            count(n)
        );
    }
    out.push_str("</div>\n");
}

fn css(class: Class) -> &'static str {
    match class {
        Class::Same => "same",
        Class::Explained => "explained",
        Class::Undecided => "undecided",
        Class::Wrong => "wrong",
    }
}

/// The worse of alone and in place.
fn class_of(r: &Row) -> Class {
    let alone = match &r.alone {
        Status::Success(c) => *c,
        Status::Failure(d) if d.kind == crate::differential::Kind::Undecided => Class::Undecided,
        Status::Failure(_) => Class::Wrong,
        Status::Skipped(_) => Class::Same,
    };
    alone.max(r.in_place.unwrap_or(Class::Same))
}

/// The computations of a program.
struct Graphs<'a> {
    page: Page<'a>,
    rows: FxHashMap<InstrId, &'a Row>,
    /// From what diverges first to the result, and the calls that lead there.
    path: FxHashSet<InstrId>,
    blamed: Option<InstrId>,
    drawn: usize,
    done: FxHashSet<ComputationId>,
}

impl<'a> Graphs<'a> {
    fn new(page: Page<'a>) -> Self {
        let rows = page.found.rows.iter().map(|r| (r.id, r)).collect();
        let blamed = page.found.blame.as_ref().map(|b| b.location.id);
        let path = blamed.map(|id| path_from(page.module, id)).unwrap_or_default();
        Self { page, rows, path, blamed, drawn: 0, done: FxHashSet::default() }
    }

    fn write(&mut self, out: &mut String) {
        out.push_str("<h2>Program</h2>\n<p class=\"legend dim\"><span class=\"same\">same bits</span><span class=\"explained\">explained</span><span class=\"undecided\">undecided</span><span class=\"wrong\">wrong</span><span>hover for details; constants are left out</span></p>\n");
        let entry = self.page.module.entry();
        self.computation(out, entry, None, 0);
    }

    /// A computation and what it calls, which is not in the page yet.
    fn computation(&mut self, out: &mut String, c: ComputationId, caller: Option<InstrId>, depth: usize) {
        if !self.done.insert(c) {
            return;
        }
        let module = self.page.module;
        let ids: Vec<InstrId> = module.instructions(c).collect();
        let on_path = ids.iter().any(|id| self.path.contains(id));
        let class = ids.iter().filter_map(|id| self.rows.get(id)).map(|r| class_of(r)).max();
        let by = caller.map_or_else(String::new, |i| {
            let instr = module.instr(i);
            format!(
                " <span class=\"dim\">called by <a href=\"#i{}\">{}</a>, {}</span>",
                i.index(),
                escape(&instr.name),
                instr.opcode
            )
        });
        let _ = writeln!(
            out,
            "<details{}{}><summary><b class=\"{}\">{}</b> <span class=\"dim\">{} instructions</span>{by}</summary>",
            if on_path { " class=\"on-path\"" } else { "" },
            if on_path || self.drawn + ids.len() <= MAX_UNFOLDED_NODES { " open=\"open\"" } else { "" },
            class.filter(|c| *c >= Class::Undecided).map_or("", css),
            escape(&module.computation(c).name),
            grouped(ids.len() as u64)
        );
        self.graphs(out, &ids);
        for &id in &ids {
            for callee in module.instr(id).attrs.called_computations() {
                if depth < MAX_DEPTH {
                    self.computation(out, callee, Some(id), depth + 1);
                }
            }
        }
        out.push_str("</details>\n");
    }

    /// All of a computation, or its most telling part and the rest folded away.
    fn graphs(&mut self, out: &mut String, ids: &[InstrId]) {
        if self.drawn + ids.len().min(MAX_WHOLE_NODES) > MAX_PAGE {
            out.push_str("<p class=\"dim\">not drawn: the page has enough</p>\n");
            return;
        }
        if ids.len() <= MAX_WHOLE_NODES {
            self.drawn += ids.len();
            return self.svg(out, ids, ("i", "fit"));
        }
        let near = self.near(ids);
        self.drawn += near.len();
        let _ = writeln!(
            out,
            "<p class=\"dim\">{} of {} instructions: the surroundings of what diverges</p>",
            near.len(),
            grouped(ids.len() as u64)
        );
        self.svg(out, &near, ("i", "fit"));
        if ids.len() <= MAX_DRAWN && self.drawn + ids.len() <= MAX_PAGE {
            self.drawn += ids.len();
            let _ = writeln!(out, "<details><summary>all {}</summary>", grouped(ids.len() as u64));
            self.svg(out, ids, ("all", "whole"));
            out.push_str("</details>\n");
        }
    }

    /// The instructions that are nearest to those that diverge, or to the root.
    fn near(&self, ids: &[InstrId]) -> Vec<InstrId> {
        let module = self.page.module;
        let mut queue: VecDeque<InstrId> = self.blamed.filter(|b| ids.contains(b)).into_iter().collect();
        queue.extend(
            ids.iter()
                .filter(|id| self.rows.get(id).is_some_and(|r| class_of(r) >= Class::Undecided))
                .take(8),
        );
        if queue.is_empty() {
            queue.extend(ids.iter().find(|id| self.path.contains(id)).or(ids.last()));
        }
        let mut near = FxHashSet::default();
        while let Some(id) = queue.pop_front()
            && near.len() < MAX_NEAR_NODES
        {
            if near.insert(id) {
                queue.extend(module.instr(id).operands());
                // A value that everything uses says nothing about its users.
                queue.extend(module.users(id).iter().take(12).map(|u| u.user));
            }
        }
        ids.iter().copied().filter(|id| near.contains(id)).collect()
    }

    fn svg(&self, out: &mut String, ids: &[InstrId], (prefix, class): (&str, &str)) {
        let module = self.page.module;
        let shown = |id: &InstrId| {
            module.instr(*id).opcode != Opcode::Constant
                || self.rows.get(id).is_some_and(|r| class_of(r) >= Class::Undecided)
        };
        let all = ids;
        let mut ids: Vec<InstrId> = all.iter().copied().filter(shown).collect();
        if ids.is_empty() {
            ids = all.to_vec();
        }
        let index: FxHashMap<InstrId, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let mut edges = Vec::new();
        for (to, &id) in ids.iter().enumerate() {
            let mut from: Vec<usize> = module
                .instr(id)
                .operands()
                .iter()
                .filter_map(|o| index.get(o).copied())
                .filter(|&f| f < to)
                .collect();
            from.sort_unstable();
            from.dedup();
            edges.extend(from.into_iter().map(|f| (f, to)));
        }
        let l = layout(ids.len(), &edges);
        let _ = writeln!(
            out,
            "<div class=\"scroll\"><svg class=\"{class}\" style=\"min-width:{:.0}px\" width=\"{:.0}\" height=\"{:.0}\" viewBox=\"0 0 {:.0} {:.0}\">",
            l.width * MIN_SCALE,
            l.width,
            l.height,
            l.width,
            l.height
        );
        for ((from, to), points) in edges.iter().zip(&l.edges) {
            let on = self.path.contains(&ids[*from]) && self.path.contains(&ids[*to]);
            let _ = writeln!(
                out,
                "<path class=\"edge{}\" d=\"{}\"/>",
                if on { " path" } else { "" },
                curve(points)
            );
        }
        for (&id, &(x, y)) in ids.iter().zip(&l.nodes) {
            self.node(out, id, (x, y), prefix);
        }
        out.push_str("</svg></div>\n");
    }

    fn node(&self, out: &mut String, id: InstrId, (x, y): (f64, f64), prefix: &str) {
        let module = self.page.module;
        let instr = module.instr(id);
        let row = self.rows.get(&id);
        let mut classes = String::from("n");
        match row {
            // Parameters and tuples that are as they should be are not worth a colour.
            Some(r)
                if class_of(r) > Class::Same
                    || r.in_place.is_some()
                    || matches!(r.alone, Status::Success(_)) =>
            {
                classes.push(' ');
                classes.push_str(css(class_of(r)));
            }
            Some(_) => {}
            None => classes.push_str(" dead"),
        }
        if self.path.contains(&id) {
            classes.push_str(" path");
        }
        if self.blamed == Some(id) {
            classes.push_str(" blamed");
        }
        let _ = writeln!(
            out,
            "<g class=\"{classes}\" id=\"{prefix}{}\"><title>{}</title><rect class=\"box\" x=\"{:.1}\" y=\"{:.1}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"6\"/><text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text class=\"what\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
            id.index(),
            escape(&self.hover(id)),
            x - NODE_WIDTH / 2.0,
            y - NODE_HEIGHT / 2.0,
            y - 4.0,
            escape(&shorten(&instr.name, 22)),
            y + 13.0,
            escape(&shorten(&format!("{} {}", instr.opcode, instr.shape.without_layout()), 26)),
        );
    }

    /// What there is to say of an instruction.
    fn hover(&self, id: InstrId) -> String {
        let module = self.page.module;
        let instr = module.instr(id);
        let operand = |&o: &InstrId| match &module.instr(o).attrs.constant_value() {
            Some(hlo::ConstantValue::Given(l)) if l.as_array().is_some_and(|a| a.buffer.len() == 1) => {
                format!(
                    "{} = {}",
                    module.instr(o).name,
                    l.as_array().map_or_else(String::new, super::array_text)
                )
            }
            _ => module.instr(o).name.to_string(),
        };
        let mut lines =
            vec![format!("{}, {}", instr.name, instr.opcode), shorten(&instr.shape.to_string(), 200)];
        if !instr.operands().is_empty() {
            let operands: Vec<String> = instr.operands().iter().take(12).map(operand).collect();
            lines.push(shorten(&format!("of {}", operands.join(", ")), 300));
        }
        let Some(row) = self.rows.get(&id) else {
            lines.push("not executed one by one".into());
            return lines.join("\n");
        };
        lines.push(format!("{} executions", grouped(row.executions)));
        if let Some(s) = self.page.found.replay.as_ref().ok().and_then(|r| r.stats.get(&id)) {
            let ulp = s.worst_ulp.map_or_else(|| "no number".into(), grouped);
            lines.push(format!(
                "in place: {}: {} wrong, {} undecided, {} explained of {}",
                text::class(s.class()),
                grouped(s.wrong),
                grouped(s.undecided),
                grouped(s.explained),
                grouped(s.executions)
            ));
            if s.class() > Class::Same {
                lines.push(format!("worst error: {ulp} ulp, {:.2e} times the bound", s.worst_ratio));
            }
        }
        let reason = text::reason(row);
        lines.push(format!(
            "alone: {}{}{reason}",
            row.alone.name(),
            if reason.is_empty() { "" } else { ": " }
        ));
        lines.join("\n")
    }
}

/// The shortest way from an instruction to the root of its computation, and from each caller on to the
/// result.
fn path_from(module: &Module, id: InstrId) -> FxHashSet<InstrId> {
    let mut callers: FxHashMap<ComputationId, InstrId> = FxHashMap::default();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        for callee in module.instr(id).attrs.called_computations() {
            callers.entry(callee).or_insert(id);
        }
    }
    let mut path = FxHashSet::default();
    let mut at = Some(id);
    while let Some(id) = at {
        let computation = module.instr(id).parent();
        let root = module.root(computation);
        let mut before: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        let mut queue = VecDeque::from([id]);
        let mut seen = FxHashSet::from_iter([id]);
        while let Some(next) = queue.pop_front() {
            for u in module.users(next) {
                if seen.insert(u.user) {
                    before.insert(u.user, next);
                    queue.push_back(u.user);
                }
            }
        }
        path.insert(id);
        let mut step = root;
        while let Some(&previous) = before.get(&step) {
            path.insert(step);
            step = previous;
        }
        at = callers.get(&computation).copied().filter(|c| !path.contains(c));
    }
    path
}

/// A smooth line through points, going down at each.
pub fn curve(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        match i.checked_sub(1).map(|p| points[p]) {
            None => {
                let _ = write!(d, "M{x:.1} {y:.1}");
            }
            Some((px, py)) => {
                let middle = (py + y) / 2.0;
                let _ = write!(d, "C{px:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}");
            }
        }
    }
    d
}

/// A text truncated to `most` characters.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}\u{2026}")
}
