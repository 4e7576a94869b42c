//! The tests that sleep, wait, spawn or race.

/// The tests of a file, each with the most rounds that it is run, where that is less than `--rounds`.
pub struct TestFile {
    /// From the root of the workspace.
    pub path: &'static str,
    pub tests: &'static [(&'static str, Option<u32>)],
}

/// Files whose tests only look as though they belonged here, and why they do not.
pub const UNLISTED: &[(&str, &str)] = &[
    ("crates/backtest/tests/language.rs", "a time limit ends a hang; no test waits for another thread"),
    ("crates/coloring/src/event/tests.rs", "times are given as distances from one instant, none passes"),
    ("crates/coloring/src/tune.rs", "times are given to the rules, none passes"),
    ("crates/dash/tests/terminal.rs", "times are given to the screen, none passes"),
    ("crates/fleet/src/fleet/crew.rs", "times are given to the rules, none passes"),
    ("crates/fleet/src/fleet/feed.rs", "times are given to the rules, none passes"),
    ("crates/gpu/src/wait.rs", "time passes in a pace of its own"),
    ("crates/market/src/atc/bench.rs", "it measures, and judges nothing by it"),
    ("crates/bench/src/holding_up.rs", "it measures, and judges nothing by it"),
    ("crates/bench/src/overlap.rs", "it measures, and judges nothing by it"),
    ("crates/py/tests/package.rs", "environments are tried side by side, and none waits for another"),
    ("crates/tidemill/tests/gpu/executor.rs", "cases run side by side, and none waits for another"),
    ("crates/tidemill/tests/cli/bad_input.rs", "a time limit ends a hang; no test waits for another thread"),
    ("xtask/src/stress/test_source.rs", "the tests in it are text"),
];

/// All others.
pub const LIST: &[TestFile] = &[
    TestFile {
        path: "crates/backtest/tests/fault.rs",
        tests: &[("a_kernel_that_never_ends_is_a_lost_device_and_the_executor_leaves_it", None)],
    },
    TestFile {
        path: "crates/coloring/src/controller/tests.rs",
        tests: &[
            ("a_large_sparse_graph_is_coloured_in_the_time_it_is_given", None),
            ("a_run_ends_for_the_reason_it_says", None),
        ],
    },
    TestFile {
        path: "crates/coloring/src/record.rs",
        tests: &[
            ("a_folder_holds_the_journal_the_best_colouring_and_a_state_to_go_on_from", None),
            ("a_run_that_cannot_keep_its_colouring_fails_and_records_it", None),
            ("a_tuned_run_that_resumes_after_a_decision_finds_what_it_would_have_found", None),
        ],
    },
    TestFile {
        path: "crates/dash/tests/web/live.rs",
        tests: &[
            ("a_long_run_opens_from_its_checkpoint", None),
            ("a_run_that_has_said_nothing_yet_is_missing_until_it_does", None),
            ("a_stream_tells_everything_once_and_then_what_changes", None),
            ("several_may_look_and_leave", None),
        ],
    },
    TestFile {
        path: "crates/dash/tests/web/security.rs",
        tests: &[("a_server_that_is_dropped_ends_at_once_also_with_streams_open", None)],
    },
    TestFile {
        path: "crates/fleet/tests/fleet.rs",
        tests: &[
            ("workers_of_one_name_are_told_apart", None),
            ("a_study_that_is_told_to_stop_sends_nothing_more", None),
            ("workers_that_get_too_little_are_spoken_of_once", None),
            ("loss_delay_repetition_and_order_change_no_byte", None),
            ("threads_of_this_process_give_the_bytes_of_a_serial_run", None),
            ("one_pool_serves_one_study_after_another", None),
            ("a_worker_that_lies_by_one_bit_is_named_and_ends_the_study", None),
            ("a_worker_whose_probes_differ_is_refused_and_the_others_go_on", None),
            ("another_version_other_data_and_another_study_are_refused", None),
            ("a_worker_that_draws_other_points_is_sent_them", None),
            ("a_shard_that_fails_here_is_evaluated_there_and_one_that_fails_everywhere_ends_the_study", None),
            ("workers_that_are_all_gone_end_the_study_and_the_folder_goes_on", None),
            ("nobody_at_all_is_waited_for_and_then_an_error", None),
        ],
    },
    TestFile {
        path: "crates/fleet/tests/malformed.rs",
        tests: &[
            ("a_worker_answers_any_bytes_and_still_serves_afterwards", None),
            ("a_coordinator_believes_no_malformed_answer", None),
        ],
    },
    TestFile {
        path: "crates/gpu/src/caller.rs",
        tests: &[
            ("a_call_that_does_not_return_is_left_alone", None),
            ("calls_are_made_in_order_and_answered", None),
        ],
    },
    TestFile {
        path: "crates/gpu/src/emulate/tests.rs",
        tests: &[("several_host_threads_run_kernels_at_once", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/buffer.rs",
        tests: &[
            ("changing_pinned_memory_waits_for_every_upload_from_it", None),
            ("dropping_memory_waits_for_its_work", None),
            ("a_buffer_grows_where_it_is_while_its_work_goes_on", None),
            ("reading_pinned_memory_waits_for_the_download", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/coordinator.rs",
        tests: &[
            ("branches_overlap_and_meet_again", None),
            ("finishing_one_does_not_wait_for_others", None),
            ("operations_run_after_what_they_depend_on", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/fault.rs",
        tests: &[
            ("a_failing_kernel_is_told_at_the_next_synchronisation_with_its_name", None),
            ("kernels_before_a_good_synchronisation_are_no_suspects", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/hang.rs",
        tests: &[
            ("a_pipeline_on_a_hanging_device_ends", None),
            ("a_wait_within_the_limit_is_as_good_as_one_without", None),
            ("dropping_what_a_hanging_device_uses_waits_once_and_then_never_again", None),
            ("the_last_owner_of_a_hanging_device_leaves_it", None),
            ("what_work_on_the_host_owns_is_left_with_a_hanging_device", None),
            ("whatever_waits_for_a_kernel_that_never_ends_says_that_the_device_hangs", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/kernel.rs",
        tests: &[("a_loaded_source_is_found_without_asking_the_compiler", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/pipeline.rs",
        tests: &[
            ("a_lost_device_ends_the_run_with_its_error", None),
            ("a_pipeline_gives_the_results_of_one_batch_after_the_other", None),
            ("a_timeline_shows_every_stage_of_every_batch", None),
            ("batches_are_finished_in_order_and_no_more_fly_than_there_are_lanes", None),
            ("lanes_overlap_and_the_statistics_say_so", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/stream.rs",
        tests: &[
            ("a_stream_can_be_dropped_by_work_on_the_host", None),
            ("a_stream_waits_for_an_event_of_another", None),
            ("a_wait_takes_the_record_before_it_not_a_later_use_of_the_event", None),
            ("kernels_of_two_streams_overlap_in_time", None),
            ("streams_of_the_host_really_run_side_by_side", None),
            ("submitting_does_not_wait", None),
            ("time_between_events_is_the_time_of_the_work", None),
            ("work_forks_and_joins", None),
            ("work_of_a_dropped_stream_still_runs", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/gpu/runtime/timeline.rs",
        tests: &[("spans_have_the_times_of_their_work", None)],
    },
    TestFile {
        path: "crates/lab/src/tune.rs",
        tests: &[
            ("a_search_that_stagnates_is_led_out_of_its_basin", None),
            ("a_study_in_far_too_small_batches_soon_runs_as_though_it_had_been_tuned_by_hand", None),
        ],
    },
    TestFile {
        path: "crates/lab/src/tune/lanes.rs",
        tests: &[("what_the_tuner_decides_is_done_by_the_devices_and_taken_back", None)],
    },
    TestFile {
        path: "crates/lab/tests/cluster.rs",
        tests: &[
            ("a_sweep_on_workers_has_the_bytes_and_the_verdict_of_one_without", None),
            ("the_windows_of_a_walk_forward_are_served_by_the_same_workers_one_after_the_other", None),
            ("a_worker_with_other_data_is_refused_and_the_message_says_what_to_do", None),
        ],
    },
    TestFile {
        path: "crates/lab/tests/devices.rs",
        tests: &[("a_device_that_hangs_is_left_for_the_cpu_if_it_may_and_is_an_error_if_not", None)],
    },
    TestFile {
        path: "crates/lab/tests/sweep.rs",
        tests: &[
            ("a_stopped_sweep_says_so_and_goes_on_to_the_same_end", None),
            ("an_experiment_can_be_run_from_any_thread_with_the_same_result", None),
            ("the_folder_is_locked_until_the_last_event", None),
        ],
    },
    TestFile {
        path: "crates/search/src/eager.rs",
        tests: &[
            ("messages_come_first_and_what_is_ready_ends_the_wait", None),
            ("what_is_there_is_had_at_once_and_what_never_comes_is_given_up", None),
        ],
    },
    TestFile {
        path: "crates/search/src/sampler/auto/surface.rs",
        tests: &[
            ("a_surface_of_many_coefficients_is_the_same_whatever_the_threads", None),
            ("in_a_long_study_a_surface_of_many_coefficients_knows_all_batches_but_the_last", None),
            ("proposals_do_not_depend_on_how_they_are_cut_into_batches", None),
            ("scores_of_any_size_are_survived", None),
            ("what_fails_beside_everything_else_is_not_lost", None),
        ],
    },
    TestFile {
        path: "crates/search/src/study/timing.rs",
        tests: &[
            ("the_clock_counts_the_time_between_start_and_stop_only", None),
            ("work_beside_an_idle_evaluator_does_not_overlap", None),
        ],
    },
    TestFile {
        path: "crates/search/tests/conformance.rs",
        tests: &[
            ("auto_conforms", None),
            ("cmaes_conforms", None),
            ("differential_conforms", None),
            ("generational_conforms", None),
            ("genetic_conforms", None),
            ("grid_conforms", None),
            ("nsga2_conforms", None),
            ("random_conforms", None),
            ("sobol_conforms", None),
            ("the_whole_grid_conforms", None),
            ("tpe_conforms", None),
            ("tpe_multivariate_conforms", None),
        ],
    },
    TestFile {
        path: "crates/search/tests/crash.rs",
        tests: &[
            ("a_log_that_cannot_grow_ends_the_study_and_loses_nothing", None),
            ("a_study_killed_at_random_moments_ends_as_if_uninterrupted", None),
        ],
    },
    TestFile {
        path: "crates/search/tests/folder.rs",
        tests: &[("a_live_study_can_be_read_at_any_moment", None)],
    },
    TestFile {
        path: "crates/search/tests/fresh.rs",
        tests: &[("a_study_ends_where_its_space_does_however_it_runs_and_is_interrupted", None)],
    },
    TestFile {
        path: "crates/search/tests/study.rs",
        tests: &[
            ("a_batch_is_asked_after_exactly_the_batches_before_the_lag_were_told", None),
            ("every_batch_is_reported_once_in_order_with_its_times", None),
            ("sampler_and_evaluator_really_work_at_the_same_time", None),
            ("the_pipeline_equals_one_thread_for_every_lag_and_any_delays", None),
            ("without_a_lag_or_a_pipeline_they_work_one_after_the_other", None),
        ],
    },
    TestFile {
        path: "crates/search/tests/study/failure.rs",
        tests: &[
            ("a_folder_that_becomes_unwritable_is_named_and_nothing_complete_is_lost", None),
            ("a_full_disk_is_named_and_nothing_complete_is_lost", None),
            ("a_sampler_that_panics_is_named_and_what_was_finished_is_kept", None),
            ("an_evaluator_that_fails_is_named_and_what_was_finished_is_kept", None),
            ("an_observer_that_panics_ends_the_study_and_loses_nothing", None),
        ],
    },
    TestFile {
        path: "crates/search/tests/study/resume.rs",
        tests: &[("a_stopped_study_keeps_what_is_finished_and_goes_on_to_the_same_end", None)],
    },
    TestFile {
        path: "crates/telemetry/src/journal/tests.rs",
        tests: &[
            ("a_failed_write_is_reported_on_close_and_later_events_count_as_dropped", None),
            ("a_file_of_one_torn_line_becomes_empty_and_a_missing_one_is_made", None),
            ("a_file_that_cannot_be_put_aside_is_written_on", None),
            ("a_full_disk_is_told_to_who_must_know_and_the_journal_goes_on_when_there_is_room", None),
            ("a_journal_without_a_file_folds", None),
            ("a_new_journal_leaves_nothing_of_an_old_one_but_keeps_its_neighbours", None),
            ("a_silent_journal_gives_signs_of_life_by_itself", None),
            ("a_slow_writer_blocks_nobody_and_drops_are_told_when_they_happen", None),
            ("a_torn_last_line_is_cut_off_before_appending", None),
            ("an_event_comes_into_the_file_without_being_asked_for", None),
            ("concurrent_writers_lose_and_mix_nothing", None),
            ("full_files_end_behind_whole_records_and_sum_up_to_their_checkpoints", None),
            ("silence_is_broken_by_a_sign_of_life", None),
            ("the_end_is_the_last_record_and_drops_are_told_before_it", None),
        ],
    },
    TestFile {
        path: "crates/telemetry/src/metrics.rs",
        tests: &[
            ("a_silent_client_does_not_stay", None),
            ("dropping_it_frees_the_port_and_a_taken_or_public_one_is_refused", None),
            ("the_page_is_made_for_every_request_and_all_else_is_not_found", None),
            ("too_long_a_request_is_refused", None),
        ],
    },
    TestFile {
        path: "crates/telemetry/tests/endurance.rs",
        tests: &[("a_long_run_keeps_its_size_and_opens_from_a_checkpoint", None)],
    },
    TestFile {
        path: "crates/telemetry/tests/follow.rs",
        tests: &[
            ("a_file_that_is_renamed_in_the_middle_of_a_poll_is_read_to_its_end", None),
            ("a_journal_made_anew_is_folded_anew", None),
            ("a_killed_writer_leaves_whole_lines_and_what_it_was_told_is_on_disk", None),
            ("files_that_are_renamed_while_they_are_read_lose_and_double_nothing", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/src/command/scan/watch.rs",
        tests: &[("a_change_is_seen_once_and_a_stop_at_once", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/browser/live.rs",
        tests: &[
            ("a_live_run_advances_without_reload_and_outlives_its_viewer", Some(10)),
            ("a_token_in_the_address_is_taken_once", Some(10)),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/browser/pages.rs",
        tests: &[
            ("a_run_is_listed_and_drawn", Some(10)),
            ("a_trial_has_its_chart_and_its_trades", Some(10)),
            ("figures_out_of_sample_are_those_of_the_sweep", Some(10)),
            ("neighbours_share_a_row_and_unfold", Some(10)),
            ("nothing_is_wider_than_a_phone_in_light_and_dark", Some(10)),
            ("pages_that_are_one_file_draw_themselves", Some(10)),
            ("parameters_are_weighed_and_brushed", Some(10)),
            ("the_colours_of_the_system_are_followed_until_one_is_chosen", Some(10)),
            ("trials_are_sorted_filtered_and_turned_by_the_page", Some(10)),
            ("two_parameters_are_mapped_and_scores_compared_with_those_out_of_sample", Some(10)),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/browser/summary.rs",
        tests: &[
            ("a_run_tells_of_the_strategy_before_the_machine", Some(10)),
            ("a_walk_forward_has_a_page_of_its_own", Some(10)),
            ("a_winner_at_the_end_of_a_range_and_a_missing_verdict_are_said", Some(10)),
            ("the_best_trials_are_the_best_by_rank", Some(10)),
            ("the_list_of_runs_has_verdicts_and_every_part_beside_its_benchmark", Some(10)),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/browser/report.rs",
        tests: &[
            ("equity_has_a_logarithmic_axis_and_prices_the_lines_of_the_strategy", Some(10)),
            ("tiles_tables_and_months_are_those_of_the_embedded_trades_and_days", Some(10)),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/browser/study.rs",
        tests: &[("a_study_shows_its_verdict_a_heat_map_and_what_was_kept_out_of_sample", Some(10))],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/agreement.rs",
        tests: &[("the_figures_of_a_winner_are_the_same_everywhere", Some(10))],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/cluster.rs",
        tests: &[
            ("a_search_on_workers_stops_when_it_is_told_to", None),
            ("a_worker_that_is_busy_says_so_once_and_serves_who_waits", None),
            ("a_merge_goes_on_where_it_stopped_and_takes_complete_parts_only", None),
            ("local_workers_read_the_settings_that_the_search_reads", None),
            ("a_sweep_on_worker_processes_has_the_bytes_of_one_process", None),
            ("workers_that_are_killed_all_the_time_change_no_byte", None),
            ("a_search_that_was_killed_goes_on_with_another_number_of_workers", None),
            ("workers_behind_sockets_serve_who_knows_the_token_and_tell_others_nothing", None),
            ("a_walk_forward_on_workers_is_the_same", None),
            ("wrong_workers_are_refused_before_the_work", None),
            ("parts_of_a_study_merge_into_the_study_that_was_never_cut", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/color.rs",
        tests: &[
            ("an_interrupt_ends_with_the_best_so_far", None),
            ("whoever_closes_standard_error_does_not_end_a_run", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/dash.rs",
        tests: &[
            ("a_run_without_trials_says_so", None),
            ("ctrl_c_ends_it_at_once", None),
            ("data_that_is_gone_or_changed_draws_no_chart", None),
            ("trials_and_charts_are_those_of_the_command_line", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/device.rs",
        tests: &[("a_sweep_killed_on_a_device_goes_on_with_the_cpu_to_the_same_study", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/hypertune.rs",
        tests: &[
            ("a_killed_and_resumed_sweep_repeats_its_decisions_and_they_alone_decide_the_trials", None),
            ("advice_changes_nothing_and_is_given_in_words", None),
            ("decisions_stand_in_the_journal_before_the_batches_they_affect_and_have_effects", None),
            ("metrics_are_served_while_it_runs", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/monitor.rs",
        tests: &[
            ("a_run_that_comes_later_is_followed_to_its_end", None),
            ("a_sweep_is_followed_while_it_runs_and_is_not_disturbed", None),
            ("ctrl_c_ends_the_lines_cleanly", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/output.rs",
        tests: &[("a_reader_that_closes_the_pipe_is_no_failure", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/scan.rs",
        tests: &[("watching_scans_again_when_a_file_changes_and_ends_with_ctrl_c", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/signal.rs",
        tests: &[("watching_says_what_is_new_and_ends_with_ctrl_c", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/study.rs",
        tests: &[
            ("a_killed_sweep_goes_on_to_the_same_study", None),
            ("a_second_process_on_a_study_is_refused", None),
            ("ctrl_c_keeps_what_is_done_and_ends_with_130", None),
        ],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/study_manage.rs",
        tests: &[("a_study_that_was_stopped_is_judged_as_far_as_it_got", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/trial.rs",
        tests: &[("every_printed_command_gives_the_figures_beside_it", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/cli/walkforward.rs",
        tests: &[("stopped_and_killed_on_the_way_it_comes_to_the_same_bytes", None)],
    },
    TestFile {
        path: "crates/tidemill/tests/data.rs",
        tests: &[("a_pipe_that_has_a_name_is_read_once", None)],
    },
];
