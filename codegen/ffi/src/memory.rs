//! Memory of others that may not be there: read by way of the kernel, which refuses addresses that are none.
//!
//! **Invariant:** an address is not followed here while `/proc/self/mem` can be read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The word at an address; `None`: nothing is there. Where `/proc` is absent the address is followed.
///
/// # Safety
/// There is a word at the address, or `/proc/self/mem` can be read.
pub(crate) unsafe fn word(address: usize) -> Option<usize> {
    let mut bytes = [0; size_of::<usize>()];
    match File::open("/proc/self/mem") {
        Ok(memory) => {
            memory.read_exact_at(&mut bytes, address as u64).ok().map(|()| usize::from_ne_bytes(bytes))
        }
        // SAFETY: as this function's.
        Err(_) => Some(unsafe { std::ptr::with_exposed_provenance::<usize>(address).read_unaligned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    #[allow(clippy::print_stderr, reason = "says what it skips")]
    fn what_is_not_there_is_not_read() {
        if std::fs::File::open("/proc/self/mem").is_err() {
            eprintln!("skipped: there is no /proc/self/mem");
            return;
        }
        let here = 0x1234_usize;
        // SAFETY: a word of this function's, and addresses that the kernel refuses.
        unsafe {
            assert_eq!(word((&raw const here).expose_provenance()), Some(0x1234));
            for nowhere in [8, 0xffff_8000_0000_0000] {
                assert_eq!(word(nowhere), None);
            }
        }
    }
}
