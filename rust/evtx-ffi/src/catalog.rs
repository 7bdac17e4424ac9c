//! Catalogs of messages that `COPY ... TO` makes.

use arrow_array::{RecordBatch, StructArray};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_format::Interrupt;
use evtx_reports::CatalogRows;
use evtx_scan::ScanError;

use crate::boundary::{EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, entry, produce, release, required};
use crate::storage::EvtxStorage;

/// A catalog that is being made: first of rows, then its bytes.
#[derive(Debug)]
pub struct EvtxCatalog {
    schema: FFI_ArrowSchema,
    rows: CatalogRows,
    bytes: Vec<u8>,
}

/// Fails if a table with columns of these names cannot be a catalog.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_catalog_check(names: EvtxSlice<'_, EvtxText<'_>>) -> EvtxFailure {
    entry(|| {
        let names = names.get().iter().map(EvtxText::text).collect::<Result<Vec<_>, _>>()?;
        Ok(CatalogRows::check(&names)?)
    })
}

/// Makes a catalog without rows. `schema` is that of its batches, and is taken over.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_catalog_new(
    schema: Option<&mut FFI_ArrowSchema>,
    out: Option<&mut EvtxOwned<EvtxCatalog>>,
) -> EvtxFailure {
    produce(out, || {
        let schema = std::mem::replace(required(schema)?, FFI_ArrowSchema::empty());
        Ok(Some(EvtxCatalog::new(schema).into()))
    })
}

/// Adds the rows of a batch, which is taken over.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_catalog_push(
    catalog: Option<&mut EvtxCatalog>,
    batch: Option<&mut FFI_ArrowArray>,
) -> EvtxFailure {
    entry(|| {
        let batch = std::mem::replace(required(batch)?, FFI_ArrowArray::empty());
        Ok(required(catalog)?.push(batch)?)
    })
}

/// Returns the bytes of the catalog's file, until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_catalog_finish<'a>(
    catalog: Option<&'a mut EvtxCatalog>,
    storage: EvtxStorage,
    out: Option<&mut EvtxSlice<'a, u8>>,
) -> EvtxFailure {
    produce(out, || {
        let catalog = required(catalog)?;
        Ok(EvtxSlice::borrowed(
            storage.during(|_, interrupt| catalog.finish(interrupt))?,
        ))
    })
}

/// Frees a catalog.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_catalog_free(catalog: EvtxOwned<EvtxCatalog>) {
    release(|| drop(catalog));
}

impl EvtxCatalog {
    /// A catalog without rows. `schema` is that of its batches.
    pub fn new(schema: FFI_ArrowSchema) -> Self {
        EvtxCatalog {
            schema,
            rows: CatalogRows::default(),
            bytes: Vec::new(),
        }
    }

    /// Adds the rows of a batch of the schema.
    ///
    /// # Errors
    /// A text that says what is wrong with the batch or a row.
    pub fn push(&mut self, batch: FFI_ArrowArray) -> Result<(), String> {
        // SAFETY: the caller passes a batch of the schema.
        let data = unsafe { arrow_array::ffi::from_ffi(batch, &self.schema) };
        let data = data.map_err(|error| error.to_string())?;
        self.rows.push(&RecordBatch::from(StructArray::from(data)))
    }

    /// The bytes of the file. It has no rows afterwards.
    ///
    /// # Errors
    /// Why the rows cannot be a catalog, or [`ScanError::Interrupted`].
    pub fn finish(&mut self, interrupt: Interrupt<'_>) -> Result<&[u8], ScanError> {
        let made = std::mem::take(&mut self.rows).finish(interrupt);
        // The error of an interrupt is that of the query, not of the rows.
        interrupt.check()?;
        self.bytes = made.map_err(ScanError::Input)?;
        Ok(&self.bytes)
    }
}
