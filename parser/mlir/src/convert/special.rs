//! Special functions as expressions of `f64`, from the usual approximations of the literature.

#![allow(clippy::excessive_precision, reason = "coefficients as the literature prints them")]

use hlo::attrs::Direction;
use hlo::{ElementType, InstrId, Opcode};

use super::cx::Converter;

/// Coefficients of Lanczos' approximation of the gamma function with g = 7 and nine terms.
const LANCZOS_G: f64 = 7.0;
const LANCZOS_BASE: f64 = 0.999_999_999_999_809_9;
const LANCZOS: [f64; 8] = [
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
];

/// Giles' approximation of the inverse error function in `f32`, of `w = -log(1 - x^2)`: below 5, and from
/// there on.
const ERF_INV_F32: [[f64; 9]; 2] = [
    [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ],
    [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ],
];

/// The same in `f64`: below 6.25, below 16, and from there on.
const ERF_INV_LOW: [f64; 23] = [
    -3.6444120640178196996e-21,
    -1.685059138182016589e-19,
    1.2858480715256400167e-18,
    1.115787767802518096e-17,
    -1.333171662854620906e-16,
    2.0972767875968561637e-17,
    6.6376381343583238325e-15,
    -4.0545662729752068639e-14,
    -8.1519341976054721522e-14,
    2.6335093153082322977e-12,
    -1.2975133253453532498e-11,
    -5.4154120542946279317e-11,
    1.051212273321532285e-09,
    -4.1126339803469836976e-09,
    -2.9070369957882005086e-08,
    4.2347877827932403518e-07,
    -1.3654692000834678645e-06,
    -1.3882523362786468719e-05,
    0.0001867342080340571352,
    -0.00074070253416626697512,
    -0.0060336708714301490533,
    0.24015818242558961693,
    1.6536545626831027356,
];
const ERF_INV_MIDDLE: [f64; 19] = [
    2.2137376921775787049e-09,
    9.0756561938885390979e-08,
    -2.7517406297064545428e-07,
    1.8239629214389227755e-08,
    1.5027403968909827627e-06,
    -4.013867526981545969e-06,
    2.9234449089955446044e-06,
    1.2475304481671778723e-05,
    -4.7318229009055733981e-05,
    6.8284851459573175448e-05,
    2.4031110387097893999e-05,
    -0.0003550375203628474796,
    0.00095328937973738049703,
    -0.0016882755560235047313,
    0.0024914420961078508066,
    -0.0037512085075692412107,
    0.005370914553590063617,
    1.0052589676941592334,
    3.0838856104922207635,
];
const ERF_INV_HIGH: [f64; 17] = [
    -2.7109920616438573243e-11,
    -2.5556418169965252055e-10,
    1.5076572693500548083e-09,
    -3.7894654401267369937e-09,
    7.6157012080783393804e-09,
    -1.4960026627149240478e-08,
    2.9147953450901080826e-08,
    -6.7711997758452339498e-08,
    2.2900482228026654717e-07,
    -9.9298272942317002539e-07,
    4.5260625972231537039e-06,
    -1.9681778105531670567e-05,
    7.5995277030017761139e-05,
    -0.00021503011930044477347,
    -0.00013871931833623122026,
    1.0103004648645343977,
    4.8499064014085844221,
];

/// Rational approximations of `erfc(x) exp(x^2)`: from 1 to 8, and from there on (Cephes).
const ERFC_P: [f64; 9] = [
    2.46196981473530512524e-10,
    5.64189564831068821977e-1,
    7.46321056442269912687,
    4.86371970985681366614e1,
    1.96520832956077098242e2,
    5.26445194995477358631e2,
    9.34528527171957607540e2,
    1.02755188689515710272e3,
    5.57535335369399327526e2,
];
const ERFC_Q: [f64; 9] = [
    1.0,
    1.32281951154744992508e1,
    8.67072140885989742329e1,
    3.54937778887819891062e2,
    9.75708501743205489753e2,
    1.82390916687909736289e3,
    2.24633760818710981792e3,
    1.65666309194161350182e3,
    5.57535340817727675546e2,
];
const ERFC_R: [f64; 6] = [
    5.64189583547755073984e-1,
    1.27536670759978104416,
    5.01905042251180477414,
    6.16021097993053585195,
    7.40974269950448939160,
    2.97886665372100240670,
];
const ERFC_S: [f64; 7] = [
    1.0,
    2.26052863220117276590,
    9.39603524938001434673,
    1.20489539808096656605e1,
    1.70814450747565897222e1,
    9.60896809063285878198,
    3.36907645100081516050,
];

/// Terms of the series that the modified Bessel function is summed by below [`BESSEL_SPLIT`]; and of the
/// asymptotic one above.
const BESSEL_TERMS: u32 = 60;
const BESSEL_ASYMPTOTIC_TERMS: u32 = 24;
const BESSEL_SPLIT: f64 = 30.0;

/// `B(2k)/(2k)!` inverted, of Euler and Maclaurin's formula.
const ZETA: [f64; 12] = [
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
];

impl Converter<'_> {
    /// `1 - erf(x)`, without its cancellation.
    pub(super) fn erfc(&mut self, x: InstrId) -> InstrId {
        let erf = self.op1(Opcode::Erf, x);
        let one = self.like(x, 1.0);
        let near = self.sub(one, erf);
        let magnitude = self.op1(Opcode::Abs, x);
        let square = self.mul(x, x);
        let minus = self.op1(Opcode::Negate, square);
        let z = self.op1(Opcode::Exponential, minus);
        let quotient = |c: &mut Self, p: &[f64], q: &[f64]| {
            let (p, q) = (c.polynomial(magnitude, p), c.polynomial(magnitude, q));
            c.div(p, q)
        };
        let low = quotient(self, &ERFC_P, &ERFC_Q);
        let high = quotient(self, &ERFC_R, &ERFC_S);
        let is_low = self.cmp_to(Direction::Lt, magnitude, 8.0);
        let y = self.choose(is_low, low, high);
        let y = self.mul(z, y);
        let zero = self.like(x, 0.0);
        let gone = self.cmp(Direction::Eq, z, zero);
        let y = self.choose(gone, zero, y);
        let two = self.like(x, 2.0);
        let other = self.sub(two, y);
        let negative = self.cmp(Direction::Lt, x, zero);
        let far = self.choose(negative, other, y);
        let is_near = self.cmp_to(Direction::Lt, magnitude, 1.0);
        let result = self.choose(is_near, near, far);
        self.nan_stays(x, result)
    }

    /// `NaN` where the argument is.
    fn nan_stays(&mut self, x: InstrId, result: InstrId) -> InstrId {
        let nan = self.cmp(Direction::Ne, x, x);
        self.choose(nan, x, result)
    }

    pub(super) fn erf_inv(&mut self, x: InstrId) -> InstrId {
        let ty = self.type_of(x);
        let work = if ty == ElementType::F64 { ty } else { ElementType::F32 };
        let x = self.convert_to(x, work);
        let minus = self.op1(Opcode::Negate, x);
        let product = self.mul(x, minus);
        let log = self.op1(Opcode::LogPlusOne, product);
        let w = self.op1(Opcode::Negate, log);
        let root = self.op1(Opcode::Sqrt, w);
        let shifted = |c: &mut Self, of: InstrId, by: f64| {
            let by = c.like(of, by);
            c.sub(of, by)
        };
        let p = if work == ElementType::F64 {
            let (low, middle, high) =
                (shifted(self, w, 3.125), shifted(self, root, 3.25), shifted(self, root, 5.0));
            let low = self.polynomial(low, &ERF_INV_LOW);
            let middle = self.polynomial(middle, &ERF_INV_MIDDLE);
            let high = self.polynomial(high, &ERF_INV_HIGH);
            let is_low = self.cmp_to(Direction::Lt, w, 6.25);
            let is_middle = self.cmp_to(Direction::Lt, w, 16.0);
            let upper = self.choose(is_middle, middle, high);
            self.choose(is_low, low, upper)
        } else {
            let (low, high) = (shifted(self, w, 2.5), shifted(self, root, 3.0));
            let low = self.polynomial(low, &ERF_INV_F32[0]);
            let high = self.polynomial(high, &ERF_INV_F32[1]);
            let is_low = self.cmp_to(Direction::Lt, w, 5.0);
            self.choose(is_low, low, high)
        };
        let result = self.mul(p, x);
        let magnitude = self.op1(Opcode::Abs, x);
        let end = self.cmp_to(Direction::Eq, magnitude, 1.0);
        let infinity = self.like(x, f64::INFINITY);
        let infinite = self.mul(x, infinity);
        let result = self.choose(end, infinite, result);
        self.convert_to(result, ty)
    }

    /// `t = z + g + 1/2` of Lanczos' approximation, and its logarithm, accurate where `z` is small.
    fn lanczos_shifted(&mut self, x: InstrId, z: InstrId) -> (InstrId, InstrId) {
        let g = LANCZOS_G + 0.5;
        let g_half = self.like(x, g);
        let t = self.add(g_half, z);
        let ratio = self.div(z, g_half);
        let log_ratio = self.op1(Opcode::LogPlusOne, ratio);
        let log_g = self.like(x, g.ln());
        (t, self.add(log_g, log_ratio))
    }

    /// The argument `z` of Lanczos' approximation, `x - 1`, or `-x` where `x` is below 1/2; and whether it
    /// is, which asks for Euler's reflection.
    fn lanczos_argument(&mut self, x: InstrId) -> (InstrId, InstrId) {
        let reflects = self.cmp_to(Direction::Lt, x, 0.5);
        let minus = self.op1(Opcode::Negate, x);
        let one = self.like(x, 1.0);
        let less = self.sub(x, one);
        (self.choose(reflects, minus, less), reflects)
    }

    pub(super) fn lgamma(&mut self, x: InstrId) -> InstrId {
        let (z, reflects) = self.lanczos_argument(x);
        let mut sum = self.like(x, LANCZOS_BASE);
        for (i, &c) in LANCZOS.iter().enumerate() {
            let at = self.like(x, i as f64 + 1.0);
            let at = self.add(z, at);
            let c = self.like(x, c);
            let term = self.div(c, at);
            sum = self.add(sum, term);
        }
        let (t, log_t) = self.lanczos_shifted(x, z);
        let half = self.like(x, 0.5);
        let z_half = self.add(z, half);
        let quotient = self.div(t, log_t);
        let power = self.sub(z_half, quotient);
        let power = self.mul(power, log_t);
        let log_sum = self.op1(Opcode::Log, sum);
        let constant = self.like(x, (std::f64::consts::TAU.ln()) / 2.0);
        let y = self.add(power, constant);
        let y = self.add(y, log_sum);
        // Euler's reflection: the sine of the distance to the next integer.
        let magnitude = self.op1(Opcode::Abs, x);
        let floor = self.op1(Opcode::Floor, magnitude);
        let fraction = self.sub(magnitude, floor);
        let one = self.like(x, 1.0);
        let other = self.sub(one, fraction);
        let above = self.cmp(Direction::Lt, half, fraction);
        let reduced = self.choose(above, other, fraction);
        let pi = self.like(x, std::f64::consts::PI);
        let angle = self.mul(pi, reduced);
        let sine = self.op1(Opcode::Sine, angle);
        let log_sine = self.op1(Opcode::Log, sine);
        let log_pi = self.like(x, std::f64::consts::PI.ln());
        let reflection = self.sub(log_pi, log_sine);
        let reflection = self.sub(reflection, y);
        let finite = self.finite(log_sine);
        let minus = self.op1(Opcode::Negate, log_sine);
        let reflection = self.choose(finite, reflection, minus);
        let result = self.choose(reflects, reflection, y);
        let infinity = self.like(x, f64::INFINITY);
        let infinite = self.cmp(Direction::Eq, magnitude, infinity);
        self.choose(infinite, infinity, result)
    }

    fn finite(&mut self, x: InstrId) -> InstrId {
        let dims = self.dims_of(x);
        self.plain(Opcode::IsFinite, hlo::Shape::array(ElementType::Pred, &dims), &[x])
    }

    pub(super) fn digamma(&mut self, x: InstrId) -> InstrId {
        let (z, reflects) = self.lanczos_argument(x);
        let zero = self.like(x, 0.0);
        let (mut sum, mut derivative) = (self.like(x, LANCZOS_BASE), zero);
        for (i, &c) in LANCZOS.iter().enumerate() {
            let at = self.like(x, i as f64 + 1.0);
            let at = self.add(z, at);
            let c = self.like(x, c);
            let square = self.mul(at, at);
            let term = self.div(c, square);
            derivative = self.sub(derivative, term);
            let term = self.div(c, at);
            sum = self.add(sum, term);
        }
        let (t, log_t) = self.lanczos_shifted(x, z);
        let quotient = self.div(derivative, sum);
        let g = self.like(x, LANCZOS_G);
        let rest = self.div(g, t);
        let y = self.add(log_t, quotient);
        let y = self.sub(y, rest);
        let half = self.like(x, 0.5);
        let shifted = self.add(x, half);
        let floor = self.op1(Opcode::Floor, shifted);
        let whole = self.op1(Opcode::Abs, floor);
        let reduced = self.add(x, whole);
        let pi = self.like(x, std::f64::consts::PI);
        let angle = self.mul(pi, reduced);
        let (cosine, sine) = (self.op1(Opcode::Cosine, angle), self.op1(Opcode::Sine, angle));
        let top = self.mul(pi, cosine);
        let cotangent = self.div(top, sine);
        let reflection = self.sub(y, cotangent);
        let result = self.choose(reflects, reflection, y);
        let not_positive = self.cmp(Direction::Le, x, zero);
        let floor = self.op1(Opcode::Floor, x);
        let integer = self.cmp(Direction::Eq, x, floor);
        let pole = self.op2(Opcode::And, not_positive, integer);
        let nan = self.like(x, f64::NAN);
        self.choose(pole, nan, result)
    }

    /// `exp(-|x|) I1(x)`: the power series of I1, and its asymptotic series where the argument is large.
    pub(super) fn bessel_i1e(&mut self, x: InstrId) -> InstrId {
        let magnitude = self.op1(Opcode::Abs, x);
        let split = self.like(x, BESSEL_SPLIT);
        let small = self.op2(Opcode::Minimum, magnitude, split);
        let half = self.like(x, 0.5);
        let h = self.mul(small, half);
        let square = self.mul(h, h);
        // sum of (x/2)^(2k) / (k! (k+1)!), from the last term in.
        let one = self.like(x, 1.0);
        let mut sum = one;
        for k in (1..=BESSEL_TERMS).rev() {
            let d = self.like(x, f64::from(k) * f64::from(k + 1));
            let factor = self.div(square, d);
            let product = self.mul(sum, factor);
            sum = self.add(one, product);
        }
        let series = self.mul(sum, h);
        let minus = self.op1(Opcode::Negate, small);
        let decay = self.op1(Opcode::Exponential, minus);
        let low = self.mul(series, decay);
        // 1/sqrt(2 pi x) sum of (-1)^k prod (4 - (2j-1)^2) / (k! (8x)^k)
        let large = self.op2(Opcode::Maximum, magnitude, split);
        let eight = self.like(x, 8.0);
        let eight_x = self.mul(large, eight);
        let mut sum = one;
        for k in (1..=BESSEL_ASYMPTOTIC_TERMS).rev() {
            let odd = f64::from(2 * k - 1);
            let c = self.like(x, -(4.0 - odd * odd) / f64::from(k));
            let factor = self.div(c, eight_x);
            let product = self.mul(sum, factor);
            sum = self.add(one, product);
        }
        let tau = self.like(x, std::f64::consts::TAU);
        let inside = self.mul(tau, large);
        let root = self.op1(Opcode::Sqrt, inside);
        let high = self.div(sum, root);
        let is_low = self.cmp(Direction::Lt, magnitude, split);
        let result = self.choose(is_low, low, high);
        let zero = self.like(x, 0.0);
        let negative = self.cmp(Direction::Lt, x, zero);
        let opposite = self.op1(Opcode::Negate, result);
        let result = self.choose(negative, opposite, result);
        self.nan_stays(x, result)
    }

    /// Hurwitz' zeta function, the sum of `(q + k)^-x`, by Euler and Maclaurin's formula.
    pub(super) fn zeta(&mut self, x: InstrId, q: InstrId) -> InstrId {
        const TERMS: u32 = 10;
        let zero = self.like(x, 0.0);
        let minus_x = self.op1(Opcode::Negate, x);
        let mut sum = self.op2(Opcode::Power, q, minus_x);
        let mut a = q;
        let one = self.like(x, 1.0);
        let mut last = sum;
        for _ in 1..TERMS {
            a = self.add(a, one);
            last = self.op2(Opcode::Power, a, minus_x);
            sum = self.add(sum, last);
        }
        a = self.add(a, one);
        last = {
            let _ = last;
            self.op2(Opcode::Power, a, minus_x)
        };
        let x_less = self.sub(x, one);
        let tail = self.mul(last, a);
        let tail = self.div(tail, x_less);
        sum = self.add(sum, tail);
        let inverse_square = {
            let square = self.mul(a, a);
            self.div(one, square)
        };
        // From the last correction in: x (x+1) ... (x+2k) a^(-2k) / c
        let mut correction = zero;
        for (k, &c) in ZETA.iter().enumerate().skip(1).rev() {
            let c = self.like(x, c);
            let term = self.div(one, c);
            let inner = self.add(term, correction);
            let (first, second) = (2.0 * k as f64 - 1.0, 2.0 * k as f64);
            let (first, second) = (self.like(x, first), self.like(x, second));
            let (first, second) = (self.add(x, first), self.add(x, second));
            let factor = self.mul(first, second);
            let factor = self.mul(factor, inverse_square);
            correction = self.mul(factor, inner);
        }
        let first = self.like(x, 1.0 / ZETA[0]);
        let inner = self.add(first, correction);
        let over = self.div(x, a);
        let inner = self.mul(over, inner);
        let half = self.like(x, 0.5);
        let inner = self.add(half, inner);
        let inner = self.mul(last, inner);
        let result = self.add(sum, inner);
        // Poles and what is not defined.
        let nan = self.like(x, f64::NAN);
        let infinity = self.like(x, f64::INFINITY);
        let below = self.cmp(Direction::Lt, x, one);
        let result = self.choose(below, nan, result);
        let at_one = self.cmp(Direction::Eq, x, one);
        let result = self.choose(at_one, infinity, result);
        let q_low = self.cmp(Direction::Le, q, zero);
        let floor = self.op1(Opcode::Floor, q);
        let q_integer = self.cmp(Direction::Eq, q, floor);
        let x_floor = self.op1(Opcode::Floor, x);
        let x_integer = self.cmp(Direction::Eq, x, x_floor);
        let two = self.like(x, 2.0);
        let remainder = self.op2(Opcode::Remainder, x, two);
        let x_even = self.cmp(Direction::Eq, remainder, zero);
        let pole = self.choose(x_even, infinity, nan);
        let not_defined = self.op1(Opcode::Not, x_integer);
        let low_result = self.choose(not_defined, nan, result);
        let low_result = self.choose(q_integer, pole, low_result);
        self.choose(q_low, low_result, result)
    }

    /// `(-1)^(n+1) n! zeta(n+1, x)`, and the digamma function for `n = 0`.
    pub(super) fn polygamma(&mut self, n: InstrId, x: InstrId) -> InstrId {
        let one = self.like(n, 1.0);
        let next = self.add(n, one);
        let zeta = self.zeta(next, x);
        let log = self.lgamma(next);
        let factorial = self.op1(Opcode::Exponential, log);
        let value = self.mul(factorial, zeta);
        let two = self.like(n, 2.0);
        let remainder = self.op2(Opcode::Remainder, n, two);
        let even = self.cmp_to(Direction::Eq, remainder, 0.0);
        let opposite = self.op1(Opcode::Negate, value);
        let value = self.choose(even, opposite, value);
        let digamma = self.digamma(x);
        let is_zero = self.cmp_to(Direction::Eq, n, 0.0);
        let value = self.choose(is_zero, digamma, value);
        // Orders are the natural numbers.
        let floor = self.op1(Opcode::Floor, n);
        let fraction = self.cmp(Direction::Ne, n, floor);
        let negative = self.cmp_to(Direction::Lt, n, 0.0);
        let wrong = self.op2(Opcode::Or, fraction, negative);
        let nan = self.like(n, f64::NAN);
        self.choose(wrong, nan, value)
    }
}
