//! The scenarios, each by its name: on HAProxy 3.4 behind our own API and without any, and on each original that is found. `cargo xtask soak sync`
//! takes them everywhere.

use setpoint_testutils::{Missing, Version, need};

use crate::world::Place;
use crate::{faults, read_back, sync};

/// A test for each, and one function for all of them.
macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        $($(
            #[tokio::test]
            async fn $name() {
                let everywhere = async {
                    for place in here() {
                        $module::$name(&place).await?;
                    }
                    Ok::<_, Missing>(())
                };
                need!(everywhere.await);
            }
        )*)*

        /// All of them in some place.
        pub(crate) async fn all(place: &Place) -> Result<(), Missing> {
            $($(
                println!("{place}: {}", stringify!($name));
                $module::$name(place).await?;
            )*)*
            Ok(())
        }
    };
}

/// Where a test tries them.
fn here() -> Vec<Place> {
    let mut places = vec![Place::nearest(setpoint_dataplane_api::Dialect::default())];
    places.push(Place::Local(Version::V3_4));
    places.extend(Place::originals());
    places
}

scenarios! {
    sync:
        no_changes_detected_returns_early
        parse_error_on_desired_config_produces_parse_error
        parse_error_on_current_config_produces_parse_error
        version_cache_hit_skips_full_fetch
        version_cache_miss_triggers_full_fetch
        get_version_failure_falls_through_to_full_fetch
        matching_checksums_skip_auxiliary_file_comparison
        different_checksums_proceed_with_comparison
        all_server_updates_use_runtime_path
        mixed_operations_use_transaction_path
        runtime_version_conflict_retried
        version_conflict_triggers_retry
        a_conflict_is_planned_again_from_what_is_there_now
        version_conflict_exhausts_retries
        a_transaction_that_failed_is_dropped
        high_operation_count_triggers_raw_push
        raw_push_calculates_post_sync_version
        fallback_skips_auxiliary_re_sync
        both_fine_grained_and_fallback_fail
        ssl_certificates_synced_before_other_auxiliary_files
        general_files_and_maps_synced_in_parallel
        parallel_auxiliary_file_comparison
        post_config_deletion_failure_does_not_fail_sync
        a_sync_of_the_configuration_alone_deletes_no_file
        reload_verification_timeout
        cancellation_drops_the_transaction
        reload_verification_succeeds
        auxiliary_reload_verified_before_config_sync;
    read_back:
        connection_refused_triggers_retry
        a_reload_that_nobody_has_seen_is_no_success
        a_push_that_makes_another_version_than_the_next_is_a_conflict
        what_an_api_drops_of_a_text_is_an_error_that_shows_it;
    faults: an_api_that_is_restarted_in_the_middle_of_a_transaction_leaves_what_was_there;
}
