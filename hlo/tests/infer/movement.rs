use super::run;

#[test]
fn reshape_transpose_reverse() {
    run(&[
        ("f32[6] reshape(f32[2,3])", "ok"),
        ("f32[] reshape(f32[1,1])", "ok"),
        ("f32[0,5] reshape(f32[0])", "ok"),
        ("f32[5] reshape(f32[2,3])", "V0205: reshape: 6 elements cannot become 5 (f32[5] has 5)"),
        (
            "bf16[6] reshape(f32[2,3])",
            "V0108: reshape: the element type cannot change from f32 to bf16 (elements must be f32)",
        ),
        (
            "reshape(f32[2,3])",
            "V0102: reshape: the shape of the result must be written, it does not follow from the operands",
        ),
        ("f32[<=6] reshape(f32[<=2,3]) inferred_dimension=0", "ok"),
        (
            "f32[6] reshape(f32[2,3]) inferred_dimension=1",
            "V0200: reshape: inferred_dimension 1 is out of range (must be 0 to 0)",
        ),
        (
            "f32[4611686018427387904,4] reshape(f32[1])",
            "V0111: reshape: the number of elements of the result does not fit in 64 bits",
        ),
        ("transpose(f32[2,3,4]) dimensions={2,0,1}", "f32[4,2,3]"),
        ("transpose(f32[2,<=3]) dimensions={1,0}", "f32[<=3,2]"),
        ("transpose(f32[]) dimensions={}", "f32[]"),
        (
            "transpose(f32[2,3]) dimensions={0}",
            "V0202: transpose: dimensions={0} must name each of 2 dimensions once",
        ),
        ("transpose(f32[2,3]) dimensions={0,0}", "V0201: transpose: dimension 0 is repeated in {0,0}"),
        (
            "transpose(f32[2,3]) dimensions={0,2}",
            "V0200: transpose: dimension 2 is out of range (must be 0 to 1)",
        ),
        (
            "transpose(f32[2,3]) dimensions={0,-1}",
            "V0200: transpose: dimension -1 is out of range (must be 0 to 1)",
        ),
        ("transpose(f32[2,3])", "V0103: transpose: attribute dimensions is missing"),
        ("reverse(f32[2,3]) dimensions={1}", "f32[2,3]"),
        ("reverse(f32[2,3]) dimensions={}", "f32[2,3]"),
        ("reverse(f32[2,3]) dimensions={1,1}", "V0201: reverse: dimension 1 is repeated in {1,1}"),
        (
            "reverse(f32[]) dimensions={0}",
            "V0200: reverse: dimension 0 is out of range (there are no dimensions)",
        ),
    ]);
}

#[test]
fn broadcast() {
    run(&[
        ("f32[2,3] broadcast(f32[]) dimensions={}", "ok"),
        ("f32[2,3] broadcast(f32[])", "ok"),
        ("f32[2,3] broadcast(f32[3]) dimensions={1}", "ok"),
        ("f32[2,3] broadcast(f32[2]) dimensions={0}", "ok"),
        ("f32[3,2] broadcast(f32[2,3]) dimensions={1,0}", "ok"),
        (
            "f32[2,3] broadcast(f32[3]) dimensions={0}",
            "V0206: broadcast: dimension 0 of the operand has size 3, dimension 0 of the result 2 (f32[2,3] must have size 3 in dimension 0)",
        ),
        (
            "f32[2,3] broadcast(f32[1]) dimensions={1}",
            "V0206: broadcast: dimension 0 of the operand has size 1, dimension 1 of the result 3 (f32[2,3] must have size 1 in dimension 1)",
        ),
        (
            "f32[2,3] broadcast(f32[3]) dimensions={2}",
            "V0200: broadcast: dimension 2 is out of range (must be 0 to 1)",
        ),
        (
            "f32[3,3] broadcast(f32[3,3]) dimensions={0,0}",
            "V0201: broadcast: dimension 0 is repeated in {0,0}",
        ),
        (
            "f32[2,3] broadcast(f32[3]) dimensions={}",
            "V0202: broadcast: dimensions={} must name one dimension of the result for each of the operand",
        ),
        (
            "s32[2,3] broadcast(f32[3]) dimensions={1}",
            "V0108: broadcast: the element type cannot change from f32 to s32 (elements must be f32)",
        ),
        ("broadcast(f32[]) dimensions={}", "f32[]"),
        ("broadcast(f32[3]) dimensions={1}", "f32[1,3]"),
        (
            "broadcast(f32[3]) dimensions={0}",
            "V0206: broadcast: dimension 0 of the operand has size 3, dimension 0 of the result 0 (f32[0,3] must have size 3 in dimension 0)",
        ),
    ]);
}

#[test]
fn concatenate_and_slice() {
    run(&[
        ("concatenate(f32[2],f32[3]) dimensions={0}", "f32[5]"),
        ("concatenate(f32[2]) dimensions={0}", "f32[2]"),
        ("concatenate(f32[2,3],f32[2,0],f32[2,4]) dimensions={1}", "f32[2,7]"),
        ("concatenate(bf16[2],f32[3]) dimensions={0}", "f32[5]"),
        ("concatenate(f32[<=2],f32[3]) dimensions={0}", "f32[<=5]"),
        ("concatenate(f32[?],f32[3]) dimensions={0}", "f32[?]"),
        ("concatenate(f32[?,3],f32[2,3]) dimensions={1}", "f32[2,6]"),
        ("concatenate(f32[2,3],f32[<=2,3]) dimensions={1}", "f32[<=2,6]"),
        (
            "concatenate(f32[2,3],f32[3,3]) dimensions={1}",
            "V0207: concatenate: dimension 0 has size 2 in one operand and 3 in another (only dimension 1 may differ)",
        ),
        (
            "concatenate(f32[2],f32[2,1]) dimensions={0}",
            "V0204: concatenate: operands 0 and 1 have different numbers of dimensions",
        ),
        (
            "concatenate(f32[2],s32[2]) dimensions={0}",
            "V0105: concatenate: operands 0 and 1 have different element types, f32 and s32",
        ),
        (
            "concatenate(f32[2],f32[2]) dimensions={1}",
            "V0200: concatenate: dimension 1 is out of range (must be 0 to 0)",
        ),
        (
            "concatenate(f32[],f32[]) dimensions={0}",
            "V0200: concatenate: dimension 0 is out of range (there are no dimensions)",
        ),
        (
            "concatenate(f32[2],f32[2]) dimensions={0,1}",
            "V0202: concatenate: dimensions must name exactly one dimension (2 are named)",
        ),
        ("concatenate() dimensions={0}", "V0001: concatenate: 0 operands given (takes at least 1 operand)"),
        (
            "concatenate(f32[9223372036854775807],f32[1]) dimensions={0}",
            "V0111: concatenate: the length of the result does not fit in 64 bits",
        ),
        ("slice(f32[10,20]) slice={[1:9:2],[0:20]}", "f32[4,20]"),
        ("slice(f32[10]) slice={[10:10]}", "f32[0]"),
        ("slice(f32[10]) slice={[0:9:4]}", "f32[3]"),
        ("slice(f32[<=10]) slice={[0:5]}", "f32[<=5]"),
        ("slice(f32[<=10]) slice={[0:1]}", "f32[1]"),
        ("slice(f32[?]) slice={[0:100]}", "f32[100]"),
        ("slice(f32[]) slice={}", "f32[]"),
        (
            "slice(f32[10]) slice={[0:11]}",
            "V0208: slice: limit 11 of dimension 0 is beyond its size 10 (in [0:11:1])",
        ),
        ("slice(f32[10]) slice={[-1:5]}", "V0208: slice: start -1 of dimension 0 is negative (in [-1:5:1])"),
        (
            "slice(f32[10]) slice={[6:5]}",
            "V0208: slice: start 6 of dimension 0 is beyond limit 5 (in [6:5:1])",
        ),
        (
            "slice(f32[10]) slice={[0:5:0]}",
            "V0208: slice: stride 0 of dimension 0 is not positive (in [0:5:0])",
        ),
        ("slice(f32[10]) slice={[0:5:9223372036854775807]}", "f32[1]"),
        ("slice(f32[10,2]) slice={[0:5]}", "V0202: slice: 1 interval for 2 dimensions"),
    ]);
}

#[test]
fn dynamic_slices() {
    run(&[
        ("dynamic-slice(f32[10,20],s32[],s32[]) dynamic_slice_sizes={3,20}", "f32[3,20]"),
        ("dynamic-slice(f32[10,20],s32[2]) dynamic_slice_sizes={3,20}", "f32[3,20]"),
        ("dynamic-slice(f32[]) dynamic_slice_sizes={}", "f32[]"),
        ("dynamic-slice(f32[<=10],u8[]) dynamic_slice_sizes={10}", "f32[<=10]"),
        ("dynamic-slice(f32[<=10],u8[]) dynamic_slice_sizes={9}", "f32[9]"),
        (
            "dynamic-slice(f32[10,20],s32[]) dynamic_slice_sizes={3,20}",
            "V0209: dynamic-slice: 1 start index operand for 2 dimensions",
        ),
        (
            "dynamic-slice(f32[10,20],s32[3]) dynamic_slice_sizes={3,20}",
            "V0209: dynamic-slice: 3 start indices for 2 dimensions",
        ),
        (
            "dynamic-slice(f32[10,20],s32[],s64[]) dynamic_slice_sizes={3,20}",
            "V0209: dynamic-slice: start indices have different types, s32 and s64",
        ),
        (
            "dynamic-slice(f32[10],f32[]) dynamic_slice_sizes={3}",
            "V0104: dynamic-slice: operand 1 cannot have elements of type f32 (must be an integer)",
        ),
        (
            "dynamic-slice(f32[10,20],s32[],s32[1]) dynamic_slice_sizes={3,20}",
            "V0109: dynamic-slice: a start index must be a scalar",
        ),
        (
            "dynamic-slice(f32[10],s32[]) dynamic_slice_sizes={11}",
            "V0210: dynamic-slice: the slice has size 11 in dimension 0, where the operand has 10 (must be 0 to 10)",
        ),
        (
            "dynamic-slice(f32[10],s32[]) dynamic_slice_sizes={-1}",
            "V0210: dynamic-slice: the slice has size -1 in dimension 0, where the operand has 10 (must be 0 to 10)",
        ),
        (
            "dynamic-slice(f32[10],s32[]) dynamic_slice_sizes={1,1}",
            "V0202: dynamic-slice: dynamic_slice_sizes={1,1} has 2 sizes for 1 dimension",
        ),
        ("dynamic-update-slice(f32[10],f32[3],s32[])", "f32[10]"),
        ("dynamic-update-slice(f32[10],f32[<=10],s32[])", "f32[<=10]"),
        ("dynamic-update-slice(f32[10],f32[<=3],s32[])", "f32[10]"),
        ("dynamic-update-slice(b(f32[10]),f32[3],s32[])", "b(f32[10])"),
        (
            "dynamic-update-slice(f32[10],f32[11],s32[])",
            "V0210: dynamic-update-slice: the update has size 11 in dimension 0, where the operand has 10 (must be 0 to 10)",
        ),
        (
            "dynamic-update-slice(f32[10],f32[],s32[])",
            "V0204: dynamic-update-slice: operand and update have different numbers of dimensions",
        ),
        (
            "dynamic-update-slice(f32[10],s32[3],s32[])",
            "V0105: dynamic-update-slice: operand and update have different element types, f32 and s32",
        ),
        (
            "dynamic-update-slice(f32[10],f32[3])",
            "V0209: dynamic-update-slice: 0 start index operands for 1 dimension",
        ),
        (
            "bf16[10] dynamic-update-slice(f32[10],bf16[3],s32[])",
            "V0100: dynamic-update-slice: the result has shape f32[10], not bf16[10] (must be f32[10])",
        ),
    ]);
}

#[test]
fn pad_iota_bitcasts() {
    run(&[
        ("pad(f32[3,4],f32[]) padding=1_2x0_0", "f32[6,4]"),
        ("pad(f32[3],f32[]) padding=0_0_2", "f32[7]"),
        ("pad(f32[3],f32[]) padding=-1_-1", "f32[1]"),
        ("pad(f32[0],f32[]) padding=0_0_5", "f32[0]"),
        ("pad(f32[3],bf16[]) padding=0_0", "f32[3]"),
        ("pad(f32[<=3],f32[]) padding=1_0", "f32[<=4]"),
        ("pad(f32[?],f32[]) padding=1_0", "f32[?]"),
        ("pad(f32[3],f32[]) padding=-2_-2", "V0211: pad: dimension 0 would have size -1 (-2_-2_0)"),
        ("pad(f32[3],f32[]) padding=0_0_-1", "V0211: pad: interior padding -1 of dimension 0 is negative"),
        ("pad(f32[3],f32[1]) padding=0_0", "V0109: pad: the padding value must be a scalar"),
        (
            "pad(f32[3],s32[]) padding=0_0",
            "V0105: pad: operands 0 and 1 have different element types, f32 and s32",
        ),
        ("pad(f32[3],f32[]) padding=0_0x0_0", "V0202: pad: padding for 2 dimensions of 1"),
        (
            "pad(f32[3],f32[]) padding=9223372036854775807_9",
            "V0111: pad: the padded size of dimension 0 does not fit in 64 bits",
        ),
        (
            "pad(f32[3],f32[]) padding=0_0_9223372036854775807",
            "V0111: pad: the padded size of dimension 0 does not fit in 64 bits",
        ),
        ("s32[3,4] iota() iota_dimension=1", "ok"),
        ("c64[3] iota() iota_dimension=0", "ok"),
        ("s32[] iota() iota_dimension=0", "V0204: iota: the result cannot be a scalar"),
        ("s32[3] iota() iota_dimension=1", "V0200: iota: iota_dimension 1 is out of range (must be 0 to 0)"),
        (
            "pred[3] iota() iota_dimension=0",
            "V0108: iota: the result cannot have elements of type pred (must be an integer, a float or complex)",
        ),
        ("s32[4] bitcast-convert(f32[4])", "ok"),
        ("u8[4,4] bitcast-convert(f32[4])", "ok"),
        ("f32[4] bitcast-convert(u8[4,4])", "ok"),
        ("s4[3,2] bitcast-convert(s8[3])", "ok"),
        ("f32[] bitcast-convert(bf16[2])", "ok"),
        (
            "f32[4] bitcast-convert(u8[4,3])",
            "V0212: bitcast-convert: 4 elements of u8 make one of f32, but the last dimension has size 3",
        ),
        (
            "f32[] bitcast-convert(u8[])",
            "V0212: bitcast-convert: a scalar of 8 bits cannot become 32 bits of f32",
        ),
        (
            "c64[2] bitcast-convert(f64[2])",
            "V0212: bitcast-convert: bits of f64 cannot become c64: one is complex, the other is not",
        ),
        ("c128[2] bitcast-convert(c64[2,2])", "ok"),
        (
            "f6e3m2fn[2] bitcast-convert(u8[2])",
            "V0212: bitcast-convert: 8 bits of u8 cannot become 6 bits of f6e3m2fn",
        ),
        (
            "s32[2,2] bitcast-convert(f32[4])",
            "V0100: bitcast-convert: the result has shape s32[4], not s32[2,2] (must be s32[4])",
        ),
        ("f32[4] bitcast(f32[2,2])", "ok"),
        ("s8[8] bitcast(f32[2])", "ok"),
        ("s8[4] bitcast(s4[8])", "ok"),
        ("f32[3] bitcast(f32[2,2])", "V0213: bitcast: 16 bytes cannot become 12 (f32[3] takes 12 bytes)"),
        ("f32[3] bitcast(f32[<=2,2])", "ok"),
    ]);
}

#[test]
fn gather() {
    // Rows of a matrix.
    let rows =
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=1 slice_sizes={1,5}";
    let case = |operands: &str, attrs: &str, expected: &str| {
        run(&[(&format!("gather({operands}) {attrs}"), expected)]);
    };
    case("f32[10,5],s32[3,1]", rows, "f32[3,5]");
    case("f32[10,5],s32[3]", rows, "f32[3,5]");
    case("f32[10,5],s32[<=3]", rows, "f32[<=3,5]");
    case("f32[10,<=5],s32[3]", rows, "f32[3,<=5]");
    case(
        "f32[10,5],f32[3]",
        rows,
        "V0104: gather: operand 1 cannot have elements of type f32 (must be an integer)",
    );
    case(
        "f32[10,5],s32[3,2]",
        rows,
        "V0214: gather: start_index_map has 1 dimension, but index vectors have 2",
    );
    case("f32[10],s32[3]", rows, "V0202: gather: slice_sizes={1,5} has 2 sizes for 1 dimension");
    case(
        "f32[10,4],s32[3]",
        rows,
        "V0210: gather: the slice has size 5 in dimension 1, where the operand has 4 (must be 0 to 4)",
    );
    let wide = "offset_dims={0,1} collapsed_slice_dims={} start_index_map={1,0} index_vector_dim=0 slice_sizes={2,3}";
    case("f32[10,5],s32[2]", wide, "f32[2,3]");
    case("f32[10,5],s32[2,7,8]", wide, "f32[2,3,7,8]");
    let bad = |attrs: &str, expected: &str| case("f32[10,5],s32[3,1]", attrs, expected);
    bad(
        "offset_dims={2} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=1 slice_sizes={1,5}",
        "V0200: gather: offset_dims 2 is out of range (must be 0 to 1)",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=3 slice_sizes={1,5}",
        "V0200: gather: index_vector_dim 3 is out of range (must be 0 to 2)",
    );
    bad(
        "offset_dims={1,0} collapsed_slice_dims={} start_index_map={0} index_vector_dim=1 slice_sizes={1,5}",
        "V0203: gather: offset_dims {1,0} must be in ascending order",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={2} index_vector_dim=1 slice_sizes={1,5}",
        "V0200: gather: start_index_map 2 is out of range (must be 0 to 1)",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={2} start_index_map={0} index_vector_dim=1 slice_sizes={1,5}",
        "V0200: gather: collapsed_slice_dims 2 is out of range (must be 0 to 1)",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={} start_index_map={0} index_vector_dim=1 slice_sizes={1,5}",
        "V0216: gather: 2 dimensions of the operand, but 1 offset, 0 collapsed and 0 batching ones",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=1 slice_sizes={2,5}",
        "V0210: gather: collapsed dimension 0 of the operand has slice size 2, it must be 1",
    );
    bad(
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=1 slice_sizes={0,5}",
        "V0210: gather: dimension 0 has slice size 0, but the result has elements",
    );
    case(
        "f32[0,5],s32[0,1]",
        "offset_dims={1} collapsed_slice_dims={0} start_index_map={0} index_vector_dim=1 slice_sizes={0,5}",
        "f32[0,5]",
    );
    let batched = "offset_dims={2} collapsed_slice_dims={1} start_index_map={1} index_vector_dim=2 slice_sizes={1,1,4} operand_batching_dims={0} start_indices_batching_dims={0}";
    case("f32[6,10,4],s32[6,3,1]", batched, "f32[6,3,4]");
    case("f32[6,10,4],s32[7,3,1]", batched, "V0215: gather: batching dimensions have different sizes");
    case(
        "f32[6,10,4],s32[6,3,1]",
        &batched.replace("start_indices_batching_dims={0}", "start_indices_batching_dims={2}"),
        "V0215: gather: dimension 2 of the indices holds index vectors, it cannot be a batching dimension",
    );
    case(
        "f32[6,10,4],s32[6,3,1]",
        &batched.replace("start_indices_batching_dims={0}", "start_indices_batching_dims={}"),
        "V0215: gather: operand_batching_dims names 1 dimension, start_indices_batching_dims 0",
    );
    case(
        "f32[6,10,4],s32[6,3,1]",
        &batched.replace("start_index_map={1}", "start_index_map={0}"),
        "V0201: gather: dimension 0 is both in start_index_map and in operand_batching_dims",
    );
}

#[test]
fn scatter() {
    let dims =
        "update_window_dims={1} inserted_window_dims={0} scatter_dims_to_operand_dims={0} index_vector_dim=1";
    let case = |operands: &str, dims: &str, expected: &str| {
        run(&[(&format!("scatter({operands}) {dims} to_apply=(f32[],f32[])->f32[]"), expected)]);
    };
    case("f32[10,5],s32[3,1],f32[3,5]", dims, "f32[10,5]");
    case("f32[10,5],s32[3],f32[3,5]", dims, "f32[10,5]");
    case("f32[10,5],s32[3],f32[3,2]", dims, "f32[10,5]");
    case("bf16[10,5],s32[3],bf16[3,2]", dims, "bf16[10,5]");
    case(
        "f32[10,5],s32[3],f32[3,6]",
        dims,
        "V0210: scatter: the window of updates has size 6 where the operand has 5",
    );
    case("f32[10,5],s32[3],f32[4,5]", dims, "V0217: scatter: updates and indices have different sizes");
    case(
        "f32[10,5],s32[3],f32[3]",
        dims,
        "V0204: scatter: updates have 1 dimension, not 2 (1 of the indices and 1 of the window)",
    );
    case(
        "f32[10,5],f32[3],f32[3,5]",
        dims,
        "V0104: scatter: operand 1 cannot have elements of type f32 (must be an integer)",
    );
    case(
        "f32[10,5],s32[3,2],f32[3,5]",
        dims,
        "V0214: scatter: scatter_dims_to_operand_dims has 1 dimension, but index vectors have 2",
    );
    case(
        "f32[10,5],s32[3],f32[3,5]",
        &dims.replace("inserted_window_dims={0}", "inserted_window_dims={}"),
        "V0216: scatter: 2 dimensions of the operand, but 1 window, 0 inserted and 0 batching ones",
    );
    case(
        "f32[10,5],s32[3],f32[3,5]",
        &dims.replace("inserted_window_dims={0}", "inserted_window_dims={2}"),
        "V0200: scatter: inserted_window_dims 2 is out of range (must be 0 to 1)",
    );
    case(
        "f32[10,5],s32[3],f32[3,5]",
        &dims.replace("operand_dims={0}", "operand_dims={5}"),
        "V0200: scatter: scatter_dims_to_operand_dims 5 is out of range (must be 0 to 1)",
    );
    case(
        "f32[10,5],s32[3],f32[3,5]",
        &dims.replace("index_vector_dim=1", "index_vector_dim=2"),
        "V0200: scatter: index_vector_dim 2 is out of range (must be 0 to 1)",
    );
    case("s32[10,5],s32[3],s32[3,5]", dims, "V0402: scatter: f accumulates f32[], but starts with s32");
    case(
        "f32[10,5],f32[10,5],s32[3],f32[3,5]",
        dims,
        "V0001: scatter: 4 operands given (takes as many updates as operands, and indices between them)",
    );
    run(&[
        (
            &format!(
                "scatter(f32[9,5],s32[9,5],s32[3],f32[3,5],s32[3,5]) {dims} to_apply=(f32[],s32[],f32[],s32[])->(f32[],s32[])"
            ),
            "(f32[9,5], s32[9,5])",
        ),
        (
            &format!(
                "scatter(f32[9,5],s32[9,4],s32[3],f32[3,5],s32[3,5]) {dims} to_apply=(f32[],s32[],f32[],s32[])->(f32[],s32[])"
            ),
            "V0106: scatter: operands 0 and 1 have different shapes, f32[9,5] and s32[9,4]",
        ),
        (
            &format!(
                "scatter(f32[9,5],s32[9,5],s32[3],f32[3,5],s32[3,4]) {dims} to_apply=(f32[],s32[],f32[],s32[])->(f32[],s32[])"
            ),
            "V0106: scatter: operands 3 and 4 have different shapes, f32[3,5] and s32[3,4]",
        ),
    ]);
}

#[test]
fn sizes_at_run_time() {
    run(&[
        ("get-dimension-size(f32[<=4,5]) dimensions={0}", "s32[]"),
        (
            "get-dimension-size(f32[4]) dimensions={1}",
            "V0200: get-dimension-size: dimension 1 is out of range (must be 0 to 0)",
        ),
        (
            "get-dimension-size(f32[2147483648]) dimensions={0}",
            "V0218: get-dimension-size: dimension 0 has size 2147483648, which does not fit in an s32",
        ),
        ("set-dimension-size(f32[4,5],s32[]) dimensions={1}", "f32[4,<=5]"),
        (
            "set-dimension-size(f32[4],s64[]) dimensions={0}",
            "V0218: set-dimension-size: the size cannot be of type s64 (must be s32)",
        ),
        (
            "set-dimension-size(f32[4],s32[1]) dimensions={0}",
            "V0109: set-dimension-size: a dimension size must be a scalar",
        ),
        ("f32[<=6,1] dynamic-reshape(f32[2,3],s32[],s32[])", "ok"),
        (
            "f32[<=6] dynamic-reshape(f32[2,3],s32[],s32[])",
            "V0202: dynamic-reshape: 2 sizes for 1 dimension (must be one for each dimension of f32[<=6])",
        ),
        (
            "f32[<=5] dynamic-reshape(f32[2,3],s32[])",
            "V0205: dynamic-reshape: 6 elements cannot become 5 (f32[<=5] has 5)",
        ),
        (
            "f32[<=6] dynamic-reshape(f32[2,3],f32[])",
            "V0218: dynamic-reshape: the size cannot be of type f32 (must be s32)",
        ),
    ]);
}
