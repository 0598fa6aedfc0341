"""The hard cases of translation, and where each of them is proved.

Every pair of dialects (`test_every_pair.py`, unless another file is named):

    tool loop, no echo, restart     engine/test_translated_source.py; a restart after every turn here
    all answers say "Done."         test_two_conversations_in_which_all_answers_say_done
    parallel results reversed       test_results_of_parallel_calls_in_reverse_order
    thoughts between texts, calls   test_thoughts_stay_where_they_were
    cut in a thought, client gone   test_a_thought_that_was_cut_…, test_a_client_that_hangs_up_…
    empty thought against none      test_messages_to_chat.py
    any chunking, whole = streamed  dialects/test_answers.py
    stable prefix, 50 turns         test_prefix_stability.py
    odd characters                  test_odd_characters_survive_both_ways
    300 messages                    test_a_long_history_is_read_once_…: calls are counted, not time
    arguments and ids as emitted    test_arguments_go_back_…, test_ids_go_back_…
    seals and handles               test_no_seal_crosses_…, test_handles_…, log/test_handles.py
    calls without results           test_a_call_without_a_result_is_answered
    token counts                    test_tokens_are_counted_as_the_provider_counts_them

From one dialect to another: `test_responses_to_chat.py` (Codex), `test_messages_to_chat.py` (Claude
Code), `test_chat_to_messages.py` (Claude, also for Responses clients), `test_to_responses.py`,
`test_gemini.py` (Gemini CLI, and Gemini as a provider), `test_errors.py`, `test_efforts.py`. Each of
these names the cases that stand elsewhere.

`golden_files.py` holds one request, one answer and one stream of each pair;
`test_round_trip.py` is the property that every dialect keeps what it can say.
"""
