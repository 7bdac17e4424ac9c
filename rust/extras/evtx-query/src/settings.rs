//! The settings that arguments change. Each crate with arguments has a type of its own for them.

use evtx_detect::RuleSettings;
use evtx_events::EventSettings;
use evtx_exports::SourceSettings;
use evtx_extras::ExtraSettings;
use evtx_recovery::RecoverySettings;
use evtx_scan::{Argument, ArgumentValue, ScanError, ScanSettings, Setting};

/// Defines [`List`] and [`CallSettings`]: for each type of settings the name of its lists, its field, and its name.
macro_rules! settings {
    ($($List:ident, $field:ident: $settings:ty;)*) => {
        /// A list of arguments, by the settings that they change.
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum List {
            $($List(&'static [Setting<$settings>]),)*
        }

        /// The settings of a call.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct CallSettings {
            $(pub(crate) $field: $settings,)*
        }

        impl List {
            pub(crate) fn arguments(self) -> Vec<&'static Argument> {
                match self {
                    $(List::$List(list) => list.iter().map(|setting| &setting.argument).collect(),)*
                }
            }

            /// Lets the argument of a name take the value, if the list has the argument.
            pub(crate) fn take(
                self,
                name: &str,
                settings: &mut CallSettings,
                value: &mut Option<ArgumentValue>,
                function: &str,
            ) -> Option<Result<(), ScanError>> {
                match self {
                    $(List::$List(list) => {
                        let setting = list.iter().find(|setting| setting.argument.name == name)?;
                        Some(setting.take(&mut settings.$field, value.take()?, function))
                    })*
                }
            }
        }
    };
}

settings! {
    Scan, scan: ScanSettings;
    Events, events: EventSettings;
    Recovery, recovery: RecoverySettings;
    Extras, extras: ExtraSettings;
    Rules, rules: RuleSettings;
    Sources, sources: SourceSettings;
}
