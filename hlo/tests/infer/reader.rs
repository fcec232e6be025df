//! A reader for the lines of the tables: `[shape] opcode(shape, ...) key=value ...`, values without blanks. A
//! computation is written as its signature, `(f32[],f32[])->f32[]`. Mistakes panic.

use hlo::attrs::{
    AttrKind, CompareType, ConvDims, Direction, FftType, PaddingDim, ReplicaGroups, RngAlgorithm,
    RngDistribution, SliceDim, Sparsity, SparsitySide, Window, WindowDim,
};
use hlo::{
    ArrayShape, AttrKey, AttrValue, Attrs, ComputationId, ElementType, Module, NewInstruction, Opcode, Shape,
    Span, UNBOUNDED,
};

pub(crate) struct Line {
    pub(crate) module: Module,
    pub(crate) opcode: Opcode,
    pub(crate) operands: Vec<Shape>,
    pub(crate) attrs: Attrs,
    pub(crate) declared: Option<Shape>,
}

/// Splits at a separator that is not inside brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

pub(crate) fn shape(text: &str) -> Shape {
    if text == "token[]" {
        return Shape::Token;
    }
    if text == "opaque[]" {
        return Shape::Opaque;
    }
    if let Some(inner) = text.strip_prefix("b(") {
        return Shape::Buffer(shape(inner.strip_suffix(')').unwrap()).into());
    }
    if let Some(inner) = text.strip_prefix('(') {
        return Shape::tuple(split(inner.strip_suffix(')').unwrap(), ',').into_iter().map(shape));
    }
    let (ty, dims) =
        text.strip_suffix(']').and_then(|t| t.split_once('[')).unwrap_or_else(|| panic!("shape {text}"));
    let mut a = ArrayShape::new(ElementType::from_name(ty).unwrap_or_else(|| panic!("type {ty}")), &[]);
    for (i, d) in split(dims, ',').into_iter().enumerate() {
        let bounded = d.strip_prefix("<=");
        a.dims.push(if d == "?" { UNBOUNDED } else { bounded.unwrap_or(d).parse().unwrap() });
        if d == "?" || bounded.is_some() {
            a.dynamic |= 1 << i;
        }
    }
    Shape::Array(a)
}

fn ints(text: &str) -> Vec<i64> {
    split(text.trim_matches(['{', '}']), ',').into_iter().map(|n| n.parse().unwrap()).collect()
}

/// A computation of this signature; what it computes does not matter.
pub(crate) fn computation(module: &mut Module, text: &str) -> ComputationId {
    let (parameters, result) = text.rsplit_once("->").unwrap_or_else(|| panic!("signature {text}"));
    let name = module.unique_computation_name("f");
    let id = module.add_computation(name, Span::NONE);
    for (i, s) in
        split(parameters.strip_prefix('(').unwrap().strip_suffix(')').unwrap(), ',').into_iter().enumerate()
    {
        let name = module.unique_name("p");
        let new = NewInstruction::new(Opcode::Parameter, shape(s), &[])
            .named(name)
            .attr(AttrKey::ParameterNumber, AttrValue::Int(i as i64));
        module.append(id, new);
    }
    if result != "none" {
        let name = module.unique_name("r");
        let root = module.append(id, NewInstruction::new(Opcode::CustomCall, shape(result), &[]).named(name));
        module.set_root(id, root);
    }
    id
}

fn window(text: &str) -> Window {
    let mut window = Window::default();
    for field in split(text.trim_matches(['{', '}']), ',') {
        let (key, values) = field.split_once('=').unwrap();
        let values: Vec<&str> = values.split('x').collect();
        if key == "size" {
            window.dims = values.iter().map(|_| WindowDim::default()).collect();
        }
        for (dim, value) in window.dims.iter_mut().zip(values) {
            match key {
                "pad" => {
                    let (low, high) = value.split_once('_').unwrap();
                    (dim.pad_low, dim.pad_high) = (low.parse().unwrap(), high.parse().unwrap());
                }
                "size" => dim.size = value.parse().unwrap(),
                "stride" => dim.stride = value.parse().unwrap(),
                "lhs_dilate" => dim.base_dilation = value.parse().unwrap(),
                "rhs_dilate" => dim.window_dilation = value.parse().unwrap(),
                other => panic!("window field {other}"),
            }
        }
    }
    window
}

fn conv_dims(text: &str) -> ConvDims {
    let (operands, output) = text.split_once("->").unwrap();
    let (input, kernel) = operands.split_once('_').unwrap();
    let find = |side: &str, c: char| side.find(c).map_or(-1, |i| i as i64);
    let spatial = |side: &str| ('0'..='9').map(|c| find(side, c)).take_while(|&i| i >= 0).collect();
    let unknown = |side: &str| side.char_indices().filter(|c| c.1 == '?').map(|c| c.0 as i64).collect();
    ConvDims {
        input_batch: find(input, 'b'),
        input_feature: find(input, 'f'),
        input_spatial: spatial(input),
        kernel_input_feature: find(kernel, 'i'),
        kernel_output_feature: find(kernel, 'o'),
        kernel_spatial: spatial(kernel),
        output_batch: find(output, 'b'),
        output_feature: find(output, 'f'),
        output_spatial: spatial(output),
        unknown: [unknown(input), unknown(kernel), unknown(output)],
    }
}

fn value(module: &mut Module, key: AttrKey, text: &str) -> AttrValue {
    match key.kind() {
        AttrKind::Bool => AttrValue::Bool(text.parse().unwrap()),
        AttrKind::Int => AttrValue::Int(text.parse().unwrap()),
        AttrKind::Str => AttrValue::Str(text.into()),
        AttrKind::Float => AttrValue::Float(text.parse().unwrap()),
        AttrKind::Ints => AttrValue::Ints(ints(text).into()),
        AttrKind::IntLists => {
            let inner = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            AttrValue::IntLists(split(inner, ',').into_iter().map(|l| ints(l).into()).collect())
        }
        AttrKind::Direction => AttrValue::Direction(Direction::from_text(text).unwrap()),
        AttrKind::CompareType => AttrValue::CompareType(CompareType::from_text(text).unwrap()),
        AttrKind::FftType => AttrValue::FftType(FftType::from_text(text).unwrap()),
        AttrKind::RngDistribution => AttrValue::RngDistribution(RngDistribution::from_text(text).unwrap()),
        AttrKind::RngAlgorithm => AttrValue::RngAlgorithm(RngAlgorithm::from_text(text).unwrap()),
        AttrKind::Computation => AttrValue::Computation(computation(module, text)),
        AttrKind::Computations => AttrValue::Computations(
            split(text.strip_prefix('{').unwrap().strip_suffix('}').unwrap(), ';')
                .into_iter()
                .map(|t| computation(module, t))
                .collect(),
        ),
        AttrKind::Shape => AttrValue::Shape(Box::new(shape(text))),
        AttrKind::Window => AttrValue::Window(Box::new(window(text))),
        AttrKind::ConvDims => AttrValue::ConvDims(Box::new(conv_dims(text))),
        AttrKind::Padding => AttrValue::Padding(
            text.split('x')
                .filter(|d| !d.is_empty())
                .map(|d| {
                    let n: Vec<i64> = d.split('_').map(|n| n.parse().unwrap()).collect();
                    PaddingDim { low: n[0], high: n[1], interior: n.get(2).copied().unwrap_or(0) }
                })
                .collect(),
        ),
        AttrKind::Slices => AttrValue::Slices(
            split(text.strip_prefix('{').unwrap().strip_suffix('}').unwrap(), ',')
                .into_iter()
                .map(|s| {
                    let n: Vec<i64> =
                        s.trim_matches(['[', ']']).split(':').map(|n| n.parse().unwrap()).collect();
                    SliceDim { start: n[0], limit: n[1], stride: n.get(2).copied().unwrap_or(1) }
                })
                .collect(),
        ),
        AttrKind::ReplicaGroups => {
            let inner = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            let lists = split(inner, ',').into_iter().map(|l| ints(l).into()).collect();
            AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(lists)))
        }
        AttrKind::Sparsity => {
            let n = ints(text);
            let side = SparsitySide {
                num_non_zero: n[0],
                block_size: n[1],
                idx: n.get(2).copied(),
                ..Default::default()
            };
            AttrValue::Sparsity(Box::new(Sparsity { lhs: None, rhs: Some(side) }))
        }
        other => panic!("no reader for {other:?}"),
    }
}

pub(crate) fn read(line: &str) -> Line {
    let mut module = Module::new("m");
    let mut words = split(line, ' ').into_iter().peekable();
    let is_call = |word: &str| {
        let name = word.split('(').next().unwrap();
        word.contains('(') && Opcode::from_name(name).is_some()
    };
    let declared = words.next_if(|w| !is_call(w)).map(shape);
    let call = words.next().unwrap_or_else(|| panic!("no opcode in {line}"));
    let (name, operands) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let opcode = Opcode::from_name(name).unwrap();
    let mut attrs = Attrs::new();
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or_else(|| panic!("attribute {word}"));
        match key {
            "replicas" => module.header.replica_count = Some(text.parse().unwrap()),
            "partitions" => module.header.num_partitions = Some(text.parse().unwrap()),
            _ => {
                let key = if key == "parameter" {
                    AttrKey::ParameterNumber
                } else {
                    opcode.attr_key(key).unwrap_or_else(|| panic!("{opcode} takes no {key}"))
                };
                let v = value(&mut module, key, text);
                attrs.set(key, v);
            }
        }
    }
    Line { module, opcode, operands: split(operands, ',').into_iter().map(shape).collect(), attrs, declared }
}
