//! Functions of complex numbers, part by part: principal values, by formulas in the arithmetic of reals.
//!
//! For points off the axes and branch cuts: special values are not evaluated here.

use dashu_base::Sign;
use hlo::Opcode;

use crate::functions::big;
use crate::{Big, Functions, Real};

/// Digits of the arithmetic; cancellation may take half of them.
const WORKING_DIGITS: usize = 900;
type Context = dashu_float::Context<dashu_float::round::mode::Zero>;

/// A complex number.
#[derive(Clone)]
struct C {
    re: Big,
    im: Big,
}

/// The elementwise opcodes of one complex number that are evaluated here.
pub fn unary_opcodes() -> &'static [Opcode] {
    &[
        Opcode::Acos,
        Opcode::Acosh,
        Opcode::Asin,
        Opcode::Asinh,
        Opcode::Atanh,
        Opcode::Cosine,
        Opcode::Cosh,
        Opcode::Exponential,
        Opcode::ExponentialMinusOne,
        Opcode::Log,
        Opcode::LogPlusOne,
        Opcode::Logistic,
        Opcode::Rsqrt,
        Opcode::Sign,
        Opcode::Sine,
        Opcode::Sinh,
        Opcode::Sqrt,
        Opcode::Tan,
        Opcode::Tanh,
    ]
}

/// Those of two.
pub fn binary_opcodes() -> &'static [Opcode] {
    &[Opcode::Divide, Opcode::Multiply, Opcode::Power]
}

impl Functions {
    /// Both parts of `opcode(z)`; `None` if the opcode is not among [`unary_opcodes`], or the point is on an
    /// axis, not finite, or its result beyond what is worth evaluating.
    pub fn complex_unary(&mut self, opcode: Opcode, z: [f64; 2]) -> Option<[Real; 2]> {
        let z = point(z)?;
        let one = constant(1);
        let value = match opcode {
            Opcode::Exponential => self.exp(&z)?,
            Opcode::ExponentialMinusOne => sub(&self.exp(&z)?, &one),
            Opcode::Log => self.log(&z)?,
            Opcode::LogPlusOne => self.log(&add(&z, &one))?,
            Opcode::Logistic => div(&one, &add(&one, &self.exp(&neg(&z))?))?,
            Opcode::Sqrt => sqrt(&z)?,
            // z / |z|
            Opcode::Sign => {
                let square = &z.re * &z.re + &z.im * &z.im;
                let modulus = Context::new(WORKING_DIGITS).sqrt(square.repr()).ok()?.value();
                C { re: z.re.clone() / &modulus, im: z.im.clone() / modulus }
            }
            Opcode::Rsqrt => div(&one, &sqrt(&z)?)?,
            Opcode::Sine => self.sin_cos(&z)?.0,
            Opcode::Cosine => self.sin_cos(&z)?.1,
            Opcode::Tan => {
                let (s, c) = self.sin_cos(&z)?;
                div(&s, &c)?
            }
            Opcode::Sinh => minus_i(&self.sin_cos(&times_i(&z))?.0),
            Opcode::Cosh => self.sin_cos(&times_i(&z))?.1,
            Opcode::Tanh => {
                let (s, c) = self.sin_cos(&times_i(&z))?;
                minus_i(&div(&s, &c)?)
            }
            Opcode::Asinh => self.asinh(&z)?,
            // asin z = -i asinh(iz)
            Opcode::Asin => minus_i(&self.asinh(&times_i(&z))?),
            Opcode::Acos => {
                let half_pi = C { re: self.pi()? >> 1, im: Big::ZERO };
                sub(&half_pi, &minus_i(&self.asinh(&times_i(&z))?))
            }
            // log(z + sqrt(z + 1) sqrt(z - 1))
            Opcode::Acosh => {
                let root = mul(&sqrt(&add(&z, &one))?, &sqrt(&sub(&z, &one))?);
                self.log(&add(&z, &root))?
            }
            Opcode::Atanh => {
                let sum = sub(&self.log(&add(&one, &z))?, &self.log(&sub(&one, &z))?);
                C { re: sum.re >> 1, im: sum.im >> 1 }
            }
            _ => return None,
        };
        parts(&value)
    }

    /// Both parts of `opcode(a, b)`, likewise.
    pub fn complex_binary(&mut self, opcode: Opcode, a: [f64; 2], b: [f64; 2]) -> Option<[Real; 2]> {
        let finite = a.iter().chain(&b).all(|x| x.is_finite());
        match opcode {
            // Each part is the exact value rounded once; a zero has the sign that the four products give it.
            Opcode::Multiply if finite => {
                let product = mul(&exactly(a), &exactly(b));
                let plain = [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
                let exact = [product.re, product.im];
                return Some(std::array::from_fn(|i| {
                    if exact[i].repr().significand().is_zero() {
                        Real::Zero { negative: plain[i] == 0.0 && plain[i].is_sign_negative() }
                    } else {
                        Real::from_big(&exact[i], false)
                    }
                }));
            }
            // By a real number each part is divided.
            Opcode::Divide if finite && b[1] == 0.0 && b[0] != 0.0 => {
                let mut part = |i: usize| self.binary(Opcode::Divide, a[i], b[0]);
                return Some([part(0)?, part(1)?]);
            }
            // A part that is exactly 0 would have a sign that no formula here knows.
            Opcode::Divide if finite && b != [0.0, 0.0] => {
                let quotient = div(&at_digits(a), &at_digits(b))?;
                let some = |x: &Big| !x.repr().significand().is_zero();
                return if some(&quotient.re) && some(&quotient.im) { parts(&quotient) } else { None };
            }
            _ => {}
        }
        let (a, b) = (point(a)?, point(b)?);
        let value = match opcode {
            Opcode::Power => {
                let exponent = mul(&b, &self.log(&a)?);
                self.exp(&exponent)?
            }
            _ => return None,
        };
        parts(&value)
    }

    fn pi(&mut self) -> Option<Big> {
        Some(Context::new(WORKING_DIGITS).pi::<2>(Some(&mut self.cache)).value())
    }

    fn exp(&mut self, z: &C) -> Option<C> {
        let c = Context::new(WORKING_DIGITS);
        // Beyond any exponent that a float has.
        if z.re.repr().digits() as isize + z.re.repr().exponent() > 11 {
            return None;
        }
        let size = c.exp(z.re.repr(), Some(&mut self.cache)).ok()?.value();
        let sine = c.sin(z.im.repr(), Some(&mut self.cache)).ok()?.value();
        let cosine = c.cos(z.im.repr(), Some(&mut self.cache)).ok()?.value();
        Some(C { re: &size * cosine, im: size * sine })
    }

    fn log(&mut self, z: &C) -> Option<C> {
        let c = Context::new(WORKING_DIGITS);
        let square = &z.re * &z.re + &z.im * &z.im;
        let re = c.ln(square.repr(), Some(&mut self.cache)).ok()?.value() >> 1;
        let im = c.atan2(z.im.repr(), z.re.repr(), Some(&mut self.cache)).ok()?.value();
        Some(C { re, im })
    }

    /// `(e^iz - e^-iz) / 2i` and `(e^iz + e^-iz) / 2`
    fn sin_cos(&mut self, z: &C) -> Option<(C, C)> {
        let up = self.exp(&times_i(z))?;
        let down = self.exp(&minus_i(z))?;
        let (s, c) = (minus_i(&sub(&up, &down)), add(&up, &down));
        Some((C { re: s.re >> 1, im: s.im >> 1 }, C { re: c.re >> 1, im: c.im >> 1 }))
    }

    /// `log(z + sqrt(z^2 + 1))`, of the half plane where nothing cancels.
    fn asinh(&mut self, z: &C) -> Option<C> {
        if z.re.sign() == Sign::Negative {
            return Some(neg(&self.asinh(&neg(z))?));
        }
        let root = sqrt(&add(&mul(z, z), &constant(1)))?;
        self.log(&add(z, &root))
    }
}

fn point([re, im]: [f64; 2]) -> Option<C> {
    let usable = |x: f64| x != 0.0 && x.is_finite() && (2f64.powi(-200)..2f64.powi(200)).contains(&x.abs());
    (usable(re) && usable(im)).then(|| at_digits([re, im]))
}

/// A finite number in unlimited precision.
fn exactly([re, im]: [f64; 2]) -> C {
    let number = |x: f64| big(x).with_precision(0).value();
    C { re: number(re), im: number(im) }
}

/// A finite number in the precision of the formulas.
fn at_digits([re, im]: [f64; 2]) -> C {
    let number = |x: f64| big(x).with_precision(WORKING_DIGITS).value();
    C { re: number(re), im: number(im) }
}

fn constant(n: i32) -> C {
    C {
        re: Big::from(n).with_precision(WORKING_DIGITS).value(),
        im: Big::ZERO.with_precision(WORKING_DIGITS).value(),
    }
}

/// Both parts, unless one is so much smaller than the other that cancellation may have left it too few
/// digits.
fn parts(z: &C) -> Option<[Real; 2]> {
    let size = |x: &Big| x.repr().exponent() + x.repr().digits() as isize;
    let lost = (size(&z.re) - size(&z.im)).unsigned_abs() > WORKING_DIGITS * 4 / 10;
    (!lost).then(|| [&z.re, &z.im].map(|part| Real::from_approximation(part, WORKING_DIGITS / 2)))
}

fn add(a: &C, b: &C) -> C {
    C { re: &a.re + &b.re, im: &a.im + &b.im }
}

fn sub(a: &C, b: &C) -> C {
    C { re: &a.re - &b.re, im: &a.im - &b.im }
}

fn neg(a: &C) -> C {
    C { re: -a.re.clone(), im: -a.im.clone() }
}

fn times_i(a: &C) -> C {
    C { re: -a.im.clone(), im: a.re.clone() }
}

fn minus_i(a: &C) -> C {
    C { re: a.im.clone(), im: -a.re.clone() }
}

fn mul(a: &C, b: &C) -> C {
    C { re: &a.re * &b.re - &a.im * &b.im, im: &a.re * &b.im + &a.im * &b.re }
}

fn div(a: &C, b: &C) -> Option<C> {
    let square = &b.re * &b.re + &b.im * &b.im;
    if square.repr().significand().is_zero() {
        return None;
    }
    let conjugate = C { re: b.re.clone(), im: -b.im.clone() };
    let product = mul(a, &conjugate);
    Some(C { re: product.re / &square, im: product.im / square })
}

/// The root with a real part that is not negative.
fn sqrt(z: &C) -> Option<C> {
    let c = Context::new(WORKING_DIGITS);
    let modulus = c.sqrt((&z.re * &z.re + &z.im * &z.im).repr()).ok()?.value();
    // The larger of the two halves has no cancellation; the other one follows from the product, which is
    // im / 2.
    let magnitude = if z.re.sign() == Sign::Negative { -z.re.clone() } else { z.re.clone() };
    let large = c.sqrt(((modulus + magnitude) >> 1).repr()).ok()?.value();
    if large.repr().significand().is_zero() {
        return None;
    }
    let small = (z.im.clone() >> 1) / &large;
    let negative_im = z.im.sign() == Sign::Negative;
    Some(if z.re.sign() == Sign::Negative {
        let re = if negative_im { -small } else { small };
        C { re, im: if negative_im { -large } else { large } }
    } else {
        C { re: large, im: small }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known digits, from mpmath.
    #[test]
    fn points() {
        for (opcode, z, expected) in [
            (Opcode::Acos, [0.75, -2.5], [1.2978342774761682, 1.6823483519416833]),
            (Opcode::Acos, [-3.25, 0.5], [2.981498564597801, -1.8607634712375052]),
            (Opcode::Acosh, [0.75, -2.5], [1.6823483519416833, -1.2978342774761682]),
            (Opcode::Acosh, [-3.25, 0.5], [1.8607634712375052, 2.981498564597801]),
            (Opcode::Asin, [0.75, -2.5], [0.27296204931872853, -1.6823483519416833]),
            (Opcode::Asin, [-3.25, 0.5], [-1.4107022378029046, 1.8607634712375052]),
            (Opcode::Asinh, [0.75, -2.5], [1.621135659801741, -1.257108656261786]),
            (Opcode::Asinh, [-3.25, 0.5], [-1.9049180563060308, 0.14612883687226527]),
            (Opcode::Atanh, [0.75, -2.5], [0.09720644727604992, -1.2155990183547114]),
            (Opcode::Atanh, [-3.25, 0.5], [-0.3093803381316877, 1.5200162261413577]),
            (Opcode::Cosine, [0.75, -2.5], [4.486927952981954, 4.12405388034358]),
            (Opcode::Cosine, [-3.25, 0.5], [-1.1210064355306326, -0.05637997668090392]),
            (Opcode::Cosh, [0.75, -2.5], [-1.0372272476741875, -0.4921336576941946]),
            (Opcode::Cosh, [-3.25, 0.5], [11.333590072599032, -6.172979130056043]),
            (Opcode::Exponential, [0.75, -2.5], [-1.696021047421997, -1.266965539010299]),
            (Opcode::Exponential, [-3.25, 0.5], [0.034027568644232356, 0.01858934547367463]),
            (Opcode::ExponentialMinusOne, [0.75, -2.5], [-2.696021047421997, -1.266965539010299]),
            (Opcode::ExponentialMinusOne, [-3.25, 0.5], [-0.9659724313557676, 0.01858934547367463]),
            (Opcode::Log, [0.75, -2.5], [0.9593795799946813, -1.2793395323170296]),
            (Opcode::Log, [-3.25, 0.5], [1.1903514361289989, 2.988943325194528]),
            (Opcode::LogPlusOne, [0.75, -2.5], [1.115678791852839, -0.960070362405688]),
            (Opcode::LogPlusOne, [-3.25, 0.5], [0.8350312671252677, 2.922923707715851]),
            (Opcode::Logistic, [0.75, -2.5], [1.3330806856777477, -0.6063060190876216]),
            (Opcode::Logistic, [-3.25, 0.5], [0.03322025424179881, 0.0173803902679445]),
            (Opcode::Rsqrt, [0.75, -2.5], [0.4965995656500953, 0.3694852980628556]),
            (Opcode::Rsqrt, [-3.25, 0.5], [0.042049576845678734, -0.5498601654920836]),
            (Opcode::Sine, [0.75, -2.5], [4.1800061970220925, -4.426867273187325]),
            (Opcode::Sine, [-3.25, 0.5], [0.12200364300514768, -0.5180363072575923]),
            (Opcode::Sinh, [0.75, -2.5], [-0.6587937997478095, -0.7748318813161044]),
            (Opcode::Sinh, [-3.25, 0.5], [-11.2995625039548, 6.191568475529717]),
            (Opcode::Sqrt, [0.75, -2.5], [1.2961629193947104, -0.9643849405780965]),
            (Opcode::Sqrt, [-3.25, 0.5], [0.13826895799758593, 1.8080703262721112]),
            (Opcode::Tan, [0.75, -2.5], [0.013428726146624548, -0.998956994703144]),
            (Opcode::Tan, [-3.25, 0.5], [-0.08537631380149757, 0.4664110796039537]),
            (Opcode::Tanh, [0.75, -2.5], [0.807747138952803, 0.36377016529145545]),
            (Opcode::Tanh, [-3.25, 0.5], [-0.9983735021385747, 0.0025260912600457435]),
        ] {
            let got = Functions::default().complex_unary(opcode, z).unwrap().map(|part| part.to_f64());
            assert_eq!(got, expected, "{opcode} of {z:?}");
        }
    }
}
