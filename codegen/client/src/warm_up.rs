//! What the first compilation of a process would otherwise do first: pages of the code generator's code are
//! mapped, its tables are built, its threads start.

use std::sync::{Arc, Once};

use crate::backend::Backend;
use crate::client::Client;
use crate::error::Error;
use crate::options::CompileOptions;
use crate::program::VerifiedModule;

/// Two kernels, so that two threads have one each: rows with a function and a reduction, and a transposition
/// with a function, a comparison and a selection.
const PROGRAM: &str = "HloModule warm_up
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT sum = f32[] add(a, b) }
ENTRY main {
  x = f32[64,256] parameter(0)
  y = f32[256,64] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[64,256] broadcast(zero), dimensions={}
  exponentials = f32[64,256] exponential(x)
  sums = f32[64] reduce(exponentials, zero), dimensions={1}, to_apply=add
  divisors = f32[64,256] broadcast(sums), dimensions={0}
  quotients = f32[64,256] divide(exponentials, divisors)
  transposed = f32[64,256] transpose(y), dimensions={1,0}
  tangents = f32[64,256] tanh(transposed)
  positive = pred[64,256] compare(tangents, zeros), direction=GT
  selected = f32[64,256] select(positive, tangents, transposed)
  ROOT results = (f32[64,256], f32[64,256]) tuple(quotients, selected)
}";

impl Client {
    /// Compiles a small program in the background, once a process, so that the first program finds the code
    /// generator ready: it is compiled 2 to 5 ms sooner. This takes 10 to 16 ms beside what the process does.
    /// Nothing of it is kept, counted or traced, and it fails in silence.
    ///
    /// A process may end meanwhile. A library that is loaded into a program has to keep `exit` from destroying
    /// LLVM's static objects then, which the thread uses (`hlo-pjrt-plugin` does).
    pub fn warm_up(&self) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let backend = Arc::clone(&self.inner.backend);
            let thread = std::thread::Builder::new().name("hlo-warm-up".to_owned());
            // Where the system gives no thread, the first compilation takes as long as it does.
            let _ = thread.spawn(move || compile(&*backend));
        });
    }
}

fn compile(backend: &dyn Backend) -> Result<(), Error> {
    let program = VerifiedModule::parse(PROGRAM)?;
    backend.compile(program.module(), &CompileOptions::default(), false)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ClientOptions;

    use super::*;

    /// What fails in silence would never be missed.
    #[test]
    fn the_program_compiles() {
        let cpu = Client::cpu(ClientOptions::default()).unwrap();
        let compiled = compile(&*cpu.inner.backend);
        assert_eq!(compiled.is_ok(), cfg!(feature = "llvm"), "{compiled:?}");
        assert_eq!(cpu.metrics().cache.compilations, 0);
    }
}
