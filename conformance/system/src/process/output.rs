//! What processes print, read aside in bounded memory.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The end (or the beginning) of what a process prints. Everything is read, so that it can go on, and that
/// much is kept.
#[derive(Debug)]
pub struct Tail {
    text: Receiver<String>,
}

/// Which part of what is printed is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    /// The first bytes, at most this many.
    First(usize),
    /// The last bytes, at most this many.
    Last(usize),
}

impl Tail {
    /// The last `bytes` bytes. Errors: there is no thread to read it.
    pub fn last(from: impl Read + Send + 'static, bytes: usize) -> io::Result<Self> {
        Self::of(from, Kept::Last(bytes))
    }

    /// The first `bytes` bytes. Errors: there is no thread to read it.
    pub fn first(from: impl Read + Send + 'static, bytes: usize) -> io::Result<Self> {
        Self::of(from, Kept::First(bytes))
    }

    fn of(mut from: impl Read + Send + 'static, kept: Kept) -> io::Result<Self> {
        let (send, text) = sync_channel(1);
        let read = move || {
            let mut all = Vec::new();
            let mut block = [0; 8 << 10];
            while let Ok(n @ 1..) = from.read(&mut block) {
                keep(&mut all, &block[..n], kept);
            }
            if let Kept::Last(bytes) = kept {
                all.drain(..all.len().saturating_sub(bytes));
            }
            // Nobody may ask.
            let _ = send.send(String::from_utf8_lossy(&all).into_owned());
        };
        std::thread::Builder::new().spawn(read)?;
        Ok(Self { text })
    }

    /// The text, after the process has ended.
    pub fn text(self) -> String {
        // What it started has ended too, so that there is nobody left to hold the pipe open.
        self.text.recv_timeout(Duration::from_secs(2)).unwrap_or_default()
    }

    /// The last lines of the text, for an error.
    pub fn last_lines(self) -> String {
        const LAST_LINES: usize = 4;
        let text = self.text();
        let lines: Vec<&str> = text.trim().lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

fn keep(all: &mut Vec<u8>, block: &[u8], kept: Kept) {
    match kept {
        Kept::First(bytes) => all.extend_from_slice(&block[..block.len().min(bytes - all.len().min(bytes))]),
        Kept::Last(bytes) => {
            all.extend_from_slice(block);
            if all.len() > 2 * bytes {
                all.drain(..all.len() - bytes);
            }
        }
    }
}

/// Lines that a process prints and that begin with `{`, one after the other.
#[derive(Debug)]
pub struct Lines {
    lines: Receiver<Result<String, TooLong>>,
}

/// A line of more bytes than are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TooLong;

/// The maximum of lines that wait to be read: a writer of more blocks.
const MAX_WAITING_LINES: usize = 4;

/// The reason why there is no line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoLine {
    /// Nothing, for so long.
    TimedOut,
    /// The end.
    End,
    /// A line that is too long.
    TooLong,
}

impl Lines {
    /// The longest line.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Lines of what `from` gives. Errors: there is no thread to read it.
    pub fn of(mut from: impl Read + Send + 'static) -> io::Result<Self> {
        let (send, lines) = sync_channel(MAX_WAITING_LINES);
        let read = move || {
            let mut line = Vec::new();
            let mut block = [0; 8 << 10];
            while let Ok(n @ 1..) = from.read(&mut block) {
                for part in block[..n].split_inclusive(|&b| b == b'\n') {
                    line.extend_from_slice(part);
                    if line.len() > Self::MAX_BYTES {
                        let _ = send.send(Err(TooLong));
                        return;
                    }
                    if part.ends_with(b"\n") {
                        // Whatever else it prints is not for us.
                        let text = String::from_utf8_lossy(line.trim_ascii());
                        if text.starts_with('{') && send.send(Ok(text.into_owned())).is_err() {
                            return;
                        }
                        line.clear();
                    }
                }
            }
        };
        std::thread::Builder::new().spawn(read)?;
        Ok(Self { lines })
    }

    /// The next line.
    pub fn next(&self, timeout: Duration) -> Result<String, NoLine> {
        match self.lines.recv_timeout(timeout) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(TooLong)) => Err(NoLine::TooLong),
            Err(RecvTimeoutError::Timeout) => Err(NoLine::TimedOut),
            Err(RecvTimeoutError::Disconnected) => Err(NoLine::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_kept() {
        let text = || io::Cursor::new(b"0123456789".repeat(10_000));
        assert_eq!(Tail::last(text(), 12).unwrap().text(), "890123456789");
        assert_eq!(Tail::first(text(), 12).unwrap().text(), "012345678901");
        assert_eq!(Tail::first(io::Cursor::new(b"ab\xff"), 12).unwrap().text(), "ab\u{fffd}");
    }

    #[test]
    fn lines_are_told_apart_and_bounded() {
        let next = |lines: &Lines| lines.next(Duration::from_secs(9));
        let lines = Lines::of(io::Cursor::new(b"hello\n {1}\r\n{2}\n{half")).unwrap();
        let all = [next(&lines), next(&lines), next(&lines)];
        assert_eq!(all, [Ok("{1}".to_owned()), Ok("{2}".to_owned()), Err(NoLine::End)]);
        let lines = Lines::of(io::repeat(b'x')).unwrap();
        assert_eq!(next(&lines), Err(NoLine::TooLong));
        // Endlessly many: they are not all kept.
        let lines = Lines::of(Endless(0)).unwrap();
        assert_eq!(next(&lines), Ok("{}".to_owned()));
    }

    /// `{}` and a new line for ever.
    struct Endless(usize);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            for b in into.iter_mut() {
                *b = b"{}\n"[self.0 % 3];
                self.0 += 1;
            }
            Ok(into.len())
        }
    }
}
