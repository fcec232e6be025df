//! Exact texts. The expected ones are XLA's own: what jaxlib prints for the same thing, or what its printer's
//! source says.

use super::*;
use crate::attrs::sharding::{MeshDevices, NamedDim};
use crate::attrs::{
    AliasEntry, AliasKind, AttrKey, AttrValue, AxisRef, BackendConfig, BufferDonor, ConvDims,
    DeviceAssignment, Direction, Domain, FileLocation, FrontendAttributes, FrontendValue, FusionKind, Ints,
    Mesh, MeshAxes, Metadata, NamedSharding, OperandAlias, OriginalTree, OriginalValue, PaddingDim,
    Precision, ReplicaGroups, ResultAccuracy, Sharding, ShardingKind, SliceDim, Sparsity, SparsitySide,
    StackFrame, Statistics, SubgroupType, TileSharding, Window, WindowDim,
};
use crate::element_type::ElementType::{C64, F32, Pred, S32, U8};
use crate::layout::Layout;
use crate::literal::{ArrayLiteral, Buffer, ConstantValue};
use crate::module::{NewInstruction, PropagationFlags};
use crate::opcode::Opcode;
use crate::shape::{Dims, ProgramShape};
use crate::span::Span;
use std::sync::Arc;

fn with_layout(dims: &[i64]) -> Shape {
    let mut shape = ArrayShape::new(F32, dims);
    shape.layout = Some(Layout::row_major(dims.len()).into());
    shape.into()
}

/// The attribute as an instruction shows it, without what precedes it.
fn attr(op: Opcode, key: AttrKey, value: AttrValue) -> String {
    attrs(op, &[(key, value)])
}

fn attrs(op: Opcode, values: &[(AttrKey, AttrValue)]) -> String {
    let mut module = Module::new("m");
    let c = module.add_computation("c".into(), Span::NONE);
    let mut new = NewInstruction::new(op, Shape::scalar(F32), &[]);
    for (key, value) in values {
        new = new.attr(*key, value.clone());
    }
    let id = module.append(c, new);
    let text = print_instruction(&module, id, &PrintOptions::source(&module));
    text.strip_prefix(&format!("%{op} = f32[] {op}(), ")).expect("an attribute").to_owned()
}

fn ints(v: &[i64]) -> Ints {
    v.iter().copied().collect()
}

fn literal(buffer: Buffer, dims: &[i64]) -> Literal {
    Literal::Array(ArrayLiteral { dims: Dims::from_slice(dims), buffer: buffer.into() })
}

#[test]
fn literals_of_every_rank() {
    let s32 = |n: i32, dims: &[i64]| print_literal(&literal(Buffer::S32((1..=n).collect()), dims));
    assert_eq!(s32(1, &[]), "1");
    assert_eq!(s32(3, &[3]), "{1, 2, 3}");
    assert_eq!(s32(0, &[0]), "{}");
    assert_eq!(s32(4, &[2, 2]), "{ { 1, 2 }, { 3, 4 } }");
    assert_eq!(s32(2, &[2, 1]), "{ {1}, {2} }");
    assert_eq!(s32(0, &[0, 2]), "{  }");
    assert_eq!(s32(0, &[2, 0]), "{ {}, {} }");
    assert_eq!(s32(0, &[1, 0, 2]), "{ {  } }");
    assert_eq!(s32(8, &[2, 2, 2]), "{ { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }");
    assert_eq!(s32(2, &[1, 1, 1, 2]), "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }");
    assert_eq!(
        s32(8, &[2, 2, 1, 2]),
        "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } }, \
         { /*i0=1*/ { /*i1=0*/ { 5, 6 } }, { /*i1=1*/ { 7, 8 } } } }"
    );
    assert_eq!(s32(0, &[1, 0, 1, 2]), "{ { /*i0=0*/ } }");
    assert_eq!(s32(0, &[1, 1, 0, 2]), "{ { /*i0=0*/ { /*i1=0*/ } } }");
    assert_eq!(s32(2, &[1, 1, 2, 1, 1]), "{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ {1} }, { /*i2=1*/ {2} } } } }");
    // 2^40 rows without an element: the text must not have them.
    assert_eq!(s32(0, &[1 << 40, 0]), "{...}");
}

#[test]
fn literals_of_other_types() {
    assert_eq!(print_literal(&literal(Buffer::Pred(vec![true]), &[])), "true");
    assert_eq!(print_literal(&literal(Buffer::Pred(vec![true, false]), &[2])), "{1, 0}");
    let c = num_complex::Complex::new(1.5f32, -0.0);
    assert_eq!(print_literal(&literal(Buffer::C64(vec![c]), &[])), "(1.5, -0)");
    let tuple =
        Literal::Tuple(vec![literal(Buffer::U8(vec![1, 2]), &[2]), Literal::Token, Literal::Tuple(vec![])]);
    assert_eq!(print_literal(&tuple), "( {1, 2}, token, (  ) )");
}

#[test]
fn constants_are_elided_as_asked() {
    let mut module = Module::new("m");
    let c = module.add_computation("c".into(), Span::NONE);
    let mut constant = |value: ConstantValue| {
        let new = NewInstruction::new(Opcode::Constant, Shape::scalar(U8), &[]);
        module.append(c, new.attr(AttrKey::ConstantValue, AttrValue::Literal(value)))
    };
    let given = |l: Literal| ConstantValue::Given(Arc::new(l));
    let ten = constant(given(literal(Buffer::U8(vec![1; 10]), &[10])));
    let eleven = constant(given(literal(Buffer::U8(vec![1; 11]), &[11])));
    let tuple = constant(given(Literal::Tuple(vec![])));
    let elided = constant(ConstantValue::Elided);
    let full = PrintOptions::source(&module);
    let short = full.eliding(10);
    let text = |id, options| {
        print_instruction(&module, id, options)
            .split_once("constant")
            .unwrap()
            .1
            .split_once(" = u8[] constant")
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(text(ten, &short), "({1, 1, 1, 1, 1, 1, 1, 1, 1, 1})");
    assert_eq!(text(eleven, &full), "({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})");
    assert_eq!(text(eleven, &short), "({...})");
    assert_eq!(text(tuple, &full), "((  ))");
    assert_eq!(text(tuple, &short), "({...})");
    assert_eq!(text(elided, &full), "({...})");
}

#[test]
fn windows_and_convolutions() {
    let window = |dims: &[WindowDim]| {
        let dims = dims.iter().copied().collect();
        attr(Opcode::ReduceWindow, AttrKey::Window, AttrValue::Window(Box::new(Window { dims })))
    };
    let d = WindowDim::default();
    assert_eq!(window(&[WindowDim { size: 3, ..d }, d]), "window={size=3x1}");
    assert_eq!(
        window(&[
            WindowDim { size: 2, stride: 2, pad_low: -1, reversal: true, ..d },
            WindowDim { base_dilation: 2, window_dilation: 3, ..d }
        ]),
        "window={size=2x1 stride=2x1 pad=-1_0x0_0 lhs_dilate=1x2 rhs_dilate=1x3 rhs_reversal=1x0}"
    );
    assert_eq!(window(&[]), "window={}");
    let dims = ConvDims {
        input_batch: 0,
        input_feature: 3,
        input_spatial: [1, 2].into_iter().collect(),
        kernel_input_feature: 2,
        kernel_output_feature: 3,
        kernel_spatial: [0, 1].into_iter().collect(),
        output_batch: 1,
        output_feature: 0,
        output_spatial: [3, 2].into_iter().collect(),
        unknown: Default::default(),
    };
    let value = AttrValue::ConvDims(Box::new(dims));
    assert_eq!(attr(Opcode::Convolution, AttrKey::DimLabels, value), "dim_labels=b01f_01io->fb10");
    let side = SparsitySide { num_non_zero: 2, block_size: 4, dimension: 1, stride: Some(1), idx: Some(0) };
    let value = AttrValue::Sparsity(Box::new(Sparsity { lhs: Some(side.clone()), rhs: Some(side) }));
    assert_eq!(
        attr(Opcode::Convolution, AttrKey::SparsityConfig, value),
        "sparsity_config={lhs={sparsity=2x4 dimension=1 stride=1 idx=0} rhs={sparsity=2x4 dimension=1 stride=1 idx=0}}"
    );
    let value = AttrValue::Precisions([Precision::Highest, Precision::Default].into());
    assert_eq!(attr(Opcode::Dot, AttrKey::OperandPrecision, value), "operand_precision={highest,default}");
}

#[test]
fn slices_and_padding() {
    let slice = |start, limit, stride| SliceDim { start, limit, stride };
    let slices = |s: &[SliceDim]| attr(Opcode::Slice, AttrKey::Slice, AttrValue::Slices(s.into()));
    assert_eq!(slices(&[slice(0, 2, 1), slice(1, 9, 1)]), "slice={[0:2], [1:9]}");
    assert_eq!(slices(&[slice(0, 2, 1), slice(1, 9, 2)]), "slice={[0:2:1], [1:9:2]}");
    assert_eq!(slices(&[]), "slice={}");
    let pad = |low, high, interior| PaddingDim { low, high, interior };
    let padding = |p: &[PaddingDim]| attr(Opcode::Pad, AttrKey::Padding, AttrValue::Padding(p.into()));
    assert_eq!(padding(&[pad(1, 2, 0), pad(0, -1, 0)]), "padding=1_2x0_-1");
    assert_eq!(padding(&[pad(1, 2, 0), pad(0, 0, 3)]), "padding=1_2_0x0_0_3");
}

fn tile(devices: DeviceAssignment) -> TileSharding {
    TileSharding { devices, ..TileSharding::default() }
}

fn single(tile: TileSharding) -> Sharding {
    Sharding::Single(Box::new(ShardingKind::Tile(tile)))
}

fn sharding(s: Sharding) -> String {
    attr(Opcode::Add, AttrKey::Sharding, AttrValue::Sharding(Box::new(s)))
}

#[test]
fn shardings() {
    use DeviceAssignment as D;
    assert_eq!(sharding(single(tile(D::Replicated))), "sharding={replicated}");
    assert_eq!(sharding(single(tile(D::Manual))), "sharding={manual}");
    assert_eq!(sharding(single(tile(D::Maximal(3)))), "sharding={maximal device=3}");
    let list = D::List { dims: ints(&[2, 1]), ids: vec![1, 0] };
    assert_eq!(sharding(single(tile(list.clone()))), "sharding={devices=[2,1]1,0}");
    let iota = D::Iota { dims: ints(&[2, 2, 2]), reshape_dims: ints(&[4, 2]), transpose: ints(&[1, 0]) };
    let mut t = tile(iota);
    t.last_tile_dims = vec![SubgroupType::Manual, SubgroupType::Replicated];
    t.shard_as = Some(1);
    assert_eq!(
        sharding(single(t)),
        "sharding={devices=[2,2,2]<=[4,2]T(1,0) last_tile_dims={manual, replicated} shard_as 1}"
    );
    let mut t = tile(D::Iota { dims: ints(&[2, 4]), reshape_dims: ints(&[8]), transpose: ints(&[]) });
    t.last_tile_dim_replicate = true;
    let m = Metadata { op_name: Some("a".into()), source_line: Some(3), ..Metadata::default() };
    t.metadata = vec![m.clone()];
    assert_eq!(
        sharding(single(t.clone())),
        "sharding={devices=[2,4]<=[8] last_tile_dim_replicate metadata={op_name=\"a\" source_line=3}}"
    );
    t.metadata.push(m);
    assert!(
        sharding(single(t))
            .ends_with("metadata={{op_name=\"a\" source_line=3}, {op_name=\"a\" source_line=3}}}")
    );
    let six = Sharding::Tuple(vec![single(tile(D::Replicated)); 6]);
    assert_eq!(
        sharding(six),
        "sharding={{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/{replicated}}"
    );
    assert_eq!(sharding(Sharding::Tuple(vec![])), "sharding={}");
    let domain = Domain { kind: "sharding".into(), entry: single(tile(D::Manual)), exit: single(tile(list)) };
    assert_eq!(
        attr(Opcode::Domain, AttrKey::Domain, AttrValue::Domain(Box::new(domain))),
        "domain={kind=\"sharding\", entry={manual}, exit={devices=[2,1]1,0}}"
    );
}

fn mesh() -> Mesh {
    Mesh { axes: vec![("a".into(), 2), ("b".into(), 4)], device_ids: None, maximal: false }
}

fn axis(name: &str, sub_axis: Option<(i64, i64)>) -> AxisRef {
    AxisRef { name: name.into(), sub_axis }
}

#[test]
fn named_shardings() {
    let named = NamedSharding {
        mesh: mesh(),
        dims: Some(vec![
            NamedDim { axes: vec![axis("a", None), axis("b", Some((1, 2)))], ..NamedDim::default() },
            NamedDim { open: true, ..NamedDim::default() },
            NamedDim::default(),
        ]),
        replicated: vec![axis("b", Some((2, 2)))],
        unreduced: vec![],
        unreduced_kind: None,
        manual: vec![],
        metadata: vec![],
    };
    let print = |n: NamedSharding| sharding(Sharding::Single(Box::new(ShardingKind::Named(n))));
    assert_eq!(
        print(named.clone()),
        "sharding={mesh['a'=2,'b'=4], [{'a', 'b':(1)2}, {?}, {}], replicated={'b':(2)2}}"
    );
    let devices = Mesh { device_ids: Some(MeshDevices::List(vec![3, 2, 1, 0])), ..mesh() };
    let other = NamedSharding {
        mesh: devices,
        dims: Some(vec![]),
        replicated: vec![],
        unreduced: vec![axis("a", None)],
        unreduced_kind: Some("max".into()),
        manual: vec![axis("b", None)],
        metadata: vec![],
    };
    assert_eq!(
        print(other),
        "sharding={mesh['a'=2,'b'=4], device_ids=(3,2,1,0), [], unreduced=max{'a'}, manual={'b'}}"
    );
}

#[test]
fn named_shardings_without_dimensions() {
    let of = |unreduced: Vec<AxisRef>, manual: Vec<AxisRef>| {
        let (dims, unreduced_kind) = (None, (!unreduced.is_empty()).then(|| "min".into()));
        let mesh = mesh();
        let named = NamedSharding {
            mesh,
            dims,
            replicated: vec![],
            unreduced,
            unreduced_kind,
            manual,
            metadata: vec![],
        };
        sharding(Sharding::Single(Box::new(ShardingKind::Named(named))))
    };
    let all = || vec![axis("a", None), axis("b", None)];
    assert_eq!(of(vec![], vec![]), "sharding={mesh['a'=2,'b'=4], replicated}");
    assert_eq!(of(vec![], all()), "sharding={mesh['a'=2,'b'=4], manual}");
    assert_eq!(of(all(), vec![]), "sharding={mesh['a'=2,'b'=4], unreduced=min}");
    assert_eq!(of(vec![], vec![axis("a", None)]), "sharding={mesh['a'=2,'b'=4], manual={'a'}}");
    assert_eq!(
        of(vec![], vec![axis("a", None), axis("b", Some((1, 2)))]),
        "sharding={mesh['a'=2,'b'=4], manual={'a', 'b':(1)2}}"
    );
}

#[test]
fn replica_groups() {
    let groups = |g| attr(Opcode::AllReduce, AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(g)));
    assert_eq!(groups(ReplicaGroups::Lists(vec![])), "replica_groups={}");
    assert_eq!(
        groups(ReplicaGroups::Lists(vec![ints(&[0, 1]), ints(&[2, 3])])),
        "replica_groups={{0,1},{2,3}}"
    );
    let iota = |transpose: &[i64]| ReplicaGroups::Iota {
        dims: ints(&[2, 4]),
        reshape_dims: ints(&[4, 2]),
        transpose: ints(transpose),
    };
    assert_eq!(groups(iota(&[])), "replica_groups=[2,4]<=[4,2]");
    assert_eq!(groups(iota(&[1, 0])), "replica_groups=[2,4]<=[4,2]T(1,0)");
    let axes = MeshAxes { mesh: mesh(), axes: vec![axis("a", None), axis("b", Some((2, 2)))] };
    assert_eq!(
        groups(ReplicaGroups::Mesh(Box::new(axes))),
        "replica_groups=mesh['a'=2,'b'=4] {'a','b':(2)2}"
    );
}

#[test]
fn the_order_of_attributes() {
    let groups = AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(vec![ints(&[0, 1])])));
    let common = [
        (AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true)),
        (AttrKey::Dimensions, AttrValue::Ints(ints(&[1]))),
        (AttrKey::ChannelId, AttrValue::Int(3)),
        (AttrKey::ReplicaGroups, groups),
    ];
    assert_eq!(
        attrs(Opcode::AllGather, &common),
        "channel_id=3, replica_groups={{0,1}}, dimensions={1}, use_global_device_ids=true"
    );
    assert_eq!(
        attrs(Opcode::ReduceScatter, &common),
        "channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={1}"
    );
    let aliasing = OperandAlias { output_index: ints(&[]), operand: 0, operand_index: ints(&[]) };
    let second = OperandAlias { output_index: ints(&[1]), operand: 2, operand_index: ints(&[0]) };
    assert_eq!(
        attrs(
            Opcode::CustomCall,
            &[
                (AttrKey::ApiVersion, AttrValue::ApiVersion(crate::attrs::ApiVersion::TypedFfi)),
                (AttrKey::OutputToOperandAliasing, AttrValue::OperandAliasing([aliasing, second].into())),
                (AttrKey::CustomCallHasSideEffect, AttrValue::Bool(true)),
                (
                    AttrKey::OperandLayoutConstraints,
                    AttrValue::Shapes([with_layout(&[2]), with_layout(&[])].into())
                ),
                (AttrKey::CustomCallTarget, AttrValue::Str("a\"b".into())),
            ]
        ),
        "custom_call_target=\"a\\\"b\", operand_layout_constraints={f32[2]{0}, f32[]}, custom_call_has_side_effect=true, \
         output_to_operand_aliasing={{}: (0, {}), {1}: (2, {0})}, api_version=API_VERSION_TYPED_FFI"
    );
    let key = |k: AttrKey, v| (k, v);
    assert_eq!(
        attrs(
            Opcode::Tanh,
            &[
                key(
                    AttrKey::BackendConfig,
                    AttrValue::BackendConfig(Box::new(BackendConfig::Raw("{\"a\":1}".into())))
                ),
                key(
                    AttrKey::Metadata,
                    AttrValue::Metadata(Box::new(Metadata {
                        op_type: Some("t".into()),
                        ..Metadata::default()
                    }))
                ),
                key(
                    AttrKey::Origin,
                    AttrValue::OriginalValue(Box::new(OriginalValue::Tree(OriginalTree::Tuple(vec![
                        OriginalTree::Leaf(Some(("a".into(), ints(&[0])))),
                        OriginalTree::Leaf(Some(("b".into(), ints(&[])))),
                        OriginalTree::Leaf(None),
                    ]))))
                ),
                key(
                    AttrKey::ResultAccuracy,
                    AttrValue::ResultAccuracy(ResultAccuracy::Tolerance { atol: 1.0, rtol: 0.5, ulps: 2 })
                ),
                key(
                    AttrKey::Statistics,
                    AttrValue::Statistics(Box::new(Statistics {
                        visualizing_index: 0,
                        values: vec![("x".into(), 1.5), ("y".into(), 1e-7)]
                    }))
                ),
                key(
                    AttrKey::FrontendAttributes,
                    AttrValue::FrontendAttributes(Box::new(FrontendAttributes {
                        entries: vec![
                            ("k".into(), FrontendValue::Str("v'".into())),
                            ("l".into(), FrontendValue::Raw("{m}".into()))
                        ]
                    }))
                ),
                key(
                    AttrKey::Sharding,
                    AttrValue::Sharding(Box::new(single(tile(DeviceAssignment::Unknown))))
                ),
            ]
        ),
        "sharding={unknown}, frontend_attributes={k=\"v\\'\",l={m}}, statistics={visualizing_index=0,x=1.5,y=1e-07}, \
         result_accuracy={tolerance={atol=1,rtol=0.5,ulps=2}}, origin={({\"a\" {0}}, {\"b\"}, {})}, metadata={op_type=\"t\"}, \
         backend_config={\"a\":1}"
    );
}

#[test]
fn all_metadata_fields() {
    let m = Metadata {
        op_type: Some("T".into()),
        op_name: Some("jit(f)/add".into()),
        source_file: Some("a b.py".into()),
        source_line: Some(1),
        source_end_line: Some(2),
        source_column: Some(3),
        source_end_column: Some(4),
        profile_type: Some(vec![1, 2]),
        deduplicated_name: Some("d".into()),
        scheduling_name: Some("s".into()),
        stack_frame_id: Some(5),
        ..Metadata::default()
    };
    assert_eq!(
        attr(Opcode::Add, AttrKey::Metadata, AttrValue::Metadata(Box::new(m))),
        "metadata={op_type=\"T\" op_name=\"jit(f)/add\" source_file=\"a b.py\" source_line=1 source_end_line=2 source_column=3 \
         source_end_column=4 profile_type={1,2} deduplicated_name=\"d\" scheduling_name=\"s\" stack_frame_id=5}"
    );
}

/// A module with a fusion, a get-tuple-element, a control edge and tables.
fn sample() -> Module {
    let mut m = Module::new("sample");
    let v = with_layout(&[2]);
    let fused = m.add_computation("fused".into(), Span::NONE);
    let new = |op, shape: &Shape, operands: &[InstrId], name: &str| {
        NewInstruction::new(op, shape.clone(), operands).named(name)
    };
    let p = m.append(
        fused,
        new(Opcode::Parameter, &v, &[], "p").attr(AttrKey::ParameterNumber, AttrValue::Int(0)),
    );
    let n = m.append(fused, new(Opcode::Negate, &v, &[p], "n"));
    let t = m.append(fused, new(Opcode::Tuple, &Shape::tuple([v.clone(), v.clone()]), &[n, p], "t"));
    m.set_root(fused, t);
    let main = m.add_computation("main".into(), Span::NONE);
    let x = m
        .append(main, new(Opcode::Parameter, &v, &[], "x").attr(AttrKey::ParameterNumber, AttrValue::Int(0)));
    let f = m.append(
        main,
        new(Opcode::Fusion, &Shape::tuple([v.clone(), v.clone()]), &[x], "f")
            .attr(AttrKey::FusionKind, AttrValue::FusionKind(FusionKind::Loop))
            .attr(AttrKey::Calls, AttrValue::Computation(fused)),
    );
    let g =
        m.append(main, new(Opcode::GetTupleElement, &v, &[f], "g").attr(AttrKey::Index, AttrValue::Int(1)));
    let c = m.append(
        main,
        new(Opcode::Compare, &Shape::array(Pred, &[2]), &[g, x], "c")
            .attr(AttrKey::Direction, AttrValue::Direction(Direction::Lt))
            .attr(
                AttrKey::Metadata,
                AttrValue::Metadata(Box::new(Metadata { stack_frame_id: Some(1), ..Metadata::default() })),
            ),
    );
    m.instr_mut(c).control_predecessors = vec![x, f];
    m.set_root(main, c);
    m.set_entry(main);
    m.computation_mut(fused).execution_thread = Some("host".into());
    m.header.is_scheduled = Some(true);
    let alias = AliasEntry {
        output_index: ints(&[]),
        parameter: 0,
        parameter_index: ints(&[1]),
        kind: AliasKind::Must,
        kind_written: true,
    };
    m.header.input_output_alias = vec![alias.clone(), AliasEntry { output_index: ints(&[1, 2]), ..alias }];
    m.header.buffer_donor = vec![BufferDonor { parameter: 0, parameter_index: ints(&[]) }];
    m.header.entry_computation_layout =
        Some(ProgramShape { parameters: vec![v; 6], result: Shape::array(Pred, &[2]) });
    m.header.spmd_propagation_to_parameters = Some(PropagationFlags::Each(vec![false, true]));
    m.header.replica_count = Some(2);
    m.header.num_partitions = Some(1);
    m.stack_tables.file_names = vec!["a.py".into()];
    m.stack_tables.function_names = vec!["f".into()];
    m.stack_tables.file_locations = vec![FileLocation {
        file_name_id: 1,
        function_name_id: 1,
        line: 7,
        end_line: 7,
        column: 3,
        end_column: 9,
    }];
    m.stack_tables.stack_frames = vec![StackFrame { file_location_id: 1, parent_frame_id: 1 }];
    m
}

#[test]
fn a_module_in_every_style() {
    let m = sample();
    let header = "HloModule sample, is_scheduled=true, input_output_alias={ {}: (0, {1}, must-alias), {1,2}: (0, {1}, must-alias) }, \
        buffer_donor={ (0, {}) }, entry_computation_layout={(f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}, \
        /*index=5*/f32[2]{0})->pred[2]}, allow_spmd_sharding_propagation_to_parameters={false,true}, replica_count=2";
    let tables = "\n\nFileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=7 \
        end_line=7 column=3 end_column=9}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n";
    let body = r#"

%fused (p: f32[2]) -> (f32[2], f32[2]) {
  %p = f32[2]{0} parameter(0)
  %n = f32[2]{0} negate(%p)
  ROOT %t = (f32[2]{0}, f32[2]{0}) tuple(%n, %p)
}, execution_thread="host"

ENTRY %main (x: f32[2]) -> pred[2] {
  %x = f32[2]{0} parameter(0)
  %f = (f32[2]{0}, f32[2]{0}) fusion(%x), kind=kLoop, calls=%fused
  %g = f32[2]{0} get-tuple-element(%f), index=1
  ROOT %c = pred[2] compare(%g, %x), direction=LT, control-predecessors={%x, %f}, metadata={stack_frame_id=1}
}

"#;
    assert_eq!(
        print_module(&m, &PrintOptions::source(&m)),
        format!("{header}, num_partitions=1{tables}{body}")
    );
    assert_eq!(print_module(&m, &PrintOptions::LONG), format!("{header}{tables}{body}"));
    let short = "\n
fused {
  p = f32[2]{0} parameter(0)
  n = f32[2]{0} negate(p)
  ROOT t = (f32[2]{0}, f32[2]{0}) tuple(n, p)
}, execution_thread=\"host\"

ENTRY main {
  x = f32[2]{0} parameter(0)
  f = (f32[2]{0}, f32[2]{0}) fusion(x), kind=kLoop, calls=fused
  g = f32[2]{0} get-tuple-element(f), index=1
  ROOT c = pred[2] compare(g, x), direction=LT
}

";
    assert_eq!(print_module(&m, &PrintOptions::SHORT_PARSABLE), format!("{header}{short}"));
    let canonical = "\n
fused {
  tmp_0 = f32[2]{0} parameter(0)
  tmp_1 = f32[2]{0} negate(f32[2]{0} tmp_0)
  ROOT tmp_2 = (f32[2]{0}, f32[2]{0}) tuple(f32[2]{0} tmp_1, f32[2]{0} tmp_0)
}, execution_thread=\"host\"

ENTRY main {
  tmp_0 = f32[2]{0} parameter(0)
  tmp_1 = (f32[2]{0}, f32[2]{0}) fusion(f32[2]{0} tmp_0), kind=kLoop, calls=
  {
    tmp_0 = f32[2]{0} parameter(0)
    tmp_1 = f32[2]{0} negate(f32[2]{0} tmp_0)
    ROOT tmp_2 = (f32[2]{0}, f32[2]{0}) tuple(f32[2]{0} tmp_1, f32[2]{0} tmp_0)
  }, execution_thread=\"host\"
  tmp_2 = f32[2]{0} get-tuple-element((f32[2]{0}, f32[2]{0}) tmp_1), index=1
  ROOT tmp_3 = pred[2] compare(f32[2]{0} tmp_2, f32[2]{0} tmp_0), direction=LT
}

";
    assert_eq!(print_module(&m, &PrintOptions::CANONICAL), format!("{header}{canonical}"));
    let compact = PrintOptions {
        compact_gte: true,
        header: false,
        final_blank_line: false,
        ..PrintOptions::SHORT_PARSABLE
    };
    let text = print_module(&m, &compact);
    assert!(text.ends_with("calls=fused\n  ROOT c = pred[2] compare(f#1, x), direction=LT\n}\n"), "{text}");
}

#[test]
fn streaming_gives_the_same_text() {
    let m = sample();
    let mut sink = String::new();
    write_module(&m, &PrintOptions::LONG, &mut sink).unwrap();
    assert_eq!(sink, print_module(&m, &PrintOptions::LONG));
}

#[test]
fn async_operations_show_what_they_wrap() {
    let mut m = Module::new("m");
    let v = Shape::array(S32, &[4]);
    let inner = m.add_computation("async_wrapped".into(), Span::NONE);
    let p = m.append(
        inner,
        NewInstruction::new(Opcode::Parameter, v.clone(), &[])
            .named("async_param")
            .attr(AttrKey::ParameterNumber, AttrValue::Int(0)),
    );
    let rev = m.append(
        inner,
        NewInstruction::new(Opcode::Reverse, v.clone(), &[p])
            .named("async_op")
            .attr(AttrKey::Dimensions, AttrValue::Ints(ints(&[0]))),
    );
    m.set_root(inner, rev);
    m.computation_mut(inner).execution_thread = Some("t".into());
    let config = AttrValue::BackendConfig(Box::new(BackendConfig::Str("b".into())));
    m.instr_mut(rev).attrs.set(AttrKey::BackendConfig, config.clone());
    let main = m.add_computation("main".into(), Span::NONE);
    let x = m.append(
        main,
        NewInstruction::new(Opcode::Parameter, v.clone(), &[])
            .named("x")
            .attr(AttrKey::ParameterNumber, AttrValue::Int(0)),
    );
    let state = Shape::tuple([Shape::tuple([v.clone()]), v.clone(), Shape::scalar(C64)]);
    let start = m.append(
        main,
        NewInstruction::new(Opcode::AsyncStart, state.clone(), &[x])
            .named("s")
            .attr(AttrKey::Calls, AttrValue::Computation(inner))
            .attr(AttrKey::AsyncExecutionThread, AttrValue::Str("t".into()))
            .attr(AttrKey::BackendConfig, AttrValue::BackendConfig(Box::new(BackendConfig::Str("b".into())))),
    );
    let update = m.append(main, NewInstruction::new(Opcode::AsyncUpdate, state, &[start]).named("u"));
    let done = m.append(main, NewInstruction::new(Opcode::AsyncDone, v, &[update]).named("d"));
    m.set_root(main, done);
    m.set_entry(main);
    m.text_style = TextStyle { header: false, ..TextStyle::SHORT };
    assert_eq!(
        print_module(&m, &PrintOptions::source(&m)),
        r#"ENTRY main {
  x = s32[4] parameter(0)
  s = ((s32[4]), s32[4], c64[]) reverse-start(x), async_execution_thread="t", dimensions={0}, backend_config="b"
  u = ((s32[4]), s32[4], c64[]) reverse-update(s)
  ROOT d = s32[4] reverse-done(u)
}

"#
    );
    let plain = print_module(&m, &PrintOptions { async_sugar: false, ..PrintOptions::source(&m) });
    assert!(
        plain.contains("async-start(x), async_execution_thread=\"t\", calls=async_wrapped, backend_config"),
        "{plain}"
    );
    assert!(plain.contains("async-done(u)\n"), "{plain}");
    // With a name of its own the wrapped computation is shown, unless XLA's way is asked for.
    m.computation_mut(inner).name = "mine".into();
    assert!(print_module(&m, &PrintOptions::source(&m)).starts_with("mine {\n"));
    assert!(print_module(&m, &PrintOptions::LONG).contains("reverse-start(%x)"));
}

#[test]
fn names_and_order_do_and_do_not_matter() {
    use crate::equal::{fingerprint, modules_equal};
    let a = sample();
    let mut b = sample();
    assert!(modules_equal(&a, &b.compact()).is_ok());
    assert_eq!(fingerprint(&a), fingerprint(&b.compact()));
    let root = b.root(b.entry());
    b.instr_mut(root).name = "other".into();
    let difference = modules_equal(&a, &b).unwrap_err();
    assert_eq!(difference.what, "name");
    assert_eq!(difference.location, "instruction c of main");
    assert_eq!(fingerprint(&a), fingerprint(&b));
    b.instr_mut(root).attrs.set(AttrKey::Direction, AttrValue::Direction(Direction::Gt));
    b.instr_mut(root).name = "c".into();
    assert_eq!(modules_equal(&a, &b).unwrap_err().what, "direction");
    assert_ne!(fingerprint(&a), fingerprint(&b));
    let mut c = sample();
    c.header.is_scheduled = None;
    assert_eq!(modules_equal(&a, &c).unwrap_err().what, "header");
}

#[test]
fn bodies_called_twice_at_every_level_do_not_explode() {
    let mut m = Module::new("m");
    let f = Shape::scalar(F32);
    let mut below: Option<ComputationId> = None;
    for level in 0..200 {
        let c = m.add_computation(format!("c{level}").into(), Span::NONE);
        let mut x = m.append(
            c,
            NewInstruction::new(Opcode::Parameter, f.clone(), &[])
                .attr(AttrKey::ParameterNumber, AttrValue::Int(0)),
        );
        for _ in 0..2 {
            if let Some(below) = below {
                let call = NewInstruction::new(Opcode::Call, f.clone(), &[x]);
                x = m.append(c, call.attr(AttrKey::ToApply, AttrValue::Computation(below)));
            }
        }
        m.set_root(c, x);
        below = Some(c);
    }
    m.set_entry(below.unwrap());
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            self.0 += s.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    write_module(&m, &PrintOptions::CANONICAL, &mut count).unwrap();
    assert!(count.0 < MAX_NESTED_TEXT * 2, "{}", count.0);
}
