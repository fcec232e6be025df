use super::run;

const ADD: &str = "to_apply=(f32[],f32[])->f32[]";

fn case(line: &str, expected: &str) {
    run(&[(line, expected)]);
}

#[test]
fn reduce() {
    let with_add = |line: &str, expected: &str| case(&format!("{line} {ADD}"), expected);
    with_add("reduce(f32[2,3,4],f32[]) dimensions={1}", "f32[2,4]");
    with_add("reduce(f32[2,3,4],f32[]) dimensions={2,0,1}", "f32[]");
    with_add("reduce(f32[2,3],f32[]) dimensions={}", "f32[2,3]");
    with_add("reduce(f32[<=2,3],f32[]) dimensions={1}", "f32[<=2]");
    with_add("reduce(bf16[2,3],f32[]) dimensions={1}", "f32[2]");
    with_add("bf16[2] reduce(bf16[2,3],bf16[]) dimensions={1}", "ok");
    with_add(
        "reduce(f32[2,3],f32[]) dimensions={2}",
        "V0200: reduce: dimension 2 is out of range (must be 0 to 1)",
    );
    with_add(
        "reduce(f32[2,3],f32[]) dimensions={-1}",
        "V0200: reduce: dimension -1 is out of range (must be 0 to 1)",
    );
    with_add("reduce(f32[2,3],f32[]) dimensions={1,1}", "V0201: reduce: dimension 1 is repeated in {1,1}");
    with_add("reduce(f32[2,3],f32[1]) dimensions={1}", "V0109: reduce: an initial value must be a scalar");
    with_add(
        "reduce(f32[2,3],s32[]) dimensions={1}",
        "V0402: reduce: f accumulates f32[], but starts with s32",
    );
    with_add(
        "reduce(s32[2,3],f32[]) dimensions={1}",
        "V0402: reduce: parameter 1 of f is f32[], but accumulates values of type s32 in f32",
    );
    with_add(
        "reduce(f32[2,3],f32[],f32[]) dimensions={1}",
        "V0403: reduce: 3 operands given (takes as many initial values as inputs)",
    );
    with_add("reduce(f32[2,3]) dimensions={1}", "V0001: reduce: 1 operand given (takes at least 2 operands)");
    let sig = |signature: &str, expected: &str| {
        case(&format!("reduce(f32[2,3],f32[]) dimensions={{1}} to_apply={signature}"), expected);
    };
    sig("(f32[],f32[])->(f32[])", "(f32[2])");
    sig("(f32[])->f32[]", "V0400: reduce: f takes 1 parameter (must take 2: 1 accumulator and 1 value)");
    sig("(f32[],f32[])->f32[2]", "V0401: reduce: f gives f32[2] (must give a scalar)");
    sig("(f32[],f32[])->(f32[],f32[])", "V0401: reduce: f gives (f32[], f32[]) (must give a scalar)");
    sig("(f32[],f32[])->token[]", "V0401: reduce: f gives token[] (must give a scalar)");
    sig(
        "(f64[],f32[])->f32[]",
        "V0402: reduce: parameter 0 of f is f64[], but its result f32[] (must be the same: one is the next accumulator)",
    );
    sig(
        "(f32[],f32[2])->f32[]",
        "V0402: reduce: parameter 1 of f is f32[2], but accumulates values of type f32 in f32",
    );
    sig("(f32[],f32[])->none", "V0510: reduce: computation f has no result");
    let pair = "to_apply=(f32[],s32[],f32[],s32[])->(f32[],s32[])";
    case(&format!("reduce(f32[2,3],s32[2,3],f32[],s32[]) dimensions={{0}} {pair}"), "(f32[3], s32[3])");
    case(
        &format!("reduce(f32[2,3],s32[2,4],f32[],s32[]) dimensions={{0}} {pair}"),
        "V0106: reduce: operands 0 and 1 have different shapes, f32[2,3] and s32[2,4]",
    );
    case(
        &format!("reduce(f32[2,3],s32[2,3],f32[],f32[]) dimensions={{0}} {pair}"),
        "V0402: reduce: f accumulates s32[], but starts with f32",
    );
}

#[test]
fn windows() {
    let with_add = |line: &str, expected: &str| case(&format!("{line} {ADD}"), expected);
    with_add("reduce-window(f32[10],f32[]) window={size=3}", "f32[8]");
    with_add("reduce-window(f32[10,10],f32[]) window={size=2x1,stride=2x1}", "f32[5,10]");
    with_add("reduce-window(f32[10],f32[]) window={size=3,pad=1_1}", "f32[10]");
    with_add("reduce-window(f32[4],f32[]) window={size=2,lhs_dilate=2}", "f32[6]");
    with_add("reduce-window(f32[10],f32[]) window={size=3,rhs_dilate=4}", "f32[2]");
    with_add("reduce-window(f32[2],f32[]) window={size=3}", "f32[0]");
    with_add("reduce-window(f32[0],f32[]) window={size=1}", "f32[0]");
    with_add("reduce-window(f32[0],f32[]) window={size=1,pad=2_0}", "f32[2]");
    with_add("reduce-window(f32[],f32[])", "f32[]");
    with_add("reduce-window(f32[<=10],f32[]) window={size=3}", "f32[<=8]");
    with_add("reduce-window(f32[?],f32[]) window={size=3}", "f32[?]");
    with_add("reduce-window(bf16[4],f32[]) window={size=1}", "f32[4]");
    with_add(
        "reduce-window(f32[10],f32[])",
        "V0404: reduce-window: the window has 0 dimensions, the operand 1",
    );
    with_add(
        "reduce-window(f32[10],f32[]) window={size=0}",
        "V0404: reduce-window: size 0 of window dimension 0 must be at least 1",
    );
    with_add(
        "reduce-window(f32[10],f32[]) window={size=2,rhs_dilate=0}",
        "V0404: reduce-window: window dilation 0 of window dimension 0 must be at least 1",
    );
    with_add(
        "reduce-window(f32[10],f32[]) window={size=2,lhs_dilate=-1}",
        "V0404: reduce-window: base dilation -1 of window dimension 0 must be at least 1",
    );
    with_add(
        "reduce-window(f32[10],f32[]) window={size=2,pad=-6_-6}",
        "V0404: reduce-window: padding cuts more than the 10 elements of dimension 0 (pad=-6_-6 leaves -2)",
    );
    with_add(
        "reduce-window(f32[10],f32[]) window={size=2,lhs_dilate=9223372036854775807}",
        "V0111: reduce-window: the padded size of dimension 0 does not fit in 64 bits",
    );
    case(
        "reduce-window(f32[4],s32[4],f32[],s32[]) window={size=2} to_apply=(f32[],s32[],f32[],s32[])->(f32[],s32[])",
        "(f32[3], s32[3])",
    );

    let sas = |operands: &str, expected: &str| {
        case(
            &format!(
                "select-and-scatter({operands}) window={{size=2,stride=2}} select=(f32[],f32[])->pred[] scatter=(f32[],f32[])->f32[]"
            ),
            expected,
        );
    };
    sas("f32[8],f32[4],f32[]", "f32[8]");
    sas("f32[8],f32[3],f32[]", "V0406: select-and-scatter: the source has shape f32[3]");
    sas(
        "f32[8],s32[4],f32[]",
        "V0402: select-and-scatter: parameter 1 of f.1 is f32[], but accumulates values of type s32 in f32",
    );
    sas("f32[8],f32[4],f32[1]", "V0109: select-and-scatter: the initial value must be a scalar");
    sas(
        "s32[8],f32[4],f32[]",
        "V0405: select-and-scatter: f takes (f32[], f32[]) (must take (s32[], s32[]))",
    );
    case(
        "select-and-scatter(f32[8],f32[4],f32[]) window={size=2,stride=2} select=(f32[],f32[])->f32[] scatter=(f32[],f32[])->f32[]",
        "V0405: select-and-scatter: f gives f32[] (must give pred[])",
    );
}

#[test]
fn sort_and_topk() {
    run(&[
        ("sort(f32[5]) dimensions={0} to_apply=(f32[],f32[])->pred[]", "f32[5]"),
        (
            "sort(f32[5,4],s32[5,4]) dimensions={1} to_apply=(f32[],f32[],s32[],s32[])->pred[]",
            "(f32[5,4], s32[5,4])",
        ),
        ("sort(bf16[5]) dimensions={0} to_apply=(f32[],f32[])->pred[]", "bf16[5]"),
        (
            "sort(f32[5],s32[4]) dimensions={0} to_apply=(f32[],f32[],s32[],s32[])->pred[]",
            "V0106: sort: operands 0 and 1 have different shapes, f32[5] and s32[4]",
        ),
        (
            "sort(f32[5]) dimensions={1} to_apply=(f32[],f32[])->pred[]",
            "V0200: sort: dimension 1 is out of range (must be 0 to 0)",
        ),
        (
            "sort(f32[5]) dimensions={-1} to_apply=(f32[],f32[])->pred[]",
            "V0200: sort: dimension -1 is out of range (must be 0 to 0)",
        ),
        (
            "sort(f32[]) dimensions={0} to_apply=(f32[],f32[])->pred[]",
            "V0200: sort: dimension 0 is out of range (there are no dimensions)",
        ),
        (
            "sort(f32[5]) dimensions={} to_apply=(f32[],f32[])->pred[]",
            "V0202: sort: dimensions must name exactly one dimension (0 are named)",
        ),
        (
            "sort(f32[5]) dimensions={0} to_apply=(f32[],f32[])->f32[]",
            "V0407: sort: f gives f32[] (must give pred[])",
        ),
        (
            "sort(f32[5]) dimensions={0} to_apply=(f32[])->pred[]",
            "V0407: sort: f takes 1 parameter (must take 2: a pair for each operand)",
        ),
        (
            "sort(f32[5]) dimensions={0} to_apply=(f32[],s32[])->pred[]",
            "V0407: sort: parameter 1 of f is s32[] (must be f32[])",
        ),
        (
            "sort(f32[5]) dimensions={0} to_apply=(f32[1],f32[])->pred[]",
            "V0407: sort: parameter 0 of f is f32[1] (must be f32[])",
        ),
        ("topk(f32[3,10]) k=4", "(f32[3,4], s32[3,4])"),
        ("topk(bf16[10]) k=0", "(bf16[0], s32[0])"),
        ("topk(f32[<=3,10]) k=4", "(f32[<=3,4], s32[<=3,4])"),
        ("topk(f32[3,10]) k=11", "V0408: topk: k=11 is out of range (must be 0 to 10)"),
        ("topk(f32[3,10]) k=-1", "V0408: topk: k=-1 is out of range (must be 0 to 10)"),
        ("topk(f32[]) k=1", "V0204: topk: the operand cannot be a scalar"),
        (
            "topk(c64[5]) k=1",
            "V0104: topk: operand 0 cannot have elements of type c64 (must be pred, an integer or a float)",
        ),
    ]);
}

#[test]
fn map_and_scan() {
    run(&[
        ("map(f32[2,3],f32[2,3]) dimensions={0,1} to_apply=(f32[],f32[])->f32[]", "f32[2,3]"),
        ("map(f32[2,3]) to_apply=(f32[])->s32[]", "s32[2,3]"),
        ("map(f32[]) dimensions={} to_apply=(f32[])->f32[]", "f32[]"),
        (
            "map(f32[2,3],f32[2]) to_apply=(f32[],f32[])->f32[]",
            "V0106: map: operands 0 and 1 have different shapes, f32[2,3] and f32[2]",
        ),
        (
            "map(f32[2,3]) dimensions={1,0} to_apply=(f32[])->f32[]",
            "V0202: map: dimensions={1,0} must be all dimensions in order",
        ),
        (
            "map(f32[2,3]) dimensions={0} to_apply=(f32[])->f32[]",
            "V0202: map: dimensions={0} must be all dimensions in order",
        ),
        ("map(f32[2]) to_apply=(f32[],f32[])->f32[]", "V0409: map: 1 operand for the 2 parameters of f"),
        ("map(f32[2]) to_apply=(s32[])->f32[]", "V0409: map: parameter 0 of f is s32[] (must be f32[])"),
        ("map(f32[2]) to_apply=(f32[])->f32[1]", "V0409: map: f gives f32[1] (must give a scalar)"),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=1 to_apply=(f32[3],f32[3])->(f32[3],f32[3])",
            "(f32[5,3], f32[3])",
        ),
        (
            "scan(f32[5,3],f32[5]) dimensions={1} num_carries=1 to_apply=(f32[5],f32[5])->(s32[5],f32[5])",
            "(s32[5,3], f32[5])",
        ),
        ("scan(f32[5]) dimensions={0} num_carries=0 to_apply=(f32[])->f32[]", "f32[5]"),
        ("scan(f32[5],s32[]) dimensions={0} num_carries=1 to_apply=(f32[],s32[])->s32[]", "s32[]"),
        (
            "scan(f32[5,3],f32[3]) dimensions={2} num_carries=1 to_apply=(f32[3],f32[3])->(f32[3],f32[3])",
            "V0200: scan: dimension 2 is out of range (must be 0 to 1)",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=3 to_apply=(f32[3],f32[3])->(f32[3],f32[3])",
            "V0410: scan: 3 carries, but 2 operands and 2 results",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=-1 to_apply=(f32[3],f32[3])->(f32[3],f32[3])",
            "V0410: scan: -1 carries, but 2 operands and 2 results",
        ),
        (
            "scan(f32[3]) dimensions={0} num_carries=1 to_apply=(f32[3])->f32[3]",
            "V0410: scan: neither inputs nor outputs, so there is nothing to scan along",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=1 to_apply=(f32[3])->(f32[3],f32[3])",
            "V0410: scan: 2 operands for the 1 parameter of f",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=1 to_apply=(f32[5],f32[3])->(f32[3],f32[3])",
            "V0410: scan: parameter 0 of f is f32[5], but its operand gives f32[3]",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0} num_carries=1 to_apply=(f32[3],f32[3])->(f32[3],f32[4])",
            "V0410: scan: carry 0 of f comes in as f32[3] and goes out as f32[4]",
        ),
        (
            "scan(f32[5],f32[6],f32[]) dimensions={0} num_carries=1 to_apply=(f32[],f32[],f32[])->(f32[],f32[])",
            "V0410: scan: inputs have different sizes along dimension 0",
        ),
        (
            "scan(f32[5,3],f32[3]) dimensions={0,1} num_carries=1 to_apply=(f32[3],f32[3])->(f32[3],f32[3])",
            "V0202: scan: dimensions must name exactly one dimension (2 are named)",
        ),
        ("(f32[7], s32[]) scan(s32[]) dimensions={0} num_carries=1 to_apply=(s32[])->(f32[],s32[])", "ok"),
        (
            "scan(s32[]) dimensions={0} num_carries=1 to_apply=(s32[])->(f32[],s32[])",
            "V0102: scan: the shape of the result must be written, it does not follow from the operands",
        ),
    ]);
}
