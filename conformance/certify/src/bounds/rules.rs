//! Which rule finds the bounds of which instruction.
//!
//! A rule gets the radii of the operands' arrays and says those of the result's, once for soft and once for
//! hard ones ([`Mode`]). What rests exactly on exact operands is not computed at all.

use std::sync::Arc;

use hlo::opcode::{Family, Numeric, NumericRow};
use hlo::{AttrKey, ComputationId, ElementType, InstrId, Instruction, Module, Opcode};
use hlo_execution::allowances::Allowances;
use hlo_execution::format::{Format, has_infinities};
use hlo_execution::run::RunOptions;
use hlo_interp::custom_call::{Call, Meaning};
use hlo_interp::device::host::NoHost;
use hlo_interp::{Devices, Tensor, Value};

use super::blocks::in_blocks;
use super::limits::Limits;
use super::number::Numbers;
use super::reordered::Order;
use super::{
    Bounds, Leaf, Radii, Settings, Tree, Watching, complex, constant_terms, denormals, elementwise, folds,
    initial_values, lapack, linear, log_add_exp, movement, multiplied, nans, order, permuted, reciprocals,
    reflectors, relations, reordered, rounded_twice, scans, special, sums, windows,
};

/// An array of an operand.
pub(super) struct Arg<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) leaf: Arc<Leaf>,
    /// The operand, perhaps a tuple, that it is from.
    pub(super) from: InstrId,
}

/// An instruction that was executed, and what is known of its operands. Its operands and results may be parts
/// of the instruction's own.
pub(super) struct Case<'a> {
    pub(super) module: &'a Module,
    pub(super) instr: &'a Instruction,
    pub(super) settings: &'a Settings,
    pub(super) args: Vec<Arg<'a>>,
    pub(super) results: Vec<&'a Tensor>,
}

/// Which radii are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Soft,
    Hard,
}

/// What a rule finds: the radii of the result's arrays. `None`: nothing.
pub(super) type Found = Option<Vec<Radii>>;

/// A rule.
type Rule = fn(&Case<'_>, &[Radii], Mode) -> Found;

impl Case<'_> {
    pub(super) fn opcode(&self) -> Opcode {
        self.instr.opcode
    }

    /// The units in the last place that an implementation may be off by.
    pub(super) fn ulps(&self, ty: ElementType) -> f64 {
        let complex = self.args.iter().map(|a| a.tensor.element_type()).find(|t| t.is_complex());
        f64::from(self.settings.allowances.functions.ulps(self.opcode(), complex.unwrap_or(ty)))
    }

    /// Whether all operands are the reference's to the bit.
    pub(super) fn has_exact_operands(&self) -> bool {
        self.args.iter().all(|a| a.leaf.bounds.is_exact())
    }

    /// Radii of the operands, widened by the roundings of products that contraction leaves out, and of roots that
    /// are never taken.
    pub(super) fn radii(&self, mode: Mode) -> Vec<Radii> {
        let adds = matches!(self.opcode().numeric_row(), NumericRow::Sum | NumericRow::Region)
            || matches!(self.opcode(), Opcode::Add | Opcode::Subtract);
        self.args
            .iter()
            .enumerate()
            .map(|(k, arg)| {
                let radii = arg.leaf.bounds.radii(mode);
                if mode == Mode::Soft && Format::of(arg.tensor.element_type()).is_none() && !self.hands_on(k)
                {
                    return known(radii.clone());
                }
                if adds && arg.leaf.product && self.settings.allowances.contraction {
                    half_an_ulp_more(arg.tensor, radii)
                } else if reciprocals::undoes_root(self) {
                    reciprocals::unrounded_root(arg.tensor, radii)
                } else {
                    radii.clone()
                }
            })
            .collect()
    }

    /// Whether an engine may read an operand before it is rounded to its type, so that it may lie between an end
    /// of its interval and that end's rounding.
    pub(super) fn reads_unrounded(&self, arg: &Arg<'_>) -> bool {
        let allowed = &self.settings.allowances;
        let narrow = Format::of(arg.tensor.element_type()).is_some_and(|f| f.precision < 24);
        allowed.excess_precision && narrow
            || allowed.contraction && arg.leaf.product
            || reciprocals::undoes_root(self)
    }

    /// Whether the result holds elements of an operand as they are.
    fn hands_on(&self, operand: usize) -> bool {
        match kind(self.opcode()) {
            Kind::Movement(indices) => operand < indices,
            _ => self.opcode() == Opcode::Select && operand > 0,
        }
    }

    /// Whether the result is exact where the operands are.
    fn is_exact(&self) -> bool {
        let allowed = &self.settings.allowances;
        let several = self.settings.options.devices.count() > 1;
        if self.opcode().flags().collective && several
            || matches!(self.opcode(), Opcode::Recv | Opcode::RecvDone)
                && !self.instr.attrs.bool(AttrKey::IsHostTransfer)
        {
            return false;
        }
        let narrow = |t: &&Tensor| Format::of(t.element_type()).is_some_and(|f| f.precision < 24);
        let float = |t: &&Tensor| Format::of(t.element_type()).is_some();
        if reciprocals::applies(self)
            || reciprocals::undoes_root(self)
            || constant_terms::applies(self)
            || nans::are_seen_by_map(self)
        {
            return false;
        }
        let arithmetic = !moves(self.opcode());
        if allowed.excess_precision && rounds(self) && self.results.iter().any(narrow)
            || arithmetic
                && !order::is_total(self)
                && allowed.flush_denormals
                && (self.results.iter().any(float) || self.args.iter().any(|a| float(&a.tensor)))
        {
            return false;
        }
        let floats = self.args.iter().any(|a| float(&a.tensor));
        self.results.iter().all(|t| {
            let complex = self.args.iter().map(|a| a.tensor.element_type()).find(|t| t.is_complex());
            match allowed.numeric(self.opcode(), complex.unwrap_or(t.element_type())) {
                // Sums of floats that become integers depend on their order too.
                Numeric::Exact => {
                    let called = self.instr.attrs.called_computations();
                    (self.opcode().numeric_row() != NumericRow::Sum || !floats)
                        && called.iter().all(|&c| is_exact_region(self.module, c, allowed))
                }
                Numeric::Region => {
                    let called = self.instr.attrs.called_computations();
                    let sum = t.element_type().is_float() || t.element_type().is_complex();
                    !(sum
                        && (sums::is_sum(self) || multiplies_windows(self) || log_add_exp::of_windows(self)))
                        && called.iter().all(|&c| is_exact_region(self.module, c, allowed))
                        && !(allowed.reorder_regions && self.opcode() != Opcode::Map)
                }
                Numeric::Ulp(_) | Numeric::Normwise(_) | Numeric::Sum | Numeric::Called | Numeric::Opaque => {
                    false
                }
            }
        })
    }
}

/// Whether a computation gives the same bits for the same operands everywhere.
pub(super) fn is_exact_region(module: &Module, computation: ComputationId, allowed: &Allowances) -> bool {
    let mut multiplies = false;
    let mut adds = false;
    let exact = module.instructions(computation).all(|id| {
        let instr = module.instr(id);
        let ty = instr.shape.element_type().unwrap_or(ElementType::Pred);
        let complex = instr
            .operands()
            .iter()
            .any(|&o| module.instr(o).shape.element_type().is_some_and(ElementType::is_complex));
        multiplies |= instr.opcode == Opcode::Multiply;
        adds |= matches!(instr.opcode, Opcode::Add | Opcode::Subtract);
        let narrow = Format::of(ty).is_some_and(|f| f.precision < 24);
        let plain = !moves(instr.opcode) && Format::of(ty).is_some();
        let unrounded = plain && allowed.excess_precision && narrow && !selects(instr.opcode);
        let ty = if complex { ElementType::C128 } else { ty };
        let exact = match allowed.numeric(instr.opcode, ty) {
            Numeric::Exact => !instr.opcode.flags().side_effect && !instr.opcode.flags().collective,
            Numeric::Called | Numeric::Region => {
                let called = instr.attrs.called_computations();
                (instr.opcode.numeric_row() == NumericRow::Called || instr.opcode == Opcode::Map)
                    && called.iter().all(|&c| is_exact_region(module, c, allowed))
            }
            Numeric::Ulp(_) | Numeric::Normwise(_) | Numeric::Sum | Numeric::Opaque => false,
        };
        let constant = |&o: &InstrId| matches!(module.instr(o).opcode, Opcode::Constant | Opcode::Broadcast);
        let quotient = instr.opcode == Opcode::Divide
            || instr.opcode == Opcode::Multiply && instr.operands().iter().any(constant);
        let quotient = quotient && plain && allowed.reciprocals;
        let flushed = plain && allowed.flush_denormals;
        exact && !quotient && !unrounded && !flushed
    });
    exact && !(allowed.contraction && multiplies && adds)
}

/// Radii of products that may be added before they are rounded. What became the greatest number, infinity or
/// NaN in that rounding may have been anything.
fn half_an_ulp_more(tensor: &Tensor, radii: &Radii) -> Radii {
    let ty = tensor.element_type();
    let Some(format) = Format::of(ty) else { return radii.clone() };
    let x = Numbers::of(tensor);
    let ieee = has_infinities(ty);
    let too_large = |part: f64| part.abs() >= format.max || part.is_nan() && !ieee;
    radii.mapped(x.len(), |i, r, limits| {
        let (re, im) = x.at(i);
        let limits = limits.wider(|x| format.ulp(x));
        match r {
            _ if too_large(re) || too_large(im) => (f64::INFINITY, overflowed(&x, i, r, format)),
            r if x.is_finite(i) && x.modulus(i) > 0.0 => (r + format.ulp(x.modulus(i)) / 2.0, limits),
            // A product that is zero may be one that is too small.
            r if x.is_finite(i) => (r + format.min_positive(), limits),
            r => (r, limits),
        }
    })
}

/// Limits of an unrounded element, if rounding gives the greatest number or an infinity and nothing else is
/// off: it is at least one unit below the greatest number.
fn overflowed(x: &Numbers, i: usize, r: f64, format: Format) -> Limits {
    let (least, v) = (format.max - format.ulp(format.max), x.re[i]);
    if x.im.is_some() || r != 0.0 || !(has_infinities(x.ty) || format.saturates) {
        return Limits::NONE;
    }
    match v {
        v if v >= format.max => Limits::new(least, f64::INFINITY),
        v if v <= -format.max => Limits::new(f64::NEG_INFINITY, -least),
        _ => Limits::NONE,
    }
}

/// The bounds of the arrays of the result, and what is known of them beside the operands.
pub(super) fn bounds(case: &Case<'_>) -> Vec<Leaf> {
    let mut leaves = computed(case);
    relations::related(case, &mut leaves);
    let computed = nans::computes(case);
    leaves.iter_mut().for_each(|leaf| leaf.computed = computed);
    leaves
}

fn computed(case: &Case<'_>) -> Vec<Leaf> {
    let mut leaves = in_any_order(case);
    folds::beside_one(case, &mut leaves);
    windows::reach(case, &mut leaves);
    special::beside(case, &mut leaves);
    denormals::beside(case, &mut leaves);
    permuted::beside(case, &mut leaves);
    nans::beside(case, &mut leaves);
    initial_values::beside(case, &mut leaves);
    leaves
}

fn in_any_order(case: &Case<'_>) -> Vec<Leaf> {
    let product = matches!(case.opcode(), Opcode::Multiply | Opcode::Dot | Opcode::Convolution)
        || (moves(case.opcode()) || case.opcode() == Opcode::Negate)
            && case.args.iter().any(|a| a.leaf.product);
    let basis = reflectors::carried(case);
    let leaf = |bounds: Bounds| Leaf { basis: basis.clone(), ..Leaf::new(bounds.shared(), product) };
    let unknown = || case.results.iter().map(|t| leaf(Bounds::unknown(t.len()))).collect();
    let contracted = case.settings.allowances.contraction && case.args.iter().any(|a| a.leaf.product);
    match kind(case.opcode()) {
        Kind::Random => return unknown(),
        // Nobody looks at these: the certification has failed.
        Kind::CustomCall if !case.settings.account.ask(case) => return unknown(),
        Kind::CustomCall if let Some(leaves) = lapack::factors(case) => return leaves,
        Kind::CustomCall => {
            let found = custom_call(case).filter(|all| all.len() == case.results.len());
            return found.map_or_else(unknown, |all| all.into_iter().map(leaf).collect());
        }
        _ => {}
    }
    if !contracted && case.has_exact_operands() && case.is_exact() {
        return case.results.iter().map(|_| leaf(Bounds::default())).collect();
    }
    if !case.settings.account.ask(case) || !case.settings.account.spend(case) {
        return unknown();
    }
    if let Some(bounds) = in_blocks(case) {
        return vec![leaf(bounds)];
    }
    if case.settings.allowances.reorder_regions {
        match reordered::order(case) {
            Order::Fixed if let Some(all) = scans::step_by_step(case) => {
                return all.into_iter().map(leaf).collect();
            }
            Order::Fixed => return reordered::literally(case),
            Order::Any(found) => return found.into_iter().map(leaf).collect(),
            Order::Unknown => return unknown(),
            Order::Covered => {}
        }
    }
    let both = |by: Rule| both(case, by);
    let mut radii = both(rule);
    if radii.is_none() && multiplies_windows(case) {
        radii = both(multiplied::fold);
    }
    if radii.is_none() && log_add_exp::of_windows(case) {
        radii = both(log_add_exp::fold);
    }
    if radii.is_none() && kind(case.opcode()) == Kind::Region {
        if let Some(all) = scans::step_by_step(case) {
            return all.into_iter().map(leaf).collect();
        }
        if let Some(all) = folds::applied(case).filter(|all| all.len() == case.results.len()) {
            return all.into_iter().map(leaf).collect();
        }
        radii = both(multiplied::fold).or_else(|| both(log_add_exp::fold));
        if radii.is_none()
            && let Order::Any(found) = reordered::order(case)
        {
            return found.into_iter().map(leaf).collect();
        }
    }
    let Some((soft, hard)) = radii else { return unknown() };
    if soft.len() != case.results.len() || hard.len() != soft.len() {
        return unknown();
    }
    let pairs = soft.into_iter().zip(hard).zip(&case.results);
    // Integers that are converted floats, bits of floats, and moved integers have soft radii of their own:
    // they follow from the operand's without a decision.
    let follows = matches!(kind(case.opcode()), Kind::Movement(_) | Kind::Bits)
        || matches!(case.opcode(), Opcode::Convert | Opcode::Select);
    pairs
        .map(|((soft, hard), t)| match follows && Format::of(t.element_type()).is_none() {
            true => leaf(Bounds::of(soft, hard)),
            false => leaf(concluded(t, soft, hard)),
        })
        .collect()
}

/// The bounds of an array from the radii that a rule found.
pub(super) fn concluded(t: &Tensor, soft: Radii, hard: Radii) -> Bounds {
    if let (Radii::Each(a), Radii::Each(b)) = (&soft, &hard)
        && Arc::ptr_eq(a, b)
        && Format::of(t.element_type()).is_some()
    {
        drop(soft);
        let hard = at_least(t, hard);
        return Bounds { soft: hard.clone(), hard, ..Bounds::default() };
    }
    // Integers are decisions of their own: which arithmetic of theirs follows from how far an operand is off
    // is not known.
    let soft = if Format::of(t.element_type()).is_some() { soft } else { known(soft) };
    Bounds::of(at_least(t, soft), at_least(t, hard))
}

/// The bounds of a module that computes what a call does.
pub(super) fn stands_for(case: &Case<'_>, module: &Module) -> Option<Vec<Bounds>> {
    if module.computation(module.entry()).parameters().len() != case.args.len() {
        return None;
    }
    let options = RunOptions { devices: Devices::ONE, ..case.settings.options };
    let settings = Settings { options, nested: true, ..case.settings.clone() };
    let values = case.args.iter().map(|a| Value::Array(a.tensor.clone())).collect();
    let trees = case.args.iter().map(|a| Tree::Array(a.leaf.clone())).collect();
    let results =
        super::evaluate(module, vec![values], vec![trees], settings, Arc::new(NoHost), Watching::default());
    let (_, tree) = results.ok()?.pop()?;
    Some(tree.arrays().into_iter().cloned().collect())
}

/// Annotations pass bounds on; a call that stands for HLO has the bounds of that.
fn custom_call(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let exact = case.has_exact_operands();
    let call = Call { instruction: case.instr, module: case.module };
    // A handler of the user's gives the same of the same operands.
    if call.is_bound() {
        return exact.then(|| case.results.iter().map(|_| Bounds::default()).collect());
    }
    match call.meaning() {
        Meaning::Same => Some(case.args.iter().map(|a| a.leaf.bounds.clone()).collect()),
        Meaning::Exact if exact => Some(case.results.iter().map(|_| Bounds::default()).collect()),
        Meaning::Exact if let Some(moved) = movement::resized(case) => Some(moved),
        Meaning::TopK => {
            let called = case.instr.attrs.called_computations();
            if exact && called.iter().all(|&c| is_exact_region(case.module, c, &case.settings.allowances)) {
                return Some(case.results.iter().map(|_| Bounds::default()).collect());
            }
            let both = [Mode::Soft, Mode::Hard].map(|mode| order::topk_call(case, &case.radii(mode), mode));
            let [soft, hard] = both;
            Some(soft?.into_iter().zip(hard?).map(|(soft, hard)| Bounds::of(soft, hard)).collect())
        }
        Meaning::Expansion(module) => stands_for(case, &module),
        Meaning::Open => lapack::bounds(case),
        Meaning::Exact if case.args.iter().all(|a| a.leaf.bounds.soft.is_zero()) => Some(
            case.results.iter().map(|t| Bounds { soft: Radii::Zero, ..Bounds::unknown(t.len()) }).collect(),
        ),
        Meaning::Exact => None,
    }
}

/// What is off at all may have the other sign if it is zero: a radius is 0 or reaches to the least number.
pub(super) fn at_least(tensor: &Tensor, radii: Radii) -> Radii {
    match (radii, Format::of(tensor.element_type())) {
        (Radii::Each(each), Some(format)) => {
            let least = format.min_positive();
            let mut each = Arc::unwrap_or_clone(each);
            each.iter_mut().for_each(|r| *r = if *r > 0.0 { r.max(least) } else { 0.0 });
            Radii::new(each)
        }
        (radii @ Radii::Limited(_), Some(format)) => {
            let least = format.min_positive();
            let ranges = radii.ranges().cloned();
            let larger = |_, r: f64, limits| (if r > 0.0 { r.max(least) } else { 0.0 }, limits);
            radii.mapped(tensor.len(), larger).in_ranges(ranges)
        }
        (radii, _) => radii,
    }
}

/// Of soft radii of integers only the infinite ones, of which nothing is known.
fn known(radii: Radii) -> Radii {
    match radii {
        Radii::Zero | Radii::Unknown => radii,
        Radii::Each(each) => {
            let mut each = Arc::unwrap_or_clone(each);
            each.iter_mut().filter(|r| r.is_finite()).for_each(|r| *r = 0.0);
            Radii::new(each)
        }
        Radii::Limited(of) => {
            let each = of.each.iter().map(|&r| if r.is_finite() { 0.0 } else { r });
            Radii::limited(each.collect(), of.limits.clone())
        }
    }
}

/// Soft and hard radii. Found once where nothing tells them apart: the operands' are the same, no step or
/// order depends on them, and nothing may overflow, so all hard ones are finite.
fn both(case: &Case<'_>, by: Rule) -> Option<(Vec<Radii>, Vec<Radii>)> {
    let hard = found(case, by, Mode::Hard)?;
    let same = |a: &Arg<'_>| match (&a.leaf.bounds.soft, &a.leaf.bounds.hard) {
        (Radii::Zero, Radii::Zero) => true,
        (Radii::Each(soft), Radii::Each(hard)) => Arc::ptr_eq(soft, hard),
        (_, _) => false,
    };
    let finite = |radii: &Radii| match radii {
        Radii::Zero => true,
        Radii::Each(each) => each.iter().all(|r| r.is_finite()),
        Radii::Unknown | Radii::Limited(_) => false,
    };
    let float = |t: &&Tensor| Format::of(t.element_type()).is_some();
    let undecided = match kind(case.opcode()) {
        Kind::Movement(_) | Kind::Sum | Kind::Region => false,
        Kind::Elementwise => {
            let extreme = matches!(case.opcode(), Opcode::Maximum | Opcode::Minimum | Opcode::Clamp);
            // Lexicographic order is not continuous.
            let lexicographic = extreme && case.results.iter().any(|t| t.element_type().is_complex());
            lexicographic
                || case.opcode() == Opcode::Remainder
                || elementwise::steps(case.opcode(), ElementType::F32)
        }
        _ => true,
    };
    if !undecided && case.args.iter().all(same) && case.results.iter().all(float) && hard.iter().all(finite) {
        return Some((hard.clone(), hard));
    }
    found(case, by, Mode::Soft).map(|soft| (soft, hard))
}

fn found(case: &Case<'_>, by: Rule, mode: Mode) -> Found {
    let radii = case.radii(mode);
    let mut found = by(case, &radii, mode)?;
    if reciprocals::applies(case) {
        found =
            found.into_iter().map(|quotients| reciprocals::widened(case, &radii, quotients, mode)).collect();
    }
    if constant_terms::applies(case) {
        let widened = |sums: Radii| constant_terms::widened(case, &radii, sums, mode);
        found = found.into_iter().map(widened).collect();
    }
    if case.settings.allowances.excess_precision && rounds(case) {
        let twice = |result: Radii| rounded_twice::widened(case, &radii, result, mode);
        found = found.into_iter().map(twice).collect();
        for (radii, t) in found.iter_mut().zip(&case.results) {
            *radii = unrounded(case, t, std::mem::take(radii), mode);
        }
    }
    Some(found)
}

/// Wider by a rounding that excess precision may leave out: of a conversion by what that rounded off,
/// otherwise by half a unit.
fn unrounded(case: &Case<'_>, tensor: &Tensor, radii: Radii, mode: Mode) -> Radii {
    let ty = tensor.element_type();
    let Some(format) = Format::of(ty).filter(|f| f.precision < 24) else { return radii };
    let v = Numbers::of(tensor);
    let too_large = |x: f64| x.abs() >= format.max;
    let converted = match &case.args[..] {
        [a] if case.opcode() == Opcode::Convert && !a.tensor.element_type().is_complex() => {
            Some(Numbers::of(a.tensor).re).filter(|x| x.len() == v.len())
        }
        _ => None,
    };
    radii.mapped(v.len(), |i, r, limits| {
        let limits = limits.wider(|x| format.ulp(x));
        let from = converted.as_ref().map(|x| x[i]);
        match v.re[i] {
            x if x.is_nan() => (r, limits),
            // Nothing was rounded.
            x if r == 0.0 && from == Some(x) => (r, limits),
            x if too_large(x) && mode == Mode::Hard => {
                (f64::INFINITY, if limits.is_none() { overflowed(&v, i, r, format) } else { limits })
            }
            x if too_large(x) => (r, limits),
            x => (r + format.ulp(x.abs() + r) / 2.0, limits),
        }
    })
}

/// The bounds of an `iota` whose numbers excess precision may leave unrounded.
pub(super) fn unrounded_numbers(instr: &Instruction, result: &Tensor) -> Bounds {
    let narrow = Format::of(result.element_type()).is_some_and(|f| f.precision < 24);
    let dimension = instr.attrs.int(AttrKey::IotaDimension).and_then(|d| usize::try_from(d).ok());
    let (Some(dimension), true) = (dimension.filter(|&d| d < result.rank()), narrow) else {
        return Bounds::default();
    };
    let size = |d: &i64| usize::try_from(*d).unwrap_or(0);
    let inner: usize = result.dims()[dimension + 1..].iter().map(size).product();
    let numbers = Numbers::of(result);
    let off = |(i, x): (usize, &f64)| {
        let exact = (i / inner % size(&result.dims()[dimension])) as f64;
        // Where the type has no such number the rounding may give NaN.
        if x.is_finite() { (exact - x).abs() } else { f64::INFINITY }
    };
    let radii = Radii::new(numbers.re.iter().enumerate().map(off).collect());
    Bounds::of(radii.clone(), radii).shared()
}

/// Whether an instruction only moves elements about.
pub(super) fn moves(opcode: Opcode) -> bool {
    matches!(kind(opcode), Kind::Movement(_))
        || matches!(opcode, Opcode::Select | Opcode::Copy | Opcode::Real | Opcode::Imag | Opcode::Complex)
}

/// Whether each element of the result is the operand's, bit by bit, at the same index.
pub(super) fn copies(case: &Case<'_>) -> bool {
    match (case.opcode(), &case.args[..], &case.results[..]) {
        (Opcode::Copy, [_], [_]) => true,
        (Opcode::BitcastConvert, [x], [result]) => x.tensor.element_type() == result.element_type(),
        (_, _, _) => false,
    }
}

/// Whether a result is one of the operands' numbers, or that with another sign: in a wider type it is the
/// same one.
fn selects(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Abs | Opcode::Negate | Opcode::Maximum | Opcode::Minimum | Opcode::Clamp)
}

/// Whether an instruction computes elements, whose rounding may be left out. Who asks for a rounding by name
/// gets it.
fn rounds(case: &Case<'_>) -> bool {
    let opcode = case.opcode();
    let real = !case.results.iter().any(|t| t.element_type().is_complex());
    let selected = selects(opcode)
        || kind(opcode) == Kind::Region && opcode != Opcode::Map && folds_by(case).is_some_and(selects);
    !(moves(opcode) || real && selected)
        && opcode != Opcode::ReducePrecision
        && !matches!(kind(opcode), Kind::Sort | Kind::Topk)
}

/// How the bounds of an opcode are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// As the operands': from this operand on, they are indices and sizes.
    Movement(usize),
    Elementwise,
    /// Bits in another type.
    Bits,
    Sum,
    Region,
    Sort,
    Topk,
    Fft,
    Cholesky,
    TriangularSolve,
    BatchNorm,
    /// A collective that moves elements.
    Exchange,
    /// A collective that folds.
    CollectiveFold,
    /// Numbers and states that are open to the implementation.
    Random,
    /// Follows its operands exactly, or is unknown.
    Opaque,
    CustomCall,
    /// Followed by `walk`.
    Structure,
}

/// The kind of an opcode.
pub(super) fn kind(opcode: Opcode) -> Kind {
    match opcode {
        Opcode::DynamicReshape | Opcode::DynamicSlice | Opcode::Gather | Opcode::SetDimensionSize => {
            Kind::Movement(1)
        }
        Opcode::DynamicUpdateSlice => Kind::Movement(2),
        // Its result does not depend on the elements.
        Opcode::GetDimensionSize => Kind::Movement(0),

        Opcode::Sort => Kind::Sort,
        Opcode::Topk => Kind::Topk,
        Opcode::Cholesky => Kind::Cholesky,
        Opcode::TriangularSolve => Kind::TriangularSolve,

        Opcode::AllGather
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::RaggedAllToAll => Kind::Exchange,
        Opcode::AllReduce | Opcode::CollectiveReduce | Opcode::ReduceScatter => Kind::CollectiveFold,

        Opcode::RngBitGenerator => Kind::Opaque,
        // What was fed is known to whoever follows the program.
        Opcode::Infeed => Kind::Structure,
        opcode => match opcode.family() {
            Family::Elementwise => Kind::Elementwise,
            Family::Bits => Kind::Bits,
            Family::Movement | Family::Sizes => Kind::Movement(usize::MAX),
            Family::Contraction => Kind::Sum,
            Family::Region => Kind::Region,
            Family::Normalization => Kind::BatchNorm,
            Family::Transform => Kind::Fft,
            Family::Random => Kind::Random,
            Family::CustomCall => Kind::CustomCall,
            // Ends of what began before, too.
            Family::Order | Family::LinearAlgebra | Family::Collective | Family::Host => Kind::Opaque,
            Family::Structure | Family::Control | Family::Async | Family::DeviceNumber => Kind::Structure,
        },
    }
}

fn rule(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let complex = |t: &Tensor| t.element_type().is_complex();
    match kind(case.opcode()) {
        Kind::Movement(indices) => movement::moved(case, radii, indices),
        Kind::Bits => movement::bits(case, radii),
        Kind::Elementwise => {
            if case.results.iter().any(|t| complex(t)) || case.args.iter().any(|a| complex(a.tensor)) {
                complex::bounds(case, radii, mode)
            } else {
                elementwise::bounds(case, radii, mode)
            }
        }
        Kind::Sum => sums::products(case, radii, mode),
        Kind::Region if computes_in_less(case) => {
            Some(case.results.iter().map(|t| Radii::unknown(t.len())).collect())
        }
        Kind::Region => sums::fold(case, radii, mode),
        Kind::Sort => order::sort(case, radii, mode),
        Kind::Topk => order::topk(case, radii, mode),
        Kind::Fft => linear::fft(case, radii, mode),
        Kind::Cholesky => linear::cholesky(case, radii, mode),
        Kind::TriangularSolve => linear::triangular_solve(case, radii, mode),
        Kind::BatchNorm => linear::batch_norm(case, radii, mode),
        Kind::Exchange
        | Kind::CollectiveFold
        | Kind::Random
        | Kind::CustomCall
        | Kind::Opaque
        | Kind::Structure => None,
    }
}

/// The binary operation of two parameters that a computation is, and whether it is given in a tuple as often
/// as it has results.
pub(super) fn monoid(module: &Module, computation: ComputationId) -> Option<Opcode> {
    hlo_interp::binary_of(module, computation).or_else(|| written(module, computation))
}

/// The same, of scalars or arrays, as it is written.
fn written(module: &Module, computation: ComputationId) -> Option<Opcode> {
    let root = module.instr(module.root(computation));
    let instr = match root.opcode {
        Opcode::Tuple => {
            let (&first, rest) = root.operands().split_first()?;
            if rest.iter().any(|&o| o != first) {
                return None;
            }
            module.instr(first)
        }
        _ => root,
    };
    let parameters = module.computation(computation).parameters();
    let [a, b] = *instr.operands() else { return None };
    let number = |id: InstrId| parameters.iter().position(|&p| p == Some(id));
    let both = (number(a)?, number(b)?);
    (parameters.len() == 2 && (both == (0, 1) || both == (1, 0))).then_some(instr.opcode)
}

/// The opcode that an instruction folds by.
pub(super) fn folds_by(case: &Case<'_>) -> Option<Opcode> {
    let key = if case.opcode() == Opcode::SelectAndScatter { AttrKey::Scatter } else { AttrKey::ToApply };
    monoid(case.module, case.instr.attrs.computation(key)?)
}

/// Whether a result has a wider float type than the root of the applied computation (mixed precision). Rules
/// assume an accumulator of the result's type.
fn computes_in_less(case: &Case<'_>) -> bool {
    let Some(computation) = case.instr.attrs.computation(AttrKey::ToApply) else { return false };
    let root = case.module.instr(case.module.root(computation)).shape.leaves();
    let unit = |ty: ElementType| Format::of(ty).map_or(0.0, Format::unit_roundoff);
    let given = root.iter().filter_map(|s| s.element_type());
    given.zip(&case.results).any(|(given, result)| unit(given) > unit(result.element_type()))
}

/// Whether it gives products of windows. Those that overlap share their factors, and may have them in any
/// order.
fn multiplies_windows(case: &Case<'_>) -> bool {
    case.opcode() == Opcode::ReduceWindow && folds_by(case) == Some(Opcode::Multiply)
}

/// Whether the applied computation is its second parameter of two.
pub(super) fn overwrites(case: &Case<'_>) -> bool {
    let Some(computation) = case.instr.attrs.computation(AttrKey::ToApply) else { return false };
    let parameters = case.module.computation(computation).parameters();
    parameters.len() == 2 && parameters[1] == Some(case.module.root(computation))
}
