//! An extra column and a row source of this test, which the core does not know.

use std::any::Any;
use std::sync::Arc;

use crate::common::{sample_folder, scan};
use arrow_array::builder::UInt64Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{
    EventPath, ExtraBuilder, ExtraColumn, GroupRows, Keeps, MakeArrays, Options, ReadRecord, RecordHeader,
    Requirements, RowFinder, RowSource, Scan, ScanLayout, Table,
};
use evtx_format::{Interrupt, Interrupted};

/// A column: which of its record's rows a row is, times 1000, and the event ID if the column says that it needs the ID.
#[derive(Debug)]
struct Turn {
    needs_id: bool,
}

#[derive(Debug)]
struct TurnBuilder(UInt64Builder, Option<evtx_arrow::PathId>);

impl ExtraColumn for Turn {
    fn field(&self, name: &str) -> Field {
        Field::new(name, DataType::UInt64, true)
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            paths: Vec::from_iter(self.needs_id.then_some(EventPath::EVENT_ID)),
            ..Requirements::default()
        }
    }

    fn builder(&self, scan: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        assert!(scan.source::<Repeats>().is_some());
        // One value for both columns of a thread.
        assert!(*scan.shared(|| self.needs_id), "of the first column");
        Box::new(TurnBuilder(UInt64Builder::new(), scan.path(EventPath::EVENT_ID)))
    }
}

impl ExtraBuilder for TurnBuilder {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        let turns = rows.found::<Vec<u64>>().expect("what the finder keeps");
        assert_eq!(turns.len(), rows.len());
        for (row, turn) in turns.iter().enumerate() {
            let id = rows.record(row).and_then(|record| record.value_at(self.1?)?.number());
            self.0.append_value(turn * 1000 + id.unwrap_or(0) % 1000);
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.0.append_null();
        Ok(())
    }

    fn finish(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.0.finish()))
    }
}

/// A record has as many rows as its ID modulo 5.
#[derive(Debug, Default)]
struct Repeats;

#[derive(Default)]
struct RepeatsFinder {
    turn: u64,
    rows: u64,
    kept: Vec<u64>,
}

impl RowSource for Repeats {
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    fn of_scan(&self, _: Option<&Keeps<'_>>) -> Arc<dyn RowSource> {
        Arc::new(Repeats)
    }

    fn concerns(&self, _: &[u8], _: Interrupt<'_>) -> Result<Option<bool>, Interrupted> {
        Ok(Some(true))
    }

    fn finder(&self, _: &ScanLayout<'_>) -> Box<dyn RowFinder> {
        Box::<RepeatsFinder>::default()
    }
}

impl RowFinder for RepeatsFinder {
    fn start_chunk(&mut self) {}

    fn begin(&mut self, header: &RecordHeader) -> bool {
        !header.id.is_multiple_of(5)
    }

    fn may_find(&mut self, _: ReadRecord<'_>, _: Interrupt<'_>) -> Result<bool, Interrupted> {
        Ok(true)
    }

    fn find(
        &mut self,
        _: ReadRecord<'_>,
        header: &RecordHeader,
        _: bool,
        _: Interrupt<'_>,
    ) -> Result<usize, Interrupted> {
        (self.turn, self.rows) = (0, header.id % 5);
        Ok(self.rows as usize)
    }

    fn keep(&mut self) {
        self.kept.push(self.turn);
        self.turn += 1;
    }

    fn left(&self) -> usize {
        (self.rows - self.turn) as usize
    }

    fn rows(&self) -> &dyn Any {
        &self.kept
    }

    fn clear(&mut self) {
        self.kept.clear();
    }

    fn reports_damage(&mut self, _: &[u8], _: Interrupt<'_>) -> Result<bool, Interrupted> {
        Ok(true)
    }

    fn reports_chunks(&self) -> bool {
        true
    }
}

#[test]
fn a_column_and_rows_of_another_crate_need_no_change_here() {
    let log = std::fs::read(sample_folder().join("DC01-Security.evtx")).expect("the log");
    let plain = rows(&log, Table::from(Options::default()), ["record_id", "event_id"]);
    let columns: [(&str, Arc<dyn ExtraColumn>); 2] = [
        ("turn", Arc::new(Turn { needs_id: true })),
        ("bare", Arc::new(Turn { needs_id: false })),
    ];
    let table = Table::from(Options::default()).of_rows(Arc::new(Repeats), columns.into());
    assert_eq!(table.schema().field(0).name(), "turn");
    let found = rows(&log, table.clone(), ["record_id", "turn"]);
    let expected: Vec<_> = plain
        .iter()
        .flat_map(|&[record, event]| (0..record % 5).map(move |turn| [record, turn * 1000 + event % 1000]))
        .collect();
    assert!(expected.len() > 100);
    assert_eq!(found, expected);
    // What a column does not ask for, it does not get, even if another column does.
    let both = rows(&log, table, ["turn", "bare"]);
    assert!(both.iter().all(|[turn, bare]| turn / 1000 * 1000 == *bare));
}

/// Two columns of numbers.
fn rows(log: &[u8], table: Table, names: [&str; 2]) -> Vec<[u64; 2]> {
    let columns = names.map(|name| table.schema().index_of(name).expect("a column"));
    let mut found = Vec::new();
    scan(log, "log", Scan::new(table, &columns), |batch| {
        let numbers = [0, 1].map(|column| {
            let cast = |row| match batch.column(column).data_type() {
                DataType::UInt32 => batch
                    .column(column)
                    .as_primitive::<arrow_array::types::UInt32Type>()
                    .value(row)
                    .into(),
                _ => batch.column(column).as_primitive::<UInt64Type>().value(row),
            };
            (0..batch.num_rows()).map(cast).collect::<Vec<u64>>()
        });
        assert!(batch.columns().iter().all(|column| column.null_count() == 0));
        found.extend(numbers[0].iter().zip(&numbers[1]).map(|(&one, &other)| [one, other]));
    })
    .expect("a log");
    found
}
