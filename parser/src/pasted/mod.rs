//! Programs as people paste them: out of logs, terminals, issues in Markdown, diffs, web pages and source
//! files.
//!
//! **Invariants:** a text that parses as it is is taken as it is; everything here is asked only where that
//! failed. What is left out or replaced is said in a warning, and every span in a diagnostic or in the module
//! is one of the text that was pasted.

mod lines;
mod mapped;

use std::ops::Range;

use hlo::diag::Diagnostic;
use hlo::diag::codes::OUT_OF_MEMORY;
use hlo::diag::codes::parse as codes;
use hlo::{Diagnostics, Module, Span};

use crate::{ParseOptions, Parsed, parse_module};
use lines::{Prefix, entry_in, header_in, is_hlo, is_message, lines, name_of};
use mapped::{Mapped, Rewriter};

/// Which of several modules of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Counted from 1.
    Number(usize),
    /// By its name.
    Name(String),
}

impl std::str::FromStr for Pick {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Pick::Name(text.to_owned()), Pick::Number))
    }
}

/// Parses the text of one module as people paste it, or one of several. Spans are byte offsets in `text`.
pub fn parse_pasted(text: &str, options: &ParseOptions, pick: Option<&Pick>) -> Parsed {
    let plain = if pick.is_none() {
        let plain = parse_module(text, options);
        if plain.module.is_some() || u32::try_from(text.len()).is_err() {
            return plain;
        }
        // What is too much for itself is too much with copies of it.
        let copies = (text.len() as u64).saturating_mul(3);
        if plain.diagnostics.iter().any(|d| d.code == OUT_OF_MEMORY) || copies > options.memory_bytes {
            return plain;
        }
        Some(plain)
    } else {
        None
    };
    let Cleaned { mapped, left_out, certain } = clean(text);
    let headers = headers(&mapped.text);
    let range = match select(&headers, mapped.text.len(), pick) {
        Ok(range) => range,
        Err(diagnostic) => {
            let mut diagnostics = Diagnostics::from(*diagnostic);
            locate(&mut diagnostics, &mapped, text);
            return Parsed { module: None, diagnostics };
        }
    };
    if let Some(plain) = &plain
        && left_out.is_empty()
    {
        return plain.clone();
    }
    let chosen = (headers.len() > 1).then(|| part(&mapped, range));
    let mapped = chosen.unwrap_or(mapped);
    let Parsed { mut module, mut diagnostics } = parse_module(&mapped.text, options);
    if let (Some(plain), None, false) = (plain, &module, certain)
        && plain.diagnostics.error_count() < diagnostics.error_count()
    {
        return plain;
    }
    locate(&mut diagnostics, &mapped, text);
    if let Some(module) = &mut module {
        locate_module(module, &mapped, text);
    }
    if !left_out.is_empty() {
        let message = format!("read as pasted text: {}", left_out.join("; "));
        diagnostics.push(Diagnostic::warning(codes::PASTED_TEXT, Span::NONE, message));
    }
    Parsed { module, diagnostics }
}

/// The names of the modules of a text, in order; those of a text without headers have none.
pub fn module_names(text: &str) -> Vec<String> {
    let cleaned = clean(text).mapped.text;
    headers(&cleaned).into_iter().map(|h| h.name).collect()
}

/// A module's header in a cleaned text.
struct Header {
    at: usize,
    name: String,
}

fn headers(text: &str) -> Vec<Header> {
    lines(text)
        .filter_map(|line| {
            let trimmed = text[line.clone()].trim_start();
            let at = line.end - trimmed.len();
            (trimmed.starts_with("HloModule") && header_in(trimmed) == Some(0))
                .then(|| Header { at, name: name_of(trimmed).to_owned() })
        })
        .collect()
}

/// The part of the text that is the module. Errors: there are several and none is chosen, or none such is
/// there.
fn select(headers: &[Header], end: usize, pick: Option<&Pick>) -> Result<Range<usize>, Box<Diagnostic>> {
    let names = || {
        let named = headers.iter().enumerate().map(|(i, h)| format!("{} {}", i + 1, h.name));
        let mut names: Vec<String> = named.take(8).collect();
        if headers.len() > names.len() {
            names.push("...".to_owned());
        }
        names.join(", ")
    };
    let part = |i: usize| headers[i].at..headers.get(i + 1).map_or(end, |next| next.at);
    let word = |i: usize| {
        let at = headers.get(i).map_or(0, |h| h.at);
        Span::new(at, (at + "HloModule".len()).min(end))
    };
    let missing = |what: String| {
        let message =
            format!("there is no module {what} in the text, which holds {}", counted(headers.len()));
        let d = Diagnostic::error(codes::SEVERAL_MODULES, word(0), message);
        Err(Box::new(if headers.is_empty() { d } else { d.note(format!("they are: {}", names())) }))
    };
    match pick {
        None if headers.len() > 1 => {
            let message = format!("the text holds {}", counted(headers.len()));
            let d = Diagnostic::error(codes::SEVERAL_MODULES, word(1), message).label("the second one");
            let d = d.related(word(0), "the first one");
            Err(Box::new(d.note(format!("`--module N` or `--module NAME` chooses one of: {}", names()))))
        }
        None => Ok(0..end),
        Some(Pick::Number(1)) if headers.is_empty() => Ok(0..end),
        Some(Pick::Number(n)) => match n.checked_sub(1).filter(|&i| i < headers.len()) {
            Some(i) => Ok(part(i)),
            None => missing(n.to_string()),
        },
        Some(Pick::Name(name)) => match headers.iter().position(|h| h.name == *name) {
            Some(i) => Ok(part(i)),
            None => missing(format!("`{name}`")),
        },
    }
}

fn counted(modules: usize) -> String {
    format!("{modules} module{}", if modules == 1 { "" } else { "s" })
}

fn locate(diagnostics: &mut Diagnostics, mapped: &Mapped, text: &str) {
    for d in diagnostics.iter_mut() {
        d.span = mapped.span(d.span, text);
        for (span, _) in &mut d.related {
            *span = mapped.span(*span, text);
        }
    }
}

fn locate_module(module: &mut Module, mapped: &Mapped, text: &str) {
    for c in module.computations().to_vec() {
        module.computation_mut(c).span = mapped.span(module.computation(c).span, text);
        for id in module.instructions(c).collect::<Vec<_>>() {
            module.instr_mut(id).span = mapped.span(module.instr(id).span, text);
        }
    }
}

fn part(mapped: &Mapped, range: Range<usize>) -> Mapped {
    let mut rewriter = Rewriter::new(mapped);
    rewriter.skip_to(range.start);
    rewriter.keep_to(range.end);
    rewriter.end()
}

/// A text without what surrounds its program.
struct Cleaned {
    mapped: Mapped,
    /// What was left out or replaced, a phrase each.
    left_out: Vec<String>,
    /// Something surrounds a program, and is no mistake in one.
    certain: bool,
}

/// A stage that is tried: what it makes of a text, if it applies.
type Try = fn(&Mapped) -> Option<Stage>;

fn clean(text: &str) -> Cleaned {
    let mut cleaned = Cleaned { mapped: Mapped::same(text), left_out: Vec::new(), certain: false };
    let stages: [(Try, bool); 8] = [
        (characters, false),
        (tags, true),
        (entities, false),
        (escapes, true),
        (fences, true),
        (difference, true),
        (prefixes, true),
        (comments, false),
    ];
    for (stage, certain) in stages {
        cleaned.apply(stage(&cleaned.mapped), certain);
    }
    let pasted = cleaned.certain;
    cleaned.apply(prose(&cleaned.mapped, pasted), true);
    cleaned
}

impl Cleaned {
    fn apply(&mut self, stage: Option<Stage>, certain: bool) {
        if let Some((mapped, what)) = stage {
            self.mapped = mapped;
            self.left_out.push(what);
            self.certain |= certain;
        }
    }
}

/// What a stage made, and what it did.
type Stage = (Mapped, String);

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What stands for a character that word processors, web pages and terminals put into text.
fn plain_character(c: char) -> Option<&'static str> {
    match c {
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' | '\u{ff02}' => Some("\""),
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => Some("'"),
        '\u{2010}'..='\u{2013}' | '\u{2212}' => Some("-"),
        '\u{a0}'
        | '\u{2000}'..='\u{200a}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{3000}'
        | '\u{2028}'
        | '\u{2029}' => Some(" "),
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => Some(""),
        _ => None,
    }
}

/// Colour codes, typographic quotes, blanks that are no spaces, marks without width.
fn characters(from: &Mapped) -> Option<Stage> {
    let text = &from.text;
    if text.is_ascii() && !text.contains('\u{1b}') {
        return None;
    }
    let mut rewriter = Rewriter::new(from);
    let (mut colours, mut replaced) = (0, 0);
    for (at, c) in text.char_indices() {
        if c == '\u{1b}' {
            colours += 1;
            rewriter.replace(at..at + escape_length(&text.as_bytes()[at..]), "");
        } else if let Some(plain) = plain_character(c) {
            replaced += 1;
            rewriter.replace(at..at + c.len_utf8(), plain);
        }
    }
    let what = match (colours, replaced) {
        (0, 0) => return None,
        (n, 0) => format!("without {}", plural(n, "terminal code")),
        (0, n) => {
            format!("with {} in plain form (quotes, blanks, dashes)", plural(n, "typographic character"))
        }
        (n, m) => format!(
            "without {}, with {} in plain form",
            plural(n, "terminal code"),
            plural(m, "typographic character")
        ),
    };
    Some((rewriter.finish(), what))
}

/// The length of the terminal's control sequence at the beginning of these bytes: `ESC [ ... letter`, or
/// `ESC` and a character.
fn escape_length(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => {
            let parameters = bytes[2..].iter().take_while(|b| matches!(b, 0x20..=0x3f)).count();
            let last = bytes.get(2 + parameters).is_some_and(|b| matches!(b, 0x40..=0x7e));
            2 + parameters + usize::from(last)
        }
        Some(b) if b.is_ascii() && *b > b' ' => 2,
        Some(_) | None => 1,
    }
}

/// Entities of HTML.
fn entities(from: &Mapped) -> Option<Stage> {
    /// The longest name with its semicolon.
    const LONGEST: usize = 10;
    let text = &from.text;
    let mut rewriter = Rewriter::new(from);
    let mut count = 0;
    for at in memchr::memchr_iter(b'&', text.as_bytes()) {
        let mut end = text.len().min(at + LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let Some(length) = text[at..end].find(';') else { continue };
        let Some(c) = entity(&text[at + 1..at + length]) else { continue };
        let mut buffer = [0; 4];
        rewriter.replace(at..at + length + 1, c.encode_utf8(&mut buffer));
        count += 1;
    }
    (count > 0).then(|| {
        (
            rewriter.finish(),
            format!("with {} decoded", plural(count, "HTML entity").replace("entitys", "entities")),
        )
    })
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
        }
    }
}

/// Tags of HTML that web pages put around code and its lines.
fn tags(from: &Mapped) -> Option<Stage> {
    const NAMES: [&str; 28] = [
        "a",
        "article",
        "blockquote",
        "body",
        "br",
        "code",
        "details",
        "div",
        "em",
        "font",
        "html",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "samp",
        "section",
        "span",
        "strong",
        "summary",
        "table",
        "tbody",
        "td",
        "tr",
        "tt",
        "ul",
        "var",
    ];
    let text = &from.text;
    let mut rewriter = Rewriter::new(from);
    let (mut count, mut closes) = (0, false);
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        let rest = &text[at + 1..];
        let closing = rest.starts_with('/');
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let name = rest.find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest, |end| &rest[..end]);
        let Some(end) = rest.find(['<', '>', '\n']).filter(|&end| rest[end..].starts_with('>')) else {
            continue;
        };
        let attributes = rest[name.len()..end].trim_end_matches('/');
        let known = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
        if !known || !(attributes.trim().is_empty() || attributes.starts_with([' ', '\t'])) {
            continue;
        }
        closes |= closing || name.eq_ignore_ascii_case("br");
        let length = 1 + usize::from(closing) + end + 1;
        rewriter.replace(at..at + length, "");
        count += 1;
    }
    closes.then(|| (rewriter.finish(), format!("without {}", plural(count, "HTML tag"))))
}

/// What escapes in a string of C or Python stand for.
fn decode(rewriter: &mut Rewriter<'_>, text: &str, range: Range<usize>) {
    let mut rest = range.start;
    while let Some(at) = text[rest..range.end].find('\\').map(|i| rest + i) {
        let with = match text.as_bytes().get(at + 1) {
            Some(b'n') => "\n",
            Some(b't') => "\t",
            Some(b'r') => "",
            Some(b'"') => "\"",
            Some(b'\'') => "'",
            Some(b'\\') => "\\",
            Some(_) | None => {
                rest = at + 1;
                continue;
            }
        };
        rewriter.replace(at..at + 2, with);
        rest = at + 2;
    }
}

/// The one line of a string of C or Python, whose line breaks are written as escapes; or a string literal a
/// line.
fn escapes(from: &Mapped) -> Option<Stage> {
    let text = &from.text;
    let header = lines(text).find(|l| header_in(&text[l.clone()]).is_some())?;
    let line = &text[header.clone()];
    if !line.contains("\\n") || line.contains("\\\\n") {
        return None;
    }
    let mut rewriter = Rewriter::new(from);
    let literal = |line: Range<usize>| -> Option<Range<usize>> {
        let shown = &text[line.clone()];
        let start = shown.len() - shown.trim_start().len();
        let end = shown.rfind('"').filter(|&end| end > start)?;
        let alone = shown[end + 1..].trim_matches([' ', '\t', ';', ',', ')', '\\']).is_empty();
        (shown[start..].starts_with('"') && alone).then(|| line.start + start + 1..line.start + end)
    };
    let each =
        literal(header.clone()).filter(|inside| text[inside.clone()].find("\\n") == Some(inside.len() - 2));
    if each.is_some() {
        let mut count = 0;
        for line in lines(text) {
            let Some(inside) = literal(line.clone()) else { continue };
            rewriter.replace(line.start..inside.start, "");
            decode(&mut rewriter, text, inside.clone());
            rewriter.replace(inside.end..line.end, "");
            count += 1;
        }
        return Some((rewriter.finish(), format!("with {} decoded", plural(count, "string literal"))));
    }
    decode(&mut rewriter, text, header);
    Some((rewriter.finish(), "with the escapes of a string decoded".to_owned()))
}

/// The length of what quotes a line in Markdown and in mail: `> `, perhaps several times.
fn quotation(line: &str) -> usize {
    line.len() - line.trim_start_matches(['>', ' ', '\t']).len()
}

/// The blocks between fences of Markdown that hold HLO.
fn fences(from: &Mapped) -> Option<Stage> {
    let text = &from.text;
    if !text.contains("```") && !text.contains("~~~") {
        return None;
    }
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    for line in lines(text) {
        let inside = text[line.clone()].trim_start_matches(['>', ' ', '\t']);
        let mark = ["```", "~~~"].into_iter().find(|mark| inside.starts_with(mark));
        let next = (line.end + 1).min(text.len());
        match (open, mark) {
            (None, Some(mark)) => open = Some((mark, next)),
            (Some((opened, start)), Some(mark)) if opened == mark => {
                blocks.push(start..line.start);
                open = None;
            }
            _ => {}
        }
    }
    blocks.extend(open.map(|(_, start)| start.min(text.len())..text.len()));
    let has = |block: &Range<usize>, what: fn(&str) -> bool| {
        let block = &text[block.clone()];
        lines(block).any(|line| what(&block[line.start + quotation(&block[line.clone()])..line.end]))
    };
    let with_header = |block: &Range<usize>| has(block, |line| header_in(line).is_some());
    let with_hlo = |block: &Range<usize>| has(block, is_hlo);
    let all = blocks.len();
    if blocks.iter().any(with_header) {
        blocks.retain(with_header);
    } else {
        blocks.retain(with_hlo);
    }
    if blocks.is_empty() {
        return None;
    }
    let mut rewriter = Rewriter::new(from);
    for block in &blocks {
        rewriter.skip_to(block.start);
        rewriter.keep_to(block.end);
    }
    let what = format!("{} of {} of Markdown", blocks.len(), plural(all, "fenced block"));
    Some((rewriter.end(), what))
}

/// The newer side of a unified difference.
fn difference(from: &Mapped) -> Option<Stage> {
    const HEADS: [&str; 6] = ["diff --git ", "index ", "--- ", "+++ ", "@@ ", "\\ No newline"];
    let text = &from.text;
    let is_hunk = |line: &str| line.starts_with("@@ -") || line.starts_with("diff --git ");
    let is_added = |line: &str| {
        line.strip_prefix('+')
            .is_some_and(|l| header_in(l.trim_start()) == Some(0) || entry_in(l.trim_start()) == Some(0))
    };
    if !lines(text).any(|l| is_hunk(&text[l.clone()]) || is_added(&text[l])) {
        return None;
    }
    let mut rewriter = Rewriter::new(from);
    for line in lines(text) {
        let shown = &text[line.clone()];
        if HEADS.iter().any(|head| shown.starts_with(head)) || shown.starts_with('-') {
            rewriter.replace(line, "");
        } else if shown.starts_with(['+', ' ']) {
            rewriter.replace(line.start..line.start + 1, "");
        }
    }
    Some((rewriter.finish(), "the newer side of a difference".to_owned()))
}

/// Prefixes of logs, ranks, line numbers and quotations: what stands before the header stands before other
/// lines too, with other numbers.
fn prefixes(from: &Mapped) -> Option<Stage> {
    let text = &from.text;
    let find = |what: fn(&str) -> Option<usize>| {
        lines(text).find_map(|line| {
            let at = what(&text[line.clone()])?;
            Prefix::of(&text[line.start..line.start + at])
        })
    };
    let starts =
        |what: fn(&str) -> Option<usize>| lines(text).any(|line| what(text[line].trim_start()) == Some(0));
    let prefix = match (starts(header_in), find(header_in)) {
        (_, Some(prefix)) => prefix,
        (true, None) => return None,
        (false, None) if starts(entry_in) => return None,
        (false, None) => find(entry_in)?,
    };
    let mut rewriter = Rewriter::new(from);
    let (mut count, mut messages) = (0, 0);
    for line in lines(text) {
        let shown = &text[line.clone()];
        if let Some(length) = prefix.before(shown) {
            rewriter.replace(line.start..line.start + length, "");
            count += 1;
        } else if is_message(shown) {
            rewriter.replace(line, "");
            messages += 1;
        }
    }
    let mut what = format!("without the prefix of {}", plural(count, "line"));
    if messages > 0 {
        what.push_str(&format!(", without {} of the log", plural(messages, "other message")));
    }
    Some((rewriter.finish(), what))
}

/// Comments that begin with `#`, at the beginning of a line or after a blank.
fn comments(from: &Mapped) -> Option<Stage> {
    let text = &from.text;
    let mut rewriter = Rewriter::new(from);
    let mut count = 0;
    for line in lines(text) {
        let shown = &text[line.clone()];
        let (mut quoted, mut before) = (false, b' ');
        for (at, &b) in shown.as_bytes().iter().enumerate() {
            if b == b'"' && before != b'\\' {
                quoted = !quoted;
            }
            if b == b'#' && !quoted && (before == b' ' || before == b'\t') {
                rewriter.replace(line.start + at..line.end, "");
                count += 1;
                break;
            }
            before = b;
        }
    }
    (count > 0).then(|| (rewriter.finish(), format!("without {}", plural(count, "comment"))))
}

/// Whether a line has three words.
fn is_sentence(line: &str) -> bool {
    let is_word = |w: &&str| w.chars().all(|c| c.is_alphabetic() || ",.'!?:()".contains(c));
    line.split_whitespace().filter(is_word).count() >= 3
}

/// What surrounds modules: lines before the first header (or, without one, before the first computation), and
/// lines after the last brace of each module that are no HLO. What stands after a module is left out if it is
/// known that the text was pasted, or if it has sentences.
fn prose(from: &Mapped, pasted: bool) -> Option<Stage> {
    let text = &from.text;
    let all: Vec<Range<usize>> = lines(text).collect();
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with("//");
    let first_of = |what: fn(&str) -> bool| all.iter().position(|l| what(&text[l.clone()]));
    let begins = |line: &str| line.trim_end().ends_with('{') && !line.trim_start().starts_with("//");
    let first = first_of(|l| header_in(l.trim_start()) == Some(0)).or_else(|| first_of(begins))?;
    let before = all[..first].iter().map(|l| &text[l.clone()]).filter(|l| !is_blank(l));
    let has_header = header_in(text[all[first].clone()].trim_start()) == Some(0);
    // A header with a mistake in it is no prose.
    let prosaic = has_header || pasted || before.clone().any(is_sentence);
    let before = if prosaic { before.count() } else { 0 };
    let mut rewriter = Rewriter::new(from);
    if before > 0 {
        rewriter.skip_to(all[first].start);
    }
    let is_header = |line: &Range<usize>| header_in(text[line.clone()].trim_start()) == Some(0);
    let mut after = 0;
    let mut at = first;
    while at < all.len() {
        let next = (at + 1..all.len()).find(|&i| is_header(&all[i])).unwrap_or(all.len());
        let closes = |i: &usize| text[all[*i].clone()].trim_start().starts_with('}');
        let mut closings = (at..next).rev().filter(closes).peekable();
        // A brace that closes nothing of HLO belongs to the source file around the program.
        let mut closing = closings.next();
        while let (Some(last), Some(&before)) = (closing, closings.peek()) {
            let between = &all[before + 1..last];
            if between.iter().any(|l| is_hlo(&text[l.clone()])) {
                break;
            }
            closing = closings.next();
        }
        if let Some(closing) = closing {
            let line = all[closing].clone();
            let brace = line.start + text[line.clone()].find('}').map_or(0, |i| i + 1);
            let rest = text[brace..line.end].trim();
            let junk = !rest.is_empty() && !rest.starts_with([',', '/']);
            let following = &all[closing + 1..next];
            let other = following.iter().filter(|l| !is_blank(&text[(*l).clone()]));
            let sentences = other.clone().any(|l| is_sentence(&text[l.clone()]));
            let surrounds = pasted || before > 0 || next < all.len() || sentences;
            let hlo = other
                .clone()
                .any(|l| is_hlo(&text[l.clone()]) && !text[l.clone()].trim_start().starts_with('}'));
            let count = other.count() + usize::from(junk);
            if count > 0 && surrounds && !hlo {
                after += count;
                rewriter.keep_to(if junk { brace } else { line.end });
                rewriter.skip_to(following.last().map_or(line.end, |l| l.end));
            }
        }
        at = next;
    }
    let what = match (before, after) {
        (0, 0) => return None,
        (b, 0) => format!("without {} before the program", plural(b, "line")),
        (0, a) => format!("without {} after the program", plural(a, "line")),
        (b, a) => format!("without {} before and {a} after the program", plural(b, "line")),
    };
    Some((rewriter.finish(), what))
}

#[cfg(test)]
mod tests;
