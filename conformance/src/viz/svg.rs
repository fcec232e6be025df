//! Programs as one SVG file: computations in a column, the entry first; calls are links to callees.
//!
//! **Invariant:** well-formed XML, whatever names say.

use std::fmt::Write as _;

use super::dot::color;
use super::{Drawn, Family, Picture, cost_text};
use hlo_triage::report::graph::{NODE_HEIGHT, NODE_WIDTH};
use hlo_triage::report::html::{curve, escape, shorten};

/// Between rows.
const ROW_STEP: f64 = 84.0;
/// Around computations.
const MARGIN: f64 = 24.0;
/// Above a computation, for its name.
const HEADING: f64 = 40.0;

const STYLE: &str = "text{font-family:ui-monospace,Menlo,Consolas,monospace;fill:#1c2128}.t{font-size:15px;font-weight:600}.n{font-size:12px}.w{font-size:10.5px;fill:#667080}\
.b{stroke:#9aa4b1}.r{stroke-width:2.5;stroke:#1c2128}.e{fill:none;stroke:#9aa4b1}.f{fill:none;stroke:#c9d0d9;stroke-dasharray:3 4}a .b{stroke:#1565c0}";

/// The picture.
pub fn write(picture: &Picture<'_>) -> String {
    let (mut body, mut y, mut width) = (String::new(), MARGIN, 0.0f64);
    for drawn in &picture.computations {
        computation(picture, drawn, &mut y, &mut width, &mut body);
    }
    let width = width + 2.0 * MARGIN;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {width:.0} {y:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
        escape(&picture.module.name)
    )
}

fn computation(picture: &Picture<'_>, drawn: &Drawn, y: &mut f64, width: &mut f64, out: &mut String) {
    let module = picture.module;
    let name = shorten(&module.computation(drawn.id).name, 100);
    let _ = writeln!(
        out,
        "<g id=\"c{}\"><text class=\"t\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
        drawn.id.index(),
        *y + 16.0,
        escape(&name)
    );
    *y += HEADING;
    let layered = &drawn.layered;
    let mut row_of = vec![0usize; layered.x.len()];
    for (r, row) in layered.rows.iter().enumerate() {
        row.iter().for_each(|&entry| row_of[entry] = r);
    }
    let top = *y;
    let at =
        |entry: usize| (layered.x[entry] + MARGIN, top + row_of[entry] as f64 * ROW_STEP + NODE_HEIGHT / 2.0);
    for (&(from, to), bends) in drawn.edges.iter().zip(&layered.bends) {
        let ((x0, y0), (x1, y1)) = (at(from), at(to));
        let mut points = vec![(x0, y0 + NODE_HEIGHT / 2.0)];
        points.extend(bends.iter().map(|&b| at(b)));
        points.push((x1, y1 - NODE_HEIGHT / 2.0));
        let far = bends.is_empty() && row_of[to] > row_of[from] + 1;
        let _ = writeln!(out, "<path class=\"{}\" d=\"{}\"/>", if far { "f" } else { "e" }, curve(&points));
    }
    let root = module.computation(drawn.id).root();
    for (i, &id) in drawn.instructions.iter().enumerate() {
        let (x, y) = at(i);
        let instr = module.instr(id);
        let called = instr.attrs.called_computations();
        if let Some(callee) = called.first() {
            let _ = write!(out, "<a href=\"#c{}\">", callee.index());
        }
        let cost = picture.costs.get(&id).map(cost_text).unwrap_or_default();
        let title =
            format!("{}\n{}\n{}\n{cost}", instr.name, instr.opcode, shorten(&instr.shape.to_string(), 300));
        let _ = write!(
            out,
            "<g id=\"i{}\"><title>{}</title><rect class=\"b{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"6\" fill=\"{}\"/>\
             <text class=\"n\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text class=\"w\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
            id.index(),
            escape(&title),
            if root == Some(id) { " r" } else { "" },
            x - NODE_WIDTH / 2.0,
            y - NODE_HEIGHT / 2.0,
            color(Family::of(instr.opcode)),
            y - 4.0,
            escape(&shorten(&instr.name, 22)),
            y + 13.0,
            escape(&shorten(&format!("{} {}", instr.opcode, instr.shape.without_layout()), 26)),
        );
        out.push_str(if called.is_empty() { "\n" } else { "</a>\n" });
        *width = width.max(x + NODE_WIDTH / 2.0);
    }
    out.push_str("</g>\n");
    *y += layered.rows.len() as f64 * ROW_STEP + MARGIN;
}
