//! The `residual` check: formulas that must vanish, for results that are not unique (eigenvectors, factors).
//!
//! A check has formulas separated by `;`. Each must give an array whose Frobenius norm is at most `tol` times
//! that of `arg0`. The language is that of numpy expressions in complex128 over
//! `arg0, arg1, ..., out0, out1, ...` and numbers:
//!
//! ```text
//! formula := term (("+" | "-") term)*          numpy broadcasting
//! term    := unary (("*" | "@") unary)*        product of elements, matrix product of the last two axes
//! unary   := "-" unary | atom ("[" "..." "," ":"|"None" ("," ":"|"None")* "]")*
//! atom    := number | name | function "(" formula ("," formula)* ")" | "(" formula ")"
//! ```
//!
//! Functions: `H(x)` conjugated, last two axes transposed; `eye(n, m)`; `diag(x)` of the last two axes;
//! `tril(x, k)`, `triu(x, k)`; `cols(x, p)` columns of a matrix in the order `p`; `tr(x)` trace; `total(x)`
//! sum over the last axis.
//!
//! **Invariants:** nesting is limited, so that no formula overflows the stack; a result that is too large to
//! hold is an error; a NaN never holds.

use hlo::ArrayLiteral;
use hlo::num_complex::Complex;

use hlo_execution::element::Number;

type C = Complex<f64>;

/// An array of complex numbers.
#[derive(Clone, PartialEq, Debug)]
struct Array {
    dims: Vec<usize>,
    values: Vec<C>,
}

/// How deep parentheses may nest.
const MAX_DEPTH: usize = 64;
/// The maximum number of elements of an intermediate array.
const MAX_ELEMENTS: usize = 1 << 26;

/// The norm of each formula relative to that of `arg0`. Errors: a sentence about what is wrong with the
/// formula.
pub fn residuals(
    formulas: &str,
    args: &[ArrayLiteral],
    results: &[&ArrayLiteral],
) -> Result<Vec<f64>, String> {
    let names = Names {
        args: args.iter().map(Array::from_literal).collect(),
        results: results.iter().map(|r| Array::from_literal(r)).collect(),
    };
    let Some(first) = names.args.first() else {
        return Err("residual check: the program has no arg0 to measure by".into());
    };
    let norm = first.norm();
    formulas
        .split(';')
        .map(|f| {
            let mut parser = Parser { text: f, at: 0, names: &names, depth: 0 };
            let value = parser.formula()?;
            parser.skip();
            if parser.at < f.len() {
                return Err(parser.error("the end"));
            }
            Ok(value.norm() / norm)
        })
        .collect()
}

struct Names {
    args: Vec<Array>,
    results: Vec<Array>,
}

impl Array {
    fn scalar(x: f64) -> Array {
        Array { dims: Vec::new(), values: vec![C::new(x, 0.0)] }
    }

    fn from_literal(a: &ArrayLiteral) -> Array {
        fn wide<T: Number>(v: &[T]) -> Vec<C> {
            v.iter()
                .map(|x| {
                    let (re, im) = x.parts();
                    C::new(re.value(), im.map_or(0.0, |p| p.value()))
                })
                .collect()
        }
        Array {
            dims: a.dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect(),
            values: hlo::with_buffer!(&*a.buffer, v => wide(v)),
        }
    }

    fn norm(&self) -> f64 {
        // Scaled, so that squares neither overflow nor vanish.
        let largest = self.values.iter().map(|z| z.re.abs().max(z.im.abs())).fold(0.0, f64::max);
        if self.values.iter().any(|z| z.re.is_nan() || z.im.is_nan()) {
            return f64::NAN;
        }
        if largest == 0.0 || largest.is_infinite() {
            return largest;
        }
        largest * self.values.iter().map(|z| (z / largest).norm_sqr()).sum::<f64>().sqrt()
    }

    /// Splits the last two axes off: (batch elements, rows, columns).
    fn matrix(&self, what: &str) -> Result<(usize, usize, usize), String> {
        let [batch @ .., rows, columns] = &self.dims[..] else {
            return Err(format!("{what} needs a matrix, not an array of {} dimensions", self.dims.len()));
        };
        Ok((batch.iter().product(), *rows, *columns))
    }

    fn elementwise(&self, other: &Array, f: impl Fn(C, C) -> C) -> Result<Array, String> {
        let dims = broadcast(&self.dims, &other.dims)?;
        let n = checked_len(&dims)?;
        let (a, b) = (Strides::new(&self.dims, &dims), Strides::new(&other.dims, &dims));
        let values = (0..n).map(|i| f(self.values[a.at(i)], other.values[b.at(i)])).collect();
        Ok(Array { dims, values })
    }

    fn matmul(&self, other: &Array) -> Result<Array, String> {
        let (_, n, k) = self.matrix("@")?;
        let (_, k2, m) = other.matrix("@")?;
        if k != k2 {
            return Err(format!("@: {n} by {k} times {k2} by {m}"));
        }
        let (ab, bb) = (&self.dims[..self.dims.len() - 2], &other.dims[..other.dims.len() - 2]);
        let batch = broadcast(ab, bb)?;
        let mut dims = batch.clone();
        dims.extend([n, m]);
        let mut values = Vec::with_capacity(checked_len(&dims)?);
        let (sa, sb) = (Strides::new(ab, &batch), Strides::new(bb, &batch));
        for i in 0..batch.iter().product::<usize>() {
            let a = &self.values[sa.at(i) * n * k..][..n * k];
            let b = &other.values[sb.at(i) * k * m..][..k * m];
            for r in 0..n {
                for c in 0..m {
                    values.push((0..k).map(|j| a[r * k + j] * b[j * m + c]).sum());
                }
            }
        }
        Ok(Array { dims, values })
    }

    /// Replaces each matrix of the last two axes by what `f(row, column, value)` makes of its elements.
    fn masked(mut self, what: &str, keep: impl Fn(i64, i64) -> bool) -> Result<Array, String> {
        let (_, rows, columns) = self.matrix(what)?;
        for (i, z) in self.values.iter_mut().enumerate() {
            let (r, c) = (i / columns.max(1) % rows.max(1), i % columns.max(1));
            if !keep(r as i64, c as i64) {
                *z = C::default();
            }
        }
        Ok(self)
    }

    fn adjoint(&self) -> Result<Array, String> {
        let (batch, rows, columns) = self.matrix("H")?;
        let mut dims = self.dims.clone();
        let rank = dims.len();
        dims.swap(rank - 1, rank - 2);
        let mut values = Vec::with_capacity(self.values.len());
        for b in 0..batch {
            for c in 0..columns {
                for r in 0..rows {
                    values.push(self.values[(b * rows + r) * columns + c].conj());
                }
            }
        }
        Ok(Array { dims, values })
    }

    fn diagonal(&self, what: &str) -> Result<Array, String> {
        let (batch, rows, columns) = self.matrix(what)?;
        let n = rows.min(columns);
        let mut dims = self.dims[..self.dims.len() - 2].to_vec();
        dims.push(n);
        let values = (0..batch)
            .flat_map(|b| (0..n).map(move |i| (b * rows + i) * columns + i))
            .map(|i| self.values[i])
            .collect();
        Ok(Array { dims, values })
    }

    fn total(&self) -> Result<Array, String> {
        let Some((&n, dims)) = self.dims.split_last() else {
            return Err("total needs at least one dimension".into());
        };
        let rows: usize = dims.iter().product();
        let values = (0..rows).map(|r| self.values[r * n..][..n].iter().sum()).collect();
        Ok(Array { dims: dims.to_vec(), values })
    }

    fn columns(&self, order: &Array) -> Result<Array, String> {
        let (&[rows, columns], &[n]) = (&self.dims[..], &order.dims[..]) else {
            return Err("cols needs a matrix and a vector".into());
        };
        let mut at = Vec::with_capacity(n);
        for p in &order.values {
            let c = p.re as i64;
            let c = if c < 0 { c + columns as i64 } else { c };
            match usize::try_from(c).ok().filter(|&c| c < columns) {
                Some(c) => at.push(c),
                None => return Err(format!("cols: there is no column {}", p.re)),
            }
        }
        let values = (0..rows)
            .flat_map(|r| at.iter().map(move |&c| r * columns + c))
            .map(|i| self.values[i])
            .collect();
        Ok(Array { dims: vec![rows, n], values })
    }

    fn integer(&self, what: &str) -> Result<i64, String> {
        match &self.values[..] {
            [z] if self.dims.is_empty() && z.im == 0.0 && z.re.fract() == 0.0 && z.re.abs() < 1e9 => {
                Ok(z.re as i64)
            }
            _ => Err(format!("{what} needs an integer")),
        }
    }
}

fn checked_len(dims: &[usize]) -> Result<usize, String> {
    dims.iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= MAX_ELEMENTS)
        .ok_or_else(|| format!("an array of dimensions {dims:?} is too large"))
}

fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, String> {
    let rank = a.len().max(b.len());
    let dim = |d: &[usize], i: usize| if i + d.len() < rank { 1 } else { d[i + d.len() - rank] };
    (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

/// Maps positions of a broadcast array to positions of an operand.
struct Strides {
    /// (size of the result's dimension, stride of the operand), the last dimension first.
    dims: Vec<(usize, usize)>,
}

impl Strides {
    fn new(operand: &[usize], result: &[usize]) -> Self {
        let mut stride = 1;
        let dims = result
            .iter()
            .rev()
            .enumerate()
            .map(|(i, &size)| {
                let own = operand.len().checked_sub(i + 1).map_or(1, |at| operand[at]);
                let this = if own == 1 { 0 } else { stride };
                stride *= own;
                (size, this)
            })
            .collect();
        Self { dims }
    }

    fn at(&self, mut i: usize) -> usize {
        let mut at = 0;
        for &(size, stride) in &self.dims {
            at += i % size * stride;
            i /= size;
        }
        at
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a Names,
    depth: usize,
}

impl Parser<'_> {
    fn skip(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn eat(&mut self, what: &str) -> bool {
        self.skip();
        let there = self.text[self.at..].starts_with(what);
        if there {
            self.at += what.len();
        }
        there
    }

    fn expect(&mut self, what: &str) -> Result<(), String> {
        if self.eat(what) { Ok(()) } else { Err(self.error(&format!("`{what}`"))) }
    }

    fn error(&self, expected: &str) -> String {
        format!("residual formula `{}`: expected {expected} at offset {}", self.text.trim(), self.at)
    }

    fn formula(&mut self) -> Result<Array, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("residual formula: nested too deeply".into());
        }
        let mut left = self.term()?;
        loop {
            if self.eat("+") {
                left = left.elementwise(&self.term()?, |a, b| a + b)?;
            } else if self.eat("-") {
                left = left.elementwise(&self.term()?, |a, b| a - b)?;
            } else {
                self.depth -= 1;
                return Ok(left);
            }
        }
    }

    fn term(&mut self) -> Result<Array, String> {
        let mut left = self.unary()?;
        loop {
            if self.eat("*") {
                left = left.elementwise(&self.unary()?, |a, b| a * b)?;
            } else if self.eat("@") {
                left = left.matmul(&self.unary()?)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Result<Array, String> {
        let mut negative = false;
        while self.eat("-") {
            negative = !negative;
        }
        let mut value = self.atom()?;
        while self.eat("[") {
            value = self.subscript(value)?;
        }
        if negative {
            value.values.iter_mut().for_each(|z| *z = -*z);
        }
        Ok(value)
    }

    /// `[..., :, None]`: `:` keeps an axis, `None` makes one; both count from the last axis.
    fn subscript(&mut self, value: Array) -> Result<Array, String> {
        self.expect("...")?;
        let mut new_axis = Vec::new();
        while self.eat(",") {
            if self.eat("None") {
                new_axis.push(true);
            } else if self.eat(":") {
                new_axis.push(false);
            } else {
                return Err(self.error("`:` or `None`"));
            }
        }
        self.expect("]")?;
        let kept = new_axis.iter().filter(|n| !**n).count();
        let Some(mut at) = value.dims.len().checked_sub(kept) else {
            return Err(self.error("fewer axes"));
        };
        let mut dims = value.dims[..at].to_vec();
        for new in new_axis {
            if new {
                dims.push(1);
            } else {
                dims.push(value.dims[at]);
                at += 1;
            }
        }
        Ok(Array { dims, values: value.values })
    }

    fn atom(&mut self) -> Result<Array, String> {
        if self.eat("(") {
            let value = self.formula()?;
            self.expect(")")?;
            return Ok(value);
        }
        self.skip();
        let rest = &self.text[self.at..];
        let word_len =
            rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')).count();
        let mut word = &rest[..word_len];
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            // The sign of an exponent belongs to the number.
            if word.ends_with(['e', 'E']) && rest[word_len..].starts_with(['+', '-']) {
                let more = rest[word_len + 1..].bytes().take_while(u8::is_ascii_digit).count();
                word = &rest[..word_len + 1 + more];
            }
            let value = word.parse().map_err(|_| self.error("a number"))?;
            self.at += word.len();
            return Ok(Array::scalar(value));
        }
        for (prefix, arrays) in [("arg", &self.names.args), ("out", &self.names.results)] {
            if let Some(n) = word.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok()) {
                let value = arrays.get(n).cloned();
                self.at += word.len();
                return value.ok_or_else(|| format!("residual formula: there is no {word}"));
            }
        }
        if word.is_empty() {
            return Err(self.error("a number, a name or `(`"));
        }
        let function = word.to_owned();
        self.at += word.len();
        self.expect("(")?;
        let mut operands = vec![self.formula()?];
        while self.eat(",") {
            operands.push(self.formula()?);
        }
        self.expect(")")?;
        call(&function, operands)
    }
}

fn call(function: &str, operands: Vec<Array>) -> Result<Array, String> {
    let n = operands.len();
    let mut operands = operands.into_iter();
    let (first, second) = (operands.next().unwrap_or_else(|| Array::scalar(0.0)), operands.next());
    let offset = |second: Option<Array>| second.map_or(Ok(0), |k| k.integer(function));
    match (function, n) {
        ("H", 1) => first.adjoint(),
        ("eye", 1 | 2) => {
            let rows = first.integer("eye")?;
            let columns = second.map_or(Ok(rows), |m| m.integer("eye"))?;
            let dims = [rows, columns].map(|d| usize::try_from(d).unwrap_or(0)).to_vec();
            let n = checked_len(&dims)?;
            let values =
                (0..n).map(|i| C::new(f64::from(u8::from(i / dims[1] == i % dims[1])), 0.0)).collect();
            Ok(Array { dims, values })
        }
        ("diag", 1) => first.diagonal("diag"),
        ("tr", 1) => first.diagonal("tr")?.total(),
        ("total", 1) => first.total(),
        ("tril", 1 | 2) => {
            let k = offset(second)?;
            first.masked("tril", |r, c| c - r <= k)
        }
        ("triu", 1 | 2) => {
            let k = offset(second)?;
            first.masked("triu", |r, c| c - r >= k)
        }
        ("cols", 2) => first.columns(&second.unwrap_or_else(|| Array::scalar(0.0))),
        ("H" | "eye" | "diag" | "tr" | "total" | "tril" | "triu" | "cols", _) => {
            Err(format!("residual formula: {function} does not take {n} operands"))
        }
        _ => Err(format!("residual formula: there is no function {function}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    fn f64s(dims: &[i64], values: &[f64]) -> ArrayLiteral {
        ArrayLiteral::new(dims.iter().copied().collect(), Buffer::F64(values.to_vec())).unwrap()
    }

    fn eval(formula: &str, args: &[ArrayLiteral], outs: &[ArrayLiteral]) -> f64 {
        let outs: Vec<&ArrayLiteral> = outs.iter().collect();
        residuals(formula, args, &outs).unwrap()[0]
    }

    /// Expected values: numpy, through peer/residual.py's functions, with arg0 = [[3, 4]] so that its norm
    /// is 5.
    #[test]
    fn values_are_numpys() {
        let args = [f64s(&[1, 2], &[3.0, 4.0])];
        let a = f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = f64s(&[2], &[10.0, 20.0]);
        let p = f64s(&[2], &[1.0, 0.0]);
        let outs = [a, b, p];
        let near = |formula: &str, expected: f64| {
            let got = eval(formula, &args, &outs);
            assert!((got - expected / 5.0).abs() < 1e-12 * expected.abs().max(1.0), "{formula}: {got}");
        };
        near("out0 @ out0", (49.0f64 + 100.0 + 225.0 + 484.0).sqrt());
        near("out0 * out1[..., None, :]", (100.0f64 + 1600.0 + 900.0 + 6400.0).sqrt());
        near("out0 * out1[..., :, None]", (100.0f64 + 400.0 + 3600.0 + 6400.0).sqrt());
        near("out0 - eye(2)", (0.0f64 + 4.0 + 9.0 + 9.0).sqrt());
        near("eye(2, 3)", 2f64.sqrt());
        near("H(out0) - out0", 2f64.sqrt());
        near("tril(out0, -1)", 3.0);
        near("triu(out0, 1)", 2.0);
        near("diag(out0)", 17f64.sqrt());
        near("tr(out0)", 5.0);
        near("total(out0)", (9.0f64 + 49.0).sqrt());
        near("cols(out0, out2) - out0", (4.0 * 1.0f64).sqrt());
        near("-2.5e-1 * (out0 - out0 - 4)", 2.0);
        near("0.1 * total(out1)", 3.0);
    }

    #[test]
    fn complex_adjoint_conjugates() {
        let z = ArrayLiteral::new([1, 1].into_iter().collect(), Buffer::C64(vec![Complex::new(0.0, 2.0)]))
            .unwrap();
        assert_eq!(eval("H(arg0) + arg0", std::slice::from_ref(&z), &[]), 0.0);
        assert_eq!(eval("H(arg0) - arg0", &[z], &[]), 2.0);
    }

    #[test]
    fn nan_and_infinity_do_not_vanish() {
        let one = [f64s(&[1], &[1.0])];
        assert!(eval("out0", &one, &[f64s(&[2], &[f64::NAN, 1.0])]).is_nan());
        assert_eq!(eval("out0", &one, &[f64s(&[1], &[f64::INFINITY])]), f64::INFINITY);
    }

    #[test]
    fn mistakes_are_sentences() {
        let args = [f64s(&[2], &[1.0, 2.0])];
        let bad = |f: &str| residuals(f, &args, &[]).unwrap_err();
        assert_eq!(bad("out0"), "residual formula: there is no out0");
        assert_eq!(bad("arg0 +"), "residual formula `arg0 +`: expected a number, a name or `(` at offset 6");
        assert_eq!(bad("inv(arg0)"), "residual formula: there is no function inv");
        assert_eq!(bad("arg0 @ arg0"), "@ needs a matrix, not an array of 1 dimensions");
        assert_eq!(bad("arg0 arg0"), "residual formula `arg0 arg0`: expected the end at offset 5");
        assert_eq!(bad("eye(100000)"), "an array of dimensions [100000, 100000] is too large");
        assert_eq!(bad("H(arg0, arg0)"), "residual formula: H does not take 2 operands");
        assert_eq!(bad(&"(".repeat(1000)), "residual formula: nested too deeply");
    }
}
