"""What providers demand, as a table: a row per contract, looked up, never inherited.

A contract hangs on three things, never on a model's name alone: whose endpoint it is (the policy
name, given by the user or inferred from the host), which dialect is spoken there, and the model
family. `find_policy` finds the first row that fits; an unknown endpoint gets the generic one, which
sends nothing that was not asked for. Adding a provider is adding a row to `contracts` and a test
that cites its source. What was found to be otherwise at one endpoint is in a file of the user's
(`overrides`). What to do about a provider's refusal is in `errors`.
"""
