//! `ragged-dot`: contractions in groups whose sizes an operand says. Each group is a product of its own, over
//! part of the ragged dimension.

use hlo::{AttrKey, ElementType, InstrId, Module};
use hlo_library_base::{Call, Operation, Unsupported};
use smallvec::SmallVec;

use super::convert::{self, Conversion};
use super::operand::{Field, Operand};
use super::product::{Extents, Narrow, Product, Right, Schedule, Target};
use super::source::{Readable, Strided, Typed};
use super::steps::Steps;
use super::tile::{self, Arithmetic};
use super::{Dot, Parts, check_precision, reader, sizes, strides};

/// What the ragged dimension of the left operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Free: each index is contracted with the group of the right operand that it belongs to; the others
    /// give 0.
    Free,
    /// Contracting: the result has a leading dimension of groups, each contracts its own indices.
    Contracting,
    /// Batch: batches that belong to no group give 0.
    Batch,
}

/// A `ragged-dot`.
#[derive(Clone, Debug)]
pub(crate) struct RaggedDot {
    kind: Kind,
    field: Field,
    lhs: Operand,
    rhs: Operand,
    /// Type of the group sizes, how many there are in a list, how many lists.
    sizes_type: ElementType,
    count: usize,
    lists: usize,
    /// Number of outer indices: of batch dimensions and, with [`Kind::Free`], of the free dimensions other
    /// than the ragged one.
    outer: usize,
    /// Outer indices that share a list of group sizes.
    below: usize,
    /// The ragged dimension: size, stride in lhs, in rhs (of the group dimension with [`Kind::Free`]) and in
    /// the result (with [`Kind::Contracting`] of the groups).
    ragged: [isize; 4],
    /// Groups of the right operand.
    groups: usize,
    /// The outer dimensions of lhs, rhs and result.
    outer_dims: [Steps; 3],
    result: [Steps; 2],
    result_type: ElementType,
    elements: usize,
    /// Size of the result's last dimension.
    last: usize,
    /// Of [`Kind::Batch`].
    dot: Option<Box<Dot>>,
}

impl RaggedDot {
    /// Of a `ragged-dot`.
    pub(crate) fn of(module: &Module, id: InstrId) -> Result<RaggedDot, Unsupported> {
        check_precision(module, id)?;
        let instr = module.instr(id);
        let shape = |n: usize| module.instr(instr.operands()[n]).shape.expect_array();
        let (left, right, group_sizes, result) = (shape(0), shape(1), shape(2), instr.shape.expect_array());
        let (l, r) = (sizes(module, id, left)?, sizes(module, id, right)?);
        let (g, o) = (sizes(module, id, group_sizes)?, sizes(module, id, result)?);
        let (ls, rs, os) = (strides(&l), strides(&r), strides(&o));
        let lp = Parts::of(module, id, l.len(), AttrKey::LhsBatchDims, AttrKey::LhsContractingDims);
        let rp = Parts::of(module, id, r.len(), AttrKey::RhsBatchDims, AttrKey::RhsContractingDims);
        let one = |key| -> Option<usize> {
            match *instr.attrs.ints_or_empty(key) {
                [d] => usize::try_from(d).ok(),
                _ => None,
            }
        };
        let ragged = one(AttrKey::LhsRaggedDims)
            .ok_or_else(|| Unsupported::new(module, id, "other than one ragged dimension"))?;
        let position = |list: &[usize]| list.iter().position(|&d| d == ragged);
        let kind = match (position(&lp.contracting), position(&lp.batch)) {
            (Some(_), _) => Kind::Contracting,
            (None, Some(_)) => Kind::Batch,
            (None, None) => Kind::Free,
        };
        let (field, ty) = Field::of(left.element_type, right.element_type, result.element_type);
        let steps = |dims: &[usize], sizes: &[usize], strides: &[isize]| {
            Steps::new(dims.iter().map(|&d| (sizes[d], strides[d])))
        };
        let but = |list: &[usize], d: usize| -> SmallVec<[usize; 4]> {
            list.iter().copied().filter(|&x| x != d).collect()
        };
        // The result's dimensions: batch, free of lhs, free of rhs; groups before them if the ragged
        // dimension is contracted.
        let lead = usize::from(kind == Kind::Contracting);
        let batch = lp.batch.len();
        let group_dim = one(AttrKey::RhsGroupDims);
        let mut right_free = rp.free.clone();
        right_free.retain(|d| kind != Kind::Free || Some(*d) != group_dim);
        let columns: SmallVec<[usize; 4]> =
            (0..right_free.len()).map(|i| lead + batch + lp.free.len() + i).collect();
        let still = but(&lp.free, ragged);
        let still_out: SmallVec<[usize; 4]> =
            (0..lp.free.len()).filter(|&i| lp.free[i] != ragged).map(|i| lead + batch + i).collect();
        let mut outer_left: SmallVec<[(usize, isize); 4]> = lp.batch.iter().map(|&d| (l[d], ls[d])).collect();
        let mut outer_right: SmallVec<[(usize, isize); 4]> =
            rp.batch.iter().map(|&d| (r[d], rs[d])).collect();
        let mut outer_out: SmallVec<[(usize, isize); 4]> =
            (0..batch).map(|i| (o[lead + i], os[lead + i])).collect();
        let mut outer_dims = lp.batch.clone();
        let (rows, left_terms, right_terms, rows_out);
        let mut ragged_facts = [l[ragged] as isize, ls[ragged], 0, 0];
        match kind {
            Kind::Free => {
                let group = group_dim
                    .ok_or_else(|| Unsupported::new(module, id, "other than one group dimension"))?;
                outer_left.extend(still.iter().map(|&d| (l[d], ls[d])));
                outer_right.extend(still.iter().map(|&d| (l[d], 0)));
                outer_out.extend(still_out.iter().map(|&d| (o[d], os[d])));
                outer_dims.extend(still.iter().copied());
                (rows, rows_out) = (Steps::new([]), Steps::new([]));
                (left_terms, right_terms) =
                    (steps(&lp.contracting, &l, &ls), steps(&rp.contracting, &r, &rs));
                let stride = lp.free.iter().position(|&d| d == ragged).map_or(0, |i| os[batch + i]);
                (ragged_facts[2], ragged_facts[3]) = (rs[group], stride);
            }
            Kind::Contracting | Kind::Batch => {
                rows = steps(&lp.free, &l, &ls);
                let free: SmallVec<[usize; 4]> = (0..lp.free.len()).map(|i| lead + batch + i).collect();
                rows_out = steps(&free, &o, &os);
                let at = position(&lp.contracting);
                let rest_left = but(&lp.contracting, ragged);
                let partner = at.map(|at| rp.contracting[at]);
                let rest_right: SmallVec<[usize; 4]> =
                    rp.contracting.iter().copied().filter(|&d| Some(d) != partner).collect();
                (left_terms, right_terms) = (steps(&rest_left, &l, &ls), steps(&rest_right, &r, &rs));
                ragged_facts[2] = partner.map_or(0, |d| rs[d]);
                ragged_facts[3] = if kind == Kind::Contracting { os[0] } else { 0 };
            }
        }
        let outer: usize = outer_left.iter().map(|d| d.0).product();
        let leading = g.len().saturating_sub(1);
        let below = match kind {
            Kind::Free | Kind::Contracting => outer_dims.iter().skip(leading).map(|&d| l[d]).product(),
            Kind::Batch => 1,
        };
        let operand = |ty_of: ElementType, sizes: &[usize], rows: Steps, terms: Steps| Operand {
            ty: ty_of,
            conversion: field.conversion(ty_of, ty),
            elements: sizes.iter().product(),
            offset: 0,
            batch: Steps::new([]),
            rows,
            terms,
        };
        let elements: usize = o.iter().product();
        // Of a batch the index along the ragged dimension and the dimensions before it say whether it belongs
        // to a group.
        let (lists, outer) = if kind == Kind::Batch {
            (lp.batch.iter().take(leading).map(|&d| l[d]).product(), 0)
        } else {
            (g[..leading].iter().product(), outer)
        };
        Ok(RaggedDot {
            kind,
            field,
            lhs: operand(left.element_type, &l, rows, left_terms),
            rhs: operand(right.element_type, &r, steps(&right_free, &r, &rs), right_terms),
            sizes_type: group_sizes.element_type,
            count: g.last().copied().unwrap_or(1),
            lists,
            outer,
            below,
            ragged: ragged_facts,
            groups: group_dim.map_or(0, |d| r[d]),
            outer_dims: [Steps::new(outer_left), Steps::new(outer_right), Steps::new(outer_out)],
            result: [rows_out, steps(&columns, &o, &os)],
            result_type: result.element_type,
            elements,
            last: o.last().copied().unwrap_or(1),
            dot: if kind == Kind::Batch { Some(Box::new(Dot::of(module, id)?)) } else { None },
        })
    }

    /// Group sizes in 64 bits.
    fn sizes_scratch(&self) -> usize {
        (self.count * self.lists * size_of::<i64>()).next_multiple_of(64)
    }

    unsafe fn run_in<A: Arithmetic<Word: Readable>>(
        &self,
        call: Call<'_>,
        sizes: &[i64],
        scratch: *mut u8,
        narrow: Option<Narrow<A::Sum>>,
    ) {
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let base = |operand: &Operand, argument: *const u8, scratch: *mut u8| match operand.conversion {
                Some(conversion) => {
                    conversion.run(argument, operand.elements, scratch, call.pool);
                    scratch.cast_const()
                }
                None => argument,
            };
            let left = base(&self.lhs, call.arguments[0], scratch);
            let right = base(&self.rhs, call.arguments[1], scratch.add(self.lhs.scratch()));
            let [extent, left_stride, right_stride, out_stride] = self.ragged;
            let extent = extent as usize;
            let bytes = |operand: &Operand| operand.packed_type().storage_bytes() as isize;
            for outer in 0..self.outer {
                let list = outer.checked_div(self.below).unwrap_or(0).min(self.lists.saturating_sub(1));
                let list = &sizes[list * self.count..(list + 1) * self.count];
                let (mut end, mut reached) = (0i64, 0usize);
                for (group, &size) in list.iter().enumerate() {
                    let before = end;
                    end = end.saturating_add(size);
                    let cut = |x: i64| usize::try_from(x).unwrap_or(0).min(extent);
                    let range = match self.kind {
                        // An index belongs to the first group that ends after it.
                        Kind::Free | Kind::Batch => {
                            let start = reached;
                            reached = reached.max(cut(end));
                            start..reached
                        }
                        Kind::Contracting => cut(before)..cut(end).max(cut(before)),
                    };
                    let [l, r, o] = self.outer_dims.each_ref().map(|dims| dims.offset(outer));
                    let l = l + range.start as isize * left_stride;
                    let (r, o) = match self.kind {
                        Kind::Free | Kind::Batch => {
                            if range.is_empty() || group >= self.groups {
                                continue;
                            }
                            (r + group as isize * right_stride, o + range.start as isize * out_stride)
                        }
                        Kind::Contracting => {
                            (r + range.start as isize * right_stride, o + group as isize * out_stride)
                        }
                    };
                    let none = Steps::new([]);
                    let length = range.len();
                    let terms = |steps: &Steps, stride: isize| steps.before((length, stride));
                    let (rows, left_terms, right_terms, rows_out) = match self.kind {
                        Kind::Free | Kind::Batch => (
                            Steps::new([(length, left_stride)]),
                            self.lhs.terms.clone(),
                            self.rhs.terms.clone(),
                            Steps::new([(length, out_stride)]),
                        ),
                        Kind::Contracting => (
                            self.lhs.rows.clone(),
                            terms(&self.lhs.terms, left_stride),
                            terms(&self.rhs.terms, right_stride),
                            self.result[0].clone(),
                        ),
                    };
                    let columns = &self.rhs.rows;
                    let extents =
                        Extents { batch: 1, m: rows.size(), n: columns.size(), k: left_terms.size() };
                    let view = |base: *const u8, offset: isize| base.wrapping_offset(offset);
                    let left = Typed {
                        view: Strided {
                            base: view(left, l * bytes(&self.lhs)),
                            batch: &none,
                            rows: &rows,
                            terms: &left_terms,
                        },
                        reader: reader::<A>(&self.lhs),
                    };
                    let right = Typed {
                        view: Strided {
                            base: view(right, r * bytes(&self.rhs)),
                            batch: &none,
                            rows: columns,
                            terms: &right_terms,
                        },
                        reader: reader::<A>(&self.rhs),
                    };
                    let size = self.result_type.storage_bytes();
                    Product::<A> {
                        extents,
                        schedule: Schedule::new::<A>(extents, None, None, Some(Right::Own)).whole(extents),
                        left: &left,
                        right: &right,
                        target: Target {
                            base: call.arguments[3].wrapping_offset(o * size as isize),
                            bytes: size,
                            batch: &none,
                            rows: &rows_out,
                            columns: &self.result[1],
                            narrow,
                        },
                        ahead: std::ptr::null(),
                        start: std::ptr::null(),
                        finished: None,
                        scratch: std::ptr::null_mut(),
                        pool: call.pool,
                    }
                    .run();
                }
            }
        }
    }
}

impl Operation for RaggedDot {
    fn strategy(&self) -> &'static str {
        "GEMM for each group of rows"
    }

    fn scratch_bytes(&self) -> u64 {
        let product = match &self.dot {
            Some(dot) => dot.scratch_bytes(),
            None => (self.lhs.scratch() + self.rhs.scratch()) as u64,
        };
        self.sizes_scratch() as u64 + product
    }

    fn cost(&self) -> (u64, u64) {
        let bytes = self.lhs.elements * self.lhs.ty.storage_bytes()
            + self.rhs.elements * self.rhs.ty.storage_bytes()
            + self.elements * self.result_type.storage_bytes();
        (bytes as u64, 2 * (self.elements as u64).saturating_mul(self.lhs.terms.size() as u64))
    }

    unsafe fn run(&self, call: Call<'_>) {
        let ty = self.result_type;
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let n = self.count * self.lists;
            let wide = Conversion { from: self.sizes_type, through: self.sizes_type, to: ElementType::S64 };
            wide.run(call.arguments[2], n, call.scratch, call.pool);
            let rows = self.elements.checked_div(self.last).unwrap_or(0) as u64;
            // Without sizes there may be no scratch memory.
            let sizes = if n == 0 { &[] } else { std::slice::from_raw_parts(call.scratch.cast::<i64>(), n) };
            let scratch = call.scratch.add(self.sizes_scratch());
            if let Some(dot) = &self.dot {
                let arguments = [call.arguments[0], call.arguments[1], call.arguments[3]];
                dot.run(Call { arguments: &arguments, scratch, epilogue: None, ..call });
                // Batches from the sum of all sizes on are zero.
                let extent = self.ragged[0] as usize;
                let block = self.elements.checked_div(self.lists * extent).unwrap_or(0) * ty.storage_bytes();
                for list in 0..self.lists {
                    let sizes = &sizes[list * self.count..(list + 1) * self.count];
                    let handled = sizes.iter().fold(0i64, |sum, &size| sum.saturating_add(size));
                    let handled = usize::try_from(handled).unwrap_or(0).min(extent);
                    let first = call.arguments[3].add((list * extent + handled) * block);
                    first.write_bytes(0, (extent - handled) * block);
                }
            } else {
                call.arguments[3].write_bytes(0, self.elements * ty.storage_bytes());
                match self.field {
                    Field::F32 => self.run_in::<tile::F32>(call, sizes, scratch, convert::from_f32(ty)),
                    Field::F64 => self.run_in::<tile::F64>(call, sizes, scratch, convert::from_f64(ty)),
                    Field::I32 => self.run_in::<tile::I32>(call, sizes, scratch, convert::from_i32(ty)),
                    Field::I64 => self.run_in::<tile::I64>(call, sizes, scratch, None),
                    Field::C64 => self.run_in::<tile::C64>(call, sizes, scratch, None),
                    Field::C128 => self.run_in::<tile::C128>(call, sizes, scratch, None),
                }
            }
            if let Some(epilogue) = call.epilogue {
                epilogue(0, rows);
            }
        }
    }
}
