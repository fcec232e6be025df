//! The directives of a filetest.

use hlo_interp::device::host::Stream;

use hlo_triage::report::parse_bytes;

/// The kind of test of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Interpret,
    Verify,
    Print,
}

/// An error that is announced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExpectedError {
    pub(super) code: String,
    /// The line of the file; `None` is anywhere.
    pub(super) line: Option<usize>,
    pub(super) text: String,
}

/// A run that is announced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) line: usize,
    pub(super) entry: String,
    /// For each device, or one for all of them.
    pub(super) arguments: Vec<Vec<String>>,
    pub(super) expectation: Expectation,
}

/// The origin of expected values: never what is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// By hand, from the definition of the operation.
    Hand,
    /// Exact integers or fractions in Python.
    Exact,
    /// numpy.
    Numpy,
    /// ml_dtypes.
    MlDtypes,
    /// mpmath: arbitrary precision.
    Mpmath,
    /// scipy.
    Scipy,
    /// XLA:CPU.
    Xla,
    /// XLA's interpreter or a test of XLA.
    Evaluator,
}

impl Origin {
    const NAMES: [(&'static str, Origin); 8] = [
        ("hand", Origin::Hand),
        ("exact", Origin::Exact),
        ("numpy", Origin::Numpy),
        ("ml_dtypes", Origin::MlDtypes),
        ("mpmath", Origin::Mpmath),
        ("scipy", Origin::Scipy),
        ("xla", Origin::Xla),
        ("evaluator", Origin::Evaluator),
    ];

    fn read(name: &str) -> Result<Origin, String> {
        let found = Self::NAMES.iter().find(|(n, _)| *n == name.trim());
        found.map(|(_, o)| *o).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(n, _)| *n).collect();
            format!("`{}` is no origin of values; there are: {}", name.trim(), names.join(", "))
        })
    }
}

/// The expected end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Expectation {
    /// For each device, or one for all of them.
    Results {
        values: Vec<Vec<String>>,
        ulp: Option<u64>,
    },
    Fails {
        code: String,
        text: String,
    },
}

/// A golden section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) style: String,
    pub(super) header: String,
    pub(super) body: String,
}

/// Everything that the comments of a program say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Spec {
    pub(super) kinds: Vec<Kind>,
    pub(super) errors: Vec<ExpectedError>,
    pub(super) runs: Vec<Run>,
    pub(super) region: bool,
    pub(super) nan_bits: bool,
    /// The origin of the expected values, if given here.
    pub(super) origin: Vec<Origin>,
    pub(super) fuel: Option<u64>,
    pub(super) memory: Option<u64>,
    pub(super) replicas: Option<u32>,
    pub(super) partitions: Option<u32>,
    /// The number of repetitions of each run.
    pub(super) repeat: Option<u32>,
    /// Inputs and expected outputs of feeds and channels: for each device, or one for all of them.
    pub(super) infeed: Vec<(Stream, Vec<Vec<String>>)>,
    pub(super) outfeed: Vec<(Stream, Vec<Vec<String>>)>,
    pub(super) sections: Vec<Section>,
    /// The text up to the first section.
    pub(super) before_sections: String,
    /// The program, comments left in.
    pub(super) program: String,
}

const SECTION: &str = "// ----";

/// Reads the directives of one program, whose text begins at `first_line` of its file.
pub(super) fn parse(text: &str, first_line: usize) -> Result<Spec, String> {
    let mut spec = Spec::default();
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let number = first_line + i;
        let content = line.trim_end();
        if let Some(style) = content.strip_prefix(SECTION) {
            let style = style.trim().trim_end_matches('-').trim();
            let style = style.strip_prefix("print ").unwrap_or(style).to_owned();
            spec.sections.push(Section { style, header: line.to_owned(), body: String::new() });
            continue;
        }
        if let Some(section) = spec.sections.last_mut() {
            section.body.push_str(line);
            continue;
        }
        spec.before_sections.push_str(line);
        spec.program.push_str(line);
        let at = |e: String| format!("line {number}: {e}");
        if let Some(comment) = content.trim_start().strip_prefix("//") {
            if !comment.starts_with("====") {
                spec.comment(comment.trim(), number).map_err(at)?;
            }
        } else if let Some(start) = content.rfind("// error[") {
            let error = error_directive(content[start + 3..].trim(), Some(number)).map_err(at)?;
            spec.errors.push(error);
        }
    }
    if spec.kinds.is_empty() {
        return Err("no `// test:` directive".into());
    }
    Ok(spec)
}

/// `word` of `word: rest` or `word[CODE]: rest` or `word[CODE] anywhere: rest`.
fn directive_word(comment: &str) -> Option<(&str, &str)> {
    let end = comment.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(comment.len());
    let (word, rest) = comment.split_at(end);
    let is_directive = !word.is_empty() && (rest.starts_with(':') || rest.starts_with('['));
    is_directive.then_some((word, rest))
}

impl Spec {
    fn comment(&mut self, comment: &str, line: usize) -> Result<(), String> {
        let Some((word, rest)) = directive_word(comment) else { return Ok(()) };
        let number = |n: &str| n.parse().map_err(|_| format!("`{n}` is not a number"));
        let (stream, rest) = match (word, rest.strip_prefix('[').and_then(|r| r.split_once(']'))) {
            ("infeed" | "outfeed", Some((channel, rest))) => {
                let channel = channel.parse().map_err(|_| format!("`{channel}` is no channel"))?;
                (Stream::Channel(channel), rest)
            }
            _ => (Stream::Feed, rest),
        };
        let value = rest.strip_prefix(':').map(str::trim);
        match (word, value) {
            ("test", Some(kinds)) => {
                for kind in kinds.split(',') {
                    self.kinds.push(match kind.trim() {
                        "interpret" => Kind::Interpret,
                        "verify" => Kind::Verify,
                        "print" => Kind::Print,
                        other => return Err(format!("there is no test `{other}`")),
                    });
                }
            }
            ("run", Some(run)) => self.runs.push(parse_run(run, line)?),
            ("accumulate", Some("region")) => self.region = true,
            ("accumulate", Some("exact")) => self.region = false,
            ("origin", Some(names)) => {
                self.origin = names.split(',').map(Origin::read).collect::<Result<_, _>>()?;
            }
            ("nan-bits", Some("true")) => self.nan_bits = true,
            ("fuel", Some(n)) => self.fuel = Some(n.parse().map_err(|_| format!("`{n}` is not a number"))?),
            ("replicas", Some(n)) => self.replicas = Some(number(n)?),
            ("partitions", Some(n)) => self.partitions = Some(number(n)?),
            ("repeat", Some(n)) => self.repeat = Some(number(n)?),
            ("infeed", Some(values)) => self.infeed.push((stream, split_devices(values))),
            ("outfeed", Some(values)) => self.outfeed.push((stream, split_devices(values))),
            ("memory", Some(n)) => self.memory = Some(parse_bytes(n)?),
            ("error", None) => self.errors.push(error_directive(comment, None)?),
            _ => return Err(format!("unknown directive `{comment}`")),
        }
        Ok(())
    }
}

/// `error[CODE]: TEXT` at the end of a line, `error[CODE] anywhere: TEXT` in a line of its own.
fn error_directive(text: &str, line: Option<usize>) -> Result<ExpectedError, String> {
    let bad = || format!("`{text}` is not `error[CODE]: TEXT`");
    let (code, rest) = text.strip_prefix("error[").and_then(|r| r.split_once(']')).ok_or_else(bad)?;
    let message = match line {
        Some(_) => rest.strip_prefix(':'),
        None => rest.trim_start().strip_prefix("anywhere:"),
    };
    let message = message.ok_or_else(bad)?.trim();
    if message.is_empty() {
        return Err("an error needs some of its text".into());
    }
    Ok(ExpectedError { code: code.to_owned(), line, text: message.to_owned() })
}

/// `e([1, 2], 3) == [4] ~ulp(1)` or `e() fails[R0001]: out of fuel`.
fn parse_run(text: &str, line: usize) -> Result<Run, String> {
    let bad = |what: &str| format!("`{text}`: {what}");
    let (entry, rest) = text.split_once('(').ok_or_else(|| bad("expected e(ARGUMENTS)"))?;
    let close = matching(rest).ok_or_else(|| bad("the arguments are not closed"))?;
    let arguments = split_devices(&rest[..close]);
    let rest = rest[close + 1..].trim();
    let expectation = if let Some(results) = rest.strip_prefix("==") {
        let (results, ulp) = match results.rsplit_once("~ulp(") {
            Some((r, n)) => {
                let n = n.trim().strip_suffix(')').and_then(|n| n.parse().ok());
                (r, Some(n.ok_or_else(|| bad("expected ~ulp(N)"))?))
            }
            None => (results, None),
        };
        Expectation::Results { values: split_devices(results), ulp }
    } else if let Some(fails) = rest.strip_prefix("fails[") {
        let (code, message) = fails.split_once("]:").ok_or_else(|| bad("expected fails[CODE]: TEXT"))?;
        Expectation::Fails { code: code.to_owned(), text: message.trim().to_owned() }
    } else {
        return Err(bad("expected == or fails[CODE]:"));
    };
    Ok(Run { line, entry: entry.trim().to_owned(), arguments, expectation })
}

/// The position of the parenthesis that closes one before the text.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' if depth == 0 => return Some(i),
            ')' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Values separated by commas outside brackets.
pub(super) fn split_values(text: &str) -> Vec<String> {
    let mut values: Vec<String> = split(text, ',').into_iter().map(str::to_owned).collect();
    if values.last().is_some_and(String::is_empty) {
        values.pop();
    }
    values
}

/// The values of each device, separated by `|`.
fn split_devices(text: &str) -> Vec<Vec<String>> {
    split(text, '|').into_iter().map(split_values).collect()
}

/// The parts between separators outside of brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        let run = parse_run("e([1, (2, 3)], 4) == [5], [[6], [7]] ~ulp(2)", 3).unwrap();
        assert_eq!(run.arguments, [["[1, (2, 3)]", "4"]]);
        assert_eq!(
            run.expectation,
            Expectation::Results { values: vec![vec!["[5]".into(), "[[6], [7]]".into()]], ulp: Some(2) }
        );
        let run = parse_run("e([1], 2 | [3], 4) == 5 | 6", 3).unwrap();
        assert_eq!(run.arguments, [["[1]", "2"], ["[3]", "4"]]);
        let values = vec![vec!["5".into()], vec!["6".into()]];
        assert_eq!(run.expectation, Expectation::Results { values, ulp: None });
        let run = parse_run("main() fails[R0001]: out of fuel", 3).unwrap();
        assert_eq!(run.expectation, Expectation::Fails { code: "R0001".into(), text: "out of fuel".into() });
        for bad in ["e", "e(1", "e(1) = 2", "e(1) == 2 ~ulp(x)", "e() fails: x"] {
            assert!(parse_run(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_directives_are_errors() {
        assert!(parse("// tset: verify\n", 1).unwrap_err().starts_with("line 1: unknown directive"));
        assert!(parse("// test: verify\n// origin: me\n", 1).unwrap_err().contains("`me` is no origin"));
        assert!(parse("// test: verfy\n", 1).unwrap_err().contains("no test `verfy`"));
        assert!(
            parse("// only prose: and a colon later, which is no directive\n// test: verify\n", 1).is_ok()
        );
        assert_eq!(parse("HloModule m\n", 1).unwrap_err(), "no `// test:` directive");
    }

    #[test]
    fn errors_belong_to_their_lines() {
        let spec = parse(
            "// test: verify\nHloModule m\nx // error[V0001]: two operands\n// error[P0009] anywhere: x\n",
            11,
        )
        .unwrap();
        assert_eq!(
            spec.errors[0],
            ExpectedError { code: "V0001".into(), line: Some(13), text: "two operands".into() }
        );
        assert_eq!(spec.errors[1].line, None);
        assert!(
            parse("// test: verify\nx // error[V0001]:\n", 1).is_err(),
            "an error without text matches everything"
        );
    }

    #[test]
    fn sections_end_the_program() {
        let spec =
            parse("// test: print\nHloModule m\n// ---- print short ----\nA\nB\n// ---- canonical\nC\n", 1)
                .unwrap();
        assert_eq!(spec.program, "// test: print\nHloModule m\n");
        let styles: Vec<_> = spec.sections.iter().map(|s| (&*s.style, &*s.body)).collect();
        assert_eq!(styles, [("short", "A\nB\n"), ("canonical", "C\n")]);
    }
}
