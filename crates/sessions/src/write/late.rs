//! The disk a moment later: a line is with the system when it was recorded, which a killed process
//! cannot take back; that it outlives a machine without power need not be waited for.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::recorder::Sink;

/// Waits for the disk in a recorder's stead, in whatever thread has the time.
///
/// It does not keep the file open: others would take this process for its writer.
#[must_use]
pub struct LateSync {
    out: Weak<dyn Sink>,
    debt: Arc<Debt>,
}

impl LateSync {
    /// Waits for the disk. A recorder that is gone has done so itself; one whose disk fails says so
    /// when it is asked for the next sync.
    pub fn run(self) {
        let mut failed = self.debt.settling();
        if !self.debt.take() {
            return;
        }
        if let Some(error) = self.out.upgrade().and_then(|out| out.sync().err()) {
            *failed = Some(error);
        }
    }
}

/// What a recorder owes the disk.
#[derive(Default)]
pub(super) struct Debt {
    owed: AtomicBool,
    /// Locked as long as somebody waits for the disk; then, what came of it.
    failed: Mutex<Option<io::Error>>,
}

impl Debt {
    /// Takes on the debt; who is given something is to run it later. An error is that of the last.
    pub(super) fn owe(self: &Arc<Self>, out: &Arc<dyn Sink>) -> io::Result<Option<LateSync>> {
        // While somebody waits for the disk, nothing came of it yet.
        if let Some(error) = self.failed.try_lock().ok().and_then(|mut failed| failed.take()) {
            return Err(error);
        }
        let anew = !self.owed.swap(true, Ordering::AcqRel);
        Ok(anew.then(|| LateSync { out: Arc::downgrade(out), debt: Arc::clone(self) }))
    }

    /// Waits for the disk now, if that is owed. Nobody has the file any more then.
    pub(super) fn pay(&self, out: &dyn Sink) {
        let _settling = self.settling();
        if self.take() {
            // There is nobody left to tell.
            let _ = out.sync();
        }
    }

    fn take(&self) -> bool {
        self.owed.swap(false, Ordering::AcqRel)
    }

    fn settling(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
