//! The limits of archives and of what is decompressed.

use std::path::PathBuf;
use std::sync::Arc;

use evtx_scan::Password;

use crate::memory::Budget;

/// Most bytes of an entry.
const MAX_SIZE: u64 = 64 << 30;
/// An entry that has more than `BOMB_SIZE` bytes and more than `BOMB_RATIO` times its compressed size is a bomb.
const BOMB_SIZE: u64 = 256 << 20;
pub(crate) const BOMB_RATIO: u64 = 200;
/// Most characters of a password. A key of 7z hashes them up to 2^24 times.
const MAX_PASSWORD: usize = 1024;

/// The limits that archives share, and their password.
#[derive(Debug, Clone)]
pub struct Archives {
    pub(crate) budget: Arc<Budget>,
    pub(crate) password: Option<Password>,
    /// Most bytes of an entry.
    max_size: u64,
}

impl Default for Archives {
    /// No password, 256 MiB of memory, and 64 GiB in the system's folder for temporary files.
    fn default() -> Self {
        Archives::new(256 << 20, 64 << 30, Some(std::env::temp_dir()))
    }
}

impl Archives {
    /// Open entries take at most `memory` bytes, and temporary files in `folder` at most `disk` bytes.
    pub fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Archives {
            budget: Arc::new(Budget::new(memory, disk, folder)),
            password: None,
            max_size: MAX_SIZE,
        }
    }

    /// The same with a password for encrypted entries.
    pub fn with_password(self, password: Option<&Password>) -> Self {
        let password = password.cloned();
        Archives { password, ..self }
    }

    /// Why nothing is decrypted, if that is so.
    pub(crate) fn no_password(&self) -> Option<String> {
        match &self.password {
            None => Some("no password is given".to_owned()),
            Some(password) => {
                let is_long = password.text().chars().nth(MAX_PASSWORD).is_some();
                is_long.then(|| format!("the password has more than {MAX_PASSWORD} characters"))
            }
        }
    }

    /// How many bytes are decompressed at most from so many compressed ones.
    pub(crate) fn most(&self, compressed: u64) -> u64 {
        self.max_size.min(BOMB_SIZE.max(compressed.saturating_mul(BOMB_RATIO)))
    }

    /// Why no more than [`most`](Self::most) bytes are decompressed.
    pub(crate) fn too_large(&self, compressed: u64) -> String {
        let most = self.most(compressed);
        if most == self.max_size {
            format!("it has more than {most} bytes, which is more than is read")
        } else {
            format!("it expands to more than {most} bytes from {compressed}, as a bomb does")
        }
    }

    #[cfg(test)]
    pub(crate) fn with_max_size(self, max_size: u64) -> Self {
        Archives { max_size, ..self }
    }
}
