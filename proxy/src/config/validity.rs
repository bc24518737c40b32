//! From when to when a certificate holds: the one thing of X.509 that we read ourselves, since
//! nothing else tells it before a client does.
//!
//! It deliberately checks nothing: neither a signature nor whether the rest is a certificate.
//! Malformed input is `None`. Bounds: elements of what was read, which has that of a file; no
//! nesting is followed but the certificate's own.

use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Tags of DER, as far as the way to the validity has them.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The version of a certificate, which one of the first version does not have.
const VERSION: u8 = 0xa0;

/// Bytes of a length that says how many follow: beyond four gigabytes there is no certificate.
const LENGTH_BYTES_MAX: u8 = 4;

/// The last year in two digits that is of this century (RFC 5280, 4.1.2.5.1).
const YEAR_OF_CENTURY_MAX: u32 = 49;

/// From when to when, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first instant; one before 1970 is that.
    pub not_before: UnixMs,
    /// The last one.
    pub not_after: UnixMs,
}

impl Validity {
    /// Of the first certificate in a text of PEM blocks, which is the one that is shown for the
    /// host; those that vouch for it may end earlier.
    pub(super) fn of_pem(chain: &str) -> Option<Validity> {
        of_der(&CertificateDer::from_pem_slice(chain.as_bytes()).ok()?)
    }

    /// What clients will mind, if they do. The same as long as nothing changes.
    pub fn doubt(&self, now: UnixMs) -> Option<String> {
        let Validity { not_before, not_after } = *self;
        if now < not_before {
            return Some(format!("holds from {} on, and not yet", rfc3339::text(not_before)));
        }
        (now > not_after).then(|| format!("has ended, {}", rfc3339::text(not_after)))
    }
}

/// Of a certificate: `SEQUENCE { SEQUENCE { [0] version, serial, algorithm, issuer, validity, …`.
fn of_der(mut der: &[u8]) -> Option<Validity> {
    let mut certificate = take(&mut der, SEQUENCE)?;
    let mut signed = take(&mut certificate, SEQUENCE)?;
    if signed.first() == Some(&VERSION) {
        take(&mut signed, VERSION)?;
    }
    take(&mut signed, INTEGER)?;
    take(&mut signed, SEQUENCE)?;
    take(&mut signed, SEQUENCE)?;
    let mut validity = take(&mut signed, SEQUENCE)?;
    let (not_before, not_after) = (instant(&mut validity)?, instant(&mut validity)?);
    validity.is_empty().then_some(Validity { not_before, not_after })
}

/// The contents of the next element, which has this tag.
fn take<'d>(rest: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    let (found, contents, behind) = element(rest)?;
    *rest = behind;
    (found == tag).then_some(contents)
}

/// Tag and contents of an element, and what stands behind it. A length that is said to follow
/// later (`0x80`) is not of DER.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first & 0x7f {
        length if first < 0x80 => (usize::from(length), rest),
        count @ 1..=LENGTH_BYTES_MAX => {
            let (bytes, rest) = rest.split_at_checked(usize::from(count))?;
            let length = bytes.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`; others are not of DER.
fn instant(rest: &mut &[u8]) -> Option<UnixMs> {
    let (tag, contents, behind) = element(rest)?;
    *rest = behind;
    let text = str::from_utf8(contents).ok()?;
    let digits = text.strip_suffix('Z').filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()))?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: u32 = year.parse().ok()?;
            (if year <= YEAR_OF_CENTURY_MAX { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let mut parts = [""; 5];
    let mut left = rest;
    for part in &mut parts {
        (*part, left) = left.split_at_checked(2)?;
    }
    let [month, day, hour, minute, second] = parts;
    // Whether that day is there is asked of a year that can be written.
    let written = format!("{:04}-{month}-{day}T{hour}:{minute}:{second}Z", year.max(1970));
    let at = rfc3339::parse(&written).filter(|_| left.is_empty())?;
    Some(if year < 1970 { UnixMs(0) } else { at })
}

#[cfg(test)]
mod tests;
