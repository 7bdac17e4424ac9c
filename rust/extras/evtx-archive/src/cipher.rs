//! Encrypted entries of ZIP archives: the old cipher (APPNOTE 6.1), and AES (WinZip's AE-1 and AE-2).

use std::io::{self, BufReader, Read};

use aes::{Aes128, Aes192, Aes256};
use ctr::Ctr128LE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// Bytes before an entry with the old cipher.
pub(crate) const CLASSIC_HEADER: u64 = 12;
/// Bytes after an entry with AES: the start of an HMAC.
const TAG: usize = 10;
/// How often AES keys are hashed.
const ROUNDS: u32 = 1000;
/// Bytes that reveal most wrong passwords.
const VERIFIER: usize = 2;

const BUFFER: usize = 1 << 16;

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut value, mut bit) = (i as u32, 0);
        while bit < 8 {
            value = (value >> 1) ^ if value & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

fn crc(value: u32, byte: u8) -> u32 {
    (value >> 8) ^ CRC[((value as u8) ^ byte) as usize]
}

/// The state of the old cipher.
#[derive(Clone)]
pub(crate) struct Classic([u32; 3]);

impl Classic {
    pub(crate) fn new(password: &[u8]) -> Self {
        let mut keys = Classic([0x1234_5678, 0x2345_6789, 0x3456_7890]);
        password.iter().for_each(|&byte| keys.update(byte));
        keys
    }

    fn update(&mut self, byte: u8) {
        let [a, b, c] = &mut self.0;
        *a = crc(*a, byte);
        *b = b.wrapping_add(*a & 0xFF).wrapping_mul(134_775_813).wrapping_add(1);
        *c = crc(*c, (*b >> 24) as u8);
    }

    fn stream(&self) -> u8 {
        let low = (self.0[2] | 2) & 0xFFFF;
        ((low.wrapping_mul(low ^ 1)) >> 8) as u8
    }

    pub(crate) fn decrypt(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte ^= self.stream();
            self.update(*byte);
        }
    }
}

/// AES in counter mode, and the check of what it decrypts.
pub(crate) struct Counter {
    cipher: Box<dyn StreamCipher>,
    mac: Hmac<Sha1>,
}

/// A cipher in counter mode. The counter is little endian and starts at 1.
fn counting<C: KeyIvInit + StreamCipher + 'static>(key: &[u8]) -> Option<Box<dyn StreamCipher>> {
    let cipher = C::new_from_slices(key, &1_u128.to_le_bytes()).ok()?;
    Some(Box::new(cipher))
}

/// Bytes of salt and verifier before an entry with AES of this strength.
pub(crate) fn aes_header(strength: u8) -> Option<usize> {
    match strength {
        1..=3 => Some(4 + 4 * usize::from(strength) + VERIFIER),
        _ => None,
    }
}

impl Counter {
    /// `header` is salt and verifier. `None` if the password is wrong.
    pub(crate) fn new(password: &[u8], header: &[u8]) -> Option<Self> {
        let (salt, verifier) = header.split_at_checked(header.len().checked_sub(VERIFIER)?)?;
        let key = 2 * salt.len();
        let mut derived = vec![0; 2 * key + VERIFIER];
        pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, ROUNDS, &mut derived);
        let cipher = match key {
            16 => counting::<Ctr128LE<Aes128>>(&derived[..key]),
            24 => counting::<Ctr128LE<Aes192>>(&derived[..key]),
            _ => counting::<Ctr128LE<Aes256>>(&derived[..key]),
        }?;
        let mac = Hmac::new_from_slice(&derived[key..2 * key]).ok()?;
        (derived[2 * key..] == *verifier).then_some(Counter { cipher, mac })
    }

    fn decrypt(&mut self, bytes: &mut [u8]) {
        self.mac.update(bytes);
        self.cipher.apply_keystream(bytes);
    }
}

/// The key of a stream.
pub(crate) enum Key {
    Classic(Classic),
    /// AES, and how many encrypted bytes are left before the tag.
    Aes(Box<Counter>, u64),
}

/// A stream that is decrypted. At the end of one with AES, it compares the tag.
pub(crate) struct Decrypted<R> {
    input: R,
    key: Key,
    is_checked: bool,
}

impl<R: Read> Decrypted<R> {
    /// A stream of `len` encrypted bytes, with the tag of AES.
    pub(crate) fn new(input: R, mut key: Key, len: u64) -> BufReader<Self> {
        if let Key::Aes(_, left) = &mut key {
            *left = len.saturating_sub(TAG as u64);
        }
        let is_checked = false;
        BufReader::with_capacity(BUFFER, Decrypted { input, key, is_checked })
    }
}

impl<R: Read> Read for Decrypted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (counter, left) = match &mut self.key {
            Key::Classic(keys) => {
                let len = self.input.read(buffer)?;
                keys.decrypt(&mut buffer[..len]);
                return Ok(len);
            }
            Key::Aes(counter, left) => (counter, left),
        };
        let most = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        let len = self.input.read(&mut buffer[..most])?;
        counter.decrypt(&mut buffer[..len]);
        *left -= len as u64;
        if len == 0 && !std::mem::replace(&mut self.is_checked, true) {
            let mut tag = [0; TAG];
            self.input.read_exact(&mut tag)?;
            if counter.mac.clone().verify_truncated_left(&tag).is_err() {
                return Err(io::Error::other("its encrypted bytes were changed"));
            }
        }
        Ok(len)
    }
}
