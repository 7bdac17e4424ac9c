//! Encrypted entries of ZIP archives: the old cipher (APPNOTE 6.1), and AES (WinZip's AE-1 and AE-2).

use std::io::{self, BufRead, Read};

use aes::{Aes128, Aes192, Aes256};
use ctr::Ctr128LE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::input::read_buffered;

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

    #[cfg(test)]
    pub(crate) fn encrypt(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            let plain = *byte;
            *byte ^= self.stream();
            self.update(plain);
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

/// Bytes of salt and verifier before an entry with AES of this strength, 1 to 3.
pub(crate) fn aes_header(strength: u8) -> Option<usize> {
    Some(4 + 4 * usize::from(strength.checked_sub(1).filter(|&less| less < 3)? + 1) + VERIFIER)
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

/// A stream that is decrypted.
pub(crate) enum Key {
    Classic(Classic),
    /// AES, and how many encrypted bytes are left before the tag.
    Aes(Box<Counter>, u64),
}

pub(crate) struct Decrypted<R> {
    input: R,
    key: Key,
    buffer: Vec<u8>,
    used: usize,
    is_checked: bool,
}

impl<R: BufRead> Decrypted<R> {
    /// `len` is how many encrypted bytes there are, with the tag of AES.
    pub(crate) fn new(input: R, mut key: Key, len: u64) -> Self {
        if let Key::Aes(_, left) = &mut key {
            *left = len.saturating_sub(TAG as u64);
        }
        Decrypted {
            input,
            key,
            buffer: Vec::new(),
            used: 0,
            is_checked: false,
        }
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let from = self.input.fill_buf()?;
        let mut len = from.len().min(BUFFER);
        if let Key::Aes(_, left) = &self.key {
            len = len.min(usize::try_from(*left).unwrap_or(usize::MAX));
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&from[..len]);
        self.used = 0;
        self.input.consume(len);
        match &mut self.key {
            Key::Classic(keys) => keys.decrypt(&mut self.buffer),
            Key::Aes(counter, left) => {
                counter.decrypt(&mut self.buffer);
                *left -= len as u64;
                if len == 0 && !self.is_checked {
                    self.is_checked = true;
                    let mut tag = [0; TAG];
                    self.input.read_exact(&mut tag)?;
                    if counter.mac.clone().verify_truncated_left(&tag).is_err() {
                        return Err(io::Error::other("its encrypted bytes were changed"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl<R: BufRead> BufRead for Decrypted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.decrypt()?;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, len: usize) {
        self.used += len;
    }
}

impl<R: BufRead> Read for Decrypted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_cipher_is_its_own_inverse() {
        let plain = b"ElfFile\0 and so on".to_vec();
        let mut bytes = plain.clone();
        Classic::new(b"secret").encrypt(&mut bytes);
        assert_ne!(bytes, plain);
        let mut read = Vec::new();
        let keys = Key::Classic(Classic::new(b"secret"));
        Decrypted::new(&bytes[..], keys, bytes.len() as u64)
            .read_to_end(&mut read)
            .expect("no error");
        assert_eq!(read, plain);
    }

    #[test]
    fn headers_have_the_lengths_of_the_strengths() {
        assert_eq!(
            [0, 1, 2, 3, 4, 255].map(aes_header),
            [None, Some(10), Some(14), Some(18), None, None]
        );
    }
}
