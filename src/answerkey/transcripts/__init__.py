"""Outside formats → Reply: what chatbots, SDKs, streams and logs give, read in one way for everything that asks or scores."""
