//! Programs that are compiled when they have proved worth it.

use std::time::{Duration, Instant};

use hlo_client::{CacheMode, CompileOptions, MEGAMORPHIC_COMPILATIONS};

use crate::common::{adds, cpu, floats, values};

fn lazy(after: u64, background: bool) -> CompileOptions {
    CompileOptions { mode: CacheMode::Lazy { after, background }, ..CompileOptions::default() }
}

#[test]
fn it_is_interpreted_until_it_was_asked_for_often_enough() {
    let client = cpu();
    let program = client.compile(&client.parse(&adds(2, 0)).unwrap(), &lazy(2, false)).unwrap();
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    for execution in 0..5 {
        assert_eq!(program.is_compiled(), execution > 2, "before execution {execution}");
        assert_eq!(values(&program.execute(&[&x, &x]).unwrap()[0]), [2.0, 4.0]);
    }
    assert_eq!(client.cache_statistics().compilations, 1);
}

#[test]
fn another_thread_compiles_while_it_is_interpreted() {
    let client = cpu();
    let program = client.compile(&client.parse(&adds(2, 0)).unwrap(), &lazy(0, true)).unwrap();
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    let start = Instant::now();
    while !program.is_compiled() {
        assert_eq!(values(&program.execute(&[&x, &x]).unwrap()[0]), [2.0, 4.0]);
        assert!(start.elapsed() < Duration::from_secs(120), "it is never compiled");
    }
    assert_eq!(values(&program.execute(&[&x, &x]).unwrap()[0]), [2.0, 4.0]);
}

#[test]
fn programs_that_keep_changing_are_compiled_no_more() {
    let client = cpu();
    let x = client.buffer(&floats(&[1.0, 2.0])).unwrap();
    let mut compiled = 0;
    for constant in 0..20 {
        let program = client.compile(&client.parse(&adds(2, constant)).unwrap(), &lazy(0, false)).unwrap();
        program.execute(&[&x, &x]).unwrap();
        compiled += u64::from(program.is_compiled());
    }
    assert_eq!(compiled, MEGAMORPHIC_COMPILATIONS + 1);
}
