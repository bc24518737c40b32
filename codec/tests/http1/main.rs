//! The HTTP/1 codec against the corpora, at connection level: whole, byte by byte, and cut in two
//! at every place.
#[cfg(test)]
mod cases;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod llhttp;
#[cfg(test)]
mod own;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod session;
