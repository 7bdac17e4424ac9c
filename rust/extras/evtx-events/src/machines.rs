//! The machine that each name of a computer stands for: machines get new names, and those of one image had the same name once.

use std::collections::{BTreeMap, BTreeSet};

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::order::{last, least, widen};

/// How many new names of one machine are followed.
const RENAMES: usize = 50;

/// How many characters of a name NetBIOS keeps.
const LONGEST: usize = 15;

/// What the records of one channel in a file say that have the same name of a computer.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComputerName<'a> {
    /// The file.
    pub file: &'a str,
    /// The name, as the records have it.
    pub computer: &'a str,
    /// The channel.
    pub channel: Option<&'a str>,
    /// How many records there are. 0 if this is what an event tells of names.
    pub records: u64,
    /// The least and the greatest number of an event.
    pub numbers: [Option<u64>; 2],
    /// The times of these two, in nanoseconds. For what an event tells, its time is the second.
    pub times: [Option<i64>; 2],
    /// The least and the greatest difference between the number of an event and that of its record.
    pub shifts: [Option<i128>; 2],
    /// The host names before and after, in lower case, if an event tells of a new name.
    pub renamed: [Option<&'a str>; 2],
    /// The SID of the machine, with which those of its accounts begin.
    pub own_sid: Option<&'a str>,
}

/// What the records of one channel in a file say that are of the same name.
#[derive(Debug, Clone, Copy, Default)]
struct Named<'a> {
    records: u64,
    numbers: [Option<u64>; 2],
    /// The numbers of the first and of the last event with a time, and these times.
    ends: [Option<(u64, i64)>; 2],
    shifts: [Option<i128>; 2],
    own_sid: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn add(&mut self, one: &ComputerName<'a>) {
        widen(&mut self.shifts, one.shifts);
        self.own_sid = least(self.own_sid, one.own_sid);
        if one.records > 0 {
            self.records = one.records.saturating_add(self.records);
            widen(&mut self.numbers, one.numbers);
            let end = |at: usize| one.numbers[at].zip(one.times[at]);
            widen(&mut self.ends, [end(0), end(1)]);
        }
    }

    /// The times of its first and of its last event.
    fn times(&self) -> [Option<i64>; 2] {
        self.ends.map(|end| end.map(|(_, time)| time))
    }
}

/// The names in each channel of each file.
type Logs<'a> = BTreeMap<(&'a str, Option<&'a str>), BTreeMap<&'a str, Named<'a>>>;

/// A log of one machine, by the last of its names.
#[derive(Debug, Clone, Copy)]
struct Joined<'a> {
    file: &'a str,
    channel: &'a str,
    has_several: bool,
    final_name: &'a str,
    /// Since when it has this name.
    since: Option<i64>,
    last: Option<i64>,
}

/// Whether a log with several names says what a machine was called last, when, the name, and since when. The greatest counts.
type Called<'a> = (bool, (bool, Option<i64>), &'a str, Option<i64>);

/// What the logs of a file say: the name that they end with, if it is one, since when, and all names.
#[derive(Debug, Default)]
struct OfFile<'a> {
    only: Option<&'a str>,
    since: Option<i64>,
    has_several: bool,
    all: HashSet<&'a str>,
}

/// When the logs in each channel are that have one name and no other, by folder and name in lower case.
type OwnLogs<'a> = HashMap<(&'a str, String), HashMap<&'a str, [Option<i64>; 2]>>;

/// The logs of a folder that have one name each, and no other: when they are, and which numbers their events have in each channel.
#[derive(Debug, Default)]
struct Alone<'a> {
    times: [Option<i64>; 2],
    numbers: HashMap<&'a str, [Option<u64>; 2]>,
}

/// Whether two spans overlap. What is not known does not.
fn overlap<T: Ord>(one: [Option<T>; 2], other: [Option<T>; 2], is_before: fn(&T, &T) -> bool) -> bool {
    let ([Some(start), Some(end)], [Some(other_start), Some(other_end)]) = (one, other) else {
        return false;
    };
    is_before(&start, &other_end) && is_before(&other_start, &end)
}

fn folder(file: &str) -> &str {
    file.rfind(['/', '\\']).map_or("", |end| &file[..end])
}

fn host(key: &str) -> &str {
    key.split('.').next().unwrap_or_default()
}

/// Groups logs by their folder and their computer. Logs with several computers and logs of forwarded events are left out. `folder`
/// returns the folder of a file.
fn own_logs<'a>(said: &[ComputerName<'a>], folder: fn(&'a str) -> &'a str) -> OwnLogs<'a> {
    let mut logs: HashMap<(&str, &str), HashMap<&str, Named<'a>>> = HashMap::new();
    for one in said.iter().filter(|one| one.records > 0) {
        if let Some(channel) = one.channel {
            let names = logs.entry((one.file, channel)).or_default();
            names.entry(one.computer).or_default().add(one);
        }
    }
    let mut own = OwnLogs::new();
    for ((file, channel), names) in logs {
        let [(computer, of)] = names.into_iter().collect::<Vec<_>>()[..] else {
            continue;
        };
        if of.shifts[0].is_some() && of.shifts[0] == of.shifts[1] {
            let channels = own.entry((folder(file), lower_case(computer))).or_default();
            widen(channels.entry(channel).or_default(), of.times());
        }
    }
    own
}

/// Whether two names are of two machines: each has a log of its own in the same channel, at the same time.
fn are_apart(own: &OwnLogs<'_>, folder: &str, names: [&str; 2]) -> bool {
    let [one, other] = names.map(|name| own.get(&(folder, lower_case(name))));
    let with = |other: &HashMap<&str, [Option<i64>; 2]>, channel: &str, times| {
        other
            .get(channel)
            .is_some_and(|&theirs| overlap(times, theirs, i64::lt))
    };
    one.zip(other)
        .is_some_and(|(one, other)| one.iter().any(|(channel, &times)| with(other, channel, times)))
}

/// The name and the host for each name in lower case. Names differ neither in their case, nor in what NetBIOS leaves out of them.
fn same_names<'a>(said: &[ComputerName<'a>]) -> HashMap<String, (&'a str, String)> {
    let mut records: HashMap<&str, u64> = HashMap::new();
    for one in said {
        let known = records.entry(one.computer).or_default();
        *known = one.records.saturating_add(*known);
    }
    let mut names: HashMap<String, (u64, &str)> = HashMap::new();
    for (computer, records) in records {
        let name = names.entry(lower_case(computer)).or_default();
        *name = (records, computer).max(*name);
    }
    let mut longer: HashMap<String, Option<&String>> = HashMap::new();
    for key in names.keys() {
        if let Some((end, _)) = host(key).char_indices().nth(LONGEST) {
            longer
                .entry(key[..end].to_owned())
                .and_modify(|only| *only = None)
                .or_insert(Some(key));
        }
    }
    let own_logs = own_logs(said, |_| "");
    let of = |key: &String| {
        // A name with a domain is not one of NetBIOS.
        let longer = longer.get(key.as_str()).copied().flatten();
        let own = longer
            .filter(|longer| !are_apart(&own_logs, "", [key, longer]))
            .unwrap_or(key);
        (key.clone(), (names[own].1, host(own).to_owned()))
    };
    names.keys().map(of).collect()
}

/// The log, if all its names are of one machine: the numbers of its records go on from one name to the next, or at least rise, and the
/// SID of the machine stays. Two records prove nothing, and neither do forwarded events, which have the numbers of several logs.
fn joined<'a>(file: &'a str, channel: &'a str, names: &BTreeMap<&'a str, Named<'a>>) -> Option<Joined<'a>> {
    let mut in_order: Vec<_> = names.iter().collect();
    in_order.sort_by_key(|(name, of)| (of.numbers.map(last), **name));
    let (mut whole, mut shifts, mut records, mut steps) = ([None; 2], [None; 2], 0_u64, Vec::new());
    for (_, of) in &in_order {
        let step = of.numbers[0].zip(whole[1]);
        steps.extend(step.map(|(first, before): (u64, u64)| i128::from(first) - i128::from(before)));
        widen(&mut whole, of.numbers);
        widen(&mut shifts, of.shifts);
        records = of.records.saturating_add(records);
    }
    let own_sid = in_order.first()?.1.own_sid;
    let has_sid = own_sid.is_some() && in_order.iter().all(|(_, of)| of.own_sid == own_sid);
    let fits = matches!(whole, [Some(first), Some(last)] if records <= last.abs_diff(first).saturating_add(1));
    let is_steady = shifts[0].is_some() && shifts[0] == shifts[1];
    let goes_on = steps.iter().all(|&step| step <= 1) && is_steady && fits;
    let rises = steps.iter().all(|&step| step > 0) && has_sid;
    let is_one = !file.is_empty() && records > 2 && !steps.is_empty() && (goes_on || rises);
    let (final_name, of_final) = in_order.iter().max_by_key(|(name, of)| (last(of.numbers[1]), **name))?;
    let end = in_order.iter().filter_map(|(_, of)| of.ends[1]).max();
    (names.len() == 1 || is_one).then_some(Joined {
        file,
        channel,
        has_several: names.len() > 1,
        final_name,
        since: of_final.ends[0].map(|(_, time)| time),
        last: end.map(|(_, time)| time),
    })
}

/// The logs whose names are of one machine. Logs with one name each show two machines if both write at the same time, and only one
/// other log has both names, or both use the same numbers of records.
fn joined_logs<'a>(logs: &Logs<'a>, interrupt: Interrupt<'_>) -> Result<Vec<Joined<'a>>, Interrupted> {
    let (mut alone, mut all): (HashMap<_, Alone<'_>>, Vec<_>) = Default::default();
    // The channels in which a name is followed by another.
    let mut witnesses: HashMap<_, HashSet<&str>> = HashMap::new();
    for (index, (&(file, channel), names)) in logs.iter().enumerate() {
        interrupt.check_step(index)?;
        if let (1, Some((&name, of))) = (names.len(), names.first_key_value()) {
            let found = alone.entry((folder(file), name)).or_default();
            widen(&mut found.times, of.times());
            if let Some(channel) = channel {
                widen(found.numbers.entry(channel).or_default(), of.numbers);
            }
        }
        let Some(log) = channel.and_then(|channel| joined(file, channel, names)) else {
            continue;
        };
        for &name in names.keys().filter(|name| **name != log.final_name) {
            witnesses
                .entry((folder(file), name, log.final_name))
                .or_default()
                .insert(log.channel);
        }
        all.push(log);
    }
    let shows_two = |folder: &str, name: &str, final_name: &str| {
        let (Some(one), Some(other)) = (alone.get(&(folder, name)), alone.get(&(folder, final_name))) else {
            return false;
        };
        let share = |(channel, &numbers): (&&str, &[Option<u64>; 2])| {
            other
                .numbers
                .get(channel)
                .is_some_and(|&theirs| overlap(numbers, theirs, u64::le))
        };
        overlap(one.times, other.times, i64::lt)
            && (witnesses
                .get(&(folder, name, final_name))
                .is_some_and(|channels| channels.len() == 1)
                || one.numbers.iter().any(share))
    };
    let two: HashSet<_> = witnesses
        .keys()
        .filter(|&&(folder, name, last)| shows_two(folder, name, last))
        .copied()
        .collect();
    all.retain(|log| {
        let names = logs[&(log.file, Some(log.channel))].keys();
        !names
            .into_iter()
            .any(|&name| two.contains(&(folder(log.file), name, log.final_name)))
    });
    Ok(all)
}

/// The last name of the machine that each name stands for.
///
/// # Errors
/// [`Interrupted`].
pub fn machines<'a>(said: &[ComputerName<'a>], interrupt: Interrupt<'_>) -> Result<Vec<String>, Interrupted> {
    let names = same_names(said);
    let own: Vec<_> = said.iter().map(|one| &names[&lower_case(one.computer)]).collect();
    let mut logs = Logs::new();
    let mut hosts: HashMap<(&str, &str), BTreeSet<&str>> = HashMap::new();
    for (index, (one, &(name, ref host))) in said.iter().zip(own.iter().copied()).enumerate() {
        interrupt.check_step(index)?;
        hosts.entry((folder(one.file), host)).or_default().insert(name);
        let names = logs.entry((one.file, one.channel)).or_default();
        names.entry(name).or_default().add(one);
    }
    let joined = joined_logs(&logs, interrupt)?;
    let own_logs = own_logs(said, folder);

    // What machines with a name were called last, by the logs of a folder. Machines of one image had the same name once.
    let mut called: HashMap<(&str, &str), Called<'_>> = HashMap::new();
    // When a machine with a name last had it, if it got another one.
    let mut left: HashMap<(&str, &str), Option<i64>> = HashMap::new();
    let mut call = |folder, name, until: Option<i64>, final_name| {
        let known = called.entry((folder, name)).or_insert(final_name);
        *known = final_name.max(*known);
        if name != final_name.2 {
            let known = left.entry((folder, name)).or_default();
            *known = until.max(*known);
        }
    };
    // In a log of forwarded events, another machine may have names that prove nothing.
    let mut of_files: HashMap<&str, OfFile<'_>> = HashMap::new();
    for log in &joined {
        let of_file = of_files.entry(log.file).or_insert_with(|| OfFile {
            only: Some(log.final_name),
            ..OfFile::default()
        });
        of_file.only = of_file.only.filter(|name| *name == log.final_name);
        of_file.has_several |= log.has_several;
        let since = log.since.filter(|_| log.has_several);
        of_file.since = least(of_file.since, since);
        for (&name, of) in &logs[&(log.file, Some(log.channel))] {
            of_file.all.insert(name);
            let until = of.times()[1];
            let final_name = (log.has_several, last(log.last), log.final_name, since);
            call(folder(log.file), name, until, final_name);
        }
    }
    for one in said {
        let [Some(before), Some(after)] = one.renamed else {
            continue;
        };
        let of = |host| hosts.get(&(folder(one.file), host));
        if let Some(after) = of(after).and_then(BTreeSet::last) {
            let of_before = of(before).into_iter().flatten();
            for &name in of_before.filter(|name| !are_apart(&own_logs, folder(one.file), [name, after])) {
                // The event has the new name.
                let until = one.times[1].map(|time| time.saturating_sub(1));
                call(
                    folder(one.file),
                    name,
                    until,
                    (true, last(one.times[1]), after, one.times[1]),
                );
            }
        }
    }
    // A machine that got a name after another one had left it does not follow that one.
    let final_name = |folder, mut name, mut since: Option<i64>| {
        for _ in 0..RENAMES {
            let until = left.get(&(folder, name)).copied().flatten();
            match called.get(&(folder, name)) {
                Some(&(_, _, next, next_since))
                    if next != name && since.zip(until).is_none_or(|(since, until)| since <= until) =>
                {
                    (name, since) = (next, next_since);
                }
                _ => break,
            }
        }
        name
    };
    let mut elsewhere: HashMap<&str, Option<&str>> = HashMap::new();
    for (index, &(folder, name)) in called.keys().enumerate() {
        interrupt.check_step(index)?;
        let final_name = final_name(folder, name, None);
        let only = elsewhere.entry(name).or_insert(Some(final_name));
        *only = only.filter(|only| *only == final_name);
    }
    let machine = |(one, &(name, _)): (&ComputerName<'a>, &(&'a str, String))| {
        let of_file = of_files
            .get(one.file)
            .filter(|of_file| of_file.has_several && of_file.all.contains(name));
        let (known, since) = of_file
            .and_then(|of_file| Some((of_file.only?, of_file.since)))
            .unwrap_or((name, None));
        let renamed = called
            .contains_key(&(folder(one.file), known))
            .then(|| final_name(folder(one.file), known, since));
        renamed
            .or(elsewhere.get(known).copied().flatten())
            .unwrap_or(name)
            .to_owned()
    };
    Ok(said.iter().zip(own.iter().copied()).map(machine).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log<'a>(file: &'a str, computer: &'a str, numbers: [u64; 2]) -> ComputerName<'a> {
        ComputerName {
            file,
            computer,
            channel: Some("System"),
            records: numbers[1] - numbers[0] + 1,
            numbers: numbers.map(Some),
            times: numbers.map(|number| Some(number as i64)),
            shifts: [Some(0); 2],
            ..ComputerName::default()
        }
    }

    fn machines_of(said: &[ComputerName<'_>]) -> Vec<String> {
        machines(said, Interrupt::NEVER).expect("machines")
    }

    #[test]
    fn numbers_that_go_on_show_one_machine() {
        assert_eq!(
            machines_of(&[log("x/1", "a", [1, 2]), log("x/1", "B", [3, 5])]),
            ["B", "B"]
        );
        assert_eq!(
            machines_of(&[log("x/1", "a", [1, 2]), log("x/1", "B", [4, 5])]),
            ["a", "B"]
        );
        assert_eq!(
            machines_of(&[log("x/1", "a", [1, 1]), log("x/1", "B", [2, 2])]),
            ["a", "B"]
        );
        let with_sid = |of: ComputerName<'static>, own_sid| ComputerName {
            own_sid: Some(own_sid),
            ..of
        };
        for (sid, names) in [("S-1", ["b", "b"]), ("S-2", ["a", "b"])] {
            let said = [
                with_sid(log("x/1", "a", [1, 2]), "S-1"),
                with_sid(log("x/1", "b", [9, 9]), sid),
            ];
            assert_eq!(machines_of(&said), names, "{sid}");
        }
    }

    #[test]
    fn other_logs_contradict_a_log() {
        let planted = [log("x/1", "a", [1, 2]), log("x/1", "b", [3, 3])];
        let both = |numbers| [&planted[..], &[log("x/2", "a", [11, 19]), log("x/3", "b", numbers)]].concat();
        assert_eq!(machines_of(&both([12, 18])), ["a", "b", "a", "b"]);
        assert_eq!(machines_of(&both([21, 28])), ["b", "b", "b", "b"]);
        // In another folder, the name is that of another machine.
        let other = [&planted[..], &[log("y/2", "A", [7, 9])]].concat();
        assert_eq!(machines_of(&other), ["b", "b", "A"]);
    }

    #[test]
    fn events_tell_of_new_names() {
        let told = ComputerName {
            renamed: [Some("a"), Some("b")],
            channel: Some("System"),
            file: "x/2",
            computer: "b",
            ..ComputerName::default()
        };
        let said = [log("x/1", "a", [1, 3]), log("x/2", "b", [4, 6]), told];
        assert_eq!(machines_of(&said), ["b", "b", "b"]);
        assert_eq!(machines_of(&said[..2]), ["a", "b"]);
        // Both names write at the same time.
        assert_eq!(
            machines_of(&[log("x/1", "a", [1, 4]), log("x/2", "b", [2, 3]), told]),
            ["a", "b", "b"]
        );
        // Names that follow each other in a circle end somewhere.
        let back = ComputerName {
            renamed: [Some("b"), Some("a")],
            ..told
        };
        assert_eq!(machines_of(&[&said[..], &[back]].concat()).len(), 4);
    }

    #[test]
    fn a_machine_takes_the_name_that_another_one_has_left() {
        let at = |file, computer, numbers, times: [i64; 2]| ComputerName {
            times: times.map(Some),
            ..log(file, computer, numbers)
        };
        let said = [
            at("x/b", "2", [1, 9], [10, 19]),
            at("x/b", "3", [10, 19], [20, 39]),
            at("x/a", "1", [1, 9], [10, 19]),
            at("x/a", "2", [10, 19], [25, 35]),
        ];
        assert_eq!(machines_of(&said), ["3", "3", "2", "2"]);
        // The new name of the first machine is only in an event.
        let told = ComputerName {
            renamed: [Some("2"), Some("3")],
            times: [None, Some(20)],
            file: "x/b",
            computer: "3",
            ..ComputerName::default()
        };
        assert_eq!(machines_of(&[&said[1..], &[told]].concat()), ["3", "2", "2", "3"]);
        // Another log of the same machine.
        let other = [at("x/c", "1", [1, 9], [5, 9]), at("x/c", "2", [10, 19], [10, 18])];
        assert_eq!(machines_of(&[&said[..2], &other].concat()), ["3"; 4]);
    }

    #[test]
    fn names_differ_in_case_and_where_netbios_cuts_them() {
        let said = [
            log("1", "PC.corp", [1, 3]),
            log("2", "pc.CORP", [1, 2]),
            log("3", "FILESERVER-BERL", [1, 1]),
            log("4", "FileServer-Berlin1.corp", [1, 1]),
        ];
        assert_eq!(
            machines_of(&said),
            [
                "PC.corp",
                "PC.corp",
                "FileServer-Berlin1.corp",
                "FileServer-Berlin1.corp"
            ]
        );
        let other = log("5", "fileserver-berlin2", [1, 1]);
        assert_eq!(machines_of(&[&said[2..], &[other]].concat())[0], "FILESERVER-BERL");
        // Two hosts that write at the same time.
        let apart = [
            log("1", "srv-berlin-0001", [1, 3]),
            log("2", "srv-berlin-00012", [2, 4]),
        ];
        assert_eq!(machines_of(&apart), ["srv-berlin-0001", "srv-berlin-00012"]);
        // Their hours come one by one.
        let more = [&apart[..], &[log("1", "srv-berlin-0001", [5, 9])]].concat();
        assert_eq!(machines_of(&more)[0], "srv-berlin-0001");
    }
}
