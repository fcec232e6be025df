//! The loader of relocatable object code (ELF).
//!
//! Sections are in one mapping, executable ones first, then read-only ones, then writable ones, each group on
//! pages of its own; memory is writable while it is relocated and then never both writable and executable.
//! Undefined symbols are resolved among the functions that the caller offers ([`externals`]), called through
//! a stub next to the code, since they may be out of branch range. Unwind tables are left out: kernels do not
//! unwind.

use std::fmt;
use std::ptr::NonNull;

use object::elf;
use object::read::elf::ElfFile64;
use object::{
    Architecture, Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags, SymbolIndex, SymbolSection,
};
use rustc_hash::FxHashMap;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use hlo_library_base::KernelFn;

/// Why object code cannot be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object code cannot be loaded: {}", self.message)
    }
}

fn error(message: impl Into<String>) -> LoadError {
    LoadError { message: message.into() }
}

/// Executable object code, and its symbols.
pub struct Code {
    mapping: Mapping,
    /// Offsets of global symbols in the mapping.
    symbols: FxHashMap<String, usize>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("bytes", &self.mapping.length)
            .field("symbols", &self.symbols.len())
            .finish()
    }
}

/// An external function: its address.
#[derive(Clone, Copy, Debug)]
pub struct External(*const ());

impl External {
    /// The function at this address.
    pub fn new(address: *const ()) -> Self {
        Self(address)
    }
}

/// The functions of the C library that LLVM calls for instructions that a target lacks, and those of
/// [`super::functions`].
pub fn externals(name: &str) -> Option<External> {
    unsafe extern "C" {
        fn memcpy();
        fn memmove();
        fn memset();
        fn fmod();
        fn fmodf();
    }
    let function: unsafe extern "C" fn() = match name {
        "memcpy" => memcpy,
        "memmove" => memmove,
        "memset" => memset,
        "fmod" => fmod,
        "fmodf" => fmodf,
        _ => return super::functions::find(name),
    };
    Some(External(function as *const ()))
}

/// The undefined symbols of an object, sorted.
pub fn undefined(object: &[u8]) -> Result<Vec<String>, LoadError> {
    let broken = |e: object::Error| error(e.to_string());
    let file = ElfFile64::<Endianness>::parse(object).map_err(broken)?;
    let needed = file.symbols().filter(|s| s.is_undefined() && s.is_global());
    let names: Result<Vec<String>, _> = needed.map(|s| s.name().map(str::to_owned)).collect();
    let mut names = names.map_err(broken)?;
    names.sort_unstable();
    Ok(names)
}

/// A mapping with code.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: nothing writes to a mapping once it is loaded but code that is called, which answers for that
// itself.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever calls into it keeps its `Code`.
        unsafe {
            let _ = rustix::mm::munmap(self.start.as_ptr().cast(), self.length);
        }
    }
}

const PAGE: usize = if cfg!(target_arch = "aarch64") { 1 << 16 } else { 1 << 12 };
const STUB: usize = 16;

/// Groups of sections, by protection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Executed,
    Read,
    Written,
}

impl Code {
    /// Loads an object, resolving undefined symbols by `externals`. Errors: what is malformed or unknown.
    pub fn load(object: &[u8], externals: &dyn Fn(&str) -> Option<External>) -> Result<Code, LoadError> {
        let broken = |e: object::Error| error(e.to_string());
        let file = ElfFile64::<Endianness>::parse(object).map_err(broken)?;
        let here = if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };
        if file.architecture() != here || !file.is_little_endian() {
            return Err(error(format!("it is for {:?}", file.architecture())));
        }
        let mut loader = Loader::layout(&file)?;
        loader.copy(&file)?;
        let mut symbols = FxHashMap::default();
        for symbol in file.symbols().filter(|s| s.is_global() && s.is_definition()) {
            if let Some(section) = symbol.section_index().and_then(|s| loader.section_range(s.0)) {
                let name = symbol.name().map_err(broken)?.to_owned();
                symbols.insert(name, loader.inside(section, symbol.address(), 0)?);
            }
        }
        for section in file.sections() {
            let Some(range) = loader.section_range(section.index().0) else { continue };
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(error("a relocation that is not of ELF"));
                };
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    return Err(error("a relocation without a symbol"));
                };
                let at = Site { range, offset, symbol, addend: relocation.addend() };
                loader.relocate(&file, r_type.0, at, externals)?;
            }
        }
        loader.protect()?;
        Ok(Code { mapping: loader.mapping, symbols })
    }

    /// The address of a global symbol.
    pub fn symbol(&self, name: &str) -> Option<*const u8> {
        let offset = *self.symbols.get(name)?;
        // SAFETY: the offset was found to be inside when the object was loaded.
        Some(unsafe { self.mapping.start.add(offset).as_ptr().cast_const() })
    }

    /// A kernel's function. It may be called as long as this lives.
    ///
    /// # Safety
    /// The symbol is that of a [`KernelFn`].
    pub unsafe fn kernel(&self, name: &str) -> Option<KernelFn> {
        // SAFETY: by the caller's word it is the address of such a function.
        self.symbol(name).map(|p| unsafe { std::mem::transmute::<*const u8, KernelFn>(p) })
    }
}

/// The offset of a section in the mapping, in bytes.
#[derive(Clone, Copy)]
struct SectionRange {
    start: usize,
    bytes: usize,
}

/// A relocation: what it changes, and what it refers to.
struct Site {
    range: SectionRange,
    offset: u64,
    symbol: SymbolIndex,
    addend: i64,
}

/// An object being loaded.
struct Loader {
    mapping: Mapping,
    /// By the section's index.
    ranges: Vec<Option<SectionRange>>,
    /// The stub area: the next free stub, and the end.
    stubs: (usize, usize),
    /// The address table (GOT).
    table: (usize, usize),
    /// The offsets of the groups, and the end of the last.
    groups: [usize; 4],
    stub_of: FxHashMap<usize, usize>,
    entry_of: FxHashMap<usize, usize>,
    external_of: FxHashMap<usize, usize>,
}

type File<'a> = ElfFile64<'a, Endianness>;

impl Loader {
    fn layout(file: &File<'_>) -> Result<Self, LoadError> {
        let mut ranges = Vec::new();
        let mut sections = Vec::new();
        // Each relocation may need a stub, and an entry of the table.
        let mut relocations = 0_usize;
        for section in file.sections() {
            let index = section.index().0;
            ranges.resize(ranges.len().max(index + 1), None);
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let has = |flag: elf::SectionFlags| sh_flags.0 & flag.0 != 0;
            if !has(elf::SHF_ALLOC) || section.name() == Ok(".eh_frame") {
                continue;
            }
            let group = match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
                (true, _) => Group::Executed,
                (false, false) => Group::Read,
                (false, true) => Group::Written,
            };
            let size = usize::try_from(section.size()).ok().filter(|&n| n <= 1 << 31);
            let size = size.ok_or_else(|| error("a section of more than 2 GiB"))?;
            relocations += section.relocations().count();
            sections.push((group, index, size, (section.align() as usize).clamp(1, PAGE)));
        }
        let mut end = 0_usize;
        let mut groups = [0; 4];
        let (mut stubs, mut table) = ((0, 0), (0, 0));
        for (number, group) in [Group::Executed, Group::Read, Group::Written].into_iter().enumerate() {
            groups[number] = end;
            for &(_, index, bytes, align) in sections.iter().filter(|s| s.0 == group) {
                let start = end.next_multiple_of(align);
                ranges[index] = Some(SectionRange { start, bytes });
                end = start + bytes;
            }
            let extra = match group {
                Group::Executed => Some((STUB, &mut stubs)),
                Group::Read => Some((8, &mut table)),
                Group::Written => None,
            };
            if let Some((size, area)) = extra {
                let start = end.next_multiple_of(STUB);
                end = start + relocations * size;
                *area = (start, end);
            }
            end = end.next_multiple_of(PAGE);
        }
        groups[3] = end;
        let length = end.max(PAGE);
        // SAFETY: a new mapping at an address that the kernel chooses replaces no existing one.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE)
        };
        let start = start.ok().and_then(|p| NonNull::new(p.cast::<u8>()));
        let start = start.ok_or_else(|| error(format!("no memory for {length} bytes")))?;
        Ok(Self {
            mapping: Mapping { start, length },
            ranges,
            stubs,
            table,
            groups,
            stub_of: FxHashMap::default(),
            entry_of: FxHashMap::default(),
            external_of: FxHashMap::default(),
        })
    }

    fn section_range(&self, section: usize) -> Option<SectionRange> {
        self.ranges.get(section).copied().flatten()
    }

    /// The offset in the mapping of `bytes` bytes at `offset` of a section.
    fn inside(&self, range: SectionRange, offset: u64, bytes: usize) -> Result<usize, LoadError> {
        usize::try_from(offset)
            .ok()
            .filter(|o| o.checked_add(bytes).is_some_and(|end| end <= range.bytes))
            .map(|offset| range.start + offset)
            .ok_or_else(|| error("an offset outside of its section"))
    }

    /// The memory, which nothing else refers to yet.
    fn memory(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is ours, of this length and initialized to zero.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.as_ptr(), self.mapping.length) }
    }

    fn copy(&mut self, file: &File<'_>) -> Result<(), LoadError> {
        for section in file.sections() {
            let Some(range) = self.section_range(section.index().0) else { continue };
            // Empty for zero-initialized sections.
            let data = section.data().map_err(|e| error(e.to_string()))?;
            if data.len() > range.bytes {
                return Err(error("a section longer than it says"));
            }
            self.memory()[range.start..range.start + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn address(&self, offset: usize) -> usize {
        self.mapping.start.as_ptr() as usize + offset
    }

    /// The address of a symbol; `true` if it is outside of the mapping.
    fn resolve(
        &mut self,
        file: &File<'_>,
        index: SymbolIndex,
        externals: &dyn Fn(&str) -> Option<External>,
    ) -> Result<(usize, bool), LoadError> {
        let symbol = file.symbol_by_index(index).map_err(|e| error(e.to_string()))?;
        match symbol.section() {
            SymbolSection::Section(section) => {
                let range = self
                    .section_range(section.0)
                    .ok_or_else(|| error("a symbol of a section that is not loaded"))?;
                Ok((self.address(self.inside(range, symbol.address(), 0)?), false))
            }
            SymbolSection::Undefined => {
                if let Some(&address) = self.external_of.get(&index.0) {
                    return Ok((address, true));
                }
                let name = symbol.name().map_err(|e| error(e.to_string()))?;
                let External(function) =
                    externals(name).ok_or_else(|| error(format!("nothing defines `{name}`")))?;
                self.external_of.insert(index.0, function as usize);
                Ok((function as usize, true))
            }
            SymbolSection::Absolute => Ok((symbol.address() as usize, true)),
            SymbolSection::Common | SymbolSection::None | SymbolSection::Unknown => {
                Err(error("a symbol that is nowhere"))
            }
            _ => Err(error("a symbol of a new kind")),
        }
    }

    /// A stub that jumps to an address: its own address.
    fn stub(&mut self, to: usize) -> Result<usize, LoadError> {
        if let Some(&stub) = self.stub_of.get(&to) {
            return Ok(stub);
        }
        let (offset, end) = self.stubs;
        if offset + STUB > end {
            return Err(error("more stubs than relocations"));
        }
        // A jump through the eight bytes behind it, of six bytes and two: `jmp [rip + 2]`; or `ldr x16, #8`
        // and `br x16`.
        let jump: [u8; 8] = if cfg!(target_arch = "aarch64") {
            [0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6]
        } else {
            [0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0xcc, 0xcc]
        };
        self.memory()[offset..offset + 8].copy_from_slice(&jump);
        self.memory()[offset + 8..offset + 16].copy_from_slice(&(to as u64).to_le_bytes());
        self.stubs.0 += STUB;
        let address = self.address(offset);
        self.stub_of.insert(to, address);
        Ok(address)
    }

    /// An entry of the table of addresses: its own address.
    fn entry(&mut self, of: usize) -> Result<usize, LoadError> {
        if let Some(&entry) = self.entry_of.get(&of) {
            return Ok(entry);
        }
        let (offset, end) = self.table;
        if offset + 8 > end {
            return Err(error("more addresses than relocations"));
        }
        self.memory()[offset..offset + 8].copy_from_slice(&(of as u64).to_le_bytes());
        self.table.0 += 8;
        let address = self.address(offset);
        self.entry_of.insert(of, address);
        Ok(address)
    }

    fn relocate(
        &mut self,
        file: &File<'_>,
        kind: u32,
        site: Site,
        externals: &dyn Fn(&str) -> Option<External>,
    ) -> Result<(), LoadError> {
        let (target, far) = self.resolve(file, site.symbol, externals)?;
        let relocation = Relocation { kind, site, target, far };
        if cfg!(target_arch = "aarch64") {
            self.relocate_aarch64(&relocation)
        } else {
            self.relocate_x86(&relocation)
        }
    }

    fn relocate_x86(&mut self, r: &Relocation) -> Result<(), LoadError> {
        let to = |value: usize| (value as i64).wrapping_add(r.site.addend);
        let is = |kind: elf::RelocationType| kind.0 == r.kind;
        if is(elf::R_X86_64_NONE) {
            return Ok(());
        }
        if is(elf::R_X86_64_64) || is(elf::R_X86_64_PC64) {
            let at = self.inside(r.site.range, r.site.offset, 8)?;
            let from = if is(elf::R_X86_64_64) { 0 } else { self.address(at) as i64 };
            self.memory()[at..at + 8].copy_from_slice(&to(r.target).wrapping_sub(from).to_le_bytes());
            return Ok(());
        }
        let at = self.inside(r.site.range, r.site.offset, 4)?;
        let from = self.address(at) as i64;
        let value = if is(elf::R_X86_64_PC32) || is(elf::R_X86_64_PLT32) {
            let target = if r.far { self.stub(r.target)? } else { r.target };
            to(target).wrapping_sub(from)
        } else if is(elf::R_X86_64_GOTPCREL) || is(elf::R_X86_64_GOTPCRELX) || is(elf::R_X86_64_REX_GOTPCRELX)
        {
            to(self.entry(r.target)?).wrapping_sub(from)
        } else {
            return Err(r.unknown());
        };
        let value = i32::try_from(value).map_err(|_| r.too_far())?;
        self.memory()[at..at + 4].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn relocate_aarch64(&mut self, r: &Relocation) -> Result<(), LoadError> {
        let to = |value: usize| (value as i64).wrapping_add(r.site.addend);
        let is = |kind: elf::RelocationType| kind.0 == r.kind;
        if is(elf::R_AARCH64_NONE) {
            return Ok(());
        }
        if is(elf::R_AARCH64_ABS64) || is(elf::R_AARCH64_PREL64) {
            let at = self.inside(r.site.range, r.site.offset, 8)?;
            let from = if is(elf::R_AARCH64_ABS64) { 0 } else { self.address(at) as i64 };
            self.memory()[at..at + 8].copy_from_slice(&to(r.target).wrapping_sub(from).to_le_bytes());
            return Ok(());
        }
        let at = self.inside(r.site.range, r.site.offset, 4)?;
        let from = self.address(at) as i64;
        let pages = |value: i64| (value >> 12) - (from >> 12);
        let word = u32::from_le_bytes([0, 1, 2, 3].map(|i| self.memory()[at + i]));
        // `adr`: the low two bits of the immediate are apart from the others.
        let adr = |value: i64| -> Result<u32, LoadError> {
            let value = i32::try_from(value).ok().filter(|v| (-(1 << 20)..1 << 20).contains(v));
            let value = value.ok_or_else(|| r.too_far())? as u32;
            Ok((word & 0x9f00_001f) | (value & 3) << 29 | (value >> 2 & 0x7_ffff) << 5)
        };
        // The low bits of an address, in units of the access.
        let low = |value: i64, shift: u32| (word & !(0xfff << 10)) | ((value as u32 & 0xfff) >> shift) << 10;
        let word = if is(elf::R_AARCH64_PREL32) {
            i32::try_from(to(r.target).wrapping_sub(from)).map_err(|_| r.too_far())? as u32
        } else if is(elf::R_AARCH64_CALL26) || is(elf::R_AARCH64_JUMP26) {
            let target = if r.far { self.stub(r.target)? } else { r.target };
            let distance = to(target).wrapping_sub(from) >> 2;
            let distance = i32::try_from(distance).ok().filter(|d| (-(1 << 25)..1 << 25).contains(d));
            (word & 0xfc00_0000) | (distance.ok_or_else(|| r.too_far())? as u32 & 0x3ff_ffff)
        } else if is(elf::R_AARCH64_ADR_PREL_LO21) {
            adr(to(r.target).wrapping_sub(from))?
        } else if is(elf::R_AARCH64_ADR_PREL_PG_HI21) || is(elf::R_AARCH64_ADR_PREL_PG_HI21_NC) {
            adr(pages(to(r.target)))?
        } else if is(elf::R_AARCH64_ADR_GOT_PAGE) {
            adr(pages(to(self.entry(r.target)?)))?
        } else if is(elf::R_AARCH64_LD64_GOT_LO12_NC) {
            low(to(self.entry(r.target)?), 3)
        } else if is(elf::R_AARCH64_ADD_ABS_LO12_NC) || is(elf::R_AARCH64_LDST8_ABS_LO12_NC) {
            low(to(r.target), 0)
        } else if is(elf::R_AARCH64_LDST16_ABS_LO12_NC) {
            low(to(r.target), 1)
        } else if is(elf::R_AARCH64_LDST32_ABS_LO12_NC) {
            low(to(r.target), 2)
        } else if is(elf::R_AARCH64_LDST64_ABS_LO12_NC) {
            low(to(r.target), 3)
        } else if is(elf::R_AARCH64_LDST128_ABS_LO12_NC) {
            low(to(r.target), 4)
        } else {
            return Err(r.unknown());
        };
        self.memory()[at..at + 4].copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    /// Removes write permission from everything that is not writable.
    fn protect(&mut self) -> Result<(), LoadError> {
        #[cfg(target_arch = "aarch64")]
        {
            unsafe extern "C" {
                fn __clear_cache(begin: *mut u8, end: *mut u8);
            }
            let start = self.mapping.start.as_ptr();
            // SAFETY: the range is the code in our mapping; this only makes the processor see what was
            // written.
            unsafe { __clear_cache(start, start.add(self.groups[1])) };
        }
        let rights = [MprotectFlags::READ | MprotectFlags::EXEC, MprotectFlags::READ];
        for (group, rights) in rights.into_iter().enumerate() {
            let (start, end) = (self.groups[group], self.groups[group + 1]);
            if start == end {
                continue;
            }
            // SAFETY: whole pages of our mapping, to which nothing writes any more.
            let done = unsafe {
                let start = self.mapping.start.add(start);
                rustix::mm::mprotect(start.as_ptr().cast(), end - self.groups[group], rights)
            };
            done.map_err(|e| error(format!("memory cannot be made executable: {e}")))?;
        }
        Ok(())
    }
}

struct Relocation {
    kind: u32,
    site: Site,
    target: usize,
    far: bool,
}

impl Relocation {
    fn unknown(&self) -> LoadError {
        error(format!("relocations of kind {} are not known", self.kind))
    }

    fn too_far(&self) -> LoadError {
        error(format!("a relocation of kind {} that does not reach its target", self.kind))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use inkwell::OptimizationLevel;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};

    /// Assembles LLVM's text.
    pub(in crate::runtime) fn object(text: &str) -> Vec<u8> {
        Target::initialize_native(&InitializationConfig::default()).unwrap();
        let triple = TargetMachine::get_default_triple();
        let target = Target::from_triple(&triple).unwrap();
        let machine = target.create_target_machine(
            &triple,
            "generic",
            "",
            OptimizationLevel::Default,
            RelocMode::PIC,
            CodeModel::Small,
        );
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(format!("{text}\0").as_bytes(), "test");
        let module = context.create_module_from_ir(text).unwrap();
        machine.unwrap().write_to_memory_buffer(&module, FileType::Object).unwrap().as_slice().to_vec()
    }

    /// Constants, a table of addresses, writable data, calls in and out of the object, a jump table.
    const TEXT: &str = r#"
@factors = private constant [4 x double] [double 2.0, double 3.0, double 5.0, double 7.0]
@calls = internal global i64 40
@names = global [2 x ptr] [ptr @factors, ptr @calls]
declare double @fmod(double, double)
declare void @ours(ptr)
define internal double @scaled(i64 %i, double %x) noinline {
  %p = getelementptr double, ptr @factors, i64 %i
  %f = load double, ptr %p
  %y = fmul double %f, %x
  ret double %y
}
define i64 @choose(i64 %i) noinline {
  switch i64 %i, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e ]
a: call void @ours(ptr null)
  ret i64 11
b: call void @ours(ptr @names)
  ret i64 5
c: call void @ours(ptr @calls)
  ret i64 190
d: ret i64 3
e: ret i64 77
other: ret i64 -1
}
define void @kernel(ptr %arguments, i64 %begin, i64 %end) {
  %in = load ptr, ptr %arguments
  %q = getelementptr ptr, ptr %arguments, i64 1
  %out = load ptr, ptr %q
  %x = load double, ptr %in
  %y = call double @scaled(i64 %begin, double %x)
  %z = call double @fmod(double %y, double 4.0)
  store double %z, ptr %out
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  %o = getelementptr i8, ptr %out, i64 8
  store i64 %m, ptr %o
  %k = call i64 @choose(i64 %end)
  %o2 = getelementptr i8, ptr %out, i64 16
  store i64 %k, ptr %o2
  %table = getelementptr ptr, ptr @names, i64 0
  %first = load ptr, ptr %table
  %factor = load i64, ptr %first
  %o3 = getelementptr i8, ptr %out, i64 24
  store i64 %factor, ptr %o3
  ret void
}
"#;

    extern "C" fn ours(_: *const u8) {}

    fn known(name: &str) -> Option<External> {
        if name == "ours" { Some(External(ours as *const ())) } else { externals(name) }
    }

    #[test]
    fn code_is_loaded_relocated_and_called() {
        let code = Code::load(&object(TEXT), &known).unwrap();
        // SAFETY: the symbol is a kernel's.
        let kernel = unsafe { code.kernel("kernel") }.unwrap();
        let input = [5.5_f64];
        for (n, end, chosen) in [(41, 0, 11), (42, 1, 5), (43, 2, 190), (44, 4, 77), (45, 9, -1)] {
            let mut output = [0_u64; 4];
            let arguments = [input.as_ptr().cast_mut().cast::<u8>(), output.as_mut_ptr().cast()];
            // SAFETY: the kernel reads one number and writes four.
            unsafe { kernel(arguments.as_ptr(), 2, end) };
            assert_eq!(
                output.map(|x| x as i64),
                [3.5_f64.to_bits() as i64, n, chosen, 2.0_f64.to_bits() as i64]
            );
        }
        assert!(code.symbol("scaled").is_none(), "not global");
    }

    #[test]
    fn what_cannot_be_loaded_is_an_error() {
        let object = object(TEXT);
        let message = |object: &[u8]| Code::load(object, &externals).unwrap_err().message;
        assert_eq!(message(&object), "nothing defines `ours`");
        assert!(Code::load(b"text", &externals).is_err());
        for length in (0..object.len()).step_by(7) {
            let _ = Code::load(&object[..length], &known);
        }
        // Whatever a byte is changed to: an error, or code that nobody calls.
        for byte in (0..object.len()).step_by(3) {
            for value in [0, 0x7f, 0xff] {
                let mut object = object.clone();
                object[byte] = value;
                let _ = Code::load(&object, &known);
            }
        }
    }
}
