-- evtx_user_account_control(code)
--
-- The names of the account flags in the attribute userAccountControl, such as [NORMAL_ACCOUNT] for 512. NULL if none
-- is known.
--
-- SELECT evtx_user_account_control(AttributeValue) FROM read_evtx('Security.evtx', event_id := 5136)

evtx_code_names('user_account_control', code)
