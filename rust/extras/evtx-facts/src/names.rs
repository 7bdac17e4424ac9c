//! Names that mean the same: those that a machine had before, and those of Windows' own accounts in other languages.

use evtx_codes::{Code, code_name};
use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::addresses::is_address;
use crate::rows::{EventRow, LogonRow, Mark};

/// The letters of a NetBIOS name (MS-NBTE, 2.2.1).
const NETBIOS: usize = 15;

/// The names that each machine had, in lower case, as other machines may write them, and since when.
struct Names<'a>(HashMap<(Option<&'a str>, String), i64>);

impl<'a> Names<'a> {
    fn new(marks: &[Mark<'a>], interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let mut since: HashMap<(Option<&str>, &str), i64> = HashMap::new();
        for (step, mark) in marks.iter().enumerate() {
            interrupt.check_step(step)?;
            if let (Some(name), Some(time)) = (mark.name, mark.log_time) {
                let first = since.entry((mark.computer, name)).or_insert(time);
                *first = time.min(*first);
            }
        }
        let mut found = HashMap::new();
        for ((computer, name), time) in since {
            let short = name.split('.').next().unwrap_or_default();
            for form in [name.to_owned(), short.to_owned(), short.chars().take(NETBIOS).collect()] {
                let first = found.entry((computer, lower_case(&form))).or_insert(time);
                *first = time.min(*first);
            }
        }
        Ok(Names(found))
    }

    /// Whether a source is a name that the machine has or had.
    fn is_own(&self, computer: Option<&'a str>, source: &str, time: Option<i64>) -> bool {
        let since = || self.0.get(&(computer, lower_case(source))).copied();
        !is_address(source) && time.is_some_and(|time| since().is_some_and(|since| since <= time))
    }
}

/// Takes away sources that are former names of their machine. Windows writes the name of its own for a logon that a program requests; a
/// client can claim it.
pub(crate) fn settle<'a>(
    events: &mut [EventRow<'a>],
    logons: &mut [LogonRow<'a>],
    marks: &[Mark<'a>],
    interrupt: Interrupt<'_>,
) -> Result<(), Interrupted> {
    let names = Names::new(marks, interrupt)?;
    for row in events {
        if row
            .source
            .is_some_and(|source| names.is_own(row.computer, source, row.log_time))
        {
            row.source = None;
            row.claims_own_name |= matches!(row.logon_type, None | Some("3" | "8"));
        }
        if row.topic != "failed logons" && row.account_sid.is_none() {
            (row.account, row.account_sid) = of_windows(row.account);
        }
    }
    for logon in logons {
        if let Some(name) = logon
            .source
            .filter(|source| names.is_own(logon.computer, source, logon.log_time))
        {
            logon.source = None;
            logon.claims_own_name = matches!(logon.logon_type, Some("Network" | "NetworkCleartext"));
            logon.client = Some(name).filter(|_| logon.claims_own_name);
        }
    }
    Ok(())
}

/// The name and the SID of an account of Windows that an event names without its SID, in whatever language. Another account stays as it
/// is.
fn of_windows(account: Option<&str>) -> (Option<&str>, Option<&str>) {
    let named = |table, code| code_name(table, Code::Text(code));
    let sid = account.and_then(|account| named("windows_account", account));
    (sid.and_then(|sid| named("sid_name", sid)).or(account), sid)
}
