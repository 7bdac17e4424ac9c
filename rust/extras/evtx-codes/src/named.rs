//! Enums whose variants have names. `evtx-format` has more for them, but this crate uses no other one.

/// Defines an enum: `name` gives the name of a variant in SQL and in lists, and `named` the variant.
macro_rules! named {
    ($(#[$about:meta])* pub enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        pub enum $type { $($(#[$of])* $variant,)+ }

        impl $type {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use named;
