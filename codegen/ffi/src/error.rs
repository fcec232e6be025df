//! `XLA_FFI_Error`: failures as handlers make and see them.

use std::ffi::CString;

use hlo_client::Code;

/// `XLA_FFI_Error`. Whoever is given one destroys it.
#[derive(Debug)]
pub struct Error {
    pub(crate) code: Code,
    pub(crate) message: CString,
}

/// A failure of a function of the API.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<Vec<u8>>) -> Self {
        let mut bytes: Vec<u8> = message.into();
        bytes.retain(|&b| b != 0);
        Self { code, message: CString::new(bytes).unwrap_or_default() }
    }

    pub(crate) fn give(self) -> *mut Error {
        Box::into_raw(Box::new(self))
    }

    /// Takes an error that its owner gives away.
    ///
    /// # Safety
    /// It is null, or one that [`Error::give`] gave and nobody took.
    pub(crate) unsafe fn take(error: *mut Error) -> Option<Box<Error>> {
        if error.is_null() {
            return None;
        }
        // SAFETY: as this function's.
        Some(unsafe { Box::from_raw(error) })
    }

    pub(crate) fn text(&self) -> String {
        self.message.to_string_lossy().into_owned()
    }
}

/// The codes of XLA's FFI, which are those of Abseil.
const CODES: [(i32, Code); 11] = [
    (1, Code::Cancelled),
    (3, Code::InvalidArgument),
    (4, Code::DeadlineExceeded),
    (5, Code::NotFound),
    (8, Code::ResourceExhausted),
    (9, Code::FailedPrecondition),
    (10, Code::Aborted),
    (12, Code::Unimplemented),
    (13, Code::Internal),
    (14, Code::Unavailable),
    (15, Code::DataLoss),
];

/// A code by its number; what this project has no code for is the nearest that it has.
pub(crate) fn code_of(number: i32) -> Code {
    let found = CODES.iter().find(|(n, _)| *n == number).map(|&(_, code)| code);
    found.unwrap_or(match number {
        // Already exists; permission denied; out of range; unauthenticated.
        6 | 7 | 16 => Code::FailedPrecondition,
        11 => Code::InvalidArgument,
        // Unknown, and numbers that are no codes.
        _others => Code::Aborted,
    })
}

/// The number of a code.
pub(crate) fn number_of(code: Code) -> i32 {
    const UNKNOWN: i32 = 2;
    CODES.iter().find(|(_, c)| *c == code).map_or(UNKNOWN, |&(n, _)| n)
}
