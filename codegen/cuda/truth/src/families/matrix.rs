//! `mma.sync` in every shape and type that the interpreter has, on random and hostile matrices.

use hlo_ptx::spell::{Spelling, spellings};
use hlo_ptx::types::{Class, Type};

use super::Scale;
use super::single::header;
use crate::case::{Array, Case, Judge, prologue};
use crate::operands::{Random, element, layout, to_bytes};

/// A shape of matrices.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// The type of A.
    pub a: Type,
    /// The type of B.
    pub b: Type,
    /// The type of C and D.
    pub c: Type,
}

/// Elements of a type in a register, and bits of each.
fn per_register(ty: Type) -> (usize, u32) {
    match ty {
        Type::F64 => (1, 64),
        other => ((32 / other.bits()) as usize, other.bits()),
    }
}

fn width(ty: Type) -> usize {
    if ty == Type::F64 { 8 } else { 4 }
}

impl Shape {
    fn of(s: &Spelling) -> Option<Shape> {
        let dims = s.modifiers.iter().find(|m| m.starts_with('m') && m.contains('n') && m.contains('k'))?;
        let mut numbers = dims.split(['m', 'n', 'k']).filter_map(|p| p.parse::<usize>().ok());
        let (m, n, k) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let [d, a, b, c] = s.types[..] else { return None };
        (d == c).then_some(Shape { m, n, k, a, b, c })
    }

    /// Registers of a lane for A, B, and C or D.
    fn registers(&self) -> [usize; 3] {
        let of = |elements: usize, ty: Type| {
            let (count, _) = per_register(ty);
            elements / 32 / count
        };
        [of(self.m * self.k, self.a), of(self.k * self.n, self.b), of(self.m * self.n, self.c)]
    }

    /// Row and column of element `j` of register `r` of A.
    fn place_a(&self, lane: usize, r: usize, j: usize) -> (usize, usize) {
        let (e, _) = per_register(self.a);
        let halves = self.m / 8;
        (lane / 4 + 8 * (r % halves), r / halves * 4 * e + lane % 4 * e + j)
    }

    fn place_b(&self, lane: usize, r: usize, j: usize) -> (usize, usize) {
        let (e, _) = per_register(self.b);
        (r * 4 * e + lane % 4 * e + j, lane / 4)
    }

    fn place_c(&self, lane: usize, r: usize, j: usize) -> (usize, usize) {
        let (e, _) = per_register(self.c);
        let i = r * e + j;
        (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2)
    }
}

/// Where an element of a fragment is in its matrix.
type FragmentLayout<'s> = &'s dyn Fn(usize, usize, usize) -> (usize, usize);

/// The registers of 32 lanes that hold a matrix.
fn pack(matrix: &[Vec<u64>], ty: Type, registers: usize, position: FragmentLayout<'_>) -> Vec<u64> {
    let (e, bits) = per_register(ty);
    let mut out = Vec::with_capacity(32 * registers);
    for lane in 0..32 {
        for r in 0..registers {
            out.push((0..e).fold(0, |v, j| {
                let (row, column) = position(lane, r, j);
                v | matrix[row][column] << (j as u32 * bits)
            }));
        }
    }
    out
}

/// The row of A, the column of B and the element of C that an element of the output is made of.
#[must_use]
pub fn describe(s: &Shape, arrays: &[Array], index: usize) -> Vec<String> {
    let [na, nb, nc] = s.registers();
    let (thread, r) = (index / nc, index % nc);
    let (warp, lane) = (thread / 32, thread % 32);
    let find = |array: &Array,
                ty: Type,
                registers: usize,
                position: FragmentLayout<'_>,
                wanted: &dyn Fn((usize, usize)) -> Option<usize>,
                count: usize| {
        let (e, bits) = per_register(ty);
        let mut out = vec![0; count];
        for lane in 0..32 {
            for r in 0..registers {
                for j in 0..e {
                    if let Some(at) = wanted(position(lane, r, j)) {
                        let v = array.element((warp * 32 + lane) * registers + r);
                        out[at] = v >> (j as u32 * bits) & (u64::MAX >> (64 - bits));
                    }
                }
            }
        }
        out.iter().map(|v| format!("{v:x}")).collect::<Vec<_>>().join(",")
    };
    let (e, _) = per_register(s.c);
    let mut all = Vec::new();
    for j in 0..e {
        let (row, column) = s.place_c(lane, r, j);
        let a =
            find(&arrays[0], s.a, na, &|l, r, j| s.place_a(l, r, j), &|p| (p.0 == row).then_some(p.1), s.k);
        let b = find(
            &arrays[1],
            s.b,
            nb,
            &|l, r, j| s.place_b(l, r, j),
            &|p| (p.1 == column).then_some(p.0),
            s.k,
        );
        let c = find(
            &arrays[2],
            s.c,
            nc,
            &|l, r, j| s.place_c(l, r, j),
            &|p| (p == (row, column)).then_some(0),
            1,
        );
        all.push(format!("d[{row}][{column}]: a={a} b={b} c={c}"));
    }
    all
}

/// A case of each shape.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let all = spellings("mma");
    all.iter().filter_map(|s| case(s, scale)).collect()
}

fn case(s: &Spelling, scale: Scale) -> Option<Case> {
    let shape = Shape::of(s)?;
    let counts = shape.registers();
    if counts.contains(&0) {
        return None;
    }
    let products = scale.products.next_multiple_of(4);
    let [na, nb, nc] = counts;
    let widths = [na * width(shape.a), nb * width(shape.b), nc * width(shape.c), nc * width(shape.c)];
    let mut text = prologue(&widths);
    let mut lists = Vec::new();
    for (i, (count, ty)) in [(na, shape.a), (nb, shape.b), (nc, shape.c)].into_iter().enumerate() {
        let bits = width(ty) * 8;
        text += &format!(".reg .b{bits} %x{i}_<{count}>;\n");
        let names: Vec<String> = (0..count).map(|r| format!("%x{i}_{r}")).collect();
        for (r, name) in names.iter().enumerate() {
            text += &format!("ld.global.b{bits} {name}, [%a{i}+{}];\n", r * width(ty));
        }
        lists.push(format!("{{{}}}", names.join(", ")));
    }
    let bits = width(shape.c) * 8;
    text += &format!(".reg .b{bits} %y<{nc}>;\n");
    let names: Vec<String> = (0..nc).map(|r| format!("%y{r}")).collect();
    text += &format!("{s} {{{}}}, {};\n", names.join(", "), lists.join(", "));
    for (r, name) in names.iter().enumerate() {
        text += &format!("st.global.b{bits} [%a3+{}], {name};\n", r * width(shape.c));
    }
    text += "ret;\n}";
    let name = s.to_string();
    let fill = {
        let (shape, name) = (shape.clone(), name.clone());
        Box::new(move || fill(&shape, &name, products))
    };
    let case = Case {
        family: "mma",
        instruction: name,
        body: text,
        variables: String::new(),
        blocks: (products / 4) as u32,
        threads: 128,
        fill,
        judge: Judge::Product(shape),
    };
    // `.kind::f8f6f4` needs sm_120.
    hlo_ptx::lower::module(&(header(120) + &case.text("k"))).ok()?;
    Some(case)
}

fn fill(s: &Shape, name: &str, products: usize) -> Vec<Array> {
    let mut random = Random::of(name);
    let [na, nb, nc] = s.registers();
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for p in 0..products {
        let (x, y, z) = matrices(s, p, &mut random);
        a.extend(pack(&x, s.a, na, &|l, r, j| s.place_a(l, r, j)));
        b.extend(pack(&y, s.b, nb, &|l, r, j| s.place_b(l, r, j)));
        c.extend(pack(&z, s.c, nc, &|l, r, j| s.place_c(l, r, j)));
    }
    let input = |name: &str, ty: Type, v: &[u64]| Array::input(name, ty, width(ty), to_bytes(v, width(ty)));
    // Two f16 of a register: NaN is looked for in both.
    let packed = if s.c == Type::F16 { Type::F16x2 } else { s.c };
    vec![
        input("a", s.a, &a),
        input("b", s.b, &b),
        input("c", s.c, &c),
        Array::output("d", packed, width(s.c), products * 32 * nc),
    ]
}

type Matrix = Vec<Vec<u64>>;

/// A number of a format with an exponent, as near as the format allows, and a random or full fraction.
fn number(ty: Type, exponent: i32, random: &mut Random) -> u64 {
    let Some((e, f)) = layout(ty) else { return random.bits() & (u64::MAX >> (64 - ty.bits())) };
    let bias = (1 << (e - 1)) - 1;
    let top = if ty == Type::E4m3 { (1 << e) - 1 } else { (1 << e) - 2 };
    let field = (exponent + bias).clamp(0, top) as u64;
    let all = (1_u64 << f) - 1;
    let mut fraction = match random.below(8) {
        0 => all,
        1 => 0,
        _ => random.bits() & all,
    };
    if ty == Type::E4m3 && field == 15 && fraction == 7 {
        fraction = 6;
    }
    random.below(2) << (e + f) | field << f | fraction
}

/// The matrices of product `p`: distributions alternate.
fn matrices(s: &Shape, p: usize, random: &mut Random) -> (Matrix, Matrix, Matrix) {
    let make = |rows: usize, columns: usize, f: &mut dyn FnMut(usize, usize) -> u64| -> Matrix {
        (0..rows).map(|r| (0..columns).map(|c| f(r, c)).collect()).collect()
    };
    if s.a.class() != Class::Float {
        let extreme = |ty: Type, random: &mut Random| {
            let mask = u64::MAX >> (64 - ty.bits());
            match random.below(3) {
                0 => 1 << (ty.bits() - 1),
                1 => mask >> 1,
                _ => mask,
            }
        };
        let is_extreme = p % 3 == 1;
        let mut of = |ty: Type| if is_extreme { extreme(ty, random) } else { element(ty, random) };
        let raw = |ty: Type| if ty.bits() < 8 { Type::B8 } else { ty };
        let mask = |ty: Type, v: u64| v & (u64::MAX >> (64 - ty.bits()));
        let a = make(s.m, s.k, &mut |_, _| if is_extreme { of(s.a) } else { mask(s.a, of(raw(s.a))) });
        let b = make(s.k, s.n, &mut |_, _| if is_extreme { of(s.b) } else { mask(s.b, of(raw(s.b))) });
        let c = make(s.m, s.n, &mut |_, _| element(Type::S32, random));
        return (a, b, c);
    }
    let (ea, _) = layout(s.a).unwrap_or((8, 23));
    let (ec, fc) = layout(s.c).unwrap_or((8, 23));
    let reach = (1_i32 << (ea - 1)) - 2;
    let reach_c = (1_i32 << (ec - 1)) - 2;
    let near = |ty: Type, at: i32, spread: i32, random: &mut Random| {
        number(ty, at - spread / 2 + random.below(spread as u64 + 1) as i32, random)
    };
    match p % 14 {
        // Around one.
        0 => (
            make(s.m, s.k, &mut |_, _| near(s.a, 0, 2, random)),
            make(s.k, s.n, &mut |_, _| near(s.b, 0, 2, random)),
            make(s.m, s.n, &mut |_, _| near(s.c, 0, 2, random)),
        ),
        // All exponents.
        1 => (
            make(s.m, s.k, &mut |_, _| near(s.a, 0, 2 * reach, random)),
            make(s.k, s.n, &mut |_, _| near(s.b, 0, 2 * reach, random)),
            make(s.m, s.n, &mut |_, _| near(s.c, 0, 2 * reach_c, random)),
        ),
        // Exponents that spread as far as a sum has bits.
        2 | 3 => (
            make(s.m, s.k, &mut |_, _| near(s.a, 0, 13, random)),
            make(s.k, s.n, &mut |_, _| near(s.b, 0, 13, random)),
            make(s.m, s.n, &mut |_, _| near(s.c, 0, 26, random)),
        ),
        // Any bits, one in 64: NaN and infinities.
        4 => (
            make(s.m, s.k, &mut |_, _| {
                if random.below(64) == 0 { element(s.a, random) } else { near(s.a, 0, 4, random) }
            }),
            make(s.k, s.n, &mut |_, _| {
                if random.below(64) == 0 { element(s.b, random) } else { near(s.b, 0, 4, random) }
            }),
            make(s.m, s.n, &mut |_, _| {
                if random.below(64) == 0 { element(s.c, random) } else { near(s.c, 0, 4, random) }
            }),
        ),
        // Subnormal operands.
        5 => (
            make(s.m, s.k, &mut |_, _| near(s.a, -reach - 1, 2, random)),
            make(s.k, s.n, &mut |_, _| near(s.b, if random.below(2) == 0 { 0 } else { reach }, 4, random)),
            make(s.m, s.n, &mut |_, _| near(s.c, -reach, 8, random)),
        ),
        // Neighbours cancel.
        6 | 7 => {
            let mut a = make(s.m, s.k, &mut |_, _| near(s.a, 0, 6, random));
            let mut b = make(s.k, s.n, &mut |_, _| near(s.b, 0, 6, random));
            let sign = 1_u64 << (if s.a == Type::Tf32 { 32 } else { s.a.bits() } - 1);
            for row in &mut a {
                for i in (0..s.k - 1).step_by(2) {
                    row[i + 1] = row[i] ^ sign;
                }
            }
            for i in (0..s.k - 1).step_by(2) {
                b[i + 1] = b[i].iter().map(|&v| if random.below(4) == 0 { v ^ 1 } else { v }).collect();
            }
            let c = make(s.m, s.n, &mut |_, _| near(s.c, -12, 24, random));
            (a, b, c)
        }
        // The accumulator is much larger, or much smaller.
        8 | 9 => {
            let gap = if p % 14 == 8 { 1 } else { -1 } * (fc as i32 - 4 + random.below(10) as i32);
            (
                make(s.m, s.k, &mut |_, _| near(s.a, -2, 3, random)),
                make(s.k, s.n, &mut |_, _| near(s.b, -2, 3, random)),
                make(s.m, s.n, &mut |_, _| near(s.c, gap, 4, random)),
            )
        }
        // Each product is smaller than the one before: what is truncated adds up.
        10 => {
            let step = 1 + random.below(3) as i32;
            (
                make(s.m, s.k, &mut |_, k| near(s.a, 4 - step * k as i32, 1, random)),
                make(s.k, s.n, &mut |_, _| near(s.b, 0, 1, random)),
                make(s.m, s.n, &mut |_, _| near(s.c, 4 - step * (s.k as i32 / 2), 4, random)),
            )
        }
        // Zeros of both signs, and few numbers.
        11 => {
            let zero = |ty: Type, random: &mut Random| {
                let bits = if ty == Type::Tf32 { 32 } else { ty.bits() };
                random.below(2) << (bits - 1)
            };
            (
                make(s.m, s.k, &mut |_, _| {
                    if random.below(8) == 0 { near(s.a, 0, 6, random) } else { zero(s.a, random) }
                }),
                make(s.k, s.n, &mut |_, _| {
                    if random.below(8) == 0 { near(s.b, 0, 6, random) } else { zero(s.b, random) }
                }),
                make(s.m, s.n, &mut |_, _| {
                    if random.below(4) == 0 { near(s.c, 0, 6, random) } else { zero(s.c, random) }
                }),
            )
        }
        // Results around the smallest normal number of f32, where products reach it.
        12 => (
            make(s.m, s.k, &mut |_, _| near(s.a, -reach / 2 - reach / 4, reach / 2, random)),
            make(s.k, s.n, &mut |_, _| near(s.b, -reach / 2 - reach / 4, reach / 2, random)),
            make(s.m, s.n, &mut |_, _| near(s.c, -reach_c, 24, random)),
        ),
        // Any bits.
        _ => (
            make(s.m, s.k, &mut |_, _| element(s.a, random)),
            make(s.k, s.n, &mut |_, _| element(s.b, random)),
            make(s.m, s.n, &mut |_, _| element(s.c, random)),
        ),
    }
}
