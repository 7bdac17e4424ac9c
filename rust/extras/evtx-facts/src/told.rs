//! What a record tells for facts. It is read where the record is scanned, and goes to the list of facts as a text in JSON, so that DuckDB
//! keeps neither the record nor a column for each value.

use evtx_codes::{Event, LogonStep, RolesReader, UserData};
use evtx_events::{Columns, RecordNames, Stamp, Text, ToldName};
use serde::{Deserialize, Deserializer};

/// The texts of a [`LogonStep`] and its numbers.
type StepForm<T> = ([Option<T>; 11], u8, Option<i32>);

/// The roles of an event. JSON has the members in their order, without names.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Roles<'t> {
    #[serde(borrow)]
    pub(crate) event: Option<Text<'t>>,
    pub(crate) topic: Option<Text<'t>>,
    pub(crate) level: Option<Text<'t>>,
    pub(crate) account: Option<Text<'t>>,
    pub(crate) domain: Option<Text<'t>>,
    pub(crate) user_sid: Option<Text<'t>>,
    pub(crate) remote_host: Option<Text<'t>>,
    pub(crate) process: Option<Text<'t>>,
    pub(crate) target: Option<Text<'t>>,
    pub(crate) detail: Option<Text<'t>>,
    pub(crate) claims_own_name: bool,
    pub(crate) is_windows: bool,
    pub(crate) member_sid: Option<Text<'t>>,
    pub(crate) logon_type: Option<Text<'t>>,
    pub(crate) zone: Option<Text<'t>>,
    pub(crate) version: Option<Text<'t>>,
}

/// What a record tells for facts. JSON has the members in their order, without names, and then `step`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Told<'t> {
    #[serde(borrow)]
    pub(crate) file: Option<Text<'t>>,
    pub(crate) record_id: Option<u64>,
    /// A number for its log.
    pub(crate) log: Option<u64>,
    pub(crate) computer: Option<Text<'t>>,
    pub(crate) channel: Option<Text<'t>>,
    pub(crate) provider: Option<Text<'t>>,
    pub(crate) number: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) event_id: Option<u32>,
    #[serde(deserialize_with = "joined")]
    pub(crate) digest: i128,
    pub(crate) change: [Option<i64>; 2],
    pub(crate) wake_time: Option<i64>,
    pub(crate) is_late: bool,
    pub(crate) renamed: [Option<Text<'t>>; 2],
    pub(crate) own_sid: Option<Text<'t>>,
    /// If it has a topic, or is of a connection or a start.
    pub(crate) roles: Option<Roles<'t>>,
    #[serde(skip)]
    step: Option<StepForm<Text<'t>>>,
}

/// The number with these halves.
fn joined<'de, D: Deserializer<'de>>(halves: D) -> Result<i128, D::Error> {
    let [high, low] = <[u64; 2]>::deserialize(halves)?;
    Ok(i128::from(high) << 64 | i128::from(low))
}

/// The value of a field, also an empty one.
fn field<'a>(fields: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| *key == name).map(|&(_, value)| value)
}

/// What the record tells, as a text on one line; `None` if it tells nothing, or has no time. Adds its names. `log` is a number for its log.
pub fn told(
    reader: &mut RolesReader,
    names: &mut RecordNames,
    file: Option<&str>,
    record_id: Option<u64>,
    log: Option<u64>,
    of: &Columns<'_>,
) -> Option<String> {
    let document = of.user_data.map(UserData::new);
    let fields = of.fields(document.as_ref());
    let (provider, id) = (of.provider.unwrap_or_default(), of.event_id.unwrap_or_default());
    let element = document.as_ref().and_then(|document| document.element.as_deref());
    let roles = reader.read_roles(&Event {
        provider,
        event_id: id,
        fields: &fields,
        element: element.unwrap_or_default(),
        computer: of.computer.unwrap_or_default(),
        user_sid: of.user_sid,
    });
    let is_in_security = of
        .channel
        .is_none_or(|channel| channel.eq_ignore_ascii_case("Security"));
    let is_of_security = provider.eq_ignore_ascii_case("Microsoft-Windows-Security-Auditing");
    let step = LogonStep::read(provider, id, &fields, of.user_sid).filter(|_| is_in_security || !is_of_security);
    // Event 131 only tells where failures come from, and 4826 that Windows starts.
    let is_row = roles.topic.is_some() || roles.event.is_some() && [131, 4826].contains(&id);
    names.add(log, record_id, of, &fields);
    let tells = is_row || step.is_some();
    if of.time_created.is_none() || !(tells || Stamp::EVENTS.contains(&id)) {
        return None;
    }
    let stamp = Stamp::read(of);
    if !(tells || stamp.tells()) {
        return None;
    }
    let version = ["MajorVersion", "MinorVersion", "BuildVersion"].map(|name| field(&fields, name));
    let version: Vec<_> = version.into_iter().flatten().collect();
    let version = version.join(".");
    // Who writes of a failed logon is not who failed.
    let is_of_writer = roles.topic == Some("failed logons") && roles.is_of_writer;
    let of_roles = is_row.then(|| {
        (
            roles.event,
            roles.topic,
            roles.level,
            roles.account,
            roles.domain,
            roles.user_sid.filter(|_| !is_of_writer),
            roles.remote_host.as_deref(),
            roles.process,
            roles.target,
            roles.detail.as_deref(),
            roles.claims_own_name,
            roles.is_windows,
            field(&fields, "MemberSid").filter(|sid| !sid.is_empty()),
            field(&fields, "LogonType"),
            field(&fields, "param7").filter(|_| id == 6013 && roles.topic == Some("starts")),
            Some(&*version).filter(|version| id == 12 && !version.is_empty()),
        )
    });
    let step: Option<StepForm<&str>> = step.as_ref().map(|step| (step.texts(), step.step, step.logon_type));
    let row = (
        file,
        record_id,
        log,
        of.computer,
        of.channel,
        of.provider,
        of.event_record_id,
        of.time_created,
        of.event_id,
        [(stamp.digest >> 64) as u64, stamp.digest as u64],
        stamp.change,
        stamp.wake_time,
        stamp.is_late,
        stamp.renamed,
        stamp.own_sid,
        of_roles,
    );
    serde_json::to_string(&(row, step)).ok()
}

impl Told<'_> {
    /// What it says about a logon session.
    pub(crate) fn step(&self) -> Option<LogonStep<'_>> {
        let (texts, step, logon_type) = self.step.as_ref()?;
        LogonStep::of_texts(texts.each_ref().map(Option::as_deref), *step, *logon_type)
    }
}

/// What lines of [`told`] and of [`RecordNames`] say.
#[derive(Debug, Default)]
pub struct Said<'t> {
    pub(crate) told: Vec<Told<'t>>,
    pub(crate) names: Vec<ToldName<'t>>,
}

impl<'t> Said<'t> {
    /// Adds a line.
    ///
    /// # Errors
    /// If it is none.
    pub fn add(&mut self, line: &'t str) -> Result<(), String> {
        let read = match ToldName::read(line) {
            Some(name) => name.map(|name| self.names.push(name)),
            None => serde_json::from_str(line).map(|(told, step)| self.told.push(Told { step, ..told })),
        };
        read.map_err(|error| format!("not of evtx_fact_row: {error}"))
    }
}
