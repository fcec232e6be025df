//! SEMANTICS.md: every statement names a test, and every test that it names exists.
//!
//! A statement is an item of a list or a table. What it names stands in brackets:
//! `[file::test, other_test; folder/file.hlo]`. A table is covered by brackets in its rows, in the paragraph
//! before it or in the heading's first paragraph. Items that only report what other implementations do begin
//! with `XLA`.

use std::path::Path;

use libtest_mimic::Trial;
use rustc_hash::FxHashSet;

use crate::{crate_dir, failed, files_below};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("semantics/every_statement_names_a_test", || check().map_err(failed))]
}

/// What may be named.
struct Known {
    /// Names of functions in the sources.
    functions: FxHashSet<String>,
    /// Paths of sources and filetests, from the root of the repository.
    files: Vec<String>,
}

impl Known {
    fn collect(root: &Path) -> Known {
        let mut known = Known { functions: FxHashSet::default(), files: Vec::new() };
        for folder in ["hlo", "parser", "interp", "codegen", "conformance"] {
            for path in files_below(&root.join(folder), "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for (at, _) in text.match_indices("fn ") {
                    let name = text[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
                    known.functions.extend(name.map(str::to_owned));
                }
                // Tests that a macro writes: `name => check;`.
                let arms = text.lines().filter_map(|l| l.trim().strip_suffix(';')?.split_once(" => "));
                known.functions.extend(arms.map(|(name, _)| name.to_owned()));
                // Trials have names in strings.
                known.functions.extend(text.split('"').filter(|s| is_identifier(s)).map(str::to_owned));
                known.files.push(relative(root, &path));
            }
        }
        for ending in ["hlo", "txt"] {
            known
                .files
                .extend(files_below(&root.join("conformance"), ending).iter().map(|p| relative(root, p)));
        }
        known
    }

    /// Whether a name in brackets is that of a test or file.
    fn has(&self, name: &str) -> bool {
        let (file, function) = match name.rsplit_once("::") {
            Some((file, function)) => (Some(file), Some(function)),
            None if name.contains('/') || name.contains('.') => (Some(name), None),
            None => (None, Some(name)),
        };
        let file_is_known = file.is_none_or(|f| {
            let f = f.trim_end_matches('/');
            // A test module may be named without its ending, a folder without its files.
            self.files.iter().any(|known| {
                let stem = known.trim_end_matches(".rs");
                known.ends_with(f) || stem.ends_with(f) || known.contains(&format!("{f}/"))
            })
        });
        let function_is_known = function.is_none_or(|f| {
            self.functions.contains(f)
                || f.split_once('*').is_some_and(|(a, b)| {
                    self.functions.iter().any(|known| known.starts_with(a) && known.ends_with(b))
                })
        });
        file_is_known && function_is_known
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn is_identifier(s: &str) -> bool {
    s.contains('_') && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Words in brackets that look like names of tests or files.
fn names(bracket: &str) -> Vec<&str> {
    bracket
        .split([',', ';', ' ', '\n', '`'])
        .map(|word| word.trim_end_matches([':', '.']))
        .filter(|w| {
            let code = w.ends_with(".rs") || w.ends_with(".hlo") || w.contains("::") || w.contains('/');
            code || is_identifier(w) || (w.contains('_') && w.contains('*'))
        })
        .filter(|w| w.chars().all(|c| c.is_alphanumeric() || "_:/.*-".contains(c)))
        .collect()
}

/// The parts of a text in brackets, backquoted code left out.
fn brackets(text: &str) -> Vec<String> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    let mut rest = &*prose;
    while let Some((_, after)) = rest.split_once('[') {
        let Some((inside, after)) = after.split_once(']') else { break };
        found.push(inside.to_owned());
        rest = after;
    }
    found
}

fn check() -> Result<(), String> {
    let root = crate_dir().parent().ok_or("the crate has a parent folder")?;
    let text = std::fs::read_to_string(root.join("SEMANTICS.md")).map_err(|e| e.to_string())?;
    let known = Known::collect(root);
    let mut wrong = Vec::new();
    let mut heading = String::new();
    // Whether the section, or the paragraph before, named something.
    let (mut section, mut paragraph) = (false, false);
    for block in blocks(&text) {
        let mut any = false;
        for bracket in brackets(&block.text) {
            let named = names(&bracket);
            any |= !named.is_empty() || bracket.trim() == "same";
            let unknown = named.into_iter().filter(|name| !known.has(name));
            wrong.extend(unknown.map(|name| format!("line {}: there is no test or file {name}", block.line)));
        }
        match block.kind {
            Kind::Heading => {
                heading = block.text.trim_start_matches('#').trim().to_owned();
                (section, paragraph) = (false, false);
            }
            Kind::Paragraph => {
                section |= any;
                paragraph = any;
            }
            Kind::Table => {
                if !any && !section && !paragraph && heading != "Types" {
                    wrong
                        .push(format!("line {}: no test is named for this table of {heading:?}", block.line));
                }
            }
            Kind::Item => {
                if !any && !block.text.trim_start_matches(['-', ' ', '*']).starts_with("XLA") {
                    let start: String = block.text.chars().take(60).collect();
                    wrong.push(format!("line {}: no test is named for {start:?}", block.line));
                }
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("SEMANTICS.md:\n{}", wrong.join("\n"))) }
}

enum Kind {
    Heading,
    Paragraph,
    Table,
    Item,
}

struct Block {
    kind: Kind,
    line: usize,
    text: String,
}

/// Headings, paragraphs, tables and items of lists.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (line, content) in text.lines().enumerate() {
        let kind = match content {
            "" => {
                open = false;
                continue;
            }
            c if c.starts_with('#') => Some(Kind::Heading),
            c if c.starts_with("- ") => Some(Kind::Item),
            c if c.starts_with('|') && !open => Some(Kind::Table),
            _ if !open => Some(Kind::Paragraph),
            _ => None,
        };
        match (kind, blocks.last_mut()) {
            (None, Some(last)) => {
                last.text.push('\n');
                last.text.push_str(content);
            }
            (kind, _) => blocks.push(Block {
                kind: kind.unwrap_or(Kind::Paragraph),
                line: line + 1,
                text: content.to_owned(),
            }),
        }
        open = true;
    }
    blocks
}
