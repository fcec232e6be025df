//! Variables: arrays with a name that programs read and update, as TensorFlow's resource variables are.
//!
//! **Invariants:** executions are atomic: one that reads and updates several variables reads all of them in
//! one state, and its updates become visible together. Deadlocks cannot occur: locks are acquired in the
//! order of the variables' numbers. An execution that fails changes no variable.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::ArrayShape;

use crate::buffer::Buffer;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::ExecuteOptions;

/// A variable. Clones are the same variable.
#[derive(Clone)]
pub struct Variable {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    /// The order of locks.
    number: u64,
    value: Mutex<Buffer>,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({})", self.inner.name)
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Variable {
    /// With a first value.
    pub fn new(name: impl Into<String>, value: Buffer) -> Self {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { inner: Arc::new(Inner { name: name.into(), number, value: Mutex::new(value) }) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.inner.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its value now, which stays what it is whatever becomes of the variable.
    pub fn read(&self) -> Buffer {
        self.lock().clone()
    }

    /// Gives it another value.
    pub fn assign(&self, value: Buffer) {
        *self.lock() = value;
    }
}

/// Where a parameter's value comes from.
#[derive(Clone, Debug)]
pub enum Binding {
    /// The next argument.
    Argument,
    /// A variable.
    Variable(Variable),
}

/// A program whose parameters and results are variables in part. Parameters and results are counted as array
/// leaves.
#[derive(Clone, Debug)]
pub struct Bound {
    executable: Executable,
    parameters: Vec<Binding>,
    /// By variable that the program updates, which result becomes its value.
    updates: Vec<(Variable, usize)>,
    /// Variables that it takes, each once, in the order of locks.
    locks: Vec<Variable>,
}

fn invalid<T>(message: String) -> Result<T, Error> {
    Err(Error::new(Code::InvalidArgument, message))
}

impl Bound {
    /// Binds parameters and updates. `read_only`: variables that the program may not update.
    ///
    /// # Errors
    /// Another number of bindings than of parameters; results that do not exist; a variable that is updated
    /// twice, or though it is read-only, or with an array of another shape; a read-only variable that the
    /// program does not read.
    pub fn new(
        executable: &Executable,
        parameters: Vec<Binding>,
        updates: Vec<(Variable, usize)>,
        read_only: &[Variable],
    ) -> Result<Self, Error> {
        let name = executable.name();
        let takes = executable.argument_shapes().len();
        if parameters.len() != takes {
            return invalid(format!("{name} takes {takes} arrays; {} are bound", parameters.len()));
        }
        let mut locks: Vec<Variable> = Vec::new();
        let all = parameters.iter().filter_map(|p| match p {
            Binding::Variable(variable) => Some(variable),
            Binding::Argument => None,
        });
        locks.extend(all.cloned());
        for variable in read_only {
            if !locks.iter().any(|v| v.inner.number == variable.inner.number) {
                return invalid(format!("{name} does not read the read-only variable {}", variable.name()));
            }
        }
        for (k, (variable, result)) in updates.iter().enumerate() {
            let same = |other: &Variable| other.inner.number == variable.inner.number;
            if read_only.iter().any(same) {
                return invalid(format!("{name} updates {}, which is read-only", variable.name()));
            }
            if updates[..k].iter().any(|(other, _)| same(other)) {
                return invalid(format!("{name} updates {} twice", variable.name()));
            }
            let Some(shape) = executable.result_shapes().get(*result) else {
                return invalid(format!("{name} has no result {result} for {}", variable.name()));
            };
            let now = variable.read();
            if now.shape() != shape {
                return invalid(format!("{} is {}, its update {shape}", variable.name(), now.shape()));
            }
        }
        locks.extend(updates.iter().map(|(variable, _)| variable.clone()));
        locks.sort_by_key(|v| v.inner.number);
        locks.dedup_by_key(|v| v.inner.number);
        Ok(Self { executable: executable.clone(), parameters, updates, locks })
    }

    /// Values of the variables now, all at one moment, in the order of their locks.
    pub(crate) fn snapshot(&self) -> Vec<(Variable, Buffer)> {
        let guards: Vec<_> = self.locks.iter().map(Variable::lock).collect();
        self.locks.iter().cloned().zip(guards.iter().map(|g| (**g).clone())).collect()
    }

    /// Shapes of the arguments that are no variables.
    pub fn argument_shapes(&self) -> Vec<&ArrayShape> {
        let parameters = self.parameters.iter().zip(self.executable.argument_shapes());
        parameters.filter(|(p, _)| matches!(p, Binding::Argument)).map(|(_, shape)| shape).collect()
    }

    /// Executes it: reads the variables, updates them, and gives the results that update none. Variables are
    /// not donated, since others may have read them: a program with `input_output_alias` works on a copy.
    ///
    /// # Errors
    /// As [`Executable::execute_with`].
    pub fn execute(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>, Error> {
        let mut guards: Vec<MutexGuard<'_, Buffer>> = self.locks.iter().map(Variable::lock).collect();
        let values: Vec<Buffer> = guards.iter().map(|guard| (**guard).clone()).collect();
        let results = self.execute_on(&values, arguments, options)?;
        Ok(self.leave(&mut guards, results))
    }

    /// Gives the variables, which are locked, their results; the results that update none.
    fn leave(&self, guards: &mut [MutexGuard<'_, Buffer>], results: Vec<Buffer>) -> Vec<Buffer> {
        for (variable, result) in &self.updates {
            let index =
                self.lock_index(variable).expect("invariant: every variable that is updated is locked");
            *guards[index] = results[*result].clone();
        }
        let is_update = |n: &usize| self.updates.iter().any(|(_, result)| result == n);
        results.into_iter().enumerate().filter(|(n, _)| !is_update(n)).map(|(_, b)| b).collect()
    }

    /// The position of a variable in the order of locks.
    fn lock_index(&self, variable: &Variable) -> Option<usize> {
        self.locks.iter().position(|v| v.inner.number == variable.inner.number)
    }

    /// Executes it on values of the variables, in the order of their locks; all results.
    pub(crate) fn execute_on(
        &self,
        values: &[Buffer],
        arguments: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        let mut arguments = arguments.iter().copied();
        let mut given: Vec<&Buffer> = Vec::with_capacity(self.parameters.len());
        for parameter in &self.parameters {
            let next = match parameter {
                Binding::Argument => arguments.next(),
                Binding::Variable(variable) => self.lock_index(variable).and_then(|i| values.get(i)),
            };
            match next {
                Some(buffer) => given.push(buffer),
                None => {
                    let (name, takes) = (self.executable.name(), self.argument_shapes().len());
                    return invalid(format!("{name} takes {takes} arrays beside its variables"));
                }
            }
        }
        if arguments.next().is_some() {
            let (name, takes) = (self.executable.name(), self.argument_shapes().len());
            return invalid(format!("{name} takes {takes} arrays beside its variables, not more"));
        }
        self.executable.execute_with(&given, options)
    }

    /// Gives variables the results of an execution.
    pub(crate) fn update(&self, results: Vec<Buffer>) -> Vec<Buffer> {
        let mut guards: Vec<MutexGuard<'_, Buffer>> = self.locks.iter().map(Variable::lock).collect();
        self.leave(&mut guards, results)
    }
}
