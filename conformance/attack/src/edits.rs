//! Edits of HLO text that know its structure: operands, shapes, layouts, attributes, instructions and
//! computations are changed into others of their kind, mostly into such that no compiler ever wrote.
//!
//! They work on text, not on modules, so that what they make need not be representable, let alone verify.

use std::ops::Range;

use crate::random::Random;

/// Values at the ends of what numbers can hold, and just behind.
pub(crate) const EXTREMES: &[&str] = &[
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "64",
    "1000",
    "65536",
    "1000003",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "1099511627776",
    "9007199254740993",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
];

const ELEMENT_TYPES: &[&str] = &[
    "pred",
    "s1",
    "s2",
    "s4",
    "s8",
    "s16",
    "s32",
    "s64",
    "u1",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "c64",
    "c128",
    "f8e4m3fn",
    "f8e4m3",
    "f8e5m2",
    "f8e4m3fnuz",
    "f8e5m2fnuz",
    "f8e4m3b11fnuz",
    "f8e3m4",
    "f8e8m0fnu",
    "f4e2m1fn",
    "f6e2m3fn",
    "f6e3m2fn",
    "token",
    "opaque",
];

const LITERALS: &[&str] = &[
    "-1",
    "0",
    "1",
    "-0",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "true",
    "false",
    "127",
    "-128",
    "255",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e-320",
    "3.4e38",
    "(1, -inf)",
    "{}",
    "{1, 2}",
    "1e9999",
    "...",
    "{...}",
];

/// The parts of the line of an instruction, as ranges in it.
#[derive(Clone, Debug)]
struct Line {
    name: Range<usize>,
    /// Empty where no shape is written.
    shape: Range<usize>,
    opcode: Range<usize>,
    /// The text between the parentheses.
    operands: Range<usize>,
    /// The text behind them.
    attributes: Range<usize>,
}

/// The end of what the bracket at `start` opens, behind its closing one.
fn closed(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in text[start..].char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(start + i + c.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

fn instruction(line: &str) -> Option<Line> {
    let equals = line.find(" = ")?;
    let written = line[..equals].trim_start();
    let name = written.strip_prefix("ROOT ").unwrap_or(written);
    if name.is_empty() || name.contains([' ', '(', '{']) {
        return None;
    }
    let name_start = equals - name.len();
    let rest = equals + 3;
    let behind_shape = if line[rest..].starts_with('(') {
        closed(line, rest)? + 1
    } else {
        let word = line[rest..].find(' ').map_or(line.len(), |n| rest + n + 1);
        let parenthesis = rest + line[rest..].find('(')?;
        if word > parenthesis { rest } else { word }
    };
    let open = behind_shape + line.get(behind_shape..)?.find('(')?;
    let close = closed(line, open)?;
    Some(Line {
        name: name_start..equals,
        shape: rest..behind_shape.saturating_sub(1).max(rest),
        opcode: behind_shape..open,
        operands: open + 1..close - 1,
        attributes: close..line.len(),
    })
}

/// The parts of a list that commas part, outside of brackets and strings.
fn parts(text: &str, within: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut quoted) = (0i32, within.start, false);
    for (i, c) in text[within.clone()].char_indices() {
        let here = within.start + i;
        match c {
            '"' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                found.push(start..here);
                start = here + 1;
            }
            _ => {}
        }
    }
    if start < within.end {
        found.push(start..within.end);
    }
    found
}

/// The numbers in a part of a text that are no part of words.
pub fn numbers(text: &str, within: &Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut i = within.start;
    while i < within.end {
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'%';
        if bytes[i].is_ascii_digit() {
            let start = i;
            while i < within.end && bytes[i].is_ascii_digit() {
                i += 1;
            }
            // `1_1`, `0:4` and `3x3` of paddings, slices and windows are numbers, too; `add.1` is a word.
            let in_word = start > within.start
                && (bytes[start - 1].is_ascii_alphabetic() && bytes[start - 1] != b'x'
                    || bytes[start - 1] == b'.');
            if !in_word {
                let signed = start > within.start && bytes[start - 1] == b'-';
                found.push(start - usize::from(signed)..i);
            }
        } else if word(bytes[i]) && bytes[i] != b'_' {
            while i < within.end
                && word(bytes[i])
                && !(bytes[i] == b'x' && bytes.get(i + 1).is_some_and(u8::is_ascii_digit))
            {
                i += 1;
            }
            i += usize::from(i < within.end);
        } else {
            i += 1;
        }
    }
    found
}

/// A text being changed.
struct Editor<'a> {
    random: &'a mut Random,
    lines: Vec<String>,
    donors: &'a [String],
}

impl Editor<'_> {
    fn instructions(&self) -> Vec<(usize, Line)> {
        self.lines.iter().enumerate().filter_map(|(i, l)| Some((i, instruction(l)?))).collect()
    }

    fn site(&mut self, wanted: impl Fn(&str, &Line) -> bool) -> Option<(usize, Line)> {
        let mut all = self.instructions();
        all.retain(|(i, line)| wanted(&self.lines[*i], line));
        let i = self.random.index(&all)?;
        Some(all.swap_remove(i))
    }

    fn replace(&mut self, i: usize, range: Range<usize>, with: &str) {
        self.lines[i].replace_range(range, with);
    }

    fn extreme(&mut self, old: &str) -> String {
        let near = old.parse::<i64>().unwrap_or(1);
        match self.random.below(4) {
            0 => near.wrapping_add(1).to_string(),
            1 => near.wrapping_sub(1).to_string(),
            _ => EXTREMES[self.random.below(EXTREMES.len())].to_owned(),
        }
    }

    fn swap_operands(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| parts(t, &l.operands).len() >= 2)?;
        let of = parts(&self.lines[i], &line.operands);
        let (a, b) = (self.random.below(of.len()), self.random.below(of.len()));
        let (a, b) = (a.min(b), a.max(b));
        if a == b {
            return None;
        }
        let (first, second) =
            (self.lines[i][of[a].clone()].to_owned(), self.lines[i][of[b].clone()].to_owned());
        self.replace(i, of[b].clone(), &first);
        self.replace(i, of[a].clone(), &second);
        Some(())
    }

    /// The name of any instruction, mostly of the same computation.
    fn any_name(&mut self, near: usize) -> Option<String> {
        let all = self.instructions();
        let close: Vec<_> = all.iter().filter(|(i, _)| i.abs_diff(near) < 12).collect();
        let (i, line) = if close.is_empty() || self.random.one_in(6) {
            &all[self.random.index(&all)?]
        } else {
            close[self.random.below(close.len())]
        };
        Some(self.lines[*i][line.name.clone()].to_owned())
    }

    fn other_operand(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| !parts(t, &l.operands).is_empty())?;
        let of = parts(&self.lines[i], &line.operands);
        let at = of[self.random.below(of.len())].clone();
        let name = self.any_name(i)?;
        self.replace(i, at, &format!(" {name}"));
        Some(())
    }

    fn arity(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| !t[l.opcode.clone()].contains("constant"))?;
        let of = parts(&self.lines[i], &line.operands);
        if !of.is_empty() && self.random.one_in(2) {
            let k = self.random.below(of.len());
            let kept: Vec<&str> = of
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != k)
                .map(|(_, r)| &self.lines[i][r.clone()])
                .collect();
            let text = kept.join(",");
            self.replace(i, line.operands, &text);
        } else {
            let name = self.any_name(i)?;
            let comma = if of.is_empty() { "" } else { ", " };
            self.lines[i].insert_str(line.operands.end, &format!("{comma}{name}"));
        }
        Some(())
    }

    /// Another element type of one shape.
    fn element_type(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.shape.clone()].contains('['))?;
        let shape = self.lines[i][line.shape.clone()].to_owned();
        let opens: Vec<usize> = shape.match_indices('[').map(|(n, _)| n).collect();
        let open = opens[self.random.index(&opens)?];
        let start = shape[..open].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |n| n + 1);
        let ty = ELEMENT_TYPES[self.random.below(ELEMENT_TYPES.len())];
        self.replace(i, line.shape.start + start..line.shape.start + open, ty);
        Some(())
    }

    /// Replaces an element type by another one, at every occurrence.
    fn element_type_everywhere(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.shape.clone()].contains('['))?;
        let shape = &self.lines[i][line.shape];
        let old = shape[..shape.find('[')?].trim_start_matches('(').to_owned() + "[";
        let new = ELEMENT_TYPES[self.random.below(ELEMENT_TYPES.len())].to_owned() + "[";
        for line in &mut self.lines {
            // `bf16[` has `f16[` in it.
            let mut from = 0;
            while let Some(n) = line[from..].find(&old).map(|n| n + from) {
                if n > 0 && line.as_bytes()[n - 1].is_ascii_alphanumeric() {
                    from = n + old.len();
                } else {
                    line.replace_range(n..n + old.len(), &new);
                    from = n + new.len();
                }
            }
        }
        Some(())
    }

    fn dimension(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| !numbers(t, &l.shape).is_empty())?;
        let all = numbers(&self.lines[i], &line.shape);
        let at = all[self.random.below(all.len())].clone();
        let new = match self.random.below(8) {
            0 => "<=4".to_owned(),
            1 => "?".to_owned(),
            2 => "<=?".to_owned(),
            _ => {
                let old = self.lines[i][at.clone()].to_owned();
                self.extreme(&old)
            }
        };
        self.replace(i, at, &new);
        Some(())
    }

    /// Replaces a number by another one, at every occurrence.
    fn dimension_everywhere(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| !numbers(t, &l.shape).is_empty())?;
        let all = numbers(&self.lines[i], &line.shape);
        let old = self.lines[i][all[self.random.below(all.len())].clone()].to_owned();
        let new = match self.random.below(3) {
            0 => ["0", "1", "2", "3", "5", "8", "17", "33", "64", "100", "129"][self.random.below(11)]
                .to_owned(),
            1 => self.extreme(&old),
            _ => ["0", "1", "4096", "70000"][self.random.below(4)].to_owned(),
        };
        let window = if self.random.one_in(2) { ',' } else { ']' };
        for line in &mut self.lines {
            for range in numbers(line, &(0..line.len())).into_iter().rev() {
                let next = line[range.end..].chars().next();
                let is_size = matches!(next, Some(',' | ']' | 'x' | '}')) || next == Some(window);
                if line[range.clone()] == *old && is_size {
                    line.replace_range(range, &new);
                }
            }
        }
        Some(())
    }

    fn rank(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.shape.clone()].contains('['))?;
        let open = line.shape.start + self.lines[i][line.shape.clone()].find('[')?;
        let close = closed(&self.lines[i], open)?;
        let dims = &self.lines[i][open + 1..close - 1];
        let new = match self.random.below(4) {
            0 => String::new(),
            1 => format!("1,{dims}"),
            2 => format!("{dims},2"),
            _ => dims.split_once(',').map_or_else(String::new, |(_, rest)| rest.to_owned()),
        };
        self.replace(i, open + 1..close - 1, new.trim_matches(','));
        Some(())
    }

    fn layout(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.shape.clone()].contains(']'))?;
        let shape = &self.lines[i][line.shape.clone()];
        let closes: Vec<usize> = shape.match_indices(']').map(|(n, _)| n + 1).collect();
        let at = closes[self.random.index(&closes)?];
        let end = if shape[at..].starts_with('{') { closed(shape, at).unwrap_or(at) } else { at };
        let layouts = [
            "",
            "{}",
            "{0}",
            "{1,0}",
            "{0,1}",
            "{2,1,0}",
            "{0,1,2}",
            "{3,2,1,0}",
            "{0,0}",
            "{-1}",
            "{9223372036854775807}",
            "{1,0:T(8,128)}",
            "{1,0:T(2,2)(2,1)}",
            "{0:T(9223372036854775807)}",
            "{1,0:T(0,0)}",
            "{1,0:E(4)}",
            "{1,0:E(63)}",
            "{0:S(5)}",
            "{1,0:S(9223372036854775807)}",
            "{0:M(9223372036854775807)}",
            "{1,0:D(S,C)}",
            "{0:T(-1)}",
            "{1,0:T(*,2)}",
        ];
        let new = layouts[self.random.below(layouts.len())];
        self.replace(i, line.shape.start + at..line.shape.start + end, new);
        Some(())
    }

    fn attribute_number(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| !numbers(t, &l.attributes).is_empty())?;
        let all = numbers(&self.lines[i], &line.attributes);
        let at = all[self.random.below(all.len())].clone();
        let old = self.lines[i][at.clone()].to_owned();
        let new = self.extreme(&old);
        self.replace(i, at, &new);
        Some(())
    }

    fn delete_attribute(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| parts(t, &l.attributes).len() >= 2)?;
        let of = parts(&self.lines[i], &line.attributes);
        let at = of[1 + self.random.below(of.len() - 1)].clone();
        self.replace(i, at.start - 1..at.end, "");
        Some(())
    }

    /// An attribute of another instruction, of this or another program.
    fn foreign_attribute(&mut self) -> Option<()> {
        let donor = if self.random.one_in(2) || self.donors.is_empty() {
            self.lines.clone()
        } else {
            self.donors[self.random.below(self.donors.len())].lines().map(str::to_owned).collect()
        };
        let attributes: Vec<String> = donor
            .iter()
            .filter_map(|l| Some((l, instruction(l)?)))
            .flat_map(|(l, line)| {
                parts(l, &line.attributes)
                    .into_iter()
                    .skip(1)
                    .map(|r| l[r].trim().to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        let new = attributes[self.random.index(&attributes)?].clone();
        let key = new.split('=').next()?.to_owned() + "=";
        let same = self.site(|t, l| t[l.attributes.clone()].contains(&key));
        let (i, line) = match same {
            Some(found) if !self.random.one_in(4) => found,
            _ => self.site(|_, _| true)?,
        };
        let of = parts(&self.lines[i], &line.attributes);
        match of.into_iter().find(|r| self.lines[i][r.clone()].trim_start().starts_with(&key)) {
            Some(old) => self.replace(i, old, &format!(" {new}")),
            None => {
                let comma = if self.lines[i][line.attributes.clone()].is_empty() { ", " } else { "" };
                self.lines[i]
                    .insert_str(line.attributes.start, &format!("{comma}, {new}").replace(", , ", ", "));
            }
        }
        Some(())
    }

    /// More or fewer elements in a list.
    fn list(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.attributes.clone()].contains('{'))?;
        let text = self.lines[i].clone();
        let opens: Vec<usize> = text[line.attributes.clone()]
            .match_indices('{')
            .map(|(n, _)| n + line.attributes.start)
            .collect();
        let open = opens[self.random.index(&opens)?];
        let inner = open + 1..closed(&text, open)? - 1;
        let of = parts(&text, &inner);
        let new = match (self.random.below(4), self.random.index(&of)) {
            (0, _) => String::new(),
            (1, Some(k)) => {
                let kept: Vec<&str> =
                    of.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, r)| &text[r.clone()]).collect();
                kept.join(",")
            }
            (2, Some(k)) => format!("{},{}", &text[inner.clone()], &text[of[k].clone()]),
            (_, Some(k)) => {
                let mut words: Vec<&str> = of.iter().map(|r| &text[r.clone()]).collect();
                let j = self.random.below(words.len());
                words.swap(k, j);
                words.join(",")
            }
            (_, None) => "0".to_owned(),
        };
        self.replace(i, inner, &new);
        Some(())
    }

    fn opcode(&mut self) -> Option<()> {
        let (i, line) = self.site(|_, _| true)?;
        let donor = if self.random.one_in(2) || self.donors.is_empty() {
            self.lines.clone()
        } else {
            self.donors[self.random.below(self.donors.len())].lines().map(str::to_owned).collect()
        };
        let arity = parts(&self.lines[i], &line.operands).len();
        let opcodes: Vec<String> = donor
            .iter()
            .filter_map(|l| Some((l, instruction(l)?)))
            .filter(|(l, other)| parts(l, &other.operands).len() == arity)
            .map(|(l, other)| l[other.opcode].to_owned())
            .collect();
        let new = opcodes[self.random.index(&opcodes)?].clone();
        self.replace(i, line.opcode, &new);
        Some(())
    }

    fn delete(&mut self) -> Option<()> {
        let (i, _) = self.site(|_, _| true)?;
        self.lines.remove(i);
        Some(())
    }

    fn duplicate(&mut self) -> Option<()> {
        let (i, line) = self.site(|_, _| true)?;
        let mut copy = self.lines[i].clone();
        if !self.random.one_in(4) {
            copy.insert_str(line.name.end, "_again");
            copy = copy.replacen("ROOT ", "", 1);
        }
        self.lines.insert(i, copy);
        Some(())
    }

    fn exchange(&mut self) -> Option<()> {
        let (i, _) = self.site(|_, _| true)?;
        let (j, _) = self.site(|_, _| true)?;
        self.lines.swap(i, j);
        Some(())
    }

    fn root(&mut self) -> Option<()> {
        let (i, _) = self.site(|t, _| !t.contains("ROOT "))?;
        let old = (i..self.lines.len()).find(|&j| self.lines[j].contains("ROOT "))?;
        self.lines[old] = self.lines[old].replacen("ROOT ", "", 1);
        let indent = self.lines[i].len() - self.lines[i].trim_start().len();
        self.lines[i].insert_str(indent, "ROOT ");
        Some(())
    }

    /// Replaces a computation that is called by another one.
    fn region(&mut self) -> Option<()> {
        let keys = [
            "to_apply=",
            "calls=",
            "condition=",
            "body=",
            "select=",
            "scatter=",
            "true_computation=",
            "false_computation=",
        ];
        let (i, line) = self.site(|t, l| keys.iter().any(|k| t[l.attributes.clone()].contains(k)))?;
        let text = &self.lines[i];
        let found: Vec<Range<usize>> = keys
            .iter()
            .filter_map(|k| {
                let start = line.attributes.start + text[line.attributes.clone()].find(k)? + k.len();
                let end = text[start..].find([',', ' ', '}']).map_or(text.len(), |n| start + n);
                Some(start..end)
            })
            .collect();
        let names: Vec<String> = self
            .lines
            .iter()
            .filter(|l| l.ends_with('{') && !l.starts_with(' ') && !l.starts_with("HloModule"))
            .filter_map(|l| l.trim_start_matches("ENTRY ").split([' ', '(', '{']).next().map(str::to_owned))
            .collect();
        let at = found[self.random.index(&found)?].clone();
        let new = names[self.random.index(&names)?].clone();
        self.replace(i, at, &new);
        Some(())
    }

    fn literal(&mut self) -> Option<()> {
        let (i, line) = self.site(|t, l| t[l.opcode.clone()].trim() == "constant")?;
        let new = LITERALS[self.random.below(LITERALS.len())];
        if self.random.one_in(2) {
            self.replace(i, line.operands, new);
        } else {
            let all = numbers(&self.lines[i], &line.operands);
            let at = all[self.random.index(&all)?].clone();
            self.replace(i, at, new);
        }
        Some(())
    }

    fn undeclare(&mut self) -> Option<()> {
        let (i, line) = self.site(|_, l| !l.shape.is_empty())?;
        self.replace(i, line.shape.start..line.opcode.start, "");
        Some(())
    }

    fn shape_of_another(&mut self) -> Option<()> {
        let (i, line) = self.site(|_, l| !l.shape.is_empty())?;
        let (j, other) = self.site(|_, l| !l.shape.is_empty())?;
        let new = self.lines[j][other.shape].to_owned();
        self.replace(i, line.shape, &new);
        Some(())
    }

    fn header(&mut self) -> Option<()> {
        let i = self.lines.iter().position(|l| l.starts_with("HloModule"))?;
        let all = numbers(&self.lines[i], &(0..self.lines[i].len()));
        if let Some(k) = self.random.index(&all)
            && self.random.one_in(2)
        {
            let at = all[k].clone();
            let old = self.lines[i][at.clone()].to_owned();
            let new = self.extreme(&old);
            self.replace(i, at, &new);
            return Some(());
        }
        let headers = [
            "replica_count=2",
            "replica_count=0",
            "replica_count=-1",
            "replica_count=4294967296",
            "num_partitions=2",
            "num_partitions=9223372036854775807",
            "is_scheduled=true",
            "alias_passthrough_params=true",
            "allow_spmd_sharding_propagation_to_output={true}",
            "input_output_alias={ {}: (0, {}, may-alias) }",
            "input_output_alias={ {0}: (1, {}, must-alias) }",
            "input_output_alias={ {9223372036854775807}: (9223372036854775807, {-1}) }",
            "buffer_donor={ (0, {}) }",
            "buffer_donor={ (-1, {0}) }",
            "entry_computation_layout={(f32[2]{0})->f32[2]{0}}",
            "replica_count=3, num_partitions=5",
        ];
        let new = headers[self.random.below(headers.len())];
        self.lines[i].push_str(&format!(", {new}"));
        Some(())
    }

    fn bytes(&mut self) -> Option<()> {
        let i = self.random.index(&self.lines)?;
        let at = self.random.below(self.lines[i].len() + 1);
        if !self.lines[i].is_char_boundary(at) {
            return None;
        }
        match self.random.below(4) {
            0 => self.lines[i].truncate(at),
            1 => {
                let c = ['{', '}', '(', ')', ',', '=', '"', '\u{e9}', '\0', '-', '/', '%', '[']
                    [self.random.below(13)];
                self.lines[i].insert(at, c);
            }
            2 => {
                let end = (at + self.random.below(6)).min(self.lines[i].len());
                if self.lines[i].is_char_boundary(end) {
                    self.lines[i].replace_range(at..end, "");
                }
            }
            _ => self.lines.truncate(i),
        }
        Some(())
    }
}

type Edit = fn(&mut Editor<'_>) -> Option<()>;

/// The edits: weight, name, what they do.
const EDITS: &[(usize, &str, Edit)] = &[
    (3, "swap operands", |e| e.swap_operands()),
    (4, "other operand", |e| e.other_operand()),
    (2, "arity", |e| e.arity()),
    (3, "element type", |e| e.element_type()),
    (8, "element type everywhere", |e| e.element_type_everywhere()),
    (3, "dimension", |e| e.dimension()),
    (8, "dimension everywhere", |e| e.dimension_everywhere()),
    (2, "rank", |e| e.rank()),
    (3, "layout", |e| e.layout()),
    (12, "number of an attribute", |e| e.attribute_number()),
    (2, "delete an attribute", |e| e.delete_attribute()),
    (5, "attribute of another", |e| e.foreign_attribute()),
    (4, "list", |e| e.list()),
    (4, "opcode", |e| e.opcode()),
    (2, "delete", |e| e.delete()),
    (2, "duplicate", |e| e.duplicate()),
    (1, "exchange", |e| e.exchange()),
    (2, "root", |e| e.root()),
    (4, "region", |e| e.region()),
    (5, "literal", |e| e.literal()),
    (4, "undeclare", |e| e.undeclare()),
    (3, "shape of another", |e| e.shape_of_another()),
    (2, "header", |e| e.header()),
    (1, "bytes", |e| e.bytes()),
];

/// A mutant of a text, and the edits that made it.
pub(crate) fn mutant(text: &str, donors: &[String], random: &mut Random) -> (String, Vec<&'static str>) {
    let mut editor = Editor { lines: text.lines().map(str::to_owned).collect(), donors, random };
    let wanted = 1 + [0, 0, 0, 1, 1, 2, 4][editor.random.below(7)];
    let total: usize = EDITS.iter().map(|e| e.0).sum();
    let mut steps = Vec::new();
    for _ in 0..4 * wanted {
        if steps.len() == wanted {
            break;
        }
        let mut at = editor.random.below(total);
        let edit = EDITS.iter().find(|(weight, ..)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        if let Some((_, name, edit)) = edit
            && edit(&mut editor).is_some()
        {
            steps.push(*name);
        }
    }
    (editor.lines.join("\n") + "\n", steps)
}
