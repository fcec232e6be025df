//! Arrays on a device.
//!
//! A [`Buffer`] is a reference to an array; clones refer to the same one. **Invariants:** the bytes of an
//! array never change while anybody can read them (who donates gives the array away, and every other
//! reference finds it deleted); an array that is not there yet, or never will be, says so to everybody who
//! asks.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

use hlo::{ArrayLiteral, ArrayShape};
use hlo_codegen::runtime::arena::{ALIGNMENT, Block};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_library_base::memory::array_bytes;

use crate::error::{Code, Error};
use crate::memory::{DeviceMemory, Lease};
use crate::pooled::{FreeList, FromPool, Pooled};

/// Device memory, and the bytes of the budget that it takes.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) block: Block,
    /// Held for its being dropped.
    pub(crate) _lease: Lease,
}

thread_local!(static HELD: FreeList<Held> = const { RefCell::new(Vec::new()) });

impl FromPool for Held {
    fn free() -> &'static LocalKey<FreeList<Self>> {
        &HELD
    }
}

/// Memory of somebody else's, lent to arrays ([`Client::lend`](crate::Client::lend)) until it is dropped.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// The bytes, dense and row-major. They never change, and lie where they lie.
    fn bytes(&self) -> &[u8];
}

/// The bytes of an array.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// In memory of the device: a range of it.
    Device { held: Pooled<Held>, offset: usize, bytes: usize },
    /// Shared with the caller, who promised (by the type) not to change it.
    Host(Arc<hlo::Buffer>),
    /// Lent by somebody else.
    Foreign(Arc<dyn Foreign>),
}

/// The bytes of an array, kept as they are and where they are while this is held, whatever happens to the
/// [`Buffer`].
#[derive(Clone, Debug)]
pub struct Hold(Data);

impl Hold {
    /// The bytes, dense and row-major.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Data {
    pub(crate) fn new(block: Block, lease: Lease) -> Self {
        Self::whole(Pooled::new(Held { block, _lease: lease }))
    }

    pub(crate) fn whole(held: Pooled<Held>) -> Self {
        let bytes = held.block.len();
        Data::Device { held, offset: 0, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Data::Device { held, offset, bytes } => &held.block.bytes()[*offset..offset + bytes],
            Data::Host(buffer) => bytes_of(buffer),
            Data::Foreign(foreign) => foreign.bytes(),
        }
    }

    /// The memory itself, if nobody else refers to it. Errors: it as it was.
    pub(crate) fn into_block(self) -> Result<Block, Data> {
        match self {
            Data::Device { held, offset: 0, bytes } if bytes == held.block.len() => {
                let held = held.into_inner().map(|held| held.block);
                held.map_err(|held| Data::Device { held, offset: 0, bytes })
            }
            Data::Device { .. } | Data::Host(_) | Data::Foreign(_) => Err(self),
        }
    }
}

#[derive(Debug)]
enum State {
    /// An execution that has not ended yet will say.
    Pending,
    Ready(Data),
    /// In host memory, for want of device memory.
    Evicted(Box<[u8]>),
    Failed(Error),
    /// Why it is no longer there.
    Deleted(&'static str),
}

/// An array, as all references to it share it.
pub(crate) struct Shared {
    shape: Arc<ArrayShape>,
    /// Where it comes from, for reports.
    origin: Origin,
    memory: Arc<DeviceMemory>,
    last_use: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

thread_local!(static ARRAYS: FreeList<Shared> = const { RefCell::new(Vec::new()) });

impl FromPool for Shared {
    fn free() -> &'static LocalKey<FreeList<Self>> {
        &ARRAYS
    }
}

/// Where an array comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Host,
    Result { program: Arc<str>, leaf: usize },
    Part,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Host => f.write_str("an array from the host"),
            Origin::Result { program, leaf } => write!(f, "result {leaf} of {program}"),
            Origin::Part => f.write_str("part of an array"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.shape, self.origin)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the array.
    pub(crate) fn bytes(&self) -> u64 {
        array_bytes(&self.shape).unwrap_or(u64::MAX)
    }

    pub(crate) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// Bytes of device memory that it holds, and what it is.
    pub(crate) fn holds(&self) -> Option<(u64, String)> {
        match &*self.state.try_lock().ok()? {
            State::Ready(Data::Device { bytes, .. }) => {
                Some((*bytes as u64, format!("{} {}", self.shape, self.origin)))
            }
            State::Ready(Data::Host(_) | Data::Foreign(_))
            | State::Pending
            | State::Evicted(_)
            | State::Failed(_)
            | State::Deleted(_) => None,
        }
    }

    /// Moves it to host memory, if nobody is using it. The bytes that were freed.
    pub(crate) fn evict(&self) -> Option<u64> {
        let mut state = self.state.try_lock().ok()?;
        match &*state {
            State::Ready(data @ Data::Device { held, .. }) if held.is_alone() => {
                let bytes: Box<[u8]> = data.bytes().into();
                let freed = bytes.len() as u64;
                *state = State::Evicted(bytes);
                Some(freed)
            }
            State::Ready(_) | State::Pending | State::Evicted(_) | State::Failed(_) | State::Deleted(_) => {
                None
            }
        }
    }
}

/// An array on a device.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(crate) shared: Pooled<Shared>,
}

impl Buffer {
    fn with_state(shape: Arc<ArrayShape>, origin: Origin, memory: &Arc<DeviceMemory>, state: State) -> Self {
        let shared = Pooled::new(Shared {
            shape,
            origin,
            memory: Arc::clone(memory),
            last_use: AtomicU64::new(if memory.is_limited() { memory.tick() } else { 0 }),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        memory.register(&shared);
        Self { shared }
    }

    /// An array whose bytes are there.
    pub(crate) fn ready(
        shape: Arc<ArrayShape>,
        origin: Origin,
        memory: &Arc<DeviceMemory>,
        data: Data,
    ) -> Self {
        Self::with_state(shape, origin, memory, State::Ready(data))
    }

    /// An array that an execution will make.
    pub(crate) fn pending(shape: Arc<ArrayShape>, origin: Origin, memory: &Arc<DeviceMemory>) -> Self {
        Self::with_state(shape, origin, memory, State::Pending)
    }

    /// Settles a pending array.
    pub(crate) fn settle(&self, outcome: Result<Data, Error>) {
        let mut state = self.shared.state();
        if matches!(*state, State::Pending) {
            *state = match outcome {
                Ok(data) => State::Ready(data),
                Err(error) => State::Failed(error),
            };
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// An array that there will never be.
    pub(crate) fn failed(shape: ArrayShape, memory: &Arc<DeviceMemory>, error: Error) -> Self {
        Self::with_state(Arc::new(shape), Origin::Host, memory, State::Failed(error))
    }

    /// An array in foreign memory ([`Foreign`]).
    pub(crate) fn foreign(
        shape: ArrayShape,
        memory: &Arc<DeviceMemory>,
        bytes: Arc<dyn Foreign>,
    ) -> Result<Self, Error> {
        Self::check_bytes(&shape, bytes.bytes())?;
        Ok(Self::ready(Arc::new(shape.without_layout()), Origin::Host, memory, Data::Foreign(bytes)))
    }

    fn check_bytes(shape: &ArrayShape, bytes: &[u8]) -> Result<(), Error> {
        if array_bytes(shape) == Some(bytes.len() as u64) {
            return Ok(());
        }
        let message = format!("{} bytes are no array of shape {shape}", bytes.len());
        Err(Error::new(Code::InvalidArgument, message))
    }

    /// Copies bytes to the device.
    pub(crate) fn copied(shape: ArrayShape, bytes: &[u8], memory: &Arc<DeviceMemory>) -> Result<Self, Error> {
        Self::check_bytes(&shape, bytes)?;
        let data = Self::upload(bytes, memory)?;
        Ok(Self::ready(Arc::new(shape.without_layout()), Origin::Host, memory, data))
    }

    fn upload(bytes: &[u8], memory: &Arc<DeviceMemory>) -> Result<Data, Error> {
        let lease = memory.take(bytes.len() as u64)?;
        let mut block = memory.store().take(bytes.len() as u64)?;
        block.bytes_mut().copy_from_slice(bytes);
        Ok(Data::new(block, lease))
    }

    /// An array of zeros.
    pub(crate) fn zeros(shape: ArrayShape, memory: &Arc<DeviceMemory>) -> Result<Self, Error> {
        let bytes = array_bytes(&shape);
        let bytes =
            bytes.ok_or_else(|| Error::new(Code::ResourceExhausted, format!("{shape} is too large")))?;
        let lease = memory.take(bytes)?;
        let mut block = memory.store().take(bytes)?;
        block.bytes_mut().fill(0);
        let data = Data::new(block, lease);
        Ok(Self::ready(Arc::new(shape.without_layout()), Origin::Host, memory, data))
    }

    /// Shares an array with the host, without a copy. (Programs copy it at each run if it is not aligned to
    /// 64 bytes.)
    pub(crate) fn lent(literal: &ArrayLiteral, memory: &Arc<DeviceMemory>) -> Self {
        let shape = ArrayShape::new(literal.buffer.element_type(), &literal.dims);
        Self::ready(Arc::new(shape), Origin::Host, memory, Data::Host(Arc::clone(&literal.buffer)))
    }

    /// Its shape. Of a result with run-time sizes the bounds, until it is there.
    pub fn shape(&self) -> &ArrayShape {
        &self.shared.shape
    }

    /// Whether its bytes are there, or never will be.
    pub fn is_ready(&self) -> bool {
        !matches!(*self.shared.state(), State::Pending)
    }

    /// Whether it was deleted or donated.
    pub fn is_deleted(&self) -> bool {
        matches!(*self.shared.state(), State::Deleted(_))
    }

    /// Whether it was moved to host memory for want of device memory; the next use brings it back.
    pub fn is_evicted(&self) -> bool {
        matches!(*self.shared.state(), State::Evicted(_))
    }

    /// Waits until it is there.
    ///
    /// # Errors
    /// Those of the execution that was to make it ([`Code::FailedPrecondition`]: it was deleted).
    pub fn wait(&self) -> Result<(), Error> {
        self.data().map(drop)
    }

    /// The bytes, once they are there, on the device.
    pub(crate) fn data(&self) -> Result<Data, Error> {
        let shared = &*self.shared;
        if shared.memory.is_limited() {
            shared.last_use.store(shared.memory.tick(), Ordering::Relaxed);
        }
        let mut state = shared.state();
        loop {
            match &*state {
                State::Ready(data) => return Ok(data.clone()),
                State::Failed(error) => return Err(error.clone()),
                State::Deleted(why) => return Err(Self::deleted(why)),
                State::Pending => {
                    state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                State::Evicted(bytes) => {
                    let data = Self::upload(bytes, &shared.memory)?;
                    *state = State::Ready(data.clone());
                    return Ok(data);
                }
            }
        }
    }

    fn deleted(why: &str) -> Error {
        Error::new(Code::FailedPrecondition, format!("the buffer was {why}"))
    }

    /// Takes the bytes away from all references. `why`: how it is said to who asks later.
    pub(crate) fn take(&self, why: &'static str) -> Result<Data, Error> {
        self.data()?;
        let mut state = self.shared.state();
        match std::mem::replace(&mut *state, State::Deleted(why)) {
            State::Ready(data) => Ok(data),
            State::Deleted(before) => {
                *state = State::Deleted(before);
                Err(Self::deleted(before))
            }
            other @ (State::Pending | State::Evicted(_) | State::Failed(_)) => {
                *state = other;
                drop(state);
                Err(Error::new(Code::FailedPrecondition, "the buffer is used elsewhere"))
            }
        }
    }

    /// Gives it other elements, for everyone who refers to it; executions that have begun go on with those
    /// that they found.
    ///
    /// # Errors
    /// The array has another shape; there is no memory for it; it was deleted.
    pub fn overwrite(&self, array: &ArrayLiteral) -> Result<(), Error> {
        if *self.shape() != array.shape() {
            let message = format!("{} cannot be overwritten with {}", self.shape(), array.shape());
            return Err(Error::new(Code::InvalidArgument, message));
        }
        self.data()?;
        let data = Self::upload(bytes_of(&array.buffer), &self.shared.memory)?;
        let mut state = self.shared.state();
        match &*state {
            State::Deleted(why) => Err(Self::deleted(why)),
            State::Ready(_) | State::Evicted(_) | State::Pending | State::Failed(_) => {
                *state = State::Ready(data);
                Ok(())
            }
        }
    }

    /// Deletes it: every reference finds that it is gone.
    ///
    /// # Errors
    /// As [`Buffer::wait`]; it was deleted before.
    pub fn delete(&self) -> Result<(), Error> {
        self.take("deleted").map(drop)
    }

    /// The array, once it is there, copied to the host.
    ///
    /// # Errors
    /// As [`Buffer::wait`].
    pub fn to_literal(&self) -> Result<ArrayLiteral, Error> {
        let data = self.data()?;
        let shape = self.shape();
        let buffer = match &data {
            Data::Host(buffer) => Arc::clone(buffer),
            Data::Device { .. } | Data::Foreign(_) => buffer_of(shape.element_type, data.bytes()).into(),
        };
        Ok(ArrayLiteral { dims: shape.dims.clone(), buffer })
    }

    /// The bytes, once they are there, for as long as they are needed. An array that is held is not updated
    /// in place: who donates it has it copied.
    ///
    /// # Errors
    /// As [`Buffer::wait`].
    pub fn hold(&self) -> Result<Hold, Error> {
        self.data().map(Hold)
    }

    /// Calls `read` with the bytes, dense and row-major, once they are there; they are not moved or changed
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Buffer::wait`].
    pub fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        let data = self.data()?;
        Ok(read(data.bytes()))
    }

    /// A range of its bytes as an array of its own, without a copy: it keeps the memory of this one.
    ///
    /// # Errors
    /// The range does not fit, or begins at no multiple of 64 bytes; as [`Buffer::wait`].
    pub fn part(&self, offset_bytes: usize, shape: ArrayShape) -> Result<Buffer, Error> {
        let data = self.data()?;
        let wanted = array_bytes(&shape).and_then(|n| usize::try_from(n).ok());
        let all = data.bytes().len();
        let fits = wanted.and_then(|n| offset_bytes.checked_add(n)).is_some_and(|end| end <= all);
        let (Some(wanted), true, true) = (wanted, fits, offset_bytes.is_multiple_of(ALIGNMENT)) else {
            let message =
                format!("{shape} at byte {offset_bytes} is no part of {} ({all} bytes)", self.shape());
            return Err(Error::new(Code::InvalidArgument, message));
        };
        let data = match data {
            Data::Device { held, offset, .. } => {
                Data::Device { held, offset: offset + offset_bytes, bytes: wanted }
            }
            Data::Host(_) | Data::Foreign(_) => {
                Self::upload(&data.bytes()[offset_bytes..offset_bytes + wanted], &self.shared.memory)?
            }
        };
        Ok(Self::ready(Arc::new(shape), Origin::Part, &self.shared.memory, data))
    }
}
