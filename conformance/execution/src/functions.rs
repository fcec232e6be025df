//! How many ulp the elementary functions of an engine may be off from the correctly rounded result.
//!
//! **Invariant:** a budget is never below what the table of opcodes grants every engine, unless a person
//! asked for less by name.

use std::collections::BTreeMap;

use hlo::opcode::{Numeric, NumericRow};
use hlo::{ElementType, Opcode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::function_ulps::{IREE, PYTORCH, Row, XLA_CPU, XLA_GPU};

/// A compiler whose functions were measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// XLA's CPU back end.
    XlaCpu,
    /// XLA's GPU back end.
    XlaGpu,
    /// IREE's CPU back end.
    Iree,
    /// PyTorch on the CPU.
    PyTorch,
}

impl Library {
    /// All of them.
    pub const ALL: [Library; 4] = [Library::XlaCpu, Library::XlaGpu, Library::Iree, Library::PyTorch];

    /// As `--functions` accepts it.
    pub fn name(self) -> &'static str {
        match self {
            Library::XlaCpu => "xla-cpu",
            Library::XlaGpu => "xla-gpu",
            Library::Iree => "iree",
            Library::PyTorch => "pytorch",
        }
    }

    fn rows(self) -> &'static [Row] {
        match self {
            Library::XlaCpu => XLA_CPU,
            Library::XlaGpu => XLA_GPU,
            Library::Iree => IREE,
            Library::PyTorch => PYTORCH,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Library::XlaCpu => 1,
            Library::XlaGpu => 2,
            Library::Iree => 4,
            Library::PyTorch => 8,
        }
    }
}

/// The maximum number of opcodes that have a budget of their own.
const MAX_BUDGETS: usize = 32;

/// The budgets of an engine: the largest of those of some libraries, but for functions that a person gave a
/// number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Functions {
    /// A bit for each [`Library`].
    libraries: u8,
    /// By [`slot`]: the number given plus one; 0 if none is.
    given: [u16; MAX_BUDGETS],
}

impl Functions {
    /// The budgets that the table of opcodes grants every engine.
    pub const TABLE: Functions = Functions { libraries: 0, given: [0; MAX_BUDGETS] };

    /// The budgets of XLA on the CPU, which unknown compilers get too.
    pub const XLA_CPU: Functions = Functions { libraries: 1, given: [0; MAX_BUDGETS] };

    /// The budgets of XLA on GPUs.
    pub const XLA_GPU: Functions = Functions { libraries: 2, given: [0; MAX_BUDGETS] };

    /// The maxima of all libraries that were measured.
    pub const ANY: Functions = Functions { libraries: 0b1111, given: [0; MAX_BUDGETS] };

    /// The names that `--functions` accepts.
    pub fn names() -> Vec<&'static str> {
        Library::ALL.iter().map(|l| l.name()).chain(["table", "any"]).collect()
    }

    /// The budgets of this name.
    pub fn named(name: &str) -> Option<Functions> {
        match name {
            "table" => Some(Functions::TABLE),
            "any" => Some(Functions::ANY),
            _ => Library::ALL.iter().find(|l| l.name() == name).map(|&l| Functions::of(l)),
        }
    }

    /// Those of a library.
    pub fn of(library: Library) -> Functions {
        Functions { libraries: library.bit(), ..Functions::TABLE }
    }

    /// Whether `atan2` of complex numbers may be computed as `-i log((x + i y) / sqrt(x^2 + y^2))`, whose
    /// error is absolute: XLA's CPU back end does so.
    pub fn has_complex_angles_by_logarithms(self) -> bool {
        self.libraries & Library::XlaCpu.bit() != 0
    }

    /// The maxima of both.
    #[must_use]
    pub fn or(self, other: Functions) -> Functions {
        let mut given = self.given;
        given.iter_mut().zip(other.given).for_each(|(a, b)| *a = b.max(*a));
        Functions { libraries: self.libraries | other.libraries, given }
    }

    /// The same, but with the numbers given there where some are.
    #[must_use]
    pub fn overridden(self, by: Functions) -> Functions {
        let mut given = self.given;
        given.iter_mut().zip(by.given).filter(|(_, b)| *b > 0).for_each(|(a, b)| *a = b);
        Functions { given, ..self }
    }

    /// The same with a number for a function, in every type. `None`: the opcode is no elementary function.
    #[must_use]
    pub fn with(mut self, opcode: Opcode, ulps: u16) -> Option<Functions> {
        self.given[slot(opcode)?] = ulps.checked_add(1)?;
        Some(self)
    }

    /// The functions that have a budget.
    pub fn opcodes() -> impl Iterator<Item = Opcode> {
        Opcode::ALL.iter().copied().filter(|&o| has_budget(o))
    }

    /// How many ulp (of the modulus, of complex types) the results of a function may be off; 0 of what is
    /// exact or no function.
    pub fn ulps(&self, opcode: Opcode, ty: ElementType) -> u16 {
        let granted = match opcode.numeric(ty) {
            Numeric::Ulp(n) | Numeric::Normwise(n) => u16::from(n),
            // Division and square root are correctly rounded, but by compilers that approximate them.
            Numeric::Exact if ty.is_float() && has_budget(opcode) => 0,
            Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque => return 0,
        };
        match slot(opcode).map(|s| self.given[s]) {
            Some(given @ 1..) => given - 1,
            Some(0) | None => {
                let libraries = Library::ALL.iter().filter(|l| self.libraries & l.bit() != 0);
                let rows = libraries.flat_map(|l| l.rows()).filter(|r| r.opcode == opcode);
                rows.map(|r| r.of(ty)).fold(granted, u16::max)
            }
        }
    }

    /// What the results of an opcode may be: the table's class, but for what only the table has as exact. How
    /// many ulp it is exactly says [`Functions::ulps`].
    pub fn numeric(&self, opcode: Opcode, ty: ElementType) -> Numeric {
        let ulps = u8::try_from(self.ulps(opcode, ty)).unwrap_or(u8::MAX);
        match opcode.numeric(ty) {
            Numeric::Exact if ulps > 0 => Numeric::Ulp(ulps),
            Numeric::Ulp(_) => Numeric::Ulp(ulps),
            Numeric::Normwise(_) => Numeric::Normwise(ulps),
            row @ (Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque) => {
                row
            }
        }
    }

    /// Where the budgets are from, for people: `functions of xla-cpu, tanh within 3 ulp`; empty for the
    /// table's.
    pub fn describe(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.libraries == Functions::ANY.libraries {
            said.push("functions of any measured compiler".to_owned());
        } else {
            let of: Vec<&str> =
                Library::ALL.iter().filter(|l| self.libraries & l.bit() != 0).map(|l| l.name()).collect();
            if !of.is_empty() {
                said.push(format!("functions of {}", of.join(" and ")));
            }
        }
        said.extend(self.numbers().into_iter().map(|(name, n)| format!("{name} within {n} ulp")));
        said
    }

    fn numbers(&self) -> BTreeMap<&'static str, u16> {
        let given = |o: Opcode| slot(o).map(|s| self.given[s]).filter(|&n| n > 0);
        Functions::opcodes().filter_map(|o| Some((o.name(), given(o)? - 1))).collect()
    }
}

impl Row {
    fn of(&self, ty: ElementType) -> u16 {
        match ty {
            ElementType::F32 => self.f32,
            ElementType::F64 => self.f64,
            ElementType::C64 | ElementType::C128 => self.complex,
            _ if ty.is_float() => self.half,
            _ => 0,
        }
    }
}

fn has_budget(opcode: Opcode) -> bool {
    matches!(opcode.numeric_row(), NumericRow::Elementary(_) | NumericRow::ExactReal(1..))
}

fn slot(opcode: Opcode) -> Option<usize> {
    Functions::opcodes().position(|o| o == opcode)
}

/// The form of `finding.json`.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default)]
    libraries: Vec<String>,
    #[serde(default)]
    ulps: BTreeMap<String, u16>,
}

impl Serialize for Functions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let libraries = Library::ALL.iter().filter(|l| self.libraries & l.bit() != 0);
        Written {
            libraries: libraries.map(|l| l.name().to_owned()).collect(),
            ulps: self.numbers().into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Functions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { libraries, ulps } = Written::deserialize(deserializer)?;
        let mut all = Functions::TABLE;
        for name in libraries {
            let found = Functions::named(&name)
                .ok_or_else(|| serde::de::Error::custom(format!("there are no functions of `{name}`")))?;
            all = all.or(found);
        }
        for (name, n) in ulps {
            all = Opcode::from_name(&name)
                .and_then(|o| all.with(o, n))
                .ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no elementary function")))?;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(functions: Functions, opcode: Opcode, ty: ElementType) -> u16 {
        functions.ulps(opcode, ty)
    }

    #[test]
    fn every_function_has_a_slot() {
        assert!(Functions::opcodes().count() <= MAX_BUDGETS);
        for library in Library::ALL {
            for row in library.rows() {
                assert!(slot(row.opcode).is_some(), "{} of {}", row.opcode, library.name());
            }
        }
    }

    #[test]
    fn budgets_are_the_largest_of_the_libraries_and_numbers_win() {
        let (tanh, f32) = (Opcode::Tanh, ElementType::F32);
        assert_eq!(ulps(Functions::TABLE, tanh, f32), 2);
        let of_xla = ulps(Functions::of(Library::XlaCpu), tanh, f32);
        assert!(of_xla >= 3 && ulps(Functions::ANY, tanh, f32) >= of_xla);
        let given = Functions::ANY.with(tanh, 1).unwrap();
        assert_eq!((ulps(given, tanh, f32), ulps(given, tanh, ElementType::F64)), (1, 1));
        assert_eq!(ulps(Functions::ANY.with(tanh, 0).unwrap(), tanh, f32), 0);
        // What is correctly rounded everywhere stays so unless a number says otherwise; what is no function
        // accepts none.
        assert_eq!(Functions::TABLE.numeric(Opcode::Sqrt, f32), Numeric::Exact);
        assert_eq!(
            Functions::TABLE.with(Opcode::Sqrt, 1).unwrap().numeric(Opcode::Sqrt, f32),
            Numeric::Ulp(1)
        );
        assert_eq!(Functions::TABLE.with(Opcode::Dot, 3), None);
    }

    #[test]
    fn written_and_read() {
        let functions = Functions::of(Library::Iree).with(Opcode::Log, 7).unwrap();
        let text = serde_json::to_string(&functions).unwrap();
        assert_eq!(text, r#"{"libraries":["iree"],"ulps":{"log":7}}"#);
        assert_eq!(serde_json::from_str::<Functions>(&text).unwrap(), functions);
        assert!(serde_json::from_str::<Functions>(r#"{"libraries":["acme"]}"#).is_err());
    }
}
