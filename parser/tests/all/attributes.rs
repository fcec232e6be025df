//! Values of attributes.

use hlo::attrs::sharding::{MeshDevices, NamedDim};
use hlo::attrs::{
    AliasKind, AxisRef, BackendConfig, DeviceAssignment, FrontendValue, Mesh, NamedSharding, OriginalTree,
    OriginalValue, PaddingDim, ReplicaGroups, ResultAccuracy, Sharding, ShardingKind, SubgroupType,
    TileSharding, WindowDim,
};
use hlo::layout::{DimLevel, DimLevelType, SplitConfig, TileDim};
use hlo::{ArrayShape, AttrKey, AttrValue, Attrs, ElementType, Layout, PropagationFlags, Shape, UNBOUNDED};
use hlo_parser::*;
use smallvec::smallvec;

use crate::{codes, parse};

/// The attributes of `opcode(p, ...)`, `n` times the operand.
#[track_caller]
fn attrs(opcode: &str, n: usize, text: &str) -> Attrs {
    let operands = vec!["p"; n].join(", ");
    let module = parse(&format!(
        "f {{\n  ROOT x = f32[] parameter(0)\n}}\ng {{\n  ROOT x = f32[] parameter(0)\n}}\nENTRY e {{\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] {opcode}({operands}), {text}\n}}\n"
    ));
    module.instr(module.root(module.entry())).attrs.clone()
}

#[test]
fn shapes() {
    let array = |text: &str| parse_shape(text).unwrap().as_array().unwrap().clone();
    assert_eq!(array("f32[2,3]"), ArrayShape::new(ElementType::F32, &[2, 3]));
    assert_eq!(array(" bf16 [ 2 , 3 ] { 1 , 0 } ").layout.as_deref(), Some(&Layout::row_major(2)));
    let dynamic = array("s4[<=2,?,5]");
    assert_eq!((dynamic.dims.as_slice(), dynamic.dynamic), ([2, UNBOUNDED, 5].as_slice(), 0b011));
    for &ty in ElementType::ALL {
        assert_eq!(array(&format!("{ty}[]")).element_type, ty);
    }
    assert_eq!(parse_shape("token[]").unwrap(), Shape::Token);
    assert_eq!(parse_shape("opaque[]").unwrap(), Shape::Opaque);
    assert_eq!(parse_shape("()").unwrap(), Shape::tuple([]));
    let tuple = parse_shape("(f32[], /*index=1*/(s32[1]{0}, token[]))").unwrap();
    assert_eq!(tuple.leaves().len(), 3);
    assert!(matches!(parse_shape("b(f32[4]{0})").unwrap(), Shape::Buffer(_)));
    assert_eq!(parse_shape_list("f32[1], (s32[])").unwrap().len(), 2);
    for (text, code) in [
        ("", "P0406"),
        ("f32", "P0402"),
        ("f31[]", "P0401"),
        ("f32[-1]", "P0402"),
        ("f32[<]", "P0402"),
        ("f32[1,]", "P0402"),
        ("f32[2]{0,1}", "P0405"),
        ("(f32[],)", "P0406"),
        ("f32[] x", "P0226"),
        ("f32[9223372036854775808]", "P0206"),
        ("token[1]", "P0406"),
        ("f32[2]{0:Q(1)}", "P0404"),
        ("TUPLE[]", "P0401"),
    ] {
        assert_eq!(parse_shape(text).unwrap_err().code.as_str(), code, "{text}");
    }
}

#[test]
fn layouts() {
    let text = "{1,0:D(D,C+~,S+,H~)T(8,128)(2,*)L(2)#(u32)*(u64)E(4)S(5)SC(0:512)(1:3,4)P(s32[3])M(8)}";
    let layout = parse_layout(text).unwrap();
    let level = |kind, unique, ordered| DimLevel { kind, unique, ordered };
    let expected = Layout {
        minor_to_major: smallvec![1, 0],
        dim_levels: vec![
            level(DimLevelType::Dense, true, true),
            level(DimLevelType::Compressed, false, false),
            level(DimLevelType::Singleton, false, true),
            level(DimLevelType::LooseCompressed, true, false),
        ],
        tiles: vec![vec![TileDim::Size(8), TileDim::Size(128)], vec![TileDim::Size(2), TileDim::Combine]],
        tail_padding_alignment: Some(2),
        index_type: Some(ElementType::U32),
        pointer_type: Some(ElementType::U64),
        element_size_in_bits: Some(4),
        memory_space: Some(5),
        split_configs: vec![
            SplitConfig { dimension: 0, indices: vec![512] },
            SplitConfig { dimension: 1, indices: vec![3, 4] },
        ],
        physical_shape: Some(Box::new(Shape::array(ElementType::S32, &[3]))),
        dynamic_shape_metadata_prefix_bytes: Some(8),
    };
    assert_eq!(layout, expected);
    assert_eq!(parse_layout("{:S(1)}").unwrap().memory_space, Some(1));
    assert_eq!(parse_layout("{}").unwrap(), Layout::default());
}

#[test]
fn windows() {
    let w = parse_window("{size=3x1 stride=2x1 pad=1_0x-1_2 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}")
        .unwrap();
    let first = WindowDim {
        size: 3,
        stride: 2,
        pad_low: 1,
        pad_high: 0,
        base_dilation: 1,
        window_dilation: 3,
        reversal: false,
    };
    let second = WindowDim {
        size: 1,
        stride: 1,
        pad_low: -1,
        pad_high: 2,
        base_dilation: 2,
        window_dilation: 1,
        reversal: true,
    };
    assert_eq!(w.dims.as_slice(), [first, second]);
    assert_eq!(
        parse_window("pad=1_1 size=3").unwrap().dims[0],
        WindowDim { size: 3, pad_low: 1, pad_high: 1, ..first_default() }
    );
    assert!(parse_window("{}").unwrap().dims.is_empty());
    for text in [
        "{size=3x3 pad=1_1}",
        "{pad=1_1}",
        "{size=}",
        "{size=3 size=3}",
        "{depth=3}",
        "{size=3x}",
        "{size=3 pad=1_1_1}",
    ] {
        assert_eq!(parse_window(text).unwrap_err().code.as_str(), "P0211", "{text}");
    }
}

fn first_default() -> WindowDim {
    WindowDim::default()
}

#[test]
fn dimension_labels() {
    let d = parse_conv_dims("b01f_01io->b01f").unwrap();
    assert_eq!((d.input_batch, d.input_spatial.as_slice(), d.input_feature), (0, [1, 2].as_slice(), 3));
    assert_eq!(
        (d.kernel_spatial.as_slice(), d.kernel_input_feature, d.kernel_output_feature),
        ([0, 1].as_slice(), 2, 3)
    );
    let d = parse_conv_dims("fb_io->bf").unwrap();
    assert_eq!((d.input_feature, d.input_batch, d.output_batch, d.output_feature), (0, 1, 0, 1));
    let d = parse_conv_dims("b?0f_0?io->?b0f").unwrap();
    assert_eq!(d.unknown.each_ref().map(|u| u.to_vec()), [vec![1], vec![1], vec![0]]);
    for text in [
        "b0f_0io",
        "b0f_0io->b0",
        "b0f_01io->b0f",
        "bb0_0io->b0f",
        "b1f_0io->b0f",
        "b_io->bf",
        "xb0_0io->b0f",
    ] {
        assert_eq!(parse_conv_dims(text).unwrap_err().code.as_str(), "P0212", "{text}");
    }
}

#[test]
fn padding_and_slices() {
    let p = parse_padding("0_1x-2_3_4").unwrap();
    assert_eq!(
        *p,
        [PaddingDim { low: 0, high: 1, interior: 0 }, PaddingDim { low: -2, high: 3, interior: 4 }]
    );
    assert!(parse_padding("").unwrap().is_empty());
    assert_eq!(parse_padding("1").unwrap_err().code.as_str(), "P0213");
    let module = parse(
        "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = f32[] pad(p, p), padding=, metadata={op_name=\"x\"}\n}\n",
    );
    let root = module.instr(module.root(module.entry()));
    assert_eq!(root.attrs.padding(), Some([].as_slice()), "a scalar's padding is empty text");
    assert!(root.attrs.metadata().is_some());
    let a = attrs("slice", 1, "slice={[0:4], [1:9:2]}");
    let s: Vec<_> = a.slices().unwrap().iter().map(|s| (s.start, s.limit, s.stride)).collect();
    assert_eq!(s, [(0, 4, 1), (1, 9, 2)]);
    assert!(attrs("slice", 1, "slice={}").slices().unwrap().is_empty());
}

#[test]
fn replica_groups() {
    assert_eq!(
        parse_replica_groups("{{0,1},{2,3}}").unwrap(),
        ReplicaGroups::Lists(vec![smallvec![0, 1], smallvec![2, 3]])
    );
    assert_eq!(parse_replica_groups("{}").unwrap(), ReplicaGroups::Lists(vec![]));
    assert_eq!(parse_replica_groups("{{}}").unwrap(), ReplicaGroups::Lists(vec![smallvec![]]));
    let iota = parse_replica_groups("[2,4]<=[4,2]T(1,0)").unwrap();
    assert_eq!(iota.expand().unwrap(), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    assert_eq!(parse_replica_groups("[2,2]<=[4]").unwrap().expand().unwrap(), [[0, 1], [2, 3]]);
    assert_eq!(parse_replica_groups("[2,2] <= [4]").unwrap().expand().unwrap(), [[0, 1], [2, 3]]);
    let mesh = parse_replica_groups("mesh['a'=2,'b'=2] {'a'}").unwrap();
    assert_eq!(mesh.expand().unwrap(), [[0, 2], [1, 3]]);
    let part = parse_replica_groups("mesh['a'=4], device_ids=([4]) {'a':(1)2}").unwrap();
    assert_eq!(part.expand().unwrap(), [[0, 2], [1, 3]]);
    // The same inside an instruction, where the lexer must find the end.
    for text in ["mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'a','b'}", "[2,2] <= [2,2] T(1,0)", "{{0},{1}}"] {
        let a = attrs("all-gather", 1, &format!("replica_groups={text}, dimensions={{0}}"));
        assert_eq!(a.replica_groups(), Some(&parse_replica_groups(text).unwrap()));
        assert!(a.ints(AttrKey::Dimensions).is_some());
    }
    for (text, code) in [
        ("2", "P0215"),
        ("{0,1}", "P0215"),
        ("[2,2]", "P0215"),
        ("[4]<=[4]", "P0215"),
        ("[2,2]<=[5]", "P0215"),
        ("[2,2]<=[2,2]", "P0215"),
        ("[2,2]<=[2,2]T(0,2)", "P0215"),
        ("[9223372036854775807,9]<=[2]", "P0215"),
        ("mesh['a'=2] {'b'}", "P0227"),
        ("mesh[a=2] {'a'}", "P0227"),
        ("mash['a'=2] {'a'}", "P0227"),
    ] {
        assert_eq!(parse_replica_groups(text).unwrap_err().code.as_str(), code, "{text}");
    }
}

fn tile(text: &str) -> TileSharding {
    match parse_sharding(text) {
        Ok(Sharding::Single(s)) => match *s {
            ShardingKind::Tile(t) => t,
            ShardingKind::Named(_) => panic!("{text} has names"),
        },
        Ok(Sharding::Tuple(_)) => panic!("{text} is of a tuple"),
        Err(e) => panic!("{text}: {}", e.message),
    }
}

#[test]
fn shardings() {
    assert_eq!(tile("{replicated}").devices, DeviceAssignment::Replicated);
    assert_eq!(tile("{manual}").devices, DeviceAssignment::Manual);
    assert_eq!(tile("{unknown}").devices, DeviceAssignment::Unknown);
    assert_eq!(tile("{unreduced}").devices, DeviceAssignment::Unreduced);
    assert_eq!(tile("{maximal device=3}").devices, DeviceAssignment::Maximal(3));
    let list = tile("{devices=[2,1]1,0 last_tile_dim_replicate metadata={op_name=\"x\"}}");
    assert_eq!(list.devices, DeviceAssignment::List { dims: smallvec![2, 1], ids: vec![1, 0] });
    assert!(list.last_tile_dim_replicate && list.metadata.len() == 1);
    let iota = tile(
        "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated} shard_like 7 metadata={{op_name=\"x\"}, {}}}",
    );
    assert_eq!(iota.devices.device_ids().unwrap(), [0, 2, 1, 3]);
    assert_eq!(iota.last_tile_dims, [SubgroupType::Manual, SubgroupType::Replicated]);
    assert_eq!((iota.shard_like, iota.shard_as, iota.metadata.len()), (Some(7), None, 2));
    assert_eq!(tile("{replicated shard_as 1}").shard_as, Some(1));
    let Sharding::Tuple(t) = parse_sharding("{{replicated}, /*index=1*/{maximal device=0}}").unwrap() else {
        panic!()
    };
    assert_eq!(t.len(), 2);
    assert_eq!(parse_sharding("{}").unwrap(), Sharding::Tuple(vec![]));
}

#[test]
fn shardings_by_names() {
    let named = |text: &str| -> NamedSharding {
        match parse_sharding(text) {
            Ok(Sharding::Single(s)) => match *s {
                ShardingKind::Named(n) => n,
                ShardingKind::Tile(_) => panic!("{text} has no names"),
            },
            other => panic!("{text}: {other:?}"),
        }
    };
    let axis = |name: &str| AxisRef { name: name.into(), sub_axis: None };
    let s = named(
        "{mesh['x'=2,'y'=4,'z'=2], [{'x'}, {'y':(2)2,?}p1, {}], replicated={'z'}, unreduced=max{'y':(1)2}, manual={'z'}, metadata={op_name=\"a\"}}",
    );
    assert_eq!(s.mesh.axes.len(), 3);
    let part = |pre, size| AxisRef { name: "y".into(), sub_axis: Some((pre, size)) };
    let dims = vec![
        NamedDim { axes: vec![axis("x")], open: false, priority: None },
        NamedDim { axes: vec![part(2, 2)], open: true, priority: Some(1) },
        NamedDim::default(),
    ];
    assert_eq!(s.dims, Some(dims));
    assert_eq!((s.replicated, s.unreduced, s.manual), (vec![axis("z")], vec![part(1, 2)], vec![axis("z")]));
    assert_eq!((s.unreduced_kind.as_deref(), s.metadata.len()), (Some("max"), 1));
    let s = named("{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{?}]}");
    assert_eq!(
        s.mesh.device_ids,
        Some(MeshDevices::Iota { reshape_dims: smallvec![2, 2], transpose: smallvec![1, 0] })
    );
    assert_eq!(
        named("{mesh['x'=2], device_ids=(1,0), [{'x'}]}").mesh.device_ids,
        Some(MeshDevices::List(vec![1, 0]))
    );
    let maximal = Mesh { axes: vec![], device_ids: Some(MeshDevices::List(vec![3])), maximal: true };
    assert_eq!(named("{maximal_mesh[device_id=3]}").mesh, maximal);
    assert_eq!(named("{mesh['x'=2], manual}").manual, [axis("x")]);
    assert_eq!(named("{mesh['x'=2,'y'=2], unreduced=sum{'x'}}").unreduced, [axis("x")]);
    assert_eq!(named("{mesh['x'=2], [{'0'}]}").dims.unwrap()[0].axes, [axis("x")], "axes may be numbered");
}

#[test]
fn strings_and_dictionaries() {
    let a = attrs(
        "custom-call",
        1,
        r#"custom_call_target="a\"\\\n\t\x41\101\u00e9\303\251'", backend_config="{\"a\": \"}\"}""#,
    );
    assert_eq!(a.str(AttrKey::CustomCallTarget), Some("a\"\\\n\tAAéé'"));
    assert_eq!(a.backend_config(), Some(&BackendConfig::Str("{\"a\": \"}\"}".into())));
    let a = attrs(
        "custom-call",
        1,
        r#"custom_call_target='single "quotes"', backend_config={"a": {"}": [1]}, b = don't : ui8}"#,
    );
    assert_eq!(a.str(AttrKey::CustomCallTarget), Some("single \"quotes\""));
    assert_eq!(a.backend_config(), Some(&BackendConfig::Raw(r#"{"a": {"}": [1]}, b = don't : ui8}"#.into())));
    let a = attrs(
        "negate",
        1,
        r#"frontend_attributes={xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>},a="{x",b='y'}"#,
    );
    let f = a.frontend_attributes().unwrap();
    assert_eq!(f.get("xla.sdy.meshes"), Some("{empty_mesh = #sdy.mesh<[]>}"));
    assert_eq!(f.entries[1], ("a".into(), FrontendValue::Str("{x".into())));
    assert_eq!(f.get("b"), Some("y"));
    assert!(parse_frontend_attributes("{}").unwrap().entries.is_empty());
    assert_eq!(parse_frontend_attributes("{a=b}").unwrap_err().code.as_str(), "P0218");
}

#[test]
fn metadata() {
    let a = attrs(
        "negate",
        1,
        r#"metadata={op_type="t" op_name="n", source_file="f" source_line=1 source_end_line=2 source_column=3 source_end_column=4 profile_type={1,2} deduplicated_name="d" scheduling_name="s" stack_frame_id=5 size_of_generated_code_in_bytes=6 size_of_memory_working_set_in_bytes=7 preserve_layout=true metadata_payload="p" new_field={a=1} other="x" third=3}"#,
    );
    let m = a.metadata().unwrap();
    assert_eq!(
        (m.op_type.as_deref(), m.op_name.as_deref(), m.source_file.as_deref()),
        (Some("t"), Some("n"), Some("f"))
    );
    assert_eq!(
        (m.source_line, m.source_end_line, m.source_column, m.source_end_column),
        (Some(1), Some(2), Some(3), Some(4))
    );
    assert_eq!(
        (m.profile_type.clone(), m.stack_frame_id, m.preserve_layout),
        (Some(vec![1, 2]), Some(5), Some(true))
    );
    assert_eq!(
        (m.deduplicated_name.as_deref(), m.scheduling_name.as_deref(), m.payload.as_deref()),
        (Some("d"), Some("s"), Some("p"))
    );
    assert_eq!(
        (m.size_of_generated_code_in_bytes, m.size_of_memory_working_set_in_bytes),
        (Some(6), Some(7))
    );
    let unknown: Vec<(&str, &str)> = m.unknown.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(unknown, [("new_field", "{a=1}"), ("other", "\"x\""), ("third", "3")]);
}

#[test]
fn origins_statistics_and_accuracy() {
    let leaf = |name: &str, index: &[i64]| OriginalTree::Leaf(Some((name.into(), index.into())));
    assert_eq!(parse_original_value("{{\"a\" {0,1}}}").unwrap(), OriginalValue::Tree(leaf("a", &[0, 1])));
    assert_eq!(parse_original_value("{[synthetic_call]}").unwrap(), OriginalValue::SyntheticCall);
    let tree =
        OriginalTree::Tuple(vec![leaf("a", &[]), OriginalTree::Tuple(vec![]), OriginalTree::Leaf(None)]);
    assert_eq!(parse_original_value("{({\"a\"}, (), {})}").unwrap(), OriginalValue::Tree(tree));
    let s = parse_statistics("{visualizing_index=1,a=1.5,b=-2}").unwrap();
    assert_eq!((s.visualizing_index, s.values), (1, vec![("a".into(), 1.5), ("b".into(), -2.0)]));
    assert_eq!(parse_statistics("{a=1}").unwrap_err().code.as_str(), "P0221");
    let accuracy =
        |text: &str| *attrs("tanh", 1, &format!("result_accuracy={text}")).result_accuracy().unwrap();
    assert_eq!(accuracy("{mode=highest}"), ResultAccuracy::Highest);
    assert_eq!(accuracy("{mode=DEFAULT}"), ResultAccuracy::Default);
    let tolerance = ResultAccuracy::Tolerance { atol: 0.5, rtol: 1e-3, ulps: 2 };
    assert_eq!(accuracy("{tolerance={atol=0.5,rtol=1e-3,ulps=2}}"), tolerance);
    assert_eq!(parse_parameter_replication("{true,false}").unwrap(), [true, false]);
}

#[test]
fn every_kind_of_value_in_an_instruction() {
    let a = attrs(
        "fusion",
        1,
        "kind=kCustom, calls=%f, output_to_operand_aliasing={{}: (0, {}), {1}: (0, {0,1})}",
    );
    let aliases = a.operand_aliasing().unwrap();
    assert_eq!(
        (aliases[1].output_index.as_slice(), aliases[1].operand, aliases[1].operand_index.as_slice()),
        ([1].as_slice(), 0, [0, 1].as_slice())
    );
    let a = attrs(
        "dot",
        2,
        "lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={HIGHEST,default}, algorithm=dot_bf16_bf16_f32_x3",
    );
    assert_eq!(a.precisions().unwrap().len(), 2);
    assert_eq!(a.dot_algorithm().unwrap().text(), "dot_bf16_bf16_f32_x3");
    let a = attrs(
        "convolution",
        2,
        "window={size=1}, dim_labels=b0f_0io->b0f, sparsity_config={lhs={sparsity=2x4 dimension=1 stride=3 idx=2} rhs={}}, convolution_kind=fprop",
    );
    let side = a.sparsity().unwrap().lhs.clone().unwrap();
    assert_eq!(
        (side.num_non_zero, side.block_size, side.dimension, side.stride, side.idx),
        (2, 4, 1, Some(3), Some(2))
    );
    let a = attrs("domain", 1, "domain={kind=\"sharding\", entry={replicated}, exit={maximal device=1}}");
    assert!(matches!(a.get(AttrKey::Domain), Some(AttrValue::Domain(d)) if &*d.kind == "sharding"));
    let a = attrs(
        "custom-call",
        1,
        "custom_call_target=\"f\", called_computations={%f, g}, schedule=SCHEDULE_LATEST, padding_type=PADDING_SAME, literal=f32[2]{0} {1, 2}, custom_call_has_side_effect=true, operand_layout_constraints={f32[2]{0}}",
    );
    assert_eq!(a.computations(AttrKey::CalledComputations).unwrap().len(), 2);
    assert!(a.bool(AttrKey::CustomCallHasSideEffect) && a.get(AttrKey::Literal).is_some());
    let a = attrs("batch-norm-inference", 5, "epsilon=0.001, feature_index=0");
    assert_eq!(a.float(AttrKey::Epsilon), Some(0.001));
    let a = attrs(
        "collective-permute",
        1,
        "source_target_pairs={{0,1},{1,0}}, slice_sizes={{1},{2}}, channel_id=3",
    );
    assert_eq!(a.int_lists(AttrKey::SourceTargetPairs).unwrap().len(), 2);
    assert_eq!(a.int_lists(AttrKey::PermuteSliceSizes).unwrap().len(), 2);
    let a = attrs("select-and-scatter", 3, "select=f, scatter=g, window={size=1}");
    assert_ne!(a.computation(AttrKey::Select), a.computation(AttrKey::Scatter));
    let a = attrs("rng-bit-generator", 1, "algorithm=rng_philox");
    assert_eq!(a.rng_algorithm().unwrap().text(), "rng_philox");
    let a = attrs("triangular-solve", 2, "left_side=true, lower=false, transpose_a=NO_TRANSPOSE");
    assert!(a.bool(AttrKey::LeftSide) && a.transpose().is_some());
    let a = attrs("outfeed", 2, "outfeed_shape=(f32[2]{0}, s32[]), outfeed_config=\"c\"");
    assert!(matches!(a.get(AttrKey::OutfeedShape), Some(AttrValue::Shape(s)) if s.leaves().len() == 2));
}

#[test]
fn headers() {
    let m = parse(
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {0}) }, buffer_donor={ (2, {}), (3, {1,0}) }, alias_passthrough_params=true, allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output=true, replica_count=2, num_partitions=4, origin_recovery_table={\n  {\"a\" {0}} : {\"b\"}\n}, debug_attributes={\n {\"x\"}:({log_mode=default})\n}, custom=word\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n",
    );
    let h = &m.header;
    assert_eq!(
        (h.is_scheduled, h.alias_passthrough_params, h.replica_count, h.num_partitions),
        (Some(true), Some(true), Some(2), Some(4))
    );
    let kinds: Vec<_> = h.input_output_alias.iter().map(|a| (a.kind, a.kind_written)).collect();
    assert_eq!(kinds, [(AliasKind::Must, true), (AliasKind::May, false)]);
    assert_eq!(h.buffer_donor[1].parameter_index.as_slice(), [1, 0]);
    assert_eq!(h.spmd_propagation_to_parameters, Some(PropagationFlags::Each(vec![true, false])));
    assert_eq!(h.spmd_propagation_to_output, Some(PropagationFlags::All(true)));
    assert_eq!(h.origin_recovery_table.as_deref(), Some("{\n  {\"a\" {0}} : {\"b\"}\n}"));
    assert_eq!(h.custom, [("custom".into(), "word".into())]);
    assert_eq!(
        codes("HloModule m, input_output_alias={ {}: 0 }\nENTRY e { ROOT p = f32[] parameter(0) }"),
        ["P0223"]
    );
}
