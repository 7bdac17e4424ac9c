//! The column `filename`: the files of the rows of a batch.

use std::sync::Arc;

use arrow_array::StringArray;

use crate::arrays::Indices;

/// The names of the files of a batch, one at least, each with the index of its first row.
#[derive(Debug)]
pub(crate) struct FileRows(Vec<(Arc<str>, usize)>);

impl Default for FileRows {
    fn default() -> Self {
        FileRows(vec![("".into(), 0)])
    }
}

impl FileRows {
    pub(crate) fn begin(&mut self, name: &Arc<str>, row: usize) {
        // Files without rows do not stay.
        while self.0.pop_if(|(_, first)| *first >= row).is_some() {}
        if self.0.last().is_none_or(|(last, _)| last != name) {
            self.0.push((Arc::clone(name), row));
        }
    }

    /// The names, and for each of `rows` rows the index of its name.
    pub(crate) fn indices(&self, rows: usize) -> Indices {
        let names = StringArray::from_iter_values(self.0.iter().map(|(name, _)| name));
        let mut indices = Vec::with_capacity(rows);
        let ends = self.0.iter().skip(1).map(|(_, first)| *first).chain([rows]);
        for (index, end) in ends.enumerate() {
            indices.resize(end.min(rows), index as i32);
        }
        Indices::new(indices.into(), Arc::new(names))
    }

    /// Ends the batch. The next one begins with the last file.
    pub(crate) fn end(&mut self) {
        if let Some((name, _)) = self.0.pop() {
            self.0.clear();
            self.0.push((name, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn names(files: &FileRows, rows: usize) -> Vec<String> {
        let (indices, names) = files.indices(rows).into_parts();
        let of = |index: &i32| names.as_string::<i32>().value(*index as usize).to_owned();
        indices.values().iter().map(of).collect()
    }

    #[test]
    fn each_row_has_its_file() {
        let mut files = FileRows::default();
        let file = |name: &str| Arc::<str>::from(name);
        files.begin(&file("none"), 0);
        files.begin(&file("a"), 0);
        files.begin(&file("a"), 1);
        files.begin(&file("none"), 2);
        files.begin(&file("b"), 2);
        assert_eq!(names(&files, 3), ["a", "a", "b"]);
        files.end();
        assert_eq!(names(&files, 2), ["b", "b"]);
        files.begin(&file("c"), 2);
        files.begin(&file("b"), 2);
        assert_eq!(names(&files, 3), ["b", "b", "b"]);
        assert_eq!(names(&FileRows::default(), 0), [""; 0]);
    }
}
