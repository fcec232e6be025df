//! Several functions in one artifact.

use hlo_client::custom_call::Binding;
use hlo_client::exports::Library;
use hlo_client::{Code, CompileOptions, ExecuteOptions};

use crate::common::{adds, cpu, floats, values};

#[test]
fn functions_are_executed_by_ordinal_and_found_by_name() {
    let client = cpu();
    let (one, two) = (client.parse(&adds(2, 1)).unwrap(), client.parse(&adds(2, 2)).unwrap());
    let functions = [("one", &one), ("two", &two)];
    let compiled = Library::compile(&client, &functions, &CompileOptions::default()).unwrap();
    let bytes = Library::artifact(&client, &functions, &CompileOptions::default()).unwrap();
    let loaded = Library::load(&cpu(), &bytes).unwrap();
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    for library in [&compiled, &loaded] {
        assert_eq!(library.names().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(library.ordinal("two"), Some(1));
        assert_eq!(library.ordinal("three"), None);
        let run = |ordinal| library.execute(ordinal, &[&x, &x], &ExecuteOptions::default());
        assert_eq!(values(&run(0).unwrap()[0]), [3.0, 5.0]);
        assert_eq!(values(&run(1).unwrap()[0]), [4.0, 6.0]);
        assert_eq!(run(2).unwrap_err().code(), Code::NotFound);
    }
    let twice = Library::compile(&client, &[("f", &one), ("f", &two)], &CompileOptions::default());
    assert_eq!(twice.unwrap_err().code(), Code::InvalidArgument);
    for length in 0..bytes.len() {
        assert_eq!(Library::load(&client, &bytes[..length]).unwrap_err().code(), Code::DataLoss);
    }
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let code = Library::load(&client, &changed).unwrap_err().code();
        assert!(matches!(code, Code::DataLoss | Code::FailedPrecondition), "{at}: {code:?}");
    }
}

/// A product with a weight of `side * side` elements, and an addition that tells functions apart.
fn product(side: usize, weight: f32, added: u32) -> String {
    let row = (0..side).map(|n| format!("{}", weight + n as f32)).collect::<Vec<_>>().join(", ");
    let rows = vec![format!("{{{row}}}"); side].join(", ");
    format!(
        "HloModule product\nENTRY e {{ x = f32[2,{side}] parameter(0)  w = f32[{side},{side}] constant({{{rows}}})
           p = f32[2,{side}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
           c = f32[] constant({added})  cs = f32[2,{side}] broadcast(c), dimensions={{}}
           ROOT r = f32[2,{side}] add(p, cs) }}"
    )
}

#[test]
fn functions_share_constants_in_the_file_and_in_memory() {
    const SIDE: usize = 96;
    const WEIGHT_BYTES: u64 = (SIDE * SIDE * 4) as u64;
    let compiler = cpu();
    let parse = |weight, added| compiler.parse(&product(SIDE, weight, added)).unwrap();
    let (f, g, other) = (parse(1.0, 1), parse(1.0, 2), parse(5.0, 3));
    let artifact = |functions: &[(&str, &hlo_client::VerifiedModule)]| {
        Library::artifact(&compiler, functions, &CompileOptions::default()).unwrap()
    };
    let (one, two) = (artifact(&[("f", &f)]), artifact(&[("f", &f), ("g", &g)]));
    let three = artifact(&[("f", &f), ("g", &g), ("h", &other)]);
    // The second function adds its code and no weight, the third a weight.
    assert!(two.len() as u64 - (one.len() as u64) < WEIGHT_BYTES, "{} and {}", one.len(), two.len());
    assert!(three.len() as u64 - two.len() as u64 > WEIGHT_BYTES, "{} and {}", two.len(), three.len());
    let held = |bytes: &[u8]| {
        let client = cpu();
        let library = Library::load(&client, bytes).unwrap();
        let x = client.buffer(
            &hlo::ArrayLiteral::new(
                [2, SIDE as i64].as_slice().into(),
                hlo::Buffer::F32(vec![1.0; 2 * SIDE]),
            )
            .unwrap(),
        );
        let x = x.unwrap();
        let run = |n| values(&library.execute(n, &[&x], &ExecuteOptions::default()).unwrap()[0])[0];
        let sums: Vec<f32> = (0..library.names().len()).map(run).collect();
        (client.metrics().constant_bytes, sums)
    };
    let (of_one, of_two, of_three) = (held(&one), held(&two), held(&three));
    let side = SIDE as f32;
    assert_eq!(of_three.1, [side + 1.0, side + 2.0, 5.0 * side + 3.0]);
    assert!(of_one.0 >= WEIGHT_BYTES);
    assert_eq!((of_two.0, of_three.0), (of_one.0, 2 * of_one.0));
}

#[test]
fn custom_calls_call_functions_that_are_exported() {
    let client = cpu();
    let replay =
        Binding::new("replay").argument::<f32>().export("body").attribute::<i32>("times").result::<f32>();
    let replay = replay.to(|call| {
        let mut x = call.argument_array(0)?;
        for _ in 0..call.attribute::<i32>("times")? {
            x = call.call_export("body", &[x.clone(), x])?.remove(0);
        }
        call.set_result(0, x)
    });
    client.custom_calls().bind(replay).unwrap();
    let calls = |body: &str| {
        let text = format!(
            "HloModule replay\nENTRY e {{ a = f32[2] parameter(0)  b = f32[2] parameter(1)
               ROOT r = f32[2] custom-call(a), custom_call_target=\"replay\", api_version=API_VERSION_TYPED_FFI,
               backend_config={{body = @{body}, times = 3 : i32}} }}"
        );
        client.parse(&text).unwrap()
    };
    let (step, thrice, itself, nobody) =
        (client.parse(&adds(2, 1)).unwrap(), calls("step"), calls("itself"), calls("absent"));
    let functions = [("step", &step), ("thrice", &thrice), ("itself", &itself), ("nobody", &nobody)];
    let compiled = Library::compile(&client, &functions, &CompileOptions::default()).unwrap();
    let bytes = Library::artifact(&client, &functions, &CompileOptions::default()).unwrap();
    let loaded = Library::load(&client, &bytes).unwrap();
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    for library in [compiled, loaded] {
        let run = |name| {
            let ordinal = library.ordinal(name).unwrap();
            library.execute(ordinal, &[&x, &x], &ExecuteOptions::default())
        };
        // x + x + 1, three times.
        assert_eq!(values(&run("thrice").unwrap()[0]), [15.0, 23.0]);
        let endless = run("itself").unwrap_err();
        assert_eq!(endless.code(), Code::ResourceExhausted, "{endless}");
        let missing = run("nobody").unwrap_err();
        assert_eq!(missing.code(), Code::NotFound, "{missing}");
        assert!(missing.to_string().contains("step, thrice, itself, nobody"), "{missing}");
    }
    let alone = client.compile(&thrice, &CompileOptions::default()).unwrap();
    assert_eq!(alone.execute(&[&x, &x]).unwrap_err().code(), Code::FailedPrecondition);
}
