-- evtx_ticket_options(code)
--
-- The names of the options of a Kerberos request, such as [Forwardable, Renewable] for 0x40800000. NULL if none is
-- known.
--
-- SELECT evtx_ticket_options(TicketOptions) FROM read_evtx('Security.evtx', event_id := 4769)

evtx_code_names('ticket_options', code)
