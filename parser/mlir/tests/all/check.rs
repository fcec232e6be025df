//! Checks of results as StableHLO's tests have them.

use std::sync::Arc;

use hlo::{ArrayLiteral, Buffer, Dims};
use hlo_mlir::check::{CheckKind, compare};

fn row(values: &[f32]) -> ArrayLiteral {
    ArrayLiteral {
        dims: Dims::from_slice(&[values.len() as i64]),
        buffer: Arc::new(Buffer::F32(values.to_vec())),
    }
}

#[test]
fn equality_is_that_of_values() {
    let a = row(&[0.0, f32::NAN, 1.0]);
    assert_eq!(compare(CheckKind::Equal, &a, &row(&[-0.0, f32::NAN, 1.0])), Ok(()));
    let why = compare(CheckKind::Equal, &a, &row(&[0.0, f32::NAN, 1.5])).unwrap_err();
    assert_eq!(why, "element [2] is 1.0, not 1.5");
}

#[test]
fn units_in_the_last_place_are_counted_over_zero() {
    let close = |min, max| CheckKind::Close { min, max };
    let tiny = f32::from_bits(1);
    assert_eq!(compare(close(0, 2), &row(&[tiny]), &row(&[-tiny])), Ok(()));
    assert!(compare(close(0, 1), &row(&[tiny]), &row(&[-tiny])).is_err());
    assert!(compare(close(3, 5), &row(&[tiny]), &row(&[-tiny])).is_err(), "too near");
    assert!(compare(close(0, u64::MAX), &row(&[f32::NAN]), &row(&[1.0])).is_err(), "a NaN is near no number");
}

#[test]
fn a_tolerance_is_absolute() {
    let almost = CheckKind::Almost(1e-3);
    assert_eq!(compare(almost, &row(&[1.0005]), &row(&[1.0])), Ok(()));
    assert!(compare(almost, &row(&[1000.5]), &row(&[1000.0])).is_err());
    assert!(compare(almost, &row(&[f32::INFINITY]), &row(&[1.0])).is_err());
}
