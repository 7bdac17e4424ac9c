//! All scalar functions, and their calls from C++.

use std::sync::OnceLock;

use crate::boundary::{EvtxFailure, EvtxFunction, EvtxOwned, EvtxSlice, EvtxText, produce, release, required};
use crate::report::quoted_type;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction};
use crate::storage::EvtxStorage;
use crate::vectors::EvtxArrays;
use crate::{answers, contents, decoded, facts, logons, matching, names, places, records, roles, zones};

/// All scalar functions.
pub fn scalar_functions() -> &'static [ScalarFunction] {
    static FUNCTIONS: OnceLock<Vec<ScalarFunction>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let codes = answers::functions();
        let others = [decoded::function(), zones::function()];
        let functions = codes
            .chain(roles::functions())
            .chain(logons::functions())
            .chain(names::functions())
            .chain(places::functions())
            .chain(facts::functions())
            .chain(others)
            .chain(contents::functions())
            .chain([records::redact(), records::pseudonymize()]);
        functions.chain(matching::functions()).collect()
    })
}

/// A parameter of a scalar function.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxScalarParameter {
    /// Its name.
    pub name: EvtxText<'static>,
    /// The name of its type in SQL.
    pub type_name: EvtxText<'static>,
}

/// A scalar function. It gets NULL as any other value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxScalarFunction {
    /// Its documentation.
    pub function: EvtxFunction,
    /// Its parameters.
    pub parameters: EvtxSlice<'static, EvtxScalarParameter>,
    /// The name of the type of its result in SQL.
    pub result: EvtxText<'static>,
    /// Whether its calls must not be repeated, nor its arguments be compared.
    pub is_volatile: bool,
}

impl EvtxScalarFunction {
    /// All functions, by number.
    pub(crate) fn all() -> EvtxSlice<'static, EvtxScalarFunction> {
        let leaked = |text: &str| EvtxSlice::leaked(text.as_bytes());
        let functions = scalar_functions().iter().map(|function| EvtxScalarFunction {
            function: EvtxFunction::new(function.name, function.description, function.example),
            parameters: EvtxSlice::leaked(
                function
                    .parameters
                    .iter()
                    .map(|field| EvtxScalarParameter {
                        name: leaked(field.name()),
                        type_name: leaked(&quoted_type(field)),
                    })
                    .collect::<Vec<_>>(),
            ),
            result: leaked(&quoted_type(&function.result)),
            is_volatile: function.is_volatile(),
        });
        EvtxSlice::leaked(functions.collect::<Vec<_>>())
    }
}

/// What a thread keeps of a scalar function between its calls.
pub struct EvtxScalar(Box<dyn Scalar>);

/// Makes what a thread keeps of the function with this number, among those of [`crate::EvtxDefinitions`].
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scalar_new(function: usize, out: Option<&mut EvtxOwned<EvtxScalar>>) -> EvtxFailure {
    produce(out, || {
        let function = required(scalar_functions().get(function))?;
        Ok(Some(EvtxScalar(function.thread()).into()))
    })
}

/// Calls the function for the rows of the vectors of its parameters, as [`Scalar::call`] says. The result is one array.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scalar_call(
    scalar: Option<&mut EvtxScalar>,
    vectors: EvtxSlice<'_, EvtxVector>,
    storage: EvtxStorage,
    out: Option<&mut EvtxOwned<EvtxArrays>>,
) -> EvtxFailure {
    produce(out, || {
        let scalar = &mut required(scalar)?.0;
        // SAFETY: the caller passes the vectors of the parameters.
        let array = storage
            .during(|storage, interrupt| unsafe { scalar.call(vectors.get(), Caller { storage, interrupt }) })?;
        Ok(Some(EvtxArrays::of(array).into()))
    })
}

/// Frees what a thread kept.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_scalar_free(scalar: EvtxOwned<EvtxScalar>) {
    release(|| drop(scalar));
}
