//! Folders of programs: recorded cases, files, and what compilers dump.
//!
//! A file is told by its content ([`kind`]). Of a compiler's dumps of one module ([`DumpName`]) the one
//! before optimizations is the program, the ones after are other forms of it, which must compute the same,
//! and those after passes are forms that are checked and not run. Several modules in one file are a program
//! each. All other files are listed ([`Folder::others`]).

pub mod kind;
mod run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hlo_parser::Pick;

use hlo_engines::frontend::Reading;
use hlo_system::exit::Failure;
use hlo_system::files::describe;
use hlo_triage::bisect::dumps::{Series, grouped};
use hlo_triage::bisect::names::{DumpName, Stage};
use hlo_triage::case::Case;
use kind::Kind;
pub use run::run_program;

/// A form of a program in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormFile {
    /// `after optimizations`, the name of the file.
    pub label: String,
    /// The file.
    pub path: PathBuf,
    /// Which of several modules of the file.
    pub pick: Option<Pick>,
}

impl FormFile {
    /// Options of reading the file.
    pub fn reading(&self) -> Reading {
        Reading { pick: self.pick.clone(), unverified: false }
    }
}

/// A program of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// For people: the file, or what the names of its dumps have in common.
    pub name: String,
    /// The program.
    pub program: FormFile,
    /// Other forms, which must compute the same.
    pub forms: Vec<FormFile>,
    /// Forms on the way, which are only checked.
    pub passes: Vec<FormFile>,
    /// `inputs.npz` beside it.
    pub inputs: Option<PathBuf>,
    /// `expected.npz` beside it.
    pub expected: Option<PathBuf>,
    /// Programs are alone in their folder: the arrays beside one are its own.
    pub alone: bool,
}

impl Listed {
    /// A case as a program of two forms; `None` if it has none.
    pub fn of_case(folder: &Path) -> Option<Listed> {
        let form = |name: &str| {
            let path = folder.join(name);
            path.is_file().then(|| FormFile { label: name.to_owned(), path, pick: None })
        };
        let mut forms = ["module.hlo", "optimized.hlo"].into_iter().filter_map(form);
        let program = forms.next()?;
        Some(Listed {
            name: folder.to_string_lossy().into_owned(),
            program,
            forms: forms.collect(),
            passes: Vec::new(),
            inputs: None,
            expected: None,
            alone: true,
        })
    }
}

/// The contents of a folder.
#[derive(Clone, Default, Debug)]
pub struct Folder {
    /// Folders of recorded cases.
    pub cases: Vec<PathBuf>,
    /// Programs that are part of no case.
    pub programs: Vec<Listed>,
    /// Files that are no programs.
    pub others: Vec<(PathBuf, Kind)>,
}

/// Files below folders.
#[derive(Clone, Default, Debug)]
pub struct Files {
    /// Folders of recorded cases.
    pub cases: Vec<PathBuf>,
    /// HLO text that is part of no case.
    pub programs: Vec<PathBuf>,
    /// Files that are neither.
    pub others: Vec<(PathBuf, Kind)>,
}

/// All files at and below these folders, ordered by path. Errors: a path that is unreadable or a file.
pub fn files(roots: &[String]) -> Result<Files, Failure> {
    let mut found = Files::default();
    for root in roots {
        let path = Path::new(root);
        let meta = fs::metadata(path)
            .map_err(|e| Failure::usage(format!("{root}: cannot be read: {}", describe(&e))))?;
        if !meta.is_dir() {
            return Err(Failure::usage(format!("{root}: is a file; `hlo test` takes folders of cases")));
        }
        // Not recursive, so that no depth of folders matters; links to folders are followed once, by name.
        let mut pending = vec![path.to_owned()];
        while let Some(folder) = pending.pop() {
            if Case::is_at(&folder) {
                found.cases.push(folder);
                continue;
            }
            let entries = fs::read_dir(&folder).map_err(|e| {
                Failure::usage(format!("{}: cannot be read: {}", folder.display(), describe(&e)))
            })?;
            for entry in entries.flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => pending.push(path),
                    // A pipe would never end.
                    Ok(_) if path.is_file() => match kind::of_file(&path) {
                        Kind::Program => found.programs.push(path),
                        kind => found.others.push((path, kind)),
                    },
                    _ => {}
                }
            }
        }
    }
    for list in [&mut found.cases, &mut found.programs] {
        list.sort();
        list.dedup();
    }
    found.others.sort();
    found.others.dedup();
    Ok(found)
}

/// The cases and programs at and below these folders. Errors: a path that cannot be read, or is a file.
pub fn scan(roots: &[String]) -> Result<Folder, Failure> {
    let Files { cases, programs, others } = files(roots)?;
    let mut folder = Folder { cases, programs: Vec::new(), others };
    let mut by_parent: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in programs {
        by_parent.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_default().push(path);
    }
    for (parent, paths) in by_parent {
        let first = folder.programs.len();
        let (mut dumps, mut single) = (Vec::new(), Vec::new());
        for path in paths {
            match path.file_name().and_then(|n| n.to_str()).and_then(DumpName::parse) {
                Some(name) => dumps.push((name, path)),
                None => single.push(path),
            }
        }
        folder.programs.extend(grouped(dumps).into_iter().filter_map(|series| listed(&parent, series)));
        folder.programs.extend(single.iter().flat_map(|path| of_file(path)));
        let beside = |name: &str| Some(parent.join(name)).filter(|p| p.is_file());
        let (inputs, expected) = (beside("inputs.npz"), beside("expected.npz"));
        let alone = folder.programs.len() - first == 1;
        for program in &mut folder.programs[first..] {
            program.inputs = inputs.clone();
            program.expected = expected.clone().filter(|_| inputs.is_some());
            program.alone = alone;
        }
    }
    Ok(folder)
}

/// The program of a series of dumps: the form before optimizations, or else the first one.
fn listed(parent: &Path, series: Series) -> Option<Listed> {
    let name = parent.join(format!("module_{:04}.{}", series.number, series.name));
    let mut files = series.files.into_iter().map(|(name, path)| {
        let after = name.stage == Stage::After;
        (FormFile { label: name.label(), path, pick: None }, after)
    });
    let (program, _) = files.next()?;
    let (forms, passes): (Vec<_>, Vec<_>) = files.partition(|(_, after)| *after);
    let [forms, mut passes] =
        [forms, passes].map(|list| list.into_iter().map(|(form, _)| form).collect::<Vec<_>>());
    // Without a form after all passes, the last pass is the end.
    let forms = if forms.is_empty() { passes.pop().into_iter().collect() } else { forms };
    let name = name.to_string_lossy().into_owned();
    Some(Listed { name, program, forms, passes, inputs: None, expected: None, alone: false })
}

/// The programs of a file that is no dump: one, or as many as it has headers.
fn of_file(path: &Path) -> Vec<Listed> {
    let file = path.to_string_lossy().into_owned();
    let one = |name: String, pick: Option<Pick>| {
        let program = FormFile { label: name.clone(), path: path.to_owned(), pick };
        let (forms, passes) = (Vec::new(), Vec::new());
        Listed { name, program, forms, passes, inputs: None, expected: None, alone: false }
    };
    let names = match hlo_system::files::read_source(&file) {
        Ok(source) if hlo_engines::mlir::is_mlir(&source.text) => {
            hlo_engines::mlir::module_names(&source.text)
        }
        Ok(source) if memchr_headers(&source.text) > 1 => hlo_parser::module_names(&source.text),
        Ok(_) | Err(_) => Vec::new(),
    };
    if names.len() < 2 {
        return vec![one(file, None)];
    }
    let named = names.iter().enumerate();
    named.map(|(i, name)| one(format!("{file}#{} {name}", i + 1), Some(Pick::Number(i + 1)))).collect()
}

/// An upper bound of the occurrences of a header's word in a text.
fn memchr_headers(text: &str) -> usize {
    text.matches("HloModule ").count()
}

/// What files are that are no programs, in a line each: `3 buffer assignment`, `2 jaxpr (not read yet)`,
/// `1 not recognized (notes.txt)`. Arrays and what is known to go with programs are left out.
pub fn summary(others: &[(PathBuf, Kind)]) -> Vec<String> {
    let mut by_kind: BTreeMap<Kind, Vec<&Path>> = BTreeMap::new();
    for (path, kind) in others.iter().filter(|(_, kind)| *kind != Kind::Arrays) {
        by_kind.entry(*kind).or_default().push(path);
    }
    by_kind
        .into_iter()
        .map(|(kind, paths)| {
            let why = match kind {
                Kind::Unread(_) => " (not read yet)".to_owned(),
                Kind::Unknown => {
                    let names = paths.iter().filter_map(|p| p.file_name()).take(3);
                    let mut names: Vec<_> = names.map(|n| n.to_string_lossy().into_owned()).collect();
                    if paths.len() > names.len() {
                        names.push("...".to_owned());
                    }
                    format!(" ({})", names.join(", "))
                }
                Kind::Program | Kind::Arrays | Kind::Report(_) => String::new(),
            };
            format!("{} {}{why}", paths.len(), kind.describe())
        })
        .collect()
}

/// That a folder has no program. With programs in forms that are not read, that is unsupported.
pub fn no_program(roots: &[String], others: &[(PathBuf, Kind)]) -> Failure {
    let found = summary(others);
    let found = if found.is_empty() { String::new() } else { format!("; there are: {}", found.join(", ")) };
    let message = format!("no program in {}{found}", roots.join(", "));
    if others.iter().any(|(_, kind)| matches!(kind, Kind::Unread(_))) {
        return Failure::new(hlo_system::exit::Exit::Unsupported, message);
    }
    Failure::usage(message)
}

/// All cases at and below these folders, in the order of their paths. Errors: a path that cannot be read.
pub fn find_cases(roots: &[String]) -> Result<Vec<PathBuf>, Failure> {
    Ok(files(roots)?.cases)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn finds_cases_below_folders_and_refuses_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b/two", "a/one"] {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("case.json"), "{}").unwrap();
        }
        let root = dir.path().to_str().unwrap().to_owned();
        let names: Vec<_> = find_cases(std::slice::from_ref(&root))
            .unwrap()
            .iter()
            .map(|p| p.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(
            find_cases(&[format!("{root}/a/one/case.json")]).unwrap_err().exit,
            hlo_system::exit::Exit::Usage
        );
        assert_eq!(find_cases(&[format!("{root}/none")]).unwrap_err().exit, hlo_system::exit::Exit::Usage);
        assert_eq!(Case::open(&dir.path().join("a/one")).unwrap_err().exit, hlo_system::exit::Exit::Usage);
    }
}
