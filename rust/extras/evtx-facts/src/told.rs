//! What a record tells for facts. It is read where the record is scanned, and goes to the list of facts as a text in JSON, so that DuckDB
//! keeps neither the record nor a column for each value.

use std::borrow::Cow;
use std::ops::Deref;

use evtx_codes::{Event, LogonStep, RolesReader, UserData};
use evtx_events::{Columns, Evidence, RecordName, Stamp, record_names};
use serde::{Deserialize, Deserializer};

/// The texts of a [`LogonStep`] and its numbers.
type StepForm<T> = ([Option<T>; 11], u8, Option<i32>);

/// A [`RecordName`]: its texts, with the evidence last, and its time.
type NameForm<T> = (T, Option<T>, T, Option<T>, Option<i64>);

/// A text in JSON, borrowed if it has no escapes.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

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

/// What a record tells for facts. JSON has the members in their order, without names, and then `step` and `names`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Told<'t> {
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
    #[serde(skip)]
    names: Vec<NameForm<Text<'t>>>,
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

/// What the record tells, as a text; `None` if it tells nothing. `log` is a number for its log.
pub fn told(
    reader: &mut RolesReader,
    file: Option<&str>,
    record_id: Option<u64>,
    log: Option<u64>,
    of: &Columns<'_>,
) -> Option<String> {
    let document = of.user_data.map(UserData::new);
    let shown = document.iter().flat_map(UserData::shown);
    // A planted event can have both.
    let pairs = of.event_data.unwrap_or_default().iter();
    let fields: Vec<_> = shown
        .chain(pairs.filter_map(|&(key, value)| Some((key, value?))))
        .collect();
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
    let names: Vec<_> = record_names(provider, id, of.time_created, of.user_sid, &fields).collect();
    let tells = is_row || step.is_some() || !names.is_empty();
    if !(tells || Stamp::EVENTS.contains(&id)) {
        return None;
    }
    let stamp = Stamp::read(of);
    if !(tells || stamp.tells()) {
        return None;
    }
    let version = ["MajorVersion", "MinorVersion", "BuildVersion"].map(|name| field(&fields, name));
    let version: Vec<_> = version.into_iter().flatten().collect();
    let version = version.join(".");
    let of_roles = is_row.then(|| {
        (
            roles.event,
            roles.topic,
            roles.level,
            roles.account,
            roles.domain,
            roles.user_sid,
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
    let names = names
        .iter()
        .map(|of| (of.sid, of.domain, of.name, of.evidence.map(Evidence::name), of.seen));
    let names: Vec<NameForm<&str>> = names.collect();
    serde_json::to_string(&(row, step, names)).ok()
}

impl<'t> Told<'t> {
    /// What a text of [`told`] says.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let read = serde_json::from_str(text).map_err(|error| format!("not of evtx_fact_row: {error}"));
        read.map(|(told, step, names)| Told { step, names, ..told })
    }

    /// What it says about a logon session.
    pub(crate) fn step(&self) -> Option<LogonStep<'_>> {
        let (texts, step, logon_type) = self.step.as_ref()?;
        LogonStep::of_texts(texts.each_ref().map(Option::as_deref), *step, *logon_type)
    }

    /// The names that it has with SIDs.
    pub(crate) fn names(&self) -> impl Iterator<Item = RecordName<'_>> {
        self.names.iter().map(|(sid, domain, name, evidence, seen)| RecordName {
            sid,
            domain: domain.as_deref(),
            name,
            evidence: evidence.as_deref().and_then(Evidence::named),
            seen: *seen,
        })
    }
}
