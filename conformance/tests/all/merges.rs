//! Folds by what merges partial results, as frameworks write it: the interpreter's other orders of them, and
//! its elementary functions moved by a unit in the last place, are inside the bounds, in every type of floats
//! that they are recognized in, on gentle inputs and on special ones. Most elements that differ are explained.

use hlo_engines::engine;
use hlo_engines::frontend::parse_text;
use libtest_mimic::{Failed, Trial};

use crate::certified::{Totals, other_engine_inside};
use crate::failed;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("certified/merges", merges)]
}

/// The applied computation, how many operands it folds, and what these are besides `x`, in a type `T`.
struct Form {
    name: &'static str,
    region: &'static str,
    operands: &'static [&'static str],
    initial: &'static [&'static str],
}

const FORMS: &[Form] = &[
    Form {
        name: "log-add-exp",
        region: "d = T[] subtract(a0, b0)\n e = T[] abs(d)\n n = T[] negate(e)\n p = T[] exponential(n)\n l = T[] log-plus-one(p)\n m = T[] maximum(a0, b0)\n ROOT r = T[] add(m, l)",
        operands: &["x"],
        initial: &["-inf"],
    },
    Form {
        name: "log-add-exp by both exponentials, with a guard",
        region: "m = T[] maximum(a0, b0)\n s = T[] minimum(a0, b0)\n d = T[] subtract(a0, m)\n f = T[] subtract(b0, m)\n p = T[] exponential(d)\n q = T[] exponential(f)\n u = T[] add(p, q)\n l = T[] log(u)\n w = T[] add(l, m)\n ne = pred[] compare(s, m), direction=NE\n fin = pred[] is-finite(s)\n o = pred[] or(ne, fin)\n ROOT r = T[] select(o, w, a0)",
        operands: &["x"],
        initial: &["-inf"],
    },
    Form {
        name: "hypotenuse",
        region: "p = T[] multiply(a0, a0)\n q = T[] multiply(b0, b0)\n s = T[] add(p, q)\n ROOT r = T[] sqrt(s)",
        operands: &["x"],
        initial: &["0"],
    },
    Form {
        name: "online softmax",
        region: "m = T[] maximum(a0, b0)\n d = T[] subtract(a0, m)\n e = T[] subtract(b0, m)\n p = T[] exponential(d)\n q = T[] exponential(e)\n s = T[] multiply(a1, p)\n u = T[] multiply(b1, q)\n w = T[] add(s, u)\n ROOT r = (T[], T[]) tuple(m, w)",
        operands: &["x", "ones"],
        initial: &["-inf", "0"],
    },
    Form {
        name: "moments",
        region: "d = T[] subtract(b0, a0)\n n = T[] add(a2, b2)\n q = T[] divide(b2, n)\n p = T[] multiply(d, q)\n m = T[] add(a0, p)\n dd = T[] multiply(d, d)\n da = T[] multiply(dd, a2)\n do = T[] multiply(da, q)\n s = T[] add(a1, b1)\n w = T[] add(s, do)\n ROOT r = (T[], T[], T[]) tuple(m, w, n)",
        operands: &["x", "zeros", "ones"],
        initial: &["0", "0", "0"],
    },
    Form { name: "difference", region: "ROOT r = T[] subtract(a0, b0)", operands: &["x"], initial: &["0"] },
];

impl Form {
    /// A program that folds so, by `fold` with a result of this shape.
    fn program(&self, ty: &str, fold: &str, shape: &str) -> String {
        let n = self.operands.len();
        let parameters: Vec<String> = (0..2 * n)
            .map(|p| format!(" {}{} = T[] parameter({p})\n", if p < n { 'a' } else { 'b' }, p % n))
            .collect();
        let initial: Vec<String> =
            self.initial.iter().enumerate().map(|(k, x)| format!(" i{k} = T[] constant({x})\n")).collect();
        let names: Vec<String> = (0..n).map(|k| format!("i{k}")).collect();
        let result = format!("T[{shape}]");
        let results = if n == 1 { result } else { format!("({})", vec![result; n].join(", ")) };
        let text = format!(
            "HloModule m\nr {{\n{} {}\n}}\nENTRY e {{\n x = T[6,20] parameter(0)\n zero = T[] constant(0)\n one = T[] constant(1)\n zeros = T[6,20] broadcast(zero), dimensions={{}}\n ones = T[6,20] broadcast(one), dimensions={{}}\n{} ROOT q = {results} {fold}, to_apply=r\n}}\n",
            parameters.concat(),
            self.region,
            initial.concat(),
        );
        let operands = format!("{}, {}", self.operands.join(", "), names.join(", "));
        text.replace("OPERANDS", &operands).replace("T[", &format!("{ty}["))
    }
}

fn merges() -> Result<(), Failed> {
    let folds = [
        ("reduce(OPERANDS), dimensions={1}", "6"),
        ("reduce(OPERANDS), dimensions={1,0}", ""),
        ("reduce-window(OPERANDS), window={size=2x5 stride=1x3}", "5,6"),
    ];
    for form in FORMS {
        let totals = Totals::default();
        for ty in ["f16", "bf16", "f32", "f64"] {
            for (fold, shape) in folds {
                let text = form.program(ty, fold, shape);
                let (module, found) = parse_text(&text);
                let module = module.ok_or_else(|| failed(format!("{found:?}\n{text}")))?;
                for name in
                    ["regions-reversed", "regions-swapped", "regions-by-columns", "ulp-up", "ulp-down"]
                {
                    let engine =
                        engine::by_name(&format!("interpreter:{name}")).map_err(|f| failed(f.message))?;
                    for seed in 0..3 {
                        other_engine_inside(&module, &*engine, seed, &totals).map_err(|e| {
                            failed(format!("{}, {name}, inputs of seed {seed}: {e}\n{text}", form.name))
                        })?;
                    }
                }
            }
        }
        let (explained, undecided) = totals.differing();
        // A difference with exchanged operands has other signs, and sums of small numbers are exact.
        let signs = form.name == "difference";
        let few = explained < if signs { 1 } else { 20 };
        if few || !signs && undecided > explained / 4 {
            return Err(failed(format!("{}: {explained} explained, {undecided} undecided", form.name)));
        }
    }
    Ok(())
}
