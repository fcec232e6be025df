//! Memory of the device: allocations with addresses, bytes, and which bytes were written.
//!
//! Invariant: allocations never touch: between two are at least [`GAP_BYTES`] that belong to none, so that an
//! access beyond one is out of bounds and does not hit the next.

use rustc_hash::FxHashMap;

use crate::ir::{Constant, Module, Space, Variable};

/// The first address of global memory.
pub const GLOBAL_BASE: u64 = 0x7000_0000_0000;
/// Bytes between allocations that belong to none.
pub const GAP_BYTES: u64 = 1 << 12;
/// Alignment of allocations, that of `cudaMalloc`.
pub const ALLOCATION_ALIGN: u64 = 256;

/// Generic addresses of shared memory begin here.
pub const SHARED_WINDOW: u64 = 0x6000_0000_0000;
/// Generic addresses of local memory begin here.
pub const LOCAL_WINDOW: u64 = 0x6100_0000_0000;
/// Generic addresses of parameters begin here.
pub const PARAM_WINDOW: u64 = 0x6200_0000_0000;
/// Size of each of these windows.
pub const WINDOW_BYTES: u64 = 1 << 24;

/// An allocation.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// What reports call it.
    pub name: String,
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// 1 for each byte that was written.
    pub written: Vec<u8>,
    /// Kernels may not write it.
    pub read_only: bool,
    /// It was freed; its addresses are not given again.
    pub is_freed: bool,
}

/// Memory cannot hold more, or an address is in no allocation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// The limit would be exceeded.
    #[error("an allocation of {bytes} bytes exceeds the limit of {limit} bytes")]
    Limit {
        /// Asked for.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The range is not inside one allocation.
    #[error("{bytes} bytes at {address:#x} are in no allocation")]
    Range {
        /// First address.
        address: u64,
        /// Length.
        bytes: u64,
    },
}

/// Global and constant memory.
#[derive(Clone, Debug)]
pub struct Memory {
    pub(crate) allocations: Vec<Allocation>,
    next: u64,
    used: u64,
    limit: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::with_limit(1 << 34)
    }
}

/// A module whose variables have addresses.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Module,
    /// The address of each `.global` and `.const` variable; 0 of the others.
    pub(crate) addresses: Vec<u64>,
}

impl Memory {
    /// Memory of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: u64) -> Self {
        Memory { allocations: Vec::new(), next: GLOBAL_BASE, used: 0, limit }
    }

    /// Sets how many bytes it holds at most, what it holds already included.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Allocates; nothing of it is written.
    ///
    /// # Errors
    /// Beyond the limit.
    pub fn allocate(&mut self, name: &str, bytes: u64) -> Result<u64, MemoryError> {
        if self.used.saturating_add(bytes) > self.limit {
            return Err(MemoryError::Limit { bytes, limit: self.limit });
        }
        let base = self.next;
        self.next = (base + bytes + GAP_BYTES).next_multiple_of(ALLOCATION_ALIGN);
        self.used += bytes;
        let size = bytes as usize;
        self.allocations.push(Allocation {
            name: name.to_owned(),
            base,
            bytes: vec![0; size],
            written: vec![0; size],
            read_only: false,
            is_freed: false,
        });
        Ok(base)
    }

    /// Allocates and writes.
    ///
    /// # Errors
    /// Beyond the limit.
    pub fn upload(&mut self, name: &str, bytes: &[u8]) -> Result<u64, MemoryError> {
        let base = self.allocate(name, bytes.len() as u64)?;
        self.write(base, bytes)?;
        Ok(base)
    }

    /// Frees an allocation: accesses to it are out of bounds from now on.
    ///
    /// # Errors
    /// No allocation begins there.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let Some(a) = self.allocations.iter_mut().find(|a| a.base == address && !a.is_freed) else {
            return Err(MemoryError::Range { address, bytes: 0 });
        };
        self.used -= a.bytes.len() as u64;
        (a.is_freed, a.bytes, a.written) = (true, Vec::new(), Vec::new());
        Ok(())
    }

    fn range(&self, address: u64, bytes: u64) -> Result<(usize, usize), MemoryError> {
        match self.find(address) {
            Some(i)
                if (address - self.allocations[i].base).saturating_add(bytes)
                    <= self.allocations[i].bytes.len() as u64 =>
            {
                Ok((i, (address - self.allocations[i].base) as usize))
            }
            _ => Err(MemoryError::Range { address, bytes }),
        }
    }

    /// The allocation that an address is in, or behind.
    pub(crate) fn find(&self, address: u64) -> Option<usize> {
        self.allocations.partition_point(|a| a.base <= address).checked_sub(1)
    }

    /// Writes bytes, as a copy from the host does.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let (i, at) = self.range(address, bytes.len() as u64)?;
        let a = &mut self.allocations[i];
        a.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        a.written[at..at + bytes.len()].fill(1);
        Ok(())
    }

    /// Reads bytes, written or not.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn read(&self, address: u64, bytes: u64) -> Result<&[u8], MemoryError> {
        let (i, at) = self.range(address, bytes)?;
        Ok(&self.allocations[i].bytes[at..at + bytes as usize])
    }

    /// For each byte of a range 1 if it was written, else 0.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn written_bytes(&self, address: u64, bytes: u64) -> Result<&[u8], MemoryError> {
        let (i, at) = self.range(address, bytes)?;
        Ok(&self.allocations[i].written[at..at + bytes as usize])
    }

    /// How many bytes of a range were written.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn written(&self, address: u64, bytes: u64) -> Result<u64, MemoryError> {
        let (i, at) = self.range(address, bytes)?;
        Ok(self.allocations[i].written[at..at + bytes as usize].iter().map(|&w| u64::from(w)).sum())
    }

    /// Allocates the variables of a module and writes their initial values. Variables without initial value
    /// are zero, as the ISA says.
    ///
    /// # Errors
    /// Beyond the limit.
    pub fn load(&mut self, module: Module) -> Result<Loaded, MemoryError> {
        let mut addresses = Vec::new();
        for v in &module.variables {
            let address = match v.space {
                Space::Global | Space::Const => {
                    let address = self.allocate(&v.name, v.bytes)?;
                    // `allocate` appended it.
                    if let Some(a) = self.allocations.last_mut() {
                        a.written.fill(1);
                        a.read_only = v.space == Space::Const;
                    }
                    address
                }
                Space::Generic | Space::Shared | Space::Local | Space::Param => 0,
            };
            addresses.push(address);
        }
        let loaded = Loaded { module, addresses };
        let layout = SharedLayout::default();
        for (v, &address) in loaded.module.variables.iter().zip(&loaded.addresses) {
            if address == 0 {
                continue;
            }
            self.write(address, &v.initial)?;
            for &(at, width, constant) in &v.relocations {
                let value = loaded.constant(constant, &layout);
                self.write(address + at, &value.to_le_bytes()[..usize::from(width)])?;
            }
        }
        Ok(loaded)
    }
}

impl Loaded {
    /// Address and size of a variable.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        let i = self.module.variables.iter().position(|v| v.name == name && v.space != Space::Shared)?;
        Some((self.addresses[i], self.module.variables[i].bytes))
    }

    /// The bits of a constant.
    pub(crate) fn constant(&self, c: Constant, shared: &SharedLayout) -> u64 {
        match c {
            Constant::Value(v) => v,
            Constant::Function(f) => u64::from(f),
            Constant::Variable(v, offset) | Constant::Generic(v, offset) => {
                let is_shared = self.module.variables[v as usize].space == Space::Shared;
                let window = if is_shared && matches!(c, Constant::Generic(..)) { SHARED_WINDOW } else { 0 };
                let address = if is_shared {
                    shared.offsets.get(&v).copied().unwrap_or(0)
                } else {
                    self.addresses[v as usize]
                };
                (window + address).wrapping_add(offset as u64)
            }
        }
    }
}

/// Where the shared variables of a kernel are in the shared window.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLayout {
    pub(crate) offsets: FxHashMap<u32, u64>,
    /// Start, end and variable, by start.
    pub(crate) ranges: Vec<(u64, u64, u32)>,
    /// Bytes of the window.
    pub(crate) window: u64,
    /// Bytes of the variables that are not dynamic.
    pub(crate) fixed_bytes: u64,
}

/// Shared addresses below this belong to the system; null is among them.
const SHARED_START: u64 = 1024;
/// Bytes between shared variables that belong to none.
const SHARED_GAP: u64 = 64;

impl SharedLayout {
    /// The layout of a kernel with `dynamic` bytes of dynamic shared memory.
    pub(crate) fn new(module: &Module, kernel: u32, dynamic: u64) -> Self {
        let mut layout = SharedLayout { window: SHARED_START, ..SharedLayout::default() };
        let mine = |v: &Variable| {
            v.space == Space::Shared
                && v.owner.is_none_or(|o| o == kernel || !module.functions[o as usize].is_kernel)
        };
        let mut at = SHARED_START;
        let mut packed = 0_u64;
        for (i, v) in module.variables.iter().enumerate().filter(|v| mine(v.1) && !v.1.is_dynamic) {
            let align = u64::from(v.align).max(16);
            at = at.next_multiple_of(align);
            packed = packed.next_multiple_of(u64::from(v.align)) + v.bytes;
            layout.offsets.insert(i as u32, at);
            layout.ranges.push((at, at + v.bytes, i as u32));
            at += v.bytes + SHARED_GAP;
        }
        layout.fixed_bytes = packed;
        // All dynamic variables begin at the same address.
        at = at.next_multiple_of(1024);
        for (i, _) in module.variables.iter().enumerate().filter(|v| mine(v.1) && v.1.is_dynamic) {
            layout.offsets.insert(i as u32, at);
            if layout.ranges.last().is_none_or(|r| r.0 != at) {
                layout.ranges.push((at, at.saturating_add(dynamic), i as u32));
            }
        }
        layout.window = at.saturating_add(dynamic);
        layout
    }

    /// Whether a range is inside one variable.
    pub(crate) fn contains(&self, at: u64, bytes: u64) -> bool {
        let i = self.ranges.partition_point(|r| r.0 <= at);
        i > 0 && at.saturating_add(bytes) <= self.ranges[i - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_apart() {
        let mut m = Memory::with_limit(100);
        let a = m.upload("a", &[1, 2, 3]).unwrap();
        let b = m.allocate("b", 8).unwrap();
        assert!(b >= a + 3 + GAP_BYTES && b.is_multiple_of(ALLOCATION_ALIGN));
        assert_eq!(m.read(a, 3).unwrap(), [1, 2, 3]);
        assert_eq!((m.written(a, 3).unwrap(), m.written(b, 8).unwrap()), (3, 0));
        assert!(m.read(a, 4).is_err() && m.read(a - 1, 1).is_err() && m.write(b + 8, &[1]).is_err());
        assert!(m.allocate("c", 90).is_err());
        m.free(a).unwrap();
        assert!(m.read(a, 1).is_err());
    }
}
