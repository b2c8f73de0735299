"""Parts of screens; each renders a Trace and keeps no state of its own from events."""
