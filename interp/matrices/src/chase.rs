//! Iterations that chase a bulge along a matrix of two diagonals, in steps: who has two of them runs them
//! side by side.
//!
//! A step is a rotation or two, and needs what the one before it found: a square root and a quotient late.
//! Steps of another iteration need nothing of it, and fit into that time. **Invariant:** what an iteration
//! computes does not depend on other iterations of the wave.

/// An iteration.
pub(super) trait Iteration {
    /// A chase: what is carried from step to step.
    type Chase;

    /// Goes on up to the next chase; `None` is the end. The error is how many off-diagonal elements are left.
    fn begin(&mut self) -> Result<Option<Self::Chase>, usize>;
    /// The steps that are left of a chase.
    fn left(chase: &Self::Chase) -> usize;
    /// Takes one of them.
    fn step(&mut self, chase: &mut Self::Chase);
    /// Ends a chase that has no steps left.
    fn end(&mut self, chase: Self::Chase);
    /// Sorts what has been found.
    fn sort(&mut self);
}

/// Goes on to the end, from a chase.
fn go_on<I: Iteration>(iteration: &mut I, mut chase: Option<I::Chase>) -> Result<(), usize> {
    while let Some(mut now) = chase {
        for _ in 0..I::left(&now) {
            iteration.step(&mut now);
        }
        iteration.end(now);
        chase = iteration.begin()?;
    }
    iteration.sort();
    Ok(())
}

/// An iteration from its beginning to its end. The error is how many off-diagonal elements are left.
pub(super) fn run<I: Iteration>(iteration: &mut I) -> Result<(), usize> {
    let chase = iteration.begin()?;
    go_on(iteration, chase)
}

/// [`run`] of two, side by side.
pub(super) fn run_both<I: Iteration>(one: &mut I, two: &mut I) -> [Result<(), usize>; 2] {
    let (mut first, mut second) = (one.begin(), two.begin());
    loop {
        match (first, second) {
            (Ok(Some(mut a)), Ok(Some(mut b))) => {
                for _ in 0..I::left(&a).min(I::left(&b)) {
                    one.step(&mut a);
                    two.step(&mut b);
                }
                first = advanced(one, a);
                second = advanced(two, b);
            }
            // One of them has ended.
            (a, b) => return [a.and_then(|chase| go_on(one, chase)), b.and_then(|chase| go_on(two, chase))],
        }
    }
}

/// The chase, or the next one if it has no steps left.
fn advanced<I: Iteration>(iteration: &mut I, chase: I::Chase) -> Result<Option<I::Chase>, usize> {
    if I::left(&chase) > 0 {
        return Ok(Some(chase));
    }
    iteration.end(chase);
    iteration.begin()
}
