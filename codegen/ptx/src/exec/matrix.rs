//! Matrices: `ldmatrix`, `stmatrix`, `movmatrix` and the operands of `mma`, by the ISA's fragment layouts.

use super::mma::multiply;
use super::{Block, Machine, Step, Warp};
use crate::ir::{Address, Inst, Mma, Op, Reg, Src};
use crate::report::Fault;
use crate::types::Type;

impl Warp {
    /// Instructions of whole warps: all 32 lanes execute them.
    fn check_whole(&self, m: &Machine<'_>, b: &Block, inst: &Inst, active: u32) -> Step<()> {
        if active == u32::MAX {
            return Ok(());
        }
        let lane = (!active).trailing_zeros();
        let what = format!(
            "Barrier error detected. Divergent thread(s) in warp: lane {lane} does not execute the instruction of the whole warp"
        );
        Err(Box::new(self.fault(m, b, inst, active.trailing_zeros(), Fault::InvalidMask, what)))
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn load_matrix(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        d: &[Reg],
        trans: bool,
        address: &Address,
    ) -> Step<()> {
        self.check_whole(m, b, inst, active)?;
        let f = self.fragments[i];
        let mut rows = Vec::new();
        for lane in 0..8 * d.len() as u32 {
            rows.push(self.matrix_row(m, b, i, inst, lane, address, None)?);
        }
        for (n, &d) in d.iter().enumerate() {
            let mut out = [0; 32];
            for (lane, o) in out.iter_mut().enumerate() {
                let (row, pair) = (lane / 4, lane % 4 * 2);
                let at = |r: usize, c: usize| u64::from(rows[8 * n + r][c]);
                *o = if trans {
                    at(pair, row) | at(pair + 1, row) << 16
                } else {
                    at(row, pair) | at(row, pair + 1) << 16
                };
            }
            self.set(&f, d, active, u32::MAX, &out);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the operands of the instruction and its context")]
    pub(super) fn store_matrix(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
        s: &[Src],
        trans: bool,
        address: &Address,
    ) -> Step<()> {
        self.check_whole(m, b, inst, active)?;
        let f = self.fragments[i];
        for (n, &s) in s.iter().enumerate() {
            let values = *self.get(m, &f, s);
            let mut rows = [[0_u16; 8]; 8];
            for (lane, v) in values.iter().enumerate() {
                let (row, pair) = (lane / 4, lane % 4 * 2);
                let (low, high) = (*v as u16, (*v >> 16) as u16);
                if trans {
                    (rows[pair][row], rows[pair + 1][row]) = (low, high);
                } else {
                    (rows[row][pair], rows[row][pair + 1]) = (low, high);
                }
            }
            for (r, row) in rows.iter().enumerate() {
                self.matrix_row(m, b, i, inst, (8 * n + r) as u32, address, Some(*row))?;
            }
        }
        Ok(())
    }

    pub(super) fn matrix(
        &mut self,
        m: &mut Machine<'_>,
        b: &mut Block,
        i: usize,
        inst: &Inst,
        active: u32,
    ) -> Step<()> {
        self.check_whole(m, b, inst, active)?;
        let f = self.fragments[i];
        match &inst.op {
            Op::MovMatrix { d, a } => {
                let (values, defined) = (*self.get(m, &f, *a), self.defined(&f, *a));
                let mut out = [0; 32];
                let element = |r: usize, c: usize| values[r * 4 + c / 2] >> (16 * (c % 2)) & 0xFFFF;
                for (lane, o) in out.iter_mut().enumerate() {
                    let (row, pair) = (lane / 4, lane % 4 * 2);
                    *o = element(pair, row) | element(pair + 1, row) << 16;
                }
                self.set(&f, *d, active, if defined == u32::MAX { u32::MAX } else { 0 }, &out);
            }
            Op::Mma { shape, d, a, b: bs, c } => {
                let defined =
                    a.iter().chain(bs.iter()).chain(c.iter()).all(|&s| self.defined(&f, s) == u32::MAX);
                let read =
                    |list: &[Src]| -> Vec<[u64; 32]> { list.iter().map(|&s| *self.get(m, &f, s)).collect() };
                let out = multiply(
                    shape,
                    m.module.arch,
                    &unpack_a(shape, &read(a)),
                    &unpack_b(shape, &read(bs)),
                    &unpack_c(shape, &read(c)),
                );
                let packed = pack_d(shape, &out, d.len());
                for (&d, values) in d.iter().zip(&packed) {
                    self.set(&f, d, active, if defined { u32::MAX } else { 0 }, values);
                }
            }
            // An instruction that did nothing here would be a wrong result that goes unnoticed.
            elsewhere => unreachable!("{elsewhere:?} is executed elsewhere"),
        }
        Ok(())
    }
}

/// A matrix by rows.
pub(super) struct Matrix {
    pub(super) columns: usize,
    pub(super) elements: Vec<u64>,
}

impl Matrix {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Matrix { columns, elements: vec![0; rows * columns] }
    }

    pub(super) fn at(&self, r: usize, c: usize) -> u64 {
        self.elements[r * self.columns + c]
    }

    fn put(&mut self, r: usize, c: usize, v: u64) {
        self.elements[r * self.columns + c] = v;
    }
}

/// Elements of a type in one register, and their bits. f64 has registers of 64 bits, tf32 and f32 of 32.
fn per_register(ty: Type) -> (usize, u32) {
    match ty {
        Type::F64 => (1, 64),
        other => ((32 / other.bits()) as usize, other.bits()),
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// A: register r of a lane holds consecutive elements of one row; with 16 rows, registers alternate between
/// the row of the lane's group and the one 8 below.
fn unpack_a(s: &Mma, regs: &[[u64; 32]]) -> Matrix {
    let (e, bits) = per_register(s.a);
    let mut out = Matrix::new(usize::from(s.m), usize::from(s.k));
    let halves = usize::from(s.m) / 8;
    for (r, values) in regs.iter().enumerate() {
        for (lane, v) in values.iter().enumerate() {
            let row = lane / 4 + 8 * (r % halves);
            for j in 0..e {
                let column = r / halves * 4 * e + lane % 4 * e + j;
                out.put(row, column, v >> (j as u32 * bits) & mask(bits));
            }
        }
    }
    out
}

/// B: a lane holds elements of one column.
fn unpack_b(s: &Mma, regs: &[[u64; 32]]) -> Matrix {
    let (e, bits) = per_register(s.b);
    let mut out = Matrix::new(usize::from(s.k), usize::from(s.n));
    for (r, values) in regs.iter().enumerate() {
        for (lane, v) in values.iter().enumerate() {
            for j in 0..e {
                out.put(r * 4 * e + lane % 4 * e + j, lane / 4, v >> (j as u32 * bits) & mask(bits));
            }
        }
    }
    out
}

/// Row and column of element `i` of C or D in a lane.
fn accumulator(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2)
}

fn unpack_c(s: &Mma, regs: &[[u64; 32]]) -> Matrix {
    let (e, bits) = per_register(s.c);
    let mut out = Matrix::new(usize::from(s.m), usize::from(s.n));
    for (r, values) in regs.iter().enumerate() {
        for (lane, v) in values.iter().enumerate() {
            for j in 0..e {
                let (row, column) = accumulator(lane, r * e + j);
                out.put(row, column, v >> (j as u32 * bits) & mask(bits));
            }
        }
    }
    out
}

fn pack_d(s: &Mma, m: &Matrix, count: usize) -> Vec<[u64; 32]> {
    let (e, bits) = per_register(s.d);
    let mut out = vec![[0; 32]; count];
    for (r, values) in out.iter_mut().enumerate() {
        for (lane, v) in values.iter_mut().enumerate() {
            for j in 0..e {
                let (row, column) = accumulator(lane, r * e + j);
                *v |= m.at(row, column) << (j as u32 * bits);
            }
        }
    }
    out
}
