//! Functions of `f32` in pieces: each piece has a polynomial of its own, and each lane picks the coefficients
//! of the piece that it is in.
//!
//! On x86-64 a register of eight coefficients is permuted by the numbers of the pieces, which takes one
//! instruction; elsewhere, and on scalars, the bits of the number select.
//!
//! **Invariant:** picking moves bits, so that every way of it gives the same results.

use crate::{Emit, IntPredicate, Prim, Result, Value};

/// Pieces of a function: as many as the smallest register of x86-64 that is permuted has lanes.
const PIECES: usize = 8;

/// The coefficients of one power, piece by piece.
pub(super) type Row = [f32; PIECES];

/// Each lane's coefficient, by the low bits of its `piece` of 32 bits.
pub(super) fn pick<'ctx>(e: &Emit<'_, 'ctx>, row: &Row, piece: Value<'ctx>) -> Result<Value<'ctx>> {
    let lanes = e.lanes_of(piece);
    let name = match lanes {
        _ if !e.x86 || lanes < 4 => return select(e, row, piece),
        4 => {
            let wide = e.shuffle(piece, piece, &[0, 1, 2, 3, 0, 1, 2, 3])?;
            let picked = pick(e, row, wide)?;
            return e.shuffle(picked, picked, &[0, 1, 2, 3]);
        }
        8 => "llvm.x86.avx2.permps",
        // Of its sixteen lanes, by four bits: the row is in it twice.
        16 if e.avx512 => "llvm.x86.avx512.permvar.sf.512",
        _ => {
            let half = |from: u32| e.shuffle(piece, piece, &(from..from + lanes / 2).collect::<Vec<_>>());
            let [low, high] = [pick(e, row, half(0)?)?, pick(e, row, half(lanes / 2)?)?];
            return e.shuffle(low, high, &(0..lanes).collect::<Vec<_>>());
        }
    };
    let bits: Vec<u64> = row.iter().cycle().take(lanes as usize).map(|c| u64::from(c.to_bits())).collect();
    let wide = e.with_lanes(lanes);
    let table = wide.bitcast(wide.int_lanes(Prim::I32, &bits), Prim::F32)?;
    e.intrinsic(name, &[], &[table, piece])
}

/// The same, bit by bit.
fn select<'ctx>(e: &Emit<'_, 'ctx>, row: &Row, piece: Value<'ctx>) -> Result<Value<'ctx>> {
    let mut left: Vec<Value<'ctx>> = row.iter().map(|&c| e.f32(c)).collect();
    let mut bit = 1;
    while left.len() > 1 {
        let set = e.icmp(IntPredicate::NE, e.and(piece, e.i32(bit))?, e.i32(0))?;
        let pairs = left.as_chunks().0.iter();
        left = pairs.map(|&[even, odd]| e.select(set, odd, even)).collect::<Result<_>>()?;
        bit *= 2;
    }
    Ok(left[0])
}
