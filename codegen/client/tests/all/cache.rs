//! The compilation cache, in memory and on disk.

use std::path::Path;
use std::sync::Barrier;

use hlo_client::{CacheMode, Client, ClientOptions, Code, CompileOptions, DiskCache, Verdict};

use crate::common::{adds, floats, values};

fn with_folder(folder: &Path) -> Client {
    let options =
        ClientOptions { cache_directory: Some(folder.to_owned()), threads: 1, ..Default::default() };
    Client::cpu(options).unwrap()
}

fn result(client: &Client, text: &str) -> Vec<f32> {
    let program = client.compile(&client.parse(text).unwrap(), &CompileOptions::default()).unwrap();
    let x = client.buffer(&floats(&[1.0, 2.0, 3.0])).unwrap();
    values(&program.execute(&[&x, &x]).unwrap()[0])
}

#[test]
fn requests_at_once_compile_once() {
    let client = crate::common::cpu();
    let text = adds(3, 1);
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(result(&client, &text), [3.0, 5.0, 7.0]);
            });
        }
    });
    let statistics = client.cache_statistics();
    assert_eq!((statistics.compilations, statistics.memory_hits), (1, 7));
}

#[test]
fn many_threads_and_programs_compile_each_once() {
    const THREADS: usize = 8;
    const PROGRAMS: u32 = 40;
    let client = crate::common::cpu();
    let x = client.buffer(&floats(&[1.0, 2.0, 3.0])).unwrap();
    let options = CompileOptions { opt_level: 0, ..CompileOptions::default() };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (client, x, options) = (&client, &x, &options);
            scope.spawn(move || {
                // Each begins elsewhere, so that they meet at different programs.
                for n in (0..PROGRAMS).map(|n| (n + thread as u32 * 5) % PROGRAMS) {
                    let program = client.compile(&client.parse(&adds(3, n)).unwrap(), options).unwrap();
                    let n = n as f32;
                    assert_eq!(values(&program.execute(&[x, x]).unwrap()[0]), [2.0 + n, 4.0 + n, 6.0 + n]);
                }
            });
        }
    });
    let statistics = client.cache_statistics();
    assert_eq!(statistics.compilations, u64::from(PROGRAMS));
    assert_eq!(statistics.memory_hits, (THREADS as u64 - 1) * u64::from(PROGRAMS));
}

#[test]
fn names_do_not_matter_and_constants_do() {
    let client = crate::common::cpu();
    let text = adds(3, 1);
    let renamed =
        text.replace("HloModule adds", "HloModule other").replace(" s ", " sum ").replace("(s,", "(sum,");
    assert_ne!(text, renamed);
    for text in [&text, &renamed, &adds(3, 2)] {
        result(&client, text);
    }
    assert_eq!(client.cache_statistics().compilations, 2);
    let options = CompileOptions { opt_level: 0, ..CompileOptions::default() };
    client.compile(&client.parse(&text).unwrap(), &options).unwrap();
    assert_eq!(client.cache_statistics().compilations, 3, "options are part of the key");
    let off = CompileOptions { mode: CacheMode::Off, ..CompileOptions::default() };
    client.compile(&client.parse(&text).unwrap(), &off).unwrap();
    assert_eq!(client.cache_statistics().memory_hits, 1);
}

#[test]
fn a_second_process_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cache");
    for text in [adds(3, 1), adds(3, 2)] {
        let first = with_folder(&folder);
        let expected = result(&first, &text);
        assert_eq!(first.cache_statistics().compilations, 1);
        let second = with_folder(&folder);
        assert_eq!(result(&second, &text), expected);
        let statistics = second.cache_statistics();
        assert_eq!((statistics.compilations, statistics.disk_hits), (0, 1));
    }
}

#[test]
fn damaged_and_foreign_entries_are_dropped_and_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cache");
    let text = adds(3, 1);
    let expected = result(&with_folder(&folder), &text);
    let [entry] = &DiskCache::open(&folder, None).unwrap().entries()[..] else { panic!("one entry") };
    let whole = std::fs::read(&entry.path).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut other_version = whole.clone();
    other_version[8] ^= 0x40;
    for bad in [&b""[..], b"text", &whole[..whole.len() / 2], &flipped, &other_version] {
        std::fs::write(&entry.path, bad).unwrap();
        let verdicts = DiskCache::open(&folder, None).unwrap().verify();
        assert!(matches!(verdicts[0].1, Verdict::Refused(_)), "{verdicts:?}");
        let client = with_folder(&folder);
        assert_eq!(result(&client, &text), expected);
        let statistics = client.cache_statistics();
        assert_eq!((statistics.compilations, statistics.disk_dropped), (1, 1));
        assert_eq!(std::fs::read(&entry.path).unwrap(), whole, "the entry is whole again");
    }
}

#[test]
fn what_others_may_have_written_is_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cache");
    let text = adds(3, 1);
    result(&with_folder(&folder), &text);
    let [entry] = &DiskCache::open(&folder, None).unwrap().entries()[..] else { panic!("one entry") };
    std::fs::set_permissions(&entry.path, PermissionsExt::from_mode(0o666)).unwrap();
    let client = with_folder(&folder);
    result(&client, &text);
    assert_eq!(client.cache_statistics().compilations, 1);
    let target = folder.join("elsewhere");
    std::fs::rename(&entry.path, &target).unwrap();
    std::os::unix::fs::symlink(&target, &entry.path).unwrap();
    let client = with_folder(&folder);
    result(&client, &text);
    assert_eq!(client.cache_statistics().compilations, 1, "links are not followed");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let error = DiskCache::open(&folder, None).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.to_string().contains("others may write to it"), "{error}");
}

#[test]
fn what_was_not_used_for_longest_goes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cache");
    result(&with_folder(&folder), &adds(3, 0));
    let size = DiskCache::open(&folder, None).unwrap().entries()[0].bytes;
    let options = ClientOptions {
        cache_directory: Some(folder.clone()),
        cache_limit_bytes: Some(size * 7 / 2),
        threads: 1,
        ..Default::default()
    };
    let client = Client::cpu(options).unwrap();
    for constant in 1..8 {
        result(&client, &adds(3, constant));
    }
    let entries = DiskCache::open(&folder, None).unwrap().entries();
    assert_eq!(entries.len(), 3);
    let fresh = with_folder(&folder);
    result(&fresh, &adds(3, 7));
    assert_eq!(fresh.cache_statistics().disk_hits, 1, "the newest is there");
    result(&fresh, &adds(3, 0));
    assert_eq!(fresh.cache_statistics().disk_hits, 1, "the oldest is gone");
}

#[test]
fn unsupported_programs_are_errors_and_are_remembered() {
    let client = crate::common::cpu();
    let text = "HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] custom-call(x), custom_call_target=\"nobody_knows\" }";
    let program = client.parse(text).unwrap();
    for _ in 0..2 {
        let error = client.compile(&program, &CompileOptions::default()).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.to_string().contains("nobody_knows"), "{error}");
    }
    assert_eq!(client.cache_statistics().compilations, 1);
}

#[test]
fn arguments_made_constant_leave_the_list() {
    let client = crate::common::cpu();
    let program = client.parse(&adds(3, 1)).unwrap();
    let options = CompileOptions {
        constant_arguments: vec![(0, floats(&[10.0, 20.0, 30.0]))],
        ..CompileOptions::default()
    };
    let executable = client.compile(&program, &options).unwrap();
    assert_eq!(executable.parameters().len(), 1);
    let b = client.buffer(&floats(&[1.0, 2.0, 3.0])).unwrap();
    assert_eq!(values(&executable.execute(&[&b]).unwrap()[0]), [12.0, 23.0, 34.0]);
    let other = CompileOptions { constant_arguments: vec![(0, floats(&[0.0; 3]))], ..options.clone() };
    client.compile(&program, &other).unwrap();
    assert_eq!(client.cache_statistics().compilations, 2, "the values of constants are part of the key");
    for (number, value) in [(2, floats(&[0.0; 3])), (0, floats(&[0.0; 4]))] {
        let wrong = CompileOptions { constant_arguments: vec![(number, value)], ..CompileOptions::default() };
        assert_eq!(client.compile(&program, &wrong).unwrap_err().code(), Code::InvalidArgument);
    }
}
