-- evtx_account_control(code)
--
-- The names of the flags of an account as the events of account management have them, such as [USER_NORMAL_ACCOUNT]
-- for 0x10; NULL if none is known.
--
-- SELECT evtx_account_control(NewUacValue) FROM read_evtx('Security.evtx', event_id := 4738)

evtx_code_names('account_control', code)
