"""What each page shows, as data: the same for the HTML page and for the JSON API."""
