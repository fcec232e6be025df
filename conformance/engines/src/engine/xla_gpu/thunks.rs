//! XLA:GPU's launch list (`thunk_sequence.txt`): what the host of a compiled program executes, as a tree of
//! thunks.
//!
//! A line is `007: kCustomKernel [dependencies] name grid: [x, y, z] threads: [x, y, z] shared_memory: N
//! bytes`; the thunks of a loop's condition and body, of branches and of asynchronous parts stand below it,
//! farther to the right, behind `condition:`, `body:`, `branch_0:`, `true_branch:` and the like.
//! **Invariant:** a thunk that launches a kernel has a name, a grid and a block.

use std::fmt;

/// The deepest nesting of thunks that is read.
const MAX_NESTING: usize = 100;

/// The kind of the thunks that launch a kernel.
pub(super) const KERNEL: &str = "kCustomKernel";

/// A step of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Thunk {
    /// Line of the file, from 1.
    pub(super) line: usize,
    /// `kCopy`, `kWhile`, ...
    pub(super) kind: String,
    /// The launch of a thunk of the kind [`KERNEL`].
    pub(super) launch: Option<KernelLaunch>,
    /// The nested thunks that it executes, by the name before the colon; `""` where none is given.
    pub(super) sections: Vec<(String, Vec<Thunk>)>,
}

/// A launch of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KernelLaunch {
    /// Line of the launch list, from 1.
    pub(super) line: usize,
    /// The kernel.
    pub(super) kernel: String,
    /// Blocks.
    pub(super) grid: [u32; 3],
    /// Threads of a block.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(super) shared_bytes: u64,
}

/// A line that is none of a launch list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BadLine {
    /// From 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) message: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Reads a launch list. Errors: the first line that is not of one.
pub(super) fn parse(text: &str) -> Result<Vec<Thunk>, BadLine> {
    // Thunks that are open, with their columns; the first one stands for the whole list.
    let root = Thunk { line: 0, kind: String::new(), launch: None, sections: Vec::new() };
    let mut open: Vec<(usize, Thunk)> = vec![(0, root)];
    for (number, line) in text.lines().enumerate() {
        let bad = |message: String| BadLine { line: number + 1, message };
        // XLA ends no line behind "No thunks.".
        let line = line.rsplit_once("No thunks.").map_or(line, |(_, rest)| rest);
        let column = line.len() - line.trim_start().len();
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            // Column 0 of the file is column 1 here, to the right of the whole list.
            close(&mut open, column + 1);
            if open.len() > MAX_NESTING {
                return Err(bad(format!("thunks are nested more than {MAX_NESTING} deep")));
            }
            open.push((column + 1, thunk(text, number + 1).map_err(bad)?));
        } else if let Some(name) = text.strip_suffix(':') {
            // XLA writes `condition:` at the margin, however deep the loop is; it follows the loop's own
            // line.
            if name != "condition" {
                close(&mut open, column + 2);
            }
            let Some((_, owner)) = open.last_mut().filter(|(at, _)| *at > 0) else {
                return Err(bad(format!("`{text}` belongs to no thunk")));
            };
            owner.sections.push((name.to_owned(), Vec::new()));
        } else {
            return Err(bad(format!(
                "`{}` is neither a thunk nor the name of a part of one",
                shortened(text)
            )));
        }
    }
    close(&mut open, 1);
    let (_, root) = open
        .pop()
        .unwrap_or_else(|| (0, Thunk { line: 0, kind: String::new(), launch: None, sections: Vec::new() }));
    Ok(root.sections.into_iter().next().map(|(_, thunks)| thunks).unwrap_or_default())
}

/// Hands thunks at this column and to the right of it over to those that they belong to.
fn close(open: &mut Vec<(usize, Thunk)>, column: usize) {
    while let [.., (_, owner), (at, _)] = &mut open[..]
        && *at >= column
    {
        if owner.sections.is_empty() {
            owner.sections.push((String::new(), Vec::new()));
        }
        if let Some((_, thunk)) = open.pop()
            && let Some((_, section)) = open.last_mut().and_then(|(_, owner)| owner.sections.last_mut())
        {
            section.push(thunk);
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

fn thunk(text: &str, line: usize) -> Result<Thunk, String> {
    let not_one = || format!("`{}` is not `NUMBER: kKIND ...`", shortened(text));
    let (_, rest) = text.split_once(": ").ok_or_else(not_one)?;
    let rest = rest.trim_start();
    let kind = rest.split([' ', '[']).next().unwrap_or_default();
    if !kind.starts_with('k') || !kind.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(not_one());
    }
    let launch = if kind == KERNEL { Some(launch(rest, line)?) } else { None };
    Ok(Thunk { line, kind: kind.to_owned(), launch, sections: Vec::new() })
}

fn launch(text: &str, line: usize) -> Result<KernelLaunch, String> {
    let (_, text) = text.split_once("] ").ok_or("a launch has dependencies between brackets")?;
    let kernel = text.split_whitespace().next().unwrap_or_default();
    let after = |key: &str| {
        let at = text.find(key).ok_or_else(|| format!("the launch of `{kernel}` has no `{key}`"))?;
        Ok::<_, String>(text[at + key.len()..].trim_start())
    };
    let three = |key: &str| {
        let wrong =
            || format!("the launch of `{kernel}`: `{key}` is not followed by three sizes, such as [8, 1, 1]");
        let list = after(key)?.strip_prefix('[').and_then(|t| t.split_once(']')).ok_or_else(wrong)?.0;
        let sizes: Vec<u32> =
            list.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
        <[u32; 3]>::try_from(sizes).map_err(|_| wrong())
    };
    let shared = after("shared_memory:")?.split_whitespace().next().and_then(|n| n.parse().ok());
    let shared_bytes = shared.ok_or_else(|| {
        format!("the launch of `{kernel}`: `shared_memory:` is not followed by a number of bytes")
    })?;
    let (grid, block) = (three("grid:")?, three("threads:")?);
    Ok(KernelLaunch { line, kernel: kernel.to_owned(), grid, block, shared_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As XLA writes one: a conditional whose first branch is empty, in a loop.
    const NESTED: &str = "\
001: kCopy  [source       | next=003 (2)] kCopy
003: kWhile [prev=001 (1) | sink        ]   
condition:
    004: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    007: kConditional [source | sink]       
      branch_0:
        No thunks.      branch_1:
        006: kCustomKernel [source | sink] wrapped_sine grid: [2, 3, 1] threads: [128, 1, 1]  shared_memory: 16 bytes
    011: kAsyncStart   [prev=010 (1) | sink        ] stream=computation_stream[0], async_id=11
        013: kDynamicSliceFusion [source | sink] params=1, results=1
            012: kCopy [source | sink] kCopy
        014: kWhile [source | sink]
condition:
            015: kMemset [source | sink]
          body:
            016: kMemzero [source | sink]
020: kFft [source | sink] (no description)
";

    fn outline(thunks: &[Thunk]) -> String {
        let one = |t: &Thunk| {
            let sections = t.sections.iter().map(|(name, inner)| format!(" {name}({})", outline(inner)));
            format!("{}{}", t.kind, sections.collect::<String>())
        };
        thunks.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn parts_belong_to_their_thunks() {
        let list = parse(NESTED).unwrap();
        assert_eq!(
            outline(&list),
            "kCopy, kWhile condition(kCustomKernel) body(kConditional branch_0() branch_1(kCustomKernel), \
             kAsyncStart (kDynamicSliceFusion (kCopy), kWhile condition(kMemset) body(kMemzero))), kFft"
        );
        let [_, (_, body)] = &list[1].sections[..] else { panic!() };
        let sine = body[0].sections[1].1[0].launch.as_ref().unwrap();
        assert_eq!(
            (sine.kernel.as_str(), sine.grid, sine.block, sine.shared_bytes, sine.line),
            ("wrapped_sine", [2, 3, 1], [128, 1, 1], 16, 9)
        );
    }

    #[test]
    fn what_is_no_launch_list_is_refused_with_its_line() {
        let kernel = "001: kCustomKernel [source | sink] k grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes\n";
        assert!(parse(kernel).is_ok());
        for (text, line, part) in [
            ("HloModule m\n", 1, "neither a thunk"),
            ("body:\n", 1, "belongs to no thunk"),
            ("001 kCopy\n", 1, "NUMBER: kKIND"),
            ("001: copy\n", 1, "NUMBER: kKIND"),
            (&kernel.replace("grid: [1, 1, 1]", ""), 1, "no `grid:`"),
            (&kernel.replace("[1, 1, 1] threads", "[1, 1] threads"), 1, "three sizes"),
            (&kernel.replace("[1, 1, 1]  shared", "[1, 1, -1]  shared"), 1, "three sizes"),
            (&format!("{kernel}{}", kernel.replace("0 bytes", "many bytes")), 2, "number of bytes"),
        ] {
            let e = parse(text).unwrap_err();
            assert!(e.line == line && e.message.contains(part), "{text}: {e}");
        }
        let deep: String =
            (0..200).map(|i| format!("{}001: kAsyncStart [source | sink]\n", " ".repeat(i))).collect();
        assert!(parse(&deep).unwrap_err().message.contains("nested"));
    }
}
