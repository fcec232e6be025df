//! Several functions in one artifact: each with a name and an ordinal, executed by either.
//!
//! ```text
//! magic (8) │ version (4) │ length of the directory (4) │ SHA-256 of all that follows (32) │ directory │ artifacts
//! ```
//!
//! **Invariants:** ordinals are the positions in which functions were given, and stay what they are when the library is written and loaded; names are unique.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::executable::Executable;
use crate::options::{CompileOptions, ExecuteOptions};
use crate::program::VerifiedModule;

/// What a library begins with.
pub const MAGIC: [u8; 8] = *b"HLOLIB\r\n";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes before the directory.
const PREFIX_BYTES: usize = 8 + 4 + 4 + 32;

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

fn damaged(what: &str) -> Error {
    Error::new(Code::DataLoss, format!("the library is damaged: {what}"))
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
        let directory = postcard::to_allocvec(&directory)
            .map_err(|e| Error::new(Code::Internal, "the directory cannot be written").caused_by(e))?;
        let length = u32::try_from(directory.len())
            .map_err(|_| Error::new(Code::Unimplemented, "the names have more than 4 GiB"))?;
        let mut bytes = vec![0; PREFIX_BYTES];
        bytes.extend(directory);
        artifacts.iter().for_each(|artifact| bytes.extend(artifact));
        let hash: [u8; 32] = Sha256::digest(&bytes[PREFIX_BYTES..]).into();
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..48].copy_from_slice(&hash);
        Ok(bytes)
    }

    /// Loads what [`Library::artifact`] made.
    ///
    /// # Errors
    /// As [`Client::load`].
    pub fn load(client: &Client, bytes: &[u8]) -> Result<Self, Error> {
        let prefix = bytes.get(..PREFIX_BYTES).filter(|p| p.starts_with(&MAGIC));
        let prefix = prefix.ok_or_else(|| damaged("this is no library"))?;
        let number =
            |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
        if number(8) != VERSION {
            let message = format!("a library of version {}; this is version {VERSION}", number(8));
            return Err(Error::new(Code::FailedPrecondition, message));
        }
        let rest = &bytes[PREFIX_BYTES..];
        if Sha256::digest(rest)[..] != prefix[16..48] {
            return Err(damaged("its checksum does not fit"));
        }
        let directory = rest.get(..number(12) as usize).ok_or_else(|| damaged("it is cut"))?;
        let mut artifacts = &rest[directory.len()..];
        let directory: Directory =
            postcard::from_bytes(directory).map_err(|e| damaged("its directory").caused_by(e))?;
        check_names(directory.functions.iter().map(|(name, _)| name.as_str()))?;
        let mut functions = Vec::with_capacity(directory.functions.len());
        for (name, bytes) in directory.functions {
            let split = usize::try_from(bytes).ok().and_then(|n| artifacts.split_at_checked(n));
            let (artifact, left) = split.ok_or_else(|| damaged("it is cut"))?;
            artifacts = left;
            functions.push((name, client.load(artifact)?));
        }
        if !artifacts.is_empty() {
            return Err(damaged("it has more than its directory says"));
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
