//! Buffers of text that are used again.
//!
//! The allocator gives large buffers back to the system when a batch is freed, and each page of the next one then costs
//! a page fault: a tenth of a scan for `xml`. So the buffer of a freed batch serves the next but one.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::arrays;

/// The sizes in bytes of buffers that are kept. The allocator itself keeps smaller ones.
const KEPT: std::ops::Range<usize> = 64 << 10..32 << 20;

/// A buffer that a freed batch has left. Batches may be freed by any thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Spare(Arc<Mutex<Option<Vec<u8>>>>);

impl Spare {
    fn replace(&self, buffer: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut kept, buffer)
    }

    /// Takes the bytes of a batch, and leaves an empty vector with capacity for as many.
    pub(super) fn take(&self, data: &mut Vec<u8>) -> Buffer {
        if !KEPT.contains(&data.capacity()) {
            return arrays::take(data).into();
        }
        let next = self.replace(None).unwrap_or_else(|| Vec::with_capacity(data.len()));
        let bytes = std::mem::replace(data, next);
        let spare = self.clone();
        Bytes::from_owner(Lent { bytes, spare }).into()
    }
}

/// The bytes of a batch, which become the spare buffer when it is freed.
struct Lent {
    bytes: Vec<u8>,
    spare: Spare,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.spare.replace(Some(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_of_a_freed_batch_is_used_again() {
        let spare = Spare::default();
        let mut data = vec![1; KEPT.start];
        let first = spare.take(&mut data);
        let address = first.as_ptr();
        data.extend_from_slice(&[2; KEPT.start]);
        let second = spare.take(&mut data);
        drop(first);
        data.extend_from_slice(&[3; KEPT.start]);
        let third = spare.take(&mut data);
        assert_eq!((data.as_ptr(), data.len()), (address, 0));
        assert!(second.iter().all(|&byte| byte == 2) && third.iter().all(|&byte| byte == 3));
        // Nothing is kept of small buffers.
        let mut small = vec![4; 100];
        drop(spare.take(&mut small));
        assert!(spare.replace(None).is_none());
    }
}
