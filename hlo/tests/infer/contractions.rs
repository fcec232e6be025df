use super::run;

#[test]
fn dot() {
    run(&[
        ("dot(f32[4,8],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "f32[4,3]"),
        ("dot(f32[8],f32[8]) lhs_contracting_dims={0} rhs_contracting_dims={0}", "f32[]"),
        ("dot(f32[4],f32[3])", "f32[4,3]"),
        (
            "dot(f32[2,4,8],f32[2,8,3]) lhs_batch_dims={0} rhs_batch_dims={0} lhs_contracting_dims={2} rhs_contracting_dims={1}",
            "f32[2,4,3]",
        ),
        (
            "dot(f32[4,8,2],f32[8,3,2]) lhs_batch_dims={2} rhs_batch_dims={2} lhs_contracting_dims={1} rhs_contracting_dims={0}",
            "f32[2,4,3]",
        ),
        ("dot(bf16[4,8],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "f32[4,3]"),
        ("f32[4,3] dot(s8[4,8],s8[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "ok"),
        ("s32[4,3] dot(s8[4,8],s8[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "ok"),
        ("dot(f32[<=4,8],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "f32[<=4,3]"),
        ("dot(f32[4,?],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}", "f32[4,3]"),
        (
            "f32[4,4] dot(f32[4,8],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}",
            "V0100: dot: the result has shape f32[4,3], not f32[4,4] (must be f32[4,3])",
        ),
        (
            "dot(f32[4,8],f32[4,3]) lhs_contracting_dims={1} rhs_contracting_dims={0}",
            "V0312: dot: contracting dimensions have different sizes (8 and 4 must be equal)",
        ),
        (
            "dot(f32[2,8],f32[3,8]) lhs_batch_dims={0} rhs_batch_dims={0} lhs_contracting_dims={1} rhs_contracting_dims={1}",
            "V0313: dot: batch dimensions have different sizes (2 and 3 must be equal)",
        ),
        (
            "dot(f32[4,8],f32[8,3]) lhs_contracting_dims={2} rhs_contracting_dims={0}",
            "V0200: dot: lhs_contracting_dims 2 is out of range (must be 0 to 1)",
        ),
        (
            "dot(f32[4,8],f32[8,3]) lhs_contracting_dims={1} rhs_contracting_dims={-1}",
            "V0200: dot: rhs_contracting_dims -1 is out of range (must be 0 to 1)",
        ),
        (
            "dot(f32[8,8],f32[8,8]) lhs_contracting_dims={1,1} rhs_contracting_dims={0,1}",
            "V0201: dot: lhs_contracting_dims 1 is repeated in {1,1}",
        ),
        (
            "dot(f32[8,8],f32[8,8]) lhs_batch_dims={1} lhs_contracting_dims={1} rhs_contracting_dims={0} rhs_batch_dims={1}",
            "V0311: dot: dimension 1 of the left operand is both batch and contracting",
        ),
        (
            "dot(f32[8,8],f32[8,8]) lhs_contracting_dims={1} rhs_contracting_dims={}",
            "V0310: dot: 1 contracting dimension of the left operand, 0 of the right",
        ),
        ("dot((f32[8]),f32[8])", "V0101: dot: operand 0 must be an array"),
        ("dot(f32[8],f32[8],f32[8])", "V0001: dot: 3 operands given (takes 2 operands)"),
    ]);
}

#[test]
fn scaled_dot() {
    let dims = "lhs_contracting_dims={1} rhs_contracting_dims={0}";
    let case = |line: &str, expected: &str| run(&[(&format!("{line} {dims}"), expected)]);
    case("f32[4,3] scaled-dot(f8e4m3fn[4,64],f8e4m3fn[64,3],f8e8m0fnu[4,2],f8e8m0fnu[2,3])", "ok");
    case("f32[4,3] scaled-dot(f8e4m3fn[4,64],bf16[64,3],f8e8m0fnu[4,2],bf16[1,1])", "ok");
    case(
        "f32[4,3] scaled-dot(f8e4m3fn[4,64],f8e4m3fn[64,3],f8e8m0fnu[4,3],f8e8m0fnu[2,3])",
        "V0330: scaled-dot: dimension 1 of the left operand has size 64, which is no multiple of its scale's 3",
    );
    case(
        "f32[4,3] scaled-dot(f8e4m3fn[4,64],f8e4m3fn[64,3],f8e8m0fnu[4,0],f8e8m0fnu[2,3])",
        "V0330: scaled-dot: dimension 1 of the left operand has size 64, which is no multiple of its scale's 0",
    );
    case(
        "f32[4,3] scaled-dot(f8e4m3fn[4,64],f8e4m3fn[64,3],f8e8m0fnu[4],f8e8m0fnu[2,3])",
        "V0330: scaled-dot: the left scale has 1 dimension, its operand 2",
    );
    case(
        "f32[4,3] scaled-dot(f8e4m3fn[4,64],f8e4m3fn[64,3],f8e8m0fnu[4,2],f8e8m0fnu[])",
        "V0330: scaled-dot: the right scale has 0 dimensions, its operand 2",
    );
    case(
        "f32[4,3] scaled-dot(bf16[4,64],bf16[64,3],bf16[],bf16[])",
        "V0330: scaled-dot: one of the scales must have dimensions",
    );
}

#[test]
fn ragged_dot() {
    // Ragged free dimension: the right side has a group dimension.
    let free = "lhs_contracting_dims={1} rhs_contracting_dims={1} lhs_ragged_dims={0} rhs_group_dims={0}";
    // Ragged contracting dimension: the result gets a group dimension.
    let contracting = "lhs_contracting_dims={1} rhs_contracting_dims={0} lhs_ragged_dims={1}";
    let batch = "lhs_batch_dims={0} rhs_batch_dims={0} lhs_contracting_dims={2} rhs_contracting_dims={1} lhs_ragged_dims={0}";
    let case = |operands: &str, dims: &str, expected: &str| {
        run(&[(&format!("ragged-dot({operands}) {dims}"), expected)])
    };
    case("f32[11,5],f32[3,5,7],s32[3]", free, "f32[11,7]");
    case("f32[11,5],f32[5,7],s32[3]", contracting, "f32[3,11,7]");
    case("f32[4,11,5],f32[4,5,7],s32[3]", batch, "f32[4,11,7]");
    case(
        "f32[11,5],f32[3,5,7],s32[4]",
        free,
        "V0320: ragged-dot: the group dimension has size 3, but there are 4",
    );
    case("f32[11,5],f32[3,5,7],s32[]", free, "V0320: ragged-dot: group sizes cannot be a scalar");
    case(
        "f32[11,5],f32[3,5,7],s32[2,3]",
        free,
        "V0320: ragged-dot: group sizes have dimensions {2,3} (must have {3} or {3})",
    );
    case(
        "f32[11,5],f32[3,5,7],s32[3]",
        &free.replace("lhs_ragged_dims={0}", "lhs_ragged_dims={0,1}"),
        "V0320: ragged-dot: the left operand must have exactly one ragged dimension, not 2",
    );
    case(
        "f32[11,5],f32[3,5,7],s32[3]",
        &free.replace("lhs_ragged_dims={0}", "lhs_ragged_dims={2}"),
        "V0200: ragged-dot: lhs_ragged_dims 2 is out of range (must be 0 to 1)",
    );
    case(
        "f32[11,5],f32[3,5,7],s32[3]",
        &free.replace("rhs_group_dims={0}", "rhs_group_dims={}"),
        "V0320: ragged-dot: 0 group dimensions of the right operand, where the ragged dimension asks for 1",
    );
    case(
        "f32[11,5],f32[3,5,7],s32[3]",
        &free.replace("rhs_group_dims={0}", "rhs_group_dims={1}"),
        "V0320: ragged-dot: group dimension 1 of the right operand is also batch or contracting",
    );
    case(
        "f32[11,5],f32[5,7],s32[3]",
        &format!("{contracting} rhs_group_dims={{1}}"),
        "V0320: ragged-dot: 1 group dimension of the right operand, where the ragged dimension asks for 0",
    );
}

#[test]
fn convolution() {
    run(&[
        (
            "convolution(f32[1,8,8,3],f32[3,3,3,16]) window={size=3x3,pad=1_1x1_1} dim_labels=b01f_01io->b01f",
            "f32[1,8,8,16]",
        ),
        (
            "convolution(f32[1,3,8,8],f32[16,3,3,3]) window={size=3x3} dim_labels=bf01_oi01->bf01",
            "f32[1,16,6,6]",
        ),
        ("convolution(f32[2,9,4],f32[3,4,5]) window={size=3,stride=2} dim_labels=b0f_0io->b0f", "f32[2,4,5]"),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3,rhs_dilate=3} dim_labels=b0f_0io->b0f",
            "f32[2,3,5]",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3,lhs_dilate=2} dim_labels=b0f_0io->b0f",
            "f32[2,15,5]",
        ),
        ("convolution(f32[2,4],f32[4,5]) dim_labels=bf_io->bf", "f32[2,5]"),
        ("convolution(f32[2,1,4],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f", "f32[2,0,5]"),
        (
            "convolution(f32[2,9,8],f32[3,4,6]) window={size=3} dim_labels=b0f_0io->b0f feature_group_count=2",
            "f32[2,7,6]",
        ),
        (
            "convolution(f32[6,9,4],f32[3,4,6]) window={size=3} dim_labels=b0f_0io->b0f batch_group_count=3",
            "f32[2,7,6]",
        ),
        ("bf16[2,7,5] convolution(s8[2,9,4],s8[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f", "ok"),
        ("convolution(f32[<=2,9,4],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f", "f32[<=2,7,5]"),
        ("convolution(f32[2,?,4],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f", "f32[2,?,5]"),
        (
            "convolution(f32[2,9,4],f32[3,3,5]) window={size=3} dim_labels=b0f_0io->b0f",
            "V0342: convolution: 4 input features in 1 group, but the kernel takes 3 in each",
        ),
        (
            "convolution(f32[2,9,8],f32[3,3,6]) window={size=3} dim_labels=b0f_0io->b0f feature_group_count=2",
            "V0342: convolution: 8 input features in 2 groups, but the kernel takes 3 in each",
        ),
        (
            "convolution(f32[2,9,8],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f feature_group_count=2",
            "V0341: convolution: 5 output features are no multiple of feature_group_count 2",
        ),
        (
            "convolution(f32[2,9,7],f32[3,4,6]) window={size=3} dim_labels=b0f_0io->b0f feature_group_count=2",
            "V0341: convolution: 7 input features are no multiple of feature_group_count 2",
        ),
        (
            "convolution(f32[5,9,4],f32[3,4,6]) window={size=3} dim_labels=b0f_0io->b0f batch_group_count=3",
            "V0341: convolution: 5 examples in the batch are no multiple of batch_group_count 3",
        ),
        (
            "convolution(f32[4,9,4],f32[3,2,6]) window={size=3} dim_labels=b0f_0io->b0f batch_group_count=2 feature_group_count=2",
            "V0341: convolution: feature_group_count 2 and batch_group_count 2 cannot both be greater than 1",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f feature_group_count=0",
            "V0341: convolution: feature_group_count 0 must be positive",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=2} dim_labels=b0f_0io->b0f",
            "V0404: convolution: spatial dimension 0 of the kernel has size 3, that of the window 2",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3x3} dim_labels=b0f_0io->b0f",
            "V0404: convolution: the window has 2 dimensions, dim_labels 1 spatial ones",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3,stride=0} dim_labels=b0f_0io->b0f",
            "V0404: convolution: stride 0 of window dimension 0 must be at least 1",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3,pad=-5_-5} dim_labels=b0f_0io->b0f",
            "V0404: convolution: padding cuts more than the 9 elements of dimension 0 (pad=-5_-5 leaves -1)",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4]) window={size=3} dim_labels=b0f_0io->b0f",
            "V0204: convolution: operand 1 must have 3 dimensions as in dim_labels, not 2",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3} dim_labels=b0?_0io->b0f",
            "V0340: convolution: dim_labels does not say what dimension 2 of the left operand is",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b1f",
            "V0340: convolution: dim_labels has 1, 1 and 0 spatial dimensions",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,<=5]) window={size=3} dim_labels=b0f_0io->b0f",
            "V0342: convolution: the number of output features cannot be dynamic",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5]) window={size=3}",
            "V0103: convolution: attribute dim_labels is missing",
        ),
        (
            "convolution(f32[2,9,16],f32[3,4,5],u8[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f sparsity_config={1,4,2}",
            "f32[2,7,5]",
        ),
        (
            "convolution(f32[2,9,16],f32[3,4,5],u8[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f sparsity_config={1,4,3}",
            "V0343: convolution: right sparsity indices are operand 3 (there are 3 operands, indices come after the first two)",
        ),
        (
            "convolution(f32[2,9,16],f32[3,4,5],u8[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f sparsity_config={2,4,2}",
            "V0343: convolution: 2 of 4 elements kept, only 1 of n is defined",
        ),
        (
            "convolution(f32[2,9,4],f32[3,4,5],f32[3,4,5]) window={size=3} dim_labels=b0f_0io->b0f",
            "V0343: convolution: operand 2 holds sparsity indices of neither side",
        ),
    ]);
}

#[test]
fn linear_algebra() {
    run(&[
        ("cholesky(f32[5,3,3])", "f32[5,3,3]"),
        ("cholesky(c64[3,3])", "c64[3,3]"),
        ("cholesky(f32[3,4])", "V0620: cholesky: the matrix must be square, not 3 by 4"),
        ("cholesky(f32[3])", "V0204: cholesky: the matrix must have at least 2 dimensions"),
        (
            "cholesky(s32[3,3])",
            "V0104: cholesky: operand 0 cannot have elements of type s32 (must be a float or complex)",
        ),
    ]);
    run(&[
        ("triangular-solve(f32[3,3],f32[3,7]) left_side=true", "f32[3,7]"),
        ("triangular-solve(f32[3,3],f32[7,3])", "f32[7,3]"),
        ("triangular-solve(f32[2,3,3],f32[2,3,7]) left_side=true", "f32[2,3,7]"),
        (
            "triangular-solve(f32[3,3],f32[7,3]) left_side=true",
            "V0621: triangular-solve: a matrix of 3 on the left side of 7 rows",
        ),
        (
            "triangular-solve(f32[3,3],f32[3,7])",
            "V0621: triangular-solve: a matrix of 3 on the right side of 7 columns",
        ),
        (
            "triangular-solve(f32[2,3,3],f32[4,3,7]) left_side=true",
            "V0621: triangular-solve: different leading dimensions, {2} and {4}",
        ),
        (
            "triangular-solve(f32[3,4],f32[3,7])",
            "V0620: triangular-solve: the matrix must be square, not 3 by 4",
        ),
        (
            "triangular-solve(f32[3,3],f64[3,7])",
            "V0105: triangular-solve: operands 0 and 1 have different element types, f32 and f64",
        ),
        (
            "triangular-solve(f32[3,3],f32[3])",
            "V0204: triangular-solve: operands have different numbers of dimensions",
        ),
    ]);
}

#[test]
fn fft() {
    run(&[
        ("fft(c64[5,16]) fft_type=FFT fft_length={16}", "c64[5,16]"),
        ("fft(c128[4,4]) fft_type=IFFT fft_length={4,4}", "c128[4,4]"),
        ("fft(f32[5,16]) fft_type=RFFT fft_length={16}", "c64[5,9]"),
        ("fft(f64[4,15]) fft_type=RFFT fft_length={4,15}", "c128[4,8]"),
        ("fft(f32[5,0]) fft_type=RFFT fft_length={0}", "c64[5,0]"),
        ("fft(c64[5,9]) fft_type=IRFFT fft_length={16}", "f32[5,16]"),
        ("fft(c64[5,9]) fft_type=IRFFT fft_length={17}", "f32[5,17]"),
        ("fft(c64[5,0]) fft_type=IRFFT fft_length={0}", "f32[5,0]"),
        (
            "fft(f32[5,16]) fft_type=FFT fft_length={16}",
            "V0104: fft: operand 0 cannot have elements of type f32 (must be complex)",
        ),
        (
            "fft(f16[5,16]) fft_type=RFFT fft_length={16}",
            "V0104: fft: operand 0 cannot have elements of type f16 (must be f32 or f64)",
        ),
        (
            "fft(c64[5,16]) fft_type=RFFT fft_length={16}",
            "V0104: fft: operand 0 cannot have elements of type c64 (must be f32 or f64)",
        ),
        (
            "fft(f32[5,16]) fft_type=RFFT fft_length={8}",
            "V0622: fft: dimension 1 has size 16, but fft_length={8} (must have size 8)",
        ),
        (
            "fft(c64[5,8]) fft_type=IRFFT fft_length={16}",
            "V0622: fft: dimension 1 has size 8, but fft_length={16} (must have size 9)",
        ),
        (
            "fft(c64[5,16]) fft_type=FFT fft_length={8}",
            "V0622: fft: dimension 1 has size 16, but fft_length={8} (must have size 8)",
        ),
        ("fft(c64[16]) fft_type=FFT fft_length={4,4}", "V0204: fft: 2 dimensions cannot be transformed"),
        (
            "fft(c64[2,2,2,2]) fft_type=FFT fft_length={2,2,2,2}",
            "V0622: fft: fft_length={2,2,2,2} has 4 sizes (must have 1 to 3)",
        ),
        (
            "fft(c64[16]) fft_type=FFT fft_length={}",
            "V0622: fft: fft_length={} has 0 sizes (must have 1 to 3)",
        ),
        ("fft(c64[16]) fft_type=FFT fft_length={-16}", "V0622: fft: fft_length -16 is negative"),
    ]);
}

#[test]
fn batch_norm() {
    run(&[
        (
            "batch-norm-training(f32[2,4,8],f32[8],f32[8]) epsilon=0.1 feature_index=2",
            "(f32[2,4,8], f32[8], f32[8])",
        ),
        (
            "batch-norm-inference(f32[2,8],f32[8],f32[8],f32[8],f32[8]) epsilon=0.1 feature_index=1",
            "f32[2,8]",
        ),
        (
            "batch-norm-grad(f32[2,8],f32[8],f32[8],f32[8],f32[2,8]) epsilon=0.1 feature_index=1",
            "(f32[2,8], f32[8], f32[8])",
        ),
        (
            "batch-norm-training(bf16[2,8],f32[8],f32[8]) epsilon=0.1 feature_index=1",
            "(bf16[2,8], bf16[8], bf16[8])",
        ),
        (
            "batch-norm-training(f32[2,8],f32[2],f32[8]) epsilon=0.1 feature_index=1",
            "V0630: batch-norm-training: operand 1 has 2 elements for 8 features",
        ),
        (
            "batch-norm-training(f32[2,8],f32[8],f32[8,1]) epsilon=0.1 feature_index=1",
            "V0204: batch-norm-training: operand 2 must have one dimension, not 2",
        ),
        (
            "batch-norm-training(s32[2,8],s32[8],s32[8]) epsilon=0.1 feature_index=1",
            "V0104: batch-norm-training: operand 0 cannot have elements of type s32 (must be a float)",
        ),
        (
            "batch-norm-training(f32[2,8],s32[8],f32[8]) epsilon=0.1 feature_index=1",
            "V0105: batch-norm-training: operands 0 and 1 have different element types, f32 and s32",
        ),
        (
            "batch-norm-training(f32[2,8],f32[8],f32[8]) epsilon=0.1 feature_index=2",
            "V0200: batch-norm-training: feature_index 2 is out of range (must be 0 to 1)",
        ),
        (
            "batch-norm-grad(f32[2,8],f32[8],f32[8],f32[8],f32[3,8]) epsilon=0.1 feature_index=1",
            "V0106: batch-norm-grad: operands 0 and 4 have different shapes, f32[2,8] and f32[3,8]",
        ),
    ]);
}
