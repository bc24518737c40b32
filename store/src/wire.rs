//! Little-endian fields one after the other: what records, frames and segment headers are made of.
//!
//! Everything is inlined whole: in a buffer of a fixed size every field then has a fixed place, and
//! the checks are gone. A head of 312 bytes is encoded several times a call.
//!
//! No unsafe and no panic: a buffer that is too short makes [`Put`] say so and [`Take`] answer
//! `None`. Field lists are written once; [`wire_struct`] makes the type, its encoding and its
//! decoding from the same lines, so the three cannot drift apart.

/// Writes fields into a buffer.
pub(crate) struct Put<'b> {
    rest: &'b mut [u8],
    whole: bool,
}

impl<'b> Put<'b> {
    #[inline(always)]
    pub(crate) fn new(buffer: &'b mut [u8]) -> Put<'b> {
        Put { rest: buffer, whole: true }
    }

    #[inline(always)]
    pub(crate) fn bytes<const N: usize>(&mut self, field: [u8; N]) {
        match std::mem::take(&mut self.rest).split_first_chunk_mut::<N>() {
            Some((place, rest)) => {
                *place = field;
                self.rest = rest;
            }
            None => self.whole = false,
        }
    }

    /// Whether everything fitted.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// Reads fields out of a buffer.
pub(crate) struct Take<'b> {
    rest: &'b [u8],
}

impl<'b> Take<'b> {
    pub(crate) fn new(buffer: &'b [u8]) -> Take<'b> {
        Take { rest: buffer }
    }

    #[inline(always)]
    pub(crate) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*field)
    }

    #[inline]
    pub(crate) fn slice(&mut self, len: usize) -> Option<&'b [u8]> {
        let (slice, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(slice)
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

/// A value with a fixed place on the disk.
pub(crate) trait Wire: Sized {
    /// Bytes it takes.
    const BYTES: usize;
    /// Writes it.
    fn put(&self, out: &mut Put<'_>);
    /// Reads it; `None` if bytes are missing or say nothing this version knows.
    fn take(from: &mut Take<'_>) -> Option<Self>;
}

macro_rules! wire_integers {
    ($($integer:ty),*) => { $(
        impl Wire for $integer {
            const BYTES: usize = size_of::<$integer>();
            #[inline(always)]
            fn put(&self, out: &mut Put<'_>) {
                out.bytes(self.to_le_bytes());
            }
            #[inline(always)]
            fn take(from: &mut Take<'_>) -> Option<$integer> {
                from.bytes().map(<$integer>::from_le_bytes)
            }
        }
    )* };
}

wire_integers!(u8, u16, u32, u64, u128);

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    const BYTES: usize = T::BYTES * N;
    #[inline(always)]
    fn put(&self, out: &mut Put<'_>) {
        for field in self {
            field.put(out);
        }
    }
    #[inline(always)]
    fn take(from: &mut Take<'_>) -> Option<[T; N]> {
        let mut all = [T::default(); N];
        for field in &mut all {
            *field = T::take(from)?;
        }
        Some(all)
    }
}

/// Declares a struct whose encoding is its fields in order.
macro_rules! wire_struct {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $kind:ty,)* }
    ) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$doc])* pub $field: $kind,)* }

        impl $crate::wire::Wire for $name {
            const BYTES: usize = 0 $(+ <$kind as $crate::wire::Wire>::BYTES)*;
            #[inline(always)]
            fn put(&self, out: &mut $crate::wire::Put<'_>) {
                $($crate::wire::Wire::put(&self.$field, out);)*
            }
            #[inline(always)]
            fn take(from: &mut $crate::wire::Take<'_>) -> Option<$name> {
                Some($name { $($field: $crate::wire::Wire::take(from)?,)* })
            }
        }
    };
}

/// Declares an enum of one byte with fixed numbers and fixed names. A number never changes its
/// meaning and is never used again; the first line is the default.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(#[$doc0:meta])* $first:ident = $number0:literal $text0:literal,
            $($(#[$doc:meta])* $variant:ident = $number:literal $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            #[default]
            $(#[$doc0])* $first = $number0,
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// Every one there is, by number.
            pub const ALL: &'static [$name] = &[$name::$first, $($name::$variant,)*];

            /// Its name in output, metrics and docs.
            pub const fn name(self) -> &'static str {
                match self { $name::$first => $text0, $($name::$variant => $text,)* }
            }

            /// Its number on the disk.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// What a number stands for.
            pub const fn from_number(number: u8) -> Option<$name> {
                match number {
                    $number0 => Some($name::$first),
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::wire::Wire for $name {
            const BYTES: usize = 1;
            #[inline(always)]
            fn put(&self, out: &mut $crate::wire::Put<'_>) {
                out.bytes([self.number()]);
            }
            #[inline(always)]
            fn take(from: &mut $crate::wire::Take<'_>) -> Option<$name> {
                $name::from_number(<u8 as $crate::wire::Wire>::take(from)?)
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};

/// `value` as bytes. `B` is its size; a test of each format says so.
#[inline(always)]
pub(crate) fn encoded<T: Wire, const B: usize>(value: &T) -> [u8; B] {
    let mut bytes = [0; B];
    let mut put = Put::new(&mut bytes);
    value.put(&mut put);
    debug_assert!(put.is_whole() && T::BYTES == B, "the size of an encoding is its type's");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_buffer_is_a_value() {
        let mut bytes = [0; 5];
        let mut put = Put::new(&mut bytes);
        7_u32.put(&mut put);
        assert!(put.is_whole());
        9_u32.put(&mut put);
        assert!(!put.is_whole());
        let mut take = Take::new(&bytes);
        assert_eq!(u32::take(&mut take), Some(7));
        assert_eq!(u32::take(&mut take), None);
        assert_eq!(take.left(), 1);
        assert_eq!(take.slice(2), None);
        assert_eq!(take.slice(1), Some(&[0][..]));
    }
}
