//! The section of resources at the end of a text, `{-# ... #-}`.

use std::sync::Arc;

use hlo::diag::codes::mlir;

use super::cursor::{Parse, Parser};
use super::literal::decode_hex;
use super::token::Tok;
use crate::ir::ResourceData;

impl Parser<'_> {
    pub(super) fn metadata(&mut self) -> Parse<()> {
        self.expect(Tok::MetadataStart)?;
        while !self.eat(Tok::MetadataEnd) {
            let section = self.word()?;
            self.expect(Tok::Colon)?;
            match section {
                "dialect_resources" => {
                    self.list(Tok::LBrace, Tok::RBrace, |p| {
                        let dialect = p.key()?;
                        p.expect(Tok::Colon)?;
                        p.list(Tok::LBrace, Tok::RBrace, |p| p.resource(&dialect))?;
                        Ok(())
                    })?;
                }
                _ => {
                    // Those of other tools say nothing about the program.
                    if self.is(Tok::LBrace) {
                        self.raw_brackets()?;
                    } else {
                        return self.expected("`{`");
                    }
                }
            }
            if !self.is(Tok::MetadataEnd) {
                self.expect(Tok::Comma)?;
            }
        }
        Ok(())
    }

    fn key(&mut self) -> Parse<String> {
        match self.tok {
            Tok::Str => self.utf8(),
            _ => Ok(self.word()?.to_owned()),
        }
    }

    fn resource(&mut self, dialect: &str) -> Parse<()> {
        let key = self.key()?;
        self.expect(Tok::Colon)?;
        let data = match self.tok {
            Tok::Str => {
                let span = self.span();
                let text = self.token();
                let text = &text[1..text.len() - 1];
                let blob = text.strip_prefix("0x");
                match blob {
                    Some(hex) => {
                        self.take(hex.len() as u64 / 2 + 64)?;
                        let bytes = decode_hex(hex).filter(|b| b.len() >= 4);
                        let Some(bytes) = bytes else {
                            return self.error_at(
                                mlir::MLIR_BAD_ELEMENTS,
                                span,
                                "a blob of less than 4 bytes",
                            );
                        };
                        let (alignment, data) = bytes.split_at(4);
                        let alignment =
                            u32::from_le_bytes([alignment[0], alignment[1], alignment[2], alignment[3]]);
                        ResourceData::Blob { alignment, data: Arc::from(data) }
                    }
                    None => ResourceData::Text(text.into()),
                }
            }
            Tok::Word if matches!(self.token(), "true" | "false") => {
                ResourceData::Bool(self.token() == "true")
            }
            _ => return self.expected("a string, `true` or `false`"),
        };
        self.advance();
        let (dialect, key) = (self.m.name(dialect), self.m.name(&key));
        let id = self.m.resource(dialect, key);
        self.m.set_resource(id, data);
        Ok(())
    }
}
