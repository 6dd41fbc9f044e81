"""What is answered, and how: facts from the tables, money from the books, quotes from the documents, and what is declined."""
