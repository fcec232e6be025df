//! Small expressions that compilers rewrite: identities, near identities, chains that fold, moves after
//! moves.
//!
//! An expression is written in postfix. `x y z` are values of one shape (drawn when first used; two of them
//! may be the same), `p q` predicates of its dimensions, `c d` splat constants, numbers such as `0` or `-1`
//! too; opcodes by their names, comparisons by their directions (`?`: any); `there` converts to some type and
//! `back` to that of `x`; `move` is any movement of data, opcodes of movement are that one, `fold` any
//! reduction, `window` one over windows, `contract` a dot with something; `dup` is the last value again;
//! `also` takes the last value away, into the results.

use hlo::attrs::{AttrKey, AttrValue, Direction};
use hlo::opcode::Arity;
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, TypeClass};

use super::Generator;
use super::body::Body;
use super::movement::{self, Kind};

/// Of any type.
const ANY: &[&str] = &[
    "x 0 add",
    "x 1 multiply",
    "x 0 multiply",
    "x c add d add",
    "x c multiply d multiply",
    "x c add c subtract",
    "c x add d add",
    "c x subtract d subtract",
    "x y subtract y add",
    "x y add y subtract",
    "x y subtract negate",
    "x y multiply x z multiply add",
    "x y multiply z y multiply subtract",
    "x c multiply y c multiply add",
    "x x subtract",
    "x x add",
    "x x multiply",
    "x x divide",
    "x c divide",
    "c x divide",
    "x y divide z divide",
    "x y z divide divide",
    "x y z divide multiply",
    "x c divide d divide",
    "x negate y negate multiply",
    "x negate y add",
    "x y negate subtract",
    "x negate negate",
    "x abs abs",
    "x negate abs",
    "x abs x sign multiply",
    "x 1 power",
    "x 2 power",
    "x 0 power",
    "x 3 power",
    "x -1 power",
    "x c power",
    "x y maximum y maximum",
    "x y maximum x minimum",
    "x y minimum y maximum",
    "x c maximum d minimum",
    "x c minimum d maximum",
    "x x maximum",
    "x y GT x y select",
    "x y LT x y select",
    "x y LE y x select",
    "x y GE x y select",
    "x y EQ x y select",
    "x y NE x y select",
    "x x EQ",
    "x x NE",
    "x x LE",
    "x y LT not",
    "x y GE not",
    "x c LT x d GT and",
    "x c GT x d GT or",
    "x y LT y z LT and",
    "x 0 LT x negate x select",
    "p x x select",
    "p not x y select",
    "p q and x y select",
    "p x y select q z y select add",
    "p q x y select z select",
    "p x y select p y x select add",
    "p p x y select z select",
    "p x 0 select y add",
    "p 1 0 select x multiply",
    "p not not x y select",
    "p q or p and",
    "p q and not",
    "p p xor",
    "c x d clamp",
    "x y z clamp",
    "c x d clamp c maximum",
    "x there back",
    "x there back there back",
    "x y add there back",
    "x there there back",
    "x there negate back",
    "x y multiply z divide",
    "x y divide y multiply",
    "x y multiply y divide",
    "x y subtract 0 ?",
    "x c subtract 0 ?",
    "x c add d ?",
    "x y ? x y ? xor",
    "x y ? y x ? and",
    "x y ? x y select",
    "x y ? y x select",
    "x c ? x y select",
    "x y subtract also y x subtract",
    "x y divide also y x divide",
    "x opt-barrier y add",
    "x y add x y add multiply",
    "x y add y x add subtract",
    "x y multiply z add",
    "x y multiply z subtract",
    "z x y multiply subtract",
    "x y multiply negate z add",
    "x y multiply x z multiply multiply",
    "x dup add dup add dup add",
    "x dup multiply dup multiply",
    "x y add z add x y add subtract",
];

/// Of any type, and any shape in between.
const MOVES: &[&str] = &[
    "x move move",
    "x move move move",
    "x negate move",
    "x move negate move",
    "x y add move",
    "x y add move abs move",
    "x move fold",
    "x fold move",
    "x fold fold",
    "x y multiply fold",
    "x negate fold move",
    "x y add fold",
    "x copy move copy",
    "x transpose transpose",
    "x transpose transpose transpose",
    "x transpose reshape",
    "x reshape transpose",
    "x reshape reshape",
    "x transpose fold",
    "x transpose reverse",
    "x transpose negate transpose",
    "x transpose slice",
    "x transpose broadcast",
    "x transpose contract",
    "x contract transpose",
    "x contract contract",
    "x reshape contract",
    "x broadcast contract",
    "x pad contract",
    "x negate contract",
    "x reverse reverse",
    "x reverse slice",
    "x slice reverse",
    "x reverse fold",
    "x slice slice",
    "x slice reshape",
    "x slice fold",
    "x pad slice",
    "x concatenate slice",
    "x concatenate fold",
    "x concatenate reverse",
    "x pad pad",
    "x pad negate pad",
    "x pad fold",
    "x pad window",
    "x pad negate window",
    "x slice window",
    "x window window",
    "x window fold",
    "x broadcast reshape",
    "x broadcast transpose",
    "x broadcast fold",
    "x broadcast slice",
    "x broadcast broadcast",
    "x broadcast reverse",
    "x y add broadcast",
    "x dynamic-update-slice dynamic-update-slice",
    "x dynamic-update-slice dynamic-slice",
    "x dynamic-slice dynamic-slice",
    "x slice dynamic-update-slice",
    "x negate dynamic-update-slice",
    "x negate dup also dynamic-update-slice",
    "x y add dup also dynamic-update-slice",
    "x dynamic-update-slice x add",
    "x dynamic-update-slice also x negate",
    "x y subtract dynamic-update-slice",
    "x dynamic-update-slice fold",
    "x transpose also x transpose",
    "x reverse also x reverse",
    "x slice also x slice",
    "x pad also x pad",
    "x reshape also x reshape",
    "x broadcast also x broadcast",
    "x fold also x fold",
    "x window also x window",
    "x dynamic-slice also x dynamic-slice",
    "x contract also x contract",
];

/// Of integers and, most of them, predicates.
const INTEGER: &[&str] = &[
    "x not not",
    "x x xor",
    "x y xor y xor",
    "x x and",
    "x x or",
    "x c and d and",
    "x c or d or",
    "x c xor d xor",
    "x y and x y or xor",
    "x y and x z and or",
    "x not y not and",
    "x not y not or",
    "x y xor not",
    "x -1 and",
    "x -1 xor",
    "x 0 or",
    "x c shift-left c shift-right-logical",
    "x c shift-left c shift-right-arithmetic",
    "x c shift-right-logical c shift-left",
    "x c shift-left d shift-left",
    "x c shift-right-logical d shift-right-logical",
    "x c shift-right-arithmetic d shift-right-arithmetic",
    "x y shift-left",
    "x y shift-right-logical",
    "x y shift-right-arithmetic",
    "x c shift-left d multiply",
    "x 2 multiply",
    "x 4 multiply 8 divide",
    "x 2 divide",
    "x 4 divide",
    "x 8 divide 2 divide",
    "x 3 divide",
    "x 7 divide",
    "x -1 divide",
    "x -2 divide",
    "x 2 remainder",
    "x 8 remainder",
    "x 3 remainder",
    "x -1 remainder",
    "x -4 remainder",
    "x c remainder d remainder",
    "x c divide c multiply x c remainder add",
    "x y divide y multiply x y remainder add",
    "x y mulhi x y multiply xor",
    "x c mulhi",
    "x popcnt x not popcnt add",
    "x count-leading-zeros",
    "x negate not",
    "x not negate",
    "x not 1 add",
    "x 1 subtract x and",
    "x x negate and",
    "x 0 LT",
    "x 0 GE",
    "x 0 GT x 1 subtract x select",
    "x c multiply x d multiply add",
    "x x multiply abs",
    "x y multiply abs",
    "x abs sign",
    "x y subtract abs",
    "x sign x multiply",
    "x c shift-left x d shift-right-logical or",
    "x y and popcnt",
];

/// Of floats, and most of complex numbers.
const FLOAT: &[&str] = &[
    "x sqrt x sqrt multiply",
    "x abs sqrt dup multiply",
    "x x multiply sqrt",
    "x rsqrt x multiply",
    "1 x sqrt divide",
    "x rsqrt rsqrt",
    "x y sqrt divide",
    "x y rsqrt divide",
    "x exponential log",
    "x abs log exponential",
    "x exponential y exponential multiply",
    "x exponential y exponential divide",
    "x exponential 1 subtract",
    "x 1 add log",
    "x exponential-minus-one log-plus-one",
    "x log-plus-one exponential-minus-one",
    "1 x negate exponential 1 add divide",
    "x logistic",
    "x negate logistic 1 subtract",
    "x tanh x tanh multiply",
    "x 0.5 power",
    "x -0.5 power",
    "x abs y power log",
    "x abs log y multiply exponential",
    "x abs sqrt y power",
    "x abs y power z power",
    "x sine x sine multiply x cosine x cosine multiply add",
    "x negate sine",
    "x negate cosine",
    "x tan",
    "x y atan2",
    "x y negate atan2",
    "x floor negate ceil",
    "x negate floor",
    "x round-nearest-even",
    "x round-nearest-afz",
    "x 0.5 add floor",
    "x floor x subtract",
    "x c divide round-nearest-even c multiply",
    "x cbrt dup dup multiply multiply",
    "x erf 1 add x multiply 0.5 multiply",
    "x is-finite x 0 select",
    "x x NE x y select",
    "x -0 add",
    "x 0 subtract",
    "0 x subtract",
    "-0 x subtract",
    "x 0.5 multiply 2 multiply",
    "x 3 divide",
    "x 0.5 divide",
    "x 10 divide 10 multiply",
    "x y remainder",
    "x 2 remainder",
    "x c remainder",
    "x sign",
    "x y add x subtract y subtract",
    "x y subtract x y add multiply",
    "x real",
    "x imag",
    "x cosh x sinh subtract",
    "x asinh sinh",
    "x acos x asin add",
    "x abs 1 add acosh",
    "x atanh tanh",
];

/// The values that an expression has drawn so far.
struct Names {
    shape: ArrayShape,
    values: [Option<InstrId>; 7],
}

pub(super) fn pattern(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    // Values of more dimensions often: on few, many mistakes cannot be made.
    let x = if g.choices.chance(80) { g.ranked(body, 3) } else { g.any(body) };
    let shape = g.array(x).without_layout();
    let own: &[&str] = match shape.element_type.class() {
        TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned => INTEGER,
        TypeClass::Float | TypeClass::Complex => FLOAT,
    };
    let list = [ANY, MOVES, own, MOVES, own][g.choices.below(5)];
    let text = g.choices.pick(list);
    expression(g, body, text, x, None)
}

/// An expression that knows no shape but that of its values, for a computation of its own.
pub(super) fn elementwise(g: &mut Generator<'_>, body: &mut Body, x: InstrId, y: InstrId) -> Option<InstrId> {
    let text = g.choices.pick(ANY);
    expression(g, body, text, x, Some(y))
}

fn expression(
    g: &mut Generator<'_>,
    body: &mut Body,
    text: &str,
    x: InstrId,
    y: Option<InstrId>,
) -> Option<InstrId> {
    let shape = g.array(x).without_layout();
    let mut names = Names { shape, values: [Some(x), y, None, None, None, None, None] };
    let mut stack: Vec<InstrId> = Vec::new();
    for word in text.split(' ') {
        step(g, body, &mut names, &mut stack, word)?;
    }
    stack.pop()
}

/// The kinds of movement that have a word.
const KINDS: [(&str, Kind); 9] = [
    ("transpose", Kind::Transpose),
    ("reshape", Kind::Reshape),
    ("reverse", Kind::Reverse),
    ("slice", Kind::Slice),
    ("pad", Kind::Pad),
    ("concatenate", Kind::Concatenate),
    ("broadcast", Kind::Broadcast),
    ("dynamic-slice", Kind::DynamicSlice),
    ("dynamic-update-slice", Kind::DynamicUpdateSlice),
];

/// One word.
fn step(
    g: &mut Generator<'_>,
    body: &mut Body,
    names: &mut Names,
    stack: &mut Vec<InstrId>,
    word: &str,
) -> Option<()> {
    const LETTERS: &str = "xyzpqcd";
    let id = if let (1, Some(i)) = (word.len(), LETTERS.find(word)) {
        match names.values[i] {
            Some(id) => id,
            None => {
                let id = drawn(g, body, &names.shape, i);
                names.values[i] = Some(id);
                id
            }
        }
    } else if let Ok(number) = word.parse::<f64>() {
        let one =
            g.at(body).constant(hlo::Literal::Array(super::values::number(names.shape.element_type, number)));
        spread(g, body, one, &names.shape.dims)?
    } else if let Some(direction) =
        Direction::from_text(word).or_else(|| (word == "?").then(|| g.choices.pick(Direction::ALL)))
    {
        let (b, a) = (stack.pop()?, stack.pop()?);
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        g.add(body, Opcode::Compare, &[a, b], attrs)?
    } else if word == "there" {
        let ty = g.freely(Generator::element_type);
        let x = stack.pop()?;
        g.at(body).convert(x, ty).ok()?
    } else if word == "back" {
        let x = stack.pop()?;
        g.at(body).convert(x, names.shape.element_type).ok()?
    } else if word == "move" {
        let x = stack.pop()?;
        movement::moved(g, body, x)?
    } else if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == word) {
        let x = stack.pop()?;
        movement::moved_by(g, body, x, *kind)?
    } else if word == "window" {
        let x = stack.pop()?;
        super::reduction::windowed(g, body, x)?
    } else if word == "contract" {
        let x = stack.pop()?;
        super::contraction::dotted(g, body, x)?
    } else if word == "also" {
        body.add(stack.pop()?);
        return Some(());
    } else if word == "fold" {
        let x = stack.pop()?;
        super::reduction::reduced(g, body, x)?
    } else if word == "dup" {
        *stack.last()?
    } else {
        let opcode = Opcode::from_name(word)?;
        let Arity::Exactly(n) = opcode.arity() else { return None };
        let operands = stack.split_off(stack.len().checked_sub(n)?);
        let made = g.plain(body, opcode, &operands);
        // An operation that the type lacks is left out.
        made.or(operands.first().copied())?
    };
    stack.push(id);
    Some(())
}

/// The value of a letter.
fn drawn(g: &mut Generator<'_>, body: &mut Body, shape: &ArrayShape, letter: usize) -> InstrId {
    match letter {
        3 | 4 => g.of_shape(body, &ArrayShape::new(ElementType::Pred, &shape.dims)),
        5 | 6 => {
            let scalar = ArrayShape::new(shape.element_type, &[]);
            let one = g.constant(body, &scalar);
            spread(g, body, one, &shape.dims).unwrap_or(one)
        }
        _ => g.of_shape(body, shape),
    }
}

/// A splat.
fn spread(g: &mut Generator<'_>, body: &Body, one: InstrId, dims: &[i64]) -> Option<InstrId> {
    if dims.is_empty() {
        return Some(one);
    }
    g.at(body).broadcast(one, dims, &[]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_something() {
        for text in ANY.iter().chain(MOVES).chain(INTEGER).chain(FLOAT) {
            let mut depth = 0i64;
            for word in text.split(' ') {
                let known = "xyzpqcd".contains(word) || word.parse::<f64>().is_ok();
                let opcode = match KINDS.iter().any(|(name, _)| *name == word) {
                    true => None,
                    false => Opcode::from_name(word),
                };
                let operands = match opcode.map(|o| o.arity()) {
                    Some(Arity::Exactly(n)) => n as i64,
                    Some(Arity::AtLeast(_)) => panic!("{text}: {word}"),
                    None if known || word == "dup" => 0,
                    None if word == "?" || Direction::from_text(word).is_some() => 2,
                    None if word == "also" => {
                        depth -= 1;
                        continue;
                    }
                    None => {
                        let kind = KINDS.iter().any(|(name, _)| *name == word);
                        let other = ["there", "back", "move", "fold", "window", "contract"];
                        assert!(kind || other.contains(&word), "{text}: {word}");
                        1
                    }
                };
                depth += 1 - operands;
                assert!(depth >= 1, "{text}");
            }
            assert_eq!(depth, 1, "{text}");
        }
    }
}
