//! Pieces of HLO text on their own.

use hlo::attrs::{
    ConvDims, FrontendAttributes, OriginalValue, PaddingDim, ReplicaGroups, Sharding, Statistics, Window,
};
use hlo::{ConstantValue, Diagnostic, Layout, Shape, Span};

use crate::ParseOptions;
use crate::attr::{collective, lists, metadata, sharding, window};
use crate::cursor::{Cursor, Res, error};

/// Why a piece of text could not be read; spans are offsets in it.
pub type PieceResult<T> = Result<T, Box<Diagnostic>>;

fn whole<T>(text: &str, read: impl FnOnce(&mut Cursor<'_>) -> Res<T>) -> PieceResult<T> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text is {} bytes long", text.len());
        return Err(error(
            hlo::diag::codes::parse::SOURCE_TOO_LARGE,
            Span::new(0, 1),
            message,
            "at most 4 GiB",
        ));
    }
    let mut c = Cursor::new(text, Span::new(0, text.len()), ParseOptions::default().nesting_limit);
    let value = read(&mut c)?;
    c.finish()?;
    Ok(value)
}

macro_rules! pieces {
    ($($(#[$doc:meta])* $name:ident = $read:expr => $ty:ty;)*) => {
        $($(#[$doc])*
        pub fn $name(text: &str) -> PieceResult<$ty> {
            whole(text, $read)
        })*
    };
}

pieces! {
    /// `f32[2,3]{1,0}`, `(f32[], s32[])`
    parse_shape = crate::shape::shape => Shape;
    /// `{1,0:T(8,128)}`
    parse_layout = crate::shape::layout => Layout;
    /// `{devices=[2,1]0,1}`
    parse_sharding = sharding::sharding => Sharding;
    /// `{{0,1},{2,3}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`
    parse_replica_groups = collective::replica_groups => ReplicaGroups;
    /// `size=3x3 pad=1_1x1_1`, with or without braces
    parse_window = |c| if c.peek() == b'{' { window::window(c) } else { window::fields(c, None) } => Window;
    /// `b01f_01io->b01f`
    parse_conv_dims = window::conv_dims => ConvDims;
    /// `0_1_2x0_0`
    parse_padding = window::padding => Box<[PaddingDim]>;
    /// `{a="x",b={...}}`
    parse_frontend_attributes = metadata::frontend_attributes => FrontendAttributes;
    /// `{{"name" {0}}}`
    parse_original_value = metadata::original_value => OriginalValue;
    /// `{visualizing_index=0,name=1.5}`
    parse_statistics = metadata::statistics => Statistics;
    /// `{true,false}`
    parse_parameter_replication = lists::bools => Vec<bool>;
}

/// `{f32[2], s32[]}` without the braces: shapes separated by commas.
pub fn parse_shape_list(text: &str) -> PieceResult<Vec<Shape>> {
    whole(text, |c| {
        let mut shapes = Vec::new();
        while !c.at_end() {
            shapes.push(crate::shape::shape(c)?);
            if !c.eat(b',') {
                break;
            }
        }
        Ok(shapes)
    })
}

/// The literal of a shape, as it stands in `constant(...)`.
pub fn parse_literal(text: &str, shape: &Shape) -> PieceResult<ConstantValue> {
    whole(text, |c| crate::literal::literal(c, shape))
}

/// A literal after its shape: `f32[2]{0} {1, 2}`.
pub fn parse_shaped_literal(text: &str) -> PieceResult<(Shape, ConstantValue)> {
    whole(text, crate::literal::with_shape)
}
