//! Collectives: every participant hands in its operands' bounds with its operands, and takes the bounds of
//! its result from those of all.
//!
//! The one instruction runs on all devices of the run, on numbers of elements, magnitudes or ends of
//! intervals, as in `movement` and `sums`. A device has its result only when all that it depends on were
//! entered, so all that matters is known by then; for devices of other groups anything of the right shape
//! will do.

use std::sync::Arc;

use hlo::{AttrKey, ComputationId, ElementType, Instruction, Module, Opcode, Shape};
use hlo_execution::format::Format;
use hlo_interp::custom_call::Call;
use hlo_interp::{Accumulate, Tensor, Value};

use super::multiplied::{self, Present};
use super::number::{Numbers, tensor};
use super::operand::{Operand, operand};
use super::probe::{Probe, Regions, retyped};
use super::rules::{self, Arg, Case, Mode};
use super::sums::{self, Factor, Terms};
use super::{Bounds, Leaf, Radii, Settings, Tree, extremes, reordered};

/// What a device hands in.
pub(super) struct Deposit {
    pub(super) operands: Vec<Value>,
    pub(super) trees: Vec<Tree>,
}

/// The synchronous form of a collective, or of a change between whole arrays and shards, which depends on the
/// device too.
pub(super) fn synchronous(module: &Module, instr: &Instruction) -> Option<Opcode> {
    let opcode = instr.opcode;
    Some(match opcode {
        Opcode::CustomCall => {
            let (_, tilings) = Call { instruction: instr, module }.shards()?.ok()?;
            return tilings.iter().any(Option::is_some).then_some(opcode);
        }
        Opcode::AllGather
        | Opcode::AllReduce
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectiveReduce
        | Opcode::RaggedAllToAll
        | Opcode::ReduceScatter => opcode,
        Opcode::AllGatherStart => Opcode::AllGather,
        Opcode::AllReduceStart => Opcode::AllReduce,
        Opcode::CollectivePermuteStart => Opcode::CollectivePermute,
        _ => return None,
    })
}

/// An array that a device hands in.
struct Part {
    tensor: Tensor,
    leaf: Arc<Leaf>,
}

struct Collective<'a> {
    module: &'a Module,
    instr: Instruction,
    settings: &'a Settings,
    me: usize,
    /// Device by device the operands.
    parts: Vec<Vec<Part>>,
    result: &'a Value,
}

/// The bounds of the arrays of a collective's result on the device `me`. `None`: they are not worked out.
pub(super) fn bounds(
    module: &Module,
    instr: &Instruction,
    settings: &Settings,
    me: usize,
    deposits: &[Option<Arc<Deposit>>],
    result: &Value,
) -> Option<Vec<Bounds>> {
    let opcode = synchronous(module, instr)?;
    let arrays = |deposit: &Deposit| -> Option<Vec<Part>> {
        let tensors = deposit.operands.iter().flat_map(|v| v.arrays().into_iter().cloned());
        let leaves = deposit.trees.iter().flat_map(|t| t.leaves().into_iter().cloned()).collect::<Vec<_>>();
        let tensors: Vec<Tensor> = tensors.collect();
        (tensors.len() == leaves.len())
            .then(|| tensors.into_iter().zip(leaves).map(|(tensor, leaf)| Part { tensor, leaf }).collect())
    };
    let mine = arrays(deposits.get(me)?.as_deref()?)?;
    if mine.len() != instr.operands().len() {
        return None;
    }
    let part_of = |p: &Part| Part { tensor: p.tensor.clone(), leaf: Arc::default() };
    let parts: Option<Vec<Vec<Part>>> = deposits
        .iter()
        .map(|d| match d {
            Some(deposit) => arrays(deposit),
            None => Some(mine.iter().map(part_of).collect()),
        })
        .collect();
    let mut instr = instr.clone();
    instr.opcode = opcode;
    let collective = Collective { module, instr, settings, me, parts: parts?, result };
    collective.bounds()
}

impl Collective<'_> {
    fn all(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().flatten()
    }

    fn bounds(&self) -> Option<Vec<Bounds>> {
        let results = self.result.arrays();
        let exact = self.all().all(|p| p.leaf.bounds.is_exact());
        let number = results.iter().any(|t| Format::of(t.element_type()).is_some());
        let predicates = results.iter().all(|t| t.element_type() == ElementType::Pred);
        let region = self.instr.attrs.computation(AttrKey::ToApply);
        let by = region.and_then(|c| rules::monoid(self.module, c));
        let sum = number && by == Some(Opcode::Add);
        let allowed = &self.settings.allowances;
        let literal = region.is_none_or(|c| {
            let free = || reordered::is_free(self.module, c, self.settings);
            !sum && rules::is_exact_region(self.module, c, allowed) && (!allowed.reorder_regions || free())
        });
        if exact && literal {
            return Some(results.iter().map(|_| Bounds::default()).collect());
        }
        let found = |mode: Mode| match (region, by) {
            (None, _) => self.moved(mode),
            (Some(_), Some(Opcode::Add)) if number => self.summed(mode),
            (Some(_), Some(Opcode::Maximum | Opcode::Minimum)) => self.extremes(mode),
            // Of integers they are not monotone.
            (Some(_), Some(Opcode::And | Opcode::Or)) if predicates => self.extremes(mode),
            (Some(_), Some(Opcode::Multiply)) if number => self.multiplied(mode),
            (Some(c), _) if self.is_extreme(c) => self.extremes(mode),
            (Some(_), _) => None,
        };
        let (soft, hard) = (found(Mode::Soft)?, found(Mode::Hard)?);
        let pairs = soft.into_iter().zip(hard);
        Some(pairs.map(|(soft, hard)| Bounds::of(soft, hard)).collect())
    }

    fn radii(&self, part: &Part, mode: Mode) -> Radii {
        let bounds = &part.leaf.bounds;
        if mode == Mode::Soft { bounds.soft.clone() } else { bounds.hard.clone() }
    }

    /// Whether an operand says where elements go.
    fn is_index_operand(&self, k: usize) -> bool {
        let n = self.parts[self.me].len();
        match self.instr.opcode {
            Opcode::RaggedAllToAll => k >= 2,
            Opcode::CollectivePermute => {
                self.instr.attrs.get(AttrKey::PermuteSliceSizes).is_some() && k >= n / 2
            }
            Opcode::CollectiveBroadcast | Opcode::CollectiveReduce => {
                self.instr.attrs.bool(AttrKey::HasDynamicRoot) && k + 1 == n
            }
            _ => false,
        }
    }

    fn has_inexact_indices(&self) -> bool {
        self.parts.iter().any(|parts| {
            parts.iter().enumerate().any(|(k, p)| self.is_index_operand(k) && !p.leaf.bounds.is_exact())
        })
    }

    fn unknown(&self) -> Vec<Radii> {
        self.result.arrays().iter().map(|t| Radii::unknown(t.len())).collect()
    }

    /// Runs the instruction on all devices, with operands of other types, and gives this device's result.
    fn run(
        &self,
        retype: &dyn Fn(ElementType) -> ElementType,
        regions: &Regions<'_>,
        operand: &dyn Fn(usize, usize, &Part) -> Tensor,
    ) -> Option<Vec<Tensor>> {
        let mine = self.parts[self.me].iter().enumerate();
        let shapes: Vec<Shape> = mine
            .map(|(k, p)| {
                let shape = Shape::Array(p.tensor.shape());
                if self.is_index_operand(k) { shape } else { retyped(&shape, retype) }
            })
            .collect();
        let result = retyped(&self.result.shape(), retype);
        let probe = Probe::new(self.module, &self.instr, &shapes, result, regions)?;
        let args = self.parts.iter().enumerate().map(|(d, parts)| {
            let each = parts.iter().enumerate();
            each.map(|(k, p)| {
                Value::Array(if self.is_index_operand(k) { p.tensor.clone() } else { operand(d, k, p) })
            })
            .collect()
        });
        let mut results = probe.run_devices(self.settings, self.settings.options.devices, args.collect())?;
        Some(results.swap_remove(self.me).arrays().into_iter().cloned().collect())
    }

    fn moved(&self, mode: Mode) -> Option<Vec<Radii>> {
        if self.has_inexact_indices() {
            return Some(self.unknown());
        }
        let total: usize = self.all().map(|p| p.tensor.len()).sum();
        u32::try_from(total).ok()?;
        // Element by element the radii of all operands of all devices; 0 for zeros from nowhere.
        let mut all = vec![0.0];
        let mut first: Vec<Vec<u32>> = Vec::new();
        for parts in &self.parts {
            let mut of = Vec::new();
            for p in parts {
                of.push(all.len() as u32);
                let radii = self.radii(p, mode);
                all.extend((0..p.tensor.len()).map(|i| radii.at(i)));
            }
            first.push(of);
        }
        let ids = self.run(&|_| ElementType::U32, &Regions::Retyped(&|t| t), &|d, k, p| {
            let start = first[d][k];
            Tensor::from_vec(p.tensor.dims(), (start..start + p.tensor.len() as u32).collect::<Vec<u32>>())
        })?;
        ids.iter()
            .map(|ids| {
                let each: Option<Vec<f64>> =
                    ids.slice::<u32>().iter().map(|&i| all.get(i as usize).copied()).collect();
                each.map(Radii::new)
            })
            .collect()
    }

    fn summed(&self, mode: Mode) -> Option<Vec<Radii>> {
        if self.has_inexact_indices() {
            return Some(self.unknown());
        }
        let ty = self.result.arrays().first()?.element_type();
        let run = |of: &dyn Fn(&Factor) -> Vec<f64>| -> Option<Vec<Vec<f64>>> {
            let regions = Regions::Fold(Opcode::Add, ElementType::F64);
            let results = self.run(&|_| ElementType::F64, &regions, &|_, _, p| {
                let x = Factor::new(self.settings, &p.tensor, &self.radii(p, mode), ty);
                tensor(ElementType::F64, p.tensor.dims(), &of(&x))
            })?;
            Some(results.iter().map(|t| Numbers::of(t).re).collect())
        };
        let magnitudes = run(&|x| x.largest.clone())?;
        let spreads = run(&|x| x.off.clone())?;
        let counts = run(&|x| vec![1.0; x.off.len()])?;
        let case = self.case();
        let narrow = Format::of(ty).is_some_and(|f| f.precision <= 24) && !ty.is_complex();
        let exact = if narrow { Some(run(&|x| x.value.clone())?) } else { None };
        let literal = self.settings.options.accumulate == Accumulate::Region;
        let arrays = case.results.iter().enumerate();
        arrays
            .map(|(k, result)| {
                let terms = Terms {
                    magnitude: magnitudes.get(k)?.clone(),
                    spread: spreads.get(k)?.clone(),
                    count: counts.get(k)?.clone(),
                    exact: exact.as_ref().and_then(|e| e.get(k).cloned()),
                    wild: None,
                    error: None,
                };
                // Participants add in the type that they exchange.
                let manner = sums::manner(&case, result.element_type(), 0.0, true)?;
                Some(sums::concluded(&case, result, &terms, &manner, literal, false, mode))
            })
            .collect()
    }

    fn multiplied(&self, mode: Mode) -> Option<Vec<Radii>> {
        if self.has_inexact_indices() {
            return Some(self.unknown());
        }
        let ty = self.result.arrays().first()?.element_type();
        let factor = |p: &Part| Factor::new(self.settings, &p.tensor, &self.radii(p, mode), ty);
        let run = |of: &dyn Fn(&Factor) -> Vec<f64>| -> Option<Vec<Vec<f64>>> {
            let regions = Regions::Fold(Opcode::Multiply, ElementType::F64);
            let results = self.run(&|_| ElementType::F64, &regions, &|_, _, p| {
                tensor(ElementType::F64, p.tensor.dims(), &of(&factor(p)))
            })?;
            Some(results.iter().map(|t| Numbers::of(t).re).collect())
        };
        let factors: Vec<Factor> = self.all().map(factor).collect();
        multiplied::concluded(&self.case(), Present::among(factors.iter()), &run, mode)
    }

    /// Whether a computation gives an extreme of what all hand in: one is written out, and nobody hands in
    /// NaNs or zeros of both signs.
    fn is_extreme(&self, computation: ComputationId) -> bool {
        let (mut nan, mut zeros) = (false, [false; 2]);
        for part in self.all() {
            for x in Numbers::of(&part.tensor).re {
                nan |= x.is_nan();
                zeros[usize::from(x.is_sign_negative())] |= x == 0.0;
            }
        }
        !nan && zeros != [true; 2] && reordered::is_extreme(self.module, computation, self.settings)
    }

    fn extremes(&self, mode: Mode) -> Option<Vec<Radii>> {
        if self.has_inexact_indices() || self.all().any(|p| p.tensor.element_type().is_complex()) {
            return Some(self.unknown());
        }
        let case = self.case();
        let mut operands: Vec<Vec<Operand<'_>>> = Vec::new();
        for parts in &self.parts {
            let each = parts.iter().map(|p| {
                let arg = Arg { tensor: &p.tensor, leaf: p.leaf.clone(), from: case.instr.operands()[0] };
                operand(&case, &arg, &self.radii(p, mode))
            });
            operands.push(each.collect());
        }
        if operands.iter().flatten().any(Operand::has_unknown) {
            return Some(self.unknown());
        }
        let run =
            |high: bool| self.run(&|t| t, &Regions::Retyped(&|t| t), &|d, k, _| operands[d][k].end(high));
        let (mut low, mut high) = (run(false)?, run(true)?);
        if self.settings.allowances.flush_denormals
            && operands.iter().flatten().any(Operand::has_taken_for_zero)
        {
            let fold = |by: Opcode, high: bool| {
                let regions = Regions::Fold(by, ElementType::F64);
                self.run(&|_| ElementType::F64, &regions, &|d, k, _| operands[d][k].taken_for_zero(high))
            };
            let ties = [fold(Opcode::Minimum, false)?, fold(Opcode::Maximum, true)?];
            extremes::with_ties(&mut low, &mut high, [&ties[0], &ties[1]]);
        }
        let each = case.results.iter().zip(low.iter().zip(&high));
        Some(each.map(|(result, (low, high))| extremes::between(result, low, high, mode)).collect())
    }

    /// The instruction as a case of its own, of this device's operands.
    fn case(&self) -> Case<'_> {
        let from = self.instr.operands().iter();
        let args = self.parts[self.me].iter().zip(from);
        Case {
            module: self.module,
            instr: &self.instr,
            settings: self.settings,
            args: args.map(|(p, &from)| Arg { tensor: &p.tensor, leaf: p.leaf.clone(), from }).collect(),
            results: self.result.arrays(),
        }
    }
}
