//! Layouts: in which order the dimensions of an array are in memory.
//!
//! The engine has row-major arrays alone. A buffer in another layout is the row-major array of its *physical*
//! shape, whose dimensions are those of the array from major to minor ([`physical`]): its bytes lie as the
//! layout says. A program whose arguments or results have such layouts is compiled with parameters and
//! results of physical shapes, and transposes between these and what it computes on ([`Layouts::apply`]).
//!
//! **Invariant:** the layout that a caller is told is that of the bytes. Tiles, and dimensions whose sizes
//! are not known before execution, are refused by name.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints};
use hlo::{
    ArrayShape, ComputationId, InstrId, Instruction, Layout, Module, NewInstruction, Opcode, ProgramShape,
    Shape,
};
use hlo_interp::device::tiling::Tiling;
use rustc_hash::FxHashMap;

use crate::error::{Failure, Result};
use crate::sharding::{Shardings, Tiles};

/// Dimensions of an array, minor to major; `None`: it is row-major.
pub type Order = Option<Box<[i64]>>;

/// Calls within calls are followed so far.
const DEPTH_LIMIT: usize = 64;

/// An order of the dimensions of an array of a rank, minor to major.
///
/// # Errors
/// It is not each dimension once.
pub fn order(minor_to_major: &[i64], rank: usize) -> Result<Order> {
    let mut sorted = minor_to_major.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i64) {
        return Err(Failure::invalid(format!("{minor_to_major:?} is no order of {rank} dimensions")));
    }
    let is_row_major = minor_to_major.iter().rev().copied().eq(0..rank as i64);
    Ok((!is_row_major).then(|| minor_to_major.into()))
}

/// An order, minor to major, written out.
pub fn minor_to_major(order: &Order, rank: usize) -> Box<[i64]> {
    order.clone().unwrap_or_else(|| (0..rank as i64).rev().collect())
}

/// The dimensions of an array from major to minor: what its physical dimensions are.
fn major_to_minor(order: &Order, rank: usize) -> Vec<usize> {
    minor_to_major(order, rank).iter().rev().map(|&d| d as usize).collect()
}

/// What belongs to the dimensions of an array, in the order of its physical dimensions.
pub fn permuted<T: Clone>(of_dims: &[T], order: &Order) -> Vec<T> {
    major_to_minor(order, of_dims.len()).into_iter().map(|d| of_dims[d].clone()).collect()
}

/// The inverse of [`permuted`].
pub fn logical<T: Clone>(of_physical: &[T], order: &Order) -> Vec<T> {
    let mut all = of_physical.to_vec();
    for (at, d) in major_to_minor(order, of_physical.len()).into_iter().enumerate() {
        all[d] = of_physical[at].clone();
    }
    all
}

/// The row-major array that is in memory as an array does in a layout.
pub fn physical(shape: &ArrayShape, order: &Order) -> ArrayShape {
    match order {
        None => shape.clone(),
        Some(_) => ArrayShape::new(shape.element_type, &permuted(&shape.dims, order)),
    }
}

/// As XLA writes it: `{0,1}`.
pub fn text(minor_to_major: &[i64]) -> String {
    let dims: Vec<String> = minor_to_major.iter().map(i64::to_string).collect();
    format!("{{{}}}", dims.join(","))
}

/// The layout that a caller requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Row-major.
    #[default]
    Default,
    /// As the compiler likes.
    Auto,
    /// In this order, minor to major.
    Given(Box<[i64]>),
}

impl Mode {
    /// Reads `default`, `auto`, or a layout as XLA writes it.
    ///
    /// # Errors
    /// It is none, or one with tiles.
    pub fn read(text: &str) -> Result<Self> {
        let inside = match text {
            "default" | "" => return Ok(Mode::Default),
            "auto" => return Ok(Mode::Auto),
            other => other.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')),
        };
        let wrong = || Failure::invalid(format!("`{text}` is no layout"));
        let inside = inside.ok_or_else(wrong)?;
        if inside.contains(':') {
            let message = format!("the layout {text}: only orders of dimensions are supported");
            return Err(Failure::unimplemented(message));
        }
        let dims = inside.split(',').filter(|_| !inside.is_empty()).map(|d| d.trim().parse::<i64>());
        dims.collect::<std::result::Result<_, _>>().map(Mode::Given).map_err(|_| wrong())
    }
}

/// The layouts of a program's arrays: of each array of the parameters and of the result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layouts {
    /// Of each array of the parameters.
    pub arguments: Vec<Order>,
    /// Of each array of the result.
    pub results: Vec<Order>,
}

/// The leaves of a program's parameters and of its result.
fn leaves(module: &Module) -> (Vec<&Shape>, Vec<&Shape>) {
    let entry = module.entry();
    let parameters = module.computation(entry).parameters().iter().flatten();
    let of_parameters = parameters.flat_map(|&id| module.instr(id).shape.leaves()).collect();
    (of_parameters, module.instr(module.root(entry)).shape.leaves())
}

impl Layouts {
    /// As a caller wants them; `modes` are of the leaves of the parameters and of those of the result, and
    /// may be fewer: then it did not say.
    ///
    /// # Errors
    /// One is no layout of its array, or is not supported.
    pub fn resolve(module: &Module, arguments: &[Mode], results: &[Mode]) -> Result<Self> {
        let (of_parameters, of_result) = leaves(module);
        let auto = match results.contains(&Mode::Auto) {
            true => preferred(module, &Self::each(&of_parameters, arguments, &[])?),
            false => Vec::new(),
        };
        Ok(Self {
            arguments: Self::each(&of_parameters, arguments, &[])?,
            results: Self::each(&of_result, results, &auto)?,
        })
    }

    fn each(leaves: &[&Shape], modes: &[Mode], auto: &[Order]) -> Result<Vec<Order>> {
        let modes = if modes.len() == leaves.len() { modes } else { &[] };
        let mut arrays = Vec::with_capacity(leaves.len());
        for (n, leaf) in leaves.iter().enumerate() {
            let Shape::Array(shape) = leaf else { continue };
            let found = match modes.get(n) {
                None | Some(Mode::Default) => None,
                Some(Mode::Auto) => auto.get(arrays.len()).cloned().flatten(),
                Some(Mode::Given(dims)) => order(dims, shape.rank())?,
            };
            if found.is_some() && shape.is_dynamic() {
                return Err(Failure::unimplemented(format!("a layout of {shape}, whose size is not known")));
            }
            arrays.push(found);
        }
        Ok(arrays)
    }

    /// Those that a module's `entry_computation_layout` says.
    ///
    /// # Errors
    /// One is not supported.
    pub fn of_header(module: &Module) -> Result<Self> {
        let mode = |shape: &&Shape| match shape.as_array().and_then(|a| a.layout.as_deref()) {
            Some(layout) => Mode::Given(layout.minor_to_major.as_slice().into()),
            None => Mode::Default,
        };
        match &module.header.entry_computation_layout {
            Some(ProgramShape { parameters, result }) => {
                let of_parameters = parameters.iter().flat_map(Shape::leaves);
                let arguments: Vec<Mode> = of_parameters.map(|s| mode(&s)).collect();
                let results: Vec<Mode> = result.leaves().iter().map(mode).collect();
                Self::resolve(module, &arguments, &results)
            }
            None => Self::resolve(module, &[], &[]),
        }
    }

    /// Whether every array is row-major.
    pub fn are_row_major(&self) -> bool {
        self.arguments.iter().chain(&self.results).all(Option::is_none)
    }

    /// Writes them into the module's header, where frameworks look for them.
    pub fn write(&self, module: &mut Module) {
        let Some(mut shape) = module.program_shape(module.entry()) else { return };
        let (mut arguments, mut results) = (self.arguments.iter(), self.results.iter());
        for parameter in &mut shape.parameters {
            *parameter = with_layouts(parameter, &mut arguments);
        }
        shape.result = with_layouts(&shape.result, &mut results);
        module.header.entry_computation_layout = Some(shape);
    }

    /// The tiles of physical arrays.
    pub fn of_physical(&self, shardings: &Shardings) -> Shardings {
        let each = |all: &[Tiles], orders: &[Order]| -> Vec<Tiles> {
            let orders = orders.iter().chain(std::iter::repeat(&None));
            all.iter().zip(orders).map(|(tiles, order)| physical_tiles(tiles, order)).collect()
        };
        Shardings {
            arguments: each(&shardings.arguments, &self.arguments),
            results: each(&shardings.results, &self.results),
            ..shardings.clone()
        }
    }

    /// Changes a program so that its parameters and results are the physical arrays.
    ///
    /// # Errors
    /// An array in a layout is inside of a tuple that is a parameter or a part of the result.
    pub fn apply(&self, module: &mut Module) -> Result<()> {
        if self.are_row_major() {
            return Ok(());
        }
        let entry = module.entry();
        self.apply_to_aliases(module);
        module.header.entry_computation_layout = None;
        let parameters: Vec<InstrId> =
            module.computation(entry).parameters().iter().flatten().copied().collect();
        let mut orders = self.arguments.iter();
        for id in parameters {
            let own = module.instr(id).shape.leaves().iter().filter(|s| s.as_array().is_some()).count();
            let own: Vec<&Order> = orders.by_ref().take(own).collect();
            match (&module.instr(id).shape.clone(), own.as_slice()) {
                (Shape::Array(shape), [order @ Some(_)]) => lay_parameter(module, id, shape, order),
                (_, own) if own.iter().any(|o| o.is_some()) => return Err(inside_of_tuple()),
                _ => {}
            }
        }
        self.apply_to_result(module, entry)
    }

    fn apply_to_result(&self, module: &mut Module, entry: ComputationId) -> Result<()> {
        if self.results.iter().all(Option::is_none) {
            return Ok(());
        }
        let root = module.root(entry);
        let shape = module.instr(root).shape.clone();
        let Shape::Tuple(parts) = &shape else {
            if let (Shape::Array(array), Some(order @ Some(_))) = (&shape, self.results.first()) {
                let laid = lay_result(module, entry, root, array, order);
                module.set_root(entry, laid);
            }
            return Ok(());
        };
        let (mut orders, mut all) = (self.results.iter(), Vec::with_capacity(parts.len()));
        for (n, part) in (0..).zip(parts.iter()) {
            let own = part.leaves().iter().filter(|s| s.as_array().is_some()).count();
            let own: Vec<&Order> = orders.by_ref().take(own).collect();
            let id = match module.instr(root).opcode {
                Opcode::Tuple => module.instr(root).operands()[n as usize],
                _ => {
                    let new = NewInstruction::new(Opcode::GetTupleElement, part.clone(), &[root])
                        .attr(AttrKey::Index, AttrValue::Int(n));
                    let name = module.unique_name("result");
                    module.append(entry, new.named(name))
                }
            };
            all.push(match (part, own.as_slice()) {
                (Shape::Array(array), [order @ Some(_)]) => lay_result(module, entry, id, array, order),
                (_, own) if own.iter().any(|o| o.is_some()) => return Err(inside_of_tuple()),
                _ => id,
            });
        }
        let shape = Shape::tuple(all.iter().map(|&id| module.instr(id).shape.clone()));
        let name = module.unique_name("results");
        let tuple = module.append(entry, NewInstruction::new(Opcode::Tuple, shape, &all).named(name));
        module.set_root(entry, tuple);
        if module.users(root).is_empty() {
            module.remove(root);
        }
        Ok(())
    }

    /// A parameter cannot be updated in place to a result that is laid out in another order.
    fn apply_to_aliases(&self, module: &mut Module) {
        let arrays = |shapes: &mut dyn Iterator<Item = &Shape>, orders: &[Order]| {
            let (mut found, mut orders) = (FxHashMap::default(), orders.iter());
            for (n, shape) in (0_i64..).zip(shapes) {
                if let Shape::Array(_) = shape {
                    found.insert(n, orders.next().cloned().flatten());
                } else {
                    let own = shape.leaves().iter().filter(|s| s.as_array().is_some()).count();
                    orders.by_ref().take(own).for_each(drop);
                }
            }
            found
        };
        let Some(shape) = module.program_shape(module.entry()) else { return };
        let of_parameters = arrays(&mut shape.parameters.iter(), &self.arguments);
        let of_results = match &shape.result {
            Shape::Tuple(parts) => arrays(&mut parts.iter(), &self.results),
            other => arrays(&mut std::iter::once(other), &self.results),
        };
        module.header.input_output_alias.retain(|alias| {
            let result = alias.output_index.first().copied().unwrap_or(0);
            let parameter = of_parameters.get(&alias.parameter).cloned().flatten();
            parameter == of_results.get(&result).cloned().flatten()
        });
    }
}

fn inside_of_tuple() -> Failure {
    Failure::unimplemented("a layout of an array in a tuple that is a parameter or part of a result")
}

fn with_layouts<'o>(shape: &Shape, orders: &mut impl Iterator<Item = &'o Order>) -> Shape {
    match shape {
        Shape::Array(array) => {
            let order = orders.next().cloned().flatten();
            let order = minor_to_major(&order, array.rank());
            let layout = Some(Layout::from_minor_to_major(order.iter().copied()).into());
            Shape::Array(ArrayShape { layout, ..array.clone() })
        }
        Shape::Tuple(parts) => {
            Shape::tuple(parts.iter().map(|part| with_layouts(part, orders)).collect::<Vec<_>>())
        }
        other @ (Shape::Token | Shape::Opaque | Shape::Buffer(_)) => other.clone(),
    }
}

/// Tiles of an array as tiles of the physical one.
fn physical_tiles(tiles: &Tiles, order: &Order) -> Tiles {
    let (Some(Tiling { tiles, groups }), Some(_)) = (tiles, order) else { return tiles.clone() };
    let sizes = permuted(tiles, order);
    // Tiles are numbered in row-major order: which of the logical ones each of the physical ones is.
    let number = |mut physical: usize| {
        let mut at = vec![0; sizes.len()];
        for d in (0..sizes.len()).rev() {
            at[d] = physical % sizes[d];
            physical /= sizes[d];
        }
        logical(&at, order).iter().zip(tiles).fold(0, |n, (&at, &size)| n * size + at)
    };
    let group = |group: &Vec<i64>| (0..group.len()).map(|tile| group[number(tile)]).collect();
    Some(Tiling { groups: groups.iter().map(group).collect(), tiles: sizes })
}

fn transpose(shape: ArrayShape, x: InstrId, dims: &[usize]) -> NewInstruction {
    let dims: Ints = dims.iter().map(|&d| d as i64).collect();
    NewInstruction {
        attrs: Attrs::new().with(AttrKey::Dimensions, AttrValue::Ints(dims)),
        ..NewInstruction::new(Opcode::Transpose, Shape::Array(shape), &[x])
    }
}

/// Makes a parameter the physical array, and what its users get a transpose of it.
fn lay_parameter(module: &mut Module, id: InstrId, shape: &ArrayShape, order: &Order) {
    let to_logical = logical(&(0..shape.rank()).collect::<Vec<_>>(), order);
    // What is said of the dimensions of the parameter is said of others.
    let parameter = module.instr_mut(id);
    parameter.attrs.remove(AttrKey::Sharding);
    parameter.attrs.remove(AttrKey::FrontendAttributes);
    parameter.shape = Shape::Array(physical(shape, order));
    let name = module.unique_name(&module.instr(id).name.clone());
    let entry = module.entry();
    let new = transpose(shape.without_layout(), id, &to_logical).named(name);
    let laid = module.insert_after(entry, Some(id), new);
    module.replace_all_uses(id, laid);
    module.set_operand(laid, 0, id);
}

fn lay_result(
    module: &mut Module,
    entry: ComputationId,
    id: InstrId,
    shape: &ArrayShape,
    order: &Order,
) -> InstrId {
    let to_physical = major_to_minor(order, shape.rank());
    let name = module.unique_name(&module.instr(id).name.clone());
    module.append(entry, transpose(physical(shape, order), id, &to_physical).named(name))
}

/// The orders in which results lie as they are made: where they are transposes, in the order of what is
/// transposed, so that nothing moves.
fn preferred(module: &Module, arguments: &[Order]) -> Vec<Order> {
    let mut orders = arguments.iter();
    let parameters = module.computation(module.entry()).parameters().iter().flatten();
    let parameters: Vec<Liked> =
        parameters.map(|&id| of_parameter(&module.instr(id).shape, &mut orders)).collect();
    let mut all = Vec::new();
    let liked = of_computation(module, module.entry(), &parameters, 0);
    flatten(&liked, &module.instr(module.root(module.entry())).shape, &mut all);
    all
}

/// The order that a value likes to are in.
#[derive(Clone, Debug)]
enum Liked {
    /// It is all the same.
    Any,
    Array(Order),
    Tuple(Vec<Liked>),
}

fn of_parameter<'o>(shape: &Shape, orders: &mut impl Iterator<Item = &'o Order>) -> Liked {
    match shape {
        Shape::Array(_) => Liked::Array(orders.next().cloned().flatten()),
        Shape::Tuple(parts) => Liked::Tuple(parts.iter().map(|part| of_parameter(part, orders)).collect()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Liked::Any,
    }
}

fn flatten(liked: &Liked, shape: &Shape, all: &mut Vec<Order>) {
    match (shape, liked) {
        (Shape::Array(_), Liked::Array(order)) => all.push(order.clone()),
        (Shape::Array(_), Liked::Any | Liked::Tuple(_)) => all.push(None),
        (Shape::Tuple(parts), Liked::Tuple(liked)) if liked.len() == parts.len() => {
            liked.iter().zip(parts.iter()).for_each(|(l, s)| flatten(l, s, all));
        }
        (Shape::Tuple(parts), _) => parts.iter().for_each(|s| flatten(&Liked::Any, s, all)),
        (Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => {}
    }
}

fn of_computation(module: &Module, id: ComputationId, arguments: &[Liked], depth: usize) -> Liked {
    if depth > DEPTH_LIMIT {
        return Liked::Any;
    }
    let mut liked: FxHashMap<InstrId, Liked> = FxHashMap::default();
    for (&parameter, argument) in module.computation(id).parameters().iter().flatten().zip(arguments) {
        liked.insert(parameter, argument.clone());
    }
    for id in module.instructions(id) {
        let instr = module.instr(id);
        if instr.opcode == Opcode::Parameter {
            continue;
        }
        let operands = instr.operands().iter().map(|o| liked.get(o).cloned().unwrap_or(Liked::Any)).collect();
        liked.insert(id, of_instruction(module, instr, operands, depth));
    }
    liked.remove(&module.root(id)).unwrap_or(Liked::Any)
}

fn of_instruction(module: &Module, instr: &Instruction, mut operands: Vec<Liked>, depth: usize) -> Liked {
    match instr.opcode {
        Opcode::Tuple => Liked::Tuple(operands),
        Opcode::GetTupleElement => {
            let index = instr.attrs.int(AttrKey::Index).and_then(|n| usize::try_from(n).ok());
            match (operands.pop(), index) {
                (Some(Liked::Tuple(mut parts)), Some(n)) if n < parts.len() => parts.swap_remove(n),
                (Some(Liked::Tuple(_) | Liked::Array(_) | Liked::Any) | None, _) => Liked::Any,
            }
        }
        Opcode::Call => match instr.attrs.computation(AttrKey::ToApply) {
            Some(callee) => of_computation(module, callee, &operands, depth + 1),
            None => Liked::Any,
        },
        Opcode::OptBarrier | Opcode::Copy => operands.pop().unwrap_or(Liked::Any),
        Opcode::CustomCall => match (instr.attrs.str(AttrKey::CustomCallTarget), instr.shape.as_array()) {
            (Some("LayoutConstraint"), Some(shape)) => {
                let said = shape.layout.as_deref().map(|layout| order(&layout.minor_to_major, shape.rank()));
                Liked::Array(said.and_then(std::result::Result::ok).flatten())
            }
            (Some("Sharding" | "annotate_device_placement"), _) => operands.pop().unwrap_or(Liked::Any),
            _ => Liked::Array(None),
        },
        Opcode::Transpose => match operands.pop() {
            Some(Liked::Array(of_operand)) => {
                let dims = instr.attrs.ints_or_empty(AttrKey::Dimensions);
                let before = minor_to_major(&of_operand, dims.len());
                let now = before.iter().filter_map(|d| Some(dims.iter().position(|to| to == d)? as i64));
                Liked::Array(order(&now.collect::<Vec<_>>(), dims.len()).ok().flatten())
            }
            Some(Liked::Any | Liked::Tuple(_)) | None => Liked::Any,
        },
        Opcode::Constant | Opcode::Iota => Liked::Any,
        Opcode::Broadcast if instr.attrs.ints_or_empty(AttrKey::Dimensions).is_empty() => Liked::Any,
        opcode if opcode.is_elementwise() => {
            let has_order = |liked: &Liked| matches!(liked, Liked::Array(_));
            operands.into_iter().find(has_order).unwrap_or(Liked::Any)
        }
        _ => Liked::Array(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
        parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics))
    }

    #[test]
    fn layouts_as_text() {
        assert_eq!(Mode::read("default").unwrap(), Mode::Default);
        assert_eq!(Mode::read("auto").unwrap(), Mode::Auto);
        assert_eq!(Mode::read("{}").unwrap(), Mode::Given(Box::default()));
        assert_eq!(Mode::read("{0,2,1}").unwrap(), Mode::Given([0, 2, 1].into()));
        assert!(Mode::read("{1,0:T(8,128)}").unwrap_err().message.contains("orders of dimensions"));
        assert!(Mode::read("{x}").is_err() && Mode::read("sideways").is_err());
        assert!(order(&[0, 0], 2).is_err() && order(&[0], 2).is_err());
        assert_eq!(order(&[1, 0], 2).unwrap(), None);
        assert_eq!(text(&minor_to_major(&None, 3)), "{2,1,0}");
    }

    #[test]
    fn physical_arrays() {
        // The last dimension is the major one, then the first.
        let order = order(&[1, 0, 2], 3).unwrap();
        let shape = ArrayShape::new(hlo::ElementType::F32, &[2, 3, 5]);
        assert_eq!(physical(&shape, &order).dims.as_slice(), [5, 2, 3]);
        assert_eq!(logical(&[5, 2, 3], &order), [2, 3, 5]);
        // Tiles 2 by 1 by 2 on devices 0 to 3: of the physical array 2 by 2 by 1, the third dimension first.
        let tiles = Some(Tiling { tiles: vec![2, 1, 2], groups: vec![vec![0, 1, 2, 3]] });
        let wanted = Tiling { tiles: vec![2, 2, 1], groups: vec![vec![0, 2, 1, 3]] };
        assert_eq!(physical_tiles(&tiles, &order), Some(wanted));
    }

    #[test]
    fn automatic_layouts_save_transposes() {
        let of = |body: &str| {
            let text = format!("HloModule m\nENTRY e {{\n x = f32[2,3] parameter(0)\n {body}\n}}");
            Layouts::resolve(&module(&text), &[], &[Mode::Auto]).unwrap().results
        };
        let transposed: Vec<Order> = vec![Some([0, 1].into())];
        let row_major: Vec<Order> = vec![None];
        assert_eq!(of("ROOT t = f32[3,2] transpose(x), dimensions={1,0}"), transposed);
        assert_eq!(
            of("t = f32[3,2] transpose(x), dimensions={1,0}\n ROOT n = f32[3,2] negate(t)"),
            transposed
        );
        assert_eq!(of("ROOT n = f32[2,3] negate(x)"), row_major);
        let said = "ROOT c = f32[2,3]{0,1} custom-call(x), custom_call_target=\"LayoutConstraint\"";
        assert_eq!(of(said), transposed);
    }

    #[test]
    fn programs_of_physical_arrays() {
        let text = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
            ENTRY e { x = f32[2,3] parameter(0) y = f32[2,3] parameter(1) s = f32[2,3] add(x, y)
              ROOT r = (f32[2,3], f32[2,3]) tuple(s, x) }";
        let mut module = module(text);
        let transposed = || Mode::Given([0, 1].into());
        let layouts =
            Layouts::resolve(&module, &[transposed(), Mode::Default], &[transposed(), transposed()]).unwrap();
        layouts.write(&mut module);
        assert_eq!(Layouts::of_header(&module).unwrap(), layouts);
        layouts.apply(&mut module).unwrap();
        assert!(hlo::verify::verify(&module).is_empty(), "{:?}", hlo::verify::verify(&module));
        let shape = module.program_shape(module.entry()).unwrap();
        assert_eq!(shape.parameters[0], Shape::array(hlo::ElementType::F32, &[3, 2]));
        assert_eq!(shape.result.to_string(), "(f32[3,2], f32[3,2])");
        // The second parameter has another layout than the second result.
        assert_eq!(module.header.input_output_alias.len(), 1);
    }
}
