//! Decompressed bytes: in memory up to a limit, beyond it in a temporary file.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{LocalFile, StorageError, StorageFile};

/// How long a thread waits for others before it checks for an interrupt.
const WAIT: Duration = Duration::from_millis(20);

/// Bytes of a segment of memory.
pub(crate) const SEGMENT: usize = 1 << 20;

/// Most bytes of one entry that are held in memory, if there is a folder for what is larger.
const ENTRY_MEMORY: u64 = 64 << 20;

/// The largest window outside the budget: every Zstandard decoder should support it (RFC 8878, 3.1.1.1.2).
const FREE_WINDOW: u64 = 8 << 20;

/// How long a waiting thread tolerates that no other thread returns anything.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn unusable<T>(why: impl Into<String>) -> Result<T, StorageError> {
    Err(StorageError::Unusable(why.into()))
}

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Memory,
    Disk,
}

/// The limits that entries share while they are held.
///
/// Results must not depend on which thread gets the memory. A thread that lacks memory because of others releases its
/// entry ([`StorageError::Busy`]), and opens it again when it has the turn. Only the thread with the turn waits, and
/// only for open entries, so that no two threads wait for each other.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The most memory and disk, in bytes.
    limits: [u64; 2],
    /// Where temporary files are made.
    folder: Option<PathBuf>,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
    /// What is held only because it may be needed again.
    spare: Mutex<Weak<Spare>>,
}

/// Bytes that are held only because they may be needed again. They are dropped if there is too little for others.
pub(crate) struct Spare(Mutex<Option<Arc<dyn StorageFile>>>);

#[derive(Debug, Default)]
struct State {
    /// Bytes of memory and disk that are taken.
    taken: [u64; 2],
    /// How often some were given back.
    returns: u64,
    /// The thread that has the turn, and how much of what is taken it took since.
    turn: Option<(ThreadId, [u64; 2])>,
    /// How many turns there were.
    turns: u64,
}

impl State {
    /// How much the calling thread took since it got the turn, if it has it.
    fn own(&mut self) -> Option<&mut [u64; 2]> {
        let turn = self
            .turn
            .as_mut()
            .filter(|(thread, _)| *thread == std::thread::current().id());
        turn.map(|(_, own)| own)
    }
}

impl Budget {
    /// `disk` is how many bytes of temporary files there may be in `folder` at the same time.
    pub(crate) fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Budget {
            limits: [memory, disk],
            folder,
            patience: PATIENCE,
            state: Mutex::default(),
            changed: Condvar::new(),
            spare: Mutex::default(),
        }
    }

    /// Holds a file until the result is dropped, or the memory or the disk is needed. Drops what was held so before.
    pub(crate) fn spare(&self, file: Arc<dyn StorageFile>) -> Arc<Spare> {
        let spare = Arc::new(Spare(Mutex::new(Some(file))));
        let mut last = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last, Arc::downgrade(&spare));
        drop(last);
        before.upgrade().map(|before| before.take());
        spare
    }

    /// Drops what is only held because it may be needed again. Returns whether there was something.
    fn drop_spare(&self) -> bool {
        let last = self.spare.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        last.and_then(|spare| spare.take()).is_some()
    }

    // A poisoned lock stays usable: no change under the lock can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change. Checks for an interrupt without the lock.
    fn wait<'b>(
        &'b self,
        state: MutexGuard<'b, State>,
        interrupt: Interrupt<'_>,
    ) -> Result<MutexGuard<'b, State>, Interrupted> {
        let waited = self.changed.wait_timeout(state, WAIT);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        interrupt.check()?;
        Ok(self.lock())
    }

    /// Returns bytes to the budget. A thread may have taken some of them during its turn.
    fn give_back(&self, what: What, bytes: u64, (turn, own): (u64, u64)) {
        let mut state = self.lock();
        let at = what as usize;
        state.taken[at] -= bytes;
        state.returns += 1;
        let is_same = state.turns == turn;
        if let Some((_, all)) = state.turn.as_mut().filter(|_| is_same) {
            all[at] = all[at].saturating_sub(own);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether another thread has the turn.
    pub(crate) fn has_turn_of_another(&self) -> bool {
        let turn = self.lock().turn;
        turn.is_some_and(|(thread, _)| thread != std::thread::current().id())
    }

    /// Calls `open` when the thread has the turn. The thread must hold nothing of the budget before.
    pub(crate) fn in_turn(&self, interrupt: Interrupt<'_>, open: &mut dyn FnMut()) -> Result<(), Interrupted> {
        let mut state = self.lock();
        while state.turn.is_some() {
            state = self.wait(state, interrupt)?;
        }
        state.turn = Some((std::thread::current().id(), [0; 2]));
        state.turns += 1;
        drop(state);
        let _turn = Turn(self);
        open();
        Ok(())
    }
}

impl Spare {
    fn take(&self) -> Option<Arc<dyn StorageFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The turn of the calling thread. Drop ends it.
struct Turn<'b>(&'b Budget);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().turn = None;
        self.0.changed.notify_all();
    }
}

/// A share of a budget. Drop gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    taken: [u64; 2],
    /// The last turn in which some were taken, and how many then.
    turn: u64,
    own: [u64; 2],
}

impl Share {
    /// An empty share.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Share {
            budget: Arc::clone(budget),
            taken: [0; 2],
            turn: 0,
            own: [0; 2],
        }
    }

    /// Takes enough for a decoder with a window of so many bytes. Returns whether there is enough.
    pub(crate) fn covers(&mut self, window: u64, interrupt: Interrupt<'_>) -> Result<bool, StorageError> {
        let more = window.saturating_sub(self.taken[What::Memory as usize]);
        Ok(window <= FREE_WINDOW || self.take(What::Memory, more, interrupt)?)
    }

    /// Takes more if it is left.
    fn try_take(&mut self, what: What, more: u64, is_forced: bool) -> bool {
        let (mut state, at) = (self.budget.lock(), what as usize);
        let taken = state.taken[at].saturating_add(more);
        let is_left = taken <= self.budget.limits[at] || is_forced;
        if is_left {
            state.taken[at] = taken;
            self.taken[at] += more;
            let turn = state.turns;
            if let Some(own) = state.own() {
                own[at] += more;
                if self.turn != turn {
                    (self.turn, self.own) = (turn, [0; 2]);
                }
                self.own[at] += more;
            }
        }
        is_left
    }

    /// Takes more memory for a list, if half is left to entries that are open.
    fn take_for_list(&mut self, more: u64) -> bool {
        let at = What::Memory as usize;
        let is_left = self.budget.lock().taken[at].saturating_add(more) <= self.budget.limits[at] / 2;
        is_left && self.try_take(What::Memory, more, false)
    }

    /// Takes more. Returns false if there is too little even without others. A thread with the turn waits for others.
    /// After a while, as these may wait for its rows, it takes memory over the limit, but no disk.
    ///
    /// # Errors
    /// [`StorageError::Busy`] and [`StorageError::Interrupted`].
    fn take(&mut self, what: What, more: u64, interrupt: Interrupt<'_>) -> Result<bool, StorageError> {
        let at = what as usize;
        let (mut seen, mut since) = (None, Instant::now());
        loop {
            if self.try_take(what, more, false) {
                return Ok(true);
            }
            if self.budget.drop_spare() {
                continue;
            }
            let mut state = self.budget.lock();
            let own = state.own().map(|own| own[at]);
            let mine = own.unwrap_or(self.taken[at]);
            if mine.saturating_add(more) > self.budget.limits[at] || state.taken[at] <= mine {
                return Ok(false);
            }
            if own.is_none() {
                return Err(StorageError::Busy);
            }
            if seen != Some(state.returns) {
                (seen, since) = (Some(state.returns), Instant::now());
            }
            if since.elapsed() > self.budget.patience {
                drop(state);
                return Ok(what == What::Memory && self.try_take(what, more, true));
            }
            drop(self.budget.wait(state, interrupt)?);
        }
    }

    fn give_back(&mut self, what: What) {
        let bytes = std::mem::take(&mut self.taken[what as usize]);
        let own = std::mem::take(&mut self.own[what as usize]);
        if bytes > 0 {
            self.budget.give_back(what, bytes, (self.turn, own));
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(What::Memory);
        self.give_back(What::Disk);
    }
}

/// What the list of entries of an archive may take of memory. It is counted before it is there, and one that takes more
/// than a little is a part of the budget.
#[derive(Debug)]
pub(crate) struct Room {
    share: Share,
    used: u64,
    most: u64,
}

/// What a list may take besides twice the size of its archive, and what it may take outside the budget.
const LIST_MEMORY: u64 = 48 << 20;
const FREE_LIST: u64 = 4 << 20;

impl Room {
    /// Room for the list of an archive with so many bytes.
    pub(crate) fn new(budget: &Arc<Budget>, size: u64) -> Self {
        Room {
            share: Share::new(budget),
            used: 0,
            most: LIST_MEMORY.saturating_add(size.saturating_mul(2)),
        }
    }

    /// Takes some, of which lists leave half to entries that are open.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if there is too little.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), StorageError> {
        self.used += bytes as u64;
        if self.used > self.most {
            let most = self.most >> 20;
            return unusable(format!("its list of entries takes more than {most} MiB of memory"));
        }
        let [memory, _] = self.share.taken;
        let more = self.used.saturating_sub(FREE_LIST).saturating_sub(memory);
        while more > 0 && !self.share.take_for_list(more) {
            if !self.share.budget.drop_spare() {
                return unusable("there is too little memory for its list of entries: memory_limit allows no more");
            }
        }
        Ok(())
    }

    /// Returns some, for other parts of the list.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used -= bytes as u64;
    }
}

/// Bytes that are held. They are written from the first to the last, and then read at any offset.
pub(crate) struct Held {
    share: Share,
    size: u64,
    /// Segments of [`SEGMENT`] bytes; the last one can be shorter. Empty if there is a file.
    segments: Vec<Vec<u8>>,
    file: Option<File>,
    /// The file once it is only read.
    spilled: Option<LocalFile>,
}

impl Held {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Held {
            share: Share::new(budget),
            size: 0,
            segments: Vec::new(),
            file: None,
            spilled: None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Adds a segment: [`SEGMENT`] bytes, or fewer if it is the last one.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if that cannot be, [`StorageError::Busy`] and [`StorageError::Interrupted`].
    pub(crate) fn push(&mut self, mut segment: Vec<u8>, interrupt: Interrupt<'_>) -> Result<(), StorageError> {
        let more = segment.len() as u64;
        let in_memory = match (&self.file, &self.share.budget.folder) {
            (Some(_), _) => false,
            (None, None) => self.share.take(What::Memory, more, interrupt)?,
            (None, Some(_)) => self.size + more <= ENTRY_MEMORY && self.share.try_take(What::Memory, more, false),
        };
        if in_memory {
            segment.shrink_to_fit();
            self.segments.push(segment);
        } else {
            self.write(&segment, interrupt)?;
        }
        self.size += more;
        Ok(())
    }

    fn write(&mut self, segment: &[u8], interrupt: Interrupt<'_>) -> Result<(), StorageError> {
        let before = if self.file.is_none() { self.size } else { 0 };
        let more = before + segment.len() as u64;
        let Some(folder) = self.share.budget.folder.clone() else {
            return unusable("it takes more memory than is left, and temp_directory names no folder for it");
        };
        if !self.share.take(What::Disk, more, interrupt)? {
            return unusable(
                "the entries that are open take more memory than is left, and more of the disk than \
                 max_temp_directory_size allows",
            );
        }
        let failed = |error| {
            let text = format!("it takes more memory than is left, and its temporary file fails: {error}");
            StorageError::Unusable(text)
        };
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = temporary(&folder).map_err(failed)?;
                // The bytes stay in memory if they cannot be written.
                self.segments
                    .iter()
                    .try_for_each(|segment| file.write_all(segment))
                    .map_err(failed)?;
                self.segments = Vec::new();
                self.share.give_back(What::Memory);
                self.file.insert(file)
            }
        };
        let written = file.write_all(segment);
        if written.is_err() {
            // The next read is at an offset, and the size says what counts.
            let _ = file.seek(SeekFrom::Start(self.size));
        }
        written.map_err(failed)
    }

    /// The bytes as a file.
    pub(crate) fn into_file(mut self) -> Arc<dyn StorageFile> {
        self.spilled = self.file.take().map(|file| LocalFile::new(file, self.size));
        Arc::new(self)
    }
}

/// Creates an unnamed file in a folder. Creates a missing folder for that, and removes it again if possible.
fn temporary(folder: &PathBuf) -> std::io::Result<File> {
    let mut tries = 0;
    loop {
        let is_made = !folder.is_dir() && std::fs::create_dir_all(folder).is_ok();
        let file = tempfile::tempfile_in(folder);
        if is_made {
            let _ = std::fs::remove_dir(folder);
        }
        tries += 1;
        match file {
            // Another thread may have just removed the folder. Linux then says that it is not found, or EPERM.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) && tries < 100 => {
                std::thread::yield_now();
            }
            other => return other,
        }
    }
}

impl StorageFile for Held {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        if let Some(file) = &self.spilled {
            return file.read_at(buffer, offset);
        }
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let segment = usize::try_from(at / SEGMENT as u64).ok();
            let segment = segment.and_then(|index| self.segments.get(index));
            let rest = segment.and_then(|segment| segment.get(at as usize % SEGMENT..));
            let rest = rest.unwrap_or_default();
            if rest.is_empty() {
                return unusable(format!("there are only {} bytes of it", self.size));
            }
            let len = rest.len().min(buffer.len() - done);
            buffer[done..done + len].copy_from_slice(&rest[..len]);
            done += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn held(budget: &Arc<Budget>, segments: usize) -> Result<Held, StorageError> {
        let mut held = Held::new(budget);
        (0..segments).try_for_each(|segment| held.push(vec![segment as u8; SEGMENT], Interrupt::NEVER))?;
        held.push(b"the end".to_vec(), Interrupt::NEVER)?;
        Ok(held)
    }

    fn refused(budget: &Arc<Budget>, segments: usize) -> String {
        held(budget, segments).map(drop).expect_err("too much").to_string()
    }

    fn patiently(
        budget: &Budget,
        interrupt: Interrupt<'_>,
        open: impl Fn() -> Result<Held, StorageError>,
    ) -> Result<Held, StorageError> {
        let mut opened = open();
        if matches!(opened, Err(StorageError::Busy)) {
            budget.in_turn(interrupt, &mut || opened = open())?;
        }
        opened
    }

    fn left(budget: &Budget) -> [u64; 2] {
        let taken = budget.lock().taken;
        [0, 1].map(|at| budget.limits[at] - taken[at])
    }

    fn check(file: &dyn StorageFile, segments: usize) {
        let size = segments * SEGMENT + 7;
        assert_eq!(file.size(), size as u64);
        let mut buffer = vec![0; size];
        file.read_at(&mut buffer, 0).expect("all of it");
        assert!(
            buffer.ends_with(b"the end")
                && (0..segments).all(|segment| buffer[(segment + 1) * SEGMENT - 1] == segment as u8)
        );
        file.read_at(&mut buffer[..12], size as u64 - 12)
            .expect("across segments");
        assert!(buffer[..12].ends_with(b"the end"));
        assert!(file.read_at(&mut buffer[..8], size as u64 - 7).is_err());
        assert!(file.read_at(&mut buffer[..8], u64::MAX - 8).is_err());
    }

    #[test]
    fn what_is_too_large_for_memory_is_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("not/yet");
        let budget = Arc::new(Budget::new(200 << 20, 70 << 20, Some(inner.clone())));
        let small = held(&budget, 3).expect("it fits");
        assert!(small.file.is_none() && left(&budget)[0] == (197 << 20) - 7);
        let large = held(&budget, 64).expect("there is a folder");
        assert!(large.file.is_some() && left(&budget)[0] == (197 << 20) - 7);
        assert!(!inner.exists(), "nothing is left of the file");
        assert_eq!(
            held(&budget, 64).map(drop),
            Err(StorageError::Busy),
            "the disk is taken"
        );
        check(&*small.into_file(), 3);
        check(&*large.into_file(), 64);
        let why = refused(&budget, 70);
        assert!(why.contains("max_temp_directory_size"), "{why}");
        assert_eq!(left(&budget), [200 << 20, 70 << 20]);
    }

    #[test]
    fn a_large_window_is_a_part_of_the_memory() {
        let budget = Arc::new(Budget::new(100 << 20, 0, None));
        let left = || left(&budget)[0] >> 20;
        let covers = |share: &mut Share, mib: u64| share.covers(mib << 20, Interrupt::NEVER);
        let mut share = Share::new(&budget);
        assert!(covers(&mut share, 8) == Ok(true) && left() == 100);
        assert!(covers(&mut share, 64) == Ok(true) && left() == 36);
        assert!(covers(&mut share, 16) == Ok(true) && left() == 36);
        assert!(covers(&mut share, 128) == Ok(false) && left() == 36);
        assert_eq!(covers(&mut Share::new(&budget), 64), Err(StorageError::Busy));
        assert_eq!(covers(&mut Share::new(&budget), 128), Ok(false));
        drop(share);
        assert_eq!(left(), 100);
    }

    #[test]
    fn a_thread_that_has_the_turn_waits_for_others() {
        let budget = Arc::new(Budget::new(3 << 20, 0, None));
        let other = held(&budget, 2).expect("it fits");
        let [started, refused, opened] = [const { AtomicUsize::new(0) }; 3];
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let open = || {
                        started.fetch_add(1, Ordering::SeqCst);
                        held(&budget, 2).inspect_err(|_| {
                            refused.fetch_add(1, Ordering::SeqCst);
                        })
                    };
                    let held = patiently(&budget, Interrupt::NEVER, open).expect("others give it back");
                    assert_eq!(held.size(), (2 << 20) + 7);
                    opened.fetch_add(1, Ordering::SeqCst);
                });
            }
            // All were refused, and one has begun again.
            while refused.load(Ordering::SeqCst) < 3 || started.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
            assert_eq!(opened.load(Ordering::SeqCst), 0);
            drop(other);
        });
        assert_eq!((started.into_inner(), opened.into_inner()), (6, 3));
        assert_eq!(left(&budget), [3 << 20, 0]);
        // What is too much alone is refused, and an interrupt ends the wait.
        let why = patiently(&budget, Interrupt::NEVER, || held(&budget, 3)).map(drop);
        assert!(matches!(why, Err(StorageError::Unusable(_))));
        let other = held(&budget, 2).expect("it fits");
        let looks = AtomicUsize::new(0);
        let is_set = || looks.fetch_add(1, Ordering::SeqCst) > 3;
        let interrupt = Interrupt::new(&is_set);
        let waits = || {
            let mut held = Held::new(&budget);
            held.push(vec![0; 2 << 20], interrupt)?;
            Ok(held)
        };
        let interrupted = patiently(&budget, interrupt, waits).map(drop);
        assert_eq!(interrupted, Err(StorageError::Interrupted(Interrupted)));
        drop(other);
        assert!(budget.lock().turn.is_none() && left(&budget) == [3 << 20, 0]);
    }

    #[test]
    fn a_wait_without_a_change_ends() {
        let folder = tempfile::tempdir().expect("a folder").path().to_owned();
        for (memory, disk, folder, is_opened) in [(3 << 20, 0, None, true), (0, 3 << 20, Some(folder), false)] {
            let mut budget = Budget::new(memory, disk, folder);
            budget.patience = Duration::ZERO;
            let budget = Arc::new(budget);
            let other = held(&budget, 2).expect("it fits");
            let opened = patiently(&budget, Interrupt::NEVER, || held(&budget, 2));
            assert_eq!(opened.is_ok(), is_opened);
            let why = opened
                .map(drop)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert_eq!(why.contains("max_temp_directory_size"), !is_opened, "{why}");
            drop(other);
            assert_eq!(left(&budget), [memory, disk]);
        }
    }

    #[test]
    fn what_is_spare_makes_room() {
        let budget = Arc::new(Budget::new(3 << 20, 0, None));
        let spare = budget.spare(held(&budget, 2).expect("it fits").into_file());
        assert!(left(&budget)[0] < 1 << 20, "it is held");
        let other = held(&budget, 2).expect("without a turn");
        drop((spare, other));
        let before = budget.spare(held(&budget, 1).expect("it fits").into_file());
        let last = budget.spare(held(&budget, 1).expect("it fits").into_file());
        assert_eq!(left(&budget)[0], (2 << 20) - 7, "only the last one is held");
        drop((before, last));
        assert_eq!(left(&budget)[0], 3 << 20);
    }

    /// Bytes of others that the thread with the turn gives back are none of its own: what it has is too much alone.
    #[test]
    fn a_turn_counts_what_was_taken_in_it() {
        let budget = Arc::new(Budget::new(3 << 20, 0, None));
        let mut before = Some(held(&budget, 1).expect("it fits"));
        let mut why = None;
        let in_turn = budget.in_turn(Interrupt::NEVER, &mut || {
            let own = held(&budget, 1).expect("it fits");
            before = None;
            why = held(&budget, 2).map(drop).err();
            drop(own);
        });
        assert!(
            in_turn.is_ok() && matches!(why, Some(StorageError::Unusable(_))),
            "{why:?}"
        );
        assert_eq!(left(&budget)[0], 3 << 20);
    }

    #[test]
    fn without_a_folder_there_is_a_reason() {
        let budget = Arc::new(Budget::new(2 << 20, u64::MAX, None));
        let why = refused(&budget, 2);
        assert!(why.contains("temp_directory"), "{why}");
        assert_eq!(left(&budget)[0], 2 << 20);
        let budget = Arc::new(Budget::new(70 << 20, 0, None));
        check(&*held(&budget, 66).expect("the memory is there").into_file(), 66);
        let missing = Arc::new(Budget::new(0, u64::MAX, Some("/dev/null/folder".into())));
        let why = refused(&missing, 1);
        assert!(why.contains("its temporary file fails"), "{why}");
    }
}
