//! The frame of the files that this crate writes: what kind of file it is, a checksum, a header, and bytes
//! that the header describes.
//!
//! ```text
//! magic (8) │ version (4) │ length of the header (4) │ SHA-256 of all that follows (32) │ header │ blobs
//! ```
//!
//! Numbers are little-endian; the header is in postcard's format. **Invariant:** a file without the magic,
//! the version and the checksum is refused before its header is decoded.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{Code, Error};

/// Bytes before the header.
const PREFIX_BYTES: usize = 8 + 4 + 4 + 32;

/// A kind of file.
pub(crate) struct Format {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    /// What such a file is, for messages.
    pub(crate) what: &'static str,
}

impl Format {
    /// Whether bytes begin as such a file does.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(&self.magic)
    }

    /// An error of a file whose contents are wrong.
    pub(crate) fn damaged(&self, how: &str) -> Error {
        Error::new(Code::DataLoss, format!("the {} is damaged: {how}", self.what))
    }

    /// A file. Errors: the header has more than 4 GiB.
    pub(crate) fn write<'b>(
        &self,
        header: &impl Serialize,
        blobs: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Vec<u8>, Error> {
        let header = postcard::to_allocvec(header)
            .map_err(|e| Error::new(Code::Internal, "the header cannot be written").caused_by(e))?;
        let header_bytes = u32::try_from(header.len())
            .map_err(|_| Error::new(Code::Unimplemented, "the header has more than 4 GiB"))?;
        let mut bytes = vec![0; PREFIX_BYTES];
        bytes.extend(header);
        blobs.for_each(|blob| bytes.extend_from_slice(blob));
        let hash: [u8; 32] = Sha256::digest(&bytes[PREFIX_BYTES..]).into();
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&header_bytes.to_le_bytes());
        bytes[16..48].copy_from_slice(&hash);
        Ok(bytes)
    }

    /// The header of a file, and its blobs.
    ///
    /// Errors: it is no such file, or damaged ([`Code::DataLoss`]); of another version
    /// ([`Code::FailedPrecondition`]).
    pub(crate) fn read<'b, H: DeserializeOwned>(&self, bytes: &'b [u8]) -> Result<(H, Blobs<'b>), Error> {
        let what = self.what;
        let prefix = bytes.get(..PREFIX_BYTES).filter(|_| self.is(bytes));
        let prefix = prefix.ok_or_else(|| Error::new(Code::DataLoss, format!("this is no {what}")))?;
        let number =
            |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
        if number(8) != self.version {
            let message = format!("a {what} of version {}; this is version {}", number(8), self.version);
            return Err(Error::new(Code::FailedPrecondition, message));
        }
        let mut rest = Blobs { rest: &bytes[PREFIX_BYTES..], what };
        if Sha256::digest(rest.rest)[..] != prefix[16..48] {
            return Err(self.damaged("its checksum does not fit"));
        }
        let header = rest.take(u64::from(number(12)))?;
        let header = postcard::from_bytes(header).map_err(|e| self.damaged("its header").caused_by(e))?;
        Ok((header, rest))
    }
}

/// Bytes that pieces are cut off the front of.
pub(crate) struct Blobs<'b> {
    rest: &'b [u8],
    what: &'static str,
}

impl<'b> Blobs<'b> {
    /// The next piece. Errors: there is less.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<&'b [u8], Error> {
        let split = usize::try_from(bytes).ok().and_then(|n| self.rest.split_at_checked(n));
        let (blob, rest) =
            split.ok_or_else(|| Error::new(Code::DataLoss, format!("the {} is cut", self.what)))?;
        self.rest = rest;
        Ok(blob)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
