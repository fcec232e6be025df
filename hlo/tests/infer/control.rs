use super::run;

#[test]
fn tuples_and_tokens() {
    run(&[
        ("tuple()", "()"),
        ("tuple(f32[2],(s32[],token[]))", "(f32[2], (s32[], token[]))"),
        ("get-tuple-element((f32[2],s32[])) index=1", "s32[]"),
        ("get-tuple-element((f32[2],s32[])) index=2", "V0506: get-tuple-element: index 2 is out of range"),
        ("get-tuple-element((f32[2],s32[])) index=-1", "V0506: get-tuple-element: index -1 is out of range"),
        ("get-tuple-element(f32[2]) index=0", "V0507: get-tuple-element: operand 0 must be a tuple"),
        ("after-all()", "token[]"),
        ("after-all(token[],token[])", "token[]"),
        ("after-all(f32[])", "V0508: after-all: operand 0 must be a token"),
        ("add-dependency(f32[2],token[])", "f32[2]"),
        ("add-dependency(f32[2],f32[])", "V0508: add-dependency: operand 1 must be a token"),
        ("opt-barrier((f32[2],s32[]))", "(f32[2], s32[])"),
        (
            "(f32[2]) opt-barrier((f32[2],s32[]))",
            "V0100: opt-barrier: the result has shape (f32[2], s32[]), not (f32[2]) (must be (f32[2], s32[]))",
        ),
        ("f32[2] parameter() parameter=0", "ok"),
        ("f32[2] parameter() parameter=-1", "V0006: parameter: parameter number -1 is negative"),
        ("(f32[2],opaque[]) custom-call(f32[]) custom_call_target=x", "ok"),
    ]);
    run(&[
        ("partition-id()", "u32[]"),
        ("u32[] replica-id()", "ok"),
        ("s32[] replica-id()", "V0100: replica-id: the result has shape u32[], not s32[] (must be u32[])"),
    ]);
}

#[test]
fn calls() {
    run(&[
        ("call(f32[2],s32[]) to_apply=(f32[2],s32[])->f32[4]", "f32[4]"),
        ("call() to_apply=()->f32[4]", "f32[4]"),
        (
            "call(f32[2]) to_apply=(f32[2],s32[])->f32[4]",
            "V0500: call: 1 operand for the 2 parameters of f (must take 1 parameter)",
        ),
        (
            "call(f32[3],s32[]) to_apply=(f32[2],s32[])->f32[4]",
            "V0501: call: operand 0 has shape f32[3], parameter 0 of f f32[2]",
        ),
        (
            "call(bf16[2],s32[]) to_apply=(f32[2],s32[])->f32[4]",
            "V0501: call: operand 0 has shape bf16[2], parameter 0 of f f32[2]",
        ),
        ("call(f32[<=2],s32[]) to_apply=(f32[2],s32[])->f32[4]", "f32[4]"),
        (
            "bf16[4] call(f32[2]) to_apply=(f32[2])->f32[4]",
            "V0100: call: the result has shape f32[4], not bf16[4] (must be f32[4])",
        ),
        ("call(f32[2])", "V0103: call: attribute to_apply is missing"),
        ("f32[4] fusion(f32[2]) calls=(f32[2])->f32[4]", "ok"),
        (
            "f32[5] fusion(f32[2]) calls=(f32[2])->f32[4]",
            "V0100: fusion: the result has shape f32[4], not f32[5] (must be f32[4])",
        ),
        (
            "while((s32[],f32[2])) condition=((s32[],f32[2]))->pred[] body=((s32[],f32[2]))->(s32[],f32[2])",
            "(s32[], f32[2])",
        ),
        (
            "while(s32[]) condition=(s32[])->s32[] body=(s32[])->s32[]",
            "V0502: while: condition f gives s32[] (must give pred[])",
        ),
        (
            "while(s32[]) condition=(s32[])->pred[1] body=(s32[])->s32[]",
            "V0502: while: condition f gives pred[1] (must give pred[])",
        ),
        (
            "while(s32[]) condition=(s32[])->pred[] body=(s32[])->s64[]",
            "V0503: while: body f.1 gives s64[] (must give s32[])",
        ),
        (
            "while(s32[]) condition=(s64[])->pred[] body=(s32[])->s32[]",
            "V0501: while: operand 0 has shape s32[], parameter 0 of f s64[]",
        ),
        (
            "while(s32[]) condition=(s32[],s32[])->pred[] body=(s32[])->s32[]",
            "V0500: while: 1 operand for the 2 parameters of f (must take 1 parameter)",
        ),
        (
            "conditional(pred[],f32[2],s32[]) true_computation=(f32[2])->f32[] false_computation=(s32[])->f32[]",
            "f32[]",
        ),
        (
            "conditional(s32[],f32[2],s32[],s32[]) branch_computations={(f32[2])->f32[];(s32[])->f32[];(s32[])->f32[]}",
            "f32[]",
        ),
        (
            "conditional(s32[],f32[],f32[]) branch_computations={(f32[])->f32[4];(f32[])->f32[<=4]}",
            "f32[<=4]",
        ),
        (
            "conditional(s32[],f32[2]) branch_computations={(f32[2])->f32[];(s32[])->f32[]}",
            "V0500: conditional: 2 operands for 2 branch computations (must be 3 operands: the index and one for each branch)",
        ),
        (
            "conditional(u32[],f32[2]) branch_computations={(f32[2])->f32[]}",
            "V0504: conditional: the branch index cannot be of type u32 (must be pred or s32)",
        ),
        (
            "conditional(s32[1],f32[2]) branch_computations={(f32[2])->f32[]}",
            "V0109: conditional: the branch index must be a scalar",
        ),
        (
            "conditional(pred[],f32[2]) branch_computations={(f32[2])->f32[]}",
            "V0504: conditional: 1 branch computation for a branch index of type pred (must be 2)",
        ),
        (
            "conditional(s32[],f32[2]) branch_computations={}",
            "V0504: conditional: 0 branch computations for a branch index of type s32 (must be at least 1)",
        ),
        (
            "conditional(pred[],f32[2],s32[]) true_computation=(f32[2])->f32[] false_computation=(s32[])->s32[]",
            "V0505: conditional: f gives f32[], but f.1 gives s32[]",
        ),
        (
            "conditional(pred[],f32[2],s32[]) true_computation=(f32[2])->f32[] false_computation=(f32[])->f32[]",
            "V0501: conditional: operand 2 has shape s32[], parameter 0 of f.1 f32[]",
        ),
        ("conditional(pred[],f32[2],s32[])", "V0103: conditional: branches are missing"),
    ]);
}

#[test]
fn asynchronous() {
    run(&[
        ("((f32[2]),f32[4],u32[]) async-start(f32[2]) calls=(f32[2])->f32[4]", "ok"),
        ("((),(),u32[]) async-start() calls=(f32[2])->f32[4]", "ok"),
        (
            "(f32[2],f32[4]) async-start(f32[2]) calls=(f32[2])->f32[4]",
            "V0520: async-start: the result is (f32[2], f32[4]) (must be ((operands), output, ...))",
        ),
        (
            "((f32[3]),f32[4]) async-start(f32[2]) calls=(f32[2])->f32[4]",
            "V0520: async-start: operand 0 is bound as f32[3]",
        ),
        (
            "((f32[2]),f32[4]) async-start() calls=(f32[2])->f32[4]",
            "V0520: async-start: 0 operands, but the result binds 1",
        ),
        (
            "((f32[2]),f32[5]) async-start(f32[2]) calls=(f32[2])->f32[4]",
            "V0520: async-start: the output is f32[5], but f gives f32[4]",
        ),
        (
            "((f32[2]),f32[4]) async-start(f32[2]) calls=(f32[3])->f32[4]",
            "V0520: async-start: the operands do not fit the parameters of f (f takes (f32[3]))",
        ),
        ("((f32[2]),f32[4]) async-update(((f32[2]),f32[4]))", "ok"),
        ("((f32[2],s32[]),f32[4]) async-update(((f32[2]),()),s32[])", "ok"),
        (
            "((f32[2],s32[]),f32[4]) async-update(((f32[2]),()))",
            "V0520: async-update: 0 operands, but the result binds 1",
        ),
        (
            "((f32[3]),f32[4]) async-update(((f32[2]),f32[4]))",
            "V0520: async-update: the result does not continue operand 0 (this is ((f32[3]), f32[4]))",
        ),
        ("async-done(((f32[2]),f32[4]))", "f32[4]"),
        ("async-done(f32[4])", "V0520: async-done: operand 0 must be an asynchronous value"),
        ("copy-start(f32[4])", "(f32[4], f32[4], u32[])"),
        ("copy-done((f32[4],f32[4],u32[]))", "f32[4]"),
        (
            "copy-done((f32[4],f32[5],u32[]))",
            "V0521: copy-done: destination f32[4] and source f32[5] have different shapes",
        ),
        ("copy-done(f32[4])", "V0507: copy-done: operand 0 must be a tuple of at least 2 elements"),
        ("send(f32[4],token[])", "(f32[4], u32[], token[])"),
        ("send(f32[4],f32[4])", "V0508: send: operand 1 must be a token"),
        ("send-done((f32[4],u32[],token[]))", "token[]"),
        ("(f32[4],u32[],token[]) recv(token[])", "ok"),
        (
            "(f32[4],s32[],token[]) recv(token[])",
            "V0100: recv: the result has shape (f32[4], u32[], token[]), not (f32[4], s32[], token[]) (must be (f32[4], u32[], token[]))",
        ),
        (
            "f32[4] recv(token[])",
            "V0521: recv: the result is f32[4] (must be a tuple of data, u32[] and token[])",
        ),
        ("recv-done((f32[4],u32[],token[]))", "(f32[4], token[])"),
        ("((f32[4],s32[]),token[]) infeed(token[])", "ok"),
        (
            "(f32[4]) infeed(token[])",
            "V0521: infeed: the result is (f32[4]) (must be a tuple of data and token[])",
        ),
        (
            "(f32[4],f32[]) infeed(token[])",
            "V0100: infeed: the result has shape (f32[4], token[]), not (f32[4], f32[]) (must be (f32[4], token[]))",
        ),
        ("outfeed(f32[4],token[]) outfeed_shape=f32[4]", "token[]"),
        (
            "outfeed(f32[4],token[]) outfeed_shape=f32[5]",
            "V0521: outfeed: outfeed_shape is f32[5] (must be the shape of the operand)",
        ),
        ("outfeed(f32[4],f32[])", "V0508: outfeed: operand 1 must be a token"),
    ]);
}

#[test]
fn collectives() {
    let add = "to_apply=(f32[],f32[])->f32[]";
    let case = |line: &str, expected: &str| run(&[(line, expected)]);
    run(&[
        ("f32[8,4] all-gather(f32[2,4]) dimensions={0} replica_groups={{0,1,2,3}}", "ok"),
        (
            "f32[6,4] all-gather(f32[2,4]) dimensions={0} replica_groups={{0,1,2,3}}",
            "V0530: all-gather: sizes of operand and result differ by a factor of 3 (must be 4, the size of a replica group)",
        ),
        ("f32[6,4] all-gather(f32[2,4]) dimensions={0} replica_groups={}", "ok"),
        (
            "f32[7,4] all-gather(f32[2,4]) dimensions={0} replica_groups={}",
            "V0100: all-gather: the result has shape f32[8,4], not f32[7,4] (must be f32[8,4])",
        ),
        ("all-gather(f32[2,4]) dimensions={1} replica_groups={{0,1}}", "f32[2,8]"),
        ("all-gather(f32[2,4]) dimensions={1} replicas=3", "f32[2,12]"),
        ("all-gather(f32[2,4]) dimensions={1} partitions=3 channel_id=1", "f32[2,12]"),
        (
            "all-gather(f32[2,4]) dimensions={2} replica_groups={{0,1}}",
            "V0200: all-gather: dimension 2 is out of range (must be 0 to 1)",
        ),
        ("(f32[4],s32[6]) all-gather(f32[2],s32[3]) dimensions={0} replica_groups={{0,1}}", "ok"),
        ("all-gather() dimensions={0}", "V0001: all-gather: 0 operands given (takes at least 1 operand)"),
        (
            "all-gather(f32[4611686018427387904]) dimensions={0} replica_groups={{0,1}}",
            "V0111: all-gather: the gathered size does not fit in 64 bits",
        ),
        ("(f32[2],f32[4]) all-gather-start(f32[2]) dimensions={0} replica_groups={{0,1}}", "ok"),
        (
            "f32[4] all-gather-start(f32[2]) dimensions={0} replica_groups={{0,1}}",
            "V0520: all-gather-start: the result is f32[4] (must be (operands, results))",
        ),
        ("all-gather-done((f32[2],f32[4]))", "f32[4]"),
        ("all-to-all(f32[8,4]) dimensions={0} replica_groups={{0,1}}", "f32[8,4]"),
        (
            "all-to-all(f32[7,4]) dimensions={0} replica_groups={{0,1}}",
            "V0530: all-to-all: dimension 0 of size 7 cannot be divided among 2",
        ),
        (
            "all-to-all(f32[<=8,4]) dimensions={0} replica_groups={{0,1}}",
            "V0113: all-to-all: dynamic dimensions are not supported",
        ),
        ("all-to-all(f32[8],f32[8]) replica_groups={{0,1}}", "(f32[8], f32[8])"),
        (
            "all-to-all(f32[8],f32[9]) replica_groups={{0,1}}",
            "V0106: all-to-all: operands 0 and 1 have different shapes, f32[8] and f32[9]",
        ),
        (
            "all-to-all(f32[8]) replica_groups={{0,1}}",
            "V0530: all-to-all: 1 operand for a group of 2 (takes as many operands as participants, or dimensions)",
        ),
        ("collective-broadcast(f32[8])", "f32[8]"),
        ("collective-broadcast(f32[8],s32[1]) has_dynamic_root=true", "f32[8]"),
        (
            "collective-broadcast(f32[8],s64[1]) has_dynamic_root=true",
            "V0531: collective-broadcast: the root is s64[1]",
        ),
        ("collective-permute(f32[8]) source_target_pairs={{0,1}}", "f32[8]"),
        ("collective-permute(f32[8],s32[]) source_target_pairs={{0,1}}", "(f32[8], s32[])"),
        (
            "collective-permute(f32[8],f32[9],(s32[]),(s32[])) source_target_pairs={{0,1}} slice_sizes={{2}}",
            "f32[9]",
        ),
        (
            "collective-permute(f32[8],f32[9]) source_target_pairs={{0,1}} slice_sizes={{2}}",
            "V0001: collective-permute: 2 operands given (takes 4 operands where slice_sizes is given)",
        ),
        (
            "collective-permute(f32[8],f32[9],(s32[],s32[]),(s32[])) source_target_pairs={{0,1}} slice_sizes={{2}}",
            "V0531: collective-permute: operand 2 is no tuple of offsets for operand 0",
        ),
        (
            "collective-permute(token[]) source_target_pairs={{0,1}}",
            "V0101: collective-permute: operand 0 must be an array",
        ),
        ("(f32[8],f32[8],u32[],u32[]) collective-permute-start(f32[8]) source_target_pairs={{0,1}}", "ok"),
        (
            "(f32[8],f32[9]) collective-permute-start(f32[8]) source_target_pairs={{0,1}}",
            "V0100: collective-permute-start: the result has shape (f32[8], f32[8]), not (f32[8], f32[9]) (must be (f32[8], f32[8]))",
        ),
        ("collective-permute-done((f32[8],f32[8]))", "f32[8]"),
        ("ragged-all-to-all(f32[8],f32[9],s32[2],s32[2],s32[2],s32[2])", "f32[9]"),
        (
            "ragged-all-to-all(f32[8],f32[9],s32[2],s32[3],s32[2],s32[2])",
            "V0106: ragged-all-to-all: operands 2 and 3 have different shapes",
        ),
        (
            "ragged-all-to-all(f32[8],f32[9],s32[],s32[],s32[],s32[])",
            "V0204: ragged-all-to-all: operand 2 must have 1 or 2 dimensions",
        ),
    ]);
    case(&format!("all-reduce(f32[8]) replica_groups={{{{0,1}}}} {add}"), "f32[8]");
    case(&format!("all-reduce(f32[8],f32[2]) {add}"), "(f32[8], f32[2])");
    case(
        "all-reduce(f32[8]) to_apply=(f32[])->f32[]",
        "V0400: all-reduce: f takes 1 parameter (must take 2)",
    );
    case(&format!("all-reduce(token[]) {add}"), "V0101: all-reduce: operand 0 must be an array");
    case("all-reduce-done(f32[8])", "f32[8]");
    case(&format!("f32[4] reduce-scatter(f32[8]) dimensions={{0}} replica_groups={{{{0,1}}}} {add}"), "ok");
    case(
        &format!("f32[3] reduce-scatter(f32[8]) dimensions={{0}} replica_groups={{{{0,1}}}} {add}"),
        "V0530: reduce-scatter: sizes of operand and result differ by a factor of 3 (must be 2, the size of a replica group)",
    );
    case(
        &format!("f32[3] reduce-scatter(f32[8]) dimensions={{0}} {add}"),
        "V0530: reduce-scatter: dimension 0 of size 8 cannot be divided among 3",
    );
    case(&format!("reduce-scatter(f32[8]) dimensions={{0}} replica_groups={{{{0,1}}}} {add}"), "f32[4]");
    case(&format!("f32[2,8] collective-reduce(f32[2,8]) replica_groups={{{{0,1}}}} {add}"), "ok");
}

#[test]
fn random_numbers() {
    run(&[
        ("f32[5] rng(f32[],f32[]) distribution=rng_uniform", "ok"),
        ("s32[5] rng(s32[],s32[]) distribution=rng_uniform", "ok"),
        ("bf16[5] rng(f32[],f32[]) distribution=rng_normal", "ok"),
        (
            "s32[5] rng(s32[],s32[]) distribution=rng_normal",
            "V0104: rng: operand 0 cannot have elements of type s32 (must be a float)",
        ),
        (
            "f32[5] rng(f32[5],f32[]) distribution=rng_normal",
            "V0109: rng: a parameter of the distribution must be a scalar",
        ),
        (
            "f32[5] rng(f32[],f64[]) distribution=rng_normal",
            "V0105: rng: operands have different types, f32 and f64",
        ),
        (
            "s32[5] rng(f32[],f32[]) distribution=rng_uniform",
            "V0108: rng: operands are f32, but the result has s32 (elements must be f32)",
        ),
        (
            "c64[5] rng(c64[],c64[]) distribution=rng_uniform",
            "V0104: rng: operand 0 cannot have elements of type c64 (must be pred, an integer or a float)",
        ),
        ("f32[5] rng(f32[]) distribution=rng_uniform", "V0001: rng: 1 operand given (takes 2 operands)"),
        ("(u64[2],u32[5]) rng-bit-generator(u64[2]) algorithm=rng_three_fry", "ok"),
        ("u32[5] rng-bit-generator(u64[2]) algorithm=rng_three_fry", "ok"),
        (
            "(u64[3],u32[5]) rng-bit-generator(u64[2]) algorithm=rng_three_fry",
            "V0600: rng-bit-generator: the state changes from u64[2] to u64[3]",
        ),
        (
            "(u64[2]) rng-bit-generator(u64[2]) algorithm=rng_three_fry",
            "V0600: rng-bit-generator: the result has 1 element (must be a tuple of the next state and the bits)",
        ),
        (
            "(u64[2],pred[5]) rng-bit-generator(u64[2]) algorithm=rng_three_fry",
            "V0108: rng-bit-generator: random bits cannot have type pred (must be an integer or a float)",
        ),
        ("rng-get-and-update-state() delta=1", "u64[2]"),
        (
            "u64[3] rng-get-and-update-state() delta=1",
            "V0100: rng-get-and-update-state: the result has shape u64[2], not u64[3] (must be u64[2])",
        ),
    ]);
}
