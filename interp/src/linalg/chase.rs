//! Iterations that chase a bulge along a matrix of two diagonals, in steps: who has two of them runs them side by side.
//!
//! A step is a rotation or two, and needs what the one before it found: a square root and a quotient late. Steps of another iteration need nothing of it, and
//! fit into that time. **Invariant:** what an iteration computes is the same, alone or beside another one.

/// An iteration.
pub(super) trait Iteration {
    /// A chase: what is carried from step to step.
    type Chase;

    /// Goes on up to the next chase; `None` is the end. The error is how many elements beside the diagonal are left.
    fn begin(&mut self) -> Result<Option<Self::Chase>, usize>;
    /// The steps that are left of a chase.
    fn left(chase: &Self::Chase) -> usize;
    /// Takes one of them.
    fn step(&mut self, chase: &mut Self::Chase);
    /// Ends a chase that has no steps left.
    fn end(&mut self, chase: Self::Chase);
}

/// Takes so many steps.
#[inline(always)]
fn steps<I: Iteration>(iteration: &mut I, chase: &mut I::Chase, count: usize) {
    for _ in 0..count {
        iteration.step(chase);
    }
}

/// Goes on to the end, from a chase.
fn go_on<I: Iteration>(mut iteration: I, mut chase: Option<I::Chase>) -> Result<(), usize> {
    while let Some(mut now) = chase {
        let count = I::left(&now);
        steps(&mut iteration, &mut now, count);
        iteration.end(now);
        chase = iteration.begin()?;
    }
    Ok(())
}

/// An iteration from its beginning to its end.
pub(super) fn run<I: Iteration>(mut iteration: I) -> Result<(), usize> {
    let chase = iteration.begin()?;
    go_on(iteration, chase)
}

/// Two of them, side by side.
pub(super) fn run_both<I: Iteration>(mut one: I, mut two: I) -> [Result<(), usize>; 2] {
    let (mut first, mut second) = (one.begin(), two.begin());
    loop {
        match (first, second) {
            (Ok(Some(mut a)), Ok(Some(mut b))) => {
                let count = I::left(&a).min(I::left(&b));
                for _ in 0..count {
                    one.step(&mut a);
                    two.step(&mut b);
                }
                first = advanced(&mut one, a);
                second = advanced(&mut two, b);
            }
            (Ok(chase), ended) if !matches!(ended, Ok(Some(_))) => {
                return [go_on(one, chase), ended.map(|_end| ())];
            }
            (ended, Ok(chase)) => return [ended.map(|_end| ()), go_on(two, chase)],
            (a, b) => return [a.map(|_end| ()), b.map(|_end| ())],
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
