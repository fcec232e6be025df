//! Numbers in literals against a table that `data/make_number_texts.py` makes with C's formatting.

#![allow(clippy::unwrap_used, reason = "a test")]

use hlo::literal::{ArrayLiteral, Bits, BufferOf};
use hlo::print::print_literal;
use hlo::{Dims, ElementType, Literal};

fn scalar<T: BufferOf + Bits>(bits: u128) -> Literal {
    Literal::Array(ArrayLiteral { dims: Dims::new(), buffer: T::wrap(vec![T::from_bits(bits)]).into() })
}

#[test]
fn floats_are_written_as_c_does() {
    let table = include_str!("data/number_texts.txt");
    let mut wrong = Vec::new();
    for line in table.lines() {
        let mut fields = line.split(' ');
        let (ty, bits, text) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        let ty = ElementType::from_name(ty).unwrap();
        let bits = u128::from_str_radix(bits, 16).unwrap();
        let literal = hlo::with_element_type!(ty, T => scalar::<T>(bits));
        let printed = print_literal(&literal);
        if printed != text {
            wrong.push(format!("{line}: printed {printed}"));
        }
    }
    assert!(table.lines().count() > 5000);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
