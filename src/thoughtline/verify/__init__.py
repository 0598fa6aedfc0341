"""Checks a provider's policy row with a few small requests to the real endpoint.

First a short conversation is held. Then its history is sent again and again, each time with one
thing changed, and whether the endpoint accepts it is compared with what the row assumes.
`sample_history` makes the changed histories, `checks` lists the requests, `verifier` sends them,
`report` says what was found.
"""
