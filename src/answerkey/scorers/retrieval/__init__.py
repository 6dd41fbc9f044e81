"""Retrieval quality: were the right documents found, in the right order, and does the reply cite what was found?"""
