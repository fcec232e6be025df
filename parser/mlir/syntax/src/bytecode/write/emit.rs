//! Writing the primitives of bytecode: the inverse of the cursor.

use super::super::section::Section;

/// Bytes that are being written.
#[derive(Clone, Default, Debug)]
pub(super) struct Emitter {
    pub(super) bytes: Vec<u8>,
}

impl Emitter {
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A variable-width integer: as many trailing zeros in the first byte as bytes follow.
    pub(super) fn varint(&mut self, value: u64) {
        let bits = 64 - value.leading_zeros();
        if bits > 56 {
            self.bytes.push(0);
            self.bytes.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let length = bits.div_ceil(7).max(1) as usize;
        let marked = (value << 1 | 1) << (length - 1);
        self.bytes.extend_from_slice(&marked.to_le_bytes()[..length]);
    }

    pub(super) fn signed(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn flagged(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }

    /// The header of a section of that many bytes.
    pub(super) fn section_header(&mut self, section: Section, length: usize) {
        self.byte(section.id());
        self.varint(length as u64);
    }

    /// A section.
    pub(super) fn section(&mut self, section: Section, content: &[u8]) {
        self.section_header(section, content.len());
        self.bytes.extend_from_slice(content);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cursor::Cursor;
    use super::*;

    #[test]
    fn integers_are_read_as_they_were_written() {
        let mut edges = vec![0, u64::MAX];
        edges.extend((0..64).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1]));
        for value in edges {
            let mut e = Emitter::default();
            e.varint(value);
            e.signed(value as i64);
            let mut c = Cursor::new(&e.bytes);
            assert_eq!(c.varint().expect("complete"), value);
            assert_eq!(c.signed().expect("complete"), value as i64);
            assert!(c.is_empty());
        }
        // From the description of the format: 7 bits a byte.
        let length = |value| {
            let mut e = Emitter::default();
            e.varint(value);
            e.bytes.len()
        };
        assert_eq!(
            [0, 127, 128, (1 << 14) - 1, 1 << 14, (1 << 56) - 1, 1 << 56].map(length),
            [1, 1, 2, 2, 3, 8, 9]
        );
    }
}
