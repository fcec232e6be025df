//! Warm-up: a small program compiled and run before the first one comes.
//!
//! The first compilation of a process takes longer than the next by what is made once: the code generator's tables, pages of
//! its machine code that are mapped as they are touched. A framework makes its client long before it has traced a program,
//! and can have that done meanwhile.
//!
//! **Invariant:** nothing of it is seen: the program belongs to a client of its own.

use crate::client::Client;
use crate::error::Error;
use crate::options::{ClientOptions, CompileOptions};

/// Products, a softmax, a convolution, a gather, a loop: of what models are made of, a little each.
const PROGRAM: &str = include_str!("warm_up.hlo");

/// Compiles and runs a small program for this machine's processor, on one core, and returns when that is done: some tens of
/// milliseconds in a process that has compiled nothing.
///
/// # Errors
/// It is not compiled or does not run; nothing is lost with that.
pub fn warm_up() -> Result<(), Error> {
    let options = ClientOptions { threads: 1, keep_artifacts: true, ..ClientOptions::default() };
    let client = Client::cpu(options)?;
    let executable = client.compile(&client.parse(PROGRAM)?, &CompileOptions::default())?;
    let zeros = executable.argument_shapes().map(|shape| client.uninitialized(shape.clone()));
    let arguments = zeros.collect::<Result<Vec<_>, Error>>()?;
    executable.execute(&arguments.iter().collect::<Vec<_>>()).map(drop)
}

#[cfg(all(test, feature = "llvm"))]
mod tests {
    #[test]
    fn its_program_compiles_and_runs() {
        super::warm_up().unwrap();
    }
}
