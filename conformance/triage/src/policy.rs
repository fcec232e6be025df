//! How results are judged: one policy for every tool that compares an engine with the reference (`run`,
//! `isolate`, `reduce`, `bisect`, `fuzz`, `test`), so that they agree about a program.
//!
//! **Invariant:** what an engine may do is asked here alone ([`Policy::allowances`]); whether a comparison
//! passes is [`crate::differential::Difference::passes`], by the same policy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use hlo_engines::engine::{Allowances, Engine, Functions};
use hlo_execution::verdict::Tally;

/// The maximum of differing elements that may stay undecided.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MostUndecided {
    /// So many.
    Count(u64),
    /// So large a share of all elements, 0 to 1.
    Share(f64),
}

impl MostUndecided {
    /// None.
    pub const NONE: MostUndecided = MostUndecided::Count(0);

    /// Whether these counts are within it.
    pub fn allows(self, tally: &Tally) -> bool {
        match self {
            MostUndecided::Count(n) => tally.undecided <= n,
            MostUndecided::Share(share) => tally.undecided_share() <= share,
        }
    }
}

impl fmt::Display for MostUndecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MostUndecided::Count(n) => write!(f, "{n}"),
            MostUndecided::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

impl FromStr for MostUndecided {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is neither a count of elements, such as 3, nor a share of them, such as 0.1%")
        };
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
                if (0.0..=100.0).contains(&percent) {
                    Ok(MostUndecided::Share(percent / 100.0))
                } else {
                    Err(wrong())
                }
            }
            None => text.parse().map(MostUndecided::Count).map_err(|_| wrong()),
        }
    }
}

/// Options of judging.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Whether an engine has the liberties that it declares; if not, only those of `allow`.
    #[serde(default = "yes")]
    pub declared: bool,
    /// Liberties besides.
    #[serde(default)]
    pub allow: Allowances,
    /// Budgets of elementary functions that replace those that the engine declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
    /// Numbers given to single functions, which win over both.
    #[serde(default)]
    pub ulps: Functions,
    /// NaNs must have the same bits.
    #[serde(default)]
    pub nan_bits: bool,
    /// The maximum of differing elements that may stay undecided.
    #[serde(default = "none")]
    pub max_undecided: MostUndecided,
}

fn yes() -> bool {
    true
}

fn none() -> MostUndecided {
    MostUndecided::NONE
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            declared: true,
            allow: Allowances::STRICT,
            functions: None,
            ulps: Functions::TABLE,
            nan_bits: false,
            max_undecided: MostUndecided::NONE,
        }
    }
}

impl Policy {
    /// The liberties of this engine.
    pub fn allowances(&self, engine: &dyn Engine) -> Allowances {
        self.of_declared(engine.allowances())
    }

    /// The liberties of an engine that declares these.
    pub fn of_declared(&self, declared: Allowances) -> Allowances {
        let base = if self.declared { declared } else { Allowances::STRICT };
        let all = base.or(self.allow);
        let functions = self.functions.unwrap_or(all.functions).overridden(self.ulps);
        Allowances { functions, ..all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo_engines::engine::{InterpreterEngine, Library, by_name};

    #[test]
    fn shares_and_counts_are_told_apart() {
        let tally = Tally { same: 97, undecided: 3, ..Tally::default() };
        for (text, allows) in
            [("0", false), ("2", false), ("3", true), ("2.9%", false), ("3%", true), ("0%", false)]
        {
            let most: MostUndecided = text.parse().unwrap();
            assert_eq!(most.allows(&tally), allows, "{text}");
            assert_eq!(most.to_string().parse::<MostUndecided>().unwrap().allows(&tally), allows, "{text}");
        }
        for text in ["", "-1", "0.01", "101%", "x%", "3 %x"] {
            assert!(text.parse::<MostUndecided>().is_err(), "{text}");
        }
    }

    #[test]
    fn liberties_are_those_declared_unless_the_policy_says_otherwise() {
        let (ours, other) = (InterpreterEngine, by_name("exec:true").unwrap());
        let policy = Policy::default();
        assert_eq!(policy.allowances(&ours), Allowances::STRICT);
        assert_eq!(policy.allowances(&*other), Allowances::LOOSE);
        let none = Policy { declared: false, ..policy };
        assert_eq!(none.allowances(&*other), Allowances::STRICT);
        let one = Policy { allow: Allowances::named("contraction").unwrap(), ..none };
        assert_eq!(one.allowances(&*other).granted(), ["contraction"]);
        let functions = Functions::of(Library::Iree);
        let budgets = Policy { functions: Some(functions), ..policy };
        assert_eq!(budgets.allowances(&*other), Allowances { functions, ..Allowances::LOOSE });
        let text = serde_json::to_string(&budgets).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), budgets);
        assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), policy);
    }
}
