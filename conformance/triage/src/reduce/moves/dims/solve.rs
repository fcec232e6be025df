//! Dimensions that follow from others without being equal to them.
//!
//! Changes spread: an operand that shrinks makes what is computed from it shrink where it must. Where a
//! result is to have another size than would follow, attributes can make it so (`rewrite.rs`): padding,
//! limits of slices, windows.

use std::ops::Range;

use hlo::attrs::{AttrKey, FftType, PaddingDim, SliceDim, WindowDim};
use hlo::{InstrId, Opcode};

use super::classes::{Change, Dims, Var};
use super::indexing;

/// The size that padding gives; may be negative.
pub(super) fn padded(n: i64, p: &PaddingDim) -> Option<i64> {
    let inner = if n > 0 { (n - 1).checked_mul(p.interior)?.checked_add(n)? } else { 0 };
    inner.checked_add(p.low)?.checked_add(p.high)
}

fn dilated(n: i64, dilation: i64) -> Option<i64> {
    if n <= 0 { Some(0) } else { (n - 1).checked_mul(dilation)?.checked_add(1) }
}

/// The extent of a dimension before padding, and of the window over it.
pub(super) fn extents(n: i64, w: &WindowDim) -> Option<(i64, i64)> {
    Some((dilated(n, w.base_dilation)?, dilated(w.size, w.window_dilation)?))
}

/// How often a window fits.
pub(super) fn placements(n: i64, w: &WindowDim) -> Option<i64> {
    let (base, window) = extents(n, w)?;
    let base = base.checked_add(w.pad_low)?.checked_add(w.pad_high)?;
    if base < 0 || w.stride < 1 {
        return None;
    }
    Some(if base == 0 || window > base { 0 } else { (base - window) / w.stride + 1 })
}

/// The elements that a slice reads of `n`: what it says, or at most `most` from where it starts, if that is
/// inside.
fn sliced(n: i64, s: &SliceDim, most: i64) -> i64 {
    let stride = s.stride.max(1);
    if s.limit <= n {
        return (s.limit - s.start + stride - 1) / stride;
    }
    let from = if s.start < n { n - s.start } else { n };
    ((from - 1) / stride + 1).min(most)
}

impl Dims<'_> {
    /// Spreads changes until everything fits. `None` if that cannot be.
    pub(super) fn solve(&mut self) -> Option<()> {
        self.settle_unequal()?;
        let dependent: Vec<InstrId> =
            self.instructions().into_iter().filter(|&id| depends(self.module.instr(id).opcode)).collect();
        for _ in 0..32 {
            let mut changed = false;
            for &id in &dependent {
                changed |= self.settle(id)?;
            }
            if !changed {
                return Some(());
            }
        }
        None
    }

    fn decided(&self, var: Var) -> bool {
        self.change(var).is_some() || self.is_fixed(var)
    }

    /// Assigns a size to a dimension unless it has one already. Returns whether that changed something.
    fn lead(&mut self, var: Var, size: i64) -> Option<bool> {
        if self.size(var) == size || self.change(var).is_some() {
            return Some(false);
        }
        self.set(var, Change::Size(size))?;
        Some(true)
    }

    /// Makes `small` at most `large`.
    fn bound(&mut self, small: Var, large: Var) -> Option<bool> {
        if self.size(small) <= self.size(large) {
            return Some(false);
        }
        let size = self.size(large);
        if self.change(small).is_some() {
            return None;
        }
        self.set(small, Change::Size(size))?;
        Some(true)
    }

    fn settle(&mut self, id: InstrId) -> Option<bool> {
        let i = self.module.instr(id);
        let mut changed = false;
        match i.opcode {
            Opcode::Slice => {
                for ((a, b), s) in self.operand(id, 0).zip(self.of(id)).zip(i.attrs.slices()?.to_vec()) {
                    if self.class(a) == self.class(b) {
                        continue;
                    }
                    if self.change(b).is_none() {
                        let size =
                            if self.size(a) == 0 { 0 } else { sliced(self.size(a), &s, self.old_size(b)) };
                        changed |= self.lead(b, size)?;
                    }
                    (self.size(b) <= self.size(a)).then_some(())?;
                    self.droppable(a, b)?;
                }
            }
            Opcode::Pad => {
                for ((a, b), p) in self.operand(id, 0).zip(self.of(id)).zip(i.attrs.padding()?.to_vec()) {
                    if self.class(a) != self.class(b) && self.change(b).is_none() {
                        changed |= self.lead(b, padded(self.size(a), &p)?.max(0))?;
                    }
                    if self.class(a) != self.class(b) {
                        self.droppable(a, b)?;
                    }
                }
            }
            Opcode::Concatenate => changed |= self.settle_concatenate(id)?,
            Opcode::ReduceWindow => {
                changed |= self.settle_window(id, self.operand(id, 0), self.leaf(id, 0))?
            }
            Opcode::SelectAndScatter => {
                changed |= self.settle_window(id, self.operand(id, 0), self.operand(id, 1))?
            }
            Opcode::Convolution => {
                let (d, window) =
                    (i.attrs.conv_dims()?.clone(), i.attrs.window().cloned().unwrap_or_default());
                let (a, k, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
                for (n, w) in window.dims.iter().enumerate() {
                    let from = a.start + usize::try_from(*d.input_spatial.get(n)?).ok()?;
                    let by = k.start + usize::try_from(*d.kernel_spatial.get(n)?).ok()?;
                    let result = to.start + usize::try_from(*d.output_spatial.get(n)?).ok()?;
                    let w = WindowDim { size: self.size(by), ..*w };
                    if self.change(result).is_none() {
                        let size = placements(self.size(from), &w)?.max(self.old_size(result).min(1));
                        changed |= self.lead(result, size)?;
                    }
                    let drops = [from, by, result].map(|v| self.change(v) == Some(Change::Drop));
                    (drops.iter().all(|&d| d) || drops.iter().all(|&d| !d)).then_some(())?;
                }
            }
            Opcode::DynamicSlice => {
                for (a, b) in self.operand(id, 0).zip(self.of(id)) {
                    changed |= self.bound(b, a)?;
                    self.droppable(a, b)?;
                }
            }
            Opcode::DynamicUpdateSlice => {
                for (a, b) in self.operand(id, 0).zip(self.operand(id, 1)) {
                    changed |= self.bound(b, a)?;
                    self.droppable(a, b)?;
                }
            }
            Opcode::Gather => {
                let (a, to) = (self.operand(id, 0), self.of(id));
                for (operand, result) in
                    indexing::gather(self.module, id).map(|r| r.windows).unwrap_or_default()
                {
                    changed |= self.bound(to.start + result, a.start + operand)?;
                    self.droppable(a.start + operand, to.start + result)?;
                }
            }
            Opcode::Scatter => {
                let n = i.operands().len() / 2;
                let (a, updates) = (self.operand(id, 0), self.operand(id, n + 1));
                for (operand, update) in
                    indexing::scatter(self.module, id).map(|r| r.windows).unwrap_or_default()
                {
                    changed |= self.bound(updates.start + update, a.start + operand)?;
                    self.droppable(a.start + operand, updates.start + update)?;
                }
            }
            Opcode::Topk => {
                let (a, to) = (self.operand(id, 0), self.leaf(id, 0));
                changed |= self.bound(to.end.checked_sub(1)?, a.end.checked_sub(1)?)?;
            }
            Opcode::Fft => {
                let (a, to) = (self.operand(id, 0), self.of(id));
                let (a, to) = (a.end.checked_sub(1)?, to.end.checked_sub(1)?);
                match i.attrs.fft_type()? {
                    FftType::Fft | FftType::Ifft => {}
                    FftType::Rfft => changed |= self.settle_half(a, to)?,
                    FftType::Irfft => changed |= self.settle_half(to, a)?,
                }
            }
            Opcode::Reshape | Opcode::Bitcast => {
                for (from, to) in self.reshape_groups(id) {
                    changed |= self.settle_group(&from, &to)?;
                }
            }
            _ => {}
        }
        Some(changed)
    }

    /// Two dimensions that depend on each other are dropped together, or not at all.
    fn droppable(&self, a: Var, b: Var) -> Option<()> {
        let dropped = |v| self.change(v) == Some(Change::Drop);
        (dropped(a) == dropped(b)).then_some(())
    }

    /// A transform of `n` reals has `n / 2 + 1` complex numbers.
    fn settle_half(&mut self, whole: Var, half: Var) -> Option<bool> {
        let (n, m) = (self.size(whole), self.size(half));
        if n / 2 + 1 == m {
            return Some(false);
        }
        if !self.decided(half) {
            return self.lead(half, n / 2 + 1);
        }
        if self.change(whole).is_some() {
            return None;
        }
        self.set(whole, Change::Size(((m - 1) * 2).max(1)))?;
        Some(true)
    }

    fn settle_window(&mut self, id: InstrId, from: Range<Var>, to: Range<Var>) -> Option<bool> {
        let window = self.module.instr(id).attrs.window().cloned().unwrap_or_default();
        let mut changed = false;
        for ((a, b), w) in from.zip(to).zip(window.dims) {
            if self.class(a) == self.class(b) {
                continue;
            }
            self.droppable(a, b)?;
            if self.change(b).is_none() {
                let size = placements(self.size(a), &w)?.max(self.old_size(b).min(1));
                changed |= self.lead(b, size)?;
            }
        }
        Some(changed)
    }

    fn settle_concatenate(&mut self, id: InstrId) -> Option<bool> {
        let i = self.module.instr(id);
        let along = usize::try_from(*i.attrs.ints(AttrKey::Dimensions)?.first()?).ok()?;
        let parts: Vec<Var> =
            (0..i.operands().len()).map(|slot| self.operand(id, slot).start + along).collect();
        let to = self.of(id).start + along;
        if parts.iter().chain([&to]).any(|&v| self.change(v) == Some(Change::Drop)) {
            // Of one part it does nothing, and is dropped elsewhere.
            return None;
        }
        let sum = |dims: &Self| parts.iter().map(|&v| dims.size(v)).sum::<i64>();
        if sum(self) == self.size(to) {
            return Some(false);
        }
        if !self.decided(to) {
            let sum = sum(self);
            return self.lead(to, sum);
        }
        // The result is decided: parts that are not give way, from the last.
        for &part in parts.iter().rev() {
            let more = self.size(to) - sum(self);
            if more == 0 {
                break;
            }
            if !self.decided(part) {
                let times = parts.iter().filter(|&&p| self.class(p) == self.class(part)).count() as i64;
                let size = (self.size(part) + more / times).max(self.old_size(part).min(1));
                self.set(part, Change::Size(size))?;
            }
        }
        (sum(self) == self.size(to)).then_some(true)
    }

    /// Makes both sides of a reshape hold the same number of elements.
    fn settle_group(&mut self, from: &[Var], to: &[Var]) -> Option<bool> {
        let product =
            |dims: &Self, side: &[Var]| side.iter().try_fold(1i64, |n, &v| n.checked_mul(dims.size(v)));
        let (m, n) = (product(self, from)?, product(self, to)?);
        if m == n {
            return Some(false);
        }
        // The side where nothing is decided follows the other; else whichever can.
        let touched = |dims: &Self, side: &[Var]| side.iter().any(|&v| dims.change(v).is_some());
        let sides = if touched(self, to) { [(from, n), (to, m)] } else { [(to, m), (from, n)] };
        for (side, wanted) in sides {
            for &v in side {
                let rest: i64 =
                    side.iter().filter(|&&o| o != v).try_fold(1i64, |n, &o| n.checked_mul(self.size(o)))?;
                let once = side.iter().filter(|&&o| self.class(o) == self.class(v)).count() == 1;
                if !self.decided(v) && once && rest > 0 && wanted % rest == 0 {
                    self.set(v, Change::Size(wanted / rest))?;
                    return Some(true);
                }
            }
            // All in the first, and nothing in the others.
            let free = side.iter().all(|&v| !self.decided(v));
            let once =
                side.iter().all(|&v| side.iter().filter(|&&o| self.class(o) == self.class(v)).count() == 1);
            if free && once && !side.is_empty() {
                for (n, &v) in side.iter().enumerate() {
                    self.set(v, Change::Size(if n == 0 { wanted } else { 1 }))?;
                }
                return Some(true);
            }
        }
        None
    }
}

/// Whether some dimension of an operand or result of such instructions follows from others without being
/// equal.
fn depends(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Slice
            | Opcode::Pad
            | Opcode::Concatenate
            | Opcode::ReduceWindow
            | Opcode::SelectAndScatter
            | Opcode::Convolution
            | Opcode::DynamicSlice
            | Opcode::DynamicUpdateSlice
            | Opcode::Gather
            | Opcode::Scatter
            | Opcode::Topk
            | Opcode::Fft
            | Opcode::Reshape
            | Opcode::Bitcast
    )
}
