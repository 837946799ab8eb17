"""The dashboard: numbers for its charts, and the page that draws them."""
