"""The Agent Client Protocol (ACP): editors speak it to agents, one JSON message a line.

`notyet acp` stands between an editor (the client) and an agent, and gates the ends of turns:
`proxy` decides what happens to each line, `gating` runs the gates and shows them to the client,
`pipes` moves the bytes. `wire` has the words of both versions of the protocol, also for sessions
that notyet itself has with such an agent.
"""
