//! AES-256 in 7z archives: keys from passwords, and the cipher.

use std::io::{self, BufRead, Read};
use std::sync::{Mutex, PoisonError};

use aes::Aes256Dec;
use aes::cipher::{BlockCipherDecrypt, KeyInit};
use evtx_format::Interrupt;
use evtx_scan::StorageError;
use sha2::{Digest, Sha256};

use super::bytes::{Bytes, damaged};
use crate::memory::unusable;

/// Bytes of a block of the cipher, and of a key.
const BLOCK: usize = 16;
const KEY: usize = 32;

/// The most rounds of a key, as a power of 2. 7-Zip makes keys with 2^19 rounds.
const MAX_POWER: u8 = 24;
/// The power that stands for no rounds at all.
const NO_ROUNDS: u8 = 0x3F;

/// The most rounds of all keys of an archive. 7-Zip uses one key for all folders.
const MAX_ROUNDS: u64 = 1 << 28;
/// The most keys of an archive that are kept.
const MAX_KEPT: usize = 16;

/// Bytes that are hashed between two checks for an interrupt: about a millisecond.
const UNCHECKED: usize = 1 << 18;

/// Bytes that are decrypted at once.
const PIECE: usize = 1 << 14;

/// What a key is made of, besides a password, and the first block of the cipher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Properties {
    power: u8,
    salt: Vec<u8>,
    start: [u8; BLOCK],
}

impl Properties {
    /// Reads the properties: a byte with the power and two flags, a byte with the sizes, the salt, and the first block.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, StorageError> {
        let mut bytes = Bytes(bytes);
        let first = bytes.byte()?;
        let sizes = if first & 0xC0 == 0 { 0 } else { bytes.byte()? };
        let salt = (first >> 7 & 1) + (sizes >> 4);
        let len = usize::from((first >> 6 & 1) + (sizes & 0xF));
        let salt = bytes.take(salt.into())?.to_vec();
        let mut start = [0; BLOCK];
        start[..len].copy_from_slice(bytes.take(len as u64)?);
        match bytes.0 {
            [] => Ok(Properties {
                power: first & 0x3F,
                salt,
                start,
            }),
            _ => damaged(),
        }
    }
}

/// The keys of an archive that were made so far.
#[derive(Default)]
pub(crate) struct Keys(Mutex<Made>);

#[derive(Default)]
struct Made {
    keys: Vec<(u8, Vec<u8>, [u8; KEY])>,
    /// Rounds of all of them.
    rounds: u64,
}

/// Shows no key.
impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Keys {
    /// The key for a password. Makes it unless it is known.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if that takes too much work, and [`StorageError::Interrupted`].
    fn key(
        &self,
        password: &str,
        properties: &Properties,
        interrupt: Interrupt<'_>,
    ) -> Result<[u8; KEY], StorageError> {
        let Properties { power, salt, .. } = properties;
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made.keys.iter().find(|(known, own, _)| known == power && own == salt);
        if let Some((.., key)) = known {
            return Ok(*key);
        }
        if *power > MAX_POWER && *power != NO_ROUNDS {
            return unusable(format!("its key takes 2^{power} rounds, more than 2^{MAX_POWER}"));
        }
        let rounds = if *power == NO_ROUNDS { 0 } else { 1 << power };
        made.rounds += rounds;
        if made.rounds > MAX_ROUNDS {
            return unusable("its keys take more work than is done for an archive");
        }
        drop(made);
        let password: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let key = derive(&[salt, &password[..]].concat(), rounds, interrupt)?;
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.keys.len() < MAX_KEPT {
            made.keys.push((*power, salt.clone(), key));
        }
        Ok(key)
    }
}

/// A key of so many rounds: the SHA-256 of the secret and the number of the round, of all rounds one after the other.
fn derive(secret: &[u8], rounds: u64, interrupt: Interrupt<'_>) -> Result<[u8; KEY], StorageError> {
    if rounds == 0 {
        let mut key = [0; KEY];
        let len = secret.len().min(KEY);
        key[..len].copy_from_slice(&secret[..len]);
        return Ok(key);
    }
    let mut digest = Sha256::new();
    let mut input = [secret, &[0; 8]].concat();
    let mut unchecked = UNCHECKED;
    for round in 0..rounds {
        if unchecked >= UNCHECKED {
            interrupt.check()?;
            unchecked = 0;
        }
        unchecked += input.len();
        input[secret.len()..].copy_from_slice(&round.to_le_bytes());
        digest.update(&input);
    }
    Ok(digest.finalize().into())
}

/// A stream that is decrypted: AES-256 in CBC mode, in which each block of the input is also a part of the next one.
pub(super) struct Decrypted<'r> {
    input: Box<dyn BufRead + 'r>,
    cipher: Aes256Dec,
    previous: [u8; BLOCK],
    plain: Vec<u8>,
    used: usize,
}

impl<'r> Decrypted<'r> {
    /// # Errors
    /// [`StorageError::Unusable`] if the key takes too much work, and [`StorageError::Interrupted`].
    pub(super) fn new(
        input: Box<dyn BufRead + 'r>,
        properties: &Properties,
        password: &str,
        keys: &Keys,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, StorageError> {
        let key = keys.key(password, properties, interrupt)?;
        Ok(Decrypted {
            input,
            cipher: Aes256Dec::new(&key.into()),
            previous: properties.start,
            plain: Vec::new(),
            used: 0,
        })
    }

    /// Decrypts the next blocks that the input has ready.
    fn refill(&mut self) -> io::Result<()> {
        self.plain.clear();
        self.used = 0;
        let ready = self.input.fill_buf()?;
        let len = ready.len().min(PIECE) / BLOCK * BLOCK;
        let mut one = [0; BLOCK];
        if ready.is_empty() {
            return Ok(());
        }
        let encrypted = match len {
            0 => {
                self.input.read_exact(&mut one)?;
                &one[..]
            }
            _ => &ready[..len],
        };
        let (encrypted, _) = encrypted.as_chunks::<BLOCK>();
        let mut blocks: Vec<aes::Block> = encrypted.iter().map(|&block| block.into()).collect();
        self.cipher.decrypt_blocks(&mut blocks);
        for (block, encrypted) in blocks.iter().zip(encrypted) {
            self.plain.extend(block.iter().zip(self.previous).map(|(a, b)| a ^ b));
            self.previous = *encrypted;
        }
        self.input.consume(len);
        Ok(())
    }
}

impl Read for Decrypted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.plain.len() {
            self.refill()?;
        }
        let len = buffer.len().min(self.plain.len() - self.used);
        buffer[..len].copy_from_slice(&self.plain[self.used..self.used + len]);
        self.used += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn properties(power: u8, salt: &[u8]) -> Properties {
        let sizes = [0xC0 | power, (salt.len() as u8 - 1) << 4 | 0xF];
        Properties::of(&[&sizes, salt, &[7; BLOCK]].concat()).expect("properties")
    }

    #[test]
    fn properties_have_a_salt_and_a_block_of_any_size() {
        let read = properties(19, b"salt");
        assert_eq!((read.power, &read.salt[..], read.start), (19, &b"salt"[..], [7; 16]));
        let short = Properties::of(&[0x53, 0x07, 1, 2, 3, 4, 5, 6, 7, 8]).expect("as of 7-Zip");
        assert_eq!(
            (short.power, short.salt.len(), short.start[7..10].to_vec()),
            (19, 0, vec![8, 0, 0])
        );
        assert_eq!(Properties::of(&[0x13]).expect("a power").power, 19);
        for wrong in [&[][..], &[0xC0], &[0xC0, 0xFF, 1], &[0x13, 1]] {
            assert!(Properties::of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn keys_are_made_once_and_within_limits() {
        let (keys, looks) = (Keys::default(), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            false
        };
        let key = |properties: &Properties| keys.key("secret", properties, Interrupt::new(&look));
        let first = key(&properties(14, b"a")).expect("a key");
        // 2^14 rounds of 21 bytes.
        assert_eq!(looks.replace(0), 2);
        assert_eq!((key(&properties(14, b"a")), looks.get()), (Ok(first), 0), "it is known");
        assert_ne!(key(&properties(14, b"b")).expect("a key"), first);
        let plain = key(&properties(NO_ROUNDS, b"abc")).expect("a key");
        assert!(plain.starts_with(b"abcs\0e\0c\0r\0e\0t\0\0\0"));
        for power in [25, 62] {
            let why = key(&properties(power, b"a")).expect_err("too many").to_string();
            assert!(why.contains("more than 2^24"), "{why}");
        }
        keys.0.lock().expect("no panic").rounds = MAX_ROUNDS;
        assert!(key(&properties(0, b"c")).is_err() && key(&properties(14, b"b")).is_ok());
    }

    #[test]
    fn an_interrupt_ends_a_key() {
        let looks = Cell::new(0);
        let is_set = || looks.replace(looks.get() + 1) >= 3;
        let key = Keys::default().key("x", &properties(24, b"a"), Interrupt::new(&is_set));
        assert!(matches!(key, Err(StorageError::Interrupted(_))) && looks.get() == 4);
        // A long password takes more time in each round: 2^10 rounds of 2,057 bytes.
        looks.set(0);
        let is_set = || looks.replace(looks.get() + 1) >= 100;
        let key = Keys::default().key(&"x".repeat(1024), &properties(10, b"a"), Interrupt::new(&is_set));
        assert!(key.is_ok() && looks.get() == 8, "{}", looks.get());
    }
}
