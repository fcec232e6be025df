use super::run;

#[test]
fn unary_keeps_the_shape() {
    run(&[
        ("negate(f32[2,3])", "f32[2,3]"),
        ("negate(s4[])", "s4[]"),
        ("negate(u8[7])", "u8[7]"),
        ("negate(c64[1])", "c64[1]"),
        (
            "negate(pred[2])",
            "V0104: negate: operand 0 cannot have elements of type pred (must be an integer, a float or complex)",
        ),
        ("sine(bf16[0])", "bf16[0]"),
        ("sine(c128[2])", "c128[2]"),
        (
            "sine(s32[2])",
            "V0104: sine: operand 0 cannot have elements of type s32 (must be a float or complex)",
        ),
        ("erf(c64[2])", "V0104: erf: operand 0 cannot have elements of type c64 (must be a float)"),
        ("cbrt(f8e5m2[2])", "f8e5m2[2]"),
        ("floor(f4e2m1fn[2])", "f4e2m1fn[2]"),
        (
            "round-nearest-even(s32[])",
            "V0104: round-nearest-even: operand 0 cannot have elements of type s32 (must be a float)",
        ),
        ("not(pred[3])", "pred[3]"),
        ("not(u64[3])", "u64[3]"),
        (
            "not(f32[3])",
            "V0104: not: operand 0 cannot have elements of type f32 (must be pred or an integer)",
        ),
        ("popcnt(s2[3])", "s2[3]"),
        (
            "count-leading-zeros(pred[3])",
            "V0104: count-leading-zeros: operand 0 cannot have elements of type pred (must be an integer)",
        ),
        ("sign(s8[3])", "s8[3]"),
        (
            "sign(u8[3])",
            "V0104: sign: operand 0 cannot have elements of type u8 (must be a signed integer, a float or complex)",
        ),
        ("copy((f32[2], token[]))", "(f32[2], token[])"),
        ("tanh(f32[<=4,2])", "f32[<=4,2]"),
        ("exponential(f32[?])", "f32[?]"),
        ("exponential((f32[2]))", "V0101: exponential: operand 0 must be an array"),
        ("exponential(token[])", "V0101: exponential: operand 0 must be an array"),
        ("exponential(b(f32[2]))", "V0101: exponential: operand 0 must be an array"),
        ("exponential()", "V0001: exponential: 0 operands given (takes 1 operand)"),
        ("exponential(f32[],f32[])", "V0001: exponential: 2 operands given (takes 1 operand)"),
    ]);
}

#[test]
fn parts_and_predicates_change_the_type() {
    run(&[
        ("abs(c64[2])", "f32[2]"),
        ("abs(c128[])", "f64[]"),
        ("abs(s16[2])", "s16[2]"),
        (
            "abs(u16[2])",
            "V0104: abs: operand 0 cannot have elements of type u16 (must be a signed integer, a float or complex)",
        ),
        ("real(c64[2])", "f32[2]"),
        ("imag(f16[2])", "f16[2]"),
        (
            "imag(s32[2])",
            "V0104: imag: operand 0 cannot have elements of type s32 (must be a float or complex)",
        ),
        ("is-finite(f64[<=3])", "pred[<=3]"),
        (
            "is-finite(s32[3])",
            "V0104: is-finite: operand 0 cannot have elements of type s32 (must be a float)",
        ),
        ("complex(f32[2],f32[2])", "c64[2]"),
        ("complex(f64[],f64[])", "c128[]"),
        (
            "complex(f16[],f16[])",
            "V0104: complex: operand 0 cannot have elements of type f16 (must be f32 or f64)",
        ),
        (
            "complex(f32[],f64[])",
            "V0105: complex: real and imaginary parts have different types, f32 and f64",
        ),
        (
            "complex(f32[2],f32[3])",
            "V0106: complex: operands 0 and 1 have different shapes, f32[2] and f32[3]",
        ),
        ("reduce-precision(f32[2]) exponent_bits=5 mantissa_bits=10", "f32[2]"),
        (
            "reduce-precision(f32[2]) exponent_bits=0 mantissa_bits=10",
            "V0110: reduce-precision: exponent_bits must be at least 1, not 0",
        ),
        (
            "reduce-precision(f32[2]) exponent_bits=1 mantissa_bits=-1",
            "V0110: reduce-precision: mantissa_bits cannot be negative (-1)",
        ),
        (
            "reduce-precision(s32[2]) exponent_bits=1 mantissa_bits=1",
            "V0104: reduce-precision: operand 0 cannot have elements of type s32 (must be a float)",
        ),
        (
            "reduce-precision(f32[2]) exponent_bits=1",
            "V0103: reduce-precision: attribute mantissa_bits is missing",
        ),
    ]);
}

#[test]
fn binary_wants_equal_shapes() {
    run(&[
        ("add(f32[2,3],f32[2,3])", "f32[2,3]"),
        ("add(pred[2],pred[2])", "pred[2]"),
        ("add(c64[2],c64[2])", "c64[2]"),
        ("add(bf16[2],f32[2])", "f32[2]"),
        ("add(f16[2],bf16[2])", "bf16[2]"),
        ("add(f8e4m3fn[2],f8e5m2[2])", "f8e5m2[2]"),
        ("add(f32[],f32[3])", "V0106: add: operands 0 and 1 have different shapes, f32[] and f32[3]"),
        ("add(f32[1],f32[3])", "V0106: add: operands 0 and 1 have different shapes, f32[1] and f32[3]"),
        ("add(f32[2],s32[2])", "V0105: add: operands 0 and 1 have different element types, f32 and s32"),
        ("add(s32[2],s64[2])", "V0105: add: operands 0 and 1 have different element types, s32 and s64"),
        ("add(f32[2],c64[2])", "V0105: add: operands 0 and 1 have different element types, f32 and c64"),
        ("add(f32[<=4],f32[4])", "f32[<=4]"),
        ("add(f32[4],f32[<=4])", "f32[<=4]"),
        ("add(f32[?],f32[4])", "f32[4]"),
        ("add(f32[?],f32[<=4])", "f32[<=4]"),
        ("add(f32[?],f32[1])", "f32[?]"),
        ("add(f32[?],f32[?])", "f32[?]"),
        ("add(f32[?],f32[?,?])", "V0106: add: operands 0 and 1 have different shapes, f32[?] and f32[?,?]"),
        (
            "subtract(pred[2],pred[2])",
            "V0104: subtract: operand 0 cannot have elements of type pred (must be an integer, a float or complex)",
        ),
        ("multiply(pred[2],pred[2])", "pred[2]"),
        ("maximum(s32[2],s32[2])", "s32[2]"),
        ("maximum(c64[2],c64[2])", "c64[2]"),
        ("mulhi(u32[2],u32[2])", "u32[2]"),
        (
            "mulhi(f32[2],f32[2])",
            "V0104: mulhi: operand 0 cannot have elements of type f32 (must be an integer)",
        ),
        (
            "remainder(c64[2],c64[2])",
            "V0104: remainder: operand 0 cannot have elements of type c64 (must be an integer or a float)",
        ),
        ("power(c64[2],c64[2])", "c64[2]"),
        ("power(s32[2],s32[2])", "s32[2]"),
        ("atan2(c64[2],c64[2])", "c64[2]"),
        (
            "atan2(s32[2],s32[2])",
            "V0104: atan2: operand 0 cannot have elements of type s32 (must be a float or complex)",
        ),
        ("shift-left(s4[2],s4[2])", "s4[2]"),
        (
            "shift-right-logical(f32[2],f32[2])",
            "V0104: shift-right-logical: operand 0 cannot have elements of type f32 (must be an integer)",
        ),
        ("and(pred[],pred[])", "pred[]"),
        (
            "xor(f32[],f32[])",
            "V0104: xor: operand 0 cannot have elements of type f32 (must be pred or an integer)",
        ),
        ("or(s32[],pred[])", "V0105: or: operands 0 and 1 have different element types, s32 and pred"),
    ]);
}

#[test]
fn comparisons() {
    run(&[
        ("compare(f32[2],f32[2]) direction=LT", "pred[2]"),
        ("compare(f32[2],f32[2]) direction=LT type=TOTALORDER", "pred[2]"),
        (
            "compare(f32[2],f32[2]) direction=LT type=SIGNED",
            "V0107: compare: elements of type f32 cannot be compared as SIGNED (must be FLOAT or TOTALORDER)",
        ),
        ("compare(s32[2],s32[2]) direction=GE type=SIGNED", "pred[2]"),
        (
            "compare(s32[2],s32[2]) direction=GE type=UNSIGNED",
            "V0107: compare: elements of type s32 cannot be compared as UNSIGNED (must be SIGNED)",
        ),
        ("compare(pred[2],pred[2]) direction=GE type=UNSIGNED", "pred[2]"),
        (
            "compare(u32[2],u32[2]) direction=GE type=TOTALORDER",
            "V0107: compare: elements of type u32 cannot be compared as TOTALORDER (must be UNSIGNED)",
        ),
        ("compare(c64[2],c64[2]) direction=EQ type=FLOAT", "pred[2]"),
        (
            "compare(c64[2],c64[2]) direction=LT",
            "V0107: compare: complex numbers have no order, LT means nothing (must be EQ or NE)",
        ),
        ("compare(s32[2],s32[2])", "V0103: compare: attribute direction is missing"),
        (
            "compare(s32[2],s32[]) direction=EQ",
            "V0106: compare: operands 0 and 1 have different shapes, s32[2] and s32[]",
        ),
    ]);
}

#[test]
fn three_operands() {
    run(&[
        ("clamp(f32[],f32[3],f32[])", "f32[3]"),
        ("clamp(f32[3],f32[3],f32[])", "f32[3]"),
        ("clamp(f32[3],f32[3],f32[3])", "f32[3]"),
        (
            "clamp(f32[2],f32[3],f32[])",
            "V0106: clamp: operands 0 and 1 have different shapes, f32[2] and f32[3]",
        ),
        (
            "clamp(f32[],f32[3],f32[1])",
            "V0106: clamp: operands 2 and 1 have different shapes, f32[1] and f32[3]",
        ),
        (
            "clamp(s32[],f32[3],f32[])",
            "V0105: clamp: operands 0 and 1 have different element types, s32 and f32",
        ),
        ("clamp(c64[],c64[3],c64[])", "c64[3]"),
        ("select(pred[3],f32[3],f32[3])", "f32[3]"),
        ("select(pred[],f32[3],f32[3])", "f32[3]"),
        ("select(pred[],bf16[3],f32[3])", "f32[3]"),
        ("select(pred[<=3],f32[3],f32[3])", "f32[<=3]"),
        (
            "select(pred[3],f32[3],f32[4])",
            "V0106: select: operands 1 and 2 have different shapes, f32[3] and f32[4]",
        ),
        (
            "select(pred[2],f32[3],f32[3])",
            "V0106: select: the predicate has another shape than what it selects, pred[2] and f32[3] (must be a scalar or have the same dimensions)",
        ),
        (
            "select(s32[3],f32[3],f32[3])",
            "V0104: select: operand 0 cannot have elements of type s32 (must be pred)",
        ),
        (
            "select(pred[3],f32[3],s32[3])",
            "V0105: select: operands 1 and 2 have different element types, f32 and s32",
        ),
        ("select(pred[],(f32[]),(f32[]))", "V0101: select: operand 1 must be an array"),
    ]);
}

#[test]
fn conversions_need_the_declared_type() {
    run(&[
        ("s32[3] convert(f32[3])", "ok"),
        ("c64[3] convert(pred[3])", "ok"),
        (
            "s32[4] convert(f32[3])",
            "V0100: convert: the result has shape s32[3], not s32[4] (must be s32[3])",
        ),
        (
            "convert(f32[3])",
            "V0102: convert: the shape of the result must be written, it does not follow from the operands",
        ),
        ("(s32[3]) convert(f32[3])", "V0101: convert: the result must be an array (this is (s32[3]))"),
        ("s8[3] stochastic-convert(f32[3],u32[3])", "ok"),
        (
            "s8[3] stochastic-convert(f32[3],u16[3])",
            "V0105: stochastic-convert: random numbers must have as many bits as the operand, 32, not 16",
        ),
        (
            "s8[3] stochastic-convert(f32[3],s32[3])",
            "V0104: stochastic-convert: operand 1 cannot have elements of type s32 (must be an unsigned integer)",
        ),
        (
            "s8[3] stochastic-convert(f32[3],u32[4])",
            "V0106: stochastic-convert: operands 0 and 1 have different shapes, f32[3] and u32[4]",
        ),
        (
            "pred[3] stochastic-convert(f32[3],u32[3])",
            "V0108: stochastic-convert: the result cannot have elements of type pred (must be an integer or a float)",
        ),
    ]);
}

#[test]
fn declared_shapes_may_differ_in_precision_and_dynamism_only() {
    run(&[
        ("f32[2] add(f32[2],f32[2])", "ok"),
        ("bf16[2] add(f32[2],f32[2])", "ok"),
        ("f32[<=2] add(f32[2],f32[2])", "ok"),
        ("f32[2] add(f32[<=2],f32[2])", "ok"),
        ("f32[?] add(f32[2],f32[2])", "ok"),
        ("s32[2] add(f32[2],f32[2])", "V0100: add: the result has shape f32[2], not s32[2] (must be f32[2])"),
        (
            "f32[2,1] add(f32[2],f32[2])",
            "V0100: add: the result has shape f32[2], not f32[2,1] (must be f32[2])",
        ),
        (
            "(f32[2]) add(f32[2],f32[2])",
            "V0100: add: the result has shape f32[2], not (f32[2]) (must be f32[2])",
        ),
        (
            "(bf16[2]) tuple(f32[2])",
            "V0100: tuple: the result has shape (f32[2]), not (bf16[2]) (must be (f32[2]))",
        ),
    ]);
}
