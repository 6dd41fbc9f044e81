"""The chatbot as an HTTP service: `POST /chat`, a chat page, feedback, and the OpenAPI description."""
