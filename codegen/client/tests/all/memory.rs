//! The memory budget of a device.

use hlo_client::{Buffer, Client, ClientOptions, Code, CompileOptions};

use crate::common::{adds, floats, values};

const N: usize = 1 << 18;
const ARRAY_BYTES: u64 = 4 * N as u64;

fn client(budget: u64, never_evict: bool) -> Client {
    let options =
        ClientOptions { memory_budget_bytes: Some(budget), never_evict, threads: 1, ..Default::default() };
    Client::cpu(options).unwrap()
}

fn array(value: f32) -> hlo::ArrayLiteral {
    floats(&vec![value; N])
}

/// Twelve arrays of which a budget of four holds a third.
fn working_set(client: &Client) -> Result<Vec<Buffer>, hlo_client::Error> {
    (0..12).map(|i| client.buffer(&array(i as f32))).collect()
}

#[test]
fn three_times_the_budget_completes_by_eviction() {
    let client = client(4 * ARRAY_BYTES, false);
    let buffers = working_set(&client).unwrap();
    assert!(buffers.iter().filter(|b| b.is_evicted()).count() >= 8);
    let text = adds(N, 1);
    let program = client.compile(&client.parse(&text).unwrap(), &CompileOptions::default()).unwrap();
    for pair in buffers.windows(2) {
        let sum = program.execute(&[&pair[0], &pair[1]]).unwrap();
        assert_eq!(values(&sum[0])[N - 1], values(&pair[0])[0] + values(&pair[1])[0] + 1.0);
    }
    let statistics = client.memory_statistics();
    assert!(statistics.peak_bytes <= 4 * ARRAY_BYTES, "{statistics:?}");
    assert!(statistics.evicted_bytes >= 8 * ARRAY_BYTES, "{statistics:?}");
}

#[test]
fn without_eviction_it_says_who_holds_what() {
    let client = client(4 * ARRAY_BYTES, true);
    let error = working_set(&client).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(client.memory_statistics().held_bytes, 0, "what was dropped is free");
    let held: Vec<Buffer> = (0..4).map(|i| client.buffer(&array(i as f32)).unwrap()).collect();
    let error = client.buffer(&array(0.0)).unwrap_err().to_string();
    assert!(
        error.contains("1048576 bytes do not fit: 4194304 of the budget of 4194304 bytes are held, by"),
        "{error}"
    );
    assert!(error.contains("f32[262144] an array from the host (1048576 bytes)"), "{error}");
    drop(held);
    client.buffer(&array(0.0)).unwrap();
}

#[test]
fn what_is_larger_than_the_budget_is_refused_without_evicting() {
    let client = client(2 * ARRAY_BYTES, false);
    let kept = client.buffer(&array(1.0)).unwrap();
    let error = client.buffer(&floats(&vec![0.0; 3 * N])).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(!kept.is_evicted());
}

#[test]
fn results_are_held_by_name() {
    let client = client(6 * ARRAY_BYTES, true);
    let program = client.compile(&client.parse(&adds(N, 1)).unwrap(), &CompileOptions::default()).unwrap();
    let x = client.buffer(&array(1.0)).unwrap();
    let sum = program.execute(&[&x, &x]).unwrap();
    assert_eq!(client.memory_statistics().held_bytes, 2 * ARRAY_BYTES);
    let error = client.buffer(&floats(&vec![0.0; 5 * N])).unwrap_err().to_string();
    assert!(error.contains("result 0 of adds"), "{error}");
    drop(sum);
    assert_eq!(client.memory_statistics().held_bytes, ARRAY_BYTES);
}
