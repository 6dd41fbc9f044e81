"""Targets: the ways to reach a chatbot, each a class that takes a question and gives a Reply."""
