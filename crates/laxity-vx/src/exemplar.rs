//! Exemplars of data objects, and how jobs see the objects.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use bytemuck::Pod;

use crate::format::{ARRAY_ITEMS, Format, Item, PixelFormat};

/// What a data object is made after (OpenVX's exemplar): how large it is, and what jobs see of its bytes.
pub trait Exemplar: Copy + fmt::Debug + Send + Sync + 'static {
    /// What a job reads.
    type Ref<'a>;
    /// What a job writes or changes.
    type Mut<'a>;

    /// What it consists of.
    fn format(&self) -> Format;

    /// `bytes`, which are as many as the format's size and aligned to cache lines, to be read.
    fn view<'a>(&self, bytes: &'a [u8]) -> Self::Ref<'a>;

    /// As [`Exemplar::view`], to be written.
    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> Self::Mut<'a>;
}

/// So many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

/// One value of a type (OpenVX's scalar).
#[derive(Debug)]
pub struct Value<T>(PhantomData<fn() -> T>);

/// Up to so many items of a type. An array that a node gets to write is empty at first.
#[derive(Debug)]
pub struct Array<T> {
    capacity: usize,
    item: PhantomData<fn() -> T>,
}

/// Values of a type in rows and columns.
#[derive(Debug)]
pub struct Matrix<T> {
    rows: usize,
    columns: usize,
    item: PhantomData<fn() -> T>,
}

/// An image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    pixel: PixelFormat,
}

/// The items of an array, to be changed.
#[derive(Debug)]
pub struct ArrayMut<'a, T> {
    length: &'a mut u64,
    items: &'a mut [T],
}

/// A matrix, to be read.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRef<'a, T> {
    columns: usize,
    values: &'a [T],
}

/// A matrix, to be written.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    columns: usize,
    values: &'a mut [T],
}

/// An image, to be read.
#[derive(Clone, Copy, Debug)]
pub struct ImageRef<'a> {
    image: Image,
    bytes: &'a [u8],
}

/// An image, to be written.
#[derive(Debug)]
pub struct ImageMut<'a> {
    image: Image,
    bytes: &'a mut [u8],
}

impl<T> Value<T> {
    /// One value of `T`.
    pub fn new() -> Self {
        Value(PhantomData)
    }
}

impl<T> Default for Value<T> {
    fn default() -> Self {
        Value::new()
    }
}

impl<T> Array<T> {
    /// Up to `capacity` items of `T`.
    pub fn new(capacity: usize) -> Self {
        Array { capacity, item: PhantomData }
    }
}

impl<T> Matrix<T> {
    /// `rows` times `columns` values of `T`.
    pub fn new(rows: usize, columns: usize) -> Self {
        Matrix { rows, columns, item: PhantomData }
    }
}

impl Image {
    /// `width` times `height` pixels.
    pub fn new(width: usize, height: usize, pixel: PixelFormat) -> Self {
        Image { width, height, pixel }
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// What a pixel is.
    pub fn pixel(&self) -> PixelFormat {
        self.pixel
    }

    /// Where row `row` of the plane `plane` is. Panics if there is none, as slices do.
    fn row(&self, plane: usize, row: usize) -> std::ops::Range<usize> {
        let planes = self.pixel.planes(self.width, self.height);
        let (bytes, rows) = planes[plane];
        assert!(row < rows, "plane {plane} has {rows} rows, numbered from 0; there is no row {row}");
        let start = planes[..plane].iter().map(|(bytes, rows)| bytes * rows).sum::<usize>() + row * bytes;
        start..start + bytes
    }
}

// Not derived: that would ask the same of `T`.
impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Value<T> {}
impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Array<T> {}
impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Matrix<T> {}

impl Exemplar for Format {
    type Ref<'a> = &'a [u8];
    type Mut<'a> = &'a mut [u8];

    fn format(&self) -> Format {
        *self
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> &'a mut [u8] {
        bytes
    }
}

impl Exemplar for Bytes {
    type Ref<'a> = &'a [u8];
    type Mut<'a> = &'a mut [u8];

    fn format(&self) -> Format {
        Format::Bytes { size: self.0 }
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> &'a mut [u8] {
        bytes
    }
}

impl<T: Pod + fmt::Debug> Exemplar for Value<T> {
    type Ref<'a> = &'a T;
    type Mut<'a> = &'a mut T;

    fn format(&self) -> Format {
        Format::Value { item: item::<T>() }
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> &'a T {
        bytemuck::from_bytes(bytes)
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> &'a mut T {
        bytemuck::from_bytes_mut(bytes)
    }
}

impl<T: Pod + fmt::Debug> Exemplar for Array<T> {
    type Ref<'a> = &'a [T];
    type Mut<'a> = ArrayMut<'a, T>;

    fn format(&self) -> Format {
        Format::Array { item: item::<T>(), capacity: self.capacity }
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> &'a [T] {
        let (header, items) = bytes.split_at(ARRAY_ITEMS);
        let items: &[T] = bytemuck::cast_slice(items);
        let length: &u64 = bytemuck::from_bytes(&header[..size_of::<u64>()]);
        // Only `ArrayMut` writes it, but others may have the memory as bytes.
        &items[..items.len().min(*length as usize)]
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> ArrayMut<'a, T> {
        let (header, items) = bytes.split_at_mut(ARRAY_ITEMS);
        let items: &mut [T] = bytemuck::cast_slice_mut(items);
        let length: &mut u64 = bytemuck::from_bytes_mut(&mut header[..size_of::<u64>()]);
        *length = (*length).min(items.len() as u64);
        ArrayMut { length, items }
    }
}

impl<T: Pod + fmt::Debug> Exemplar for Matrix<T> {
    type Ref<'a> = MatrixRef<'a, T>;
    type Mut<'a> = MatrixMut<'a, T>;

    fn format(&self) -> Format {
        Format::Matrix { item: item::<T>(), rows: self.rows, columns: self.columns }
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> MatrixRef<'a, T> {
        MatrixRef { columns: self.columns, values: bytemuck::cast_slice(bytes) }
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> MatrixMut<'a, T> {
        MatrixMut { columns: self.columns, values: bytemuck::cast_slice_mut(bytes) }
    }
}

impl Exemplar for Image {
    type Ref<'a> = ImageRef<'a>;
    type Mut<'a> = ImageMut<'a>;

    fn format(&self) -> Format {
        Format::Image { width: self.width, height: self.height, pixel: self.pixel }
    }

    fn view<'a>(&self, bytes: &'a [u8]) -> ImageRef<'a> {
        ImageRef { image: *self, bytes }
    }

    fn view_mut<'a>(&self, bytes: &'a mut [u8]) -> ImageMut<'a> {
        ImageMut { image: *self, bytes }
    }
}

/// The type of an object's values.
fn item<T: Pod>() -> Item {
    const { assert!(align_of::<T>() <= ARRAY_ITEMS, "objects are aligned to cache lines") };
    Item::of::<T>()
}

impl<T: Pod> ArrayMut<'_, T> {
    /// The most items.
    pub fn capacity(&self) -> usize {
        self.items.len()
    }

    /// Those that there are.
    pub fn items(&self) -> &[T] {
        &self.items[..*self.length as usize]
    }

    /// Those that there are.
    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items[..*self.length as usize]
    }

    /// Adds an item, and answers whether there was room for it (`vxAddArrayItems`).
    #[must_use]
    pub fn push(&mut self, item: T) -> bool {
        let Some(place) = self.items.get_mut(*self.length as usize) else { return false };
        *place = item;
        *self.length += 1;
        true
    }

    /// Keeps the first `length` items at most (`vxTruncateArray`).
    pub fn truncate(&mut self, length: usize) {
        *self.length = (*self.length).min(length as u64);
    }
}

impl<'a, T> MatrixRef<'a, T> {
    /// All values, row by row.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Values in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

impl<T> MatrixMut<'_, T> {
    /// All values, row by row.
    pub fn values(&mut self) -> &mut [T] {
        self.values
    }

    /// Values in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// By row and column. Panics where there is none, as slices do.
impl<T> Index<(usize, usize)> for MatrixRef<'_, T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.values[row * self.columns..][..self.columns][column]
    }
}

/// By row and column. Panics where there is none, as slices do.
impl<T> Index<(usize, usize)> for MatrixMut<'_, T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.values[row * self.columns..][..self.columns][column]
    }
}

impl<T> IndexMut<(usize, usize)> for MatrixMut<'_, T> {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut T {
        &mut self.values[row * self.columns..][..self.columns][column]
    }
}

impl<'a> ImageRef<'a> {
    /// How large it is, and of what.
    pub fn exemplar(&self) -> Image {
        self.image
    }

    /// All of it: plane by plane, row by row.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Row `row` of the plane `plane`, 0 where there is one only. Panics where there is none, as slices do.
    pub fn row(&self, plane: usize, row: usize) -> &'a [u8] {
        &self.bytes[self.image.row(plane, row)]
    }
}

impl ImageMut<'_> {
    /// How large it is, and of what.
    pub fn exemplar(&self) -> Image {
        self.image
    }

    /// All of it: plane by plane, row by row.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Row `row` of the plane `plane`, 0 where there is one only. Panics where there is none, as slices do.
    pub fn row(&mut self, plane: usize, row: usize) -> &mut [u8] {
        let range = self.image.row(plane, row);
        &mut self.bytes[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory as objects have it.
    #[repr(C, align(64))]
    #[derive(Clone, Copy)]
    struct Memory([u8; 512]);

    fn memory<E: Exemplar>(exemplar: &E, memory: &mut Memory) -> usize {
        memory.0.fill(0);
        exemplar.format().size().expect("it fits")
    }

    #[test]
    fn an_array_holds_what_fits_and_is_empty_in_zeroed_memory() {
        let (exemplar, mut place) = (Array::<[u32; 2]>::new(3), Memory([1; 512]));
        let size = memory(&exemplar, &mut place);
        let mut array = exemplar.view_mut(&mut place.0[..size]);
        assert_eq!((array.items().len(), array.capacity()), (0, 3));
        assert_eq!([1, 2, 3, 4].map(|item| array.push([item; 2])), [true, true, true, false]);
        array.truncate(2);
        array.items_mut()[0] = [9, 9];
        assert_eq!(exemplar.view(&place.0[..size]), [[9, 9], [2, 2]]);
    }

    #[test]
    fn a_damaged_length_shows_no_more_than_there_is() {
        let (exemplar, mut place) = (Array::<u8>::new(3), Memory([255; 512]));
        assert_eq!(exemplar.view(&place.0[..67]).len(), 3);
        assert_eq!(exemplar.view_mut(&mut place.0[..67]).items().len(), 3);
    }

    #[test]
    fn a_matrix_is_row_by_row() {
        let (exemplar, mut place) = (Matrix::<f64>::new(2, 3), Memory([0; 512]));
        let size = memory(&exemplar, &mut place);
        exemplar.view_mut(&mut place.0[..size])[(1, 2)] = 7.0;
        let matrix = exemplar.view(&place.0[..size]);
        assert_eq!((matrix.values(), matrix[(1, 2)]), (&[0.0, 0.0, 0.0, 0.0, 0.0, 7.0][..], 7.0));
        assert!(std::panic::catch_unwind(|| matrix[(0, 3)]).is_err(), "no column runs over into the next row");
    }

    #[test]
    fn rows_of_planes_lie_behind_each_other() {
        let (exemplar, mut place) = (Image::new(4, 2, PixelFormat::Iyuv), Memory([0; 512]));
        let size = memory(&exemplar, &mut place);
        let mut image = exemplar.view_mut(&mut place.0[..size]);
        image.row(0, 1).fill(1);
        image.row(1, 0).fill(2);
        image.row(2, 0).fill(3);
        assert_eq!(exemplar.view(&place.0[..size]).bytes(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]);
    }
}
