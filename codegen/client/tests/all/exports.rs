//! Several functions in one artifact.

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
