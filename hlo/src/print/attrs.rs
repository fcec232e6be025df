//! Attributes as text: one arm a kind of value.

use super::Printer;
use super::literal::{write_constant, write_literal_with_shape};
use super::metadata::{
    write_backend_config, write_float, write_frontend_attributes, write_metadata_fields,
    write_original_value, write_result_accuracy, write_statistics,
};
use super::shape::write_shape;
use super::sharding::{write_replica_groups, write_sharding};
use super::text::Text;
use crate::attrs::{
    AttrKey, AttrValue, ConvDims, Domain, Ints, OperandAlias, PaddingDim, SliceDim, Sparsity, Window,
};
use crate::literal::ConstantValue;

impl Printer<'_> {
    /// Appends `, key=value`, if the options want that key.
    pub(super) fn write_attr(&mut self, key: AttrKey, value: &AttrValue) {
        match key {
            // The parts in parentheses of `constant(...)` and `parameter(...)`.
            AttrKey::ConstantValue | AttrKey::ParameterNumber => return,
            // No attribute of XLA's.
            AttrKey::RngOrdinal => return,
            AttrKey::Metadata if !self.options.metadata => return,
            AttrKey::BackendConfig if !self.options.backend_config => return,
            _ => {}
        }
        self.text.str(", ");
        self.text.str(key.text());
        self.text.byte(b'=');
        self.write_attr_value(value);
    }

    fn write_attr_value(&mut self, value: &AttrValue) {
        let (style, metadata, normalize) =
            (self.shape_style(), self.options.metadata, self.options.normalize);
        let out = &mut self.text;
        match value {
            AttrValue::Bool(v) => out.bool(*v),
            AttrValue::Int(v) => out.int(*v),
            AttrValue::Float(v) => write_float(out, *v, normalize),
            AttrValue::Str(v) => out.quoted(v),
            AttrValue::Ints(v) => out.braced_ints(v),
            AttrValue::IntLists(v) => write_int_lists(out, v),
            AttrValue::Bools(v) => {
                out.byte(b'{');
                out.join(v, ",", |out, &b| out.bool(b));
                out.byte(b'}');
            }
            AttrValue::Computation(v) => self.write_called(&[*v], false),
            AttrValue::Computations(v) => self.write_called(v, true),
            AttrValue::Literal(v) => match v {
                ConstantValue::Given(literal) if self.options.elide.is_none() => {
                    write_literal_with_shape(out, literal);
                }
                ConstantValue::Given(_) | ConstantValue::Elided => write_constant(out, v, self.options.elide),
            },
            AttrValue::Shape(v) => write_shape(out, v, style),
            AttrValue::Shapes(v) => {
                out.byte(b'{');
                out.join(v, ", ", |out, shape| write_shape(out, shape, style));
                out.byte(b'}');
            }
            AttrValue::Window(v) => write_window(out, v),
            AttrValue::ConvDims(v) => write_conv_dims(out, v),
            AttrValue::Padding(v) => write_padding(out, v),
            AttrValue::Slices(v) => write_slices(out, v),
            AttrValue::ReplicaGroups(v) => write_replica_groups(out, v),
            AttrValue::OperandAliasing(v) => write_operand_aliasing(out, v),
            AttrValue::Sharding(v) => write_sharding(out, v, metadata),
            AttrValue::FrontendAttributes(v) => write_frontend_attributes(out, v),
            AttrValue::Metadata(v) => {
                out.byte(b'{');
                write_metadata_fields(out, v);
                out.byte(b'}');
            }
            AttrValue::BackendConfig(v) => write_backend_config(out, v),
            AttrValue::OriginalValue(v) => write_original_value(out, v),
            AttrValue::Statistics(v) => write_statistics(out, v, normalize),
            AttrValue::ResultAccuracy(v) => write_result_accuracy(out, *v, normalize),
            AttrValue::Sparsity(v) => write_sparsity(out, v),
            AttrValue::Domain(v) => write_domain(out, v, metadata),
            AttrValue::Precisions(v) => {
                out.byte(b'{');
                out.join(v, ",", |out, p| out.str(p.text()));
                out.byte(b'}');
            }
            AttrValue::DotAlgorithm(v) => out.str(v.text()),
            AttrValue::RngAlgorithm(v) => out.str(v.text()),
            AttrValue::RngDistribution(v) => out.str(v.text()),
            AttrValue::Direction(v) => out.str(v.text()),
            AttrValue::CompareType(v) => out.str(v.text()),
            AttrValue::FusionKind(v) => out.str(v.text()),
            AttrValue::FftType(v) => out.str(v.text()),
            AttrValue::Transpose(v) => out.str(v.text()),
            AttrValue::PaddingType(v) => out.str(v.text()),
            AttrValue::Schedule(v) => out.str(v.text()),
            AttrValue::ApiVersion(v) => out.str(v.text()),
            AttrValue::ConvKind(v) => out.str(v.text()),
            AttrValue::CollectiveMode(v) => out.str(v.text()),
        }
    }
}

/// `{{0,1},{2,3}}`.
pub(super) fn write_int_lists(out: &mut Text<'_>, lists: &[Ints]) {
    out.byte(b'{');
    out.join(lists, ",", |out, list| out.braced_ints(list));
    out.byte(b'}');
}

fn write_window(out: &mut Text<'_>, window: &Window) {
    let dims = &window.dims;
    out.byte(b'{');
    if !dims.is_empty() {
        out.str("size=");
        out.join(dims, "x", |out, d| out.int(d.size));
    }
    if dims.iter().any(|d| d.stride != 1) {
        out.str(" stride=");
        out.join(dims, "x", |out, d| out.int(d.stride));
    }
    if dims.iter().any(|d| d.pad_low != 0 || d.pad_high != 0) {
        out.str(" pad=");
        out.join(dims, "x", |out, d| {
            out.int(d.pad_low);
            out.byte(b'_');
            out.int(d.pad_high);
        });
    }
    if dims.iter().any(|d| d.base_dilation != 1) {
        out.str(" lhs_dilate=");
        out.join(dims, "x", |out, d| out.int(d.base_dilation));
    }
    if dims.iter().any(|d| d.window_dilation != 1) {
        out.str(" rhs_dilate=");
        out.join(dims, "x", |out, d| out.int(d.window_dilation));
    }
    if dims.iter().any(|d| d.reversal) {
        out.str(" rhs_reversal=");
        out.join(dims, "x", |out, d| out.byte(b'0' + u8::from(d.reversal)));
    }
    out.byte(b'}');
}

fn write_conv_dims(out: &mut Text<'_>, d: &ConvDims) {
    write_conv_part(out, b'b', b'f', d.input_batch, d.input_feature, &d.input_spatial, &d.unknown[0]);
    out.byte(b'_');
    write_conv_part(
        out,
        b'i',
        b'o',
        d.kernel_input_feature,
        d.kernel_output_feature,
        &d.kernel_spatial,
        &d.unknown[1],
    );
    out.str("->");
    write_conv_part(out, b'b', b'f', d.output_batch, d.output_feature, &d.output_spatial, &d.unknown[2]);
}

/// One symbol a dimension: the two named ones, the number of a spatial one, or `?`.
fn write_conv_part(
    out: &mut Text<'_>,
    a: u8,
    b: u8,
    a_dim: i64,
    b_dim: i64,
    spatial: &[i64],
    unknown: &[i64],
) {
    for i in 0..(2 + spatial.len() + unknown.len()) as i64 {
        if i == a_dim {
            out.byte(a);
        } else if i == b_dim {
            out.byte(b);
        } else if let Some(n) = spatial.iter().position(|&s| s == i) {
            out.uint(n as u64);
        } else {
            out.byte(b'?');
        }
    }
}

fn write_padding(out: &mut Text<'_>, padding: &[PaddingDim]) {
    let interior = padding.iter().any(|d| d.interior != 0);
    out.join(padding, "x", |out, d| {
        out.int(d.low);
        out.byte(b'_');
        out.int(d.high);
        if interior {
            out.byte(b'_');
            out.int(d.interior);
        }
    });
}

fn write_slices(out: &mut Text<'_>, slices: &[SliceDim]) {
    let strides = slices.iter().any(|s| s.stride != 1);
    out.byte(b'{');
    out.join(slices, ", ", |out, s| {
        out.byte(b'[');
        out.int(s.start);
        out.byte(b':');
        out.int(s.limit);
        if strides {
            out.byte(b':');
            out.int(s.stride);
        }
        out.byte(b']');
    });
    out.byte(b'}');
}

fn write_operand_aliasing(out: &mut Text<'_>, aliases: &[OperandAlias]) {
    out.byte(b'{');
    out.join(aliases, ", ", |out, alias| {
        out.braced_ints(&alias.output_index);
        out.str(": (");
        out.int(alias.operand);
        out.str(", ");
        out.braced_ints(&alias.operand_index);
        out.byte(b')');
    });
    out.byte(b'}');
}

fn write_sparsity(out: &mut Text<'_>, sparsity: &Sparsity) {
    out.byte(b'{');
    let sides = [("lhs={", &sparsity.lhs), ("rhs={", &sparsity.rhs)];
    let mut first = true;
    for (key, side) in sides {
        let Some(side) = side else { continue };
        if !std::mem::take(&mut first) {
            out.byte(b' ');
        }
        out.str(key);
        out.str("sparsity=");
        out.int(side.num_non_zero);
        out.byte(b'x');
        out.int(side.block_size);
        out.str(" dimension=");
        out.int(side.dimension);
        for (key, value) in [(" stride=", side.stride), (" idx=", side.idx)] {
            if let Some(value) = value {
                out.str(key);
                out.int(value);
            }
        }
        out.byte(b'}');
    }
    out.byte(b'}');
}

fn write_domain(out: &mut Text<'_>, domain: &Domain, metadata: bool) {
    out.str("{kind=");
    out.quoted(&domain.kind);
    out.str(", entry=");
    write_sharding(out, &domain.entry, metadata);
    out.str(", exit=");
    write_sharding(out, &domain.exit, metadata);
    out.byte(b'}');
}
