//! What regions take and give; loops, branches, tuples, composites, transfers and asynchronous operations.

use super::super::control::RETURNS;
use super::super::cx::{Convert, Converter};
use super::{Kind, Tensor, same_shape};
use crate::ir::{Attribute, OpId, Signedness, Type, TypeId, ValueId, storage_bits};
use crate::print::type_text;

/// What a region takes and gives.
pub(super) struct Signature {
    pub(super) inputs: Vec<TypeId>,
    pub(super) outputs: Vec<TypeId>,
}

impl Signature {
    /// Whether it takes scalars of these element types.
    pub(super) fn scalars(&self, c: &Converter<'_>, elements: &[TypeId]) -> bool {
        self.inputs.len() == elements.len()
            && self.inputs.iter().zip(elements).all(|(&t, &e)| c.scalar_element(t) == Some(e))
    }
}

/// Operations that may stand in the body of `async_start`.
const ASYNCHRONOUS: [&str; 9] = [
    "all_reduce",
    "all_gather",
    "all_to_all",
    "collective_permute",
    "reduce_scatter",
    "collective_broadcast",
    "slice",
    "dynamic_slice",
    "dynamic_update_slice",
];

/// Whether a name is one of a namespace, `my.op`.
fn is_namespaced(name: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'-'))
    };
    name.split_once('.').is_some_and(|(space, rest)| {
        space.starts_with(|c: char| c.is_ascii_alphabetic()) && word(space) && rest.split('.').all(word)
    })
}

impl<'m> Converter<'m> {
    /// That a constraint holds.
    pub(super) fn hold(
        &self,
        op: OpId,
        number: &str,
        holds: bool,
        message: impl FnOnce() -> String,
    ) -> Convert<()> {
        if holds { Ok(()) } else { self.constraint(op, number, message()) }
    }

    pub(super) fn equal_shapes(
        &self,
        op: OpId,
        number: &str,
        what: &str,
        a: Tensor<'_>,
        b: Tensor<'_>,
    ) -> Convert<()> {
        self.hold(op, number, same_shape(a.dims, b.dims), || {
            format!("{what} are {} and {}", self.show(a), self.show(b))
        })
    }

    pub(super) fn scalar(&self, op: OpId, number: &str, what: &str, t: Tensor<'_>) -> Convert<()> {
        self.hold(op, number, t.dims.is_empty(), || format!("{what} is {}", self.show(t)))
    }

    /// The element type of a scalar.
    pub(super) fn scalar_element(&self, ty: TypeId) -> Option<TypeId> {
        match self.m.get_type(ty) {
            Type::Tensor { dims, element, .. } if dims.is_empty() => Some(*element),
            _ => None,
        }
    }

    /// Whether a type is that of one truth value.
    pub(super) fn is_predicate(&self, ty: TypeId) -> bool {
        self.scalar_element(ty).is_some_and(|e| {
            matches!(self.m.get_type(e), Type::Integer { width: 1, sign: Signedness::Signless })
        })
    }

    /// Whether two types are the same, up to sizes that are not known.
    fn alike(&self, a: TypeId, b: TypeId) -> bool {
        if a == b {
            return true;
        }
        match (self.m.get_type(a), self.m.get_type(b)) {
            (Type::Tensor { dims: a, element: x, .. }, Type::Tensor { dims: b, element: y, .. }) => {
                x == y && same_shape(a, b)
            }
            (Type::Tuple(a), Type::Tuple(b)) => self.all_alike(a, b),
            _ => false,
        }
    }

    fn all_alike(&self, a: &[TypeId], b: &[TypeId]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| self.alike(a, b))
    }

    fn types_of(&self, values: &[ValueId]) -> Vec<TypeId> {
        values.iter().map(|&v| self.m.value_type(v)).collect()
    }

    /// What a region takes and gives, if it has one block.
    pub(super) fn signature(&self, op: OpId, index: usize) -> Option<Signature> {
        let region = *self.m.op(op).regions.get(index)?;
        let &[block] = &self.m.region(region).blocks[..] else { return None };
        let block = self.m.block(block);
        let last = *block.operations.last()?;
        RETURNS.contains(&self.m.op_name(last)).then(|| Signature {
            inputs: self.types_of(&block.arguments),
            outputs: self.types_of(&self.m.op(last).operands),
        })
    }

    fn show_types(&self, types: &[TypeId]) -> String {
        let texts: Vec<String> = types.iter().map(|&t| type_text(self.m, t)).collect();
        format!("({})", texts.join(", "))
    }

    pub(super) fn show_signature(&self, s: &Signature) -> String {
        format!("{} -> {}", self.show_types(&s.inputs), self.show_types(&s.outputs))
    }

    /// Whether elements of one type may be promoted to another.
    fn promotes(&self, from: TypeId, to: TypeId) -> bool {
        let kinds = [from, to].map(|t| self.kind_of(t));
        let bits = [from, to].map(|t| storage_bits(self.m, t));
        match (kinds, bits) {
            ([Some(a), Some(b)], [Some(x), Some(y)]) => {
                let integer = |k| matches!(k, Kind::Signed | Kind::Unsigned);
                (a == b || integer(a) && integer(b)) && x <= y
            }
            _ => true,
        }
    }

    /// That a region combines elements of each input, of its type or of one that it is promoted to. The
    /// types.
    pub(super) fn reducer(
        &self,
        op: OpId,
        number: &str,
        region: usize,
        inputs: &[Tensor<'_>],
    ) -> Convert<Vec<TypeId>> {
        let Some(s) = self.signature(op, region) else { return Ok(Vec::new()) };
        let n = inputs.len();
        let elements: Option<Vec<TypeId>> = s.outputs.iter().map(|&t| self.scalar_element(t)).collect();
        let fits = s.outputs.len() == n
            && elements.as_ref().is_some_and(|elements| {
                let twice: Vec<TypeId> = elements.iter().chain(elements).copied().collect();
                s.scalars(self, &twice)
                    && inputs.iter().zip(elements).all(|(x, &e)| self.promotes(x.element, e))
            });
        self.hold(op, number, fits, || {
            let types: Vec<TypeId> = inputs.iter().map(|t| t.element).collect();
            format!("the computation is {}, of elements {}", self.show_signature(&s), self.show_types(&types))
        })?;
        Ok(elements.unwrap_or_default())
    }

    /// That results have the elements that a computation gives.
    pub(super) fn elements_of_results(
        &self,
        op: OpId,
        number: &str,
        results: &[Tensor<'_>],
        elements: &[TypeId],
    ) -> Convert<()> {
        for (&r, &e) in results.iter().zip(elements) {
            self.hold(op, number, r.element == e, || {
                format!("the result is {}, and the computation gives {}", self.show(r), type_text(self.m, e))
            })?;
        }
        Ok(())
    }

    pub(super) fn looped(&self, op: OpId) -> Convert<()> {
        let o = self.m.op(op);
        let (state, results) = (self.types_of(&o.operands), self.types_of(&o.results));
        if let Some(cond) = self.signature(op, 0) {
            let gives = matches!(&cond.outputs[..], &[t] if self.is_predicate(t));
            self.hold(op, "C1", gives && self.all_alike(&cond.inputs, &state), || {
                format!("the condition is {}, of {}", self.show_signature(&cond), self.show_types(&state))
            })?;
        }
        if let Some(body) = self.signature(op, 1) {
            let fits = self.all_alike(&body.inputs, &state) && self.all_alike(&body.outputs, &state);
            self.hold(op, "C2", fits, || {
                format!("the body is {}, of {}", self.show_signature(&body), self.show_types(&state))
            })?;
        }
        self.hold(op, "C3", self.all_alike(&results, &state), || {
            format!("results are {}, of {}", self.show_types(&results), self.show_types(&state))
        })
    }

    /// `if` and `case`.
    pub(super) fn branched(&self, op: OpId, name: &str) -> Convert<()> {
        let o = self.m.op(op);
        let case = name == "case";
        if let &[index] = &o.operands[..]
            && let Some(t) = self.tensor_of(index)
        {
            let fits = if case {
                t.dims.is_empty()
                    && matches!(
                        self.m.get_type(t.element),
                        Type::Integer { width: 32, sign: Signedness::Signless | Signedness::Signed }
                    )
            } else {
                self.kind_of(t.element) == Some(Kind::Boolean) && t.dims.iter().all(|&d| d == 1)
            };
            self.hold(op, "I1", fits, || {
                format!("the {} is {}", if case { "index" } else { "predicate" }, self.show(t))
            })?;
        }
        let count = o.regions.len();
        if case {
            self.hold(op, "C1", count > 0, || "there is no branch".to_owned())?;
        }
        let branches: Vec<Signature> = (0..count).filter_map(|i| self.signature(op, i)).collect();
        let [takes, same, gives] = if case { ["C2", "C3", "C4"] } else { ["C1", "C2", "C3"] };
        let results = self.types_of(&o.results);
        for branch in &branches {
            self.hold(op, takes, branch.inputs.is_empty(), || {
                format!("a branch takes {}", self.show_types(&branch.inputs))
            })?;
            self.hold(op, same, self.all_alike(&branch.outputs, &branches[0].outputs), || {
                let first = self.show_types(&branches[0].outputs);
                format!("branches give {first} and {}", self.show_types(&branch.outputs))
            })?;
            self.hold(op, gives, self.all_alike(&results, &branch.outputs), || {
                let given = self.show_types(&branch.outputs);
                format!("results are {}, and branches give {given}", self.show_types(&results))
            })?;
        }
        Ok(())
    }

    pub(super) fn composed(&self, op: OpId) -> Convert<()> {
        let o = self.m.op(op);
        let name = self.string(op, "name").unwrap_or_default();
        self.hold(op, "C1", is_namespaced(name), || format!("the name {name:?} has no namespace"))?;
        let Some(&callee) = self.symbol(op, "decomposition").and_then(|f| self.functions.get(f)) else {
            return Ok(());
        };
        let Some(Attribute::Type(ty)) = self.attr(callee, "function_type") else { return Ok(()) };
        let Type::Function { inputs, results } = self.m.get_type(*ty) else { return Ok(()) };
        for (number, what, values, wanted) in
            [("C3", "operands", &o.operands[..], inputs), ("C4", "results", &o.results[..], results)]
        {
            let types = self.types_of(values);
            self.hold(op, number, self.all_alike(&types, wanted), || {
                format!("{what} are {}, of {}", self.show_types(&types), self.show_types(wanted))
            })?;
        }
        Ok(())
    }

    fn is_token(&self, ty: TypeId) -> bool {
        matches!(self.m.get_type(ty), Type::Dialect { name, .. } if matches!(self.m.text(*name), "stablehlo.token" | "mhlo.token"))
    }

    /// The parts of `future<...>`.
    fn future(&self, ty: TypeId) -> Option<&'m [TypeId]> {
        match self.m.get_type(ty) {
            Type::Dialect { name, parameters } if self.m.text(*name).ends_with(".future") => Some(parameters),
            _ => None,
        }
    }

    /// Operations that may take or give tuples and tokens.
    pub(super) fn structural(&self, op: OpId, name: &str) -> Convert<()> {
        let o = self.m.op(op);
        let (inputs, results) = (self.types_of(&o.operands), self.types_of(&o.results));
        match name {
            "while" => self.looped(op),
            "if" | "case" => self.branched(op, name),
            "composite" => self.composed(op),
            "tuple" => {
                let fits = match &results[..] {
                    &[r] => {
                        matches!(self.m.get_type(r), Type::Tuple(parts) if self.all_alike(parts, &inputs))
                    }
                    _ => false,
                };
                self.hold(op, "C1", fits, || {
                    format!("the result is {}, of {}", self.show_types(&results), self.show_types(&inputs))
                })
            }
            "get_tuple_element" => {
                let (&[tuple], &[result]) = (&inputs[..], &results[..]) else { return Ok(()) };
                let Type::Tuple(parts) = self.m.get_type(tuple) else {
                    return self.constraint(op, "I1", format!("the operand is {}", type_text(self.m, tuple)));
                };
                let index = self.int(op, "index")?;
                let Some(&part) = usize::try_from(index).ok().and_then(|i| parts.get(i)) else {
                    return self.constraint(op, "C1", format!("index {index} of a tuple of {}", parts.len()));
                };
                self.hold(op, "C2", self.alike(part, result), || {
                    format!(
                        "element {index} is {}, not {}",
                        type_text(self.m, part),
                        type_text(self.m, result)
                    )
                })
            }
            "optimization_barrier" => self.hold(op, "C1", self.all_alike(&inputs, &results), || {
                format!("results are {}, of {}", self.show_types(&results), self.show_types(&inputs))
            }),
            "after_all" | "create_token" => {
                let wrong = inputs.iter().find(|&&t| !self.is_token(t));
                self.hold(op, "I1", wrong.is_none(), || {
                    format!("operands are {}, and must be tokens", self.show_types(&inputs))
                })
            }
            "infeed" | "recv" => {
                if let &[token] = &inputs[..] {
                    self.hold(op, "I1", self.is_token(token), || {
                        format!("the operand is {}, no token", type_text(self.m, token))
                    })?;
                }
                if name == "recv" {
                    return self.transferred(op, name);
                }
                let Some((&last, data)) = results.split_last() else {
                    return self.constraint(op, "C1", "there is no result");
                };
                let tensor = |t: &TypeId| matches!(self.m.get_type(*t), Type::Tensor { .. } | Type::Tuple(_));
                self.hold(op, "C2", data.iter().all(tensor), || {
                    format!("results are {}, and all but the last must be tensors", self.show_types(&results))
                })?;
                self.hold(op, "C3", self.is_token(last), || {
                    format!("the last result is {}, no token", type_text(self.m, last))
                })
            }
            "outfeed" | "send" => {
                if let Some(&last) = inputs.last() {
                    self.hold(op, "I2", self.is_token(last), || {
                        format!("the last operand is {}, no token", type_text(self.m, last))
                    })?;
                }
                if name == "send" { self.transferred(op, name) } else { Ok(()) }
            }
            "async_start" => self.started(op, &inputs, &results),
            "async_done" => {
                let (&[operand], Some(_)) = (&inputs[..], results.first()) else { return Ok(()) };
                let Some(parts) = self.future(operand) else {
                    return self.constraint(
                        op,
                        "I1",
                        format!("the operand is {}, no future", type_text(self.m, operand)),
                    );
                };
                self.hold(op, "C1", self.all_alike(parts, &results), || {
                    format!(
                        "results are {}, of a future of {}",
                        self.show_types(&results),
                        self.show_types(parts)
                    )
                })
            }
            _ => Ok(()),
        }
    }

    fn started(&self, op: OpId, inputs: &[TypeId], results: &[TypeId]) -> Convert<()> {
        let Some(&region) = self.m.op(op).regions.first() else { return Ok(()) };
        let &[block] = &self.m.region(region).blocks[..] else { return Ok(()) };
        let operations = &self.m.block(block).operations[..];
        let &[inner, last] = operations else {
            let message = format!("its body has {} operations, not one and a return", operations.len());
            return self.constraint(op, "C1", message);
        };
        self.hold(op, "C1", RETURNS.contains(&self.m.op_name(last)), || {
            "its body does not end with a return".to_owned()
        })?;
        let name = super::super::regions::short(self.m.op_name(inner));
        self.hold(op, "C2", ASYNCHRONOUS.contains(&name), || format!("its body is {name}"))?;
        let taken = self.types_of(&self.m.op(inner).operands);
        self.hold(op, "C3", self.all_alike(inputs, &taken), || {
            format!(
                "operands are {}, and its body takes {}",
                self.show_types(inputs),
                self.show_types(&taken)
            )
        })?;
        let given = self.types_of(&self.m.op(inner).results);
        let fits = match results {
            &[r] => self.future(r).is_some_and(|parts| self.all_alike(parts, &given)),
            _ => false,
        };
        self.hold(op, "C4", fits, || {
            format!(
                "the result is {}, and its body gives {}",
                self.show_types(results),
                self.show_types(&given)
            )
        })
    }
}
