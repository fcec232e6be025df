//! Several functions in one artifact: each with a name and an ordinal, executed by either.
//!
//! The file is a [`container`](crate::container). Its blobs are the functions' artifacts without their
//! constants, then the constants: those that several functions have are stored once, and loaded once
//! ([`Metrics::constant_bytes`](crate::Metrics::constant_bytes)).
//!
//! **Invariants:** ordinals are the positions in which functions were given, and stay what they are when the
//! library is written and loaded; names are unique; a function has no constant of the file twice, so that no
//! artifact is longer than the file.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use hlo::ArrayLiteral;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::artifact;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::container::Format;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

const FORMAT: Format = Format { magic: *b"HLOLIB\r\n", version: 2, what: "library" };

/// What a library begins with.
pub const MAGIC: [u8; 8] = FORMAT.magic;

#[derive(Serialize, Deserialize)]
struct Directory {
    functions: Vec<FunctionEntry>,
    /// Lengths of the constants in bytes.
    constants: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct FunctionEntry {
    name: String,
    /// The length of its artifact without constants, in bytes.
    bytes: u64,
    /// The constants behind it, in order.
    constants: Vec<u32>,
}

/// Constants of several functions, each once.
#[derive(Default)]
struct Constants<'a> {
    all: Vec<&'a [u8]>,
    /// By bytes, and how many of the same bytes the function has before it.
    numbers: FxHashMap<(&'a [u8], usize), u32>,
}

impl<'a> Constants<'a> {
    /// The numbers of a function's constants.
    fn add(&mut self, constants: &[&'a [u8]]) -> Result<Vec<u32>, Error> {
        let mut counts: FxHashMap<&[u8], usize> = FxHashMap::default();
        let mut number = |&bytes: &&'a [u8]| {
            let count = counts.entry(bytes).or_default();
            let key = (bytes, *count);
            *count += 1;
            Ok(match self.numbers.entry(key) {
                Entry::Occupied(found) => *found.get(),
                Entry::Vacant(vacant) => {
                    let number = u32::try_from(self.all.len());
                    let number =
                        number.map_err(|_| Error::new(Code::Unimplemented, "more than 2^32 constants"))?;
                    self.all.push(bytes);
                    *vacant.insert(number)
                }
            })
        };
        constants.iter().map(&mut number).collect()
    }
}

/// How deep executions of a library's functions nest that custom calls begin.
const MAX_NESTING: u32 = 16;

/// Functions of one artifact. Clones are the same library.
#[derive(Clone, Debug)]
pub struct Library {
    functions: Arc<[(String, Executable)]>,
    /// Of how many of its executions this one is part.
    depth: u32,
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen: Vec<&str> = names.collect();
    seen.sort_unstable();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::new(Code::InvalidArgument, format!("two functions are called {}", pair[0]))),
        None => Ok(()),
    }
}

impl Library {
    /// Compiles functions.
    ///
    /// # Errors
    /// Two of the same name; as [`Client::compile`], with the function's name.
    pub fn compile(
        client: &Client,
        functions: &[(&str, &VerifiedModule)],
        options: &CompileOptions,
    ) -> Result<Self, Error> {
        check_names(functions.iter().map(|(name, _)| *name))?;
        let compile = |&(name, program): &(&str, &VerifiedModule)| {
            let executable = client.compile(program, options);
            let executable =
                executable.map_err(|e| Error::new(e.code(), format!("{name}: {e}")).caused_by(e))?;
            Ok((name.to_owned(), executable))
        };
        let functions: Result<_, Error> = functions.iter().map(compile).collect();
        Ok(Self { functions: functions?, depth: 0 })
    }

    /// Compiles functions to one artifact.
    ///
    /// # Errors
    /// As [`Library::compile`]; the back end has no artifacts.
    pub fn artifact(
        client: &Client,
        functions: &[(&str, &VerifiedModule)],
        options: &CompileOptions,
    ) -> Result<Vec<u8>, Error> {
        check_names(functions.iter().map(|(name, _)| *name))?;
        let mut artifacts = Vec::with_capacity(functions.len());
        for (name, program) in functions {
            let artifact = client.compile_artifact(program, options);
            artifacts.push(artifact.map_err(|e| Error::new(e.code(), format!("{name}: {e}")).caused_by(e))?);
        }
        let mut constants = Constants::default();
        let (mut entries, mut heads) = (Vec::new(), Vec::new());
        for ((name, _), bytes) in functions.iter().zip(&artifacts) {
            let (head, own) = artifact::split_constants(bytes);
            let constants = constants.add(&own)?;
            entries.push(FunctionEntry { name: (*name).to_owned(), bytes: head.len() as u64, constants });
            heads.push(head);
        }
        let lengths = constants.all.iter().map(|bytes| bytes.len() as u64).collect();
        let directory = Directory { functions: entries, constants: lengths };
        FORMAT.write(&directory, heads.into_iter().chain(constants.all))
    }

    /// Loads what [`Library::artifact`] made.
    ///
    /// # Errors
    /// As [`Client::load`].
    pub fn load(client: &Client, bytes: &[u8]) -> Result<Self, Error> {
        let (directory, mut blobs) = FORMAT.read::<Directory>(bytes)?;
        check_names(directory.functions.iter().map(|entry| entry.name.as_str()))?;
        let heads = directory.functions.iter().map(|entry| blobs.take(entry.bytes));
        let heads: Vec<&[u8]> = heads.collect::<Result<_, Error>>()?;
        let constants = directory.constants.iter().map(|&bytes| blobs.take(bytes));
        let constants: Vec<&[u8]> = constants.collect::<Result<_, Error>>()?;
        if !blobs.is_empty() {
            return Err(FORMAT.damaged("it has more than its directory says"));
        }
        let mut functions = Vec::with_capacity(heads.len());
        for (FunctionEntry { name, constants: own, .. }, head) in directory.functions.into_iter().zip(heads) {
            let mut left: Vec<Option<&[u8]>> = constants.iter().copied().map(Some).collect();
            let mut artifact = head.to_vec();
            for number in own {
                let constant = left.get_mut(number as usize).and_then(Option::take);
                let constant = constant.ok_or_else(|| FORMAT.damaged("a constant of its directory"))?;
                artifact.extend_from_slice(constant);
            }
            functions.push((name, client.load(&artifact)?));
        }
        Ok(Self { functions: functions.into(), depth: 0 })
    }

    /// Names of the functions; positions are ordinals.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.functions.iter().map(|(name, _)| name.as_str())
    }

    /// The ordinal of a function.
    pub fn ordinal(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|(n, _)| n == name)
    }

    /// A function by its ordinal.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub fn function(&self, ordinal: usize) -> Result<&Executable, Error> {
        self.functions.get(ordinal).map(|(_, executable)| executable).ok_or_else(|| {
            let message = format!("there is no function {ordinal}: there are {}", self.functions.len());
            Error::new(Code::NotFound, message)
        })
    }

    /// Executes a function by its ordinal. Its custom calls may call the other functions
    /// ([`Context::call_export`](crate::custom_call::Context::call_export)).
    ///
    /// # Errors
    /// [`Code::NotFound`]; as [`Executable::execute_with`].
    pub fn execute(
        &self,
        ordinal: usize,
        arguments: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        let options = ExecuteOptions { library: Some(self.clone()), ..options.clone() };
        self.function(ordinal)?.execute_with(arguments, &options)
    }

    /// Executes a function by its name, as part of an execution of another with these options.
    pub(crate) fn execute_within(
        &self,
        name: &str,
        arguments: &[ArrayLiteral],
        options: &ExecuteOptions,
    ) -> Result<Vec<ArrayLiteral>, Error> {
        let missing = || {
            let names: Vec<&str> = self.names().collect();
            Error::new(Code::NotFound, format!("no function {name} is exported: {}", names.join(", ")))
        };
        let (_, function) = self.functions.iter().find(|(n, _)| n == name).ok_or_else(missing)?;
        if self.depth >= MAX_NESTING {
            let message = format!("{name} is called {MAX_NESTING} calls deep");
            return Err(Error::new(Code::ResourceExhausted, message));
        }
        let within = Self { functions: Arc::clone(&self.functions), depth: self.depth + 1 };
        let options =
            ExecuteOptions { library: Some(within), donate: Vec::new(), elapsed: None, ..options.clone() };
        let arguments: Vec<Buffer> = arguments.iter().map(|array| function.client().share(array)).collect();
        let arguments: Vec<&Buffer> = arguments.iter().collect();
        function.execute_with(&arguments, &options)?.iter().map(Buffer::to_literal).collect()
    }
}
