//! `select-and-scatter`: for each window of the operand one element is selected, and the source's element for
//! that window is combined into the result there.
//!
//! Within a window, row-major, the first element that exists is selected, and replaced by a later one where
//! `select(selected, element)` is false. Windows are scattered in row-major order, `result = scatter(source,
//! result)`, literally. A window in the padding alone selects nothing, and its source goes nowhere.

use hlo::literal::{Buffer, BufferOf};
use hlo::{AttrKey, with_buffer};
use hlo_arithmetic::kernels::window::WindowAxis;
use hlo_threads::parallel;

use super::combine::{Combine, With};
use super::common::{arrays, dims, region, same_types};
use super::reduce::{filled, typed};
use super::scatter::{UpdatesAre, combine_in_order};
use super::window;
use super::{Args, Cx};
use crate::error::Result;
use crate::region::{LANES, Region};
use crate::value::{Sizes, Tensor, Value};

/// `select-and-scatter(operand, source, initial value)`.
pub(super) fn select_and_scatter(cx: &Cx<'_>, args: Args) -> Result<Value> {
    let [operand, source, init] = arrays(args);
    let (select, scatter) = (region(cx, AttrKey::Select)?, region(cx, AttrKey::Scatter)?);
    same_types(cx, &select, [(0, &operand), (1, &operand)])?;
    same_types(cx, &scatter, [(0, &source), (1, &init)])?;
    let axes = window::axes(cx, &operand.sizes())?;
    let windows = dims(&window::outputs(&axes));
    // A source that is padded beyond the windows of an operand's run-time sizes.
    let source = if source.dims().iter().zip(&windows).all(|(have, need)| have >= need) {
        super::movement::resized(cx, &source, &windows)?
    } else {
        source
    };
    if *windows != *source.dims() {
        return Err(cx.unsupported(&format!("of a source of dimensions {:?}", source.dims())));
    }
    let sizes = operand.sizes();
    let n = operand.len();
    let operands = typed(cx, &select, vec![operand], 0)?;
    let chosen = chosen(cx, &select, &axes, &operands[0], source.len())?;

    let init = &typed(cx, &scatter, vec![init], 1)?[0];
    let source = typed(cx, &scatter, vec![source], 0)?.swap_remove(0).into_buffer();
    let mut out = with_buffer!(init.buffer(), v => filled(cx, v[0], n)?);
    let pairs = chosen.iter().zip(0..).filter_map(|(to, from)| Some(((*to)?, from)));
    let typed = scatter
        .as_binary()
        .and_then(|(op, _)| with_buffer!(&mut out, out => combined(op, out, &source, &chosen)));
    if typed.is_some() {
        cx.applied(&scatter, chosen.iter().flatten().count());
    } else {
        combine_in_order(cx, &scatter, std::slice::from_mut(&mut out), &[&source], pairs, UpdatesAre::First)?;
    }
    Ok(Tensor::new(dims(&sizes), out).into())
}

/// Scatters by one operation, if the type has it.
fn combined<T: Combine>(
    op: hlo::Opcode,
    out: &mut [T],
    source: &Buffer,
    chosen: &[Option<usize>],
) -> Option<()> {
    struct Loop<'a, T> {
        out: &'a mut [T],
        source: &'a [T],
        chosen: &'a [Option<usize>],
    }
    impl<T: Combine> With<T> for Loop<'_, T> {
        type Output = ();

        fn with(self, f: impl Fn(T, T) -> T + Copy + Send + Sync) {
            for (&to, &source) in self.chosen.iter().zip(self.source) {
                if let Some(to) = to {
                    self.out[to] = f(source, self.out[to]);
                }
            }
        }
    }
    T::combine(op, Loop { out, source: T::slice(source)?, chosen })
}

/// The selected element of each of `n` windows.
fn chosen(
    cx: &Cx<'_>,
    select: &Region,
    axes: &[WindowAxis],
    operand: &Tensor,
    n: usize,
) -> Result<Vec<Option<usize>>> {
    cx.reserve::<u64>(n.saturating_mul(2))?;
    let mut chosen = vec![None; n];
    let block = |block: usize, chosen: &mut [Option<usize>]| -> Result<()> {
        let at: Vec<Sizes> =
            (0..chosen.len()).map(|i| window::coordinates(axes, block * LANES + i)).collect();
        let mut lanes = select.lanes(chosen.len());
        // Lanes whose window has an element here, and that element.
        let mut here: Vec<(usize, usize)> = Vec::with_capacity(chosen.len());
        for position in window::positions(axes) {
            here.clear();
            for (lane, at) in at.iter().enumerate() {
                if let Some(element) = window::locate(axes, at, &position) {
                    if chosen[lane].is_some() {
                        here.push((lane, element));
                    } else {
                        chosen[lane] = Some(element);
                    }
                }
            }
            with_buffer!(operand.buffer(), x => {
                fill(lanes.input(0), x, here.iter().filter_map(|&(lane, _)| chosen[lane]));
                fill(lanes.input(1), x, here.iter().map(|&(_, element)| element));
            });
            cx.spend(1)?;
            select.eval(cx, &mut lanes, here.len())?;
            for (&(lane, element), &stays) in here.iter().zip(lanes.output::<bool>(0)) {
                if !stays {
                    chosen[lane] = Some(element);
                }
            }
        }
        Ok(())
    };
    parallel::try_pieces(&mut chosen, LANES, 1, &block)?;
    Ok(chosen)
}

fn fill<T: BufferOf>(lanes: &mut [T], x: &[T], offsets: impl Iterator<Item = usize>) {
    lanes.iter_mut().zip(offsets).for_each(|(lane, at)| *lane = x[at]);
}
