//! Numbers on the command line: what they may be, once for all commands.
//!
//! **Invariant:** what is accepted here asks for nothing that a machine cannot give: no more threads than
//! [`MAX_THREADS`], no wait longer than [`MAX_DURATION`], no bound that is infinite, negative or no number.

use std::time::Duration;

#[cfg(feature = "llvm")]
use hlo_library_base::isa::Isa;
#[cfg(feature = "llvm")]
use hlo_library_base::tuning::{self, Tuning};

use hlo_triage::report::grouped;

/// The most threads, or things at once, that may be asked for.
const MAX_THREADS: usize = 1024;
/// The longest time that may be asked for: a week.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Reads how many threads, or how many things at once; 0 leaves the choice to us.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse::<u128>() {
        Ok(n) if n <= MAX_THREADS as u128 => Ok(n as usize),
        Ok(_) => Err(format!("at most {}; 0 takes what the machine has", grouped(MAX_THREADS as u64))),
        Err(_) => Err(format!("`{text}` is not a number from 0 to {}", grouped(MAX_THREADS as u64))),
    }
}

/// Reads an instruction set by XLA's name.
#[cfg(feature = "llvm")]
pub(crate) fn isa(text: &str) -> Result<Isa, String> {
    Isa::from_name(text).ok_or_else(|| {
        format!("there is {}; generated code needs the first", Isa::ALL.map(Isa::name).join(", "))
    })
}

/// Reads the name of a microarchitecture that library calls are tuned for.
#[cfg(feature = "llvm")]
pub(crate) fn tuning(text: &str) -> Result<Tuning, String> {
    tuning::by_name(text).ok_or_else(|| format!("there is {}", tuning::ALL.map(|t| t.name).join(", ")))
}

/// Reads `90s`, `5m`, `1.5h`, `250ms`; a number alone is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text.trim())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time <= MAX_DURATION => Ok(time),
        _ if seconds > 0.0 => Err(format!("`{text}` is too long: a week at most")),
        _ => Err(no_time(text)),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| no_time(text))?;
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time: use ms, s, m or h")),
    };
    Ok(number * scale)
}

fn no_time(text: &str) -> String {
    format!("`{text}` is not a time such as 90s")
}

/// Reads a bound: a finite number that is not negative.
pub(crate) fn bound(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
        _ => Err(format!("`{text}` is not a finite number from 0 up")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_a_limit() {
        assert_eq!((threads("0"), threads("1024")), (Ok(0), Ok(1024)));
        for absurd in ["1025", "40000", "18446744073709551615", "18446744073709551616"] {
            assert_eq!(threads(absurd), Err("at most 1,024; 0 takes what the machine has".to_owned()));
        }
        for none in ["", "-1", "2.5", "many"] {
            assert_eq!(threads(none), Err(format!("`{none}` is not a number from 0 to 1,024")));
        }
    }

    #[test]
    fn times_are_finite() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("1e-1"), Ok(Duration::from_millis(100)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(time("168h"), Ok(MAX_DURATION));
        for long in ["169h", "inf", "1e300", "604801"] {
            assert_eq!(time(long), Err(format!("`{long}` is too long: a week at most")));
        }
        for none in ["", "nan", "-1", "-inf", "soon"] {
            assert_eq!(time(none), Err(format!("`{none}` is not a time such as 90s")));
        }
        assert_eq!(time("2 weeks"), Err("` weeks` is no unit of time: use ms, s, m or h".to_owned()));
    }

    #[test]
    fn bounds_are_finite() {
        assert_eq!((bound("0"), bound("1e-3")), (Ok(0.0), Ok(1e-3)));
        for none in ["nan", "-1", "inf", "-0.5", "", "x"] {
            assert_eq!(bound(none), Err(format!("`{none}` is not a finite number from 0 up")));
        }
    }
}
