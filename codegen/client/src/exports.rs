//! Several functions in one artifact: each with a name and an ordinal, executed by either.
//!
//! The file is a [`container`](crate::container), whose blobs are the functions' artifacts.
//!
//! **Invariants:** ordinals are the positions in which functions were given, and stay what they are when the
//! library is written and loaded; names are unique.

use serde::{Deserialize, Serialize};

use crate::buffer::Buffer;
use crate::client::Client;
use crate::container::Format;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

const FORMAT: Format = Format { magic: *b"HLOLIB\r\n", version: 1, what: "library" };

/// What a library begins with.
pub const MAGIC: [u8; 8] = FORMAT.magic;

#[derive(Serialize, Deserialize)]
struct Directory {
    /// Names, and the bytes of their artifacts.
    functions: Vec<(String, u64)>,
}

/// Functions of one artifact.
#[derive(Clone, Debug)]
pub struct Library {
    functions: Vec<(String, Executable)>,
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
        Ok(Self { functions: functions? })
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
        let mut artifacts = Vec::new();
        let mut directory = Directory { functions: Vec::new() };
        for (name, program) in functions {
            let artifact = client.compile_artifact(program, options);
            let artifact = artifact.map_err(|e| Error::new(e.code(), format!("{name}: {e}")).caused_by(e))?;
            directory.functions.push(((*name).to_owned(), artifact.len() as u64));
            artifacts.push(artifact);
        }
        FORMAT.write(&directory, artifacts.iter().map(Vec::as_slice))
    }

    /// Loads what [`Library::artifact`] made.
    ///
    /// # Errors
    /// As [`Client::load`].
    pub fn load(client: &Client, bytes: &[u8]) -> Result<Self, Error> {
        let (directory, mut artifacts) = FORMAT.read::<Directory>(bytes)?;
        check_names(directory.functions.iter().map(|(name, _)| name.as_str()))?;
        let mut functions = Vec::with_capacity(directory.functions.len());
        for (name, bytes) in directory.functions {
            functions.push((name, client.load(artifacts.take(bytes)?)?));
        }
        if !artifacts.is_empty() {
            return Err(FORMAT.damaged("it has more than its directory says"));
        }
        Ok(Self { functions })
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

    /// Executes a function by its ordinal.
    ///
    /// # Errors
    /// [`Code::NotFound`]; as [`Executable::execute_with`].
    pub fn execute(
        &self,
        ordinal: usize,
        arguments: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Vec<Buffer>, Error> {
        self.function(ordinal)?.execute_with(arguments, options)
    }
}
