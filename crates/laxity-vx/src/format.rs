//! The formats of data objects.

use std::fmt;

/// What a data object consists of, and so how large it is. What [exemplars](crate::Exemplar) say, without their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// So many bytes.
    Bytes {
        /// How many.
        size: usize,
    },
    /// One value.
    Value {
        /// Its type.
        item: Item,
    },
    /// Up to `capacity` items, and how many there are.
    Array {
        /// The type of an item.
        item: Item,
        /// The most items.
        capacity: usize,
    },
    /// `rows` times `columns` values, row by row.
    Matrix {
        /// The type of a value.
        item: Item,
        /// How many rows.
        rows: usize,
        /// How many values in a row.
        columns: usize,
    },
    /// An image, row by row and plane by plane, without gaps.
    Image {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// What a pixel is.
        pixel: PixelFormat,
    },
}

/// The type of the values in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is called, for messages.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
}

/// What a pixel is: those of `VX_DF_IMAGE_*`, and `F32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelFormat {
    /// One unsigned byte: grey.
    U8,
    /// An unsigned number of 16 bits.
    U16,
    /// A signed number of 16 bits.
    S16,
    /// An unsigned number of 32 bits.
    U32,
    /// A signed number of 32 bits.
    S32,
    /// A floating-point number of 32 bits.
    F32,
    /// Three bytes.
    Rgb,
    /// Four bytes, the last of which means nothing.
    Rgbx,
    /// Two bytes; colours of two pixels are shared.
    Uyvy,
    /// A plane of brightness, and one of colours with a pair of bytes for 2 x 2 pixels.
    Nv12,
    /// A plane of brightness, and two of colours with a byte for 2 x 2 pixels each.
    Iyuv,
}

/// Where the items of an array begin: behind the number of them, aligned as objects are.
pub const ARRAY_ITEMS: usize = 64;

impl Item {
    /// That of `T`.
    pub fn of<T>() -> Item {
        Item { name: std::any::type_name::<T>(), size: size_of::<T>() }
    }
}

impl PixelFormat {
    const TABLE: [(PixelFormat, &'static str, usize); 11] = [
        (PixelFormat::U8, "U8", 1),
        (PixelFormat::U16, "U16", 2),
        (PixelFormat::S16, "S16", 2),
        (PixelFormat::U32, "U32", 4),
        (PixelFormat::S32, "S32", 4),
        (PixelFormat::F32, "F32", 4),
        (PixelFormat::Rgb, "RGB", 3),
        (PixelFormat::Rgbx, "RGBX", 4),
        (PixelFormat::Uyvy, "UYVY", 2),
        (PixelFormat::Nv12, "NV12", 1),
        (PixelFormat::Iyuv, "IYUV", 1),
    ];

    fn entry(self) -> (&'static str, usize) {
        let found = PixelFormat::TABLE.iter().find(|(format, ..)| *format == self);
        found.map(|&(_, name, bytes)| (name, bytes)).expect("the table has all formats")
    }

    /// Its name in OpenVX, without `VX_DF_IMAGE_`.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Bytes of a pixel in the first plane.
    pub fn bytes(self) -> usize {
        self.entry().1
    }

    /// The planes of an image so large, as bytes in a row, and rows; 0 for those that it does not have.
    pub fn planes(self, width: usize, height: usize) -> [(usize, usize); 3] {
        let first = (width.saturating_mul(self.bytes()), height);
        match self {
            PixelFormat::Nv12 => [first, (width, height / 2), (0, 0)],
            PixelFormat::Iyuv => [first, (width / 2, height / 2), (width / 2, height / 2)],
            _ => [first, (0, 0), (0, 0)],
        }
    }

    /// Whether an image can be so large: where pixels share colours, sides are even.
    fn can_be(self, width: usize, height: usize) -> bool {
        match self {
            PixelFormat::Uyvy => width.is_multiple_of(2),
            PixelFormat::Nv12 | PixelFormat::Iyuv => width.is_multiple_of(2) && height.is_multiple_of(2),
            _ => true,
        }
    }
}

impl Format {
    /// Bytes of such an object; nothing if there can be none: of size 0, or larger than any memory.
    pub fn size(&self) -> Option<usize> {
        let size = match *self {
            Format::Bytes { size } => Some(size),
            Format::Value { item } => Some(item.size),
            Format::Array { item, capacity } => {
                item.size.checked_mul(capacity).filter(|&bytes| bytes > 0)?.checked_add(ARRAY_ITEMS)
            }
            Format::Matrix { item, rows, columns } => item.size.checked_mul(rows)?.checked_mul(columns),
            Format::Image { width, height, pixel } => {
                let sizes = pixel.planes(width, height).into_iter().map(|(bytes, rows)| bytes.checked_mul(rows));
                let total = sizes.sum::<Option<usize>>();
                total.filter(|_| pixel.can_be(width, height))
            }
        };
        size.filter(|&size| size > 0 && isize::try_from(size).is_ok())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Bytes { size } => write!(f, "{size} bytes"),
            Format::Value { item } => write!(f, "a value of {item}"),
            Format::Array { item, capacity } => write!(f, "an array of up to {capacity} items of {item}"),
            Format::Matrix { item, rows, columns } => write!(f, "a matrix of {rows} x {columns} values of {item}"),
            Format::Image { width, height, pixel } => {
                write!(f, "an image of {width} x {height} pixels, {}", pixel.name())
            }
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: usize, height: usize, pixel: PixelFormat) -> Option<usize> {
        Format::Image { width, height, pixel }.size()
    }

    #[test]
    fn sizes_are_those_of_planes_without_gaps() {
        assert_eq!(image(640, 480, PixelFormat::Rgb), Some(640 * 480 * 3));
        assert_eq!(image(640, 480, PixelFormat::Nv12), Some(640 * 480 * 3 / 2));
        assert_eq!(image(640, 480, PixelFormat::Iyuv), Some(640 * 480 * 3 / 2));
        assert_eq!(Format::Array { item: Item::of::<[f32; 2]>(), capacity: 10 }.size(), Some(64 + 80));
    }

    #[test]
    fn what_cannot_be_has_no_size() {
        assert_eq!(image(641, 480, PixelFormat::Nv12), None, "2 x 2 pixels share colours");
        assert_eq!(image(640, 481, PixelFormat::Uyvy), Some(640 * 481 * 2), "which pixels of one row do here");
        assert_eq!(image(0, 480, PixelFormat::U8), None);
        assert_eq!(image(usize::MAX, 2, PixelFormat::U8), None);
        assert_eq!(Format::Array { item: Item::of::<u8>(), capacity: 0 }.size(), None);
        assert_eq!(Format::Value { item: Item::of::<()>() }.size(), None);
    }

    #[test]
    fn the_table_has_all_formats_once() {
        for (position, (format, ..)) in PixelFormat::TABLE.iter().enumerate() {
            assert_eq!(*format as usize, position);
        }
    }
}
