-- evtx_account_control(code)
--
-- The names of the account flags in events about account management, such as [USER_NORMAL_ACCOUNT] for 0x10. NULL if
-- none is known.
--
-- SELECT evtx_account_control(NewUacValue) FROM read_evtx('Security.evtx', event_id := 4738)

evtx_code_names('account_control', code)
