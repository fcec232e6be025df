//! Any body of a kernel that verifies runs, or stops with a report.
#![no_main]

use hlo_ptx::{Launch, Memory, Options, launch, lower};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &str| {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n\
         .reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %d<9>;\n.shared .align 16 .b8 s[256];\n{body}\n}}\n"
    );
    let Ok(module) = lower::module(&text) else { return };
    let mut memory = Memory::with_limit(1 << 20);
    let Ok(loaded) = memory.load(module) else { return };
    let Ok(x) = memory.upload("x", &[7; 512]) else { return };
    let options = Options { fuel: 20_000, memory_limit: 1 << 26, ..Options::default() };
    let _ = launch(&loaded, "k", &Launch::new([2, 1, 1], [40, 1, 1], 0, &[x]), &mut memory, &options);
});
