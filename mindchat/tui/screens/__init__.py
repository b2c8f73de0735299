"""Full screens: the chat and what opens over it."""
