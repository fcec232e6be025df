//! Runs kernels on arrays, for tests.

use hlo::{Buffer, ElementType};
use hlo_ptx::{Launch, Loaded, Memory, Options};

use hlo_codegen::runtime::object::{Code, externals};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};

/// Object code that was loaded.
pub(crate) struct Kernels(Code);

impl Kernels {
    pub(crate) fn load(object: &[u8]) -> Self {
        Self(Code::load(object, &externals).unwrap())
    }

    /// Calls a kernel on `units` units; it reads `inputs` and writes `elements` elements of a type.
    pub(crate) fn run(
        &self,
        symbol: &str,
        inputs: &[Buffer],
        ty: ElementType,
        elements: usize,
        units: u64,
    ) -> Buffer {
        let mut output = vec![0u128; (elements * ty.storage_bytes()).div_ceil(16)];
        let mut arguments: Vec<*mut u8> = inputs.iter().map(|b| bytes_of(b).as_ptr().cast_mut()).collect();
        arguments.push(output.as_mut_ptr().cast());
        // SAFETY: the tests make kernels that read and write as many elements as there are units.
        unsafe { (self.0.kernel(symbol).unwrap())(arguments.as_ptr(), 0, units) };
        // SAFETY: plain bytes of a vector that is as long.
        let bytes = unsafe {
            std::slice::from_raw_parts(output.as_ptr().cast::<u8>(), elements * ty.storage_bytes())
        };
        buffer_of(ty, bytes)
    }
}

/// PTX that was loaded into the interpreter of PTX.
pub(crate) struct Ptx {
    memory: Memory,
    loaded: Loaded,
}

impl Ptx {
    pub(crate) fn load(text: &str) -> Self {
        let mut memory = Memory::default();
        let module = hlo_ptx::lower::module(text).unwrap_or_else(|errors| {
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}\n{text}", all.join("\n"))
        });
        let loaded = memory.load(module).unwrap();
        Self { memory, loaded }
    }

    /// Launches a kernel whose parameters are the addresses of the inputs and of `elements` elements of a
    /// type, with a thread an element in blocks of `block`. What is behind the last thread's elements must be
    /// left alone by the kernel. Panics at any fault that the interpreter finds.
    pub(crate) fn run(
        &mut self,
        symbol: &str,
        inputs: &[Buffer],
        ty: ElementType,
        elements: usize,
        [grid, block]: [u32; 2],
    ) -> Buffer {
        let mut addresses: Vec<u64> =
            inputs.iter().map(|b| self.memory.upload("input", bytes_of(b)).unwrap()).collect();
        let bytes = (elements * ty.storage_bytes()) as u64;
        let output = self.memory.allocate("output", bytes).unwrap();
        addresses.push(output);
        let launch = Launch::new([grid, 1, 1], [block, 1, 1], 0, &addresses);
        let outcome = hlo_ptx::launch(&self.loaded, symbol, &launch, &mut self.memory, &Options::default())
            .unwrap_or_else(|failure| panic!("{symbol}: {failure}"));
        assert!(outcome.reports.is_empty(), "{symbol}: {}", outcome.reports[0]);
        let result = buffer_of(ty, self.memory.read(output, bytes).unwrap());
        for address in addresses {
            self.memory.free(address).unwrap();
        }
        result
    }
}
