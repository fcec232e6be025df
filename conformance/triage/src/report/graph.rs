//! Layered layout of acyclic graphs: every edge goes down, rows are ordered so that few edges cross, and long
//! edges bend around nodes.
//!
//! **Invariant:** time and memory are about linear in nodes and edges, whatever the graph: rows are cut to
//! [`MAX_ROW`], and where there are too many bends, or an edge spans more than [`MAX_SPAN`] rows, edges go
//! straight.

/// Width of a node.
pub const NODE_WIDTH: f64 = 172.0;
/// Height of a node.
pub const NODE_HEIGHT: f64 = 46.0;
/// From one row to the next.
const ROW_STEP: f64 = 84.0;
/// Between neighbours.
const NODE_GAP: f64 = 18.0;
/// Width of a bend of an edge.
const BEND_WIDTH: f64 = 6.0;
/// The maximum number of nodes in a row.
const MAX_ROW: usize = 10;
/// The maximum number of bends in a row.
const MAX_BENDS: usize = 40;
/// The maximum number of rows that an edge passes with a bend in each.
const MAX_SPAN: usize = 400;
const SWEEPS: usize = 6;

/// Where things are.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// For each node its centre.
    pub nodes: Vec<(f64, f64)>,
    /// For each edge its points: bottom of one node, bends, top of the other.
    pub edges: Vec<Vec<(f64, f64)>>,
    /// Size of the drawing.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// Lays out nodes `0..n`. Edges go from lower to higher numbers.
pub fn layout(n: usize, edges: &[(usize, usize)]) -> Layout {
    if n == 0 {
        return Layout::default();
    }
    Drawing::arranged(n, edges, &Bounds { row: MAX_ROW, span: |_| MAX_SPAN }).finish(n, edges)
}

/// A layered graph: rows of nodes, whose widths are known only when they are placed.
#[derive(Clone, Debug, Default)]
pub struct Layered {
    /// What is in each row, from left to right: nodes below the number of nodes, bends from there on.
    pub rows: Vec<Vec<usize>>,
    /// For each node and bend the centre, as long as all nodes are [`NODE_WIDTH`] wide.
    pub x: Vec<f64>,
    /// For each edge its bends.
    pub bends: Vec<Vec<usize>>,
}

/// What rows and edges are limited to.
pub struct Bounds<F> {
    /// The maximum number of nodes in a row.
    pub row: usize,
    /// For each edge the most rows that it passes with bends; one that passes more goes straight.
    pub span: F,
}

/// Arranges nodes `0..n` in rows. Edges go from lower to higher numbers.
pub fn layered(n: usize, edges: &[(usize, usize)], bounds: &Bounds<impl Fn(usize) -> usize>) -> Layered {
    if n == 0 {
        return Layered::default();
    }
    let drawing = Drawing::arranged(n, edges, bounds);
    let left =
        (0..drawing.x.len()).map(|i| drawing.x[i] - drawing.width(i) / 2.0).fold(f64::INFINITY, f64::min);
    let x = drawing.x.iter().map(|x| x - left).collect();
    Layered { rows: drawing.rows, x, bends: drawing.bends }
}

/// The row of each node: below all it depends on, and then as near to its first user as that makes edges
/// shorter in sum: what is off the longest paths (constants, their broadcasts, updates at the end) is right
/// above who uses it.
fn rows_of(n: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut row, mut uses) = (vec![0usize; n], vec![0usize; n]);
    let mut sorted = edges.to_vec();
    sorted.sort_unstable_by_key(|&(_, to)| to);
    for &(from, to) in &sorted {
        row[to] = row[to].max(row[from] + 1);
        uses[from] += 1;
    }
    // Edges that a node makes longer when it moves down: what has no other user moves with it.
    let mut held = vec![0usize; n];
    for &(from, to) in edges {
        held[to] += usize::from(uses[from] > 1 && row[from] > 0);
    }
    sorted.sort_unstable_by_key(|&(from, _)| std::cmp::Reverse(from));
    for out in sorted.chunk_by(|a, b| a.0 == b.0) {
        let from = out[0].0;
        let first = out.iter().map(|&(_, to)| row[to]).min().unwrap_or(0);
        if held[from] <= out.len() {
            row[from] = row[from].max(first.saturating_sub(1));
        }
    }
    row
}

/// Makes several rows of one that is too long. No edge is within a row, so that edges still go down.
fn cut_rows(row: &mut [usize], max_row: usize) {
    let mut by_row: Vec<Vec<usize>> = vec![Vec::new(); row.iter().max().map_or(0, |m| m + 1)];
    for (i, &r) in row.iter().enumerate() {
        by_row[r].push(i);
    }
    let mut next = 0;
    for nodes in by_row {
        let parts = nodes.len().div_ceil(max_row).max(1);
        let size = nodes.len().div_ceil(parts).max(1);
        for part in nodes.chunks(size) {
            part.iter().for_each(|&i| row[i] = next);
            next += 1;
        }
    }
}

struct Drawing {
    /// Nodes and then bends.
    row: Vec<usize>,
    x: Vec<f64>,
    rows: Vec<Vec<usize>>,
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
    /// For each edge its bends.
    bends: Vec<Vec<usize>>,
    real: usize,
}

impl Drawing {
    fn arranged(n: usize, edges: &[(usize, usize)], bounds: &Bounds<impl Fn(usize) -> usize>) -> Self {
        let mut rows_of = rows_of(n, edges);
        cut_rows(&mut rows_of, bounds.row);
        let mut drawing = Drawing::new(n, edges, rows_of, &bounds.span);
        for sweep in 0..SWEEPS {
            drawing.order(sweep % 2 == 0);
        }
        drawing.place_nodes();
        drawing
    }

    fn new(n: usize, edges: &[(usize, usize)], row: Vec<usize>, span: &impl Fn(usize) -> usize) -> Self {
        let mut d = Drawing {
            x: vec![0.0; n],
            rows: vec![Vec::new(); row.iter().max().map_or(0, |m| m + 1)],
            up: vec![Vec::new(); n],
            down: vec![Vec::new(); n],
            bends: Vec::with_capacity(edges.len()),
            row,
            real: n,
        };
        for i in 0..n {
            d.rows[d.row[i]].push(i);
        }
        let limit = 6 * n + 64;
        let mut bends_of = vec![0usize; d.rows.len()];
        for (edge, &(from, to)) in edges.iter().enumerate() {
            let mut bends = Vec::new();
            let mut last = from;
            let between = d.row[from] + 1..d.row[to];
            let fits = between.len() <= span(edge).min(MAX_SPAN) && d.row.len() - n + between.len() <= limit;
            if fits && bends_of[between.clone()].iter().all(|&n| n < MAX_BENDS) {
                bends_of[between].iter_mut().for_each(|n| *n += 1);
                for r in d.row[from] + 1..d.row[to] {
                    let bend = d.row.len();
                    d.row.push(r);
                    d.x.push(0.0);
                    d.rows[r].push(bend);
                    d.up.push(Vec::new());
                    d.down.push(Vec::new());
                    d.join(last, bend);
                    bends.push(bend);
                    last = bend;
                }
            }
            d.join(last, to);
            d.bends.push(bends);
        }
        d.spread();
        d
    }

    fn join(&mut self, from: usize, to: usize) {
        self.down[from].push(to);
        self.up[to].push(from);
    }

    fn width(&self, i: usize) -> f64 {
        if i < self.real { NODE_WIDTH } else { BEND_WIDTH }
    }

    fn apart(&self, a: usize, b: usize) -> f64 {
        let gap = if a < self.real && b < self.real { NODE_GAP } else { NODE_GAP / 2.0 };
        (self.width(a) + self.width(b)) / 2.0 + gap
    }

    /// Nodes of each row side by side in their order.
    fn spread(&mut self) {
        for r in 0..self.rows.len() {
            let mut x = 0.0;
            for k in 0..self.rows[r].len() {
                let i = self.rows[r][k];
                if k > 0 {
                    x += self.apart(self.rows[r][k - 1], i);
                }
                self.x[i] = x;
            }
            // Rows are centred on each other.
            self.rows[r].clone().iter().for_each(|&i| self.x[i] -= x / 2.0);
        }
    }

    fn wish(&self, i: usize, down: bool) -> Option<f64> {
        let near = if down { &self.up[i] } else { &self.down[i] };
        (!near.is_empty()).then(|| near.iter().map(|&j| self.x[j]).sum::<f64>() / near.len() as f64)
    }

    /// Sorts each row by where its neighbours in the row before are.
    fn order(&mut self, down: bool) {
        for k in 0..self.rows.len() {
            let r = if down { k } else { self.rows.len() - 1 - k };
            let mut keyed: Vec<(f64, usize)> =
                self.rows[r].iter().map(|&i| (self.wish(i, down).unwrap_or(self.x[i]), i)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.rows[r] = keyed.into_iter().map(|(_, i)| i).collect();
        }
        self.spread();
    }

    /// Moves nodes under and over their neighbours as far as their own row lets them.
    fn place_nodes(&mut self) {
        // Within the width of the widest row, so that rows that push each other do not drift.
        let side = self.x.iter().copied().fold(0.0, f64::max);
        for round in 0..10 {
            let wish = |d: &Self, i: usize| d.wish(i, round % 2 == 0).unwrap_or(d.x[i]).clamp(-side, side);
            let down = round % 2 == 0;
            for k in 0..self.rows.len() {
                let r = if down { k } else { self.rows.len() - 1 - k };
                let row = self.rows[r].clone();
                let wish: Vec<f64> = row.iter().map(|&i| wish(self, i)).collect();
                let (mut left, mut right) = (wish.clone(), wish);
                for k in 1..row.len() {
                    left[k] = left[k].max(left[k - 1] + self.apart(row[k - 1], row[k]));
                }
                for k in (0..row.len().saturating_sub(1)).rev() {
                    right[k] = right[k].min(right[k + 1] - self.apart(row[k], row[k + 1]));
                }
                for (k, &i) in row.iter().enumerate() {
                    self.x[i] = (left[k] + right[k]) / 2.0;
                }
            }
        }
    }

    fn finish(self, n: usize, edges: &[(usize, usize)]) -> Layout {
        let left = (0..self.x.len()).map(|i| self.x[i] - self.width(i) / 2.0).fold(f64::INFINITY, f64::min);
        let right = (0..self.x.len()).map(|i| self.x[i] + self.width(i) / 2.0).fold(0.0, f64::max);
        let at = |i: usize| {
            (self.x[i] - left + NODE_GAP, self.row[i] as f64 * ROW_STEP + NODE_HEIGHT / 2.0 + NODE_GAP)
        };
        let points = |(&(from, to), bends): (&(usize, usize), &Vec<usize>)| {
            let ((x0, y0), (x1, y1)) = (at(from), at(to));
            let mut all = vec![(x0, y0 + NODE_HEIGHT / 2.0)];
            all.extend(bends.iter().map(|&b| at(b)));
            all.push((x1, y1 - NODE_HEIGHT / 2.0));
            all
        };
        Layout {
            nodes: (0..n).map(at).collect(),
            edges: edges.iter().zip(&self.bends).map(points).collect(),
            width: right - left + 2.0 * NODE_GAP,
            height: (self.rows.len().saturating_sub(1)) as f64 * ROW_STEP + NODE_HEIGHT + 2.0 * NODE_GAP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: usize, edges: &[(usize, usize)]) -> Layout {
        let l = layout(n, edges);
        assert_eq!((l.nodes.len(), l.edges.len()), (n, edges.len()));
        for &(from, to) in edges {
            assert!(l.nodes[from].1 < l.nodes[to].1, "edges go down");
        }
        let mut by_row: Vec<(i64, f64)> = l.nodes.iter().map(|&(x, y)| (y as i64, x)).collect();
        by_row.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for w in by_row.windows(2) {
            assert!(w[0].0 != w[1].0 || w[1].1 - w[0].1 >= NODE_WIDTH, "nodes do not overlap: {w:?}");
        }
        for &(x, y) in &l.nodes {
            assert!(x >= NODE_WIDTH / 2.0 && x + NODE_WIDTH / 2.0 <= l.width && y < l.height);
        }
        l
    }

    #[test]
    fn small_graphs() {
        check(0, &[]);
        check(1, &[]);
        let l = check(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert!((l.nodes[0].0 - l.nodes[3].0).abs() < 1.0, "a diamond is symmetric");
        let l = check(4, &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        assert_eq!(l.edges[3].len(), 4, "the long edge has a bend in each row that it passes");
    }

    #[test]
    fn wide_and_long_graphs_are_no_trouble() {
        let wide: Vec<(usize, usize)> = (0..500).map(|i| (i, 500)).collect();
        let l = check(501, &wide);
        assert!(l.width < 4000.0, "rows are cut: {}", l.width);
        let n = 4000;
        let long: Vec<(usize, usize)> = (1..n)
            .map(|i| (i - 1, i))
            .chain((0..n / 2).map(|i| (i, n - 1 - i % 7)))
            .filter(|(a, b)| a < b)
            .collect();
        check(n, &long);
    }
}
