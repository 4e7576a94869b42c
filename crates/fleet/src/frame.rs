//! The frame: what everything between coordinator and worker is wrapped in.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `TMFL` |
//! | 2 | version of the protocol, [`PROTOCOL`] |
//! | 1 | kind of message |
//! | 1 | zero |
//! | 4 | length of the payload, at most [`MAX_PAYLOAD`] |
//! | 4 | CRC-32 of the twelve bytes before and of the payload |
//! | … | payload |
//!
//! Numbers are little-endian. The first eight bytes mean the same in every version, so that a worker of another one can be named.

use std::io::{self, Read, Write};

/// Version of the protocol. It changes with every change of a frame or a message.
pub const PROTOCOL: u16 = 1;

/// Most bytes of a payload. A frame that announces more is refused before any of it is read.
pub const MAX_PAYLOAD: usize = 64 << 20;

/// Bytes before the payload.
pub const HEADER_LEN: usize = 16;

const MAGIC: [u8; 4] = *b"TMFL";

/// Why bytes are no frame, or a payload is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Something else.
    #[error("these bytes are no frame of Tidemill's workers")]
    NotAFrame,
    /// Made by another version.
    #[error(
        "the other side speaks version {theirs} of the protocol, this one {PROTOCOL}\n  hint: install the same version of Tidemill on both"
    )]
    Version {
        /// The version in the frame.
        theirs: u16,
    },
    /// More than is allowed.
    #[error("a frame announces {len} bytes, and at most {MAX_PAYLOAD} are allowed")]
    TooLong {
        /// What the frame announces.
        len: u64,
    },
    /// It ends too early or too late.
    #[error("a frame has {got} bytes where {expected} were announced")]
    Length {
        /// What the frame announces.
        expected: usize,
        /// What there is.
        got: usize,
    },
    /// Damaged on the way.
    #[error("a frame was damaged on the way: its checksum differs")]
    Checksum,
    /// The frame is whole, and what is in it makes no sense.
    #[error("a message of kind {kind} is malformed: {what}")]
    Malformed {
        /// Kind of the message.
        kind: u8,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// A payload in its frame.
///
/// # Panics
/// If the payload is longer than [`MAX_PAYLOAD`], which the sizes of shards rule out.
pub fn wrap(kind: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() <= MAX_PAYLOAD, "a payload within the limit");
    let mut frame = Vec::with_capacity(HEADER_LEN + payload.len());
    frame.extend(MAGIC);
    frame.extend(PROTOCOL.to_le_bytes());
    frame.extend([kind, 0]);
    frame.extend((payload.len() as u32).to_le_bytes());
    let checksum = checksum(&frame, payload);
    frame.extend(checksum.to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Kind and payload of a frame.
pub fn unwrap(frame: &[u8]) -> Result<(u8, &[u8]), FrameError> {
    let Some((header, payload)) = frame.split_at_checked(HEADER_LEN) else {
        return Err(FrameError::NotAFrame);
    };
    let len = payload_len(header)?;
    if payload.len() != len {
        return Err(FrameError::Length { expected: len, got: payload.len() });
    }
    if checksum(&header[..12], payload).to_le_bytes() != header[12..] {
        return Err(FrameError::Checksum);
    }
    Ok((header[6], payload))
}

/// Reads one frame; `None` at the end of the stream. Memory grows with what arrives, not with what is announced.
pub fn read(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut frame = Vec::with_capacity(HEADER_LEN);
    read_exactly(stream, HEADER_LEN, &mut frame)?;
    if frame.is_empty() {
        return Ok(None);
    }
    if frame.len() < HEADER_LEN {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let len = payload_len(&frame).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    read_exactly(stream, len, &mut frame)?;
    if frame.len() < HEADER_LEN + len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(frame))
}

/// Writes one frame and sends it off.
pub fn write(stream: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    stream.write_all(frame)?;
    stream.flush()
}

fn read_exactly(stream: &mut impl Read, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
    stream.by_ref().take(len as u64).read_to_end(into).map(drop)
}

/// The announced length, if the header is one of this version.
fn payload_len(header: &[u8]) -> Result<usize, FrameError> {
    let [m0, m1, m2, m3, v0, v1, _, zero, l0, l1, l2, l3, ..] = *header else {
        return Err(FrameError::NotAFrame);
    };
    if [m0, m1, m2, m3] != MAGIC || zero != 0 {
        return Err(FrameError::NotAFrame);
    }
    let theirs = u16::from_le_bytes([v0, v1]);
    if theirs != PROTOCOL {
        return Err(FrameError::Version { theirs });
    }
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if len as usize > MAX_PAYLOAD {
        return Err(FrameError::TooLong { len: len.into() });
    }
    Ok(len as usize)
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was() {
        let frame = wrap(3, b"payload");
        assert_eq!(unwrap(&frame), Ok((3, &b"payload"[..])));
        let both = [frame.clone(), wrap(4, b"")].concat();
        let mut stream = &both[..];
        assert_eq!(read(&mut stream).unwrap(), Some(frame));
        assert_eq!(read(&mut stream).unwrap(), Some(wrap(4, b"")));
        assert_eq!(read(&mut stream).unwrap(), None);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let frame = wrap(3, b"payload");
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(unwrap(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_another_version_names_it() {
        let mut frame = wrap(3, b"payload");
        frame[4] = 9;
        assert_eq!(unwrap(&frame), Err(FrameError::Version { theirs: 9 }));
    }

    #[test]
    fn a_frame_that_announces_too_much_is_refused_unread() {
        let mut frame = wrap(3, b"");
        frame[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = read(&mut io::Cursor::new(frame).chain(io::repeat(0))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut short = &wrap(3, b"payload")[..20];
        assert_eq!(read(&mut short).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
