//! Arrays as a GPU's memory holds them: in the order of their layout, elements of less than a byte packed.

use hlo::memory_order::{Step, steps};
use hlo::{ArrayShape, Dims};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_interp::Tensor;

/// Bytes of an array of this shape in memory.
pub(super) fn device_bytes(shape: &ArrayShape) -> usize {
    match packed_bits(shape) {
        Some(bits) => (shape.elements() * bits).div_ceil(8),
        None => shape.elements() * shape.element_type.storage_bytes(),
    }
}

/// Bits of an element where several share a byte: of types of 1, 2 and 4 bits, but for predicates.
fn packed_bits(shape: &ArrayShape) -> Option<usize> {
    let ty = shape.element_type;
    let bits = ty.bits() as usize;
    (ty.is_sub_byte() && matches!(bits, 1 | 2 | 4)).then_some(bits)
}

/// For each element in memory its number in row-major order; `None`: that is the same. Errors: the layout has
/// tiles.
fn order(shape: &ArrayShape) -> Result<Option<Vec<usize>>, String> {
    let Some(layout) = &shape.layout else { return Ok(None) };
    if layout.is_row_major() && layout.tiles.is_empty() && layout.dim_levels.is_empty() {
        return Ok(None);
    }
    let all = steps(Some(layout), &shape.dims).map_err(|e| format!("{shape}: {e:?}"))?.0;
    let [Step::Permute(major_first)] = &all[..] else {
        return Err(format!("{shape}: a layout with tiles is not read here"));
    };
    let mut strides = vec![1_usize; shape.dims.len()];
    for d in (1..shape.dims.len()).rev() {
        strides[d - 1] = strides[d] * shape.dims[d] as usize;
    }
    let mut numbers = vec![0_usize];
    for &d in major_first {
        let (n, stride) = (shape.dims[d] as usize, strides[d]);
        numbers = numbers.iter().flat_map(|&base| (0..n).map(move |i| base + i * stride)).collect();
    }
    Ok(Some(numbers))
}

/// The bytes of an array in memory. Errors: a layout that is not read here.
pub(super) fn to_device(tensor: &Tensor, shape: &ArrayShape) -> Result<Vec<u8>, String> {
    let logical = bytes_of(tensor.buffer());
    let width = shape.element_type.storage_bytes();
    if logical.len() != shape.elements() * width {
        return Err(format!("a value of {} bytes for {shape}", logical.len()));
    }
    let ordered = match order(shape)? {
        None => logical.to_vec(),
        Some(order) => order.iter().flat_map(|&i| &logical[i * width..(i + 1) * width]).copied().collect(),
    };
    let Some(bits) = packed_bits(shape) else { return Ok(ordered) };
    let mask = (1_u8 << bits) - 1;
    let pack =
        |several: &[u8]| several.iter().enumerate().fold(0, |byte, (i, &x)| byte | (x & mask) << (i * bits));
    Ok(ordered.chunks(8 / bits).map(pack).collect())
}

/// The array of these bytes. Errors: a layout that is not read here.
pub(super) fn from_device(bytes: &[u8], shape: &ArrayShape) -> Result<Tensor, String> {
    if bytes.len() != device_bytes(shape) {
        return Err(format!("{} bytes for {shape}", bytes.len()));
    }
    let width = shape.element_type.storage_bytes();
    let ordered: Vec<u8> = match packed_bits(shape) {
        None => bytes.to_vec(),
        Some(bits) => {
            let (each, mask) = (8 / bits, (1_u8 << bits) - 1);
            (0..shape.elements()).map(|i| bytes[i / each] >> (i % each * bits) & mask).collect()
        }
    };
    let logical = match order(shape)? {
        None => ordered,
        Some(order) => {
            let mut logical = vec![0; ordered.len()];
            for (from, to) in order.into_iter().enumerate() {
                logical[to * width..(to + 1) * width]
                    .copy_from_slice(&ordered[from * width..(from + 1) * width]);
            }
            logical
        }
    };
    Ok(Tensor::new(Dims::clone(&shape.dims), buffer_of(shape.element_type, &logical)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{ElementType, Layout};

    #[test]
    fn layouts_give_the_order_in_memory() {
        // A matrix of 2 x 3, column by column.
        let shape = ArrayShape {
            layout: Some(std::sync::Arc::new(Layout::from_minor_to_major([0, 1]))),
            ..ArrayShape::new(ElementType::U8, &[2, 3])
        };
        let tensor = Tensor::from_vec(&[2_i64, 3][..], vec![0_u8, 1, 2, 3, 4, 5]);
        let bytes = to_device(&tensor, &shape).unwrap();
        assert_eq!(bytes, [0, 3, 1, 4, 2, 5]);
        assert_eq!(from_device(&bytes, &shape).unwrap().slice::<u8>(), [0, 1, 2, 3, 4, 5]);
        assert!(from_device(&bytes[1..], &shape).is_err());
    }

    #[test]
    fn numbers_of_four_bits_share_bytes() {
        let shape = ArrayShape::new(ElementType::S4, &[3]);
        let tensor = from_device(&[0xf1, 0x07], &shape).unwrap();
        assert_eq!(bytes_of(tensor.buffer()), [1, 0xff, 7]);
        assert_eq!(to_device(&tensor, &shape).unwrap(), [0xf1, 0x07]);
    }
}
