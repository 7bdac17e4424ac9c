//! The starts of Windows, and how long it ran.

use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::rows::{CITED, EventRow, Fact, Mark, duration, last, last_part};
use crate::runs::{SECOND, is_within, runs, sort};

/// An event that Windows writes when it starts.
#[derive(Debug, Clone, Copy)]
pub struct Starting<'a> {
    /// The machine.
    pub computer: Option<&'a str>,
    /// The place of the event in the order of all.
    pub number: u64,
    /// The time by the clock as it was set last.
    pub log_time: Option<i64>,
    /// The ID of the event. 4688 stands for a program that PID 4 started.
    pub event_id: u32,
    /// The path of this program.
    pub process: Option<&'a str>,
}

impl Starting<'_> {
    /// Whether Windows writes it once for each start, or it is of a program that Windows starts itself.
    fn is_of_windows(&self) -> bool {
        let program = self.process.map_or("", last_part);
        self.event_id != 4688 || ["smss.exe", "registry", "secure system"].contains(&&*program.to_lowercase())
    }
}

/// The number of the first event of each start, with its machine, in order. The events of a start follow each other within
/// minutes, and a start has each once, but for programs. Only the event log may have started (6005), unless the logs have no
/// other event of a start.
///
/// # Errors
/// [`Interrupted`].
pub fn starts<'a>(
    mut events: Vec<Starting<'a>>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<(Option<&'a str>, u64)>, Interrupted> {
    events.retain(Starting::is_of_windows);
    sort(&mut events, |event| (last(event.computer), event.number), interrupt)?;
    let kernels = events
        .iter()
        .filter(|event| event.event_id == 12)
        .map(|event| event.computer);
    let kernels: HashSet<_> = kernels.collect();
    let bursts = runs(
        &events,
        |event| event.computer,
        |before, event| is_within(300 * SECOND, before.log_time, event.log_time),
        interrupt,
    )?;
    let mut found = Vec::new();
    for burst in bursts {
        let (mut counts, mut all): (HashMap<u32, usize>, Vec<Vec<&Starting<'_>>>) = Default::default();
        for event in burst {
            let count = counts.entry(event.event_id).or_default();
            *count = if event.event_id == 4688 { 1 } else { *count + 1 };
            if *count > all.len() {
                all.push(Vec::new());
            }
            all.last_mut().into_iter().for_each(|start| start.push(event));
        }
        let is_sure = |start: &&Vec<&Starting<'_>>| {
            start.iter().any(|event| event.event_id != 6005) || !kernels.contains(&start[0].computer)
        };
        found.extend(
            all.iter()
                .filter(is_sure)
                .map(|start| (start[0].computer, start[0].number)),
        );
    }
    found.sort_unstable_by_key(|&(computer, number)| (last(computer), number));
    Ok(found)
}

/// The events of starts, each with its number in the order of all, in order. The event log can write that it started (6005) before what
/// the kernel says of this start (12), which happened before it.
fn starting<'a>(events: &[EventRow<'a>], interrupt: Interrupt<'_>) -> Result<Vec<(usize, EventRow<'a>)>, Interrupted> {
    let found = events.iter().copied().enumerate();
    let mut found: Vec<_> = found
        .filter(|(_, row)| row.is_start() && row.computer.is_some())
        .collect();
    let mut of_logs: Vec<_> = (0..found.len())
        .filter(|&at| [12, 6005].contains(&found[at].1.id()))
        .collect();
    sort(
        &mut of_logs,
        |&at| (found[at].1.record.file, found[at].1.record.record_id),
        interrupt,
    )?;
    for pair in of_logs.windows(2) {
        let [(_, log), (number, kernel)] = [pair[0], pair[1]].map(|at| found[at]);
        let is_of_start = (log.id(), kernel.id()) == (6005, 12)
            && (log.computer, log.record.file) == (kernel.computer, kernel.record.file)
            && is_within(0, log.record.time, kernel.record.time)
            && is_within(300 * SECOND, kernel.record.time, log.record.time);
        if let Some((time, (before, placed))) = log.record.time.zip(kernel.record.time.zip(kernel.log_time))
            && is_of_start
        {
            let log_time = Some(placed.saturating_add(time - before));
            found[pair[0]] = (number, EventRow { log_time, ..log });
        }
    }
    sort(&mut found, |(number, row)| (last(row.computer), *number), interrupt)?;
    Ok(found)
}

pub(crate) fn facts<'a>(
    events: &[EventRow<'a>],
    marks: &[Mark<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let starting = starting(events, interrupt)?;
    let as_event = |(number, row): &(usize, EventRow<'a>)| Starting {
        computer: row.computer,
        number: *number as u64,
        log_time: row.log_time,
        event_id: row.id(),
        process: None,
    };
    let starts = starts(starting.iter().map(as_event).collect(), interrupt)?;
    let mut marks: Vec<_> = marks.iter().filter(|mark| mark.log_time.is_some()).collect();
    sort(
        &mut marks,
        |mark| (last(mark.computer), mark.log_time, mark.record),
        interrupt,
    )?;
    let place = |(number, row): &(usize, EventRow<'a>)| (last(row.computer), *number as u64);
    let mut found: Vec<Fact<'_>> = Vec::new();
    let mut next: Option<(Option<&str>, Option<i64>)> = None;
    // From the last to the first: a start ends before the next one.
    let mut end = starting.len();
    for (step, &(computer, first)) in starts.iter().enumerate().rev() {
        interrupt.check_step(step)?;
        let start = starting.partition_point(|event| place(event) < (last(computer), first));
        let rows: Vec<_> = starting[start..end]
            .iter()
            .map(|(_, row)| row)
            .filter(|row| row.computer == computer)
            .collect();
        end = start;
        let since = rows.iter().filter_map(|row| row.log_time).min();
        let until = next.filter(|(of, _)| *of == computer).and_then(|(_, time)| time);
        next = Some((computer, since));
        let is_until =
            |mark: &&Mark<'_>| (last(mark.computer), mark.log_time) < (last(computer), until.or(Some(i64::MAX)));
        let ended = marks[..marks.partition_point(is_until)]
            .last()
            .filter(|mark| mark.computer == computer);
        let version = rows.iter().filter_map(|row| row.version).max();
        let ran = ended.and_then(|mark| mark.log_time).zip(since);
        let ran = ran.map(|(end, start)| {
            format!(
                "ran for {}",
                duration((i128::from(end) - i128::from(start)) as f64 / 1e9)
            )
        });
        let detail: Vec<_> = version
            .map(|version| format!("version {version}"))
            .into_iter()
            .chain(ran)
            .collect();
        let fact = Fact::of("starts", &rows);
        found.push(Fact {
            fact: "Windows started".into(),
            last: ended.and_then(|mark| mark.record.time),
            events: rows.len().min(CITED) as u64,
            detail: (!detail.is_empty()).then(|| detail.join("; ").into()),
            evidence: rows
                .iter()
                .take(CITED)
                .map(|row| row.record)
                .chain(ended.map(|mark| mark.record))
                .collect(),
            ..fact
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(minute: i64, event_id: u32, process: Option<&'static str>) -> Starting<'static> {
        Starting {
            computer: Some("pc"),
            number: minute as u64,
            log_time: Some(minute * 60_000_000_000),
            event_id,
            process,
        }
    }

    #[test]
    fn the_events_of_a_start_are_one() {
        let found = |events: &[Starting<'static>]| {
            let found = starts(events.to_vec(), Interrupt::NEVER).expect("no interrupt");
            found.into_iter().map(|(_, number)| number).collect::<Vec<_>>()
        };
        // The second 12 within minutes is that of the next start, and programs begin none.
        let smss = Some(r"\Device\Windows\System32\smss.exe");
        assert_eq!(
            found(&[
                event(3, 12, None),
                event(0, 12, None),
                event(1, 6005, None),
                event(2, 4688, smss)
            ]),
            [0, 3]
        );
        assert_eq!(
            found(&[
                event(0, 12, None),
                event(30, 4688, Some("a.exe")),
                event(40, 4688, smss)
            ]),
            [0, 40]
        );
        // The event log also starts on its own.
        assert_eq!(found(&[event(0, 12, None), event(60, 6005, None)]), [0]);
        assert_eq!(found(&[event(60, 6005, None)]), [60]);
    }
}
