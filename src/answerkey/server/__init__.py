"""The dashboard: pages, JSON API and feedback endpoint over a store, as one web application."""
