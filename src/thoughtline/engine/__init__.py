"""One exchange with a provider, for the gateway, the transports and the agents' loop alike."""
