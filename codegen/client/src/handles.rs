//! Arrays, tuples and programs by number: the model of XRT, for callers who cannot hold references (other
//! processes, other languages).
//!
//! A handle has the number of its device in the upper 12 bits and random bits below; 0 is none.
//! **Invariants:** an unknown or released handle is [`Code::NotFound`], never another object (numbers are
//! drawn at random and not used again while they are known); releasing a handle leaves what others refer to
//! alive; tuples share the arrays of their elements, so what is written to an element is seen through every
//! handle of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hlo::{ArrayLiteral, ArrayShape, Literal, Shape};
use rustc_hash::FxHashMap;

use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

/// Bits of a handle below the device's number.
const DEVICE_SHIFT: u32 = 52;

/// The name of an array, a tuple or a program; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u64);

impl Handle {
    /// The device that it is on.
    pub fn device(self) -> u32 {
        (self.0 >> DEVICE_SHIFT) as u32
    }
}

/// An array, or a tuple of such and of tuples.
#[derive(Clone, Debug)]
pub enum Value {
    /// An array.
    Array(Buffer),
    /// A tuple.
    Tuple(Vec<Value>),
}

impl Value {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        match self {
            Value::Array(buffer) => Shape::Array(buffer.shape().clone()),
            Value::Tuple(elements) => Shape::tuple(elements.iter().map(Value::shape)),
        }
    }

    /// The element at an index of element numbers; the value itself at an empty one.
    pub fn at(&self, index: &[usize]) -> Option<&Value> {
        index.iter().try_fold(self, |value, &i| match value {
            Value::Tuple(elements) => elements.get(i),
            Value::Array(_) => None,
        })
    }

    /// Its arrays, in depth-first order.
    pub fn leaves(&self) -> Vec<&Buffer> {
        match self {
            Value::Array(buffer) => vec![buffer],
            Value::Tuple(elements) => elements.iter().flat_map(Value::leaves).collect(),
        }
    }

    /// A value of a shape out of arrays in depth-first order.
    pub(crate) fn of_leaves(shape: &Shape, leaves: &mut impl Iterator<Item = Buffer>) -> Option<Value> {
        match shape {
            Shape::Array(_) => leaves.next().map(Value::Array),
            Shape::Tuple(elements) => {
                let elements: Option<Vec<Value>> =
                    elements.iter().map(|e| Value::of_leaves(e, leaves)).collect();
                elements.map(Value::Tuple)
            }
            // Tokens carry nothing: a tuple of nothing stands for one.
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => Some(Value::Tuple(Vec::new())),
        }
    }

    fn to_literal(&self) -> Result<Literal, Error> {
        match self {
            Value::Array(buffer) => buffer.to_literal().map(Literal::Array),
            Value::Tuple(elements) => {
                let elements: Result<_, Error> = elements.iter().map(Value::to_literal).collect();
                elements.map(Literal::Tuple)
            }
        }
    }
}

/// What [`Handles::make_tuple`] makes a tuple of.
#[derive(Clone, Debug)]
pub enum TupleNode {
    /// What a handle names; whether that is released then.
    Leaf {
        /// The handle.
        handle: Handle,
        /// Release it when the tuple is made.
        release: bool,
    },
    /// A tuple.
    Tuple(Vec<TupleNode>),
}

/// How [`Handles::execute`] executes.
#[derive(Clone, Debug, Default)]
pub struct HandleExecution {
    /// The device, which has to be that of every argument.
    pub device_ordinal: u32,
    /// The core of its replica: this back end's devices have one, 0.
    pub core_index_in_replica: u32,
    /// Identifies the execution in errors.
    pub execution_instance_key: String,
    /// Seed of `rng`.
    pub rng_seed: u64,
    /// Arguments are released when the execution has ended well, and the program may reuse the memory of
    /// those that nothing else refers to.
    pub release_input_handles: bool,
    /// The program is released before it is executed.
    pub release_compilation_handle: bool,
    /// A tuple result becomes a handle an element.
    pub return_exploded_tuple: bool,
    /// Identifies the run, of several devices.
    pub run_id: u64,
}

#[derive(Debug)]
struct Tables {
    values: FxHashMap<Handle, Value>,
    programs: FxHashMap<Handle, Executable>,
    random: u64,
}

/// Everything that handles name. One a client and device.
#[derive(Debug)]
pub struct Handles {
    client: Client,
    device: u32,
    tables: Mutex<Tables>,
}

fn unknown(handle: Handle, what: &str) -> Error {
    Error::new(Code::NotFound, format!("{what} handle {:#x} does not exist, or was released", handle.0))
}

impl Tables {
    /// A number that names nothing.
    fn fresh(&mut self, device: u32) -> Handle {
        loop {
            self.random = hlo::elided::splitmix64(self.random);
            let handle = Handle(u64::from(device) << DEVICE_SHIFT | self.random >> (64 - DEVICE_SHIFT));
            if self.random >> (64 - DEVICE_SHIFT) != 0
                && !self.values.contains_key(&handle)
                && !self.programs.contains_key(&handle)
            {
                return handle;
            }
        }
    }
}

impl Handles {
    /// None yet, on a device of a client. `seed`: of the numbers.
    pub fn new(client: &Client, device: u32, seed: u64) -> Self {
        let tables = Tables { values: FxHashMap::default(), programs: FxHashMap::default(), random: seed };
        Self { client: client.clone(), device, tables: Mutex::new(tables) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a value.
    pub fn insert(&self, value: Value) -> Handle {
        let mut tables = self.tables();
        let handle = tables.fresh(self.device);
        tables.values.insert(handle, value);
        handle
    }

    /// What a handle names.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn value(&self, handle: Handle) -> Result<Value, Error> {
        self.tables().values.get(&handle).cloned().ok_or_else(|| unknown(handle, "the allocation"))
    }

    /// `XRTAllocate`: copies a literal to the device.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn allocate(&self, literal: &Literal) -> Result<Handle, Error> {
        Ok(self.insert(self.upload(literal)?))
    }

    fn upload(&self, literal: &Literal) -> Result<Value, Error> {
        match literal {
            Literal::Array(array) => self.client.buffer(array).map(Value::Array),
            Literal::Tuple(elements) => {
                let elements: Result<_, Error> = elements.iter().map(|e| self.upload(e)).collect();
                elements.map(Value::Tuple)
            }
            Literal::Token => Ok(Value::Tuple(Vec::new())),
        }
    }

    /// `XRTAllocateFromTensor`: copies bytes (dense, row-major) to the device.
    ///
    /// # Errors
    /// They are not as many as the shape has; there is no memory for them.
    pub fn allocate_from_tensor(&self, shape: ArrayShape, bytes: &[u8]) -> Result<Handle, Error> {
        Ok(self.insert(Value::Array(self.client.buffer_from_bytes(shape, bytes)?)))
    }

    /// `XRTAllocateUninitialized`: an array that is to be written. (Its elements are zero until then.)
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn allocate_uninitialized(&self, shape: ArrayShape) -> Result<Handle, Error> {
        Ok(self.insert(Value::Array(self.client.uninitialized(shape)?)))
    }

    /// `XRTMakeTuple`: a tuple that shares the arrays of its elements. Of a handle that comes several times
    /// the elements alias, and none may release it.
    ///
    /// # Errors
    /// [`Code::NotFound`]; a handle that comes several times and is to be released.
    pub fn make_tuple(&self, tree: &TupleNode) -> Result<Handle, Error> {
        fn leaves(node: &TupleNode, out: &mut Vec<(Handle, bool)>) {
            match node {
                TupleNode::Leaf { handle, release } => out.push((*handle, *release)),
                TupleNode::Tuple(elements) => elements.iter().for_each(|e| leaves(e, out)),
            }
        }
        fn build(node: &TupleNode, values: &FxHashMap<Handle, Value>) -> Result<Value, Error> {
            match node {
                TupleNode::Leaf { handle, .. } => {
                    values.get(handle).cloned().ok_or_else(|| unknown(*handle, "the allocation"))
                }
                TupleNode::Tuple(elements) => {
                    let elements: Result<_, Error> = elements.iter().map(|e| build(e, values)).collect();
                    elements.map(Value::Tuple)
                }
            }
        }
        let mut all = Vec::new();
        leaves(tree, &mut all);
        let twice = all.iter().find(|(handle, _)| {
            let uses: Vec<_> = all.iter().filter(|(other, _)| other == handle).collect();
            uses.len() > 1 && uses.iter().any(|(_, release)| *release)
        });
        if let Some((handle, _)) = twice {
            let message =
                format!("handle {:#x} comes several times in the tuple: it cannot be released", handle.0);
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let mut tables = self.tables();
        let value = build(tree, &tables.values)?;
        for (handle, _) in all.iter().filter(|(_, release)| *release) {
            tables.values.remove(handle);
        }
        let handle = tables.fresh(self.device);
        tables.values.insert(handle, value);
        Ok(handle)
    }

    /// `XRTSubTuple`, `XRTSubTupleAndRelease`: the element at an index, which shares its arrays with the
    /// tuple.
    ///
    /// # Errors
    /// [`Code::NotFound`]; there is no such element.
    pub fn sub_tuple(&self, handle: Handle, index: &[usize], release: bool) -> Result<Handle, Error> {
        let mut tables = self.tables();
        let value = tables.values.get(&handle).ok_or_else(|| unknown(handle, "the allocation"))?;
        let element = value.at(index).cloned().ok_or_else(|| {
            let message = format!("handle {:#x} is {}: it has no element {index:?}", handle.0, value.shape());
            Error::new(Code::InvalidArgument, message)
        })?;
        if release {
            tables.values.remove(&handle);
        }
        let element_handle = tables.fresh(self.device);
        tables.values.insert(element_handle, element);
        Ok(element_handle)
    }

    /// `XRTReadLiteral`, `XRTReadLiteralAndRelease`: the value, copied to the host.
    ///
    /// # Errors
    /// [`Code::NotFound`]; that of the execution that was to make it.
    pub fn read_literal(&self, handle: Handle, release: bool) -> Result<Literal, Error> {
        let literal = self.value(handle)?.to_literal()?;
        if release {
            self.release(handle)?;
        }
        Ok(literal)
    }

    /// `XRTReadToTensor`: the array, copied to the host.
    ///
    /// # Errors
    /// As [`Handles::read_literal`]; it is a tuple.
    pub fn read_to_tensor(&self, handle: Handle) -> Result<ArrayLiteral, Error> {
        match self.value(handle)? {
            Value::Array(buffer) => buffer.to_literal(),
            tuple @ Value::Tuple(_) => {
                let message = format!("handle {:#x} is the tuple {}, not an array", handle.0, tuple.shape());
                Err(Error::new(Code::InvalidArgument, message))
            }
        }
    }

    /// `XRTWriteLiteral`: overwrites a value; everyone who shares its arrays sees it.
    ///
    /// # Errors
    /// [`Code::NotFound`]; the literal has another shape.
    pub fn write_literal(&self, handle: Handle, literal: &Literal) -> Result<(), Error> {
        let value = self.value(handle)?;
        let (buffers, arrays) = (value.leaves(), literal.arrays());
        let fits = buffers.len() == arrays.len()
            && buffers.iter().zip(&arrays).all(|(b, a)| *b.shape() == a.shape());
        if !fits {
            let shapes: Vec<String> = arrays.iter().map(|a| a.shape().to_string()).collect();
            let message =
                format!("handle {:#x} is {}, the literal {}", handle.0, value.shape(), shapes.join(", "));
            return Err(Error::new(Code::InvalidArgument, message));
        }
        buffers.iter().zip(arrays).try_for_each(|(buffer, array)| buffer.overwrite(array))
    }

    /// `XRTReleaseAllocationHandle`.
    ///
    /// # Errors
    /// [`Code::NotFound`], so a second release.
    pub fn release(&self, handle: Handle) -> Result<(), Error> {
        self.tables().values.remove(&handle).map(drop).ok_or_else(|| unknown(handle, "the allocation"))
    }

    /// `XRTReleaseAllAllocations`: how many there were. Programs stay.
    pub fn release_all(&self) -> usize {
        let mut tables = self.tables();
        let count = tables.values.len();
        tables.values.clear();
        count
    }

    /// `XRTCompactAllocations`: frees the memory pool, and evicts buffers without users to the host, from
    /// which their next use restores them. The number of bytes that were freed.
    pub fn compact(&self) -> u64 {
        self.client.inner.memory.compact()
    }

    /// `XRTCompile`: the handle of a program; its shapes are [`Handles::program`]'s.
    ///
    /// # Errors
    /// As [`Client::compile`].
    pub fn compile(&self, program: &VerifiedModule, options: &CompileOptions) -> Result<Handle, Error> {
        let executable = self.client.compile(program, options)?;
        let mut tables = self.tables();
        let handle = tables.fresh(self.device);
        tables.programs.insert(handle, executable);
        Ok(handle)
    }

    /// The program of a handle, which stays alive while it is held.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn program(&self, handle: Handle) -> Result<Executable, Error> {
        self.tables().programs.get(&handle).cloned().ok_or_else(|| unknown(handle, "the compilation"))
    }

    /// `XRTReleaseCompilationHandle`: executions that have begun go on.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn release_program(&self, handle: Handle) -> Result<(), Error> {
        self.tables().programs.remove(&handle).map(drop).ok_or_else(|| unknown(handle, "the compilation"))
    }

    /// `XRTExecute`: a handle of the result, or of each element of a tuple result.
    ///
    /// # Errors
    /// [`Code::NotFound`]; arguments of other shapes ([`Code::InvalidArgument`], naming the argument and its
    /// handle); whatever ends the execution. Then nothing is released but the program.
    pub fn execute(
        &self,
        program: Handle,
        arguments: &[Handle],
        execution: &HandleExecution,
    ) -> Result<Vec<Handle>, Error> {
        if execution.core_index_in_replica != 0 {
            let message = format!("there is no core {} of a replica", execution.core_index_in_replica);
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let wrong = arguments.iter().find(|h| h.device() != execution.device_ordinal);
        if let Some(handle) = wrong.or((execution.device_ordinal != self.device).then_some(&program)) {
            let message = format!("handle {:#x} is not on device {}", handle.0, execution.device_ordinal);
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let executable = self.program(program)?;
        if execution.release_compilation_handle {
            self.release_program(program)?;
        }
        let values: Result<Vec<Value>, Error> = arguments.iter().map(|&h| self.value(h)).collect();
        let values = values?;
        check_arguments(&executable, arguments, &values)?;
        let buffers: Vec<&Buffer> = values.iter().flat_map(Value::leaves).collect();
        let results = executable.execute_with(
            &buffers,
            &ExecuteOptions {
                rng_seed: execution.rng_seed,
                run_id: execution.run_id,
                ..ExecuteOptions::default()
            },
        )?;
        let mut tables = self.tables();
        if execution.release_input_handles {
            arguments.iter().for_each(|handle| drop(tables.values.remove(handle)));
        }
        let value = Value::of_leaves(executable.result(), &mut results.into_iter());
        let value = value.ok_or_else(|| Error::new(Code::Internal, "a result has too few arrays"))?;
        let values = match value {
            Value::Tuple(elements) if execution.return_exploded_tuple => elements,
            whole => vec![whole],
        };
        let insert = |value| {
            let handle = tables.fresh(self.device);
            tables.values.insert(handle, value);
            handle
        };
        Ok(values.into_iter().map(insert).collect())
    }
}

/// That values are arguments for a program. Errors: the first that is not, by number and handle.
pub(crate) fn check_arguments(
    executable: &Executable,
    handles: &[Handle],
    values: &[Value],
) -> Result<(), Error> {
    let wanted = executable.parameters();
    if wanted.len() != values.len() {
        let message = format!("{} takes {} arguments, not {}", executable.name(), wanted.len(), values.len());
        return Err(Error::new(Code::InvalidArgument, message));
    }
    for (n, (wanted, value)) in wanted.iter().zip(values).enumerate() {
        let given = value.shape();
        let same_leaves = wanted.leaves().len() == given.leaves().len();
        let fits = same_leaves
            && wanted.leaves().iter().zip(given.leaves()).all(|(w, g)| match (w, g) {
                (Shape::Array(w), Shape::Array(g)) => crate::executable::fits(g, w),
                (Shape::Array(_), _) | (_, Shape::Array(_)) => false,
                (_, _) => true,
            });
        if !fits {
            let of = handles.get(n).map_or(String::new(), |h| format!(" (handle {:#x})", h.0));
            let message = format!("argument {n} of {}{of} is {given}, not {wanted}", executable.name());
            return Err(Error::new(Code::InvalidArgument, message));
        }
    }
    Ok(())
}
