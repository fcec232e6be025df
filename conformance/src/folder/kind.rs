//! The kind of a file by its content: compilers write programs and reports with the same endings.

use std::io::Read as _;
use std::path::Path;

use hlo_system::files::open_regular;

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// HLO, as text or in protocol buffers.
    Program,
    /// Arrays of numpy.
    Arrays,
    /// Something that compilers, or we, write about programs: what it is.
    Report(&'static str),
    /// A program in a form that is not read yet: which.
    Unread(&'static str),
    /// Nothing that is known.
    Unknown,
}

impl Kind {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Program => "HLO",
            Kind::Arrays => "arrays",
            Kind::Report(what) | Kind::Unread(what) => what,
            Kind::Unknown => "not recognized",
        }
    }
}

/// Bytes of a file that are looked at.
const HEAD_BYTES: u64 = 64 << 10;

/// The kind of a file; [`Kind::Unknown`] of one that cannot be read without blocking.
pub fn of_file(path: &Path) -> Kind {
    let mut head = Vec::new();
    match open_regular(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head)) {
        // Programs are named as text, in messages and to other processes.
        Ok(_) if path.to_str().is_none() && of(path, &head) == Kind::Program => {
            Kind::Unread("a program whose name is not UTF-8")
        }
        Ok(_) => of(path, &head),
        Err(_) => Kind::Unknown,
    }
}

/// By the first bytes of formats that are no text.
const BINARY: [(&[u8], Kind); 10] = [
    (b"PK\x03\x04", Kind::Arrays),
    // An archive of nothing.
    (b"PK\x05\x06", Kind::Arrays),
    (b"\x93NUMPY", Kind::Arrays),
    (b"\x7fELF", Kind::Report("object code")),
    (b"BC\xc0\xde", Kind::Report("LLVM bitcode")),
    (b"ML\xefR", Kind::Program),
    (b"\x1f\x8b", Kind::Unread("compressed")),
    (b"\x28\xb5\x2f\xfd", Kind::Unread("compressed")),
    (b"\x89PNG", Kind::Report("a picture")),
    (b"%PDF", Kind::Report("a document")),
];

/// By how the first line that is no comment begins.
const FIRST_LINES: [(&str, Kind); 18] = [
    ("HloModule ", Kind::Program),
    ("BufferAssignment:", Kind::Report("buffer assignment")),
    ("HloLiveRange ", Kind::Report("live ranges")),
    ("; ModuleID", Kind::Report("LLVM IR")),
    ("source_filename", Kind::Report("LLVM IR")),
    ("target datalayout", Kind::Report("LLVM IR")),
    (".version ", Kind::Report("PTX")),
    (".text", Kind::Report("assembly")),
    ("\t.text", Kind::Report("assembly")),
    ("\t.file", Kind::Report("assembly")),
    ("digraph", Kind::Report("graph")),
    ("<!DOCTYPE", Kind::Report("web page")),
    ("<html", Kind::Report("web page")),
    ("{ lambda", Kind::Unread("jaxpr")),
    ("Total bytes used", Kind::Report("memory usage")),
    ("IR {", Kind::Unread("lazy tensor IR of PyTorch/XLA")),
    ("#include", Kind::Report("source code")),
    ("import ", Kind::Report("source code")),
];

/// By words in the names of reports whose text does not identify them.
const NAMES: [(&str, Kind); 7] = [
    ("thunk_sequence", Kind::Report("thunk sequence")),
    ("memory-usage-report", Kind::Report("memory usage")),
    ("buffer-assignment", Kind::Report("buffer assignment")),
    ("debug_options", Kind::Report("options")),
    ("execution_options", Kind::Report("options")),
    ("gpu_target_config", Kind::Report("options")),
    ("autotune_results", Kind::Report("autotuning")),
];

fn of(path: &Path, head: &[u8]) -> Kind {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if let Some((_, kind)) = BINARY.iter().find(|(magic, _)| head.starts_with(magic)) {
        return *kind;
    }
    if hlo_proto::sniff(head).is_some() {
        return Kind::Program;
    }
    // A character may be cut at the end of what was read.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).expect("invariant: valid up to there")
        }
        Err(_) if name.contains("snapshot") => return Kind::Unread("HloSnapshot proto"),
        Err(_) if ending == "hlo" => return Kind::Program,
        Err(_) => {
            let proto = ending == "pb" || matches!(head.first(), Some(0x0a | 0x12));
            return if proto { Kind::Unread("serialized proto") } else { Kind::Unknown };
        }
    };
    let text = text.trim_start_matches('\u{feff}');
    if hlo_engines::mlir::is_mlir(text) {
        return Kind::Program;
    }
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let first = text.lines().find(|l| !l.trim().is_empty() && !is_comment(l)).unwrap_or_default();
    if let Some((_, kind)) = FIRST_LINES.iter().find(|(begins, _)| first.starts_with(begins)) {
        return *kind;
    }
    if let Some((_, kind)) = NAMES.iter().find(|(word, _)| name.contains(word)) {
        return *kind;
    }
    match hlo_parser::foreign_text(text) {
        Some(what) if what.contains("MLIR") && ending != "hlo" => return Kind::Unread("MLIR"),
        Some(what) if what.contains("proto") => {
            return Kind::Unread(if what.contains("text format") {
                "proto in text format"
            } else {
                "serialized proto"
            });
        }
        Some(_) | None => {}
    }
    if ending == "pb" {
        return Kind::Unread("serialized proto");
    }
    if matches!(ending, "pbtxt" | "textproto") {
        return Kind::Report("proto in text format");
    }
    if ["json", "jsonl"].contains(&ending) || first.starts_with('{') && first.contains("\":") {
        return Kind::Report("JSON");
    }
    let has_entry = text.lines().any(|l| l.trim_start().starts_with("ENTRY ") && l.trim_end().ends_with('{'));
    if ending == "hlo" || has_entry || !hlo_parser::module_names(text).is_empty() {
        return Kind::Program;
    }
    if ["md", "html", "py", "sh", "cc", "csv", "log"].contains(&ending) {
        return Kind::Report("other text");
    }
    Kind::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(name: &str, content: &[u8], kind: Kind) {
        assert_eq!(of(Path::new(name), content), kind, "{name}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_that_cannot_be_programs() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        // Who reads it waits for the kernel's next message, unless told not to.
        assert_ne!(of_file(Path::new("/proc/kmsg")), Kind::Program);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OsStr::from_bytes(b"odd\xff.hlo"));
        std::fs::write(&path, "HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n").unwrap();
        assert_eq!(of_file(&path), Kind::Unread("a program whose name is not UTF-8"));
    }

    #[test]
    fn programs_are_told_from_reports() {
        let module = b"HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n";
        is("module_0000.jit_f.before_optimizations.txt", module, Kind::Program);
        is("anything", module, Kind::Program);
        is("a.txt", b"// made by hand\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n", Kind::Program);
        is("issue.md", b"It fails:\n\n```hlo\nHloModule m\n```\n", Kind::Program);
        is("broken.hlo", b"ENTR", Kind::Program);
        is("latin.hlo", b"HloModule m\xff", Kind::Program);
        is("m-live-range.txt", b"HloLiveRange (max 2):\n  InstructionSequence:", Kind::Report("live ranges"));
        is("m-buffer-assignment.txt", b"BufferAssignment:\nallocation 0", Kind::Report("buffer assignment"));
        is("thunk_sequence.txt", b"000: kKernel x\n", Kind::Report("thunk sequence"));
        is("m.ll", b"; ModuleID = 'm'\nsource_filename = \"m\"\n", Kind::Report("LLVM IR"));
        is("m.ptx", b"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 8.5\n", Kind::Report("PTX"));
        is("m.o", b"\x7fELF\x02", Kind::Report("object code"));
        is("m.dot", b"digraph G {\n", Kind::Report("graph"));
        is("m.html", b"<!DOCTYPE html>\n", Kind::Report("web page"));
        is("m.debug_options", b"xla_cpu: true\n", Kind::Report("options"));
        is("jax_ir0_jit_f.mlir", b"module @jit_f attributes {} {\n", Kind::Program);
        is("test.mlir", b"// RUN: stablehlo-translate %s\n\nfunc.func @main() {\n", Kind::Program);
        is("m.hlo.pb", b"\n\x05jit_f\x12\x01e\x1a\x03\n\x01e", Kind::Program);
        is("m.pbtxt", b"name: \"jit_f\"\ncomputations {\n", Kind::Program);
        is("m.pb", b"\n\x05jit_f\x12\x01", Kind::Unread("serialized proto"));
        is(
            "m.txt",
            b"IR {\n  %0 = f32[] prim::Constant()\n}\n",
            Kind::Unread("lazy tensor IR of PyTorch/XLA"),
        );
        is("inputs.npz", b"PK\x03\x04..", Kind::Arrays);
        is("notes.txt", b"remember the milk\n", Kind::Unknown);
    }
}
