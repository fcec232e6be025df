//! Constants of loaded programs: one copy for all that have the same bytes.
//!
//! Functions of one artifact, and the specializations of one program to several shapes, have the same
//! weights. A pool finds the copy that an earlier program left, as they are and as library calls packed them.
//!
//! **Invariants:** what is shared is never written (buffer assignment makes allocations of constants
//! read-only); a copy lives as long as a program that has it; a hash only finds candidates, and bytes decide.

use std::hash::Hasher as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHasher};

use super::arena::{Memory, OutOfMemory};

/// Constants of fewer bytes are not looked for: that would cost more than it saves.
const MIN_SHARED_BYTES: usize = 4096;

/// Constants of the programs that were loaded with it.
#[derive(Debug, Default)]
pub struct ConstantPool {
    /// By hash of their bytes.
    shared: Mutex<FxHashMap<u64, Vec<Weak<Memory>>>>,
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl ConstantPool {
    /// Memory that has these bytes: another program's, or a copy.
    ///
    /// # Errors
    /// There is no memory for a copy.
    pub fn copy(&self, bytes: &[u8]) -> Result<Arc<Memory>, OutOfMemory> {
        let copied = || {
            let mut memory = Memory::new(bytes.len() as u64)?;
            memory.bytes_mut().copy_from_slice(bytes);
            Ok(Arc::new(memory))
        };
        if bytes.len() < MIN_SHARED_BYTES {
            return copied();
        }
        let hash = hash(bytes);
        if let Some(found) = self.find(hash, bytes) {
            return Ok(found);
        }
        let memory = copied()?;
        self.insert(hash, &memory);
        Ok(memory)
    }

    /// Another program's memory of the same bytes, if there is one, instead of this, which is no longer written.
    pub fn share(&self, memory: Memory) -> Arc<Memory> {
        if memory.len() < MIN_SHARED_BYTES {
            return Arc::new(memory);
        }
        let hash = hash(memory.bytes());
        self.find(hash, memory.bytes()).unwrap_or_else(|| {
            let memory = Arc::new(memory);
            self.insert(hash, &memory);
            memory
        })
    }

    /// Bytes that loaded programs share or could share: constants of 4 KiB and more, each copy once.
    pub fn bytes(&self) -> u64 {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.values().flatten().filter_map(Weak::upgrade).map(|memory| memory.len() as u64).sum()
    }

    fn find(&self, hash: u64, bytes: &[u8]) -> Option<Arc<Memory>> {
        let candidates: Vec<Arc<Memory>> = {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.get(&hash)?.iter().filter_map(Weak::upgrade).collect()
        };
        candidates.into_iter().find(|memory| memory.bytes() == bytes)
    }

    fn insert(&self, hash: u64, memory: &Arc<Memory>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        // What ended is forgotten when the table would grow.
        if shared.len() == shared.capacity() {
            shared.retain(|_, copies| {
                copies.retain(|memory| memory.strong_count() > 0);
                !copies.is_empty()
            });
        }
        shared.entry(hash).or_default().push(Arc::downgrade(memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_copy_while_somebody_has_it() {
        let pool = ConstantPool::default();
        let (one, two) = (vec![1_u8; MIN_SHARED_BYTES], vec![2_u8; MIN_SHARED_BYTES]);
        let first = pool.copy(&one).unwrap();
        assert!(Arc::ptr_eq(&first, &pool.copy(&one).unwrap()));
        let other = pool.copy(&two).unwrap();
        assert_eq!(other.bytes(), two);
        assert_eq!(pool.bytes(), 2 * MIN_SHARED_BYTES as u64);
        let mut packed = Memory::new(two.len() as u64).unwrap();
        packed.bytes_mut().copy_from_slice(&two);
        assert!(Arc::ptr_eq(&other, &pool.share(packed)));
        drop((first, other));
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn what_ended_is_forgotten() {
        let pool = ConstantPool::default();
        let programs: u32 = if cfg!(miri) { 64 } else { 1000 };
        for n in 0..programs {
            let bytes = n.to_le_bytes().repeat(MIN_SHARED_BYTES / 4);
            assert_eq!(pool.copy(&bytes).unwrap().bytes(), bytes);
        }
        assert!(pool.shared.lock().unwrap().len() < 16);
    }

    #[test]
    fn short_constants_are_copied() {
        let pool = ConstantPool::default();
        let first = pool.copy(&[1, 2, 3]).unwrap();
        assert!(!Arc::ptr_eq(&first, &pool.copy(&[1, 2, 3]).unwrap()));
        assert_eq!((pool.copy(&[]).unwrap().len(), pool.bytes()), (0, 0));
    }
}
