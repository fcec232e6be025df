//! Lists of numbers of one to ten bytes each, seven bits a byte, the lowest first: elements of literals of
//! `pred`, `s32`, `s64`, `u32` and `u64`, of which there may be billions.
//!
//! Eight bytes are looked at together: bits of several bytes are moved by a few shifts, and bytes that are
//! numbers of their own are taken as they come.

/// The bit that says that a number goes on.
const MORE: u64 = 0x8080_8080_8080_8080;
/// Bytes that are looked at together where all are numbers.
const BLOCK: usize = 32;

/// What is wrong with packed numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// There are more.
    More,
    /// There are this many.
    Fewer(usize),
    /// One does not end within ten bytes.
    Endless,
}

/// The numbers of a packed list, of which there have to be `count`.
pub(crate) fn unpack<T: Copy>(bytes: &[u8], count: usize, make: impl Fn(u64) -> T) -> Result<Vec<T>, Wrong> {
    // Each has at least a byte, so that a false shape reserves nothing.
    let mut out = Vec::with_capacity(count.min(bytes.len()));
    let mut rest = bytes;
    while !rest.is_empty() {
        while let Some((block, tail)) = rest.split_first_chunk::<BLOCK>()
            && block.iter().fold(0, |all, b| all | b) < 0x80
            && count - out.len() >= BLOCK
        {
            let made: [T; BLOCK] = block.map(|b| make(u64::from(b)));
            out.extend_from_slice(&made);
            rest = tail;
        }
        // As many as a block may have that are not all of one byte.
        for _ in 0..BLOCK {
            if rest.is_empty() {
                break;
            }
            if out.len() == count {
                return Err(Wrong::More);
            }
            out.push(make(next(&mut rest)?));
        }
    }
    if out.len() < count { Err(Wrong::Fewer(out.len())) } else { Ok(out) }
}

/// The first number of bytes that are not none.
fn next(rest: &mut &[u8]) -> Result<u64, Wrong> {
    if let [first, tail @ ..] = *rest
        && *first < 0x80
    {
        *rest = tail;
        return Ok(u64::from(*first));
    }
    if let Some((word, tail)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let ends = !word & MORE;
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            *rest = &rest[(bits / 8) as usize..];
            return Ok(squeezed(word & (u64::MAX >> (64 - bits))));
        }
        if let [ninth, tenth @ (0 | 1), after @ ..] = tail
            && *ninth >= 0x80
        {
            *rest = after;
            return Ok(squeezed(word) | u64::from(ninth & 0x7f) << 56 | u64::from(*tenth) << 63);
        }
    }
    prost::encoding::decode_varint(rest).map_err(|_| Wrong::Endless)
}

/// The lower seven bits of eight bytes, side by side.
fn squeezed(word: u64) -> u64 {
    let x = word & !MORE;
    let x = x & 0x007f_007f_007f_007f | (x & 0x7f00_7f00_7f00_7f00) >> 1;
    let x = x & 0x0000_3fff_0000_3fff | (x & 0x3fff_0000_3fff_0000) >> 2;
    x & 0x0000_0000_0fff_ffff | (x & 0x0fff_ffff_0000_0000) >> 4
}

/// The other way round: of 56 bits seven a byte.
fn spread(x: u64) -> u64 {
    let x = x & 0x0000_0000_0fff_ffff | (x & 0x00ff_ffff_f000_0000) << 4;
    let x = x & 0x0000_3fff_0000_3fff | (x & 0x0fff_c000_0fff_c000) << 2;
    x & 0x007f_007f_007f_007f | (x & 0x3f80_3f80_3f80_3f80) << 1
}

/// Numbers as a packed list.
pub(crate) fn pack<T: Copy>(v: &[T], number: impl Fn(T) -> u64) -> Vec<u8> {
    let size: usize = v.iter().map(|&x| prost::encoding::encoded_len_varint(number(x))).sum();
    if size == v.len() {
        return v.iter().map(|&x| number(x) as u8).collect();
    }
    // Words of eight bytes are written, of which the next overwrites what is too much.
    let mut out = vec![0u8; size + 16];
    let mut at = 0;
    for &x in v {
        let x = number(x);
        let length = prost::encoding::encoded_len_varint(x);
        let bytes = &mut out[at..at + 16];
        let more = if length <= 8 { MORE & ((1u64 << (8 * (length - 1))) - 1) } else { MORE };
        bytes[..8].copy_from_slice(&(spread(x) | more).to_le_bytes());
        if length > 8 {
            bytes[8] = (x >> 56) as u8 & 0x7f | if length > 9 { 0x80 } else { 0 };
            bytes[9] = (x >> 63) as u8;
        }
        at += length;
    }
    out.truncate(size);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_by_one(numbers: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        numbers.iter().for_each(|&x| prost::encoding::encode_varint(x, &mut out));
        out
    }

    /// Numbers of all lengths, in runs of each and mixed.
    fn numbers() -> Vec<u64> {
        let mut all = Vec::new();
        for bits in 0..=64u32 {
            let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            for x in [most, most / 2 + 1, most & 0x5555_5555_5555_5555] {
                all.extend(std::iter::repeat_n(x, 1 + bits as usize % 7 * 9));
                all.push(u64::from(bits));
            }
        }
        all
    }

    #[test]
    fn lists_are_those_of_prost() {
        let numbers = numbers();
        for from in 0..40 {
            let numbers = &numbers[from..numbers.len() - 3 * from];
            let bytes = one_by_one(numbers);
            assert_eq!(pack(numbers, |x| x), bytes);
            assert_eq!(unpack(&bytes, numbers.len(), |x| x).as_deref(), Ok(numbers));
        }
        let small: Vec<u64> = (0..1000).map(|x| x % 128).collect();
        for length in [0, 1, 31, 32, 33, 64, 1000] {
            let bytes = one_by_one(&small[..length]);
            assert_eq!(pack(&small[..length], |x| x), bytes);
            assert_eq!(unpack(&bytes, length, |x| x).as_deref(), Ok(&small[..length]));
        }
    }

    #[test]
    fn lists_that_lie_are_errors() {
        let bytes = one_by_one(&[1; 100]);
        assert_eq!(unpack(&bytes, 99, |x| x), Err(Wrong::More));
        assert_eq!(unpack(&bytes, 0, |x| x), Err(Wrong::More));
        assert_eq!(unpack(&bytes, 101, |x| x), Err(Wrong::Fewer(100)));
        assert_eq!(unpack(&[], 1, |x| x), Err(Wrong::Fewer(0)));
        // Longer than any number, truncated, and with bits that there are not.
        for bad in [
            &[0x80; 11][..],
            &[0xff; 3],
            &[0x80; 8],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(unpack(bad, 1, |x| x), Err(Wrong::Endless), "{bad:?}");
            assert_eq!(unpack(&[bad, &[0x80; 20]].concat(), 1, |x| x), Err(Wrong::Endless), "{bad:?}");
        }
        // More bytes than are needed say the same.
        assert_eq!(unpack(&[0x81, 0x80, 0], 1, |x| x), Ok(vec![1]));
        assert_eq!(unpack(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 1, |x| x), Ok(vec![0]));
    }
}
