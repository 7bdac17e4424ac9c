//! Logs that overwrote their oldest records, and the other names of machines.

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::rows::{Fact, Mark, last};

pub(crate) fn facts<'a>(
    marks: &[Mark<'a>],
    wrapped: &[&str],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let wrapped: HashSet<_> = wrapped.iter().copied().collect();
    let (mut logs, mut names): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
    for (step, mark) in marks.iter().enumerate() {
        interrupt.check_step(step)?;
        if let Some(file) = mark.record.file.filter(|file| wrapped.contains(file)) {
            logs.entry(file).or_default().push(mark);
        }
        if let Some((name, computer)) = mark.name.zip(mark.computer) {
            let name = lower_case(name);
            if name != lower_case(computer) {
                names.entry((computer, name)).or_default().push(mark);
            }
        }
    }
    let of_log = |mut marks: Vec<&Mark<'a>>| {
        marks.sort_unstable_by_key(|mark| (last(mark.log_time), mark.record));
        Fact {
            computer: marks.iter().find_map(|mark| mark.computer),
            fact: "Log overwrote its oldest records".into(),
            target: marks.iter().find_map(|mark| mark.channel),
            ..Fact::of_records(
                "cleared logs",
                marks[..1].iter().map(|mark| mark.record),
                std::iter::empty(),
            )
        }
    };
    let of_name = |(computer, mut marks): (&'a str, Vec<&Mark<'a>>)| {
        marks.sort_unstable_by_key(|mark| (last(mark.record.time), mark.record));
        let ends = [marks[0].record, marks[marks.len() - 1].record];
        Fact {
            computer: Some(computer),
            level: "low",
            fact: "Computer had another name".into(),
            events: 0,
            target: marks.iter().filter_map(|mark| mark.name).min(),
            ..Fact::of_records("identities", ends.into_iter(), std::iter::empty())
        }
    };
    let names = names
        .into_iter()
        .map(|((computer, _), marks)| of_name((computer, marks)));
    Ok(logs.into_values().map(of_log).chain(names).collect())
}
