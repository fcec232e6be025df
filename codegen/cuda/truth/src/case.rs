//! A kernel with its memory, and what its results have to be.

use std::sync::Arc;

use hlo_ptx::types::Type;

use crate::target::{Argument, Work};

/// One array of a case.
#[derive(Clone, Debug)]
pub struct Array {
    /// What reports call it.
    pub name: String,
    /// The bytes before the launch.
    pub bytes: Arc<[u8]>,
    /// Bytes of an element.
    pub width: usize,
    /// The type of what an element holds: tells NaN from other bits.
    pub ty: Type,
    /// It is compared afterwards.
    pub is_output: bool,
}

impl Array {
    /// What a kernel reads.
    #[must_use]
    pub fn input(name: &str, ty: Type, width: usize, bytes: Vec<u8>) -> Self {
        Array { name: name.to_owned(), bytes: bytes.into(), width, ty, is_output: false }
    }

    /// What a kernel writes: all bytes of it are 0xA5 before, and compared afterwards.
    #[must_use]
    pub fn output(name: &str, ty: Type, width: usize, elements: usize) -> Self {
        let bytes = vec![0xA5; width * elements].into();
        Array { name: name.to_owned(), bytes, width, ty, is_output: true }
    }

    /// What a kernel reads and writes.
    #[must_use]
    pub fn both(name: &str, ty: Type, width: usize, bytes: Vec<u8>) -> Self {
        Array { is_output: true, ..Array::input(name, ty, width, bytes) }
    }

    /// The element of an index, of at most 8 bytes.
    #[must_use]
    pub fn element(&self, index: usize) -> u64 {
        element(&self.bytes, self.width, index)
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// An element of bytes. Missing bytes are zero.
#[must_use]
pub fn element(bytes: &[u8], width: usize, index: usize) -> u64 {
    let at = index * width;
    bytes.get(at..at + width).unwrap_or(&[]).iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))
}

/// The expectation of results.
#[derive(Clone, Debug)]
pub enum Judge {
    /// The interpreter's bits.
    Bits,
    /// Within the stated error of an approximate instruction: its opcode and modifiers, the type of the
    /// result.
    Approximate(String, Type),
    /// Products of matrices: the interpreter's bits; a difference is described by the row, the column and the
    /// accumulator.
    Product(crate::families::matrix::Shape),
}

/// Makes the arrays of a case.
pub type Fill = Box<dyn Fn() -> Vec<Array> + Send + Sync>;

/// A kernel with its memory.
pub struct Case {
    /// The family.
    pub family: &'static str,
    /// The instruction, or what the kernel does.
    pub instruction: String,
    /// Parameters, body: `(.param .u64 p0) { ... }`. Parameters are the addresses of the arrays.
    pub body: String,
    /// Variables of the module that the kernel uses, each named with `$K`, which stands for the kernel's
    /// name.
    pub variables: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// The arrays.
    pub fill: Fill,
    /// The expectation of the outputs.
    pub judge: Judge,
}

impl Case {
    /// The text of the kernel under a name.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        format!("{}.visible .entry {name}{}\n", self.variables, self.body).replace("$K", name)
    }

    /// The launch of the kernel under a name.
    #[must_use]
    pub fn work(&self, name: &str, arrays: &[Array]) -> Work {
        Work {
            kernel: name.to_owned(),
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            shared_bytes: 0,
            variables: Vec::new(),
            memory: arrays.iter().map(|a| a.bytes.clone()).collect(),
            arguments: (0..arrays.len()).map(|i| Argument::Address(i, 0)).collect(),
        }
    }
}

/// `(.param .u64 p0, ...)` of that many arrays.
#[must_use]
pub fn parameters(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!(".param .u64 p{i}")).collect();
    format!("({})", all.join(", "))
}

/// The beginning of a body: `%i` is the number of the thread in the grid, `%a0` ... the addresses of the
/// arrays at the element of that number, for elements of that many bytes (0: the beginning of the array).
#[must_use]
pub fn prologue(widths: &[usize]) -> String {
    let mut text = format!(
        "{} {{\n.reg .b32 %i, %s0, %s1;\n.reg .b64 %o;\n.reg .b64 %a<{}>;\n\
         mov.u32 %i, %ctaid.x; mov.u32 %s0, %ntid.x; mov.u32 %s1, %tid.x; mad.lo.u32 %i, %i, %s0, %s1;\n",
        parameters(widths.len()),
        widths.len()
    );
    for (i, width) in widths.iter().enumerate() {
        text += &format!("ld.param.u64 %a{i}, [p{i}];\n");
        if *width > 0 {
            text += &format!("mul.wide.u32 %o, %i, {width}; add.s64 %a{i}, %a{i}, %o;\n");
        }
    }
    text
}
