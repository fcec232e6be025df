//! Locations in text.

use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser, Waiting};
use super::token::Tok;
use crate::ir::{Attribute, LocId, Location};

/// Bytes that a location takes.
const LOCATION_BYTES: u64 = 96;

impl<'t> Parser<'t> {
    /// `loc(...)` if it is there, for an operation or value.
    pub(super) fn trailing_location(&mut self, of: Waiting) -> Parse<()> {
        if !self.is_word("loc") {
            return Ok(());
        }
        self.advance();
        self.expect(Tok::LParen)?;
        let alias = self.token().get(1..).unwrap_or_default();
        if self.is(Tok::Hash) && !alias.contains('.') && !self.attribute_aliases.contains_key(alias) {
            // Defined further down.
            self.waiting.push((of, alias, self.span()));
            self.advance();
        } else {
            let loc = self.location_here()?;
            self.set_location(of, loc);
        }
        self.expect(Tok::RParen)
    }

    fn set_location(&mut self, of: Waiting, loc: LocId) {
        match of {
            Waiting::Op(op) => self.m.op_mut(op).loc = loc,
            Waiting::Value(value) => self.m.value_mut(value).loc = loc,
        }
    }

    /// Resolves pending uses of locations that were defined after them.
    pub(super) fn resolve_locations(&mut self) -> Parse<()> {
        for (of, alias, span) in std::mem::take(&mut self.waiting) {
            let loc = self.attribute_aliases.get(alias).map(|&a| self.m.get_attribute(a).clone());
            match loc {
                Some(Attribute::Location(loc)) => self.set_location(of, loc),
                Some(_) => {
                    return self.error_at(
                        mlir::MLIR_UNDEFINED_ALIAS,
                        span,
                        format!("`#{alias}` is no location"),
                    );
                }
                None => {
                    return self.error_at(
                        mlir::MLIR_UNDEFINED_ALIAS,
                        span,
                        format!("`#{alias}` is not defined"),
                    );
                }
            }
        }
        Ok(())
    }

    /// What stands in `loc(...)`.
    pub(super) fn location_here(&mut self) -> Parse<LocId> {
        self.nested(Self::one_location)
    }

    fn one_location(&mut self) -> Parse<LocId> {
        self.take(LOCATION_BYTES)?;
        match self.tok {
            Tok::Hash => {
                let alias = &self.token()[1..];
                let known = self.attribute_aliases.get(alias).map(|&a| self.m.get_attribute(a).clone());
                match known {
                    Some(Attribute::Location(loc)) => {
                        self.advance();
                        Ok(loc)
                    }
                    Some(_) => self.error(mlir::MLIR_UNDEFINED_ALIAS, format!("`#{alias}` is no location")),
                    None => {
                        self.error(mlir::MLIR_UNDEFINED_ALIAS, format!("`#{alias}` is not defined above"))
                    }
                }
            }
            Tok::Str => {
                let name = self.utf8()?;
                let name = self.m.name(&name);
                if self.eat(Tok::Colon) {
                    let line = self.int64()? as u32;
                    self.expect(Tok::Colon)?;
                    let start = (line, self.int64()? as u32);
                    let end = if self.eat_word("to") {
                        let line = if self.is(Tok::Int) { self.int64()? as u32 } else { start.0 };
                        self.expect(Tok::Colon)?;
                        Some((line, self.int64()? as u32))
                    } else {
                        None
                    };
                    return Ok(self.m.location(Location::File { file: name, start, end }));
                }
                let child = if self.eat(Tok::LParen) {
                    let child = self.location_here()?;
                    self.expect(Tok::RParen)?;
                    child
                } else {
                    self.unknown_location()
                };
                Ok(self.m.location(Location::Name { name, child }))
            }
            Tok::LSquare => {
                let locations = self.list(Tok::LSquare, Tok::RSquare, Self::location_here)?;
                Ok(self.m.location(Location::Fused { metadata: None, locations: locations.into() }))
            }
            Tok::Word => match self.token() {
                "unknown" => {
                    self.advance();
                    Ok(self.unknown_location())
                }
                "callsite" => {
                    self.advance();
                    self.expect(Tok::LParen)?;
                    let callee = self.location_here()?;
                    self.expect_word("at")?;
                    let caller = self.location_here()?;
                    self.expect(Tok::RParen)?;
                    Ok(self.m.location(Location::CallSite { callee, caller }))
                }
                "fused" => {
                    self.advance();
                    let metadata = if self.eat(Tok::Less) {
                        let metadata = self.attribute()?;
                        self.expect(Tok::Greater)?;
                        Some(metadata)
                    } else {
                        None
                    };
                    let locations = self.list(Tok::LSquare, Tok::RSquare, Self::location_here)?;
                    Ok(self.m.location(Location::Fused { metadata, locations: locations.into() }))
                }
                _ => self.expected("a location"),
            },
            _ => self.expected("a location"),
        }
    }
}
